"""What weights mean: values count them, evidence is that of the rows."""

import warnings

import numpy as np
import pandas as pd
import pytest

from hetcal import HybridCalibrator, WeightWarning, advise, compare, get_calibrator
from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.heterogeneity import find_subgroups
from hetcal.metrics import brier_score, evaluate
from hetcal.monitor import SupportMonitor

SCALES = [2.0**-10, 1e6]


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(200, heterogeneity=0.9, random_state=0)


@pytest.fixture(scope="module")
def weight():
    return np.random.default_rng(0).integers(1, 4, 200).astype(float)


@pytest.fixture(scope="module")
def plain(data, weight):
    return hybrid(data, weight)


def hybrid(data, weight):
    experts = ("proximity", "kernel", "neighbours")
    return HybridCalibrator(experts, n_estimators=20).fit(
        data.X, data.y, y_proba=data.y_proba, sample_weight=weight
    )


@pytest.mark.parametrize("scale", SCALES)
def test_the_scale_of_weights_changes_nothing_in_the_hybrid(data, weight, plain, scale):
    scaled = hybrid(data, scale * weight)
    for name in ("out_of_sample_proba_", "weights_", "share_", "trust_", "experts_"):
        np.testing.assert_allclose(
            np.asarray(getattr(scaled, name), float), np.asarray(getattr(plain, name), float), 1e-6
        )
    # The kernel machine used to see its own label: a Brier score of 0.
    stated = brier_score(data.y, scaled.out_of_sample_proba_, sample_weight=weight)
    new = data.sample(2000, random_state=1)
    shown = brier_score(new.y, scaled.predict_proba(new.X, y_proba=new.y_proba))
    assert stated == pytest.approx(shown, abs=0.08)


@pytest.mark.parametrize("scale", SCALES)
def test_the_scale_of_weights_changes_no_votes_and_no_support(data, weight, scale):
    votes = [
        get_calibrator("swc", random_state=0).fit(
            data.X, data.y, y_proba=data.y_proba, sample_weight=w
        )
        for w in (weight, scale * weight)
    ]
    said = [swc.predict_proba(data.X, y_proba=data.y_proba) for swc in votes]
    np.testing.assert_allclose(said[1], said[0], 1e-9)
    flagged = [SupportMonitor(swc).fit().p_values(data.X, y_proba=data.y_proba) for swc in votes]
    np.testing.assert_allclose(flagged[1], flagged[0], 1e-9)


@pytest.mark.parametrize("scale", SCALES)
def test_the_scale_of_weights_changes_no_score_and_no_interval(data, weight, scale):
    tables = [
        evaluate(data.y, {"p": data.y_proba}, sample_weight=w) for w in (weight, scale * weight)
    ]
    numbers = [table[["value", "low", "high"]].astype(float) for table in tables]
    np.testing.assert_allclose(numbers[1], numbers[0], 1e-9)


@pytest.mark.parametrize("scale", SCALES)
def test_the_scale_of_weights_changes_no_subgroups(scale):
    data = make_hidden_heterogeneity(1500, heterogeneity=0.9, random_state=0)
    weight = np.random.default_rng(0).random(1500) + 0.5
    plain, scaled = (
        find_subgroups(data.X, data.y, y_proba=data.y_proba, sample_weight=w)
        for w in (weight, scale * weight)
    )
    assert len(plain) > 0
    pd.testing.assert_frame_equal(scaled, plain, rtol=1e-6)


def test_weights_whose_sums_are_no_numbers_are_refused(data):
    huge = {"y_proba": data.y_proba, "sample_weight": np.full(200, 1e200)}
    with pytest.raises(ValueError, match="1e\\+200.*Divide all weights by their mean"):
        get_calibrator("isotonic").fit(data.X, data.y, **huge)


@pytest.mark.parametrize("method", ["isotonic", "global"])
def test_maps_ask_about_weights_that_can_hardly_be_counts(data, weight, method):
    given = {"y_proba": data.y_proba, "sample_weight": 1e4 * weight}
    with pytest.warns(WeightWarning, match=r"sample_weight / sample_weight\.mean\(\)"):
        get_calibrator(method).fit(data.X, data.y, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        get_calibrator(method).fit(
            data.X, data.y, **(given | {"sample_weight": 1e4 * weight / (1e4 * weight).mean()})
        )


def test_comparisons_ask_once_and_the_hybrid_does_not(data, weight):
    given = {"y_proba": data.y_proba, "sample_weight": 1e4 * weight}
    with pytest.warns(WeightWarning) as caught:
        compare(data.X, data.y, methods=["temperature", "isotonic"], baselines=(), **given)
    assert len([w for w in caught if w.category is WeightWarning]) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeightWarning)
        hybrid(data, 1e4 * weight)


def test_advice_asks_about_weights_that_can_hardly_be_counts(data, weight, with_small_hybrids):
    with pytest.warns(WeightWarning):
        advise(data.X, data.y, y_proba=data.y_proba, sample_weight=1e4 * weight)


def test_weights_that_leave_one_row_are_warned_of():
    data = make_hidden_heterogeneity(100, random_state=0)
    weight = np.r_[1e6, np.ones(99)]
    with pytest.warns(WeightWarning, match=r"100 rows are worth 1\.0 equal ones"):
        CalibrationSet.check(
            data.X, data.y, y_proba=data.y_proba, sample_weight=weight, caller="test"
        )


@pytest.mark.filterwarnings("error::hetcal.WeightWarning")
def test_weights_that_leave_a_handful_of_rows_are_not_warned_of():
    data = make_hidden_heterogeneity(100, random_state=0)
    weight = np.r_[np.full(6, 1e6), np.ones(94)]
    CalibrationSet.check(data.X, data.y, y_proba=data.y_proba, sample_weight=weight, caller="test")
    CalibrationSet.check(
        None, [0, 1] * 3, y_proba=[0.5] * 6, sample_weight=[3, *[1] * 5], caller=""
    )
