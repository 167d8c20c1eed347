"""Rows through a forest: their leaves, and the votes of what lies in those leaves.

With S[x, i] the share of trees in which x and calibration item i fall into the same leaf, the
similarity-weighted vote sum_i S[x, i] w_i [y_i = k] is a sum over trees of the class weights in the
leaf of x. So no pair of items is ever looked at, and the cost per row hardly grows with their
number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hetcal._stored import stored
from hetcal._stored.fields import LARGEST, MOST_CLASSES, array_of, either, numbers, optional, whole
from hetcal.kernels._backend import native
from hetcal.kernels._checks import aligned, check_indices, check_length, check_starts, expect
from hetcal.kernels.forest_model import Forest
from hetcal.kernels.parallel import n_threads

_DENSE_CLASSES = 4  # up to here a leaf's class weights are stored in full
_ROWS_PER_CALL = 65_536  # rows between two chances to interrupt
_PURE_ROWS_PER_CALL = 4_096


@stored(
    {
        "n_classes": whole(1, MOST_CLASSES),
        "values": either(
            numbers(None, low=0.0, high=LARGEST), numbers(None, None, low=0.0, high=LARGEST)
        ),
        "indptr": optional(array_of(np.int64, None)),
        "classes": optional(array_of(np.int32, None)),
    }
)
@dataclass(frozen=True, eq=False)
class LeafMass:
    """Weight of each class in each leaf.

    Dense for few classes (``indptr`` and ``classes`` None, ``values`` of shape (n_leaves,
    n_classes)); else by rows: leaf l holds ``values[indptr[l]:indptr[l+1]]`` of the classes at the
    same places of ``classes``.
    """

    n_classes: int
    values: NDArray[np.float64]
    indptr: NDArray[np.int64] | None = None
    classes: NDArray[np.int32] | None = None

    @classmethod
    def from_sparse(cls, mass: sparse.csr_array) -> LeafMass:
        """Store a sparse matrix (n_leaves, n_classes), in full where there are few classes."""
        n_classes = mass.shape[1]
        if n_classes <= _DENSE_CLASSES:
            return cls(n_classes, np.ascontiguousarray(mass.toarray()))
        mass.sort_indices()
        return cls(
            n_classes, mass.data, mass.indptr.astype(np.int64), mass.indices.astype(np.int32)
        )

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.values) if self.indptr is None else len(self.indptr) - 1

    @cached_property
    def readable(self) -> Any:
        """Values, indptr and classes for the compiled core: moved once, when first needed."""
        return aligned(self.values, self.indptr, self.classes)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be made again: where arrays lie differs between processes."""
        return {name: value for name, value in self.__dict__.items() if name != "readable"}

    def matrix(self) -> Any:
        """Return the weights as a matrix of shape (n_leaves, n_classes), dense or sparse."""
        self._check_restored()
        if self.indptr is None:
            return self.values
        shape = (self.n_leaves, self.n_classes)
        return sparse.csr_array((self.values, self.classes, self.indptr), shape=shape)

    def toarray(self) -> NDArray[np.float64]:
        """Return the weights as a dense array of shape (n_leaves, n_classes)."""
        matrix = self.matrix()
        return matrix if self.indptr is None else matrix.toarray()

    def _check_restored(self) -> None:
        if self.indptr is None or self.classes is None:
            together = self.indptr is self.classes
            expect(together, "LeafMass", "indptr and classes must come together", "one of them")
            got, shape = self.values.shape, (self.n_leaves, self.n_classes)
            expect(got == shape, "LeafMass", f"values must have shape {shape}", got)
            in_rows = self.values.flags.c_contiguous
            expect(in_rows, "LeafMass", "values must lie row by row", "another order")
            return
        check_starts("LeafMass", "indptr", self.indptr, len(self.values))
        check_length("LeafMass", "values", self.values, len(self.values))
        check_length("LeafMass", "classes", self.classes, len(self.values))
        check_indices("LeafMass", "classes", self.classes, self.n_classes)


def apply(forest: Forest, Z: NDArray[Any], n_jobs: int | None = 1) -> NDArray[np.int32]:
    """Return each row's leaf in every tree, in [0, n_leaves); shape (n_rows, n_trees)."""
    Z = _as_rows(forest, Z)
    core = native()
    leaves = np.empty((len(Z), forest.n_trees), dtype=np.int32)
    for rows in _chunks(len(Z), core):
        if core is None:
            leaves[rows] = _apply_pure(forest, Z[rows])
        else:
            forest.packed.apply(Z[rows], leaves[rows], n_threads(n_jobs))
    return leaves


def vote(
    forest: Forest, Z: NDArray[Any], mass: LeafMass, n_jobs: int | None = 1
) -> NDArray[np.float64]:
    """Return the sum over trees of the class weights in each row's leaf, shape (n_rows, n_classes).

    Divide by ``forest.n_trees`` to have the similarity-weighted votes; their sum is then the
    support.
    """
    Z = _as_rows(forest, Z)
    core = native()
    values, indptr, classes = mass.readable
    votes = np.zeros((len(Z), mass.n_classes))
    for rows in _chunks(len(Z), core):
        if core is None:
            votes[rows] = vote_leaves(_apply_pure(forest, Z[rows]), mass)
        elif mass.indptr is None:
            forest.packed.vote_dense(Z[rows], values, votes[rows], n_threads(n_jobs))
        else:
            forest.packed.vote_sparse(
                Z[rows],
                indptr,
                classes,
                values,
                votes[rows],
                n_threads(n_jobs),
            )
    return votes


