"""A dictionary of directions that never sees labels, in families, each with its words.

A direction is a function of the features, and of p where a slope in p is asked for. Because labels
have no part in it, all scores can be looked at together: nothing is held out, and labels drawn
under the null show how large the largest of them is by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix, Vector
from hetcal.heterogeneity.feature_columns import FeatureColumns
from hetcal.heterogeneity.functions_of_p import FunctionsOfP

Floats = NDArray[np.float32]

_QUANTILES = (0.03, 0.07, 0.15, 0.25, 0.4, 0.5, 0.6, 0.75, 0.85, 0.93, 0.97)
_FEW_QUANTILES = (0.1, 0.5, 0.9)
_WAVES = tuple(range(2, 9))
_FEW_WAVES = (2, 3)
_MANY_COLUMNS = 100  # beyond, each column has few directions
_MOST_PAIRS, _MOST_TRIPLES = 800, 300
_MOST_CURVED, _CURVES = 120, 3  # pairs of columns whose surfaces may be curved; waves of each
_MOST_LEVELS, _LEVELS_IN_PAIRS, _LEAST_IN_LEVEL = 60, 8, 5
_MOST_SLOPES = 3
_FUNCTION_OF_P = 0.03  # share of a feature that p leaves, below which it says nothing else
_ITEMS_PER_COMPONENT = 10
_LEAST_VARIANCE = 1e-4  # of a component, as a share of the average: less is rounding


@dataclass(frozen=True)
class Direction:
    """One function of an item: what it looks at and how."""

    kind: str
    columns: tuple[int, ...]
    value: float = 0.0


@dataclass(frozen=True, eq=False)
class Family:
    """Directions that are judged together.

    Attributes
    ----------
    name : str
    weight : float
        Its share in the combination of the families.
    blocks : ndarray of shape (n_blocks, size)
        Numbers of directions. The scores of a block add up; the largest block counts.
    """

    name: str
    weight: float
    blocks: NDArray[np.int64]


class Dictionary:
    """Directions and their families; :meth:`values` computes them for some rows.

    Parameters
    ----------
    columns : FeatureColumns
    slopes : ndarray of shape (n, L)
        Coordinates of p with which features are multiplied.
    space : FunctionsOfP
    by : FeatureColumns, optional
        The columns that the user asks about; a family of their own.
    """

    def __init__(
        self,
        columns: FeatureColumns,
        slopes: Matrix,
        space: FunctionsOfP,
        by: FeatureColumns | None = None,
    ):
        self.columns, self.by = columns, by
        self.directions: list[Direction] = []
        self.families: list[Family] = []
        # Columns lie one after the other in memory: directions read whole columns.
        self.scores = np.asfortranarray(columns.normal_scores())
        self._bent = np.tanh(2 * self.scores)
        spread = slopes.std(axis=0)
        self._slopes = np.clip(
            (slopes - slopes.mean(axis=0)) / np.where(spread > 0, spread, 1.0), -3, 3
        )[:, :_MOST_SLOPES].astype(np.float32, order="F")
        self._by_scores = (columns if by is None else by).normal_scores()
        scores = self.scores.astype(np.float64)
        free = np.flatnonzero(space.share_left(scores) > _FUNCTION_OF_P)
        self._free = free
        self._rotation = uncorrelated(space.residual(self._straight_values()), space.weight)
        self._add_singles(free)
        self._add_products()
        self._add_levels(columns, "", 8.0)
        if by is not None:
            self._add_by(by)

    def __len__(self) -> int:
        return len(self.directions)

    def take(self, rows: NDArray[np.int64]) -> Dictionary:
        """Return the same directions of some items."""
        part = copy(self)
        part.columns, part.scores = self.columns.take(rows), self.scores[rows]
        part._bent, part._slopes = self._bent[rows], self._slopes[rows]
        part.by = None if self.by is None else self.by.take(rows)
        part._by_scores = self._by_scores[rows]
        return part

    # -- making --------------------------------------------------------------------------------

    def _add(self, directions: Iterable[Direction]) -> NDArray[np.int64]:
        first = len(self.directions)
        self.directions += directions
        return np.arange(first, len(self.directions))

    def _family(self, name: str, weight: float, blocks: NDArray[np.int64]) -> None:
        if blocks.size:
            self.families.append(Family(name, weight, blocks))

    def _add_singles(self, free: NDArray[np.int64]) -> None:
        """Add directions that look at one column of numbers."""
        few = len(free) > _MANY_COLUMNS
        distinct = self.columns.n_distinct
        missing = self._add(
            Direction("missing", (j,)) for j in range(self.columns.missing.shape[1])
        )
        straight = self._add(Direction("linear", (j,)) for j in free)
        self._straight = dict(zip(free.tolist(), straight.tolist(), strict=True))
        above = self._add(
            Direction("above", (j,), q)
            for j in free
            for q in self._cuts(j, _FEW_QUANTILES if few else _QUANTILES)
        )
        linear = np.concatenate([straight, missing])
        self._family("linear", 1.0, linear[None])
        together = self._add(Direction("component", (k,)) for k in range(self._rotation.shape[1]))
        self._family("linear, together", 4.0, together[None])
        self._family("single", 2.0, np.concatenate([linear, above])[:, None])
        waves = _FEW_WAVES if few else _WAVES
        wavy = [j for j in free if distinct[j] > len(_WAVES)]
        if wavy:
            bent = self._add(Direction("wave", (j,), m) for j in wavy for m in waves)
            first = np.array([self._straight[j] for j in wavy])[:, None]
            self._family("wave", 2.0, np.hstack([first, bent.reshape(len(wavy), -1)]))
        slope = self._add(
            Direction("slope", (j, m)) for m in range(self._slopes.shape[1]) for j in free
        )
        self._family("slope, all", 1.0, slope[None])
        self._family("slope, one", 1.0, slope[:, None])

    def _cuts(self, j: int, quantiles: tuple[float, ...]) -> list[float]:
        """Return cuts with different items above, none of them empty."""
        ranks = np.unique(self.columns.ranks[:, j])
        place = {np.searchsorted(ranks, q, side="right"): q for q in quantiles}
        return [q for at, q in place.items() if 0 < at < len(ranks)]

    def _add_products(self) -> None:
        """Add products of two columns, and of three where there are few."""
        d = self.scores.shape[1]
        pairs = self._add(Direction("pair", ij) for ij in some_combinations(d, 2, _MOST_PAIRS))
        slopes = [self._add_level_slopes(c) for c in range(len(self.columns.categories))]
        self._family("pairs", 2.0, np.concatenate([pairs, *slopes])[:, None])
        with_sides = [
            (self._straight[i], self._straight[j], pair)
            for pair in pairs
            for i, j in [self.directions[pair].columns]
            if i in self._straight and j in self._straight
        ]
        self._family("pair surfaces", 1.0, np.array(with_sides, dtype=np.int64).reshape(-1, 3))
        if len(pairs) <= _MOST_CURVED:
            self._add_curved_pairs(pairs)
        for first, second in combinations(range(len(self.columns.categories)), 2):
            self._add_level_pairs(first, second)
        if 3 <= d <= 13:
            triples = self._add(
                Direction("triple", ijk) for ijk in some_combinations(d, 3, _MOST_TRIPLES)
            )
            self._family("triples", 0.5, triples[:, None])

    def _add_curved_pairs(self, pairs: NDArray[np.int64]) -> None:
        """Add products of slow waves of two columns; all of a pair count together."""
        distinct = self.columns.n_distinct
        columns = [self.directions[pair].columns for pair in pairs]
        wavy = [ij for ij in columns if min(distinct[list(ij)]) > _CURVES]
        waves = [(a, b) for a in range(1, _CURVES + 1) for b in range(1, _CURVES + 1)]
        at = self._add(Direction("curved pair", (*ij, *ab)) for ij in wavy for ab in waves)
        self._family("curved pairs", 1.0, at.reshape(len(wavy), len(waves)))

    def _common_levels(self, c: int) -> int:
        return min(_LEVELS_IN_PAIRS, int((self.columns.categories[c].counts >= 20).sum()))

    def _add_level_slopes(self, c: int) -> NDArray[np.int64]:
        """Add columns of numbers within levels; a column counts with all levels, and each alone."""
        columns, n_levels = list(self._straight)[:20], self._common_levels(c)
        at = self._add(
            Direction("level slope", (c, level, j)) for j in columns for level in range(n_levels)
        )
        name = self.columns.categories[c].name
        if n_levels:
            self._family(f"slopes by {name}", 1.0, at.reshape(len(columns), n_levels))
        return at

    def _add_level_pairs(self, first: int, second: int) -> None:
        """Add the levels of two categories together."""
        at = self._add(
            Direction("level pair", (first, a, second, b))
            for a in range(self._common_levels(first))
            for b in range(self._common_levels(second))
        )
        names = [self.columns.categories[c].name for c in (first, second)]
        self._family(" and ".join(names), 2.0, at[None])

    def _add_levels(self, columns: FeatureColumns, where: str, weight: float) -> None:
        for c, category in enumerate(columns.categories):
            n_levels = min(_MOST_LEVELS, int((category.counts >= _LEAST_IN_LEVEL).sum()))
            if len(category.levels) < 2 or not n_levels:
                continue
            at = self._add(Direction(f"{where}level", (c, level)) for level in range(n_levels))
            self._family(f"levels of {category.name}", weight, at[None])
            self._family(f"one level of {category.name}", weight / 8, at[:, None])

    def _add_by(self, by: FeatureColumns) -> None:
        """Add what the user asks about: as a whole, with the weight of all the rest together."""
        weight = sum(family.weight for family in self.families) or 1.0
        at = self._add(
            Direction("by above", (j,), q)
            for j in range(by.ranks.shape[1])
            for q in (0.25, 0.5, 0.75)
        )
        straight = self._add(Direction("by linear", (j,)) for j in range(by.ranks.shape[1]))
        self._family("by", weight, np.concatenate([at, straight])[None])
        self._add_levels(by, "by ", weight)

    # -- computing -----------------------------------------------------------------------------

    def values(self, rows: slice, which: NDArray[np.int64] | None = None) -> Floats:
        """Return the directions' values, shape (rows, M)."""
        which = np.arange(len(self)) if which is None else which
        n = len(range(*rows.indices(self.columns.n_items)))
        out = np.empty((len(which), n), dtype=np.float32)
        for kind, places, chosen in self._by_kind(which):
            out[places] = self._of_kind(kind, rows, chosen)
        return out.T

    def _by_kind(
        self, which: NDArray[np.int64]
    ) -> Iterator[tuple[str, NDArray[np.int64], list[Direction]]]:
        kinds: dict[str, list[int]] = {}
        for place, number in enumerate(which):
            kinds.setdefault(self.directions[number].kind, []).append(place)
        for kind, places in kinds.items():
            yield kind, np.array(places), [self.directions[which[place]] for place in places]

    def _of_kind(self, kind: str, rows: slice, chosen: list[Direction]) -> NDArray:
        """Return directions of one kind, a row for each."""
        at = np.array([direction.columns for direction in chosen]).T
        value = np.array([direction.value for direction in chosen], dtype=np.float32)[:, None]
        columns, scores = self._read(kind)
        kind = kind.removeprefix("by ")
        if kind == "linear":
            return scores[rows].T[at[0]]
        if kind == "component":
            return (self._straight_values(rows) @ self._rotation[:, at[0]]).T
        if kind == "missing":
            return columns.missing[rows].T[at[0]]
        if kind == "above":
            return columns.ranks[rows].T[at[0]] > value
        if kind == "wave":
            return np.cos(np.float32(np.pi) * value * columns.ranks[rows].T[at[0]])
        if kind == "slope":
            return scores[rows].T[at[0]] * self._slopes[rows].T[at[1]]
        if kind in ("pair", "triple"):
            bent = self._bent[rows].T
            product = bent[at[0]] * bent[at[1]]
            return product * bent[at[2]] if kind == "triple" else product
        if kind == "curved pair":
            ranks, wave = (
                columns.ranks[rows].T,
                np.float32(np.pi) * at.astype(np.float32)[:, :, None],
            )
            return np.cos(wave[2] * ranks[at[0]]) * np.cos(wave[3] * ranks[at[1]])
        inside = np.stack([columns.categories[c].codes[rows] == level for c, level in at[:2].T])
        if kind == "level pair":
            also = [columns.categories[c].codes[rows] == level for c, level in at[2:].T]
            return inside & np.stack(also)
        return inside * scores[rows].T[at[2]] if kind == "level slope" else inside

    def _straight_values(self, rows: slice = slice(None)) -> Floats:
        """Return the columns that are no functions of p, and what is missing."""
        return np.hstack([self.scores[rows, self._free], self.columns.missing[rows]])

    def _read(self, kind: str) -> tuple[FeatureColumns, Floats]:
        """Return the columns that a kind of direction looks at, and their normal scores."""
        if self.by is None or not kind.startswith("by "):
            return self.columns, self.scores
        return self.by, self._by_scores

    # -- words ---------------------------------------------------------------------------------

    def words(self, number: int) -> str:
        """Return a direction in words: ``"x3 above 2.1"``, ``"region = north"``."""
        direction = self.directions[number]
        columns, _ = self._read(direction.kind)
        kind, at = direction.kind.removeprefix("by "), direction.columns
        if kind == "missing":
            return f"{columns.missing_names[at[0]]} missing"
        if kind in ("level", "level slope"):
            category = columns.categories[at[0]]
            level = f"{category.name} = {category.levels[at[1]]}"
            return level if kind == "level" else f"{columns.names[at[2]]} where {level}"
        if kind == "level pair":
            chosen = [(columns.categories[c], level) for c, level in (at[:2], at[2:])]
            return " and ".join(f"{c.name} = {c.levels[level]}" for c, level in chosen)
        name = columns.names[at[0]]
        if kind == "curved pair":
            curved = "" if at[2:] == (1, 1) else " (curved)"
            return f"{name} times {columns.names[at[1]]}{curved}"
        if kind == "linear" and columns.n_distinct[at[0]] == 2:
            return f"{name} above {columns.cut(at[0], 0.0)}"
        if kind == "linear":
            return f"{name} (larger values)"
        if kind == "above":
            return f"{name} above {columns.cut(at[0], direction.value)}"
        if kind == "wave":
            return f"{name} (waves, {direction.value / 2:g} over its range)"
        if kind == "slope":
            return f"{name} times the log-odds of p"
        return " times ".join(columns.names[j] for j in at)


