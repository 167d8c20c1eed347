r"""All scores of a dictionary at once, and how large they are when nothing is hidden.

The score of a direction :math:`\varphi` for class k is

.. math:: T = \sum_i w_i r_{ik} \tilde\varphi_i ,

residuals and direction both projected off the functions of p. Under the null the labels have the
law h(p): labels are drawn from it and scored the same way. Where rows belong to groups, whose
labels may depend on each other, the signs of whole groups' residuals are drawn instead.

Families of scores are put on one scale by their p-values (gamma tails fitted to the draws),
combined by a weighted harmonic mean, and the combination is compared with its draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from hetcal._typing import Matrix, Rows, Vector
from hetcal.data import Folds
from hetcal.heterogeneity.dictionary import Dictionary
from hetcal.heterogeneity.functions_of_p import FunctionsOfP, GlobalFit

Floats = NDArray[np.float32]

_FLOPS = 2e10  # what the draws may cost
_FEWEST_DRAWS, _MOST_DRAWS = 499, 2999
_MOST_CLASSES = 12
_SIGNS = np.array([-1, 1], dtype=np.float32)
_BLOCK_CELLS = 1 << 22
_SMALLEST_LOG_P = -80.0
_SMALLEST_P = 1e-150  # the square of its inverse is still a number
_TAIL = 0.1  # share of the draws by which the tail is fitted
_TAIL_PRIOR = 200  # draws, or as many as the tail has: the combination has a p-value's tail
# Fourth cumulant of a score, from which on it hangs on less than half an expected event.
_LARGEST_EXCESS = 2.0
_WEIGHT_ONE_CLASS, _WEIGHT_TOP = 0.75, 0.25


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of all directions.

    Attributes
    ----------
    z : ndarray of shape (M, C)
        Studentised scores per direction and outcome (see :class:`Outcomes`).
    sums : ndarray of shape (M, C)
        The scores themselves.
    squares : ndarray of shape (M,)
        Squared length of each direction off the functions of p; infinite where too little is left.
    coefficients : ndarray
        Of the directions' projections on the functions of p.
    classes : ndarray
        Class of each outcome that is a class.
    p_value : float
        Of all families together.
    families : dict
        From a family's name to its own p-value.
    n_draws : int
    """

    z: Matrix
    sums: Matrix
    squares: Vector
    coefficients: Floats
    classes: Rows
    p_value: float
    families: dict[str, float]
    n_draws: int


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What is predicted of an item: its label being a class, or being the predicted class.

    Attributes
    ----------
    residuals : ndarray of shape (n, C)
    proba : ndarray of shape (n, C)
        Their null probabilities.
    classes : ndarray of shape (C',)
        The class of each outcome but the last, where the last is the predicted class.
    law : ndarray of shape (n, K)
    top : ndarray of shape (n,) or None
        The predicted class.
    """

    residuals: Matrix
    proba: Matrix
    classes: Rows
    law: Matrix
    top: Rows | None

    @classmethod
    def of(cls, fit: GlobalFit, P: Matrix) -> Outcomes:
        """Return one outcome for two classes; else the classes, and the predicted class."""
        H, R = fit.proba, fit.residuals
        if H.shape[1] == 2:
            return cls(R[:, 1:], H[:, 1:], np.array([1]), H, None)
        spread = (H * (1 - H)).sum(axis=0)
        classes = np.sort(np.argsort(-spread, kind="stable")[:_MOST_CLASSES])
        top = P.argmax(axis=1)
        rows = np.arange(len(H))
        # Its expectation is a function of p, and its residual is taken off the space once more.
        right = fit.space.residual(R[rows, top][:, None])
        return cls(
            np.hstack([R[:, classes], right]),
            np.column_stack([H[:, classes], H[rows, top]]),
            classes,
            H,
            top,
        )

    def draw(self, rows: slice, uniform: Floats) -> Iterator[Floats]:
        """Return each outcome of drawn labels minus its probability, shape (rows, draws)."""
        H = self.law[rows]
        if H.shape[1] == 2:
            h = H[:, 1:].astype(np.float32)
            yield (uniform < h) - h
            return
        edges = np.cumsum(H, axis=1).astype(np.float32)
        label = (uniform[:, :, None] >= edges[:, None, :-1]).sum(axis=2)
        for k in self.classes:
            yield (label == k) - H[:, [k]].astype(np.float32)
        if self.top is not None:
            yield (label == self.top[rows, None]) - self.proba[rows, -1:].astype(np.float32)


def score_test(
    fit: GlobalFit,
    outcomes: Outcomes,
    dictionary: Dictionary,
    groups: Rows | None,
    rng: np.random.Generator,
    *,
    with_draws: bool = True,
) -> Scores:
    """Score all directions, and compare each family and all together with null draws.

    Without draws there is no p-value.
    """
    sums = _accumulate(fit, outcomes, dictionary, groups, rng, with_draws)
    spread = np.sqrt(sums.variance)
    seen = sums.observed / spread
    p, by_family = np.nan, {}
    if with_draws:
        drawn, lacking = _standardised(sums.drawn, sums.excess)
        every, tails = combined_p_values(dictionary, outcomes, seen[:, :, None], drawn, lacking)
        p, by_family = float(every[0]), {name: float(values[0]) for name, values in tails.items()}
    return Scores(
        seen,
        sums.observed,
        sums.squares,
        sums.coefficients,
        outcomes.classes,
        p,
        by_family,
        sums.drawn.shape[2],
    )


def _standardised(drawn: Floats, excess: Matrix) -> tuple[Floats, Matrix]:
    """Return draws with a mean square of one, and what their mean fourth power lacks of the null's.

    Both moments are known; that of the draws has luck, which would grow in the tails.
    """
    B = drawn.shape[2]
    square = np.einsum("mcb,mcb->mc", drawn, drawn) / B
    known = (square > 0) & np.isfinite(excess)
    scale = np.where(known, 1 / np.sqrt(np.where(known, square, 1.0)), 0.0)
    z = drawn * scale[:, :, None].astype(np.float32)
    squares = z * z
    fourth = np.einsum("mcb,mcb->mc", squares, squares) / B
    return z, np.where(known, 3 + excess - fourth, 0.0)


def combined_p_values(
    dictionary: Dictionary,
    outcomes: Outcomes,
    seen: NDArray,
    drawn: NDArray,
    lacking: Matrix | None = None,
) -> tuple[Vector, dict[str, Vector]]:
    """Return p-values of S sets of studentised scores, of all families together and of each.

    Parameters
    ----------
    dictionary : Dictionary
    outcomes : Outcomes
    seen : ndarray of shape (M, C, S)
    drawn : ndarray of shape (M, C, B)
        Scores under the null.
    lacking : ndarray of shape (M, C), optional
        What the mean fourth power of the draws lacks of the null's, where that is known.
    """
    if lacking is None:
        lacking = np.zeros(drawn.shape[:2])
    families = [
        (
            family.name + words,
            family.weight * share,
            judge(family.blocks, seen[:, at], drawn[:, at], lacking[:, at]),
        )
        for words, share, at, judge in _views(outcomes)
        for family in dictionary.families
    ]
    return _combined(families, seen.shape[2])


def scores_by_fold(
    scores: Scores,
    fit: GlobalFit,
    dictionary: Dictionary,
    residuals: Matrix,
    splits: list[Folds],
) -> list[Matrix]:
    """Return the sum over each fold's items of residual times direction, (M, C, J) per split."""
    n, C = residuals.shape
    columns = [folds.number == j for folds in splits for j in range(len(folds))]
    sums = np.zeros((len(dictionary), C, len(columns)))
    member = np.stack(columns, axis=1).astype(np.float32)
    weighted = (fit.space.weight[:, None] * residuals).astype(np.float32)
    for rows in _blocks(n, len(dictionary), None):
        free = _free(fit.space, dictionary, scores.coefficients, rows)
        for k in range(C):
            sums[:, k] += free.T @ (weighted[rows, k : k + 1] * member[rows])
    borders = np.cumsum([len(folds) for folds in splits])[:-1]
    return np.split(sums, borders, axis=2)


def _free(space: FunctionsOfP, dictionary: Dictionary, coefficients: Floats, rows: slice) -> Floats:
    """Return the directions of some rows, less functions of p."""
    return dictionary.values(rows) - space.fitted(coefficients, rows)


@dataclass(frozen=True, eq=False)
class _Sums:
    observed: Matrix  # (M, C)
    drawn: Floats  # (M, C, B)
    variance: Matrix  # (M, C)
    excess: Matrix  # (M, C): mean fourth power of a studentised score less 3, under the null
    squares: Vector  # (M,)
    coefficients: Floats


def _accumulate(fit, outcomes: Outcomes, dictionary, groups, rng, with_draws: bool) -> _Sums:
    """Add scores up over blocks of rows; memory does not grow with the rows."""
    space = fit.space
    (n, C), M = outcomes.residuals.shape, len(dictionary)
    B = int(np.clip(_FLOPS / (2 * n * M * C), _FEWEST_DRAWS, _MOST_DRAWS)) if with_draws else 0
    inflate = (1 / np.sqrt(1 - fit.leverage))[:, None]
    spread = outcomes.proba * (1 - outcomes.proba)
    scale = np.ones(C)
    if groups is None:
        w = space.weight @ (outcomes.residuals**2 * inflate**2)
        scale = np.maximum(w / (space.weight @ spread), 1e-12)
    coefficients = _coefficients(space, dictionary)
    observed, variance, fourth = np.zeros((3, M, C))
    beyond_normal = spread * (1 - 6 * spread)  # fourth cumulant of a label
    drawn = np.zeros((M, C, B), dtype=np.float32)
    left, total = np.zeros(M), np.zeros((2, M))
    for rows in _blocks(n, M + B * fit.proba.shape[1], groups):
        phi = dictionary.values(rows)
        w = space.weight[rows, None].astype(np.float32)
        total += [(phi.T @ w)[:, 0], ((phi * phi).T @ w)[:, 0]]
        free = phi - space.fitted(coefficients, rows)
        square = free * free
        left += (square.T @ w)[:, 0]
        r = outcomes.residuals[rows].astype(np.float32)
        observed += free.T @ (w * r)
        if groups is None:
            variance += square.T @ (w**2 * spread[rows].astype(np.float32))
            fourth += (square**2).T @ (w**4 * beyond_normal[rows].astype(np.float32))
            uniform = rng.random((len(phi), B), dtype=np.float32)
            errors = outcomes.draw(rows, uniform)
            c = w
        else:
            scores = w * r * inflate[rows].astype(np.float32)
            sums = _group_sums(free, scores, groups[rows])
            variance += (sums**2).sum(axis=0)
            fourth -= 2 * (sums**4).sum(axis=0)
            first = int(groups[rows.start])
            signs = rng.choice(_SIGNS, (int(groups[rows.stop - 1]) - first + 1, B))
            errors = (scores[:, [k]] * signs[groups[rows] - first] for k in range(C))
            c = np.float32(1.0)
        for k, error in enumerate(errors):
            drawn[:, k] += free.T @ (error * c)
    known = left > 1e-3 * (total[1] - total[0] ** 2 / n) + 1e-9
    excess = fourth / np.maximum(variance, 1e-8) ** 2
    known = known[:, None] & (variance > 1e-8) & (excess < _LARGEST_EXCESS)
    variance, excess = np.where(known, variance, np.inf), np.where(known, excess, np.nan)
    squares = np.where(known.any(axis=1), left, np.inf)
    return _Sums(observed / np.sqrt(scale), drawn, variance, excess, squares, coefficients)


def _coefficients(space: FunctionsOfP, dictionary: Dictionary) -> Floats:
    n = len(space.weight)
    parts = (
        space.coefficients(dictionary.values(rows), rows)
        for rows in _blocks(n, len(dictionary), None)
    )
    return reduce(np.add, parts).astype(np.float32)


def _blocks(n: int, width: int, groups: Rows | None) -> Iterator[slice]:
    """Return slices of rows; groups, which come one after the other, stay whole."""
    step = max(_BLOCK_CELLS // max(width, 1), 256)
    ends = np.arange(step, n + step, step).clip(max=n)
    if groups is not None:
        borders = np.append(np.flatnonzero(np.diff(groups)) + 1, n)
        ends = np.unique(borders[np.searchsorted(borders, ends)])
    start = 0
    for end in ends.tolist():
        yield slice(start, end)
        start = end


def _group_sums(free: Floats, scores: Floats, groups: Rows) -> NDArray:
    """Return the score of each group, shape (G, M, C)."""
    starts = np.append(0, np.flatnonzero(np.diff(groups)) + 1)
    return np.stack(
        [
            np.add.reduceat(free * scores[:, [k]], starts, axis=0).astype(np.float64)
            for k in range(scores.shape[1])
        ],
        axis=2,
    )


def _views(outcomes: Outcomes) -> list[tuple[str, float, slice, Callable]]:
    """Return how the outcomes of a direction are put together: name, weight, outcomes, judge."""
    if outcomes.top is None:
        return [("", 1.0, slice(None), _all_outcomes)]
    return [
        ("", 1.0, slice(0, -1), _all_outcomes),
        (", one class", _WEIGHT_ONE_CLASS, slice(0, -1), _largest_outcome),
        (", predicted class", _WEIGHT_TOP, slice(-1, None), _all_outcomes),
    ]


Tails = tuple[Vector, Vector]


def _all_outcomes(
    blocks: NDArray[np.int64], seen: NDArray, drawn: Floats, lacking: Matrix
) -> Tails | None:
    """Return log p-values of a family, observed and drawn; squares of all outcomes add up."""
    square_seen, square_drawn = (seen**2).sum(axis=1), (drawn**2).sum(axis=1)
    if len(blocks) > 1:
        return _largest_block(blocks, square_seen, square_drawn, lacking.sum(axis=1))
    members = drawn[blocks[0]].reshape(-1, drawn.shape[2])
    lacks = float(lacking[blocks[0]].sum())
    return _sum_of_squares(square_seen[blocks[0]].sum(axis=0), members, lacks)


def _largest_outcome(
    blocks: NDArray[np.int64], seen: NDArray, drawn: Floats, lacking: Matrix
) -> Tails | None:
    """Return the same for the outcome with the largest square."""
    if len(blocks) == 1:
        return None  # a sum over directions, of different outcomes, says nothing
    nothing = np.zeros(len(lacking))  # the law of the largest is not known
    return _largest_block(blocks, (seen**2).max(axis=1), (drawn**2).max(axis=1), nothing)


def _sum_of_squares(seen: Vector, members: Floats, lacks: float) -> Tails | None:
    """Refer sums of squared scores to a gamma distribution.

    Its variance comes from the scores' correlations: that is steadier than the variance of the
    sums.
    """
    members = members[members.any(axis=1)]
    if not len(members):
        return None
    B = members.shape[1]
    squares = members.astype(np.float64) ** 2
    total = squares.sum(axis=0)
    # Squared products of all pairs of scores add up to those of all pairs of draws.
    short = members if len(members) <= B else members.T
    products = float(((short @ short.T).astype(np.float64) ** 2).sum())
    between = 2 * (products - (squares.sum(axis=1) ** 2).sum()) / B**2
    between -= 2 * len(members) * (len(members) - 1) / B
    own = squares.var(axis=1).sum() + lacks
    variance = max(own + between, 1e-3 * total.var()) + 1e-12
    log_p = _gamma(np.append(seen, total), total.mean(), variance)
    return log_p[: len(seen)], log_p[len(seen) :]


def _largest_block(
    blocks: NDArray[np.int64], seen: Matrix, drawn: Floats, lacking: Vector
) -> Tails | None:
    """Refer the largest block to the tail of one block, times how many count as independent."""
    own, null = _block_sums(blocks, seen), _block_sums(blocks, drawn)
    alive = null.any(axis=1)
    if not alive.any():
        return None
    null = null[alive]
    mean = null.mean()
    variance = float(((null - mean) ** 2).mean())
    variance = max(variance + float(_block_sums(blocks, lacking)[alive].mean()), variance / 2)
    top = np.append(own[alive].max(axis=0), null.max(axis=0))
    one = _gamma(top, float(mean), variance + 1e-12)
    # -log(1 - p) of the largest of m independent ones is exponential with rate m.
    hazard = -np.log1p(-np.exp(np.minimum(one, -1e-12)))
    S = own.shape[1]
    m = (len(one) - S) / hazard[S:].sum()
    log_p = np.log(-np.expm1(-np.maximum(m * hazard, 1e-300)))
    log_p = np.maximum(log_p, _SMALLEST_LOG_P)
    return log_p[:S], log_p[S:]


def _block_sums(blocks: NDArray[np.int64], values: NDArray) -> NDArray:
    total = values[blocks[:, 0]]
    for column in blocks.T[1:]:
        total = total + values[column]
    return total


def _gamma(values: Vector, mean: float, variance: float) -> Vector:
    """Return log p-values by the gamma distribution of this mean and variance."""
    # Of scipy.stats, whose import takes longer than the test of a small set, only this is needed.
    with np.errstate(divide="ignore"):
        log_p = np.log(gammaincc(mean**2 / variance, values * mean / variance))
    return np.maximum(log_p, _SMALLEST_LOG_P)


def gamma_tail(values: Vector, null: Vector) -> Vector:
    """Return log p-values by the gamma distribution with the mean and variance of draws."""
    return _gamma(values, float(null.mean()), float(null.var()) + 1e-12)


def _combined(
    families: list[tuple[str, float, Tails | None]], n_seen: int
) -> tuple[Vector, dict[str, Vector]]:
    """Return the p-values of the families' weighted harmonic mean, and their own."""
    alive = [
        (name, weight, _without_heavy_tail(tails))
        for name, weight, tails in families
        if tails is not None
    ]
    if not alive:
        return np.ones(n_seen), {}
    share = np.array([weight for _, weight, _ in alive])[:, None]
    share = share / share.sum()
    seen = np.stack([tails[0] for _, _, tails in alive])
    drawn = np.stack([tails[1] for _, _, tails in alive])
    statistic = np.log((share * np.exp(-seen)).sum(axis=0))
    draws = np.log((share * np.exp(-drawn)).sum(axis=0))
    own = {name: np.exp(tails[0]) for name, _, tails in alive}
    return np.array([tail_p_value(float(value), draws) for value in statistic]), own


def _without_heavy_tail(tails: Tails) -> Tails:
    """Return log p-values that are not smaller than those of draws show them to be.

    A gamma distribution is too short for sums that hang on a few items. One such family would
    decide the combination by chance alone, and the others would have no say. In the tail log
    p-values of the draws, which should fall one for one, are stretched as far as they surely fall
    too fast.
    """
    seen, drawn = tails
    threshold, rate = _tail(-drawn)
    rate *= 1 + 2 / np.sqrt(max(_TAIL * len(drawn), 1.0))
    stretch = max(1 - rate, 0.0)
    return tuple(log_p + stretch * np.maximum(-log_p - threshold, 0.0) for log_p in (seen, drawn))


def _tail(draws: Vector, prior: float = 0.0) -> tuple[float, float]:
    """Return where the tail begins, and the rate at which it falls from there."""
    n_tail = max(int(_TAIL * len(draws)), 1)
    top = np.partition(draws, -n_tail)[-n_tail:]
    threshold = float(top.min())
    return threshold, float((n_tail + prior) / (top.sum() - n_tail * threshold + prior + 1e-12))


def harmonic_p_value(first: float, second: float, share: float) -> float:
    """Combine two p-values by their weighted harmonic mean, exactly so if they are independent.

    Examples
    --------
    >>> round(harmonic_p_value(0.001, 0.8, 0.75), 4), round(harmonic_p_value(0.5, 0.5, 0.75), 2)
    (0.0013, 0.62)
    """
    w, v = share, 1 - share
    s = w / max(first, _SMALLEST_P) + v / max(second, _SMALLEST_P)
    if s <= 1 + 1e-12 or v <= 0:
        return min(first, 1.0)
    start = w / (s - v)
    logs = np.log(s - w) - np.log(w * v / (s - v))
    return float(min(start + v * ((1 - start) / s + w / s**2 * logs), 1.0))


def tail_p_value(statistic: float, draws: Vector) -> float:
    """Return the p-value of the logarithm of a combination of inverse p-values.

    In the bulk its rank; in the tail the draws' own level, from which on the logarithm of a
    p-value falls one for one. Beyond ranks, it does not depend on the luck of a few draws.
    """
    B = len(draws)
    n_tail = max(int(_TAIL * B), 1)
    threshold, rate = _tail(draws, prior=max(n_tail, _TAIL_PRIOR))
    if statistic <= threshold:
        return float((1 + (draws >= statistic).sum()) / (B + 1))
    return float(n_tail / B * np.exp(-rate * (statistic - threshold)))
