r"""How large something hidden must be to be found in these very items, by simulation.

Differences are planted on the items' own features and probabilities: the law h(p) of the null gets
a step between two sides of a column, a trend along a column, or a corner of two columns in which
one class is more frequent. Functions of p are taken off, and the rest has the size

.. math:: g = E\,|P(y \mid x) - P(y \mid p)|^2 ,

the grouping loss. A planted difference moves the scores of all directions
(:mod:`hetcal.heterogeneity.score_test`) by their products with it, which grow like
:math:`\sqrt g`; around that they vary as they do for labels drawn from h(p), or for groups whose
signs are drawn. So the dictionary, the projections and the draws are made once for all sizes.
Learners, which the whole test asks too, are left out: it finds no less than what is stated here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hetcal._compat import many_classes
from hetcal._typing import Matrix, Rows, Vector
from hetcal.data import CalibrationSet
from hetcal.heterogeneity.dictionary import Dictionary
from hetcal.heterogeneity.feature_columns import FeatureColumns
from hetcal.heterogeneity.functions_of_p import GlobalFit, fit_global, log_odds
from hetcal.heterogeneity.learning import SHARE_OF_DICTIONARY
from hetcal.heterogeneity.residual_learners import free_values
from hetcal.heterogeneity.score_test import Outcomes, combined_p_values

Floats = NDArray[np.float32]

_DRAWS, _PLANTED = 499, 80
_STEPS, _SMALLEST = 9, 1e-4  # of the Brier score; each step halves the logarithmic range
_SIDES = (0.2, 0.8)  # quantiles between which a column is cut
_FUNCTION_OF_P = (
    0.03  # share of a difference that p leaves, below which it is another function of p
)
_ATTEMPTS = 5
_NOTHING_LEFT = 1e-3  # of the largest spread of a score: the direction is a function of p


def detectable_size(
    items: CalibrationSet, *, level: float = 0.05, power: float = 0.8, random_state: int = 0
) -> float:
    """Return the grouping loss that the test of these items finds with the probability ``power``.

    Parameters
    ----------
    items : CalibrationSet
        All of positive weight.
    level : float, default=0.05
        Of the test.
    power : float, default=0.8
    random_state : int, default=0

    Returns
    -------
    float
        In Brier score (sum over classes); infinite where nothing at all would be found so surely.

    Examples
    --------
    >>> from hetcal.data import CalibrationSet
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(1000, heterogeneity=0.0, random_state=0)
    >>> items = CalibrationSet.check(data.X, data.y, y_proba=data.y_proba, caller="example")
    >>> 0.001 < detectable_size(items) < 0.02
    True
    """
    columns = FeatureColumns.read(items.X)
    if columns.is_empty:
        return np.inf
    with many_classes():
        fit = fit_global(items)
    rng = np.random.default_rng([random_state, 4])
    dictionary = Dictionary(columns, log_odds(items.scores.log_proba), fit.space)
    if not len(dictionary):
        return np.inf
    outcomes = Outcomes.of(fit, items.proba)
    weighted = free_values(fit.space, dictionary, np.arange(len(dictionary))).astype(np.float32)
    weighted *= fit.space.weight[:, None].astype(np.float32)
    drawn = _null_scores(weighted, fit, outcomes, items.groups, rng)
    moved = _moves(weighted, columns, fit, outcomes, rng)
    if moved is None:
        return np.inf
    spread = np.sqrt((drawn**2).mean(axis=2, keepdims=True))
    spread[spread <= _NOTHING_LEFT * spread.max()] = np.inf
    drawn /= spread
    moved /= spread
    largest = float(fit.space.weight @ (fit.proba * (1 - fit.proba)).sum(axis=1)) / items.n_items

    def is_found(size: float) -> bool:
        seen = drawn[:, :, : moved.shape[2]] + np.float32(np.sqrt(size)) * moved
        p_values, _ = combined_p_values(dictionary, outcomes, seen, drawn)
        return bool((p_values <= SHARE_OF_DICTIONARY * level).mean() >= power)

    return _smallest(is_found, _SMALLEST * largest, largest)


def _smallest(is_found: Callable[[float], bool], low: float, high: float) -> float:
    """Return the smallest size that is found, by bisection of its logarithm."""
    if not is_found(high):
        return np.inf
    for _ in range(_STEPS):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if is_found(middle) else (middle, high)
    return high


def _null_scores(
    weighted: Floats,
    fit: GlobalFit,
    outcomes: Outcomes,
    groups: Rows | None,
    rng: np.random.Generator,
) -> Floats:
    """Return scores where nothing is hidden, shape (M, C, draws)."""
    n = len(weighted)
    if groups is None:
        uniform = rng.random((n, _DRAWS), dtype=np.float32)
        errors = list(outcomes.draw(slice(0, n), uniform))
    else:
        signs = rng.choice(np.array([-1, 1], dtype=np.float32), (int(groups.max()) + 1, _DRAWS))
        own = outcomes.residuals / np.sqrt(1 - fit.leverage)[:, None]
        errors = [column[:, None].astype(np.float32) * signs[groups] for column in own.T]
    return np.stack([weighted.T @ error.astype(np.float32) for error in errors], axis=1)


def _moves(
    weighted: Floats,
    columns: FeatureColumns,
    fit: GlobalFit,
    outcomes: Outcomes,
    rng: np.random.Generator,
) -> Floats | None:
    """Return by how much planted differences of size 1 move the scores, shape (M, C, planted)."""
    moves = []
    for _ in range(_ATTEMPTS * _PLANTED):
        difference = _planted(columns, fit, rng)
        if difference is not None:
            seen = difference[:, outcomes.classes]
            if outcomes.top is not None:
                right = np.take_along_axis(difference, outcomes.top[:, None], axis=1)
                seen = np.hstack([seen, fit.space.residual(right)])
            moves.append(weighted.T @ seen.astype(np.float32))
        if len(moves) == _PLANTED:
            break
    return np.stack(moves, axis=2) if moves else None


def _planted(columns: FeatureColumns, fit: GlobalFit, rng: np.random.Generator) -> Matrix | None:
    """Return a difference of size 1 in the class probabilities, or None for a function of p."""
    where, H = _pattern(columns, rng), fit.proba
    likely = (H * (1 - H)).sum(axis=0)
    k = int(rng.choice(H.shape[1], p=likely / likely.sum()))
    change = (where - where.mean())[:, None] * H[:, [k]] * ((np.arange(H.shape[1]) == k) - H)
    free = fit.space.residual(change)
    before, size = (float(fit.space.weight @ (part**2).sum(axis=1)) for part in (change, free))
    if size <= _FUNCTION_OF_P * before or before == 0:
        return None
    return free / np.sqrt(size / len(free))


def _pattern(columns: FeatureColumns, rng: np.random.Generator) -> Vector:
    """Return a step, a trend or a corner."""
    kind = rng.integers(3)
    if kind == 1 and columns.ranks.shape[1]:
        return columns.ranks[:, rng.integers(columns.ranks.shape[1])].astype(np.float64)
    step = _side(columns, rng)
    return step * _side(columns, rng) if kind == 2 else step


def _side(columns: FeatureColumns, rng: np.random.Generator) -> Vector:
    """Return which items lie on one side of a column: high, missing, or of half the levels."""
    d, m = columns.ranks.shape[1], columns.missing.shape[1]
    j = int(rng.integers(d + m + len(columns.categories)))
    if j < d:
        return (columns.ranks[:, j] > rng.uniform(*_SIDES)).astype(np.float64)
    if j < d + m:
        return columns.missing[:, j - d].astype(np.float64)
    category = columns.categories[j - d - m]
    chosen = rng.random(len(category.levels) + 1) < 0.5
    return chosen[category.codes].astype(np.float64)
