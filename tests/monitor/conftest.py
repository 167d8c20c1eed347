"""A law, a calibrator on items of it, and new items, shared by the tests of the monitor."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import hetcal
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.similarity import ForestProximity


def _fitted(calibrator, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about calibration sets this small
        return calibrator.fit(data.X, data.y, y_proba=data.y_proba)


@pytest.fixture(scope="session")
def data():
    """Return 500 calibration items, 400 new ones, and the names of their regions."""
    cal = make_hidden_heterogeneity(500, heterogeneity=1.0, random_state=0)
    new = cal.sample(400, random_state=1)
    names = [np.where(X[:, 0] > 0, "north", "south") for X in (cal.X, new.X)]
    return SimpleNamespace(cal=cal, new=new, by=names[0], new_by=names[1])


@pytest.fixture(scope="session")
def swc(data):
    return _fitted(hetcal.SimilarityCalibrator(ForestProximity(30)), data.cal)


@pytest.fixture(scope="session")
def hybrid(data):
    return _fitted(hetcal.HybridCalibrator(("proximity",), n_estimators=30), data.cal)


@pytest.fixture
def watch(data, swc):
    """Return a function that makes a fitted monitor."""

    def make(calibrator=swc, **options):
        monitor = hetcal.SupportMonitor(calibrator, **options)
        return monitor.fit(data.cal.X, y_proba=data.cal.y_proba, by=data.by)

    return make
