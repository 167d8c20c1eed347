"""The items that ``hetcal monitor`` compares new rows with: the model's own, or others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal._typing import Rows
from hetcal.batches.item_tables import ItemTable, item_tables
from hetcal.batches.row_sample import LearnedRows, RowSample
from hetcal.monitor.watched import calibrator_inside
from hetcal.tables.groups import group_names
from hetcal.tables.kinds import as_labels, as_table
from hetcal.tables.later_rows import items_digest, read_later, row_hashes
from hetcal.tables.output_columns import missing_rows
from hetcal.tables.reading import open_table, whole_table
from hetcal.tables.sampling import RowSampler
from hetcal.tables.selection import listed
from hetcal.tables.sizes import BATCH_ROWS

if TYPE_CHECKING:
    from hetcal.batches.model import LoadedModel
    from hetcal.cli._options import Reading

_NO_LIMIT = 1 << 60


class ReferenceItems(NamedTuple):
    """Items to compare with: features, the classifier's output, labels, sub-populations."""

    X: Any
    kind: str
    output: NDArray[np.float64]
    y: list[Any]
    names: NDArray | None

    def arguments(self) -> dict[str, Any]:
        """Return them as :meth:`hetcal.SupportMonitor.fit` takes them."""
        return {"X": self.X, self.kind: self.output, "by": self.names}

    def take(self, rows: Rows) -> ReferenceItems:
        """Return some of them."""
        X = None if self.X is None else self.X.iloc[rows]
        y = [self.y[row] for row in rows]
        names = None if self.names is None else self.names[rows]
        return ReferenceItems(X, self.kind, self.output[rows], y, names)


@dataclass(frozen=True)
class ReferenceTables:
    """The tables that a command names to compare with: read where they are needed, and once.

    Standard input cannot be read again.
    """

    loaded: LoadedModel
    calibration: list[str] | None
    held_out: str | None
    by: str | None
    reading: Reading

    @cached_property
    def items(self) -> ReferenceItems | None:
        """Their items; None where no table is named."""
        if self.held_out is not None:
            return held_out_items(self.held_out, self.loaded, self.by, self.reading)
        if not self.calibration:
            return None
        return own_items(self.calibration, self.loaded, self.by, self.reading)


def held_out_items(
    source: str, loaded: LoadedModel, by: str | None, reading: Reading
) -> ReferenceItems:
    """Return the rows of a table that the model has not seen."""
    items = _items_of(_usable_rows(source, loaded, by, reading, held_out=True), loaded, by)
    learned = LearnedRows(RowSample.stored(loaded))
    learned.count(row_hashes(items.X, items.output))
    if learned.share:
        raise InputError(
            f"{learned.in_words} of --held-out {source} are rows that the model was fitted on. "
            "Leave them out; the table of hetcal fit itself goes with --calibration."
        )
    return items


def own_items(
    sources: list[str], loaded: LoadedModel, by: str | None, reading: Reading
) -> ReferenceItems:
    """Return the model's own items, from the tables of hetcal fit and hetcal refresh.

    Tables whose rows are all forgotten may be named or left out.
    """
    parts = [_part(*pair, loaded, by, reading) for pair in _paired(sources, loaded)]
    items = parts[0] if len(parts) == 1 else _joined(parts)
    expected = calibrator_inside(loaded.calibrator).calibration_labels()
    same = len(items.y) == len(expected)
    if not (same and np.array_equal(np.array(items.y, expected.dtype), expected)):
        raise other_items(sources, loaded)
    return items


def _paired(sources: list[str], loaded: LoadedModel) -> list[tuple[str, ItemTable | None]]:
    """Return each table beside what the model knows of it; None: it holds all items by itself."""
    known = item_tables(loaded) or []
    left = [table for table in known if table.n_items]
    for tables in (left, known):
        if len(sources) == len(tables):
            return [pair for pair in zip(sources, tables, strict=True) if pair[1].n_items]
    if len(sources) > 1:
        raise other_items(sources, loaded) if known else _not_several()
    return [(sources[0], None)]


def _part(
    source: str, table: ItemTable | None, loaded: LoadedModel, by: str | None, reading: Reading
) -> ReferenceItems:
    """Return the items that come from one table."""
    if table is None or table.digest is None:
        items = _items_of(_usable_rows(source, loaded, by, reading, held_out=False), loaded, by)
        if table is None:
            return items
        same = len(items.y) == loaded.record.get("items") and _as_at_fit(items, loaded)
    else:
        rows = read_later(
            source,
            loaded.roles,
            time=table.time,
            by=by,
            max_rows=table.max_rows,
            drop_missing=True,
            **vars(reading),
        )
        kind = loaded.roles.output_kind
        items = ReferenceItems(rows.X, kind, rows.output, rows.y.tolist(), rows.names)
        same = rows.digest(ordered=True) == table.digest
    if not same:
        several = "items" in loaded.metadata
        raise other_items([source], loaded, table.source if several else None)
    table.check_within(len(items.y))
    return items.take(table.rows())