def uncorrelated(columns: Matrix, weight: Vector) -> Floats:
    """Return combinations of columns, one per column of the result, that are uncorrelated.

    Directions that differences of like columns show count no less than others then. Of more columns
    than the items can tell apart those combinations remain that vary most.
    """
    spread = np.sqrt(np.maximum(weight @ columns**2 / weight.sum(), 1e-300))
    scaled = columns / spread
    variance, axes = np.linalg.eigh(scaled.T @ (weight[:, None] * scaled) / weight.sum())
    most = len(columns) // _ITEMS_PER_COMPONENT
    kept = np.argsort(-variance)[:most]
    kept = kept[variance[kept] > _LEAST_VARIANCE]
    return (axes[:, kept] / spread[:, None] / np.sqrt(variance[kept])).astype(np.float32)


def some_combinations(d: int, size: int, most: int) -> list[tuple[int, ...]]:
    """Return combinations of columns; where there are too many, some by a fixed lot."""
    if size == 2 and d > 200:
        pairs = np.random.default_rng(0).integers(0, d, size=(2 * most, 2))
        chosen = dict.fromkeys((int(i), int(j)) for i, j in np.sort(pairs) if i < j)
        return [pair for pair, _ in zip(chosen, range(most), strict=False)]
    every = list(combinations(range(d), size))
    if len(every) <= most:
        return every
    return [every[k] for k in np.sort(np.random.default_rng(0).permutation(len(every))[:most])]
