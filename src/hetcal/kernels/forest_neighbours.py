"""Forest similarities item by item, where a vote needs them: thresholds, powers, nearest items.

The similarity of a row to calibration item i is the number of trees in which they share a leaf,
divided by the number of trees that count. Which trees count is said by the leaves: a leaf of -1, on
the side of the rows or of the index, is never shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hetcal._typing import Matrix, Vector
from hetcal.kernels._backend import native
from hetcal.kernels._checks import aligned, check_indices, check_length, check_starts, expect
from hetcal.kernels.forest_model import Forest
from hetcal.kernels.forest_vote import apply, indicator
from hetcal.kernels.parallel import n_threads

_PAIRS_PER_CALL = 50_000_000  # rows x items between two chances to interrupt
_PURE_PAIRS_PER_CALL = 2_000_000  # the pure twin holds that many similarities


@dataclass(frozen=True, eq=False)
class LeafItems:
    """The inverted leaf index: leaf l holds ``items[indptr[l]:indptr[l+1]]``, in increasing order.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_leaves + 1,)
    items : ndarray of int32
    n_items : int
        Number of calibration items.
    n_trees : ndarray of float64, shape (n_items,), or None
        Trees in which each item counts, where that differs between items: then the denominator of
        its similarities.
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    n_items: int
    n_trees: Vector | None = None

    @cached_property
    def compiled(self) -> Any:
        """The index of the compiled core: checked and copied once, when first needed."""
        core = native()
        if core is None:
            raise RuntimeError("LeafItems.compiled belongs to the compiled core, now off.")
        indptr, items, n_trees = aligned(self.indptr, self.items, self.n_trees)
        return core.LeafIndex(indptr, items, self.n_items, n_trees)

    @cached_property
    def checked(self) -> LeafItems:
        """The index itself, checked once, for the pure twin."""
        check_starts("LeafItems", "indptr", self.indptr, len(self.items))
        check_indices("LeafItems", "items", self.items, self.n_items)
        starts = np.zeros(len(self.items) + 1, dtype=bool)
        starts[self.indptr] = True
        rising = self.items[1:] > self.items[:-1]
        expect(
            (rising | starts[1:-1]).all(),
            "LeafItems",
            "items must rise in every leaf",
            "an item that comes late or twice",
        )
        if self.n_trees is not None:
            check_length("LeafItems", "n_trees", self.n_trees, self.n_items)
            expect((self.n_trees >= 0).all(), "LeafItems", "n_trees must be 0 or more", "others")
        return self

    def only(self, chosen: NDArray[np.bool_]) -> LeafItems:
        """Return the index without the items that were not chosen; their numbers stay the same."""
        kept = chosen[self.items]
        before = np.concatenate([[0], np.cumsum(kept)])
        return LeafItems(before[self.indptr], self.items[kept], self.n_items, self.n_trees)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be made again."""
        made = ("compiled", "checked")
        return {name: value for name, value in self.__dict__.items() if name not in made}


@dataclass(frozen=True, eq=False)
class NeighbourVotes:
    """What :func:`thresholded_vote` returns, one row per query.

    Attributes
    ----------
    votes : ndarray of shape (n_rows, n_classes)
        Sum of weight * similarity ** power per class; a row of zeros where nothing is similar.
    support : ndarray of shape (n_rows,)
        Sum of weight * similarity over the items that voted.
    squares : ndarray of shape (n_rows,)
        Sum of squared votes: ``votes.sum(1) ** 2 / squares`` is the effective sample size.
    """

    votes: Matrix
    support: Vector
    squares: Vector


def build_index(n_leaves: int, leaves: NDArray[np.int32], voters: str = "all") -> LeafItems:
    """Return the inverted index of the calibration items' leaves.

    With ``voters="counted"`` some leaves may be -1 and each item is counted over its own trees only
    (out-of-bag voters: pass the result of :func:`out_of_bag_leaves`).
    """
    (leaves,) = aligned(np.ascontiguousarray(leaves, dtype=np.int32))
    counted = (leaves >= 0).sum(axis=1).astype(np.float64) if voters == "counted" else None
    core = native()
    if core is None:
        by_leaf = indicator(leaves, n_leaves).T.tocsr()
        by_leaf.sort_indices()
        indptr, items = by_leaf.indptr.astype(np.int64), by_leaf.indices.astype(np.int32)
        return LeafItems(indptr, items, len(leaves), counted)
    compiled = core.LeafIndex.from_leaves(leaves, n_leaves, counted)
    index = LeafItems(compiled.indptr, compiled.items, len(leaves), counted)
    index.__dict__["compiled"] = compiled  # its arrays are the compiled ones: nothing is held twice
    return index


def out_of_bag_leaves(forest: Forest, leaves: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the calibration items' leaves with -1 in the trees that were grown on the item."""
    if forest.in_bag is None:
        raise ValueError(
            "Out-of-bag leaves need a forest grown with bootstrap=True; "
            "this one saw every item in every tree."
        )
    return np.where(forest.in_bag.T == 0, leaves, np.int32(-1))


