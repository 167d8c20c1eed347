"""What the hybrid refuses, instead of taking it in silence."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import hetcal
from hetcal import HybridCalibrator, SimilarityCalibrator, get_calibrator
from hetcal._exceptions import UnknownCategoryWarning
from hetcal.data import Scores
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


@pytest.mark.parametrize("preserve", [None, "label"])
def test_an_expert_may_compare_by_columns_of_the_table(preserve, tmp_path):
    """Also behind a category, whose levels move the columns of the encoded table."""
    data = make_hidden_heterogeneity(120, heterogeneity=0.9, random_state=0)
    levels = np.random.default_rng(0).choice(["n", "e", "s", "w"], 120)
    table = pd.DataFrame({"city": levels, "a": data.X[:, 0], "b": data.X[:, 1]})
    expected = get_calibrator("sbaw", preserve=preserve, features=["a", "city"])
    expected.fit(table, data.y, y_proba=data.y_proba)
    for columns in (["a", "city"], [1, 0]):
        expert = get_calibrator("sbaw", preserve=preserve, features=columns)
        hybrid = HybridCalibrator([expert], n_estimators=10)
        hybrid.fit(table, data.y, y_proba=data.y_proba)
        asked = hybrid.families_[-1].predict(
            hybrid.encoder_.transform(table), Scores.from_proba(data.y_proba, 1e-9)
        )
        said = expected.predict_proba(table, y_proba=data.y_proba)
        np.testing.assert_allclose(asked[0], said, atol=1e-12)
        assert columns in expert.get_params().values()  # what was passed stays
    hetcal.save(hybrid, tmp_path / "m.hetcal")
    np.testing.assert_array_equal(
        hetcal.load(tmp_path / "m.hetcal").predict_proba(table, y_proba=data.y_proba),
        hybrid.predict_proba(table, y_proba=data.y_proba),
    )


def test_an_expert_by_columns_that_are_not_there_says_so():
    data = make_hidden_heterogeneity(60, random_state=0)
    table = pd.DataFrame(data.X[:, :2], columns=["age", "income"])
    with pytest.raises(ValueError, match="does not have: \\['ages'\\].*Did you mean 'age'"):
        HybridCalibrator([SimilarityCalibrator(features=["ages"])]).fit(
            table, data.y, y_proba=data.y_proba
        )


def test_two_items_are_too_few():
    for n, weight in ((2, None), (5, [1.0, 1.0, 0.0, 0.0, 0.0])):
        X, y, p = np.eye(5)[:n], (np.arange(5) % 2)[:n], np.linspace(0.2, 0.7, 5)[:n]
        with pytest.raises(ValueError, match="2 items are too few.*Collect more"):
            HybridCalibrator(n_estimators=2).fit(X, y, y_proba=p, sample_weight=weight)
    HybridCalibrator(n_estimators=2).fit(np.eye(3), [0, 1, 0], y_proba=[0.2, 0.6, 0.4])


def test_features_of_any_size_are_compared(data):
    X, new = data.X.copy(), data.X.copy()
    X[0, 0], X[1, 0], new[2, 0] = 1.7e308, -1.7e308, -1e300
    hybrid = HybridCalibrator(["neighbours", "kernel"], n_estimators=5)
    for fitted_to, asked in ((X, X), (data.X, new)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            Q = hybrid.fit(fitted_to, data.y, y_proba=data.y_proba).predict_proba(
                asked, y_proba=data.y_proba
            )
        assert np.allclose(Q.sum(axis=1), 1)


def test_one_item_beside_a_single_group_is_told():
    X, P = np.random.default_rng(0).normal(size=(30, 2)), np.full((30, 2), 0.5)
    with pytest.raises(ValueError, match=r"one group holds all items but one.*of other groups"):
        HybridCalibrator(n_estimators=3).fit(
            X, np.arange(30) % 2, y_proba=P, groups=np.arange(30) == 7
        )
