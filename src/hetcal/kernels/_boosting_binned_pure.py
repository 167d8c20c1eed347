"""The pure twin of the boosting on binned features: the same trees, by NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix

SLOTS, MISSING_SLOT = 64, 63
_LEAST_GAIN = 1e-10

Whole = NDArray[np.int64]


@dataclass
class _Node:
    items: Whole
    sums: Matrix  # slope, curvature, weight: whole numbers
    gain: float = _LEAST_GAIN
    split: tuple[int, int, bool] | None = None


def grow_trees_pure(
    slots: NDArray[np.uint8],
    learns: NDArray[np.uint8],
    weight: Matrix,
    least_weight: Matrix,
    slope: Matrix,
    curvature: Matrix,
    slope_unit: float,
    half_unit: float,
    l2: float,
    learning_rate: float,
    feature: NDArray[np.int32],
    left: NDArray[np.int32],
    cut: NDArray[np.uint8],
    missing_left: NDArray[np.uint8],
    value: Matrix,
    scores: Matrix,
) -> None:
    """Write one tree per fit and score, and add what it says to the scores."""
    units = np.array([slope_unit, half_unit, half_unit])[:, None]
    for j, s in np.ndindex(slope.shape[:2]):
        whole = np.trunc(np.stack([slope[j, s], curvature[j, s], weight]) * units)
        tree = _Tree(slots, whole, 1 / units[:2, 0], l2, float(least_weight[j]) * half_unit)
        out: Any = [part[j, s] for part in (feature, left, cut, missing_left)]
        nodes = tree.grow(np.flatnonzero(learns[j]), *out)
        for v, node in enumerate(nodes):
            if left[j, s, v] < 0:
                G, H = tree.real(node.sums)
                value[j, s, v] = -learning_rate * (G / H)
        scores[j, s] += value[j, s][_leaves(slots, *out)]


class _Tree:
    def __init__(
        self, slots: NDArray[np.uint8], whole: Matrix, scale: Matrix, l2: float, least: float
    ):
        self.slots, self.whole, self.scale, self.l2, self.least = slots, whole, scale, l2, least

    def real(self, sums: Matrix) -> tuple[Any, Any]:
        """Return slope and curvature, the latter with the pull towards 0."""
        return sums[0] * self.scale[0], sums[1] * self.scale[1] + self.l2

    def worth(self, sums: Matrix) -> Any:
        G, H = self.real(sums)
        return G * G / H

    def node(self, items: Whole) -> _Node:
        return _Node(items, self.whole[:, items].sum(axis=1))

    def grow(
        self,
        items: Whole,
        feature: NDArray[np.int32],
        left: NDArray[np.int32],
        cut: NDArray[np.uint8],
        missing_left: NDArray[np.uint8],
    ) -> list[_Node]:
        """Split the node that gains most, until there are leaves enough or none gains."""
        nodes = [self.searched(self.node(items))]
        while len(nodes) < len(left):
            best = int(np.argmax([node.gain for node in nodes]))
            parent = nodes[best]
            if parent.split is None:
                break
            f, b, to_left = parent.split
            slot = self.slots[parent.items, f]
            goes = np.where(slot == MISSING_SLOT, to_left, slot <= b)
            feature[best], cut[best], missing_left[best], left[best] = f, b, to_left, len(nodes)
            nodes[best] = _Node(parent.items, parent.sums)
            for side in (goes, ~goes):
                nodes.append(self.searched(self.node(parent.items[side])))
        return nodes

    def searched(self, node: _Node) -> _Node:
        """Look for the best split: by feature, slot, and side of the missing values."""
        if node.sums[2] < 2 * self.least:
            return node
        sums = self.histogram(node.items)
        missing = sums[:, :, MISSING_SLOT]
        here = sums[:, :, :MISSING_SLOT].cumsum(axis=2)
        left = np.stack([here, here + missing[:, :, None]], axis=-1)
        right = node.sums[:, None, None, None] - left
        gain = self.worth(left) + self.worth(right) - self.worth(node.sums)
        good = (left[2] >= self.least) & (right[2] >= self.least)
        good &= (sums[2, :, :MISSING_SLOT] > 0)[..., None]
        good[..., 1] &= (missing[2] > 0)[:, None]
        gain = np.where(good, gain, -np.inf)
        f, b, side = np.unravel_index(gain.argmax(), gain.shape)
        if gain[f, b, side] > _LEAST_GAIN:
            larger = left[2, f, b, 0] > right[2, f, b, 0]
            to_left = bool(side) if missing[2, f] > 0 else bool(larger)
            node.gain, node.split = float(gain[f, b, side]), (int(f), int(b), to_left)
        return node

    def histogram(self, items: Whole) -> Matrix:
        """Return sums by feature and slot, shape (3, n_features, 64)."""
        F = self.slots.shape[1]
        place = (np.arange(F) * SLOTS + self.slots[items]).ravel()
        sums: Matrix = np.empty((3, F * SLOTS))
        for total, part in zip(sums, self.whole[:, items], strict=True):
            total[:] = np.bincount(place, np.repeat(part, F), F * SLOTS)
        return sums.reshape(3, F, SLOTS)


def _leaves(
    slots: NDArray[np.uint8],
    feature: NDArray[np.int32],
    left: NDArray[np.int32],
    cut: NDArray[np.uint8],
    missing_left: NDArray[np.uint8],
) -> Whole:
    node = np.zeros(len(slots), dtype=np.int64)
    walking = np.flatnonzero(left[node] >= 0)
    while walking.size:
        at = node[walking]
        slot = slots[walking, feature[at]]
        goes = np.where(slot == MISSING_SLOT, missing_left[at] != 0, slot <= cut[at])
        node[walking] = left[at] + ~goes
        walking = walking[left[node[walking]] >= 0]
    return node
