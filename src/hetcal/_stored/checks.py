"""Checks of arrays that kernels use as indices, shared by several declarations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored.declaration import expect
from hetcal._stored.fields import LARGEST, in_range, is_array, is_whole, rising, within

_MOST_FEATURES = 10_000_000


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
