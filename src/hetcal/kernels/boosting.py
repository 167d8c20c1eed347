"""Gradient boosting whose every tree sees a few columns only.

With hundreds of columns that say much the same (pixels, spectra), a tree that may choose among all
of them takes twenty times as long as one that sees a twentieth, and trees that see different
columns are the better committee. scikit-learn's histogram boosting draws columns anew at every
node, which saves nothing, since it counts all of them.

Trees are complete: the children of node v are 2 v + 1 and 2 v + 2, and a node that is not worth a
split sends every item to its left, as every node does with missing values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from hetcal._stored import stored
from hetcal._stored.fields import MOST_CLASSES, array_of, integers, numbers, rising
from hetcal._typing import Matrix
from hetcal.kernels._backend import native
from hetcal.kernels._checks import aligned, check_indices, expect
from hetcal.kernels.parallel import n_threads

Bins = NDArray[np.uint8]
Integers = NDArray[np.int32]

_NEVER = 255  # no bin is larger: everything goes left
_LEAST_GAIN = 1e-10
_LEAST_COLUMNS = 20
_BLOCK_ROWS = 2048
_BLOCK_COLUMNS = 32
_FEW_CUTS = 16  # that are compared with every value sooner than searched
# What a file may ask for.
_MOST_TREES, _MOST_NODES, _MOST_COLUMNS = 1_000_000, 1 << 16, 10_000_000
_RARE = 1e-3  # a class is taken to be at least so frequent, so that the first scores are finite


@dataclass(frozen=True)
class Boosting:
    """How to boost for the logarithmic loss.

    Parameters
    ----------
    n_rounds : int
        Trees per class; with two classes one tree serves both.
    share : float
        Share of the columns, drawn anew for each round, that its trees may use; 20 columns at
        least.
    learning_rate : float
    depth : int
        Splits from the root to a leaf.
    n_bins : int
        Columns are cut into so many bins with about equally many items; 254 at most.
    l2 : float
        Pull of the leaves' values towards 0; more than 0.
    least_mass : float
        Least sum of second derivatives of the loss in a leaf.
    """

    n_rounds: int = 300
    share: float = 0.05
    learning_rate: float = 0.1
    depth: int = 5
    n_bins: int = 8
    l2: float = 0.1
    least_mass: float = 0.01

    def __post_init__(self) -> None:
        if not 2 <= self.n_bins < _NEVER:
            raise ValueError(f"Boosting: n_bins must lie in 2, ..., 254; got {self.n_bins!r}.")
        if not self.l2 > 0:
            raise ValueError(f"Boosting: l2 must be more than 0; got {self.l2!r}.")

    def fit(
        self,
        X: Matrix,
        y: NDArray[np.int64],
        *,
        weight: Matrix | None = None,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> AdditiveTrees:
        """Boost trees on items of two classes or more; NaN in X is a missing value.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.arange(8.0)[:, None]
        >>> trees = Boosting(n_rounds=50).fit(X, np.repeat([0, 1], 4))
        >>> trees.predict_proba(X[[0, 7]]).round(1)
        array([[1., 0.],
               [0., 1.]])
        """
        edges, bins = _cut_columns(X, self.n_bins)
        useful = np.flatnonzero(bins.min(axis=1) < bins.max(axis=1)).astype(np.int32)
        n_drawn = max(_LEAST_COLUMNS, round(self.share * useful.size))
        weight = np.ones(len(y)) if weight is None else weight
        classes, codes = np.unique(y, return_inverse=True)
        truth = np.eye(len(classes))[:, codes]
        truth = truth[1:] if len(classes) == 2 else truth
        start = _first_scores(truth @ weight / weight.sum())
        scores = np.repeat(start[:, None], len(y), axis=1)
        shape = (self.n_rounds, len(start), 2**self.depth - 1)
        column = np.zeros(shape, dtype=np.int32)
        cut = np.full(shape, _NEVER, dtype=np.uint8)
        value = np.zeros((*shape[:2], shape[2] + 1))
        rng = np.random.default_rng(seed)
        for t in range(self.n_rounds if useful.size else 0):
            drawn = np.sort(rng.permutation(useful)[:n_drawn])
            slope, curvature = _derivatives(scores, truth, weight)
            leaf = self._grow(bins, drawn, slope, curvature, column[t], cut[t], n_jobs)
            for s, at in enumerate(leaf):
                value[t, s] = self._leaf_values(at, slope[s], curvature[s])
                scores[s] += value[t, s][at]
        return AdditiveTrees(classes, start, column, _thresholds(column, cut, edges), value)

    def _grow(
        self,
        bins: Bins,
        drawn: Integers,
        slope: Matrix,
        curvature: Matrix,
        column: Integers,
        cut: Bins,
        n_jobs: int | None,
    ) -> Integers:
        """Write the trees of a round into ``column`` and ``cut``; return the leaf of each item."""
        leaf = np.zeros(slope.shape, dtype=np.int32)
        options = self.depth, self.l2, self.least_mass
        core = native()
        if core is not None:
            threads = n_threads(n_jobs)
            core.grow_boosted_trees(
                bins, drawn, slope, curvature, *options, column, cut, leaf, threads
            )
            return leaf
        for s in range(len(slope)):
            _grow_pure(bins, drawn, slope[s], curvature[s], *options, column[s], cut[s], leaf[s])
        return leaf

    def _leaf_values(self, leaf: Integers, slope: Matrix, curvature: Matrix) -> Matrix:
        n_leaves = 2**self.depth
        mass = np.bincount(leaf, curvature, n_leaves) + self.l2
        return -self.learning_rate * (np.bincount(leaf, slope, n_leaves) / mass)


def boosted_residuals(
    X: NDArray,
    residuals: Matrix,
    fold: NDArray[np.int64],
    *,
    weight: Matrix | None = None,
    n_rounds: int = 60,
    learning_rate: float = 0.08,
    depth: int = 3,
    n_bins: int = 32,
    l2: float = 5.0,
    least_mass: float = 15.0,
    seed: int = 0,
    n_jobs: int | None = 1,
) -> Matrix:
    """Return boosted least-squares predictions of residuals, each from the other folds.

    Items of the fold that is predicted have no weight in its trees, but pass down them with the
    others; so all folds and outputs are grown together on one table of bins.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features; NaN is a missing value.
    residuals : ndarray of shape (J, n, C)
        What the trees learn for each fold; the fold's own items do not count.
    fold : ndarray of shape (n,)
        Fold numbers 0..J-1.
    weight : ndarray of shape (n,), optional
    n_rounds, learning_rate, depth, n_bins, l2, least_mass
        As for :class:`Boosting`; the mass of a leaf is the weight of its items.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.repeat([0.0, 1.0], 40)[:, None]
    >>> residuals = np.stack(2 * [np.where(x > 0, 0.3, -0.3)])
    >>> boosted_residuals(x, residuals, np.arange(80) % 2)[[0, -1]].round(1)
    array([[-0.3],
           [ 0.3]])
    """
    trees = Boosting(
        share=1.0, learning_rate=learning_rate, depth=depth, n_bins=n_bins, l2=l2,
        least_mass=least_mass,
    )  # fmt: skip
    _, bins = _cut_columns(X, n_bins)
    useful = np.flatnonzero(bins.min(axis=1) < bins.max(axis=1)).astype(np.int32)
    J, n, C = residuals.shape
    mass = np.repeat(
        (fold != np.arange(J)[:, None]) * (1.0 if weight is None else weight), C, axis=0
    )
    truth = np.ascontiguousarray(residuals.transpose(0, 2, 1)).reshape(J * C, n)
    fitted = np.zeros_like(truth)
    rng = np.random.default_rng(seed)
    n_drawn = max(_LEAST_COLUMNS, int(np.ceil(useful.size * _share_of_columns(useful.size))))
    for _ in range(n_rounds if useful.size else 0):
        drawn = np.sort(rng.permutation(useful)[:n_drawn])
        slope = mass * (fitted - truth)
        column = np.zeros((len(truth), 2**depth - 1), dtype=np.int32)
        cut = np.full(column.shape, _NEVER, dtype=np.uint8)
        for s, at in enumerate(trees._grow(bins, drawn, slope, mass, column, cut, n_jobs)):
            fitted[s] += trees._leaf_values(at, slope[s], mass[s])[at]
    return fitted.reshape(J, C, n)[fold, :, np.arange(n)]


def _share_of_columns(n_columns: int) -> float:
    """Return the share that each round sees: all of few columns, a part of many."""
    return 1.0 if n_columns <= 2 * _LEAST_COLUMNS else np.sqrt(2 * _LEAST_COLUMNS / n_columns)


@stored(
    {
        "classes_": integers(None, low=0, high=MOST_CLASSES),
        "start": numbers(None),
        "column": array_of(np.int32, None, None, None),
        # Behind an infinite one nothing is ever found.
        "threshold": numbers(None, None, None, low=-np.inf, high=np.inf),
        "value": numbers(None, None, None),
    }
)
@dataclass(frozen=True, eq=False)
class AdditiveTrees:
    """Scores that are sums over trees: one score with two classes, else one per class.

    Attributes
    ----------
    classes_ : ndarray of int
        The labels seen, in the order of the probabilities.
    start : ndarray of shape (S,)
        Scores before the first tree.
    column, threshold : ndarray of shape (T, S, 2**depth - 1)
        What a node looks at; larger values go to its right.
    value : ndarray of shape (T, S, 2**depth)
        What a leaf adds to the score.
    """

    classes_: NDArray[np.int64]
    start: Matrix
    column: Integers
    threshold: Matrix
    value: Matrix

    def predict_proba(self, X: Matrix) -> Matrix:
        """Return the probabilities of ``classes_``."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        scores = np.repeat(self.start[None, :], X.shape[0], axis=0)
        core = native()
        if core is None:
            _check_trees(self, X.shape[1])
        column, threshold, value = aligned(self.column, self.threshold, self.value)
        X, scores = aligned(X, scores)
        add = _add_leaves_pure if core is None else core.add_boosted_leaves
        for begin in range(0, X.shape[0], _BLOCK_ROWS):
            rows = slice(begin, begin + _BLOCK_ROWS)
            add(X[rows], column, threshold, value, scores[rows])
        return _probabilities(scores.T).T

    def _check_restored(self) -> None:
        K, who = len(self.classes_), "AdditiveTrees"
        good = K >= 2 and rising(self.classes_, strictly=True)
        expect(good, who, "classes_ must be two or more, sorted", self.classes_)
        S = 1 if K == 2 else K
        T, n_scores, n_nodes = self.column.shape
        expect(n_scores == S, who, f"{S} score(s) for {K} classes", n_scores)
        expect(T * S <= _MOST_TREES, who, f"at most {_MOST_TREES} trees", T * S)
        expect(0 < n_nodes < _MOST_NODES, who, f"1 to {_MOST_NODES - 1} nodes", n_nodes)
        _check_trees(self, _MOST_COLUMNS)


