"""SBA-10, SBAW-10 and SWC on the paper's own splits, beside what it printed."""

import os

import numpy as np
import pytest

from hetcal import get_calibrator
from hetcal.datasets import paper_classifier, paper_split
from hetcal.paper.published import published_value

needs_data = pytest.mark.skipif(
    not os.environ.get("HETCAL_DATA"), reason="HETCAL_DATA names no data folder"
)
pytestmark = pytest.mark.paper

COLUMN = {"sba": "SBA-10", "sbaw": "SBAW-10", "swc": "SWC"}
CELLS = [
    ("mnist-4v9", "NB"),
    ("mnist-4v9", "DT"),
    ("mnist-4v9", "RF"),
    ("mnist-4v9", "SVM"),
    ("mnist-3v5", "NB"),
    ("fashion-mnist", "NB"),
    ("fashion-mnist", "RF"),
    ("letter", "NB"),
    ("letter", "RF"),
]
ONE_TRIAL = {"sba": 0.05524, "sbaw": 0.05312, "swc": 0.05343}
MOONS = {"SVM": 0.1332, "DT": 0.1287, "RF": 0.1221}


def trial(dataset, classifier, seed, methods, n_cal=None):
    """Return the Brier score (sum over classes) of each method's paper preset in one trial."""
    split = paper_split(dataset, seed, *([] if n_cal is None else [n_cal]))
    model = paper_classifier(classifier).fit(split.X_train, split.y_train)
    P_cal, P_test = model.predict_proba(split.X_cal), model.predict_proba(split.X_test)
    scores = {}
    for name in methods:
        calibrator = get_calibrator(name, preset="paper", classes=model.classes_)
        calibrator.fit(split.X_cal, split.y_cal, y_proba=P_cal)
        Q = calibrator.predict_proba(split.X_test, y_proba=P_test)
        truth = split.y_test[:, None] == model.classes_
        scores[name] = float(((Q - truth) ** 2).sum(axis=1).mean())
    return scores


@pytest.mark.parametrize("classifier", MOONS)
def test_moons_of_the_first_trial(classifier):
    """Drawn, not downloaded: this needs no data folder."""
    found = trial("moons", classifier, 0, ["swc"], n_cal=1000)["swc"]
    assert round(found, 4) == MOONS[classifier]


@needs_data
def test_one_trial_of_mnist_4v9():
    """Scores of trial 0 from the code whose ten-trial means agree with the paper."""
    found = trial("mnist-4v9", "DT", 0, COLUMN)
    assert found == pytest.approx(ONE_TRIAL, abs=1e-4)


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize(("dataset", "classifier"), CELLS)
def test_ten_trials_give_the_published_means(dataset, classifier):
    """Within 0.0003: four printed decimals, and another version of a classifier.

    SBA on letter: nine of ten neighbours of an exact duplicate are arbitrary, which alone moves
    the mean by 0.001.
    """
    trials = [trial(dataset, classifier, seed, COLUMN) for seed in range(10)]
    for name, column in COLUMN.items():
        found = np.mean([scores[name] for scores in trials])
        tolerance = 1e-3 if (dataset, name) == ("letter", "sba") else 3e-4
        published = published_value(dataset, classifier, column)
        assert found == pytest.approx(published, abs=tolerance), name


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("classifier", ["NB", "DT"])
def test_ten_trials_of_swc_hh_give_the_published_means(classifier):
    """Within 0.0008: its forests differ in their seeds from the published ones."""
    found = np.mean(
        [trial("mnist-4v9", classifier, seed, ["swc-hh"])["swc-hh"] for seed in range(10)]
    )
    expected = published_value("mnist-4v9", classifier, "SWC-HH")
    assert abs(found - expected) < 0.0008
