"""A forest's own prediction, from the class frequencies of the items that grew each leaf."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hetcal.kernels._checks import check_indices, check_length
from hetcal.kernels.forest_model import Forest
from hetcal.kernels.forest_vote import LeafMass


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
    n_items, n_trees = leaves.shape
    check_indices("leaf_frequencies", "leaves", leaves, forest.n_leaves)
    check_length("leaf_frequencies", "codes", codes, n_items)
    check_indices("leaf_frequencies", "codes", codes, n_classes)
    drawn = np.ones((n_items, n_trees)) if forest.in_bag is None else forest.in_bag.T.astype(float)
    if weight is not None:
        drawn = drawn * weight[:, None]
    grown = sparse.csr_array(
        (drawn.ravel(), leaves.ravel(), np.arange(n_items + 1) * n_trees),
        shape=(n_items, forest.n_leaves),
    )
    labels = sparse.csr_array(
        (np.ones(n_items), codes, np.arange(n_items + 1)), shape=(n_items, n_classes)
    )
    mass = (grown.T.tocsr() @ labels).tocsr()
    total = np.asarray(mass.sum(axis=1)).ravel()
    frequencies = sparse.diags_array(1.0 / np.where(total > 0, total, 1.0)) @ mass
    return LeafMass.from_sparse(frequencies.tocsr())
