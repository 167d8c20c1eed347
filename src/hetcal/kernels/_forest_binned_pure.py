"""The pure twin of the core that grows trees on binned features: the same trees, node for node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix, Vector
from hetcal.kernels.binned_features import MISSING

_64_BITS = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
# Places of random numbers, as in the core's binned_grow.hpp.
_ROOT, _LEFT_CHILD, _RIGHT_CHILD, _THRESHOLD = 2**40, 2**40 + 1, 2**40 + 2, 2**41


class _Split(NamedTuple):
    score: float
    feature: int
    last_left: int
    threshold: float
    missing_left: bool


@dataclass(frozen=True)
class _Items:
    """What a tree grows on; sums have a column per target, then weights, then ones."""

    codes: NDArray[np.uint8]
    low: Matrix
    high: Matrix
    sums: Matrix
    targets: Matrix
    max_features: int
    min_samples_leaf: float
    random_threshold: bool


def grow_tree(given: tuple[Any, ...], seed: int, in_bag: NDArray[np.uint8]) -> tuple[Any, ...]:
    """Grow one tree; arguments and results as those of the core's ``BinnedForestFitter``."""
    codes, low, high, *targets = given[:-8]
    units, n_units, up_to, weight, max_features, least, bootstrap, random_threshold = given[-8:]
    times = np.ones(len(units))
    if bootstrap:
        drawn = [_draw(seed, place, n_units, up_to) for place in range(n_units)]
        times = np.bincount(drawn, minlength=n_units)[units]
        in_bag[0] = np.minimum(times, 255)
    values = targets[0] if len(targets) == 1 else _one_hot(*targets)
    weight = weight * times
    sums = np.column_stack([weight[:, None] * values, weight, np.ones(len(units))])
    edges = low.astype(np.float64), high.astype(np.float64)
    items = _Items(codes, *edges, sums, values, max_features, least, random_threshold)
    nodes: list[tuple[int, float, int, int, int]] = []
    _grow_node(items, np.flatnonzero(times), _random_bits(seed, _ROOT), nodes)
    feature, threshold, left, right, missing_left = zip(*nodes, strict=True)
    return (
        np.array(feature, dtype=np.int32),
        np.array(threshold),
        np.array(left, dtype=np.int32),
        np.array(right, dtype=np.int32),
        np.array(missing_left, dtype=np.uint8),
        np.array([0, len(nodes)], dtype=np.int64),
    )


def _random_below(key: int, place: int, n: int) -> int:
    return ((_random_bits(key, place) >> 32) * n) >> 32


def _random_unit(key: int, place: int) -> float:
    return (_random_bits(key, place) >> 11) * 2.0**-53


def _draw(seed: int, place: int, n_units: int, up_to: Vector) -> int:
    if not len(up_to):
        return _random_below(seed, place, n_units)
    drawn = _random_unit(seed, place) * up_to[-1]
    return min(int(np.searchsorted(up_to, drawn, side="right")), n_units - 1)


def _random_bits(key: int, place: int) -> int:
    z = (key + (place + 1) * _GOLDEN) & _64_BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _64_BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _64_BITS
    return z ^ (z >> 31)


def _one_hot(labels: NDArray[np.int32], n_classes: int) -> Matrix:
    """Return a column per class; with two classes the second says it all."""
    classes = np.arange(n_classes)[-1:] if n_classes == 2 else np.arange(n_classes)
    return (labels[:, None] == classes).astype(np.float64)


def _grow_node(items: _Items, rows: NDArray[np.int64], root_key: int, nodes: list[Any]) -> None:
    """Append the nodes of the tree below some rows, depth first."""
    pending = [(rows, root_key, -1, 0)]
    while pending:
        rows, key, parent, side = pending.pop()
        split = _find_split(items, rows, key)
        place = len(nodes)
        if parent >= 0:
            nodes[parent][2 + side] = place
        if split is None:
            nodes.append([-2, -2.0, -1, -1, 0])
            continue
        nodes.append([split.feature, split.threshold, -1, -1, int(split.missing_left)])
        code = items.codes[split.feature, rows]
        left = np.where(code == MISSING, split.missing_left, code <= split.last_left)
        pending.append((rows[~left], _random_bits(key, _RIGHT_CHILD), place, 1))
        pending.append((rows[left], _random_bits(key, _LEFT_CHILD), place, 0))


