"""The tables of ``hetcal monitor``: reference items, and new ones."""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal._typing import Rows
from hetcal.batches.item_tables import ItemTable, item_tables
from hetcal.monitor.dependence import suggest_dependence
from hetcal.monitor.watched import calibrator_inside
from hetcal.tables.groups import group_names
from hetcal.tables.kinds import as_labels, as_table
from hetcal.tables.later_rows import read_later
from hetcal.tables.output_columns import missing_rows
from hetcal.tables.reading import open_table, whole_table
from hetcal.tables.sampling import RowSampler
from hetcal.tables.selection import listed
from hetcal.tables.text import as_text, is_missing

if TYPE_CHECKING:
    from hetcal.batches.model import LoadedModel
    from hetcal.cli._options import Reading
    from hetcal.monitor import SupportMonitor
    from hetcal.monitor.expected import Expectation, ExpectedSums
    from hetcal.tables.roles import TableRoles

_BATCH_ROWS = 50_000
_NO_LIMIT = 1 << 60
_NEWEST = 2000
#: For an autocorrelation to say something, and how far it reaches by chance almost never.
_ENOUGH_ROWS, _MUCH_ALIKE = 200, 3


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


def held_out_items(
    source: str, loaded: LoadedModel, by: str | None, reading: Reading
) -> ReferenceItems:
    """Return the rows of a table that the model has not seen."""
    return _items_of(_usable_rows(source, loaded, by, reading, held_out=True), loaded, by)


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
        raise other_items(sources, loaded)
    return [(sources[0], None)]


def _part(
    source: str, table: ItemTable | None, loaded: LoadedModel, by: str | None, reading: Reading
) -> ReferenceItems:
    """Return the items that come from one table."""
    if table is None or table.digest is None:
        items = _items_of(_usable_rows(source, loaded, by, reading, held_out=False), loaded, by)
        if table is None:
            return items
        if len(items.y) != loaded.record["items"]:
            raise other_items([source], loaded, table.source)
        return items.take(table.rows())
    rows = read_later(
        source,
        loaded.roles,
        time=table.time,
        by=by,
        max_rows=table.max_rows,
        drop_missing=True,
        **vars(reading),
    )
    if rows.digest(ordered=True) != table.digest:
        raise other_items([source], loaded, table.source)
    kind = loaded.roles.output_kind
    return ReferenceItems(rows.X, kind, rows.output, rows.y.tolist(), rows.names).take(table.rows())


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
        for batch in reader.batches(_BATCH_ROWS, columns):
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


def tables_in_words(loaded: LoadedModel) -> str:
    """Return what to name with --calibration: the tables that the model's items come from."""
    known = item_tables(loaded)
    if known is None:
        return "TABLE, all rows that the model holds,"
    if len(known) == 1:
        return "TABLE, the table of hetcal fit,"
    return " --calibration ".join(table.source for table in known if table.n_items)


def watch(
    watcher: SupportMonitor,
    loaded: LoadedModel,
    table: str,
    *,
    by: str | None,
    labels_only: bool,
    leave_missing: bool,
    reading: Reading,
    say: Any,
    expectation: Expectation | None = None,
) -> Watched:
    """Let a monitor see the rows of a table; of rows that it knows, the labels only."""
    roles, n_read, n_rows, n_labels = loaded.roles, 0, 0, 0
    expected, newest, apart = None, None, 1
    unknown, digest = _UnknownLabels(), hashlib.sha256()
    with open_table(table, **vars(reading)) as source, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        has_labels = roles.label in source.names
        if labels_only and not has_labels:
            raise InputError(
                f"--labels-only needs the column {roles.label!r} of the labels. The table has "
                f"{listed(list(source.names))}."
            )
        for batch in source.batches(_BATCH_ROWS):
            items = roles.items(batch, first_row=n_read + 1, leave_missing=leave_missing)
            rows = items.known
            n_read += len(rows)
            if not rows.any():
                continue
            X, y = None if items.X is None else items.X[rows], None
            output = {items.kind: items.output[rows]}
            if has_labels:
                texts, labels = roles.class_labels(batch)
                unknown.count(texts, labels)
                y = np.array(labels, dtype=object)[rows]
                n_labels += int(pd.notna(y).sum())
            names = None if by is None else np.array(texts_of(batch, by), dtype=object)[rows]
            digest.update(_row_hashes(X, output[items.kind]))
            if labels_only:
                watcher.update_labels(X, y, **output, by=names)
            else:
                newest, n_rows = (X, output), n_rows + int(rows.sum())
                seen = watcher.update(X, **output, y=y, by=names)
                if len(seen) >= _ENOUGH_ROWS:
                    scores = (seen[f"p_{name}"] for name in watcher.scores_)
                    apart = max(apart, suggest_dependence(*scores))
                if expectation is not None:
                    Q = watcher.calibrator_.predict_proba(X, **output)
                    sums = expectation.sums(Q, int(seen["flag"].sum()))
                    expected = sums if expected is None else expected + sums
            say(f"Watching {table}: {n_read:,} rows", source.done())
    notes = unknown.notes(roles) + _notes_on_order(watcher, apart)
    return Watched(notes, expected, newest, n_rows, n_labels, digest.hexdigest()[:16])


