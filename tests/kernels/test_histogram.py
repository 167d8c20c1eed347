"""Step maps: equal-mass histograms and the isotonic map, against naive loops."""

import bisect
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetcal.kernels.histogram import apply_histogram, fit_histogram, fit_run_histogram
from hetcal.kernels.isotonic_map import apply_isotonic_map, fit_isotonic_map

grid_scores = st.lists(
    st.tuples(st.integers(0, 8), st.booleans(), st.integers(1, 3)), min_size=1, max_size=40
)


def unpack(items):
    score = np.array([item[0] / 8 for item in items])
    target = np.array([float(item[1]) for item in items])
    return score, target, np.array([float(item[2]) for item in items])


def runs_by_loop(score, target, n_bins):
    """The published rule, item by item."""
    length = math.ceil(len(score) / n_bins)
    runs = [np.sort(score)[i : i + length] for i in range(0, len(score), length)]
    edges = {(left[-1] + right[0]) / 2 for left, right in itertools.pairwise(runs)}
    edges = sorted(edges | {1.0})
    bins = [[] for _ in edges]
    for s, t in zip(score, target, strict=True):
        bins[bisect.bisect_left(edges, s)].append(t)
    starts = [0.0, *edges[:-1]]
    levels = [
        np.mean(held) if held else (start + end) / 2
        for held, start, end in zip(bins, starts, edges, strict=True)
    ]
    return lambda s: levels[bisect.bisect_left(edges, s)]


@given(grid_scores, st.integers(1, 12))
def test_run_histogram_follows_the_published_rule(items, n_bins):
    score, target, weight = unpack(items)
    many = np.repeat(score, weight.astype(int))
    n_bins = min(n_bins, np.unique(score).shape[0])
    naive = runs_by_loop(many, np.repeat(target, weight.astype(int)), n_bins)
    fitted = fit_run_histogram(score, target, weight, n_bins)
    new = np.linspace(0, 1, 33)
    np.testing.assert_allclose(apply_histogram(fitted, new), [naive(s) for s in new])


@given(grid_scores, st.integers(1, 12), st.floats(0.1, 3))
def test_histogram_levels_by_loop(items, n_bins, prior_mass):
    score, target, weight = unpack(items)
    fitted = fit_histogram(score, target, weight, n_bins, prior_mass=prior_mass)
    rate = (weight @ target + 1) / (weight.sum() + 2)
    places = [bisect.bisect_left(fitted.edges.tolist(), s) for s in score]
    assert len(set(places)) == len(fitted.levels) <= min(n_bins, np.unique(score).shape[0])
    for place, level in enumerate(fitted.levels):
        inside = np.array(places) == place
        positive, mass = weight[inside] @ target[inside], weight[inside].sum()
        assert level == pytest.approx((positive + prior_mass * rate) / (mass + prior_mass))


def test_bins_have_equal_mass_without_ties():
    score = np.random.default_rng(0).permutation(100) / 100
    fitted = fit_histogram(score, np.ones(100), np.ones(100), 5)
    counts = np.bincount(np.searchsorted(fitted.edges, score))
    np.testing.assert_array_equal(counts, [20] * 5)


def test_neighbouring_doubles_fall_into_different_bins():
    low = 0.3
    high = np.nextafter(low, 1)
    fitted = fit_histogram(np.array([low, high]), np.array([0.0, 1.0]), np.ones(2), 2)
    assert len(fitted.levels) == 2
    below, above = apply_histogram(fitted, np.array([low, high]))
    assert below < above


@given(grid_scores, st.floats(0, 2))
def test_isotonic_map_is_monotone_and_bounded(items, pseudo_errors):
    score, target, weight = unpack(items)
    fitted = fit_isotonic_map(score, target, weight, pseudo_errors=pseudo_errors)
    mapped = apply_isotonic_map(fitted, np.linspace(-1, 2, 61))
    assert (np.diff(mapped) >= 0).all()
    if pseudo_errors > 1e-6:
        assert mapped.min() > 0
        assert mapped.max() < 1
    # Pooling keeps the total: the mapped items add up to the targets, pseudo-items included.
    total = weight @ apply_isotonic_map(fitted, score)
    ends = apply_isotonic_map(fitted, np.array([score.min(), score.max()])).sum()
    assert total + pseudo_errors * ends == pytest.approx(weight @ target + pseudo_errors)


def test_isotonic_map_equals_interp_on_ordinary_scores():
    rng = np.random.default_rng(1)
    score, target = rng.random(200), (rng.random(200) < 0.5).astype(float)
    fitted = fit_isotonic_map(score, target, np.ones(200))
    new = np.append(rng.random(100), score[:20])
    np.testing.assert_allclose(apply_isotonic_map(fitted, new), np.interp(new, *fitted), rtol=1e-12)


def test_isotonic_map_survives_denormal_distances():
    score = np.array([0.0, 5e-324, 1e-310, 1.0])
    fitted = fit_isotonic_map(score, np.array([0.0, 1.0, 1.0, 1.0]), np.ones(4))
    mapped = apply_isotonic_map(fitted, np.array([0.0, 5e-324, 1e-320, 0.5]))
    np.testing.assert_array_equal(mapped, [0.0, 1.0, 1.0, 1.0])
