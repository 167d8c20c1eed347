"""Trees of the kernels, and sums in their leaves: checked before any kernel sees them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetcal._stored import exactly, expect
from hetcal._stored.checks import check_starts, check_trees
from hetcal._stored.fields import (
    LARGEST,
    MOST_CLASSES,
    anything,
    in_range,
    integers,
    is_array,
    numbers,
    rising,
    whole,
    within,
)
from hetcal.kernels.boosting import AdditiveTrees
from hetcal.kernels.forest import Forest, LeafMass
from hetcal.kernels.forest_model import assemble
from hetcal.persistence.spec import Spec, plain

_NODE_ARRAYS = {
    "feature": "<i4",
    "threshold": "<f8",
    "left": "<i4",
    "right": "<i4",
    "missing_left": "|u1",
}
_MOST_TREES = 1_000_000
_MOST_COLUMNS = 10_000_000
# First what the checks take for a while; later numbers of leaves, the layout of the compiled core
# and leaf sums.
_BYTES_PER_NODE = 48


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


def _check_complete(trees: AdditiveTrees) -> None:
    K = len(trees.classes_)
    expect(K >= 2 and rising(trees.classes_, strictly=True), trees, "has wrong classes")
    S = 1 if K == 2 else K
    expect(len(trees.start) == S, trees, "has wrong first scores")
    column: Any = trees.column
    good = is_array(column, "i", (None, S, None)) and column.dtype == np.int32
    expect(good and in_range(column, 0, _MOST_COLUMNS), trees, "has wrong columns")
    T, _, n_nodes = column.shape
    # Complete trees have one node less than a power of two.
    expect(0 < n_nodes < 1 << 16 and n_nodes & (n_nodes + 1) == 0, trees, "has odd trees")
    expect(T * S <= _MOST_TREES, trees, "has too many trees")
    expect(trees.threshold.shape == (T, S, n_nodes), trees, "has wrong thresholds")
    expect(trees.value.shape == (T, S, n_nodes + 1), trees, "has wrong values")


def _thresholds(value: Any) -> bool:
    """Take 64-bit numbers, also infinite ones: behind these nothing is ever found."""
    return is_array(value, "f", (None, None, None)) and (
        value.dtype == np.float64 and within(value, -np.inf, np.inf)
    )


_COMPLETE = {
    "classes_": integers(None, low=0, high=MOST_CLASSES),
    "start": numbers(None),
    "column": anything,
    "threshold": _thresholds,
    "value": numbers(None, None, None),
}

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
    plain(AdditiveTrees, _COMPLETE, check=_check_complete),
]