def _cut_columns(X: Matrix, n_bins: int) -> tuple[list[Matrix], Bins]:
    """Return where each column is cut, and the bin of each value, columns first."""
    edges: list[Matrix] = []
    bins = np.empty((X.shape[1], X.shape[0]), dtype=np.uint8)
    for first in range(0, X.shape[1], _BLOCK_COLUMNS):
        # Columns side by side in memory; reading them across the rows takes longer than all else.
        for column in np.ascontiguousarray(X[:, first : first + _BLOCK_COLUMNS].T):
            cuts = _edges(column, n_bins)
            _write_bins(column, cuts, bins[len(edges)])
            edges.append(cuts)
    return edges, bins


def _edges(column: Matrix, n_bins: int) -> Matrix:
    """Return where a column is cut: between distinct values, at about equal counts."""
    known = np.sort(column[~np.isnan(column)])
    distinct = known[np.append(True, known[1:] > known[:-1])] if known.size else known
    if distinct.size <= n_bins:
        below = np.arange(max(distinct.size - 1, 0))
    else:
        wanted = known[np.arange(1, n_bins) * known.size // n_bins]
        below = np.unique(np.minimum(np.searchsorted(distinct, wanted), distinct.size - 2))
    low, high = distinct[below], distinct[below + 1]
    middles = low + (high / 2 - low / 2)
    return np.where(middles < high, middles, low)  # neighbours among floats


def _write_bins(column: Matrix, cuts: Matrix, bins: Bins) -> None:
    """Write the bin of each value; bin 0 is for missing values."""
    if len(cuts) > _FEW_CUTS:
        bins[:] = np.where(np.isnan(column), 0, np.searchsorted(cuts, column) + 1)
        return
    bins[:] = ~np.isnan(column)
    for cut in cuts:
        bins += column > cut


def _thresholds(column: Integers, cut: Bins, edges: list[Matrix]) -> Matrix:
    """Return the largest value that goes left, instead of the largest bin."""
    table = np.full((len(edges), max(map(len, edges)) + 1), -np.inf)
    for row, cuts in zip(table, edges, strict=True):
        row[1 : len(cuts) + 1] = cuts
    return np.where(cut == _NEVER, np.inf, table[column, np.minimum(cut, table.shape[1] - 1)])


def _first_scores(frequency: Matrix) -> Matrix:
    frequency = np.clip(frequency, _RARE, 1 - _RARE)
    return np.log(frequency / (1 - frequency)) if len(frequency) == 1 else np.log(frequency)


def _probabilities(scores: Matrix) -> Matrix:
    """Return the probabilities of the classes, a row per class."""
    if len(scores) > 1:
        return softmax(scores, axis=0)
    second = expit(scores[0])
    return np.stack([1 - second, second])


def _derivatives(scores: Matrix, truth: Matrix, weight: Matrix) -> tuple[Matrix, Matrix]:
    """Return the first and second derivative of the loss, a row per score."""
    p = _probabilities(scores)[-len(scores) :]
    return weight * (p - truth), weight * (p * (1 - p))


def _grow_pure(
    bins: Bins,
    drawn: Integers,
    slope: Matrix,
    curvature: Matrix,
    depth: int,
    l2: float,
    least_mass: float,
    column: Integers,
    cut: Bins,
    leaf: Integers,
) -> None:
    seen = bins[drawn]
    C, B = len(drawn), int(seen.max()) + 1
    items = np.arange(len(leaf))

    def counted(n_nodes: int, among: NDArray[np.int64]) -> Matrix:
        """Sum the derivatives of some items by node, column and bin."""
        place = (leaf[among] * C + np.arange(C)[:, None]) * B + seen[:, among]
        sums: Matrix = np.empty((2, n_nodes * C * B))
        for total, part in zip(sums, (slope, curvature), strict=True):
            total[:] = np.bincount(place.ravel(), np.tile(part[among], C), n_nodes * C * B)
        return sums.reshape(2, n_nodes, C, B)

    sums = counted(1, items)
    for level in range(depth):
        n_nodes = 2**level
        if level > 0:  # the smaller child is counted; the rest of the parent is the other's
            size = np.bincount(leaf, minlength=n_nodes).reshape(-1, 2)
            smaller = np.column_stack([size[:, 0] <= size[:, 1], size[:, 1] < size[:, 0]]).ravel()
            parents, sums = sums, counted(n_nodes, np.flatnonzero(smaller[leaf]))
            larger = np.flatnonzero(~smaller)
            sums[:, larger] = parents[:, larger // 2] - sums[:, larger ^ 1]
        here = slice(n_nodes - 1, 2 * n_nodes - 1)
        G, H = sums.cumsum(axis=3)
        gain = _gains(G, H, l2, least_mass).reshape(n_nodes, -1)
        best = gain.argmax(axis=1)
        split = gain[np.arange(n_nodes), best] > _LEAST_GAIN
        column[here] = np.where(split, drawn[best // (B - 1)], 0)
        cut[here] = np.where(split, best % (B - 1), _NEVER)
        leaf[:] = 2 * leaf + (bins[column[here][leaf], items] > cut[here][leaf])


def _gains(G: Matrix, H: Matrix, l2: float, least_mass: float) -> Matrix:
    """Return what each cut gains; the last axis of ``G`` and ``H`` is cumulative over bins."""
    left, both, left_mass, mass = G[..., :-1], G[..., -1:], H[..., :-1], H[..., -1:]
    right, right_mass = both - left, mass - left_mass
    gain = left * left / (left_mass + l2) + right * right / (right_mass + l2)
    gain = gain - both * both / (mass + l2)
    return np.where((left_mass >= least_mass) & (right_mass >= least_mass), gain, -np.inf)


def _check_trees(trees: AdditiveTrees, n_columns: int) -> None:
    T, S, n_nodes = trees.column.shape
    who = "add_boosted_leaves"
    expect((n_nodes + 1) & n_nodes == 0, who, "trees must have 2**depth - 1 nodes", n_nodes)
    for name, array, shape in (
        ("threshold", trees.threshold, (T, S, n_nodes)),
        ("value", trees.value, (T, S, n_nodes + 1)),
        ("start", trees.start, (S,)),
    ):
        expect(array.shape == shape, who, f"{name} must have shape {shape}", array.shape)
    check_indices(who, "column", trees.column, n_columns)


def _add_leaves_pure(
    X: Matrix, column: Integers, threshold: Matrix, value: Matrix, scores: Matrix
) -> None:
    T, S, n_nodes = column.shape
    rows = np.arange(X.shape[0])
    for t in range(T):
        for s in range(S):
            node = np.zeros(X.shape[0], dtype=np.int64)
            for _ in range(n_nodes.bit_length()):
                node = 2 * node + 1 + (X[rows, column[t, s, node]] > threshold[t, s, node])
            scores[:, s] += value[t, s, node - n_nodes]
