"""The tables of ``hetcal monitor``: reference items, and new ones."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal.monitor.dependence import suggest_dependence
from hetcal.tables.groups import group_names
from hetcal.tables.kinds import as_labels, as_table
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


def reference_items(
    source: str, loaded: LoadedModel, by: str | None, reading: Reading, *, held_out: bool
) -> tuple[Any, dict[str, Any], Any]:
    """Return features, output and names of the items to compare with.

    Without ``held_out`` they are the model's own, as hetcal fit has read them; where it has drawn
    rows of a larger table, the same are drawn again.
    """
    roles = loaded.roles
    table = _usable_rows(source, loaded, by, reading, held_out=held_out)
    names = None if by is None else np.array(texts_of(table, by), dtype=object)
    inferred = whole_table([table])
    items = roles.items(inferred)
    output = {items.kind: items.output}
    if not held_out:
        _check_same_labels(source, loaded, roles.class_labels(inferred)[1])
    return items.X, output, names


def _usable_rows(
    source: str, loaded: LoadedModel, by: str | None, reading: Reading, *, held_out: bool
) -> Any:
    """Return the rows that have a probability; of the table of hetcal fit, those that it used."""
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


def _check_same_labels(source: str, loaded: LoadedModel, y: list[Any]) -> None:
    """Raise where a table does not hold the labels of the model's own items."""
    from hetcal.monitor.watched import calibrator_inside

    expected = calibrator_inside(loaded.calibrator).calibration_labels()
    if len(y) != len(expected) or not np.array_equal(np.array(y, expected.dtype), expected):
        raise other_items(source, len(expected))


def other_items(source: str, n_items: int) -> InputError:
    """Say that a table does not hold the model's own items."""
    return InputError(
        f"--calibration {source} does not hold the {n_items:,} items that the model was fitted "
        "on, in their order. Pass the table of hetcal fit as it was then, or compare with rows "
        "that it has not seen: --held-out TABLE."
    )


def watch(
    watcher: SupportMonitor,
    loaded: LoadedModel,
    table: str,
    *,
    by: str | None,
    leave_missing: bool,
    reading: Reading,
    say: Any,
    expectation: Expectation | None = None,
) -> Watched:
    """Let a monitor see the rows of a table."""
    roles, n_read = loaded.roles, 0
    expected, newest, apart = None, None, 1
    unknown = _UnknownLabels()
    with open_table(table, **vars(reading)) as source, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for batch in source.batches(_BATCH_ROWS):
            items = roles.items(batch, first_row=n_read + 1, leave_missing=leave_missing)
            rows = items.known
            n_read += len(rows)
            X = None if items.X is None else items.X[rows]
            known: dict[str, Any] = {}
            if roles.label in source.names:
                texts, labels = roles.class_labels(batch)
                unknown.count(texts, labels)
                known["y"] = np.array(labels, dtype=object)[rows]
            if by is not None:
                known["by"] = np.array(texts_of(batch, by), dtype=object)[rows]
            if rows.any():
                output = {items.kind: items.output[rows]}
                newest = X, output
                seen = watcher.update(X, **output, **known)
                if len(seen) >= _ENOUGH_ROWS:
                    scores = (seen[f"p_{name}"] for name in watcher.scores_)
                    apart = max(apart, suggest_dependence(*scores))
                if expectation is not None:
                    Q = watcher.calibrator_.predict_proba(X, **output)
                    sums = expectation.sums(Q, int(seen["flag"].sum()))
                    expected = sums if expected is None else expected + sums
            say(f"Watching {table}: {n_read:,} rows", source.done())
    return Watched(unknown.notes(roles) + _notes_on_order(watcher, apart), expected, newest)


class Watched(NamedTuple):
    """What is to be said about the rows of a table.

    Where there is an expectation its sums; features and output of the last batch.
    """

    notes: list[str]
    expected: ExpectedSums | None
    newest: tuple[Any, dict[str, Any]] | None


def changes_since(
    watcher: SupportMonitor,
    watched: Watched,
    loaded: LoadedModel,
    source: str | None,
    reading: Reading,
    *,
    held_out: bool,
) -> Any:
    """Return which features of the newest rows have changed; None without items to compare with."""
    if source is None or watched.newest is None or not loaded.roles.features:
        return None
    X, output = watched.newest
    before = reference_items(source, loaded, None, reading, held_out=held_out)[0]
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
