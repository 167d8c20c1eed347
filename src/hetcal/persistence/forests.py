"""Forests and what hangs on their leaves: stored compactly, checked before any kernel sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal.kernels.forest import Forest, LeafMass
from hetcal.kernels.forest_model import assemble
from hetcal.persistence.fields import LARGEST, in_range, is_array, is_whole, rising, whole, within
from hetcal.persistence.spec import Spec, exactly, expect, plain

MOST_CLASSES = 1 << 24
_MOST_FEATURES = 10_000_000
_NODE_ARRAYS = {
    "feature": "<i4",
    "threshold": "<f8",
    "left": "<i4",
    "right": "<i4",
    "missing_left": "|u1",
}
# First what the checks take for a while; later numbers of leaves, the layout of the compiled core
# and leaf sums.
_BYTES_PER_NODE = 48


def check_trees(
    who: Any,
    feature: NDArray,
    left: NDArray,
    right: NDArray,
    tree_offset: NDArray,
    n_features: int,
) -> None:
    """Check that node arrays are binary trees, one after the other, that every walk leaves.

    Children come after their parent and within its tree, and every node but the roots is the child
    of exactly one node; so no walk can loop or leave the arrays.
    """
    n_nodes = len(left)
    expect(0 < n_nodes < 2**31 - 1, who, "has no nodes, or too many")
    check_starts(who, tree_offset, n_nodes, strictly=True)
    expect(len(tree_offset) >= 2, who, "has no trees")
    inner = left >= 0
    expect(((right >= 0) == inner).all(), who, "has a node with one child")
    node = np.flatnonzero(inner)
    end = np.repeat(tree_offset[1:], np.diff(tree_offset))[node]
    for child in (left[node], right[node]):
        expect(((child > node) & (child < end)).all(), who, "has a child before its parent")
    parents = np.bincount(np.concatenate([left[node], right[node]]), minlength=n_nodes)
    parents[tree_offset[:-1]] += 1  # roots have none
    expect((parents == 1).all(), who, "has a node with two parents, or none")
    expect(is_whole(n_features, 1, _MOST_FEATURES), who, "has no features, or too many")
    expect(in_range(feature[node], 0, n_features), who, "looks at features that are not there")


def check_starts(who: Any, starts: Any, end: int, *, strictly: bool) -> None:
    """Check where the parts of an array begin: at 0, one after the other, up to its end."""
    good = (
        is_array(starts, "i", (None,))
        and starts.dtype == np.int64
        and len(starts) > 0
        and starts[0] == 0
        and starts[-1] == end
        and rising(starts, strictly=strictly)
    )
    expect(good, who, "has parts that do not follow each other")


def leaf_bytes(packed: Any) -> int:
    """Return what the leaves of items take: their numbers, and the index from leaves to items."""
    return 8 * np.size(packed)


def pack_leaves(forest: Forest, leaves: NDArray[np.int32]) -> NDArray:
    """Return the items' leaves counted within each tree, in as few bytes as that takes."""
    within_tree = leaves - _first_leaves(forest)[:-1]
    return within_tree.astype(np.min_scalar_type(int(within_tree.max(initial=0))))


def unpack_leaves(who: Any, forest: Forest, packed: Any) -> NDArray[np.int32]:
    """Return leaves counted over the forest, after checking that each belongs to its tree."""
    good = is_array(packed, "u", (None, forest.n_trees)) and packed.dtype.itemsize <= 4
    expect(good, who, "has leaves of another forest")
    expect(len(packed) > 0, who, "has no calibration items")
    first = _first_leaves(forest)
    expect((packed.max(axis=0) < np.diff(first)).all(), who, "has leaves that are not there")
    # Straight into the type of the kernels: a wider sum would take three times the memory.
    leaves = np.empty(packed.shape, dtype=np.int32)
    return np.add(packed, first[:-1], out=leaves, casting="unsafe")


