"""Neighbourhood bookkeeping, p-values and false-discovery control against naive versions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import t as student_t

from hetcal.heterogeneity.cells import Balls, auto_radius, net_of_cells, smoothing_weights
from hetcal.heterogeneity.direction import residual_direction, score_terms, studentised
from hetcal.heterogeneity.null import (
    adjusted_among,
    benjamini_hochberg,
    draw_labels,
    null_p_values,
)


@pytest.fixture
def balls():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 80)
    return Balls.around(P[:7], P, 0.2)


def test_averages_of_members_are_plain_weighted_means(balls):
    rng = np.random.default_rng(1)
    weight = rng.uniform(size=80)
    values = rng.normal(size=(2, len(balls.indices)))
    values[0, ::5] = np.nan
    got = balls.averages(values, weight)
    for j in range(len(balls)):
        part = slice(balls.indptr[j], balls.indptr[j + 1])
        for row in range(2):
            v, w = values[row, part], weight[balls.indices[part]]
            known = ~np.isnan(v)
            np.testing.assert_allclose(got[row, j], np.average(v[known], weights=w[known]))


def test_balls_hold_the_items_within_the_radius(balls):
    for centre, start, end in zip(balls.centres, balls.indptr[:-1], balls.indptr[1:], strict=True):
        members = balls.indices[start:end]
        assert (np.diff(members) > 0).all()
        assert len(members) >= 1
        assert centre.shape == (3,)
    few = balls.subset(np.array([3, 1]))
    np.testing.assert_array_equal(
        few.indices[: few.sizes[0]], balls.indices[balls.indptr[3] : balls.indptr[4]]
    )


def test_merged_cells_are_fewer():
    P = np.random.default_rng(0).dirichlet(np.ones(4), 300)
    P = np.vstack([P, 0.999 * P + 0.001 / 4])
    assert len(net_of_cells(P, 0.3, "overlap")) < len(net_of_cells(P, 0.3, "net"))


def test_smoothing_weights_prefer_what_is_near():
    centres = np.array([[0.5, 0.5], [0.9, 0.1]])
    weights = smoothing_weights(centres, np.array([[0.52, 0.48], [0.88, 0.12]]), 0.1)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (weights.argmax(axis=1) == [0, 1]).all()


def test_smoothing_weights_are_gaussian_in_the_hellinger_distance():
    rng = np.random.default_rng(0)
    centres, at = rng.dirichlet(np.ones(3), 6), rng.dirichlet(np.ones(3), 4)
    found = smoothing_weights(centres, at, 0.4)
    for row, point in zip(found, at, strict=True):
        squared = [((np.sqrt(point) - np.sqrt(c)) ** 2).sum() / 2 for c in centres]
        expected = np.exp(-np.array(squared) / (2 * 0.1**2))  # a quarter of the radius
        np.testing.assert_allclose(row, expected / expected.sum(), atol=1e-12)


@pytest.mark.parametrize(("n", "expected"), [(5000, 0.1), (20, 0.5)])
def test_automatic_radius_grows_when_items_are_few(n, expected):
    p = np.linspace(0.01, 0.99, n)
    assert auto_radius(np.column_stack([p, 1 - p])) == expected


@settings(deadline=None, max_examples=50)
@given(arrays(float, st.integers(1, 30), elements=st.floats(1e-6, 1)))
def test_benjamini_hochberg_rejects_what_the_step_up_rule_rejects(p):
    q = benjamini_hochberg(p)
    ordered = np.sort(p)
    passing = np.flatnonzero(ordered <= 0.05 * np.arange(1, len(p) + 1) / len(p))
    cut = ordered[passing[-1]] if len(passing) else -1
    np.testing.assert_array_equal(q <= 0.05 + 1e-12, p <= cut)
    np.testing.assert_allclose(adjusted_among(p, p), q, rtol=1e-12)


def test_student_p_values_are_uniform_under_the_null():
    rng = np.random.default_rng(0)
    p = null_p_values(rng.normal(size=4000), rng.normal(size=(4000, 19)))
    assert abs((p < 0.05).mean() - 0.05) < 0.012
    assert np.isnan(null_p_values(np.ones(2), np.ones((2, 2)))).all()


def test_rank_p_values_count_ties_against_the_observed():
    null = np.repeat([[1.0, 2.0]], [100, 99], axis=1)
    p = null_p_values(np.array([1.0, 1.5, 2.0, 3.0, np.nan]), np.repeat(null, 5, axis=0))
    np.testing.assert_allclose(p, [200 / 200, 100 / 200, 100 / 200, 1 / 200, np.nan])


def test_student_p_values_by_hand():
    null = np.array([[0.0, 1.0, 2.0, 3.0, 4.0]])
    t = (5.0 - 2.0) / (np.sqrt(2.5) * np.sqrt(1 + 1 / 5))
    assert null_p_values(np.array([5.0]), null)[0] == pytest.approx(student_t.sf(t, 4))


def test_labels_are_drawn_from_their_rows():
    P = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    drawn = draw_labels(P, 20_000, np.random.default_rng(0))
    share = np.stack([(drawn == k).mean(axis=0) for k in range(3)], axis=1)
    np.testing.assert_allclose(share, P, atol=0.02)


def test_score_terms_have_the_variance_of_drawn_labels():
    rng = np.random.default_rng(0)
    p_g = rng.dirichlet(np.ones(3), 4)
    direction = rng.normal(size=(4, 3))
    weight = np.array([1.0, 2.0, 0.5, 1.0])
    drawn = draw_labels(p_g, 40_000, rng)
    terms = np.stack(
        [score_terms(np.eye(3)[y] - p_g, direction, p_g, weight)[0] for y in drawn[:20_000]]
    )
    variances = score_terms(np.eye(3)[drawn[0]] - p_g, direction, p_g, weight)[1]
    np.testing.assert_allclose(terms.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(terms.var(axis=0), variances, rtol=0.05)


def test_studentised_statistic_against_loops():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([2, 2], 60)
    balls = Balls.around(P[:5], P, 0.1)
    terms = rng.normal(size=(60, 3))
    variances = rng.uniform(0.1, 1, size=(60, 3))
    groups = rng.integers(0, 20, 60)
    cells = balls.membership(np.ones(60))
    plain = studentised(terms, variances, cells, None)
    grouped = studentised(terms, variances, cells, groups)
    for j in range(5):
        members = balls.indices[balls.indptr[j] : balls.indptr[j + 1]]
        for b in range(3):
            v, variance = terms[members, b], variances[members, b].sum()
            np.testing.assert_allclose(plain[j, b], v.sum() / np.sqrt(variance))
            squares = sum(v[groups[members] == g].sum() ** 2 for g in range(20))
            np.testing.assert_allclose(grouped[j, b], v.sum() / np.sqrt(max(variance, squares)))


@pytest.mark.parametrize("fold", [None, "three"])
def test_an_items_own_label_does_not_reach_its_direction(fold):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(90, 2)).astype(np.float32)
    codes = rng.integers(0, 2, 90)
    folds = None if fold is None else np.arange(90) % 3

    def direction(codes):
        return residual_direction(Z, codes, np.eye(2)[codes] - 0.4, fold=folds)

    before = direction(codes)
    for row in (4, 50):
        flipped = codes.copy()
        flipped[row] = 1 - codes[row]
        after = direction(flipped)
        np.testing.assert_allclose(after[row], before[row], atol=1e-12)
        assert not np.allclose(after, before, atol=1e-6)


@pytest.mark.parametrize("fold", [None, "two"])
def test_direction_is_out_of_sample_and_points_the_right_way(fold):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 3)).astype(np.float32)
    codes = (rng.uniform(size=400) < np.where(Z[:, 0] > 0, 0.8, 0.2)).astype(int)
    residuals = np.eye(2)[codes] - 0.5
    folds = None if fold is None else np.arange(400) % 2
    direction = residual_direction(Z, codes, residuals, fold=folds)
    assert np.corrcoef(direction[:, 1], Z[:, 0] > 0)[0, 1] > 0.8
    noise = rng.integers(0, 2, 400)
    direction = residual_direction(Z, noise, np.eye(2)[noise] - 0.5, fold=folds)
    terms = ((np.eye(2)[noise] - 0.5) * direction).sum(axis=1)
    assert abs(terms.sum() / np.sqrt((terms**2).sum())) < 3
