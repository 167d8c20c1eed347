"""Intervals of P(y | x) and of E[y | q] around the hybrid's probabilities."""

import numpy as np
import pytest

import hetcal
from hetcal import HybridCalibrator
from hetcal._exceptions import SupportWarning
from hetcal.calibration.hybrid.interval import (
    probability_interval,
    share_of_vote,
    undiscovered,
    venn_abers_pair,
)
from hetcal.datasets import make_hidden_heterogeneity, make_problem
from hetcal.kernels import forest

pytestmark = pytest.mark.filterwarnings("ignore:The calibration set has become a training set")
QUICK = ["proximity", "forests", "kernel"]


def fitted(data, experts=QUICK):
    hybrid = HybridCalibrator(experts, n_estimators=40)
    return hybrid.fit(data.X, data.y, y_proba=data.y_proba)


def mean_width(hybrid, new):
    low, high = hybrid.predict_interval(new.X, y_proba=new.y_proba)
    return np.mean(high - low)


@pytest.fixture(scope="module")
def local():
    """A hybrid that is mostly local, and new items."""
    data = make_hidden_heterogeneity(300, heterogeneity=0.8, random_state=0)
    return fitted(data), data.sample(400, random_state=1)


def test_intervals_hold_the_prediction_and_widen_with_the_level(local):
    hybrid, new = local
    Q = hybrid.predict_proba(new.X, y_proba=new.y_proba)
    wide = np.zeros(Q.shape)
    for level in (0.5, 0.9, 0.99):
        low, high = hybrid.predict_interval(new.X, y_proba=new.y_proba, level=level)
        assert low.shape == high.shape == Q.shape
        assert ((low >= 0) & (low <= Q) & (high >= Q) & (high <= 1)).all()
        assert ((high - low) > wide).all()
        wide = high - low


def test_ends_of_two_classes_are_mirrored(local):
    hybrid, new = local
    low, high = hybrid.predict_interval(new.X, y_proba=new.y_proba)
    np.testing.assert_allclose(low[:, 0], 1 - high[:, 1], atol=1e-12)


def test_most_intervals_hold_the_truth(local):
    """Wilson's interval around the smoothed probability holds it for half of the items."""
    hybrid, new = local
    low, high = hybrid.predict_interval(new.X, y_proba=new.y_proba)
    inside = (low <= new.true_proba) & (new.true_proba <= high)
    assert inside.mean() > 0.8
    assert np.mean(high - low) < 0.6


@pytest.mark.parametrize("name", ["linear", "rare-events"])
def test_weak_effects_that_nobody_finds_are_covered(name):
    problem = make_problem(name, 900, random_state=3)
    X, P = problem.X, problem.y_proba
    hybrid = HybridCalibrator("proximity", n_estimators=40)
    hybrid.fit(X[:500], problem.y[:500], y_proba=P[:500])
    low, high = hybrid.predict_interval(X[500:], y_proba=P[500:])
    truth = problem.true_proba[500:]
    assert np.mean((low <= truth) & (truth <= high)) > 0.8


def test_effects_of_rare_words_are_covered():
    """A forest finds hundreds of rows alike among 200 sparse columns; that proves nothing."""
    problem = make_problem("any-of-eight-words", 900, random_state=3)
    X, P = problem.X.toarray(), problem.y_proba
    hybrid = HybridCalibrator("proximity", n_estimators=40)
    hybrid.fit(X[:500], problem.y[:500], y_proba=P[:500])
    low, high = hybrid.predict_interval(X[500:], y_proba=P[500:])
    truth = problem.true_proba[500:]
    assert np.mean((low <= truth) & (truth <= high)) > 0.8


def test_more_items_make_intervals_narrower():
    few = make_hidden_heterogeneity(60, heterogeneity=0.0, random_state=0)
    many, new = few.sample(600, random_state=1), few.sample(50, random_state=2)
    widths = [mean_width(fitted(data, "proximity"), new) for data in (few, many)]
    assert widths[1] < 0.9 * widths[0]


