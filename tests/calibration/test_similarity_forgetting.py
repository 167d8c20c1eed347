"""Old calibration items lose weight, and are dropped beyond a window."""

import numpy as np
import pandas as pd
import pytest

import hetcal
from hetcal import SimilarityCalibrator
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.similarity import BaseSimilarity, CombinedSimilarity, ForestProximity, RBFSimilarity

N, M = 90, 40
DAYS = pd.date_range("2024-01-01", periods=M, freq="D")


@pytest.fixture(scope="module")
def data():
    cal = make_hidden_heterogeneity(N, heterogeneity=1.0, random_state=0)
    return cal, cal.sample(M, random_state=1), cal.sample(25, random_state=2)


def fitted(data, similarity="rbf", **options):
    cal = data[0]
    return SimilarityCalibrator(similarity, **options).fit(cal.X, cal.y, y_proba=cal.y_proba)


def extended(calibrator, more, rows=slice(None), **options):
    return calibrator.extend(more.X[rows], more.y[rows], y_proba=more.y_proba[rows], **options)


def said(calibrator, new):
    return calibrator.predict_proba(new.X, y_proba=new.y_proba)


def test_a_half_life_in_rows_is_a_weight_per_item(data):
    _, more, new = data
    age = np.concatenate([np.full(N, M), np.arange(M)[::-1]])
    weight = 0.5 ** (age / 10)
    forgetting = extended(fitted(data), more, half_life=10)
    weighted = fitted(data)
    weighted.voters_ = type(weighted.voters_)(weighted.voters_.codes, 2, weight[:N])
    extended(weighted, more, sample_weight=weight[N:])
    np.testing.assert_allclose(said(forgetting, new), said(weighted, new), rtol=1e-12)
    assert np.abs(said(forgetting, new) - said(extended(fitted(data), more), new)).max() > 0.01


@pytest.mark.parametrize("times", [None, DAYS.to_numpy()])
@pytest.mark.parametrize(
    "options", [{"half_life": 15}, {"window": 30}, {"half_life": 9, "window": 20}]
)
def test_many_small_batches_come_to_the_same_as_a_large_one(data, options, times):
    _, more, new = data
    if times is not None:
        options = {name: f"{days} days" for name, days in options.items()}
    once, often = fitted(data, "forest"), fitted(data, "forest")
    extended(once, more, **options, times=times)
    for rows in (slice(0, 7), slice(7, 29), slice(29, M)):
        part = None if times is None else times[rows]
        extended(often, more, rows, **options, times=part)
    np.testing.assert_array_equal(often.voters_.codes, once.voters_.codes)
    np.testing.assert_allclose(said(often, new), said(once, new), rtol=1e-9)
    np.testing.assert_allclose(often.out_of_sample_proba_, once.out_of_sample_proba_, rtol=1e-9)


SIMILARITIES = [
    "rbf",
    "forest",
    "isolation",
    ForestProximity(20, voters="out-of-bag"),
    CombinedSimilarity(ForestProximity(20), RBFSimilarity()),
]


@pytest.mark.parametrize("similarity", SIMILARITIES, ids=str)
def test_items_beyond_the_window_leave_no_trace(data, similarity):
    """As items of weight zero, which are known to leave none."""
    _, more, new = data
    calibrator, zero = fitted(data, similarity), fitted(data, similarity)
    extended(calibrator, more, window=M + 20)
    zero.voters_ = type(zero.voters_)(zero.voters_.codes, 2, (np.arange(N) >= N - 20) * 1.0)
    extended(zero, more)
    assert len(calibrator.calibration_labels()) == M + 20
    np.testing.assert_allclose(said(calibrator, new), said(zero, new), rtol=1e-9)
    kept = slice(N - 20, None)
    known = calibrator.out_of_sample_proba_, zero.out_of_sample_proba_[kept]
    np.testing.assert_allclose(*known, rtol=1e-9)


def test_time_counts_days_and_not_rows(data):
    _, more, _ = data
    seen = DAYS[[0] * 30 + [30] * 10]
    calibrator = extended(fitted(data), more, times=seen, half_life="10 days")
    weight = calibrator.voters_.weight
    np.testing.assert_allclose(weight[-10:], 1)
    np.testing.assert_allclose(weight[:-10], 0.125)  # those of fit as the first with a time
    extended(calibrator, more, slice(0, 5), times=DAYS[[35] * 5], window="20 days")
    assert len(calibrator.calibration_labels()) == 15


def test_a_clock_that_goes_back_makes_an_item_older(data):
    _, more, _ = data
    calibrator = extended(fitted(data), more, slice(0, 2), times=[0.0, 10.0], half_life=10)
    extended(calibrator, more, slice(2, 3), times=[0.0], half_life=10)
    np.testing.assert_allclose(calibrator.voters_.weight[-3:], [0.5, 1, 0.5])


def test_what_hardly_counts_is_dropped(data):
    calibrator = extended(fitted(data), data[1], half_life=1)
    assert 30 <= len(calibrator.calibration_labels()) <= 31


def test_times_stay_in_the_file(data, tmp_path):
    _, more, new = data
    path = tmp_path / "swc.hetcal"
    options = {"half_life": "10 days"}
    calibrator = extended(fitted(data), more, slice(0, 20), times=DAYS[:20], **options)
    hetcal.save(calibrator, path)
    for one in (calibrator, loaded := hetcal.load(path)):
        extended(one, more, slice(20, M), times=DAYS[20:], **options)
    np.testing.assert_array_equal(said(loaded, new), said(calibrator, new))


def test_what_is_asked_for_wrongly_is_told_and_changes_nothing(data):
    _, more, new = data
    calibrator = fitted(data)
    before = said(calibrator, new)
    wrong = [
        ({"half_life": 0}, r"half-life must be a number of rows above 0 \(.*\); got 0"),
        ({"window": "30 days"}, "a duration needs the times of the rows.*got '30 days'"),
        ({"window": "30 days", "times": range(M)}, "in the unit of the times.*got '30 days'"),
        ({"half_life": 30, "times": DAYS}, "with its unit .*such as '30 days'.*got 30"),
        ({"window": "30", "times": DAYS}, "with its unit .*such as '30 days'.*got '30'"),
        (
            {"half_life": "5 years", "times": DAYS},
            r"unit \(days, hours, .*years and months are not all of one .*got '5 years'",
        ),
        ({"window": "soon", "times": DAYS}, "such as '30 days'.*got 'soon'"),
        ({"times": DAYS[:-1]}, r"one date or finite number per row of X \(40\); got 39"),
        ({"times": [None] * M}, "0 of them known"),
        ({"window": 1}, r"leave 1 calibration item of a single class \([01]\)"),
    ]
    for options, told in wrong:
        with pytest.raises(ValueError, match=told):
            extended(calibrator, more, **options)
    np.testing.assert_array_equal(said(calibrator, new), before)
    extended(calibrator, more, times=DAYS)
    with pytest.raises(ValueError, match="given times= before"):
        extended(calibrator, more)


def test_a_similarity_of_ones_own_is_told_what_it_lacks(data):
    class Own(RBFSimilarity):
        retain = BaseSimilarity.retain

    calibrator = extended(fitted(data, Own()), data[1])
    with pytest.raises(NotImplementedError, match=r"Own cannot forget.*retain\(rows\)"):
        extended(calibrator, data[1], window=50)
