"""Out-of-sample votes for the calibration items themselves, without growing a second forest.

Two senses of "out of bag". *Query*: item i is a new row only for the trees that did not see it, so
its similarities are counted over those trees. *Voter*: an item votes only through trees that did
not see it, so that its label had no part in making the leaf; its similarities are counted over
those trees. In both senses the item itself does not vote, nor do the items of its group where trees
drew whole groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Vector
from hetcal.kernels.forest_model import Forest
from hetcal.kernels.forest_neighbours import (
    LeafItems,
    NeighbourVotes,
    Queries,
    build_index,
    neighbour_vote,
    out_of_bag_leaves,
    queries_from_leaves,
)
from hetcal.kernels.forest_vote import LeafMass, apply, leaf_class_mass, vote_leaves

SENSES = ("query", "voter")


def out_of_bag_pair(
    forest: Forest,
    leaves: NDArray[np.int32],
    sense: str = "query",
    groups: NDArray[np.int64] | None = None,
) -> tuple[LeafItems, Queries]:
    """Return the index and the queries of the calibration items, in one sense of "out of bag".

    Parameters
    ----------
    leaves : ndarray of int32, shape (n_items, n_trees)
        Leaves of the calibration items, from :func:`hetcal.kernels.forest.apply`.
    sense : {"query", "voter"}
        Which side counts only the trees that did not see the item.
    groups : ndarray of shape (n_items,), optional
        The groups that the trees drew, numbered below n_items.
    """
    _check_sense(sense)
    unseen = out_of_bag_leaves(forest, leaves)
    itself = np.arange(len(leaves)) if groups is None else groups
    if sense == "query":
        return build_index(forest.n_leaves, leaves), queries_from_leaves(unseen, itself, groups)
    return build_index(forest.n_leaves, unseen, voters="counted"), queries_from_leaves(
        leaves, itself, groups
    )


def out_of_bag_vote(
    forest: Forest,
    leaves: NDArray[np.int32],
    codes: NDArray[Any],
    n_classes: int,
    *,
    sense: str = "query",
    weight: Vector | None = None,
    groups: NDArray[np.int64] | None = None,
    **options: Any,
) -> NeighbourVotes:
    """Return the vote about every calibration item, out of bag and without the item or its group.

    Options ``threshold``, ``power`` and ``n_neighbors`` are those of
    :func:`hetcal.kernels.forest.neighbour_vote`. A row of zeros means that no vote was possible.
    """
    index, queries = out_of_bag_pair(forest, leaves, sense, groups)
    return neighbour_vote(index, queries, codes, n_classes, weight=weight, **options)


def out_of_bag_sum(
    forest: Forest,
    leaves: NDArray[np.int32],
    codes: NDArray[Any],
    n_classes: int,
    *,
    sense: str = "query",
    weight: Vector | None = None,
) -> NDArray[np.float64]:
    """Return ``out_of_bag_vote(...).votes`` of the plain vote (all items, power 1) from leaf sums.

    The cost does not grow with the support, and no index is needed.
    """
    _check_sense(sense)
    unseen = out_of_bag_leaves(forest, leaves)
    n_trees = (unseen >= 0).sum(axis=1)
    weight = np.ones(len(leaves)) if weight is None else np.asarray(weight, dtype=np.float64)
    itself = np.arange(len(leaves))
    if sense == "query":
        mass = leaf_class_mass(forest.n_leaves, leaves, codes, n_classes, weight)
        votes = vote_leaves(unseen, mass)
        own = weight * n_trees
        scale = 1.0 / np.maximum(n_trees, 1)
    else:
        mass = voter_mass(forest, leaves, codes, n_classes, weight)
        votes = vote_leaves(leaves, mass)
        own = weight * forest.n_trees * (n_trees > 0)
        scale = np.full(len(leaves), 1.0 / forest.n_trees)
    votes[itself, codes] -= own
    # What subtraction leaves of a vote that was the item's alone is rounding, not support.
    votes[itself, codes] *= votes[itself, codes] > 1e-11 * own
    return votes * scale[:, None]


def voter_mass(
    forest: Forest,
    leaves: NDArray[np.int32],
    codes: NDArray[Any],
    n_classes: int,
    weight: Vector | None = None,
) -> LeafMass:
    """Return leaf sums in which every item votes only through the trees that did not see it.

    Used like any other leaf sums: ``vote(forest, Z, mass) / forest.n_trees`` are the votes, in
    which an item's similarity is the share of *its* out-of-bag trees.
    """
    unseen = out_of_bag_leaves(forest, leaves)
    n_trees = (unseen >= 0).sum(axis=1)
    weight = np.ones(len(leaves)) if weight is None else np.asarray(weight, dtype=np.float64)
    share = weight * forest.n_trees / np.maximum(n_trees, 1)
    return leaf_class_mass(forest.n_leaves, unseen, codes, n_classes, share)


def leaves_of_some_trees(
    leaves: NDArray[np.int32], n_trees: NDArray[Any], rng: np.random.Generator
) -> NDArray[np.int32]:
    """Return new rows' leaves with -1 in all but so many trees per row, drawn at random.

    A calibration item that is out of bag meets about a third of the trees; a new row that is to be
    compared with it must meet no more.
    """
    place = rng.random(leaves.shape).argsort(axis=1).argsort(axis=1)
    return np.where(place < np.asarray(n_trees)[:, None], leaves, np.int32(-1))


def vote_by_some_trees(
    forest: Forest,
    Z: NDArray[Any],
    mass: LeafMass,
    n_trees: NDArray[Any],
    rng: np.random.Generator,
    n_jobs: int | None = 1,
) -> NDArray[np.float64]:
    """Return the mean vote of so many trees per row, drawn at random."""
    leaves = leaves_of_some_trees(apply(forest, Z, n_jobs), n_trees, rng)
    counted = np.maximum((leaves >= 0).sum(axis=1, keepdims=True), 1)
    return vote_leaves(leaves, mass) / counted


def _check_sense(sense: str) -> None:
    if sense not in SENSES:
        raise ValueError(f'Out of bag is meant for the "query" or the "voter"; got {sense!r}.')
