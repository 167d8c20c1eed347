"""The leaves of calibration items in a forest, stored in as few bytes as that takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored.declaration import expect
from hetcal._stored.fields import is_array


def leaves(value: Any) -> bool:
    """Take leaves that :func:`unpack_leaves` has made."""
    return isinstance(value, np.ndarray) and value.dtype == np.int32


def leaf_bytes(packed: Any) -> int:
    """Return what the leaves of items take: their numbers, and the index from leaves to items."""
    return 8 * np.size(packed)


def unpacked(who: Any, state: dict[str, Any], forest_class: type) -> dict[str, Any]:
    """Return a stored state with its leaves counted over the whole forest."""
    forest: Any = state.get("forest_")
    expect(isinstance(forest, forest_class), who, "has no forest")
    found = unpack_leaves(who, forest, state.get("leaves_"))
    in_bag = forest.in_bag
    expect(in_bag is None or in_bag.shape[1] == len(found), who, "has a wrong in_bag")
    return state | {"leaves_": found}


def pack_leaves(forest: Any, leaves: NDArray[np.int32]) -> NDArray:
    """Return the items' leaves counted within each tree, in as few bytes as that takes."""
    within_tree = leaves - _first_leaves(forest)[:-1]
    return within_tree.astype(np.min_scalar_type(int(within_tree.max(initial=0))))


def unpack_leaves(who: Any, forest: Any, packed: Any) -> NDArray[np.int32]:
    """Return leaves counted over the forest, after checking that each belongs to its tree."""
    good = is_array(packed, "u", (None, forest.n_trees)) and packed.dtype.itemsize <= 4
    expect(good, who, "has leaves of another forest")
    expect(len(packed) > 0, who, "has no calibration items")
    first = _first_leaves(forest)
    expect((packed.max(axis=0) < np.diff(first)).all(), who, "has leaves that are not there")
    # Straight into the type of the kernels: a wider sum would take three times the memory.
    leaves = np.empty(packed.shape, dtype=np.int32)
    return np.add(packed, first[:-1], out=leaves, casting="unsafe")


def _first_leaves(forest: Any) -> NDArray[np.int64]:
    """Return the number of the first leaf of each tree, and the number of leaves at the end."""
    counted = np.concatenate([[0], np.cumsum(forest.left < 0)])
    return counted[forest.tree_offset]
