"""The paper's splits and classifiers: structure without data, figures with it."""

import os
from pathlib import Path

import numpy as np
import pytest

from hetcal.datasets import load_dataset, paper_classifier, paper_split
from hetcal.datasets._canonical import checksum
from hetcal.datasets._catalogue import FILES
from hetcal.datasets._folder import read
from hetcal.paper.published import published_value

DATA = os.environ.get("HETCAL_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="HETCAL_DATA does not name a data folder")


def brier(P, y):
    return ((P - np.eye(P.shape[1])[y]) ** 2).sum(axis=1).mean()


def uncalibrated(name, classifier, seed):
    split = paper_split(name, seed)
    model = paper_classifier(classifier).fit(split.X_train, split.y_train)
    return brier(model.predict_proba(split.X_test), split.y_test)


@pytest.mark.parametrize(
    ("classifier", "published"), [("SVM", 0.218), ("DT", 0.156), ("RF", 0.134)]
)
def test_moons_gives_the_printed_scores(classifier, published):
    # Printed to three decimals in the paper's text.
    assert uncalibrated("moons", classifier, seed=0) == pytest.approx(published, abs=0.0005)


def test_parts_are_disjoint_and_calibration_sets_nested():
    large, small = paper_split("moons", 3, n_cal=2000), paper_split("moons", 3, n_cal=50)
    rows = np.concatenate([large.index_train, large.index_cal, large.index_test])
    assert len(np.unique(rows)) == len(rows) == 500 + 2000 + 500
    np.testing.assert_array_equal(large.X_cal[:50], small.X_cal)
    np.testing.assert_array_equal(large.y_test, small.y_test)
    assert not np.array_equal(paper_split("moons", 4).index_test, large.index_test)


def test_scaling_is_by_the_training_set():
    split = paper_split("moons", 0)
    np.testing.assert_allclose(split.X_train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(split.X_train.std(axis=0), 1)
    raw = paper_split("moons", 0, scale=False)
    expected = (raw.X_test - raw.X_train.mean(axis=0)) / raw.X_train.std(axis=0)
    np.testing.assert_allclose(split.X_test, expected)
    np.testing.assert_array_equal(raw.X_cal, load_dataset("moons").X[raw.index_cal])


@pytest.mark.parametrize("n_cal", [0, 9001])
def test_impossible_calibration_size_is_refused(n_cal):
    with pytest.raises(ValueError, match="between 1 and 9000"):
        paper_split("moons", 0, n_cal=n_cal)


def test_splitting_leaves_the_global_generator_alone():
    np.random.seed(1)  # noqa: NPY002
    expected = np.random.RandomState(1).rand()
    paper_split("moons", 0)
    assert np.random.rand() == expected  # noqa: NPY002


def test_unknown_classifier_is_refused():
    with pytest.raises(ValueError, match="knows no classifier 'MLP'"):
        paper_classifier("MLP")


@needs_data
@pytest.mark.paper
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("mnist-1v7", (500, 3000, 500)),
        ("fashion-mnist", (500, 5000, 500)),
        ("mnist10", (1000, 5000, 1000)),
        ("letter", (2000, 5000, 2000)),
        ("cifar100-resnet56", (0, 5000, 5000)),
    ],
)
def test_sizes(name, sizes):
    split = paper_split(name, 0)
    assert (len(split.index_train), len(split.y_cal), len(split.y_test)) == sizes
    assert set(split.y_test) <= set(range(len(split.classes)))


@needs_data
@pytest.mark.paper
def test_network_split_is_stratified_and_scaled_by_the_calibration_set():
    split = paper_split("cifar10-resnet20", 1)
    assert np.bincount(split.y_test).tolist() == [500] * 10
    assert np.bincount(split.y_cal).tolist() == [500] * 10
    np.testing.assert_allclose(split.X_cal.mean(axis=0), 0, atol=1e-9)
    assert split.X_train is None
    assert split.logits_test.shape == split.proba_test.shape == (5000, 10)
    assert paper_split("cifar10-wideresnet-16-4", 1).X_cal is None


@needs_data
@pytest.mark.paper
def test_tables_have_no_paper_split():
    with pytest.raises(ValueError, match="the paper does not use this table"):
        paper_split("adult", 0)


@needs_data
@pytest.mark.paper
@pytest.mark.parametrize(
    ("name", "accuracy"), [("cifar10-resnet20", 0.926), ("cifar100-resnet56", 0.7263)]
)
def test_networks_have_their_published_accuracy(name, accuracy):
    data = load_dataset(name)
    assert (data.y_proba.argmax(axis=1) == data.y).mean() == pytest.approx(accuracy, abs=1e-9)


@needs_data
@pytest.mark.paper
@pytest.mark.parametrize(
    ("name", "n_features", "positive_share"),
    [("adult", 13, 0.239), ("bank-marketing", 19, 0.113), ("credit-default", 23, 0.221)],
)
def test_tables(name, n_features, positive_share):
    data = load_dataset(name)
    assert data.X.shape == (len(data.y), n_features)
    assert (data.y == data.classes[1]).mean() == pytest.approx(positive_share, abs=0.0005)


@needs_data
@pytest.mark.paper
@pytest.mark.parametrize("key", [key for key, spec in FILES.items() if spec.sources])
def test_checksums_are_those_of_the_data_folder(key):
    assert checksum(read(Path(DATA) / FILES[key].filename)) == FILES[key].sha256


FAST = [
    *[("mnist-1v7", "NB"), ("mnist-1v7", "DT"), ("mnist-1v7", "SVM"), ("mnist-4v9", "NB")],
    *[("mnist-3v8", "NB"), ("mnist-3v5", "NB"), ("letter", "NB"), ("letter", "DT")],
    *[("mnist10", "NB")],
]
SLOW = [
    *[
        (name, clf)
        for name in ("mnist-1v7", "mnist-4v9", "mnist-3v8", "mnist-3v5")
        for clf in ("RF", "RBFSVM")
    ],
    *[
        (name, clf)
        for name in ("fashion-mnist", "mnist10", "letter")
        for clf in ("RF", "SVM", "RBFSVM")
    ],
    *[
        ("fashion-mnist", "NB"),
        ("fashion-mnist", "DT"),
        ("mnist10", "DT"),
        ("mnist-4v9", "DT"),
        ("mnist-4v9", "SVM"),
        ("mnist-3v8", "DT"),
        ("mnist-3v8", "SVM"),
        ("mnist-3v5", "DT"),
        ("mnist-3v5", "SVM"),
    ],
]


@needs_data
@pytest.mark.paper
@pytest.mark.parametrize(
    ("name", "classifier"),
    [*FAST, *[pytest.param(*cell, marks=pytest.mark.slow) for cell in SLOW]],
)
def test_uncalibrated_brier_is_the_published_mean_of_ten_trials(name, classifier):
    scores = [uncalibrated(name, classifier, seed) for seed in range(10)]
    # Printed to four decimals; half a unit of the last, and a little for the library's versions.
    assert np.mean(scores) == pytest.approx(published_value(name, classifier, "Uncal."), abs=0.0001)