def _find_split(items: _Items, rows: NDArray[np.int64], key: int) -> _Split | None:
    sums = items.sums[rows]
    total = _summed(sums)
    targets = items.targets[rows]
    pure = bool((targets == targets[0]).all())
    if len(rows) < 2 or pure or not total[-1] >= 2 * items.min_samples_leaf:
        return None
    order = np.arange(len(items.codes))
    best, found = None, False
    for seen in range(len(order)):
        if seen >= items.max_features and found:
            break
        pick = seen + _random_below(key, seen, len(order) - seen)
        order[[seen, pick]] = order[[pick, seen]]
        f = int(order[seen])
        code = items.codes[f, rows]
        if (code == code[0]).all():
            continue
        found = True
        try_feature = _random_threshold if items.random_threshold else _all_thresholds
        for split in try_feature(items, sums, f, code, total, key):
            if split.score > (-1.0 if best is None else best.score):
                best = split
    return best


def _all_thresholds(
    items: _Items, sums: Matrix, f: int, code: NDArray[np.uint8], total: Vector, key: int
) -> list[_Split]:
    bins = np.flatnonzero(np.bincount(code))
    by_bin = np.column_stack([np.bincount(code, column)[bins] for column in sums.T])
    missing = by_bin[-1] if bins[-1] == MISSING else None
    known = bins[bins != MISSING]
    left: Matrix = np.cumsum(by_bin[: len(known)], axis=0, dtype=np.float64)
    cuts = np.arange(len(known) - 1)
    tried, to_left = left[:-1], left[:-1, -1] > total[-1] - left[:-1, -1]
    if missing is not None:  # to the right, then to the left; at last they alone go right
        both = np.stack([tried, tried + missing], axis=1).reshape(-1, left.shape[1])
        tried, cuts = np.vstack([both, left[-1:]]), np.append(np.repeat(cuts, 2), len(known) - 1)
        to_left = np.append(np.tile([False, True], len(known) - 1), False)
    scores = _scores(items, tried, total)
    if not len(scores) or np.isneginf(scores).all():
        return []
    best = int(scores.argmax())
    cut = cuts[best]
    threshold = np.inf
    if cut < len(known) - 1:
        threshold = items.high[f, known[cut]] / 2.0 + items.low[f, known[cut + 1]] / 2.0
    return [_Split(float(scores[best]), f, known[cut], float(threshold), bool(to_left[best]))]


def _random_threshold(
    items: _Items, sums: Matrix, f: int, code: NDArray[np.uint8], total: Vector, key: int
) -> list[_Split]:
    known = code[code != MISSING].astype(int)
    missing = _summed(sums[code == MISSING]) if len(known) < len(code) else None
    smallest, largest = known.min(), known.max()
    start, end = items.low[f, smallest], items.high[f, largest]
    drawn = start + _random_unit(key, _THRESHOLD + f) * (end - start)
    above = np.searchsorted(items.high[f, smallest:largest], drawn, side="right")
    last = max(int(smallest) + int(above), int(smallest) + 1) - 1
    left = _summed(sums[(code <= last)])
    if smallest == largest:
        return _worth(items, f, last, np.inf, left, False, total)
    before, after = items.high[f, last], items.low[f, last + 1]
    inside = max(drawn, before)
    threshold = inside if inside < after else before / 2.0 + after / 2.0
    return _both_ways(items, f, last, threshold, left, missing, total)


def _both_ways(
    items: _Items,
    f: int,
    last: int,
    threshold: float,
    left: Vector,
    missing: Vector | None,
    total: Vector,
) -> list[_Split]:
    """Return the splits at a threshold: missing values to the right, or to the left."""
    if missing is None:
        most_left = bool(left[-1] > total[-1] - left[-1])
        return _worth(items, f, last, threshold, left, most_left, total)
    to_right = _worth(items, f, last, threshold, left, False, total)
    return to_right + _worth(items, f, last, threshold, left + missing, True, total)


def _worth(
    items: _Items,
    f: int,
    last: int,
    threshold: float,
    left: Vector,
    missing_left: bool,
    total: Vector,
) -> list[_Split]:
    """Return the split with its score, or nothing where a leaf would be too small."""
    (score,) = _scores(items, left[None], total)
    return [] if score == -np.inf else [_Split(score, f, int(last), float(threshold), missing_left)]


def _scores(items: _Items, left: Matrix, total: Vector) -> Vector:
    """Return what splits take off the variance, -inf where a leaf would be too small."""
    least = items.min_samples_leaf
    squares = np.zeros(len(left))
    for k in range(len(total) - 2):
        apart = left[:, k] * total[-2] - total[k] * left[:, -2]
        squares += apart * apart
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = squares / (left[:, -2] * (total[-2] - left[:, -2]))
    large = (left[:, -1] >= least) & (total[-1] - left[:, -1] >= least)
    return np.where(large & ~np.isnan(scores), scores, -np.inf)


def _summed(sums: Matrix) -> Vector:
    """Add rows one after the other, as the core does: NumPy's own sum adds in another order."""
    return np.cumsum(sums, axis=0)[-1] if len(sums) else np.zeros(sums.shape[1])
