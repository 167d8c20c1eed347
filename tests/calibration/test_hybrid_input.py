"""What the hybrid refuses, instead of taking it in silence."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from hetcal import HybridCalibrator
from hetcal._exceptions import UnknownCategoryWarning
from hetcal.datasets import make_hidden_heterogeneity


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(60, random_state=0)


@pytest.mark.parametrize("caution", [-1, -0.001, float("nan"), "much", None])
def test_caution_is_a_number_of_standard_errors(data, caution):
    with pytest.raises(ValueError, match="caution must be a number of standard errors"):
        HybridCalibrator("kernel", caution=caution).fit(data.X, data.y, y_proba=data.y_proba)


def test_caution_may_be_zero_or_without_end(data):
    for caution in (0, float("inf")):
        hybrid = HybridCalibrator("kernel", caution=caution, n_estimators=5)
        assert hybrid.fit(data.X, data.y, y_proba=data.y_proba).share_ >= 0


def test_an_expert_is_named_once(data):
    for experts in (["kernel", "kernel"], ["swc", "kernel", "swc"]):
        with pytest.raises(ValueError, match="twice. Name every expert once"):
            HybridCalibrator(experts).fit(data.X, data.y, y_proba=data.y_proba)


def test_a_frozen_model_cannot_be_cross_fitted(data):
    frozen = FrozenEstimator(LogisticRegression().fit(data.X, data.y))
    for experts in (frozen, ["kernel", frozen]):
        with pytest.raises(ValueError, match="is frozen"):
            HybridCalibrator(experts).fit(data.X, data.y, y_proba=data.y_proba)


def test_an_unknown_level_points_at_the_line_of_the_caller(data):
    table = pd.DataFrame({"a": data.X[:, 0], "b": np.where(data.X[:, 1] > 0, "u", "v")})
    hybrid = HybridCalibrator("kernel", n_estimators=5).fit(table, data.y, y_proba=data.y_proba)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hybrid.predict_proba(table.assign(b="w"), y_proba=data.y_proba)
    (warning,) = [w for w in caught if w.category is UnknownCategoryWarning]
    assert warning.filename == __file__
