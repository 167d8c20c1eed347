r"""The out-of-bag estimate: Brier gains per neighbourhood, less what pure noise would give.

For the members U of a neighbourhood, with cross-fitted :math:`p_g` and out-of-bag g,

.. math::

    \mathrm{raw} = \overline{B}_U(f) - \overline{B}_U(g) =
    \underbrace{\overline{B}_U(f) - \overline{B}_U(p_g)}_{\text{global}} +
    \underbrace{\overline{B}_U(p_g) - \overline{B}_U(g)}_{\text{local}} .

Out-of-sample predictions pay for what they do not know, so each part is biased low. Labels y* drawn
from the fitted
:math:`p_g`, for which the truth is known and nothing is hidden, show by how much: the means of
:math:`\overline B^*(p_g) - \overline B^*(p_g^*)` and :math:`\overline B^*(p_g) - \overline
B^*(g^*)` are taken off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from hetcal._typing import Matrix, Rows, Vector
from hetcal.heterogeneity.cells import Balls, smoothing_weights
from hetcal.heterogeneity.direction import residual_direction, score_terms, studentised
from hetcal.heterogeneity.global_map import CrossFittedMap
from hetcal.heterogeneity.local_models import LocalModels
from hetcal.heterogeneity.null import draw_labels, null_p_values
from hetcal.kernels.parallel import n_workers, spread

OK, TOO_FEW, ONE_CLASS, NO_NEIGHBOURS = "ok", "too few neighbours", "one class", "no neighbours"
#: Cells whose hh is a number.
MEASURED = (OK, ONE_CLASS)
_DRAWS_FOR_MEANS = 19  # a mean needs fewer draws than a p-value, and these are the dear ones


@dataclass(frozen=True, eq=False)
class Items:
    """The calibration items, checked."""

    P: Matrix
    codes: Rows
    weight: Vector
    groups: Rows | None

    def brier(self, Q: Matrix, codes: Rows | None = None) -> Vector:
        """Return the squared error of each item."""
        codes = self.codes if codes is None else codes
        rows = np.arange(len(Q))
        return (Q**2).sum(axis=1) - 2 * Q[rows, codes] + 1


class NullDraws:
    """Labels from the global map, and what everything global makes of them.

    Parameters
    ----------
    items : Items
    Z : ndarray of shape (n, d)
        Features and log-probabilities for the direction.
    global_map : CrossFittedMap
    n_null : int
        Draws.
    fold : ndarray of int or None
        Folds for the direction; None for out of bag.
    seed : int

    Attributes
    ----------
    labels : ndarray of int, shape (n_null, n)
    terms, variances : ndarray of shape (n, 1 + n_null)
        Terms of the score statistic and their variances: observed labels first, then the draws.
    global_cost : ndarray of shape (n_null, n)
        Brier of the law that made the labels minus that of the map refitted to them.
    law_brier : ndarray of shape (n_null, n)
    """

    def __init__(
        self,
        items: Items,
        Z: NDArray[np.float32],
        global_map: CrossFittedMap,
        *,
        n_null: int,
        fold: NDArray[np.int64] | None,
        seed: int,
        n_jobs: int | None,
    ):
        rng = np.random.default_rng([seed, 1])
        self.labels = draw_labels(global_map.fitted, n_null, rng)
        self.law_brier = (
            np.stack([items.brier(global_map.fitted, y) for y in self.labels])
            if n_null
            else np.empty((0, len(items.codes)))
        )
        self.global_cost = np.empty_like(self.law_brier)
        self.terms = np.empty((len(items.codes), 1 + n_null))
        self.variances = np.empty_like(self.terms)
        law = _Law(global_map, items.P.shape[1], fold, seed)
        for b, (terms, variances, p_g) in enumerate(
            _terms_of_draws(law, Z, items, self.labels, n_jobs), start=-1
        ):
            self.terms[:, b + 1], self.variances[:, b + 1] = terms, variances
            if b >= 0:
                self.global_cost[b] = self.law_brier[b] - items.brier(p_g, self.labels[b])


@dataclass(frozen=True, eq=False)
class _Law:
    """The global map, and how directions are found."""

    global_map: CrossFittedMap
    n_classes: int
    fold: NDArray[np.int64] | None
    seed: int

    def terms(
        self,
        Z: NDArray[np.float32],
        weight: Vector,
        codes: Rows,
        observed: bool,
        n_jobs: int | None,
    ) -> tuple[Vector, Vector, Matrix]:
        """Return terms of the score statistic, their variances, and the map for these labels."""
        p_g = self.global_map.proba if observed else self.global_map.refit(codes)
        residuals = np.eye(self.n_classes)[codes] - p_g
        direction = residual_direction(
            Z, codes, residuals, fold=self.fold, random_state=self.seed, n_jobs=n_jobs
        )
        return *score_terms(residuals, direction, p_g, weight), p_g


def _terms_of_draws(
    law: _Law, Z: NDArray[np.float32], items: Items, labels: Rows, n_jobs: int | None
) -> Iterator[tuple[Vector, Vector, Matrix]]:
    """Yield :meth:`_Law.terms` of the observed labels, then of each draw."""
    yield law.terms(Z, items.weight, items.codes, True, n_jobs)
    if len(labels) and n_workers(n_jobs) > 1:
        given = (Z, items.weight)
        yield from spread(law.terms, ((*given, codes, False, 1) for codes in labels), n_jobs)
        return
    for codes in labels:
        yield law.terms(Z, items.weight, codes, False, n_jobs)


@dataclass(frozen=True, eq=False)
class NullMeans:
    """What noise alone gives, at the centres of a coarse net.

    Attributes
    ----------
    centres : ndarray of shape (m, K)
    total, part_global : ndarray of shape (m,)
        Means over the draws of the raw value and of its global part.
    variance : ndarray of shape (m,)
        Variance of ``total``, from the number of draws being finite.
    """

    centres: Matrix
    total: Vector
    part_global: Vector
    variance: Vector

    @classmethod
    def simulate(
        cls, items: Items, balls: Balls, models: LocalModels, draws: NullDraws, min_neighbors: int
    ) -> NullMeans:
        """Grow local models on the drawn labels."""
        enough = np.flatnonzero(balls.sizes >= min_neighbors)
        balls = balls.subset(enough)
        labels = draws.labels[:_DRAWS_FOR_MEANS]
        if len(balls) == 0 or len(labels) == 0:
            nothing = np.empty(0)
            return cls(np.empty((0, items.P.shape[1])), nothing, nothing, nothing)
        totals, parts = [], []
        start = 0
        for block in models.brier(balls, labels):
            rows = slice(start, start + len(block))
            start += len(block)
            known = np.where(np.isnan(block), np.nan, 0.0)
            gain = draws.law_brier[rows][:, balls.indices] - block
            cost = draws.global_cost[rows][:, balls.indices] + known
            totals.append(balls.averages(gain, items.weight))
            parts.append(balls.averages(cost, items.weight))
        total, part = np.concatenate(totals), np.concatenate(parts)
        spread = total.var(axis=0, ddof=1) if len(total) > 1 else np.zeros(total.shape[1])
        return cls(balls.centres, total.mean(axis=0), part.mean(axis=0), spread / len(total))

    def at(self, P: Matrix, radius: float) -> tuple[Vector, Vector, Vector]:
        """Return ``total``, ``part_global`` and ``variance`` near each point; 0 without draws."""
        if len(self.total) == 0:
            return np.zeros(len(P)), np.zeros(len(P)), np.zeros(len(P))
        weights = smoothing_weights(self.centres, P, radius)
        return weights @ self.total, weights @ self.part_global, weights @ self.variance


def measure(
    items: Items,
    balls: Balls,
    models: LocalModels,
    p_g: Matrix,
    draws: NullDraws,
    null_means: NullMeans,
    radius: float,
    min_neighbors: int,
) -> tuple[pd.DataFrame, Vector]:
    """Return one row per ball, and the gain in squared error from f to g of every member."""
    (brier_local,) = next(models.brier(balls, items.codes[None]))
    known = np.where(np.isnan(brier_local), np.nan, 0.0)
    brier_f, brier_g = items.brier(items.P)[balls.indices], items.brier(p_g)[balls.indices]
    gain = brier_f - brier_local
    raw = balls.averages(gain, items.weight)
    raw_global = balls.averages(brier_f - brier_g + known, items.weight)
    null_total, null_global, null_variance = null_means.at(balls.centres, radius)
    cells = balls.membership(np.ones(balls.n_items))
    T = studentised(draws.terms, draws.variances, cells, items.groups)
    table = pd.DataFrame(
        {
            "hh": raw - null_total,
            "hh_raw": raw,
            "null_mean": null_total,
            "hh_global": raw_global - null_global,
            "hh_local": raw - raw_global - (null_total - null_global),
            "standard_error": np.sqrt(_mean_variance(gain, balls, items) + null_variance),
            "p_value": null_p_values(T[:, 0], T[:, 1:]),
            "q_value": np.nan,
            "n_neighbors": balls.sizes,
            "status": _status(balls, items.codes, min_neighbors),
        }
    )
    silent = ~table["status"].isin(MEASURED)
    table.loc[silent, list(table.columns[:8])] = np.nan
    return table, gain


def whole_set_test(items: Items, draws: NullDraws) -> tuple[float, float]:
    """Return the studentised score statistic over all items and its p-value."""
    everyone = sparse.csr_array(np.ones((1, len(items.codes))))
    T = studentised(draws.terms, draws.variances, everyone, items.groups)
    return float(T[0, 0]), float(null_p_values(T[:, 0], T[:, 1:])[0])


def _status(balls: Balls, codes: Rows, min_neighbors: int) -> list[str]:
    sizes = balls.sizes
    lowest = np.full(len(balls), -1)
    highest = np.full(len(balls), -1)
    some = sizes > 0
    starts = balls.indptr[:-1][some]
    if len(starts):
        lowest[some] = np.minimum.reduceat(codes[balls.indices], starts)
        highest[some] = np.maximum.reduceat(codes[balls.indices], starts)
    return np.select(
        [sizes == 0, sizes < min_neighbors, lowest == highest],
        [NO_NEIGHBOURS, TOO_FEW, ONE_CLASS],
        default=OK,
    ).tolist()


def error_of_mean(gain: Vector, balls: Balls, items: Items, share: Vector) -> float:
    """Return the standard error of the balls' mean gains, averaged with weights ``share``.

    An item is in many balls; its influence on the average is the sum over them.
    """
    influence, ball = _influences(gain, balls, items)
    per_item = np.bincount(balls.indices, weights=influence * share[ball], minlength=balls.n_items)
    if items.groups is not None:
        per_item = np.bincount(items.groups, weights=per_item)
    return float(np.sqrt((per_item**2).sum()))


def _mean_variance(gain: Vector, balls: Balls, items: Items) -> Vector:
    """Return the variance of each ball's weighted mean; items of one group count together."""
    influence, ball = _influences(gain, balls, items)
    if items.groups is None:
        return balls.sums(influence**2)
    shape = (len(balls), int(items.groups.max()) + 1)
    by_group = sparse.coo_array((influence, (ball, items.groups[balls.indices])), shape=shape)
    return by_group.tocsr().power(2).sum(axis=1)


def _influences(gain: Vector, balls: Balls, items: Items) -> tuple[Vector, NDArray[np.int64]]:
    """Return how much each member moves its ball's weighted mean, and the member's ball."""
    ball = np.repeat(np.arange(len(balls)), balls.sizes)
    mean = balls.averages(gain, items.weight)
    weight = np.where(np.isnan(gain), 0.0, items.weight[balls.indices])
    away = np.where(weight > 0, gain - mean[ball], 0.0)
    return away * weight / np.maximum(balls.sums(weight), 1e-300)[ball], ball