def test_few_trees_vote_in_an_interval(monkeypatch):
    """So that intervals cost at most twenty predictions, also where these ask no forest."""
    data = make_hidden_heterogeneity(150, heterogeneity=0.0, random_state=0)
    hybrid = HybridCalibrator("proximity", n_estimators=60, caution=100.0)
    hybrid.fit(data.X, data.y, y_proba=data.y_proba)
    assert hybrid.share_ == 0
    asked, queries = [], forest.queries_from_leaves
    monkeypatch.setattr(
        forest, "queries_from_leaves", lambda leaves: asked.append(leaves) or queries(leaves)
    )
    assert mean_width(hybrid, data.sample(20, random_state=1)) > 0
    assert [leaves.shape for leaves in asked] == [(20, 40)]


def test_repeated_rows_are_no_more_evidence():
    """Copies of every row in groups: as wide as with the rows once."""
    data = make_hidden_heterogeneity(80, heterogeneity=0.0, random_state=0)
    new, rows = data.sample(50, random_state=1), np.repeat(np.arange(80), 10)
    often = HybridCalibrator("proximity", n_estimators=40)
    often.fit(data.X[rows], data.y[rows], y_proba=data.y_proba[rows], groups=rows)
    assert often.n_independent_ == 80
    once = fitted(data, "proximity")
    assert 0.8 < mean_width(often, new) / mean_width(once, new) < 1.25


def test_unequal_weights_are_fewer_items():
    """Kish's number: by rows, by groups, and as many as there are where weights are equal."""
    data = make_hidden_heterogeneity(80, heterogeneity=0.0, random_state=0)
    groups, weight = np.repeat(np.arange(40), 2), np.where(np.arange(80) < 4, 50.0, 1.0)
    found = {}
    for name, given in {
        "equal": {"sample_weight": np.full(80, 7.0)},
        "rows": {"sample_weight": weight},
        "groups": {"sample_weight": weight, "groups": groups},
    }.items():
        hybrid = HybridCalibrator("proximity", n_estimators=10)
        found[name] = hybrid.fit(data.X, data.y, y_proba=data.y_proba, **given).n_independent_
    by_rows, by_groups = 276**2 / (4 * 50**2 + 76), 276**2 / (2 * 100**2 + 38 * 2**2)
    assert found == {"equal": 80, "rows": round(by_rows), "groups": round(by_groups)}


def interval(q, relative, p=None, vote=np.nan, disagreement=0.0, n=500):
    """Return the interval at 90 % of one class of one item."""
    Q, P, said, apart = np.array([[[q]], [[q if p is None else p]], [[vote]], [[disagreement]]])
    low, high = probability_interval(Q, P, said, np.array([relative]), apart, n, 0.9)
    return low[0, 0], high[0, 0]


def test_variances_of_the_hidden_of_votes_of_experts_and_of_the_repair_add():
    relative = 0.01 + share_of_vote(np.array([20.0]))[0]
    assert relative == pytest.approx(0.01 + 0.05 / 20)
    center = (0.3 + relative / 2) / (1 + relative)
    variance = center * (1 - center) * relative + 0.75 * 0.01 + 0.2 * 0.1**2
    half = 1.6448536269514722 * np.sqrt(variance)
    found = interval(0.3, relative, p=0.4, disagreement=0.01)
    np.testing.assert_allclose(found, [0.3 - half, 0.3 + half])


def test_the_interval_reaches_further_towards_a_vote_that_was_not_followed():
    low, high = interval(0.3, 0.02)
    further = 1.6448536269514722 * 0.12 * 0.4
    np.testing.assert_allclose(interval(0.3, 0.02, vote=0.7), [low, high + further])
    np.testing.assert_allclose(interval(0.3, 0.02, vote=0.1), [low - further / 2, high])
    many = interval(0.3, 0.02, vote=0.7, n=2000)
    np.testing.assert_allclose(many, [low, high + further / 4])


