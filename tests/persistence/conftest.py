"""Small fitted calibrators of every kind, shared by the tests of saving and loading."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import hetcal
from hetcal.calibration import get_calibrator, list_calibrators
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.similarity import (
    CombinedSimilarity,
    EuclideanSimilarity,
    ForestProximity,
    IsolationProximity,
    RBFSimilarity,
)

_DATA = make_hidden_heterogeneity(120, heterogeneity=1.0, random_state=0)
_NEW = _DATA.sample(13, random_state=1)
_HIDDEN = {"radius": 0.3, "n_estimators": 5}


def _kinds() -> dict:
    similar = hetcal.SimilarityCalibrator
    hidden = hetcal.HiddenHeterogeneity
    made = {
        name: get_calibrator(name)
        for name in list_calibrators()
        if name not in ("swc", "swc-hh", "hybrid")
    }
    return made | {
        "platt-paper": get_calibrator("platt", preset="paper"),
        "histogram-paper": get_calibrator("histogram", preset="paper"),
        "sba-paper": get_calibrator("sba", preset="paper"),
        "swc": similar(ForestProximity(12)),
        "swc-by-name": similar("forest", random_state=3),
        "swc-out-of-bag": similar(ForestProximity(12, voters="out-of-bag")),
        "swc-nearest": similar(ForestProximity(12, trees="extra"), n_neighbors=9, power=3.0),
        "swc-uniform": similar(ForestProximity(12), n_neighbors=5, weights="uniform"),
        "isolation": similar(IsolationProximity(12)),
        "euclidean": similar(EuclideanSimilarity(), n_neighbors=7),
        "cosine": similar("cosine"),
        "rbf": similar(RBFSimilarity(bandwidth=0.7), augment="proba"),
        "combined": similar(CombinedSimilarity(ForestProximity(8), RBFSimilarity())),
        "swc-hh": similar(ForestProximity(8), heterogeneity=hidden(n_null=3, **_HIDDEN)),
        "swc-hh-item": similar(
            ForestProximity(8), heterogeneity=hidden(neighborhoods="item", n_null=3, **_HIDDEN)
        ),
        "swc-hh-paper": similar(
            ForestProximity(8), heterogeneity=hidden(estimate="paper", **_HIDDEN)
        ),
        "hybrid": hetcal.HybridCalibrator(n_estimators=8),
        "hybrid-all": hetcal.HybridCalibrator(n_estimators=5),
        "hybrid-of-calibrators": hetcal.HybridCalibrator(
            ["isotonic", similar(ForestProximity(6)), "proximity"], n_estimators=6
        ),
        "preserving": hetcal.LabelPreserving(similar(ForestProximity(8))),
    }


KINDS = sorted(_kinds())


def fitted(calibrator, X=_DATA.X, y=_DATA.y, y_proba=_DATA.y_proba, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about calibration sets this small
        return calibrator.fit(X, y, y_proba=y_proba, **options)


class FittedWhenAsked(dict):
    """Calibrators by kind; a kind that no test asks for is never fitted."""

    def __missing__(self, name: str):
        self[name] = calibrator = fitted(_kinds()[name])
        if name == "hybrid-all":  # every expert has a say, and so its place in the file
            calibrator.share_ = 1.0
            calibrator.weights_[:] = 1 / len(calibrator.weights_)
        return calibrator


@pytest.fixture(scope="session")
def calibrators() -> dict:
    """Return all kinds, fitted on the same items. Not to be changed."""
    return FittedWhenAsked()


@pytest.fixture(scope="session")
def data() -> SimpleNamespace:
    """Return the calibration items, new items, and the same as tables with a category."""
    table = pd.DataFrame(_DATA.X[:, :3], columns=["age", "income", "years"])
    table["colour"] = pd.Categorical(np.where(_DATA.X[:, 3] > 0, "red", "blue"))
    new = pd.DataFrame(_NEW.X[:, :3], columns=["age", "income", "years"])
    new["colour"] = pd.Categorical(np.where(_NEW.X[:, 3] > 0, "red", "blue"))
    return SimpleNamespace(
        X=_DATA.X,
        y=_DATA.y,
        P=_DATA.y_proba,
        X_new=_NEW.X,
        P_new=_NEW.y_proba,
        y_new=_NEW.y,
        table=table,
        table_new=new,
        fitted=fitted,
        kinds=KINDS,
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kind" in metafunc.fixturenames:
        metafunc.parametrize("kind", KINDS)
