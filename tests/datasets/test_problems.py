"""The catalogue keeps its promises: h(p) is E[y | p], nulls hide nothing, effects are to scale."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse

from hetcal.datasets import list_problems, make_problem
from hetcal.datasets.problems import parts
from hetcal.datasets.problems.alternatives import ALTERNATIVES
from hetcal.datasets.problems.scaling import predicted_power
from hetcal.datasets.problems.strengths import STRENGTHS

NULLS, ALTS = list_problems("null"), list_problems("alternative")


def functions_of_p(P):
    """Bounded functions of p, one row per item: bins, sums of bins and waves of each column."""
    bins = [(k / 8 <= P[:, 1]) & (P[:, 1] < (k + 1) / 8) for k in range(8)]
    return np.column_stack([*bins, np.sin(7 * P), np.cos(20 * P), P])


def largest_z(R, F, groups, floor=1e-9):
    """Largest |z| over the sums of R_k f_j; R must have mean zero given what F is made of.

    `floor` is the least standard error: that of one event where none was expected is about 1.
    """
    worst = 0.0
    for k in range(R.shape[1]):
        products = R[:, [k]] * F
        if groups is not None:
            products = np.column_stack([np.bincount(groups, column) for column in products.T])
        scale = np.sqrt(floor**2 + (products**2).sum(axis=0))
        worst = max(worst, np.max(np.abs(products.sum(axis=0)) / scale))
    return worst


@pytest.mark.parametrize("name", NULLS + ALTS)
def test_truth_is_a_distribution_and_labels_follow_it(name):
    data = make_problem(name, 4000, random_state=1)
    for P in (data.y_proba, data.true_proba, data.recalibrated_proba):
        assert P.shape == (4000, data.n_classes)
        assert P.min() >= 0
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-9)
    R = np.eye(data.n_classes)[data.y] - data.true_proba
    F = np.column_stack([functions_of_p(data.y_proba), data.true_proba, np.ones(4000)])
    assert largest_z(R, F, data.groups, floor=1) < 4.5


@pytest.mark.parametrize("name", NULLS)
def test_in_a_null_the_truth_is_a_function_of_p(name):
    data = make_problem(name, 3000, random_state=2)
    np.testing.assert_array_equal(data.true_proba, data.recalibrated_proba)
    _, rows = np.unique(data.y_proba.round(12), axis=0, return_inverse=True)
    order = np.argsort(rows.ravel(), kind="stable")
    starts = np.flatnonzero(np.diff(rows.ravel()[order], prepend=-1))
    H = data.true_proba[order]
    spread = np.maximum.reduceat(H, starts) - np.minimum.reduceat(H, starts)
    assert spread.max() < 1e-4  # not 0: a stated 1 - 1e-13 and a 1 may stand for two logits
    assert data.oracle_p_value() == 1


@pytest.mark.parametrize("name", ALTS)
def test_in_an_alternative_h_is_the_mean_truth_given_p(name):
    data = make_problem(name, 20_000, random_state=3)
    R = data.true_proba - data.recalibrated_proba
    assert np.abs(R).mean() > 0.005
    assert largest_z(R, functions_of_p(data.y_proba), data.groups) < 4.5


def test_gauss_rule_integrates_as_the_mean_does():
    u = np.random.default_rng(0).exponential(size=5000)
    nodes, weights = parts.gauss_rule(u, 16)
    for f in (np.ones_like, np.square, lambda t: 1 / (1 + np.exp(-0.7 * t + 1))):
        np.testing.assert_allclose(weights @ f(nodes), f(u).mean(), rtol=1e-8)


def test_true_sizes_are_those_of_a_large_draw():
    data = make_problem("rare-group", 20_000, random_state=4)
    deviation = data.true_proba - data.recalibrated_proba
    assert data.grouping_loss == pytest.approx((deviation**2).sum(axis=1).mean(), rel=0.1)
    assert data.global_part == pytest.approx(
        ((data.y_proba - data.recalibrated_proba) ** 2).sum(axis=1).mean(), rel=0.1
    )
    assert make_problem("steps", 50, random_state=0).grouping_loss == 0


@pytest.mark.parametrize("name", ["groups-of-five", "missing-by-p", "sparse-words", "sectors"])
def test_a_seed_gives_the_same_items(name):
    first, again = (make_problem(name, 200, random_state=5) for _ in range(2))
    other = make_problem(name, 200, random_state=6)
    np.testing.assert_array_equal(first.y, again.y)
    np.testing.assert_array_equal(first.y_proba, again.y_proba)
    assert not np.array_equal(first.y_proba, other.y_proba)


def test_containers_are_of_every_kind():
    kinds = {type(make_problem(name, 30, random_state=0).X) for name in NULLS + ALTS}
    assert {np.ndarray, pd.DataFrame} < kinds
    assert any(issparse(make_problem(name, 30, random_state=0).X) for name in NULLS)
    assert any(make_problem(name, 30, random_state=0).sample_weight is not None for name in NULLS)


def test_each_half_has_its_own_problems_of_both_kinds():
    for kind in ("null", "alternative"):
        halves = [set(list_problems(kind, half=half)) for half in ("develop", "confirm")]
        assert min(map(len, halves)) >= 16
        assert not halves[0] & halves[1]
        assert set.union(*halves) == set(list_problems(kind))
    assert not set(NULLS) & set(ALTS)
    assert {make_problem(name, 30).n_classes for name in NULLS} >= {2, 3, 4, 5, 6, 8, 10}
    assert len({make_problem(name, 30).description for name in NULLS + ALTS}) == len(NULLS + ALTS)


def test_labels_of_a_group_depend_on_one_another():
    data = make_problem("groups-of-five", 20_000, random_state=7)
    R = (data.y - data.true_proba[:, 1]).reshape(-1, 5)
    between = (R.sum(axis=1) ** 2).mean()
    assert between > 1.5 * (R**2).sum(axis=1).mean()


def share_found(name, draws):
    n = ALTERNATIVES[name].scaled_at
    return np.mean(
        [make_problem(name, n, random_state=s).oracle_p_value() <= 0.05 for s in range(draws)]
    )


@pytest.mark.parametrize("name", ["xor-of-two", "few-bad-levels"])
def test_a_test_that_knows_the_direction_finds_it(name):
    assert predicted_power(name, STRENGTHS[name]) == pytest.approx(0.95, abs=0.01)
    assert 0.9 <= share_found(name, 150) <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("name", ALTS)
def test_every_alternative_is_to_scale(name):
    assert predicted_power(name, STRENGTHS[name]) == pytest.approx(0.95, abs=0.005)
    assert 0.92 <= share_found(name, 500) <= 0.98


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="make_problem: name must be one of"):
        make_problem("nothing")
    with pytest.raises(ValueError, match="n_samples must be at least 1; got 0"):
        make_problem("steps", 0)
    with pytest.raises(ValueError, match="list_problems: half must be one of"):
        list_problems(half="both")