def vote_leaves(leaves: NDArray[np.int32], mass: LeafMass) -> NDArray[np.float64]:
    """Return :func:`vote` for rows whose leaves are known; a leaf of -1 does not count."""
    votes = indicator(leaves, mass.n_leaves) @ mass.matrix()
    return votes if isinstance(votes, np.ndarray) else votes.toarray()


def leaf_class_mass(
    n_leaves: int,
    leaves: NDArray[np.int32],
    codes: NDArray[Any],
    n_classes: int,
    weight: NDArray[np.float64] | None = None,
) -> LeafMass:
    """Return the weight of each class in each leaf.

    Parameters
    ----------
    n_leaves : int
        ``forest.n_leaves``.
    leaves : ndarray of int32, shape (n_items, n_trees)
        Leaves of the calibration items, from :func:`apply`; where -1 the item is not counted.
    codes : ndarray of int32, shape (n_items,)
        Class of each item.
    weight : ndarray of shape (n_items,), optional
        Weight of each item, 1 if not given.
    """
    leaves = np.ascontiguousarray(leaves, dtype=np.int32)
    codes = np.ascontiguousarray(codes, dtype=np.int32)
    weight = np.ones(len(leaves)) if weight is None else np.ascontiguousarray(weight, np.float64)
    leaves, codes, weight = aligned(leaves, codes, weight)
    core = native()
    if core is None:
        check_length("leaf_class_mass", "codes", codes, len(leaves))
        check_length("leaf_class_mass", "weight", weight, len(leaves))
        check_indices("leaf_class_mass", "codes", codes, n_classes)
        return _leaf_class_mass_pure(n_leaves, leaves, codes, n_classes, weight)
    if n_classes <= _DENSE_CLASSES:
        values = np.zeros((n_leaves, n_classes))
        core.leaf_mass_dense(leaves, codes, weight, values)
        return LeafMass(n_classes, values)
    indptr, classes, values = core.leaf_mass_sparse(leaves, codes, weight, n_leaves, n_classes)
    return LeafMass(n_classes, values, indptr, classes)


def indicator(leaves: NDArray[np.int32], n_leaves: int) -> sparse.csr_array:
    """Return the sparse matrix with a one where a row reached a leaf, shape (n_rows, n_leaves)."""
    check_indices("indicator", "leaves", leaves, n_leaves, or_negative=True)
    counted = leaves >= 0
    indptr = np.concatenate(([0], np.cumsum(counted.sum(axis=1))))
    indices = leaves[counted]
    return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(leaves), n_leaves))


def _leaf_class_mass_pure(
    n_leaves: int,
    leaves: NDArray[np.int32],
    codes: NDArray[Any],
    n_classes: int,
    weight: NDArray[np.float64],
) -> LeafMass:
    labels = sparse.csr_array(
        (weight, codes, np.arange(len(codes) + 1)), shape=(len(codes), n_classes)
    )
    return LeafMass.from_sparse((indicator(leaves, n_leaves).T.tocsr() @ labels).tocsr())


def _apply_pure(forest: Forest, Z: NDArray[Any]) -> NDArray[np.int32]:
    """Walk all rows through all trees, one level at a time."""
    with np.errstate(over="ignore"):  # beyond float32 a value is infinite and goes right or left
        Z = Z.astype(np.float32, copy=False)
    forest = forest.checked
    node = np.tile(forest.tree_offset[:-1], (len(Z), 1)).ravel()
    row = np.repeat(np.arange(len(Z)), forest.n_trees)
    walking = np.flatnonzero(forest.left[node] >= 0)
    while walking.size:
        at = node[walking]
        value = Z[row[walking], forest.feature[at]]
        goes_left = np.where(
            np.isnan(value), forest.missing_left[at] != 0, value <= forest.threshold[at]
        )
        node[walking] = np.where(goes_left, forest.left[at], forest.right[at])
        walking = walking[forest.left[node[walking]] >= 0]
    return forest.leaf_index[node].reshape(len(Z), forest.n_trees)


def _as_rows(forest: Forest, Z: NDArray[Any]) -> NDArray[Any]:
    (Z,) = aligned(np.asarray(Z))
    if Z.dtype not in (np.float32, np.float64):
        Z = Z.astype(np.float64)
    if Z.ndim != 2 or Z.shape[1] != forest.n_features:
        raise ValueError(
            f"The forest was grown on {forest.n_features} features; got rows of shape {Z.shape}. "
            "Pass a two-dimensional array with the same columns."
        )
    return Z


def _chunks(n_rows: int, core: Any) -> Iterator[slice]:
    step = _PURE_ROWS_PER_CALL if core is None else _ROWS_PER_CALL
    for first in range(0, n_rows, step):
        yield slice(first, first + step)
