"""Blocks of functions of the features, never chosen by labels: one column, two, three, levels.

A block is a small linear space: the functions of one column of numbers (cosines of its rank), the
levels of a category, products of the functions of two columns, slopes in p. Where something
depends on a few columns only, one block or the sum of a few holds nearly all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix
from hetcal.heterogeneity.dictionary import some_combinations
from hetcal.heterogeneity.feature_columns import FeatureColumns

Floats = NDArray[np.float32]

_WAVES, _WAVES_IN_PAIRS, _WAVES_OF_SLOPES = 8, 4, 4
_MOST_LEVELS, _LEVELS_IN_PAIRS, _LEAST_IN_LEVEL = 60, 8, 5
_MOST_COLUMNS, _COLUMNS_IN_TRIPLES = 200, 13
_MOST_PAIRS = 800
_MOST_SLOPES = 3


@dataclass(frozen=True, eq=False)
class Block:
    """A space of functions of an item.

    Attributes
    ----------
    family : str
        Blocks of one kind, among which the best is looked for.
    values : callable
        Returns the functions of all items, shape (n, m).
    parts : list of ndarray
        Numbers of the functions in each of its subspaces, the coarsest first, itself last.
    """

    family: str
    values: Callable[[], Floats]
    parts: list[NDArray[np.int64]]


def blocks_of(columns: FeatureColumns, odds: Matrix) -> list[Block]:
    """Return the blocks of some columns; slopes are those in the log-odds."""
    numbers = [_waves(columns, j) for j in range(min(columns.ranks.shape[1], _MOST_COLUMNS))]
    levels = [_levels(category) for category in columns.categories]
    levels = [indicator for indicator in levels if indicator.shape[1] > 1]
    missing = columns.missing.astype(np.float32)
    straight = np.hstack([columns.normal_scores(), missing])
    found = [_whole("all columns", straight), _whole("missing", missing)]
    found += [_nested("one column", values) for values in numbers]
    found += [_whole("levels", values) for values in levels]
    slopes = _standardised(odds)
    found += [_slope(values, slopes) for values in numbers]
    found += _pairs(numbers, levels)
    if len(numbers) <= _COLUMNS_IN_TRIPLES:
        found += [_triple(values) for values in combinations(numbers, 3)]
    return [block for block in found if len(block.parts[-1])]


def _waves(columns: FeatureColumns, j: int) -> Floats:
    m = np.arange(1, min(_WAVES, int(columns.n_distinct[j]) - 1) + 1, dtype=np.float32)
    return np.cos(np.float32(np.pi) * m * columns.ranks[:, [j]])


def _levels(category) -> Floats:
    most = min(_MOST_LEVELS, int((category.counts >= _LEAST_IN_LEVEL).sum()))
    return (category.codes[:, None] == np.arange(most)).astype(np.float32)


def _standardised(odds: Matrix) -> Floats:
    spread = odds.std(axis=0)
    slopes = (odds - odds.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.clip(slopes, -3, 3)[:, :_MOST_SLOPES].astype(np.float32)


def _whole(family: str, values: Floats) -> Block:
    return Block(family, lambda: values, [np.arange(values.shape[1])])


def _nested(family: str, values: Floats) -> Block:
    sizes = sorted({min(size, values.shape[1]) for size in (1, 2, 4, 8)})
    return Block(family, lambda: values, [np.arange(size) for size in sizes])


def _slope(values: Floats, slopes: Floats) -> Block:
    few = values[:, :_WAVES_OF_SLOPES]
    sizes = sorted({min(size, few.shape[1]) for size in (1, _WAVES_OF_SLOPES)})
    every = np.arange(few.shape[1] * slopes.shape[1])
    return Block(
        "slope",
        lambda: _products(few, slopes),
        [every[every // slopes.shape[1] < size] for size in sizes],
    )


def _pairs(numbers: list[Floats], levels: list[Floats]) -> Iterator[Block]:
    variables = [values[:, :_WAVES_IN_PAIRS] for values in numbers]
    variables += [values[:, :_LEVELS_IN_PAIRS] for values in levels]
    is_number = [True] * len(numbers) + [False] * len(levels)
    for i, j in some_combinations(len(variables), 2, _MOST_PAIRS):
        yield _pair(variables[i], variables[j], is_number[i], is_number[j])


def _pair(first: Floats, second: Floats, cut_first: bool, cut_second: bool) -> Block:
    """Return products of two columns' functions; of numbers, few of them are parts."""
    a, b = first.shape[1], second.shape[1]
    at, of = np.divmod(np.arange(a * b), b)
    parts: list[NDArray[np.int64]] = []
    for size in (1, 2, _WAVES_IN_PAIRS):
        kept = (at < (size if cut_first else a)) & (of < (size if cut_second else b))
        if not parts or kept.sum() > len(parts[-1]):
            parts.append(np.flatnonzero(kept))
    if not (cut_first and cut_second):
        family = "pair" if cut_first or cut_second else "pair of levels"
        return Block(family, lambda: _products(first, second), parts)
    halves, every = np.array([a * b]), np.arange(a * b + 1)
    return Block(
        "pair",
        lambda: np.hstack([_products(first, second), _halves(first, second)]),
        [halves, *parts, every],
    )


def _triple(values: tuple[Floats, ...]) -> Block:
    first, second, third = values
    return Block(
        "triple",
        lambda: np.hstack([first[:, :1] * second[:, :1] * third[:, :1], _halves(*values)]),
        [np.array([0]), np.array([1])],
    )


def _halves(*values: Floats) -> Floats:
    """Return 1 or -1 by the number of columns that are above their medians: even or odd."""
    return np.prod([np.sign(waves[:, :1]) for waves in values], axis=0)


def _products(first: Floats, second: Floats) -> Floats:
    return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)
