"""Fitted calibrators in a notebook: scikit-learn's drawing, with what was learnt."""

from __future__ import annotations

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import hetcal
from hetcal.datasets import make_hidden_heterogeneity

DATA = make_hidden_heterogeneity(120, random_state=0)


CASES = [(name, None) for name in hetcal.list_calibrators()] + [
    ("platt", "label"),
    ("swc", "label"),
]


@pytest.mark.parametrize(("name", "preserve"), CASES)
def test_fitted_calibrators_show_their_class_and_state(name, preserve):
    calibrator = hetcal.get_calibrator(name, preserve=preserve)
    assert "Not fitted" in calibrator._repr_html_()
    shown = calibrator.fit(DATA.X, DATA.y, y_proba=DATA.y_proba)._repr_html_()
    assert type(calibrator).__name__ in shown
    assert "Not fitted" not in shown


def test_without_features_from_a_file(tmp_path):
    calibrator = hetcal.get_calibrator("swc").fit(DATA.X, DATA.y, y_proba=DATA.y_proba)
    hetcal.save(calibrator, tmp_path / "x.hetcal", forget_features=True)
    assert "FeaturelessSimilarityCalibrator" in hetcal.load(tmp_path / "x.hetcal")._repr_html_()


def test_the_wrapper_shows_classifier_calibrator_and_features():
    clf = hetcal.LocallyCalibratedClassifier(LogisticRegression(), "swc", features=StandardScaler())
    for shown in (clf._repr_html_(), clf.fit(DATA.X, DATA.y)._repr_html_()):
        for words in (
            "estimator: LogisticRegression",
            "calibrator: SimilarityCalibrator",
            "features: StandardScaler",
        ):
            assert words in shown
    assert "Not fitted" not in shown


def test_a_mistyped_calibrator_can_still_be_shown():
    clf = hetcal.LocallyCalibratedClassifier(LogisticRegression(), "plat")
    assert "plat" in clf._repr_html_()
