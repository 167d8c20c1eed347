"""Columns that belong to other classes than they are read as."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import hetcal
from hetcal._exceptions import ColumnOrderWarning
from hetcal._validation import find_column_order
from hetcal._validation.column_order import _aucs, auc_of_chance
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.metrics import calibration_test, evaluate


def reversed_items(n=200, seed=0):
    data = make_hidden_heterogeneity(n, heterogeneity=0.0, signal=5, random_state=seed)
    return data.X, data.y, data.y_proba[:, ::-1]


def one_per_row(n):
    return np.ones(n), np.arange(n)


def test_aucs_are_those_of_scikit_learn_with_ties_and_weights():
    rng = np.random.default_rng(0)
    codes, P = rng.integers(0, 3, 100), rng.integers(0, 5, (100, 3)) / 4
    weight = rng.random(100)
    aucs, *_ = _aucs(codes, P, weight, np.arange(100))
    for k in range(3):
        for j in range(3):
            expected = roc_auc_score(codes == k, P[:, j], sample_weight=weight)
            assert aucs[k, j] == pytest.approx(expected)


def test_the_standard_error_is_that_of_models_without_knowledge():
    rng = np.random.default_rng(0)
    codes = (np.arange(60) < 20).astype(int)
    drawn, error = [], 0.0
    for _ in range(2000):
        p = rng.random(60)
        aucs, errors, _ = _aucs(codes, np.column_stack([1 - p, p]), *one_per_row(60))
        drawn.append(aucs[1, 1])
        error = errors[1]
    assert np.std(drawn) == pytest.approx(error, rel=0.05)


@pytest.mark.parametrize("n", [6, 12, 40, 400, 4000])
def test_useless_models_and_few_items_are_not_accused(n):
    rng = np.random.default_rng(n)
    found = 0
    for _ in range(400):
        p, codes = rng.random(n), rng.integers(0, 2, n)
        found += find_column_order(codes, np.column_stack([1 - p, p])) is not None
    assert found <= 1  # one of 2000 is expected, and the AUC must be clear too


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("repeats", [1, 5])
def test_models_without_knowledge_are_known_by_their_auc(K, repeats):
    found = {True: 0, False: 0}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        P = np.repeat(rng.dirichlet(np.ones(K), 200), repeats, axis=0)
        right = np.repeat([rng.choice(K, p=p) for p in P[::repeats]], repeats)
        groups = np.repeat(np.arange(200), repeats)
        for knows, codes in ((True, right), (False, np.roll(right, 20 * repeats))):
            found[knows] += auc_of_chance(codes, P, groups=groups) is not None
    assert found[True] == 0
    assert found[False] >= 94  # 97 or 98 are expected
    assert auc_of_chance(np.arange(10) % K, P[:10]) is None


def test_a_handful_of_items_is_not_enough_however_wrong():
    codes = np.arange(10) % 2
    P = np.where(codes[:, None] == [0, 1], 0.1, 0.9)
    assert find_column_order(codes, P) is None
    again = np.repeat(np.arange(10), 30)  # the same ten items, many times
    assert find_column_order(codes[again], P[again], groups=again) is None
    assert find_column_order(codes[again], P[again]) is not None


@pytest.mark.parametrize("of", ["evaluate", "calibration_test"])
def test_metrics_count_groups_too(of):
    codes, again = np.arange(10) % 2, np.repeat(np.arange(10), 30)
    P = np.where(codes[:, None] == [0, 1], 0.1, 0.9)
    metric = {
        "evaluate": partial(evaluate, n_bootstrap=0),
        "calibration_test": partial(calibration_test, n_draws=19),
    }[of]
    metric(codes[again], P[again], groups=again)
    with pytest.warns(ColumnOrderWarning):
        metric(codes[again], P[again])


def test_rows_without_weight_do_not_count():
    _, y, P = reversed_items()
    weight = np.zeros(200)
    weight[:8] = 1
    assert find_column_order(y, P, weight) is None
    assert find_column_order(y, P, np.ones(200)).class_of.tolist() == [1, 0]


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_scale_of_weights_does_not_matter_for_the_order(scale):
    _, y, P = reversed_items()
    weight = scale * np.random.default_rng(0).uniform(0.5, 1.5, 200)
    assert find_column_order(y, P, weight).class_of.tolist() == [1, 0]


def test_a_model_that_is_only_a_little_worse_than_chance_is_let_through():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 5000)
    p = 1 / (1 + np.exp(rng.normal(size=5000) + 0.2 * codes))  # AUC 0.44, certain
    assert find_column_order(codes, np.column_stack([1 - p, p])) is None


def test_many_rows_are_looked_at_from_a_distance(monkeypatch):
    from hetcal._validation import column_order

    monkeypatch.setattr(column_order, "_CELLS", 200)
    _, y, P = reversed_items(1000)
    assert find_column_order(y, P) is not None


def test_many_classes_of_few_items_each():
    rng = np.random.default_rng(0)
    codes, order = np.repeat(np.arange(200), 15), rng.permutation(200)
    Z = rng.normal(size=(3000, 200)) + 3 * np.eye(200)[codes]
    P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    assert find_column_order(codes, P) is None
    assert find_column_order(codes, P[:, order]).class_of.tolist() == order.tolist()


FITS = {
    "temperature": lambda X, y, P: hetcal.TemperatureScaling().fit(None, y, y_proba=P),
    "one column": lambda X, y, P: hetcal.PlattScaling().fit(None, y, y_proba=P[:, 1]),
    "logits": lambda X, y, P: hetcal.PlattScaling().fit(None, y, logits=np.log(P + 1e-9)),
    "swc": lambda X, y, P: hetcal.SimilarityCalibrator().fit(X, y, y_proba=P),
    "hidden": lambda X, y, P: hetcal.HiddenHeterogeneity(learners=[], n_estimators=2, n_null=0).fit(
        X, y, y_proba=P
    ),
    "compare": lambda X, y, P: hetcal.compare(
        X, y, y_proba=P, methods=["platt", "beta"], baselines=False
    ),
    "evaluate": lambda X, y, P: evaluate(y, {"mine": P}, n_bootstrap=0),
}


@pytest.mark.parametrize("use", FITS)
def test_everyone_who_takes_labels_and_probabilities_warns_once(use):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        FITS[use](*reversed_items())
    said = [w for w in caught if issubclass(w.category, ColumnOrderWarning)]
    assert len(said) == 1
    assert "Pass classes=[1, 0]" in str(said[0].message)
    assert said[0].filename == __file__


def test_following_the_warning_settles_it():
    _, y, P = reversed_items()
    told = hetcal.PlattScaling(classes=[1, 0]).fit(None, y, y_proba=P)  # warnings are errors here
    plain = hetcal.PlattScaling().fit(None, y, y_proba=P[:, ::-1])
    np.testing.assert_allclose(
        told.predict_proba(y_proba=P), plain.predict_proba(y_proba=P[:, ::-1])[:, ::-1]
    )


def test_compare_does_not_repeat_it_for_every_method():
    X, y, P = reversed_items()
    with pytest.warns(ColumnOrderWarning):
        found = hetcal.compare(X, y, y_proba=P, methods=["platt", "beta"], baselines=False)
    assert not found.frame()["note"].str.contains("wrong way round").any()