class Watched(NamedTuple):
    """What is to be said about the rows of a table.

    Where there is an expectation its sums; features and output of the last batch; how many rows
    and labels were counted; and by what the rows are known again.
    """

    notes: list[str]
    expected: ExpectedSums | None
    newest: tuple[Any, dict[str, Any]] | None
    n_rows: int
    n_labels: int
    digest: str


def _row_hashes(X: Any, output: NDArray[np.float64]) -> bytes:
    parts = [*([] if X is None else [X.reset_index(drop=True)]), pd.DataFrame(output)]
    return pd.util.hash_pandas_object(pd.concat(parts, axis=1), index=False).to_numpy().tobytes()


def changes_since(
    watcher: SupportMonitor,
    watched: Watched,
    loaded: LoadedModel,
    calibration: list[str] | None,
    held_out: str | None,
    reading: Reading,
) -> Any:
    """Return which features of the newest rows have changed; None without items to compare with."""
    if not (calibration or held_out) or watched.newest is None or not loaded.roles.features:
        return None
    X, output = watched.newest
    if held_out is not None:
        before = held_out_items(held_out, loaded, None, reading).X
    else:
        before = own_items(calibration or [], loaded, None, reading).X
    newest = {kind: values[-_NEWEST:] for kind, values in output.items()}
    return watcher.what_changed(X.iloc[-_NEWEST:], before, **newest)


def _notes_on_order(watcher: SupportMonitor, apart: int) -> list[str]:
    """Say that an alarm of support may be due to the order of the rows, where it may be."""
    of_support = any(alarm["test"] != "labels" for alarm in watcher.alarms_)
    if not of_support or watcher.dependence > 1 or apart < _MUCH_ALIKE:
        return []
    return [
        f"Rows less than {apart:,} apart are alike. Where that is usual for this stream, the alarm "
        f"may be due to it: begin another file with --dependence {apart}."
    ]


class _UnknownLabels:
    """Counts labels that are no class of the model."""

    def __init__(self) -> None:
        self._n_given = 0
        self._texts: Counter[str | None] = Counter()

    def count(self, texts: list[str | None], labels: list[Any]) -> None:
        """Look at the labels of a batch and at the classes that were found for them."""
        pairs = list(zip(texts, labels, strict=True))
        unknown = [text for text, label in pairs if label is None and not is_missing(text)]
        self._texts.update(unknown)
        self._n_given += len(unknown) + sum(label is not None for label in labels)

    def notes(self, roles: TableRoles) -> list[str]:
        """Say how many labels are of no class."""
        if not self._texts:
            return []
        classes = [as_text(label) for label in roles.classes]
        return [
            f"{self._texts.total():,} of {self._n_given:,} labels in {roles.label!r} are no class "
            f"of the model and were left out: {listed(sorted(map(str, self._texts)), 3)}. The "
            f"classes are {listed(classes, 5)}."
        ]


def texts_of(table: Any, column: str) -> list[str | None]:
    """Return a column as text; None where it is blank."""
    frame: Any = as_table(table)
    if column not in frame.columns:
        raise InputError(
            f"The table lacks the column {column!r}. It has {listed(list(frame.columns))}."
        )
    return as_labels(frame[column])
