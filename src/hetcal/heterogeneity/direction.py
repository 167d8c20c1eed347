r"""Where the residuals point: an out-of-sample guess of :math:`P(y \mid x) - p_g`.

With residuals :math:`r_i = e_{y_i} - p_{g,i}` and a direction :math:`d_i` that was found without
item i, the score statistic over a set of items is

.. math:: S = \sum_i w_i \, r_i \cdot d_i ,

half the derivative of the out-of-sample Brier gain of the blend :math:`p_g + a d` at :math:`a = 0`.
If nothing is hidden, its mean is zero whatever the quality of :math:`d`, and its variance is that
of labels drawn from :math:`p_g`:
:math:`T = S / \sqrt{\sum_i w_i^2 \operatorname{Var}(e_Y \cdot d_i)}` with :math:`Y \sim p_{g,i}`.
(The terms' own squares will not do where one class is rare: without a single case of it, all terms
are tiny and of one sign.)

The direction is the out-of-bag mean residual in the leaves of one forest on [X, log p] of all
items. Leaves are large: a test must find weak effects, which small leaves drown in noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hetcal._typing import Matrix, Rows, Vector
from hetcal.data import Folds, out_of_sample
from hetcal.kernels.forest_fit import fit_forest
from hetcal.kernels.forest_vote import apply, indicator

N_TREES = 50
_LARGEST_LEAF, _SMALLEST_LEAF, _ITEMS_PER_LEAF = 20, 5, 20
_FEATURES_PER_SPLIT = 40  # all features up to here: few of them can carry what is hidden


def residual_direction(
    Z: NDArray[np.float32],
    codes: Rows,
    residuals: Matrix,
    *,
    fold: NDArray[np.int64] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Matrix:
    """Return the out-of-sample direction of each item's residual, shape (n, K).

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Features and log-probabilities.
    codes : ndarray of int, shape (n,)
        Labels, which the trees split.
    residuals : ndarray of shape (n, K)
        Labels (one-hot) minus globally recalibrated probabilities.
    fold : ndarray of int, shape (n,), optional
        With folds, an item's direction comes from a forest on the other folds (for items in groups)
        instead of from the trees that did not draw it.
    """
    if fold is None:
        return _out_of_bag(Z, codes, residuals, random_state, n_jobs)

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        return lambda test: _from_others(Z, codes, residuals, train, test, random_state, n_jobs)

    return out_of_sample(learn, Folds(fold), len(codes))


def _out_of_bag(Z, codes, residuals, random_state, n_jobs) -> Matrix:
    forest = _grow(Z, codes, residuals.shape[1], random_state, n_jobs)
    leaves = apply(forest, Z, n_jobs)
    drawn = forest.in_bag.T
    reached = indicator(np.where(drawn == 0, leaves, -1), forest.n_leaves)
    means = _leaf_means(leaves, drawn.astype(np.float64), residuals, forest.n_leaves)
    n_trees = np.maximum((drawn == 0).sum(axis=1), 1)
    return (reached @ means) / n_trees[:, None]


def _from_others(Z, codes, residuals, train, test, random_state, n_jobs) -> Matrix:
    forest = _grow(Z[train], codes[train], residuals.shape[1], random_state, n_jobs)
    drawn = forest.in_bag.T.astype(np.float64)
    means = _leaf_means(apply(forest, Z[train], n_jobs), drawn, residuals[train], forest.n_leaves)
    reached = indicator(apply(forest, Z[test], n_jobs), forest.n_leaves)
    return (reached @ means) / forest.n_trees


def _grow(Z, codes, n_classes, random_state, n_jobs):
    n, d = Z.shape
    return fit_forest(
        Z,
        codes,
        n_classes,
        n_estimators=N_TREES,
        max_features=min(d, max(_FEATURES_PER_SPLIT, int(np.sqrt(d)))),
        min_samples_leaf=int(np.clip(n // _ITEMS_PER_LEAF, _SMALLEST_LEAF, _LARGEST_LEAF)),
        random_state=random_state,
        n_jobs=n_jobs,
    )


def _leaf_means(leaves, drawn: Matrix, residuals: Matrix, n_leaves: int) -> Matrix:
    """Return the mean residual of the items that each leaf was grown on."""
    n, n_trees = leaves.shape
    shape = (n, n_leaves)
    counts = sparse.csr_array(
        (drawn.ravel(), leaves.ravel(), np.arange(n + 1) * n_trees), shape=shape
    )
    mass = counts.sum(axis=0)
    return (counts.T @ residuals) / np.maximum(mass, 1e-300)[:, None]


def score_terms(
    residuals: Matrix, direction: Matrix, p_g: Matrix, weight: Vector
) -> tuple[Vector, Vector]:
    """Return each item's term of the score statistic, and its variance under ``p_g``."""
    terms = weight * np.einsum("ij,ij->i", residuals, direction)
    mean = np.einsum("ij,ij->i", p_g, direction)
    variances = weight**2 * (np.einsum("ij,ij,ij->i", p_g, direction, direction) - mean**2)
    return terms, np.maximum(variances, 0.0)


def studentised(
    terms: Matrix, variances: Matrix, cells: sparse.csr_array, groups: Rows | None
) -> Matrix:
    """Return the score statistic of each cell, in units of its spread; shape (m, B).

    Parameters
    ----------
    terms, variances : ndarray of shape (n, B)
        From :func:`score_terms`, one column per label vector.
    cells : sparse array of shape (m, n)
        Ones at the members of each cell.
    groups : ndarray of int, shape (n,), or None
        Labels within a group may depend on each other: the squared sums over groups count where
        they are larger than the variances.
    """
    variance = cells @ variances
    if groups is not None:
        by_group = [_group_squares(cells, column, groups) for column in terms.T]
        variance = np.maximum(variance, np.column_stack(by_group))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(variance > 0, (cells @ terms) / np.sqrt(variance), 0.0)


def _group_squares(cells: sparse.csr_array, column: Vector, groups: Rows) -> Vector:
    n = len(column)
    by_group = sparse.csr_array(
        (column, groups, np.arange(n + 1)), shape=(n, int(groups.max()) + 1)
    )
    return ((cells @ by_group).power(2)).sum(axis=1)
