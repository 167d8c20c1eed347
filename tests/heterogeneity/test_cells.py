"""Neighbourhood bookkeeping and adjusted p-values against naive versions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hetcal.heterogeneity.cells import Balls, auto_radius, net_of_cells
from hetcal.heterogeneity.multiplicity import benjamini_hochberg, holm


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


def test_merged_cells_are_fewer():
    P = np.random.default_rng(0).dirichlet(np.ones(4), 300)
    P = np.vstack([P, 0.999 * P + 0.001 / 4])
    assert len(net_of_cells(P, 0.3, "overlap")) < len(net_of_cells(P, 0.3, "net"))


@pytest.mark.parametrize(("n", "expected"), [(5000, 0.1), (20, 0.5)])
def test_automatic_radius_grows_when_items_are_few(n, expected):
    p = np.linspace(0.01, 0.99, n)
    assert auto_radius(np.column_stack([p, 1 - p])) == expected


@settings(max_examples=50)
@given(arrays(float, st.integers(1, 30), elements=st.floats(1e-6, 1)))
def test_benjamini_hochberg_rejects_what_the_step_up_rule_rejects(p):
    q = benjamini_hochberg(p)
    ordered = np.sort(p)
    passing = np.flatnonzero(ordered <= 0.05 * np.arange(1, len(p) + 1) / len(p))
    cut = ordered[passing[-1]] if len(passing) else -1
    np.testing.assert_array_equal(q <= 0.05 + 1e-12, p <= cut)


def test_holm_against_its_definition():
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03])), [0.03, 0.06, 0.06])
