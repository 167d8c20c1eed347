"""Labelled rows of a later table, read as the table of ``hetcal fit`` was."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal._validation import check_sample_weight
from hetcal._validation.dates import are_dates, read_dates
from hetcal._validation.text import is_missing
from hetcal.tables.groups import group_names, refuse_no_group
from hetcal.tables.kinds import as_labels, as_table, as_weights, values_of
from hetcal.tables.reading import open_table, whole_table
from hetcal.tables.roles import TableRoles
from hetcal.tables.selection import listed
from hetcal.tables.sizes import BATCH_ROWS


@dataclass(frozen=True)
class LaterRows:
    """Rows with a label and a probability, as a calibrator takes them.

    Attributes
    ----------
    X : pandas.DataFrame or None
    y : ndarray of shape (n,)
        Labels.
    output : ndarray of shape (n, K)
        Probabilities or logits.
    weight, groups, times, names : ndarray of shape (n,) or None
        Times as numbers as they stand in the table, or as dates; names of sub-populations as text.
    n_read : int
        Rows of the table.
    notes : list of str
        What was left out, in words.
    """

    X: pd.DataFrame | None
    y: NDArray
    output: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    groups: NDArray | None
    times: NDArray | None
    n_read: int
    notes: list[str] = field(default_factory=list)
    names: NDArray | None = None

    @property
    def n_items(self) -> int:
        """Number of rows that can be learned from."""
        return len(self.y)

    def hashes(self) -> NDArray[np.uint64]:
        """Return one number for each row, by which the same values are known again."""
        return row_hashes(self.X, self.output, self.y)

    def digest(self, *, ordered: bool = False) -> str:
        """Return a fingerprint of the items, by which they are known again in any order, or one."""
        return _digest(self.hashes() if ordered else np.sort(self.hashes()))


def items_digest(X: pd.DataFrame | None, output: NDArray[np.float64], y: NDArray) -> str:
    """Return a fingerprint of items, by which they are known again in their order.

    Examples
    --------
    >>> X, p, y = pd.DataFrame({"age": [31.0, 58.0]}), np.full((2, 2), 0.5), np.array(["a", "b"])
    >>> items_digest(X, p, y) == items_digest(X + 1, p, y)
    False
    """
    return _digest(row_hashes(X, output, y))


def row_hashes(
    X: pd.DataFrame | None, output: NDArray[np.float64], y: NDArray | None = None
) -> NDArray[np.uint64]:
    """Return one number for each row, by which the same values are known again."""
    parts: list[Any] = [] if X is None else [X.reset_index(drop=True)]
    parts += [pd.DataFrame(output), *([] if y is None else [pd.Series(y.astype(str))])]
    whole = pd.concat(parts, axis=1)
    return np.asarray(pd.util.hash_pandas_object(whole, index=False), dtype=np.uint64)


def _digest(hashes: NDArray[np.uint64]) -> str:
    return hashlib.sha256(hashes.tobytes()).hexdigest()


def read_later(
    source: str | Path,
    roles: TableRoles,
    *,
    time: str | None = None,
    by: str | None = None,
    max_rows: int,
    drop_missing: bool = False,
    **reading: Any,
) -> LaterRows:
    """Return the labelled rows of a table, of a large one the last.

    Parameters
    ----------
    source : str or path
        A table with the columns that ``roles`` names, the label among them.
    roles : TableRoles
        What the columns were at fit.
    time : str, optional
        The column that says when each row was seen.
    by : str, optional
        The column that names the sub-population of each row.
    max_rows : int
        Most rows to read into memory: the last ones.
    drop_missing : bool, default=False
        Whether rows without a probability are left out, or an error.
    **reading
        ``format``, ``encoding`` and ``decimal``, as in :func:`hetcal.tables.read_table`.
    """
    table, n_read = _last_rows(source, max_rows, reading)
    frame: Any = as_table(table)
    _check_present(frame.columns, [name for name in (time, roles.weight, by) if name])
    _check_present(frame.columns, roles.groups)
    first_row = n_read - frame.shape[0] + 1
    items = roles.items(
        frame,
        first_row=first_row,
        begins=True,
        leave_missing=drop_missing,
        remedy="--drop-missing, which leaves such rows out",
    )
    y, labelled = _labels(roles, frame)
    notes = _said(n_read, frame.shape[0], max_rows)
    usable, times, weight = labelled & items.known, None, None
    _note_absent(notes, labelled, "label")
    _note_absent(notes, items.known, "probability")
    if time is not None:
        times = values_of(frame[time])
        known = np.array([not is_missing(value) for value in times.tolist()], dtype=bool)
        times = _read_times(time, times, known, first_row)
        _note_absent(notes, known, "time")
        usable &= known
    if roles.weight is not None:
        weight = as_weights(frame[roles.weight], first_row=first_row)
        weight = check_sample_weight(weight, frame.shape[0])
        usable &= ~(weight == 0)  # as if it were not there
    rows = np.flatnonzero(usable)
    if len(rows) == 0:
        raise InputError(f"{source} has no row with a label and a probability to learn from.")
    groups = None
    if roles.groups:
        refuse_no_group(frame.filter(usable.tolist()), roles.groups, rows + first_row - 1)
        groups = group_names(frame, roles.groups).to_numpy()[rows]
    return LaterRows(
        None if items.X is None else items.X.iloc[rows].reset_index(drop=True),
        y[rows],
        items.output[rows],
        None if weight is None else weight[rows],
        groups,
        None if times is None else np.asarray(times)[rows],
        n_read,
        notes,
        None if by is None else np.array(as_labels(frame[by]), dtype=object)[rows],
    )


def _last_rows(source: str | Path, max_rows: int, reading: dict[str, Any]) -> tuple[Any, int]:
    """Return the last rows as one table, and how many there were."""
    kept: deque[Any] = deque()
    n_read = n_kept = 0
    with open_table(source, **reading) as reader:
        for batch in reader.batches(min(BATCH_ROWS, max_rows)):
            kept.append(batch)
            n_read += len(batch)
            n_kept += len(batch)
            while n_kept - len(kept[0]) >= max_rows:
                n_kept -= len(kept.popleft())
    table = whole_table(list(kept))
    last: Any = as_table(table)
    return last[max(0, n_kept - max_rows) :].to_native(), n_read


def _labels(roles: TableRoles, frame: Any) -> tuple[NDArray, NDArray[np.bool_]]:
    found = roles.labels(frame)
    if found is None:
        raise InputError(
            f"The table lacks the column {roles.label!r} of the labels, which is what is learned "
            f"from. It has {listed(list(frame.columns))}."
        )
    return found


def _read_times(
    name: str, times: NDArray, known: NDArray[np.bool_], first_row: int
) -> NDArray[Any]:
    """Return dates as such, and numbers as they are; a cell that is neither is an error."""
    cells = pd.Series(times)[known]
    if pd.api.types.is_datetime64_any_dtype(cells) or not are_dates(cells):
        return times
    numbers = pd.to_numeric(cells, errors="coerce").notna()
    try:
        dates = read_dates(cells[~numbers], f"The column {name!r} of --time")
    except ValueError as error:
        raise InputError(str(error)) from error
    dates = dates.reindex(pd.RangeIndex(len(times)))
    found = dates.notna()[known]
    kind, wrong = ("number", ~numbers) if numbers.sum() > found.sum() else ("date", ~found)
    if wrong.any():
        row = int(np.flatnonzero(known)[wrong.argmax()])
        raise InputError(
            f"The column {name!r} of --time expected a {kind} in each row, dates written as "
            f"2026-01-31; got {str(times[row])!r} in row {first_row + row:,} (counted from 1). "
            "Correct it, or leave the cell empty and the row is left out."
        )
    return np.asarray(dates.dt.tz_localize(None))


def _check_present(names: list[str], wanted: Any) -> None:
    absent = [name for name in wanted if name not in set(names)]
    if absent:
        raise InputError(f"The table lacks the column {absent[0]!r}. It has {listed(names)}.")


def _said(n_read: int, n_kept: int, max_rows: int) -> list[str]:
    if n_kept == n_read:
        return []
    return [f"The last {n_kept:,} of {n_read:,} rows; --max-rows {max_rows} takes no more."]


def _note_absent(notes: list[str], known: NDArray[np.bool_], what: str) -> None:
    n = int((~known).sum())
    if n:
        notes.append(f"{n:,} row{'s' if n > 1 else ''} without a {what} left out.")