def _as_at_fit(items: ReferenceItems, loaded: LoadedModel) -> bool:
    """Say whether a table still holds what hetcal fit has read; files did not always say what."""
    known = loaded.record.get("digest")
    return known is None or known == items_digest(items.X, items.output, np.array(items.y))


def _joined(parts: list[ReferenceItems]) -> ReferenceItems:
    """Return the items of several tables one after the other."""
    X = None if parts[0].X is None else pd.concat([part.X for part in parts], ignore_index=True)
    names = [part.names for part in parts if part.names is not None]
    return ReferenceItems(
        X,
        parts[0].kind,
        np.concatenate([part.output for part in parts]),
        [label for part in parts for label in part.y],
        np.concatenate(names) if names else None,
    )


def _items_of(table: Any, loaded: LoadedModel, by: str | None) -> ReferenceItems:
    roles = loaded.roles
    names = None if by is None else np.array(texts_of(table, by), dtype=object)
    inferred = whole_table([table])
    items = roles.items(inferred)
    frame: Any = as_table(inferred)
    labels = roles.class_labels(inferred)[1] if roles.label in frame.columns else []
    return ReferenceItems(items.X, items.kind, items.output, labels, names)


def _usable_rows(
    source: str, loaded: LoadedModel, by: str | None, reading: Reading, *, held_out: bool
) -> Any:
    """Return the rows that have a probability; of the table of hetcal fit, those that it used.

    Where that has drawn rows of a larger table, the same are drawn again.
    """
    roles, drawn = loaded.roles, None if held_out else loaded.record.get("drawn")
    limit, seed = (_NO_LIMIT, 0) if drawn is None else (drawn["max_rows"], drawn["seed"])
    sampler = RowSampler(limit, seed)
    groups = () if drawn is None else roles.groups
    needed = {*roles.output, *roles.features, *groups, *([] if held_out else [roles.label])}
    needed |= {name for name in (by, roles.predicted) if name is not None}
    with open_table(source, **vars(reading)) as reader:
        columns = [name for name in reader.names if name in needed]
        for batch in reader.batches(BATCH_ROWS, columns):
            usable = ~_without_output(batch, loaded, sampler.n_rows + 1)
            if not held_out:
                labels = roles.class_labels(batch)[1]
                usable &= np.array([label is not None for label in labels], dtype=bool)
            frame: Any = as_table(batch)
            named = group_names(frame, groups).tolist() if groups else None
            sampler.add(batch, usable=usable, groups=named)
    return sampler.sample().table


def _without_output(batch: Any, loaded: LoadedModel, first_row: int) -> NDArray[np.bool_]:
    roles = loaded.roles
    frame: Any = as_table(batch)
    roles.check_columns(frame.columns)
    return missing_rows(roles.read_output(frame, first_row=first_row))


def other_items(sources: list[str], loaded: LoadedModel, expected: str | None = None) -> InputError:
    """Say that tables do not hold the model's own items (or one of them its rows), and which do."""
    n_items = len(calibrator_inside(loaded.calibrator).calibration_labels())
    given = " ".join(f"--calibration {source}" for source in sources)
    rows = f"the {n_items:,} items that the model was fitted on"
    if expected is not None:
        rows = f"the rows of {expected} that the model has learned from"
    return InputError(
        f"{given} does not hold {rows}, in their order. Pass --calibration "
        f"{tables_in_words(loaded)} as it was then, or compare with rows that the model has not "
        "seen: --held-out TABLE."
    )


def _not_several() -> InputError:
    return InputError(
        "The model's file does not say which rows of several tables are its items: it was extended "
        "in Python, or refreshed by a version that did not store that. Pass one --calibration "
        "TABLE of all rows that the model holds, in their order, or refresh the model again from "
        "the file of hetcal fit."
    )


def tables_in_words(loaded: LoadedModel) -> str:
    """Return what to name with --calibration: the tables that the model's items come from."""
    known = item_tables(loaded)
    if known is None:
        return "TABLE (one table of all rows that the model holds)"
    if len(known) == 1:
        return "TABLE (the table of hetcal fit)"
    return " --calibration ".join(table.source for table in known if table.n_items)


def texts_of(table: Any, column: str) -> list[str | None]:
    """Return a column as text; None where it is blank."""
    frame: Any = as_table(table)
    if column not in frame.columns:
        raise InputError(
            f"The table lacks the column {column!r}. It has {listed(list(frame.columns))}."
        )
    return as_labels(frame[column])
