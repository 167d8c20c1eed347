"""The new rows of ``hetcal monitor``: counted and tested, and what is to be said about them."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from hetcal._exceptions import InputError
from hetcal._validation.text import as_text, is_missing
from hetcal.batches.row_sample import LearnedRows, RowSample
from hetcal.cli._reference_items import ReferenceTables, texts_of
from hetcal.monitor.dependence import suggest_dependence
from hetcal.tables.later_rows import row_hashes
from hetcal.tables.reading import open_table
from hetcal.tables.selection import listed
from hetcal.tables.sizes import BATCH_ROWS

if TYPE_CHECKING:
    from hetcal.batches.model import LoadedModel
    from hetcal.cli._options import Reading
    from hetcal.monitor import SupportMonitor
    from hetcal.monitor.expected import Expectation, ExpectedSums
    from hetcal.tables.roles import TableRoles

_NEWEST = 2000
#: For an autocorrelation to say something, and how far it reaches by chance almost never.
_ENOUGH_ROWS, _MUCH_ALIKE = 200, 3
#: Standard deviations by which more rows than usual are flagged where an alarm goes on.
_LEAST_Z = 3.0
#: Such a share of rows that the model was fitted on is no stream to watch.
_MOSTLY = 0.5


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
    unknown, digest, before = _UnknownLabels(), hashlib.sha256(), watcher.groups()
    learned = LearnedRows(RowSample.stored(loaded))
    with open_table(table, **vars(reading)) as source, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        has_labels = roles.label in source.names
        if labels_only and not has_labels:
            raise InputError(
                f"--labels-only needs the column {roles.label!r} of the labels. The table has "
                f"{listed(list(source.names))}."
            )
        for batch in source.batches(BATCH_ROWS):
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
            hashes = row_hashes(X, items.output[rows])
            digest.update(hashes.tobytes())
            learned.count(hashes)
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
    notes = _notes_on_learned(learned, table)
    notes += unknown.notes(roles) + _notes_on_order(watcher, apart)
    notes += _more_labels_than_items(watcher, table) if labels_only else []
    groups = _added(before, watcher.groups())
    keeps = _keeps_alarm(watcher, groups[0])
    return Watched(
        notes, expected, newest, n_rows, n_labels, digest.hexdigest()[:16], groups, keeps
    )


class Watched(NamedTuple):
    """What is to be said about the rows of a table.

    Where there is an expectation its sums; features and output of the last batch; how many rows
    and labels were counted; by what the rows are known again; the groups with these rows alone,
    that of all first; and whether these rows have raised an alarm of support or keep it up.
    """

    notes: list[str]
    expected: ExpectedSums | None
    newest: tuple[Any, dict[str, Any]] | None
    n_rows: int
    n_labels: int
    digest: str
    groups: list[dict[str, Any]]
    keeps_alarm: bool


def _added(before: pd.DataFrame, now: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the groups of a monitor with the rows only that came since before."""
    counted = ["seen", "flagged"]
    old, new = (table.set_index(["kind", "name"]) for table in (before, now))
    new[counted] = new[counted].sub(old[counted], fill_value=0)
    rows: Any = new.reset_index().to_dict("records")
    return rows


def _keeps_alarm(watcher: SupportMonitor, added: dict[str, Any]) -> bool:
    """Tell whether new rows have raised an alarm of support, or too many of them are flagged."""
    times = [alarm["time"] for alarm in watcher.alarms_ if alarm["test"] != "labels"]
    n, rate = added["seen"], watcher.rate
    if not (times and n):
        return False
    deviation = math.sqrt(rate * (1 - rate) * (1 / n + 1 / added["reference"]))
    more = added["flagged"] / n - rate > _LEAST_Z * deviation
    return more or max(times) > watcher.n_seen_ - n


def changes_since(
    watcher: SupportMonitor, watched: Watched, reference: ReferenceTables, notes: list[str]
) -> pd.DataFrame | None:
    """Return which features of the newest rows have changed; None without items to compare with.

    Tables that cannot be read are a note: an alarm must be told all the same.
    """
    if watched.newest is None or watched.newest[0] is None:
        return None
    try:
        items = reference.items
    except (ValueError, OSError) as error:
        notes.append(f"What has changed cannot be said: {error}")
        return None
    if items is None:
        return None
    X, output = watched.newest
    newest = {kind: values[-_NEWEST:] for kind, values in output.items()}
    return watcher.what_changed(X.iloc[-_NEWEST:], items.X, **newest)


def _notes_on_learned(learned: LearnedRows, table: str) -> list[str]:
    """Say that rows are no new ones to the model; raise where most of them are not."""
    if not learned.share:
        return []
    found = f"{learned.in_words} of {table} are rows that the model was fitted on"
    if learned.share > _MOSTLY:
        raise InputError(
            f"{found}: it has learned from their labels, so that they tell nothing about new ones. "
            "Nothing was counted. Pass rows that it has not seen."
        )
    return [f"{found}, which tell nothing about new ones. Leave them out."]


def _notes_on_order(watcher: SupportMonitor, apart: int) -> list[str]:
    """Say that an alarm of support may be due to the order of the rows, where it may be."""
    of_support = any(alarm["test"] != "labels" for alarm in watcher.alarms_)
    if not of_support or watcher.dependence > 1 or apart < _MUCH_ALIKE:
        return []
    return [
        f"Rows less than {apart:,} apart are alike. Where that is usual for this stream, the alarm "
        f"may be due to it: begin another file with --dependence {apart}."
    ]


def _more_labels_than_items(watcher: SupportMonitor, table: str) -> list[str]:
    """Say that labels came without their rows, where there are too many of them."""
    facts = watcher.summary()
    n_labels, n_items = facts["labels"]["n"], facts["seen"]
    if n_labels <= n_items:
        return []
    return [
        f"{n_labels:,} labels for {n_items:,} items counted: --labels-only is for rows that were "
        f"counted before. Where those of {table} were not, pass it without --labels-only."
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
