"""Which rows of which tables the calibration items of a model are.

A refresh adds the rows of one more table, and forgetting takes old ones away. The file of the model
remembers what has stayed, so that a monitor, which needs their features, finds them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from hetcal._exceptions import FileFormatError
from hetcal._typing import Rows
from hetcal.batches.model import LoadedModel
from hetcal.monitor.watched import calibrator_inside
from hetcal.tables.later_rows import LaterRows

_MOST_ROWS = np.iinfo(np.int64).max


@dataclass(frozen=True)
class ItemTable:
    """The calibration items that come from one table.

    Attributes
    ----------
    source : str
        The name of its file.
    runs : tuple of (int, int)
        First and one after the last of the rows that are items, counted from 0 among those that
        can be learned from.
    digest : str or None
        By which the table is known again; None: it is the table of ``hetcal fit``.
    time : str or None
        The column that says when each row was seen.
    max_rows : int
        How many of the last rows are read.
    """

    source: str
    runs: tuple[tuple[int, int], ...]
    digest: str | None = None
    time: str | None = None
    max_rows: int = 1

    @classmethod
    def read(cls, source: str, rows: LaterRows, time: str | None, max_rows: int) -> Self:
        """Return all rows of a table as they were read."""
        return cls(source, ((0, rows.n_items),), rows.digest(ordered=True), time, max_rows)

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return what :meth:`to_dict` has stored, or raise where it cannot have."""
        table = cls(**stored | {"runs": tuple((a, b) for a, b in stored["runs"])})
        edges = [0, *(edge for run in table.runs for edge in run), _MOST_ROWS]
        texts = [text for text in (table.digest, table.time) if text is not None]
        known = all(isinstance(text, str) for text in (table.source, *texts))
        whole = all(type(number) is int for number in (table.max_rows, *edges))  # True is no number
        if not (known and whole and table.max_rows > 0):
            raise ValueError("a table of items is not described")
        if any(a > b for a, b in pairwise(edges)):
            raise ValueError("rows of items are not in order")
        return table

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return vars(self) | {"runs": [list(run) for run in self.runs]}

    @property
    def n_items(self) -> int:
        """Number of items."""
        return sum(b - a for a, b in self.runs)

    def rows(self) -> Rows:
        """Return which rows are items."""
        return np.concatenate([np.arange(0), *(np.arange(a, b) for a, b in self.runs)])

    def check_within(self, n_rows: int) -> None:
        """Raise where a table of so many rows cannot hold the items."""
        if self.runs and self.runs[-1][1] > n_rows:
            raise _not_written_by_refresh()

    def keeping(self, places: Rows) -> Self:
        """Return the table with some of its items only."""
        return replace(self, runs=_runs(self.rows()[places]))


def item_tables(model: LoadedModel) -> list[ItemTable] | None:
    """Return the tables of a model's items, the oldest first; None where the file does not say."""
    if "items" not in model.metadata:
        return None if model.metadata.get("refreshes") else _as_fitted(model)
    n_items = len(calibrator_inside(model.calibrator).calibration_labels())
    try:
        tables = [ItemTable.from_dict(stored) for stored in model.metadata["items"]]
    except (KeyError, TypeError, ValueError) as error:
        raise _not_written_by_refresh() from error
    fitted = type(model.record.get("items")) is int or all(table.digest for table in tables)
    if not fitted or sum(table.n_items for table in tables) != n_items:
        raise _not_written_by_refresh()
    return tables


def after_refresh(tables: Sequence[ItemTable], kept: Rows) -> list[ItemTable]:
    """Return the tables with the items that were kept; ``kept`` counts through all of them."""
    ends = np.cumsum([table.n_items for table in tables])
    parts = np.split(kept, np.searchsorted(kept, ends[:-1]))
    places = zip(tables, parts, ends, strict=True)
    return [table.keeping(part - (end - table.n_items)) for table, part, end in places]


def _as_fitted(model: LoadedModel) -> list[ItemTable] | None:
    calibrator = calibrator_inside(model.calibrator)
    n_items = len(calibrator.calibration_labels())
    rows = getattr(calibrator, "calibration_rows_", None)  # those of a weight above 0
    if rows is None and n_items != model.record.get("items"):
        return None  # extended in Python
    runs = _runs(np.arange(n_items) if rows is None else rows)
    return [ItemTable(str(model.record.get("source")), runs)]


def _runs(rows: Rows) -> tuple[tuple[int, int], ...]:
    """Return rising numbers as first and one after the last of those that follow each other."""
    if len(rows) == 0:
        return ()
    parts = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    return tuple((int(part[0]), int(part[-1]) + 1) for part in parts)


def _not_written_by_refresh() -> FileFormatError:
    return FileFormatError(
        "What the model's file says about the tables of its items is not what hetcal refresh "
        "writes. Make it again with hetcal refresh."
    )