def test_a_change_of_p_by_many_items_is_believed():
    widths = [np.diff(interval(0.3, 0.02, p=0.5, n=n)) for n in (50, 100, 1000, 10**9)]
    assert widths[0] == widths[1] > 1.5 * widths[2] > 1.5 * widths[3]
    assert widths[3] == pytest.approx(np.diff(interval(0.3, 0.02)), rel=1e-6)


def test_less_is_hidden_of_more_items_and_classes_and_behind_local_experts():
    assert undiscovered(2, 500, 0.0) == undiscovered(2, 5000, 0.0) == pytest.approx(0.02)
    assert undiscovered(2, 100, 0.0) == pytest.approx(0.1)
    assert undiscovered(5, 500, 0.0) == pytest.approx(0.005)
    assert undiscovered(2, 2000, 1.0) == pytest.approx(0.02 / 4)


def test_also_a_prediction_of_zero_may_be_wrong():
    low, high = interval(0.0, 0.02)
    assert low == 0
    assert 0.01 < high < 0.1
    np.testing.assert_allclose(interval(1.0, 0.02), [1 - high, 1])


def test_without_votes_everything_is_possible():
    (relative,) = share_of_vote(np.zeros(1))
    assert interval(0.3, relative) == (0, 1)


@pytest.mark.parametrize("level", [0, 1, 90, "high", None])
def test_a_level_is_a_share(local, level):
    hybrid, new = local
    with pytest.raises(ValueError, match="level must be the share of items to be covered"):
        hybrid.predict_interval(new.X, y_proba=new.y_proba, level=level)


def test_frequencies_of_items_predicted_alike_are_venn_abers():
    known = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9]])
    codes, new = np.array([0, 0, 1, 0, 1]), np.array([[0.1, 0.9], [0.95, 0.05]])
    low, high = venn_abers_pair(known, codes, np.ones(5), new)
    calibrator = hetcal.VennAbersCalibration().fit(None, codes, y_proba=known)
    expected = calibrator.predict_venn_abers_pair(y_proba=new)
    np.testing.assert_allclose([low[:, 1], high[:, 1]], expected)
    np.testing.assert_allclose(low[:, 0], 1 - high[:, 1])


def test_frequency_intervals_come_true(local):
    hybrid, new = local
    low, high = hybrid.predict_venn_abers_pair(new.X, y_proba=new.y_proba)
    assert (low <= high).all()
    assert low[:, 1].mean() - 0.05 < new.y.mean() < high[:, 1].mean() + 0.05


def test_a_group_counts_as_one_item_in_the_pair():
    data = make_hidden_heterogeneity(150, heterogeneity=0.3, random_state=0)
    new = data.sample(40, random_state=1)
    widths = []
    for rows in (np.arange(150), np.repeat(np.arange(150), 3)):
        hybrid = HybridCalibrator(["proximity"], n_estimators=20)
        hybrid.fit(data.X[rows], data.y[rows], y_proba=data.y_proba[rows], groups=rows)
        low, high = hybrid.predict_venn_abers_pair(new.X, y_proba=new.y_proba)
        widths.append((high - low).mean())
    assert widths[1] == pytest.approx(widths[0], rel=0.35)


@pytest.mark.parametrize("n_groups", [2, 5])
def test_intervals_from_few_groups_say_that_they_say_nothing(n_groups):
    data = make_hidden_heterogeneity(200, random_state=0)
    hybrid = HybridCalibrator(n_estimators=20).fit(
        data.X, data.y, y_proba=data.y_proba, groups=np.arange(200) % n_groups
    )
    with pytest.warns(SupportWarning, match=f"worth {n_groups} independent groups.*more groups"):
        hybrid.predict_interval(data.X[:3], y_proba=data.y_proba[:3])


@pytest.mark.filterwarnings("error::hetcal._exceptions.SupportWarning")
def test_intervals_from_ten_groups_are_not_warned_of():
    data = make_hidden_heterogeneity(200, random_state=0)
    hybrid = HybridCalibrator(n_estimators=20).fit(
        data.X, data.y, y_proba=data.y_proba, groups=np.arange(200) % 10
    )
    hybrid.predict_interval(data.X[:3], y_proba=data.y_proba[:3])