@dataclass(frozen=True, eq=False)
class Queries:
    """Rows as the kernels want them: leaves, denominators, and what a row must not see.

    That is an item, or all items of a group where the items' ``groups`` are given; -1 for none.
    """

    leaves: NDArray[np.int32]
    n_trees: Vector
    left_out: NDArray[np.int32]
    groups: NDArray[np.int32] | None = None

    def part(self, rows: slice) -> Queries:
        """Return some of the rows."""
        return Queries(self.leaves[rows], self.n_trees[rows], self.left_out[rows], self.groups)


def queries_from_leaves(
    leaves: NDArray[np.int32],
    left_out: NDArray[Any] | None = None,
    groups: NDArray[Any] | None = None,
) -> Queries:
    """Return queries from leaves; the trees that count for a row are those with a leaf >= 0."""
    (leaves,) = aligned(np.ascontiguousarray(leaves, dtype=np.int32))
    if left_out is None:
        left_out = np.empty(0, dtype=np.int32)
    if groups is not None:
        groups = np.ascontiguousarray(groups, dtype=np.int32)
    n_trees = np.maximum((leaves >= 0).sum(axis=1), 1).astype(np.float64)
    return Queries(leaves, n_trees, np.ascontiguousarray(left_out, dtype=np.int32), groups)


def thresholded_vote(
    forest: Forest,
    index: LeafItems,
    Z: NDArray[Any],
    codes: NDArray[Any],
    n_classes: int,
    **options: Any,
) -> NeighbourVotes:
    """Return the votes of the calibration items that are similar enough to each row of Z.

    Options are those of :func:`neighbour_vote`: ``threshold``, ``power``, ``weight``,
    ``n_neighbors``, ``n_jobs``.
    """
    n_jobs = options.get("n_jobs", 1)
    Z = np.asarray(Z)
    threshold = _per_row(options.pop("threshold", None), len(Z))
    parts = [
        neighbour_vote(
            index,
            _queries_of(forest, Z[rows], n_jobs),
            codes,
            n_classes,
            threshold=threshold[rows],
            **options,
        )
        for rows in _chunks(len(Z), index.n_items)
    ]
    return _joined(parts, n_classes)


def _queries_of(forest: Forest, Z: NDArray[Any], n_jobs: int | None) -> Queries:
    """Return rows as queries: each reaches a leaf in every tree, so none has to be counted."""
    n_trees = np.full(len(Z), float(forest.n_trees))
    return Queries(apply(forest, Z, n_jobs), n_trees, np.empty(0, dtype=np.int32))


def neighbour_vote(
    index: LeafItems,
    queries: Queries,
    codes: NDArray[Any],
    n_classes: int,
    *,
    power: float = 1.0,
    **options: Any,
) -> NeighbourVotes:
    """Return the votes of similar calibration items, by the leaves of the rows.

    Parameters
    ----------
    power : float
        Exponent of the similarity; 0 gives every voter the same vote.
    index, queries, codes, n_classes, **options
        As in :func:`neighbour_votes`.
    """
    return neighbour_votes(index, queries, codes, n_classes, (power,), **options)[0]


