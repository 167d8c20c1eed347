"""A forest's own prediction, from the classes or the targets of the items that grew each leaf."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hetcal.kernels._checks import check_indices, check_length, expect
from hetcal.kernels.forest_model import Forest
from hetcal.kernels.forest_neighbours import out_of_bag_leaves
from hetcal.kernels.forest_vote import LeafMass, indicator


def leaf_frequencies(
    forest: Forest,
    leaves: NDArray[np.int32],
    codes: NDArray[np.int64],
    n_classes: int,
    weight: NDArray[np.float64] | None = None,
) -> LeafMass:
    """Return the class frequencies in every leaf, among the items that grew it.

    ``vote(forest, Z, frequencies) / forest.n_trees`` is then what scikit-learn's ``predict_proba``
    gives, and the mean over the trees that have not seen an item its out-of-bag prediction.

    Parameters
    ----------
    forest : Forest
    leaves : ndarray of int32, shape (n_items, n_trees)
        Leaves of the calibration items, from :func:`hetcal.kernels.forest.apply`.
    codes : ndarray of shape (n_items,)
        Class of each item.
    weight : ndarray of shape (n_items,), optional
        Weight of each item.
    """
    n_items = len(leaves)
    check_indices("leaf_frequencies", "leaves", leaves, forest.n_leaves)
    check_length("leaf_frequencies", "codes", codes, n_items)
    check_indices("leaf_frequencies", "codes", codes, n_classes)
    grown = _grown(forest, leaves, weight)
    labels = sparse.csr_array(
        (np.ones(n_items), codes, np.arange(n_items + 1)), shape=(n_items, n_classes)
    )
    mass = (grown.T.tocsr() @ labels).tocsr()
    total = np.asarray(mass.sum(axis=1)).ravel()
    frequencies = sparse.diags_array(1.0 / np.where(total > 0, total, 1.0)) @ mass
    return LeafMass.from_sparse(frequencies.tocsr())


def out_of_bag_means(
    forest: Forest,
    leaves: NDArray[np.int32],
    targets: NDArray[np.float64],
    weight: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the forest's prediction of each item's targets by the trees that have not seen it.

    A tree predicts the mean over the items that grew the leaf, the forest the mean over trees.

    Parameters
    ----------
    forest : Forest
        Grown with bootstrap.
    leaves : ndarray of int32, shape (n_items, n_trees)
        Leaves of the items, from :func:`hetcal.kernels.forest.apply`.
    targets : ndarray of shape (n_items, n_targets)
    weight : ndarray of shape (n_items,), optional
        What an item counts each time it was drawn, as by
        :meth:`hetcal.kernels.forest_binned.BinnedForest.weight_per_draw`.

    Returns
    -------
    ndarray of shape (n_items, n_targets)
        NaN for items that every tree has seen.
    """
    check_indices("out_of_bag_means", "leaves", leaves, forest.n_leaves)
    expect(
        targets.ndim == 2 and len(targets) == len(leaves),
        "out_of_bag_means",
        f"targets must have {len(leaves)} rows",
        targets.shape,
    )
    grown = _grown(forest, leaves, weight)
    total = np.asarray(grown.sum(axis=0)).ravel()
    means = (grown.T @ targets) / np.where(total > 0, total, 1.0)[:, None]
    unseen = out_of_bag_leaves(forest, leaves)
    n_trees = (unseen >= 0).sum(axis=1)[:, None]
    sums = indicator(unseen, forest.n_leaves) @ means
    return np.divide(sums, n_trees, out=np.full_like(sums, np.nan), where=n_trees > 0)


def _grown(
    forest: Forest, leaves: NDArray[np.int32], weight: NDArray[np.float64] | None
) -> sparse.csr_array:
    """Return how much each item counted when each leaf grew, shape (n_items, n_leaves)."""
    n_items, n_trees = leaves.shape
    drawn = np.ones((n_items, n_trees)) if forest.in_bag is None else forest.in_bag.T.astype(float)
    if weight is not None:
        drawn = drawn * weight[:, None]
    return sparse.csr_array(
        (drawn.ravel(), leaves.ravel(), np.arange(n_items + 1) * n_trees),
        shape=(n_items, forest.n_leaves),
    )
