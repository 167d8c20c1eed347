"""What the pure twins check before NumPy and SciPy see it, as the compiled core checks its own.

SciPy trusts the row starts and the column numbers of a sparse matrix, and NumPy takes a negative
index as one from the end: both would read, or write, what is not meant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def aligned(*arrays: Any) -> Any:
    """Return arrays whose values lie where the processor may read them; others are copied.

    What comes from another process (pickled, through dask) may lie anywhere in a message.
    """
    return [array if _readable(array) else np.require(array, requirements="A") for array in arrays]


def _readable(array: Any) -> bool:
    # Asked first: np.require takes as long as a prediction of one row does.
    return not isinstance(array, np.ndarray) or array.flags.aligned


def expect(good: Any, who: str, wanted: str, got: object) -> None:
    """Raise ValueError unless ``good``; say who wanted what, and what came."""
    if not good:
        raise ValueError(f"{who}: {wanted}; got {got}.")


def check_length(who: str, name: str, values: NDArray[Any], n: int) -> None:
    """Expect a vector of n entries."""
    expect(values.shape == (n,), who, f"{name} must have shape ({n},)", values.shape)


def check_indices(
    who: str, name: str, values: NDArray[Any], limit: int, *, or_negative: bool = False
) -> None:
    """Expect whole numbers in [0, limit); with ``or_negative`` a negative one stands for none."""
    wanted = f"{name} must lie in [0, {limit})" + (", or be -1 for none" if or_negative else "")
    if values.size:
        expect(values.max() < limit, who, wanted, values.max())
        expect(or_negative or values.min() >= 0, who, wanted, values.min())


def check_starts(who: str, name: str, starts: NDArray[Any], end: int) -> None:
    """Expect where rows begin: from 0 to ``end``, never falling."""
    wanted = f"{name} must rise from 0 to {end}"
    expect(starts.ndim == 1 and len(starts), who, wanted, f"an array of shape {starts.shape}")
    expect(starts[0] == 0 and starts[-1] == end, who, wanted, f"{starts[0]} to {starts[-1]}")
    # Compared, not subtracted: a difference of 64-bit integers can overflow and look like a rise.
    expect((starts[1:] >= starts[:-1]).all(), who, wanted, "rows that end before they begin")


def check_trees(
    who: str,
    feature: NDArray[Any],
    left: NDArray[Any],
    right: NDArray[Any],
    tree_offset: NDArray[Any],
    n_features: int,
) -> None:
    """Expect binary trees, one after the other, that every walk leaves.

    Children come after their parent and within its tree, and every node but the roots is the child
    of exactly one node.
    """
    n_nodes = len(left)
    for name, values in (("feature", feature), ("right", right)):
        check_length(who, name, values, n_nodes)
    check_starts(who, "tree_offset", tree_offset, n_nodes)
    size = tree_offset[1:] - tree_offset[:-1]  # never negative now, so this cannot overflow
    expect((size > 0).all(), who, "tree_offset must rise", "a tree without nodes")
    inner = left >= 0
    expect(((right >= 0) == inner).all(), who, "nodes must have two children or none", "one child")
    node = np.flatnonzero(inner)
    end = np.repeat(tree_offset[1:], size)[node]
    for child in (left[node], right[node]):
        expect(
            ((child > node) & (child < end)).all(),
            who,
            "children must lie after their parent, in its tree",
            "one that does not",
        )
    parents = np.bincount(np.concatenate([left[node], right[node]]), minlength=n_nodes)
    parents[tree_offset[:-1]] += 1  # roots have none
    expect((parents == 1).all(), who, "left and right must be trees", "a node with two parents")
    check_indices(who, "feature of a node", feature[node], n_features)