def check_codes(who: Any, codes: Any, n_items: int, n_classes: int) -> None:
    """Check the class codes of the calibration items."""
    expect(is_array(codes, "i", (n_items,)), who, "does not have one label per item")
    expect(in_range(codes, 0, n_classes), who, "has labels of no class")


def check_weight(who: Any, weight: Any, n_items: int) -> None:
    """Check the weights of the calibration items."""
    good = weight is None or (
        is_array(weight, "f", (n_items,))
        and weight.dtype == np.float64
        and within(weight, 0.0, LARGEST)
    )
    expect(good, who, "does not have one finite weight per item")


def check_mass(who: Any, mass: Any, n_leaves: int, n_classes: int) -> None:
    """Check leaf sums against the forest whose leaves they belong to."""
    expect(isinstance(mass, LeafMass), who, "has no leaf sums")
    expect(mass.n_leaves == n_leaves, who, "has leaf sums of another forest")
    expect(mass.n_classes == n_classes, who, "has leaf sums of other classes")


def _first_leaves(forest: Forest) -> NDArray[np.int64]:
    """Return the number of the first leaf of each tree, and the number of leaves at the end."""
    counted = np.concatenate([[0], np.cumsum(forest.left < 0)])
    return counted[forest.tree_offset]


def _pack_forest(forest: Forest) -> dict[str, Any]:
    state = {name: getattr(forest, name) for name in _NODE_ARRAYS}
    return state | {
        "tree_offset": forest.tree_offset,
        "n_features": forest.n_features,
        "in_bag": forest.in_bag,
    }


def _unpack_forest(state: dict[str, Any]) -> Forest:
    exactly(state, {*_NODE_ARRAYS, "tree_offset", "n_features", "in_bag"}, Forest)
    n_nodes = len(state["left"])
    for name, dtype in _NODE_ARRAYS.items():
        # The very type that kernels use: a cast could turn a leaf's -2**32 into a child.
        good = is_array(state[name], dtype[1], (n_nodes,)) and state[name].dtype.str == dtype
        expect(good, Forest, f"has a wrong {name}")
    offset, in_bag = state["tree_offset"], state["in_bag"]
    check_trees(
        Forest, state["feature"], state["left"], state["right"], offset, state["n_features"]
    )
    # Infinite is fine: it parts missing values from all others.
    expect(not np.isnan(state["threshold"]).any(), Forest, "has thresholds that are no number")
    counted = in_bag is None or (
        is_array(in_bag, "u", (len(offset) - 1, None)) and in_bag.dtype == np.uint8
    )
    expect(counted, Forest, "has a wrong in_bag")
    return assemble(**state)


def _check_leaf_mass(mass: LeafMass) -> None:
    values: Any = mass.values
    if mass.indptr is None:
        expect(mass.classes is None, LeafMass, "is neither dense nor sparse")
        expect(is_array(values, "f", (None, mass.n_classes)), LeafMass, "has wrong values")
        expect(values.flags.c_contiguous, LeafMass, "has wrong values")
    else:
        expect(is_array(values, "f", (None,)), LeafMass, "has wrong values")
        classes: Any = mass.classes
        good = is_array(classes, "i", (len(values),)) and classes.dtype == np.int32
        expect(good and in_range(classes, 0, mass.n_classes), LeafMass, "has odd classes")
        check_starts(LeafMass, mass.indptr, len(values), strictly=False)
    expect(values.dtype == np.float64, LeafMass, "has values of another type")
    expect(within(values, 0.0, LARGEST), LeafMass, "has sums that no weights have")


def _anything_of_array(value: Any) -> bool:
    return value is None or isinstance(value, np.ndarray)


SPECS = [
    Spec(
        Forest,
        _pack_forest,
        _unpack_forest,
        lambda state: _BYTES_PER_NODE * np.size(state["left"]),
    ),
    plain(
        LeafMass,
        {
            "n_classes": whole(1, MOST_CLASSES),
            "values": _anything_of_array,
            "indptr": _anything_of_array,
            "classes": _anything_of_array,
        },
        check=_check_leaf_mass,
    ),
]
