"""How much is hidden: the lower bound and the part that was found."""

import numpy as np
import pytest
from scipy.stats import ncx2

from hetcal.data import CalibrationSet, Folds
from hetcal.datasets import make_problem
from hetcal.heterogeneity import heterogeneity_test
from hetcal.heterogeneity.block_choice import sure_size
from hetcal.heterogeneity.block_directions import block_directions
from hetcal.heterogeneity.blocks import blocks_of
from hetcal.heterogeneity.dictionary import Dictionary
from hetcal.heterogeneity.feature_columns import FeatureColumns
from hetcal.heterogeneity.functions_of_p import fit_global, log_odds
from hetcal.heterogeneity.grouping_loss import least_excess, size_along
from hetcal.heterogeneity.residual_learners import Task


@pytest.mark.parametrize("name", ["wave", "thirty-levels"])
def test_bound_reaches_a_third_of_the_truth_and_stays_below(name):
    shares = []
    for seed in range(3):
        problem = make_problem(name, 2000, random_state=seed)
        found = heterogeneity_test(
            problem.X, problem.y, y_proba=problem.y_proba, learners=["linear"]
        )
        shares.append(found.grouping_loss_low / problem.grouping_loss)
    assert np.median(shares) > 0.33
    assert max(shares) <= 1


@pytest.mark.parametrize("freedom", [1.0, 12.0, 80.0])
@pytest.mark.parametrize("excess", [8.0, 60.0, 2000.0])
def test_bound_inverts_the_noncentral_chi_square(freedom, excess):
    value = ncx2.isf(0.05, freedom, excess)
    assert least_excess(value, freedom, 0.05) == pytest.approx(excess, rel=0.06)


def test_nothing_above_its_mean_gives_no_bound():
    assert least_excess(10.0, 10.0, 0.05) == 0.0


def out_of_fold(X, y, p, seed, *, single=True):
    """Residuals, and their prediction by blocks and, unless told otherwise, single directions."""
    P = p if p.ndim == 2 else np.column_stack([1 - p, p])
    items = CalibrationSet.check(X, y, y_proba=P, caller="test")
    fit, odds = fit_global(items), log_odds(items.scores.log_proba)
    dictionary = Dictionary(FeatureColumns.read(X), odds, fit.space)
    folds = Folds.make(len(y), 5, seed=seed)
    columns, weight = slice(1 if P.shape[1] == 2 else 0, None), fit.space.weight
    residuals, law = fit.residuals[:, columns], fit.proba[:, columns]
    every = [np.arange(len(dictionary) if single else 0)] * len(folds)
    task = Task(residuals, folds, weight, dictionary, odds, law, fit.space, every)
    return residuals, fit.space.residual(block_directions(task)), weight


def test_nothing_is_hidden_where_a_map_of_p_leaves_nothing():
    """Each row is there twelve times, so that a global map knows every label."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 4)), rng.integers(0, 2, 40)
    p = rng.random(40)
    rows = np.tile(np.arange(40), 12)
    found = heterogeneity_test(X[rows], y[rows], y_proba=p[rows], learners=["linear"])
    assert (found.grouping_loss_low, found.grouping_loss_found) == (0.0, 0.0)
    assert found.p_value > 0.5


def test_blocks_find_all_of_it_without_bias_and_nothing_in_noise():
    hidden, noise = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1200, 4))
        p = 1 / (1 + np.exp(-X[:, 0]))
        q = p + 0.8 * p * (1 - p) * np.sign(X[:, 1] * X[:, 2])
        truth = 2 * np.mean((q - p) ** 2)
        residuals, direction, weight = out_of_fold(X, rng.random(1200) < q, p, seed)
        hidden.append(size_along(residuals, direction, weight, None)[1] / truth)
        residuals, direction, _ = out_of_fold(X, rng.random(1200) < p, p, seed)
        noise.append(2 * np.mean(residuals * direction) / truth)
    assert 0.75 < np.mean(hidden) < 1.15
    assert abs(np.mean(noise)) < 0.1


def test_a_single_direction_finds_what_no_smooth_block_holds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4))
    p = 1 / (1 + np.exp(-X[:, 0]))
    rare = X[:, 1] > np.quantile(X[:, 1], 0.97)
    q = p - 0.9 * p * rare
    y = (rng.random(len(X)) < q).astype(int)
    found = [
        size_along(*out_of_fold(X, y, p, 0, single=single), None)[1] for single in (True, False)
    ]
    assert found[0] > 1.3 * found[1]


def test_shifted_log_probabilities_are_found_however_p_varies():
    """A class that is likely here and unlikely there is not moved by the same amount."""
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1500, 6))
        Z = 1.5 * X[:, :4]
        P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
        Q = P * np.exp(0.5 * np.sign(X[:, [4]]) * np.array([1.0, -1.0, 1.0, -1.0]))
        Q /= Q.sum(axis=1, keepdims=True)
        y = (rng.random((len(X), 1)) >= Q.cumsum(axis=1)[:, :-1]).sum(axis=1)
        truth = np.mean(((Q - P) ** 2).sum(axis=1))
        found.append(size_along(*out_of_fold(X, y, P, seed), None)[1] / truth)
    assert 0.8 < np.mean(found) < 1.2


@pytest.mark.parametrize(("m", "n_contrasts"), [(1, 1), (1, 9), (12, 4), (16, 9)])
def test_noise_that_may_choose_its_contrast_is_sure_of_nothing(m, n_contrasts):
    noise = np.random.default_rng(0).normal(size=(4000, m, n_contrasts))
    largest = np.linalg.norm(noise, ord=2, axis=(1, 2)) ** 2
    alarms = np.mean(sure_size(largest, m, n_contrasts, np.full(4000, 0.05)) > 0)
    assert 0 < alarms < 0.065


@pytest.mark.parametrize(("family", "n_columns"), [("pair", 2), ("triple", 3)])
def test_halves_of_columns_that_matter_only_together_are_one_function(family, n_columns):
    X = np.random.default_rng(0).normal(size=(400, 3))
    block = next(b for b in blocks_of(FeatureColumns.read(X), X[:, :1]) if b.family == family)
    parity = np.sign(X[:, :n_columns] - np.median(X[:, :n_columns], axis=0)).prod(axis=1)
    single = [block.values()[:, part[0]] for part in block.parts if len(part) == 1]
    assert max(abs(np.corrcoef(values, parity)[0, 1]) for values in single) > 0.99