def neighbour_votes(
    index: LeafItems,
    queries: Queries,
    codes: NDArray[Any],
    n_classes: int,
    powers: Sequence[float],
    *,
    threshold: Vector | float | None = None,
    weight: Vector | None = None,
    n_neighbors: int | None = None,
    n_jobs: int | None = 1,
) -> list[NeighbourVotes]:
    """Return the votes of similar calibration items with each power, from one search.

    Parameters
    ----------
    index : LeafItems
        From :func:`build_index`.
    queries : Queries
        From :func:`queries_from_leaves`.
    codes : ndarray of int32, shape (n_items,)
        Class of each calibration item.
    powers : sequence of float
        Exponents of the similarity; 0 gives every voter the same vote.
    threshold : float or ndarray of shape (n_rows,), optional
        Items with a positive similarity of at least this vote; where there is none, the nearest
        item does (the lowest of several).
    weight : ndarray of shape (n_items,), optional
        Weight of each item; one of weight zero is not there.
    n_neighbors : int, optional
        At most so many voters per row, the nearest, ties in order of item.
    """
    exponents = np.array(powers, dtype=np.float64)
    threshold = _per_row(threshold, len(queries.leaves))
    expect((n_neighbors or 0) >= 0, "neighbour_vote", "n_neighbors must be positive", n_neighbors)
    if weight is not None:
        weight = np.ascontiguousarray(weight, dtype=np.float64)
        check_length("neighbour_vote", "weight", weight, index.n_items)
        if not weight.all():
            index = index.only(weight > 0)
        elif (weight == 1.0).all():
            weight = None  # items that weigh the same are counted, not added one by one
    codes, weight = aligned(np.ascontiguousarray(codes, dtype=np.int32), weight)
    votes = np.zeros((len(queries.leaves), len(exponents), n_classes))
    sums = np.zeros((len(queries.leaves), len(exponents), 2))
    for rows in _chunks(len(votes), index.n_items):
        part = queries.part(rows)
        core = native()
        if core is None:
            check_length("neighbour_vote", "codes", codes, index.n_items)
            check_indices("neighbour_vote", "codes", codes, n_classes)
            good = not np.isnan(exponents).any()
            expect(good, "neighbour_vote", "power must be a number", exponents)
            expect(
                not np.isnan(threshold).any(), "neighbour_vote", "threshold must be numbers", "NaN"
            )
            S = _similarity_pure(index, part)
            for place, power in enumerate(exponents):
                votes[rows, place], sums[rows, place] = _vote_pure(
                    S, codes, n_classes, weight, threshold[rows], power, n_neighbors
                )
        else:
            index.compiled.vote(
                *_core_arguments(part),
                codes,
                weight,
                threshold[rows],
                exponents,
                int(n_neighbors or 0),
                votes[rows].reshape(-1, n_classes),
                sums[rows].reshape(-1, 2),
                n_threads(n_jobs),
            )
    return [
        NeighbourVotes(np.ascontiguousarray(votes[:, place]), *sums[:, place].T)
        for place in range(len(exponents))
    ]


def top_items(
    index: LeafItems, queries: Queries, top: int, n_jobs: int | None = 1
) -> tuple[NDArray[np.int32], Matrix]:
    """Return the nearest items of each row and their similarities, both of shape (n_rows, top).

    Nearest first, ties in order of item; -1 and 0.0 where fewer items have a positive similarity.
    """
    nearest = np.full((len(queries.leaves), top), -1, dtype=np.int32)
    similarity = np.zeros(nearest.shape)
    for rows in _chunks(len(nearest), index.n_items):
        part = queries.part(rows)
        core = native()
        if core is None:
            nearest[rows], similarity[rows] = _top_pure(_similarity_pure(index, part), top)
        else:
            index.compiled.nearest(
                *_core_arguments(part),
                nearest[rows],
                similarity[rows],
                n_threads(n_jobs),
            )
    return nearest, similarity


def pairwise(index: LeafItems, queries: Queries, n_jobs: int | None = 1) -> Matrix:
    """Return the similarities to every item, shape (n_rows, n_items): pass few rows at a time."""
    core = native()
    if core is None:
        return _similarity_pure(index, queries)
    S = np.zeros((len(queries.leaves), index.n_items))
    index.compiled.pairwise(*_core_arguments(queries), S, n_threads(n_jobs))
    return S


def _core_arguments(queries: Queries) -> tuple[Any, ...]:
    left_out = queries.left_out if len(queries.left_out) else None
    return queries.leaves, queries.n_trees, left_out, queries.groups


