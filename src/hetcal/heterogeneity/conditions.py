"""Conditions on one column, in words and as masks: the bricks of which rules are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix
from hetcal._validation import FeatureEncoder
from hetcal._validation.containers import as_frame
from hetcal._validation.text import short

Mask = NDArray[np.bool_]

_QUANTILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_FEW_QUANTILES = (0.25, 0.5, 0.75)
_MANY_COLUMNS = 100
_FREQUENT = 0.3
_FEW_VALUES = 6  # numbers with up to this many distinct values are cut between any two


@dataclass(frozen=True)
class Column:
    """One column of the table: a name, and numbers or level codes.

    Attributes
    ----------
    name : str
    values : ndarray of shape (n,)
        Numbers (NaN: missing), or positions in ``levels`` (-1: missing).
    levels : list or None
        Names of the levels of a categorical column.
    """

    name: str
    values: NDArray
    levels: list | None


@dataclass(frozen=True)
class Condition:
    """``column <= cut``, ``column > cut`` or ``column = level``; missing values never fulfil it."""

    column: int
    name: str
    kind: str
    value: Any
    code: float

    def mask(self, columns: list[Column]) -> Mask:
        """Return which items satisfy the condition."""
        values = columns[self.column].values
        if self.kind == "=":
            return values == self.code
        with np.errstate(invalid="ignore"):
            return values <= self.code if self.kind == "<=" else values > self.code

    def __str__(self) -> str:
        value = short(self.value) if isinstance(self.value, float) else str(self.value)
        return f"{self.name} {self.kind} {value}"


def columns_of(table: Any) -> list[Column]:
    """Read a table or array as named columns, categorical ones by their levels.

    Examples
    --------
    >>> import pandas as pd
    >>> age, region = columns_of(pd.DataFrame({"age": [31, 58], "region": ["north", "south"]}))
    >>> age.levels, region.levels, region.values
    (None, ['north', 'south'], array([0, 1]))
    """
    encoder = FeatureEncoder().fit(table)
    return encoded_columns(table, encoder, np.asarray(encoder.transform(table)))


def encoded_columns(table: Any, encoder: FeatureEncoder, matrix: Matrix) -> list[Column]:
    """Return the named columns of a table that was encoded already."""
    frame = as_frame(table)
    names = (
        [str(name) for name in frame.columns]
        if frame is not None
        else [f"x{j}" for j in range(encoder.n_features_in_)]
    )
    truths = _columns_of_truth_values(table, len(names))
    columns, place = [], 0
    for j, name in enumerate(names):
        if j in encoder.levels_:
            levels = encoder.levels_[j]
            block = matrix[:, place : place + len(levels)]
            codes = np.where(block.any(axis=1), block.argmax(axis=1), -1) if levels else None
            if codes is not None:
                columns.append(Column(name, codes, list(levels)))
            place += len(levels)
        else:
            columns.append(_column(name, matrix[:, place], is_truth=j in truths))
            place += 1
    return columns


def _column(name: str, values: NDArray[np.float64], *, is_truth: bool) -> Column:
    """Return numbers as they are, and True and False as levels: nobody asks for "vip <= 0"."""
    if not is_truth:
        return Column(name, values, None)
    return Column(name, np.where(np.isnan(values), -1, values).astype(np.int64), [False, True])


def _columns_of_truth_values(table: Any, n_columns: int) -> set[int]:
    frame = as_frame(table)
    if frame is not None:
        return {j for j, dtype in enumerate(frame.schema.values()) if dtype == nw.Boolean}
    is_bool = getattr(getattr(table, "dtype", None), "kind", None) == "b"
    return set(range(n_columns)) if is_bool else set()


def candidate_conditions(columns: list[Column], rows: NDArray[np.int64]) -> list[Condition]:
    """Return the conditions worth trying, judged by the items ``rows``."""
    quantiles = _QUANTILES if len(columns) <= _MANY_COLUMNS else _FEW_QUANTILES
    found: list[Condition] = []
    for j, column in enumerate(columns):
        if column.levels is not None:
            present = np.unique(column.values[rows])
            found += [
                Condition(j, column.name, "=", column.levels[code], float(code))
                for code in present[present >= 0]
            ]
            continue
        for cut in _cuts(column.values[rows], quantiles):
            found += [Condition(j, column.name, kind, cut, cut) for kind in ("<=", ">")]
    return found


def _cuts(values: NDArray[np.float64], quantiles: tuple[float, ...]) -> list[float]:
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    if len(distinct) < 2:
        return []
    if len(distinct) <= _FEW_VALUES:
        return distinct[:-1].tolist()
    cuts = _quantile_cuts(known, quantiles)
    # Where one value is frequent (no capital gain), the quantiles miss what lies beyond it.
    _, counts = np.unique(known, return_counts=True)
    if counts.max() > _FREQUENT * len(known):
        cuts |= _quantile_cuts(known[known != distinct[counts.argmax()]], quantiles)
    return sorted(cut for cut in cuts if cut < distinct[-1])


def _quantile_cuts(values: NDArray[np.float64], quantiles: tuple[float, ...]) -> set[float]:
    return set(np.quantile(values, quantiles, method="inverted_cdf").tolist())
