"""Find rows that nearly repeat each other: one event seen several times, with a little noise.

Labels are not looked at. Where rows are drawn one by one from a density of m dimensions, the
distance to the c-th nearest row over that to the next is U^(1/(mc)) with U uniform, whatever the
density is there: a wide gap behind the c nearest is rare, and rarer the more rows lie before it.
Where c others are near-copies of a row, the gap is wide for that row and for each of them. Rows
that are each other's copies in this sense, by the first wide gap, are linked.

Values are replaced by the share of smaller ones, and equal values of a column that has many are
spread over theirs at random, so that rounding is no sign of copies. Columns with few values keep
their ties; where all are such, rows are equal by chance and nothing is said. Some columns may
change from row to row of an event. So a few columns at a time are looked at too, and those in which
the copies found there agree are taken together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.random import Generator
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from hetcal._typing import Matrix, Rows, Vector
from hetcal._validation.containers import without_tensor
from hetcal._validation.features import FeatureEncoder

_FEWEST_ROWS = 40
# How wide a gap is: minus the logarithm of its chance, and the ratio of the distances around it.
_SURE_GAP, _LEAST_RATIO = 7.0, 1.5
_MOST_COPIES = 19  # of a row; more are a sub-population
# Two values of a column that has many are equal with no more than this probability.
_FEW_TIES = 0.05
# Neighbours that tell how distances grow, and how many times fewer to compare with.
_FAR, _TIMES_NEARER = 60, 3
_ASKED = 1000  # rows whose neighbours are looked at, until there is something to see
_PARTS, _PART_SIZES = 12, (3, 4)  # of the columns
_AGREE = 0.1  # copies differ less: half of them in such a column, or that share of them at all
_TIMES_BEST = 4.0
_SOME, _LEAST_SHARE = 0.02, 0.1  # of the rows
_AS_NEAR = 0.95  # of the copies are nearer to each other
_MOST_COLUMNS, _MOST_DIMENSIONS = 60, 10
_QUANTILES = (0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99, 1)


@dataclass(frozen=True, eq=False)
class NearCopies:
    """Rows that nearly repeat each other.

    Attributes
    ----------
    numbers : ndarray of shape (n,)
        Of the cluster that each row belongs to; a row without copies has one of its own.
    nearest : ndarray of shape (n, k)
        The nearest other rows, copies or not.
    joined : ndarray of shape (n,)
        Of larger clusters, which also hold rows that are as near to each other as copies are.
    """

    numbers: Rows
    nearest: Rows
    joined: Rows


def find_near_copies(features: Matrix, *, random_state: int = 0) -> NearCopies | None:
    """Return the rows that nearly repeat each other, None where these are less than a tenth.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Numbers; NaN is missing.
    random_state : int, default=0
        Seed of the places of equal values, of the parts of the columns and of the rows asked.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> events = rng.normal(size=(50, 4))
    >>> rows = np.repeat(events, 3, axis=0) + 0.01 * rng.normal(size=(150, 4))
    >>> int(find_near_copies(rows).numbers.max()) + 1
    50
    >>> find_near_copies(rng.normal(size=(150, 4))) is None
    True
    """
    rng = np.random.default_rng([random_state, 17])
    table = _Ranked.of(features, rng)
    n = len(features)
    if n < _FEWEST_ROWS or not table.n_fine:
        return None
    asked = rng.permutation(n)[:_ASKED]
    seen: dict[tuple[int, ...], _Neighbourhood] = {}
    for columns in table.parts(rng):
        while columns and columns not in seen:
            looked = seen[columns] = table.neighbourhood(columns, asked, rng)
            columns = table.agreeing(looked) if looked.share >= _SOME else ()
    best = max(seen, key=lambda part: seen[part].surprise)
    if seen[best].share < _LEAST_SHARE:
        return None
    everyone = table.neighbourhood(best, np.arange(n), rng, cautious=False)
    numbers = everyone.linked()
    repeated = np.bincount(numbers)[numbers] > 1
    if repeated.mean() < _LEAST_SHARE:
        return None
    return NearCopies(numbers, everyone.nearest, everyone.joined(numbers))


def group_near_copies(X: Any, *, random_state: int = 0) -> Rows:
    """Return numbers of the rows of a table that are equal for rows that nearly repeat each other.

    For ``groups=``, where no column says which rows are of one event: a makeshift, since copies
    that differ much are missed. A row without copies has a number of its own. Labels are not looked
    at: whether copies have one outcome is what :func:`hetcal.advise` asks.

    Parameters
    ----------
    X : array-like or table of shape (n, d)
    random_state : int, default=0
        Seed of the search; the one of :func:`hetcal.advise` gives the clusters that it found.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.normal(size=(50, 4)), 3, axis=0) + 0.01 * rng.normal(size=(150, 4))
    >>> group_near_copies(X)[:6]
    array([0, 0, 0, 1, 1, 1])
    """
    features = np.asarray(FeatureEncoder().fit_transform(without_tensor(X, "X")))
    found = find_near_copies(features, random_state=random_state)
    return np.arange(len(features)) if found is None else found.joined


@dataclass(frozen=True, eq=False)
class _Neighbourhood:
    """Some rows, the nearest of each, how many of these are its copies, and how sure that is."""

    asked: Rows
    nearest: Rows
    n_copies: Rows
    surprise: float
    logs: Matrix

    @property
    def share(self) -> float:
        """Share of the rows asked that have copies."""
        return float(np.mean(self.n_copies > 0))

    def linked(self) -> Rows:
        """Return clusters of rows that are each other's copies, where all rows were asked."""
        n = len(self.n_copies)
        rows = np.repeat(np.arange(n), self.n_copies)
        copies = np.arange(self.nearest.shape[1]) < self.n_copies[:, None]
        links = sparse.coo_array((np.ones(len(rows)), (rows, self.nearest[copies])), shape=(n, n))
        both = links.tocsr().minimum(links.T.tocsr())
        numbers = connected_components(both, directed=False)[1].astype(np.int64)
        too_many = np.bincount(numbers)[numbers] > _MOST_COPIES + 1
        numbers[too_many] = n + np.arange(too_many.sum())
        return np.unique(numbers, return_inverse=True)[1].astype(np.int64)

    def joined(self, numbers: Rows) -> Rows:
        """Return clusters joined by all rows that are as near to each other as copies are.

        Some copies have no gap behind them. To take two events for one costs a little certainty; to
        leave one event in two groups would let each learn the outcome of the other.
        """
        n = len(numbers)
        copies = np.arange(self.nearest.shape[1]) < self.n_copies[:, None]
        own = copies & (numbers[self.nearest] == numbers[:, None])
        near = self.logs <= np.quantile(self.logs[own], _AS_NEAR)
        rows = np.repeat(np.arange(n), near.sum(axis=1))
        first = np.unique(numbers, return_index=True)[1][numbers]
        ends = np.r_[self.nearest[near], first]
        links = sparse.coo_array((np.ones(len(ends)), (np.r_[rows, np.arange(n)], ends)), (n, n))
        return connected_components(links, directed=False)[1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Columns as shares of smaller values, those with many values before those with few."""

    ranks: Matrix
    n_fine: int

    @classmethod
    def of(cls, features: Matrix, rng: Generator) -> _Ranked:
        n, d = features.shape
        fine, coarse = [], []
        for j in rng.permutation(d)[:_MOST_COLUMNS]:
            known = ~np.isnan(features[:, j])
            values = features[known, j]
            counts = np.unique(values, return_counts=True)[1]
            ties = (counts * (counts - 1.0)).sum() / max(len(values) * (len(values) - 1.0), 1.0)
            ranks = np.full(n, 0.5)
            if ties <= _FEW_TIES and len(values) > 1:
                ranks[known] = _spread(values, counts, rng)
                fine.append(ranks)
            elif len(counts) > 1:
                ranks[known] = pd.Series(values).rank(pct=True)
                coarse.append(ranks)
            if 0 < len(values) < n:
                coarse.append(known.astype(float))
        columns = [*fine, *coarse]
        return cls(np.column_stack(columns) if columns else np.empty((n, 0)), len(fine))

    def parts(self, rng: Generator) -> list[tuple[int, ...]]:
        """Return the columns to look at: all, and a few of those with many values at a time."""
        n_columns = self.ranks.shape[1]
        parts = [tuple(range(n_columns))]
        for _ in range(_PARTS if n_columns > min(_PART_SIZES) else 0):
            size = _PART_SIZES[len(parts) % len(_PART_SIZES)]
            parts.append(tuple(sorted(rng.permutation(self.n_fine)[:size].tolist())))
        return parts

    def neighbourhood(
        self, columns: tuple[int, ...], asked: Rows, rng: Generator, *, cautious: bool = True
    ) -> _Neighbourhood:
        """Return the nearest rows of those asked, and which are copies, by some columns.

        ``cautious`` while it is open whether there are any.
        """
        Z = self.ranks[:, columns]
        if Z.shape[1] > _MOST_DIMENSIONS:
            Z = Z @ rng.normal(size=(Z.shape[1], _MOST_DIMENSIONS))
        far = min(_FAR, max(len(Z) // 4, 2 * _MOST_COPIES))
        distance, index = scipy.spatial.KDTree(Z).query(Z[asked], k=far + 1)
        others = index != asked[:, None]
        others[others.all(axis=1), -1] = False
        nearest = index[others].reshape(-1, far)
        logs = np.log(np.maximum(distance[others], np.finfo(float).tiny)).reshape(-1, far)
        # Rows that are equal in columns with few values differ in the others alone.
        dimension = min(
            _dimension(logs, cautious), float(np.sum(np.asarray(columns) < self.n_fine))
        )
        gaps = np.diff(logs[:, : _MOST_COPIES + 1])
        surprise = dimension * np.arange(1, _MOST_COPIES + 1) * gaps
        wide = (surprise >= _SURE_GAP) & (gaps >= np.log(_LEAST_RATIO))
        first, some = wide.argmax(axis=1), wide.any(axis=1)
        in_all = np.where(some, surprise[np.arange(len(first)), first], 0.0).mean()
        return _Neighbourhood(asked, nearest, np.where(some, first + 1, 0), float(in_all), logs)

    def agreeing(self, looked: _Neighbourhood) -> tuple[int, ...]:
        """Return the columns in which rows and their nearest copies agree.

        Those of the columns looked at in which they agree less than in the best are left out: there
        they were chosen to agree. None where all are columns with few values, in which rows are
        equal by chance.
        """
        has = looked.n_copies > 0
        apart = np.abs(self.ranks[looked.asked[has]] - self.ranks[looked.nearest[has, 0]])
        by_column = np.median(apart[:, : self.n_fine], axis=0)
        fine = by_column < min(_AGREE, _TIMES_BEST * by_column.min())
        coarse = np.mean(apart[:, self.n_fine :] > 0, axis=0) < _AGREE
        return tuple(np.flatnonzero(np.r_[fine, coarse]).tolist()) if fine.any() else ()


def _dimension(logs: Matrix, cautious: bool) -> float:
    """Return as which power of their distance the number of neighbours grows, beyond copies.

    Cautious: or nearer by, where it grows less. A curve may fill space when seen from afar; but the
    way from the copies to the next rows is no growth either.
    """
    far = logs.shape[1]
    ends = [far // _TIMES_NEARER**2, far // _TIMES_NEARER, far][0 if cautious else 1 :]
    growth = np.diff(logs[:, [end - 1 for end in ends]]).mean(axis=0)
    return float(np.min(np.diff(np.log(ends)) / np.maximum(growth, np.finfo(float).tiny)))


def _spread(values: Vector, counts: Rows, rng: Generator) -> Vector:
    """Return the share of smaller values, linear between few quantiles; equal values are spread.

    Ranks would leave no gaps between copies and other rows.
    """
    largest = np.abs(values).max()
    # Columns of any scale, the smallest numbers included, have slopes that can be computed.
    values = values / largest if largest > 0 else values
    distinct, place = np.unique(values, return_inverse=True)
    edges, first = np.unique(np.quantile(values, _QUANTILES), return_index=True)
    tied = np.where(counts > 1, counts, 0)[place] / len(values)
    shares = np.interp(distinct, edges, np.array(_QUANTILES)[first])[place]
    return shares + tied * (rng.random(len(values)) - 0.5)
