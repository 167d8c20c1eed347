"""P-values, martingales, windows and label sums, each against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import IsolationForest

from hetcal.monitor import martingale, window
from hetcal.monitor.bins import N_BINS, log_bins
from hetcal.monitor.conformal import discoveries, p_values, pair_scores, running_p_values
from hetcal.monitor.distance import IsolationScore, NearestScore
from hetcal.monitor.labels import LabelSums
from hetcal.monitor.martingale import BETTING_FUNCTIONS, Martingale
from hetcal.monitor.window import FisherWindow


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=20),
    st.lists(st.integers(0, 6), min_size=1, max_size=20),
    st.integers(0, 99),
)
def test_running_p_values_are_those_of_a_loop(reference, new, seed):
    uniform = np.random.default_rng(seed).random(len(new))
    counts = np.bincount(reference, minlength=N_BINS).astype(np.int64)
    p = running_p_values(counts, np.array(new), uniform)
    before = list(reference)
    for value, u, found in zip(new, uniform, p, strict=True):
        less, tied = sum(b < value for b in before), sum(b == value for b in before)
        assert found == pytest.approx((less + u * (tied + 1)) / (len(before) + 1))
        before.append(value)
    np.testing.assert_array_equal(counts, np.bincount(before, minlength=N_BINS))
    again = p_values(np.sort(np.array(reference, float)), np.array(new[:1], float), uniform[:1])
    assert again[0] == pytest.approx(p[0])


def test_running_p_values_do_not_depend_on_the_batches():
    rng = np.random.default_rng(0)
    bins, uniform = rng.integers(0, 50, 700), rng.random(700)
    whole, parts = np.zeros(N_BINS, np.int64), np.zeros(N_BINS, np.int64)
    at_once = running_p_values(whole, bins, uniform)
    cuts = [slice(0, 1), slice(1, 300), slice(300, 700)]
    pieces = [running_p_values(parts, bins[cut], uniform[cut]) for cut in cuts]
    np.testing.assert_allclose(at_once, np.concatenate(pieces))


def test_p_values_are_uniform_when_nothing_changes_also_with_ties():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        reference = np.sort(rng.poisson(2.0, 60).astype(float))
        found.append(p_values(reference, rng.poisson(2.0, 20).astype(float), rng.random(20)))
    p = np.concatenate(found)
    for level in (0.05, 0.3, 0.8):
        assert (p <= level).mean() == pytest.approx(level, abs=0.03)


def test_pairs_split_the_level_and_stay_uniform():
    rng = np.random.default_rng(1)
    share = []
    for _ in range(200):
        scores = rng.normal(size=(2, 150))
        scores[1] += scores[0]
        old, new = scores[:, :100], scores[:, 100:]
        ordered = [np.sort(row) for row in old]
        pairs = np.sort(pair_scores(ordered, list(old), inside=True))
        fresh = pair_scores(ordered, list(new), inside=False)
        share.append((p_values(pairs, fresh, rng.random(50)) <= 0.1).mean())
    assert np.mean(share) == pytest.approx(0.1, abs=0.015)


def test_bins_keep_the_order():
    values = np.array([0.0, 1e-7, 0.01, 1.0, 1.02, 900.0, 1e12])
    assert (np.diff(log_bins(values)) >= 0).all()
    assert log_bins(values)[3] < log_bins(values)[4]


def test_discoveries_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(40), rng.random(10) / 500])
    largest = max((k for k in range(1, 51) if (np.sort(p) <= 0.1 * k / 50)[k - 1]), default=0)
    assert discoveries(p, 0.1).sum() == largest
    assert not discoveries(np.ones(5), 0.1).any()
    assert discoveries([], 0.1).shape == (0,)


def bet(p):
    """Bet one item at a time, in plain numbers."""
    capital = np.exp(Martingale.start(1).capital[0])
    totals = []
    for n, x in enumerate(p):
        paid = capital[0] * 0.5 / (n + 1 + 50)
        capital[0] -= paid
        capital[1:] += paid / len(BETTING_FUNCTIONS)
        for j, (kind, w, a) in enumerate(BETTING_FUNCTIONS, start=1):
            density = a * x ** (a - 1) if kind == "power" else a * (1 - x) ** (a - 1)
            capital[j] *= 1 - w + w * density
        totals.append(capital.sum())
    return np.array(totals)


def test_the_martingale_is_that_of_a_loop_whatever_the_batches():
    p = np.random.default_rng(0).beta(0.8, 1.0, (2, 300))
    after, logs = Martingale.start(2).after(p)
    np.testing.assert_allclose(np.exp(logs), [bet(p[0]), bet(p[1])])
    assert np.exp(after.log_value) == pytest.approx(np.exp(logs[:, -1]).mean())
    half, first = Martingale.start(2).after(p[:, :120])
    rest, last = half.after(p[:, 120:])
    np.testing.assert_allclose(np.hstack([first, last]), logs)
    np.testing.assert_allclose(rest.capital, after.capital)
    assert rest.n_items == after.n_items == 300


def test_every_betting_function_is_fair():
    # Evenly spaced in p^(1/4), where the pole at 0 is none: dp = 4 u^3 du.
    u = (np.arange(200_000) + 0.5) / 200_000
    paid = (martingale.betting_values(u**4) * (4 * u**3)[:, None]).mean(axis=0)
    np.testing.assert_allclose(paid, 1.0, atol=1e-3)


def test_false_alarms_of_both_tests_stay_below_their_rates():
    rng = np.random.default_rng(0)
    limit = window.bound(50, 1000, 0.1)
    by_martingale = by_window = 0
    for _ in range(500):
        p = rng.random((1, 1000))
        by_martingale += Martingale.start(1).after(p)[1].max() >= np.log(10)
        by_window += FisherWindow.start(1).after(p, 50)[1].max() >= limit
    assert by_martingale <= 50 + 2 * 7
    assert 0.04 * 500 <= by_window <= 0.15 * 500


def test_the_window_is_the_sum_over_the_last_items():
    p = np.random.default_rng(0).random((1, 40))
    after, sums = FisherWindow.start(1).after(p, 7)
    logs = -np.log(p[0])
    for j in range(40):
        assert sums[0, j] == pytest.approx(logs[j - 6 : j + 1].sum() if j >= 6 else 0.0)
    np.testing.assert_allclose(after.tails[0], logs[-7:])
    start, first = FisherWindow.start(1).after(p[:, :11], 7)
    _, last = start.after(p[:, 11:], 7)
    np.testing.assert_allclose(np.hstack([first, last]), sums)
    one, two = FisherWindow([np.array([1.0, 2, 3])]), FisherWindow([np.array([9.0])])
    assert one.merged(two, 3).tails[0].tolist() == [2, 3, 9]


def test_isolation_is_scikit_learns():
    rng = np.random.default_rng(0)
    F, new = rng.normal(size=(300, 3)), rng.normal(size=(50, 3)) * 2
    score = IsolationScore().fit(F, 0)
    theirs = IsolationForest(n_estimators=100, max_samples=150, random_state=0).fit(F)
    mine = score.score(new, None, rng)
    np.testing.assert_allclose(1 - mine, -theirs.score_samples(new), rtol=1e-6)
    scores, n_trees = score.out_of_sample(F)
    assert ((n_trees > 0) & (n_trees < 100)).all()
    assert scores.shape == (300,)


def test_nearest_is_that_of_a_loop():
    rng = np.random.default_rng(0)
    F = np.column_stack([rng.normal(size=80), np.full(80, 3.0)])
    score = NearestScore().fit(F, 0)
    assert np.isnan(score.out_of_sample(F)[0]).sum() == 20
    new = np.array([[0.0, 3.0], [100.0, 3.0], [0.0, 3.5]])
    old = F[score.chosen]
    scale = old[:, 0].std()
    z = np.clip((np.array([0.0, 100.0]) - old[:, 0].mean()) / scale, -10, 10)
    others = (old[:, 0] - old[:, 0].mean()) / scale
    found = -score.score(new, None, rng)
    np.testing.assert_allclose(found[:2], [np.abs(others - v).min() for v in z], atol=1e-6)
    assert found[2] >= 10  # a column that never varied


def test_label_sums_expect_what_the_probabilities_say():
    rng = np.random.default_rng(0)
    z = []
    for _ in range(300):
        Q = rng.dirichlet([1, 1, 1], 60)
        codes = (rng.random((60, 1)) > Q.cumsum(axis=1)).sum(axis=1)
        sums = LabelSums.over(Q[:20], codes[:20]) + LabelSums.over(Q[20:], codes[20:])
        z.append(sums.excess_over(LabelSums.empty(3))[1])
    assert np.abs(np.mean(z, axis=0)).max() < 0.25
    assert np.abs(np.std(z, axis=0) - 1).max() < 0.15
    assert np.isnan(LabelSums.empty(3).excess_over(sums)[1]).all()


def test_an_excess_is_as_far_from_the_usual_as_the_usual_from_it():
    """Both sets of labels are drawn, so both add to the deviation."""
    rng = np.random.default_rng(0)
    few, many = (
        LabelSums.over(rng.dirichlet([1, 1, 1], n), rng.integers(0, 3, n)) for n in (20, 300)
    )
    np.testing.assert_allclose(few.excess_over(many)[1], -many.excess_over(few)[1])
    alone = few.excess_over(LabelSums(300, many.excess, np.zeros(5), np.zeros(5)))[1]
    assert (np.abs(few.excess_over(many)[1]) < np.abs(alone)).all()


def test_tied_p_values_take_their_part_of_the_tie():
    """With all values equal a p-value is uniform: it is the draw itself."""
    uniform = np.array([0.0, 0.25, 0.5, 0.999])
    np.testing.assert_allclose(p_values(np.zeros(7), np.zeros(4), uniform), uniform)
    np.testing.assert_allclose(p_values(np.array([0.0, 1.0, 1.0]), np.ones(1), [0.5]), [2.5 / 4])