def _check_queries(index: LeafItems, queries: Queries) -> None:
    check_length("Queries", "n_trees", queries.n_trees, len(queries.leaves))
    expect((queries.n_trees > 0).all(), "Queries", "n_trees must be more than 0", "others")
    if len(queries.left_out):
        check_length("Queries", "left_out", queries.left_out, len(queries.leaves))
        check_indices("Queries", "left_out", queries.left_out, index.n_items, or_negative=True)
    if queries.groups is not None:
        check_length("Queries", "groups", queries.groups, index.n_items)
        check_indices("Queries", "groups", queries.groups, index.n_items)


def _similarity_pure(index: LeafItems, queries: Queries) -> Matrix:
    index = index.checked
    _check_queries(index, queries)
    n_leaves = len(index.indptr) - 1
    by_leaf = _item_indicator(index, n_leaves)
    shared = (indicator(queries.leaves, n_leaves) @ by_leaf).toarray()
    if len(queries.left_out):
        of_item = np.arange(index.n_items) if queries.groups is None else queries.groups
        shared[queries.left_out[:, None] == of_item] = 0.0
    if index.n_trees is None:
        return shared / queries.n_trees[:, None]
    return shared / np.maximum(index.n_trees, 1.0)


def _item_indicator(index: LeafItems, n_leaves: int) -> Any:
    return sparse.csr_array(
        (np.ones(len(index.items)), index.items, index.indptr), shape=(n_leaves, index.n_items)
    )


def _vote_pure(
    S: Matrix,
    codes: NDArray[Any],
    n_classes: int,
    weight: Vector | None,
    threshold: Vector,
    power: float,
    n_neighbors: int | None,
) -> tuple[Matrix, Matrix]:
    weight = np.ones(len(codes)) if weight is None else weight
    votes_for = (S > 0.0) & (threshold[:, None] <= S)
    if n_neighbors:
        votes_for &= _is_among_nearest(np.where(votes_for, S, 0.0), n_neighbors)
    alone = np.flatnonzero(~votes_for.any(axis=1) & (S > 0.0).any(axis=1))
    votes_for[alone, S[alone].argmax(axis=1)] = True
    ballots = np.where(votes_for, weight * S**power, 0.0)
    one_hot = np.zeros((len(codes), n_classes))
    one_hot[np.arange(len(codes)), codes] = 1.0
    support = np.where(votes_for, weight * S, 0.0).sum(axis=1)
    return ballots @ one_hot, np.column_stack([support, (ballots**2).sum(axis=1)])


def _is_among_nearest(S: Matrix, n_neighbors: int) -> NDArray[np.bool_]:
    order = np.argsort(-S, axis=1, kind="stable")[:, :n_neighbors]
    chosen = np.zeros(S.shape, dtype=bool)
    np.put_along_axis(chosen, order, True, axis=1)
    return chosen


def _top_pure(S: Matrix, top: int) -> tuple[NDArray[np.int32], Matrix]:
    order = np.argsort(-S, axis=1, kind="stable")[:, :top]
    similarity = np.take_along_axis(S, order, axis=1)
    nearest = np.where(similarity > 0.0, order, -1).astype(np.int32)
    missing = ((0, 0), (0, top - order.shape[1]))
    return np.pad(nearest, missing, constant_values=-1), np.pad(similarity, missing)


def _per_row(threshold: Vector | float | None, n_rows: int) -> Vector:
    value = 0.0 if threshold is None else threshold
    return np.ascontiguousarray(np.broadcast_to(np.asarray(value, dtype=np.float64), n_rows))


def _joined(parts: list[NeighbourVotes], n_classes: int) -> NeighbourVotes:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return NeighbourVotes(np.zeros((0, n_classes)), np.zeros(0), np.zeros(0))
    return NeighbourVotes(
        np.concatenate([part.votes for part in parts]),
        np.concatenate([part.support for part in parts]),
        np.concatenate([part.squares for part in parts]),
    )


def _chunks(n_rows: int, n_items: int) -> Iterator[slice]:
    pairs = _PURE_PAIRS_PER_CALL if native() is None else _PAIRS_PER_CALL
    step = max(16, min(pairs // max(n_items, 1), 16_384))
    for first in range(0, n_rows, step):
        yield slice(first, first + step)
