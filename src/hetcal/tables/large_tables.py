"""The calibration items of a table of any size: a sample of its rows, and scores over all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal._validation.spelling import spelled_alike
from hetcal._validation.text import MISSING, infer_column
from hetcal.tables.class_columns import match_classes, split_classes
from hetcal.tables.columns import (
    MOST_LABELS,
    columns_of_groups,
    match_labels,
    output_columns,
    read_labelled,
    refuse_label_among,
    refuse_missing,
    refuse_no_prediction,
    single_columns,
)
from hetcal.tables.confidence import match_of_labels, right_or_wrong
from hetcal.tables.groups import group_names, refuse_no_group
from hetcal.tables.kinds import (
    as_labels,
    as_table,
    as_weights,
    first_infinite,
    refuse_infinite_row,
    values_of,
)
from hetcal.tables.labelled_table import LabelledTable
from hetcal.tables.output_columns import both_classes, missing_rows, read_output
from hetcal.tables.reading import Reader, open_table, whole_table
from hetcal.tables.sampling import RowSampler
from hetcal.tables.selection import one_column, select_columns
from hetcal.tables.sizes import BATCH_ROWS, MAX_ROWS
from hetcal.tables.stream_scores import StreamScores

_FEW_ITEMS = 100
_CELLS_PER_BATCH = 1_000_000
_TWO = 2  # classes; of more, a confidence says nothing but whether the prediction is right


def draw_labelled(
    path: str | Path,
    *,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
    batch_rows: int | None = None,
    format: str | None = None,
    encoding: str = "utf-8",
    decimal: str = ".",
    progress: Callable[[float | None], object] | None = None,
    **roles: Any,
) -> LabelledTable:
    """Return the calibration items of a table of any size, in bounded memory.

    A table of at most ``max_rows`` rows is read whole. Of a larger one, a uniform sample of the
    rows that have a label and a probability is drawn in one pass (groups whole), and the model is
    scored over all of them: ``labelled.drawn`` and the first of ``labelled.notes`` say so.

    Parameters
    ----------
    path, format, encoding, decimal
        As in :func:`hetcal.tables.read_table`.
    max_rows : int, default=50000
        Most rows that are used.
    random_state : int, default=0
        Seed of the sample.
    batch_rows : int, optional
        Rows read at a time; nothing depends on it. By default 50 000, fewer where there are more
        than twenty columns (a million cells).
    progress : callable, optional
        Called with the share that has been read, or None where that is not known.
    **roles
        What the columns are for, as in :func:`hetcal.tables.read_labelled`.

    Returns
    -------
    LabelledTable
        ``rows`` are places in the whole table, ``n_read`` is its number of rows.
    """
    with open_table(path, format=format, encoding=encoding, decimal=decimal) as reader:
        known_large = reader.n_rows is not None and reader.n_rows > max_rows
        columns = _columns_needed(reader.names, roles) if known_large else None
        width = len(reader.names if columns is None else columns)
        batches = reader.batches(batch_rows or _rows_of_a_batch(width), columns)
        first, n = [], 0
        for batch in batches:
            first.append(batch)
            n += len(batch)
            if n > max_rows:
                break
        else:
            return read_labelled(whole_table(first), **roles)
        stream = _Stream(reader, roles, max_rows, random_state)
        for batch in chain(_emptied(first), batches):
            stream.add(batch)
            if progress is not None:
                progress(reader.done())
        return stream.labelled()


def _rows_of_a_batch(n_columns: int) -> int:
    return max(1, min(BATCH_ROWS, _CELLS_PER_BATCH // n_columns))


def _emptied(values: list[Any]) -> Iterator[Any]:
    """Yield what is in a list and let go of it."""
    while values:
        yield values.pop(0)


def _columns_needed(names: list[str], roles: dict[str, Any]) -> list[str] | None:
    """Return the columns that have a use; None where every column may be a feature."""
    features = roles.get("features")
    if features is None and roles.get("use_features", True):
        return None
    needed = {one_column(names, roles["label"], "label")}
    needed |= set(output_columns(names, **_output(roles))[0])
    needed |= set(single_columns(names, **_single(roles)).values())
    needed |= set(columns_of_groups(names, roles.get("groups")))
    for role in ("features", "drop", "by"):
        if roles.get(role) is not None:
            needed |= set(select_columns(names, roles[role], role))
    return [name for name in names if name in needed]


def _single(roles: dict[str, Any]) -> dict[str, Any]:
    return {role: roles.get(role) for role in ("weight", "time", "predicted")}


def _output(roles: dict[str, Any]) -> dict[str, Any]:
    wanted = ("proba", "logits", "predicted", "confidence")
    return {role: roles.get(role) for role in wanted}


class _Stream:
    """A table larger than the limit, batch by batch."""

    def __init__(self, reader: Reader, roles: dict[str, Any], max_rows: int, seed: int):
        names = reader.names
        self.roles = roles
        self.label = one_column(names, roles["label"], "label")
        self.columns, self.stars, self.logits = output_columns(names, **_output(roles))
        refuse_label_among(self.columns, self.label)
        self.single = single_columns(names, **_single(roles))
        self.group_columns = columns_of_groups(names, roles.get("groups"))
        self.predicted = self.single.get("predicted")
        self.names_seen: set[str | None] = set()
        self.sampler = RowSampler(max_rows, seed)
        self.scores = StreamScores(max(2, len(self.columns)))
        self.no_label = self._words_for_nothing()
        self.n_unlabelled = self.n_absent = 0
        self.infinite: dict[str, int] = {}  # the first row with such a number, by column

    def add(self, batch: Any) -> None:
        """Score the rows of a batch and draw from them."""
        frame = as_table(batch)
        if frame is None:
            raise TypeError(f"Expected a table; got {type(batch).__name__}.")
        first_row = self.sampler.n_rows + 1
        texts = self._texts(frame, first_row)
        labelled = ~pd.isna(texts) & ~np.isin(texts, list(self.no_label))
        percent = bool(self.roles.get("percent", False))
        given = read_output(
            frame, self.columns, percent=percent, logits=self.logits, first_row=first_row
        )
        absent = missing_rows(given) & labelled
        if absent.any() and not self.roles.get("drop_missing", False):
            refuse_missing(self.columns, np.isnan(given) & labelled[:, None], first_row)
        usable = labelled & ~absent
        self.n_unlabelled += int((~labelled).sum())
        self.n_absent += int(absent.sum())
        P = both_classes(given[usable], logits=self.logits)
        if self.logits:
            from scipy.special import softmax

            P = softmax(P, axis=1)
        weight = None
        if "weight" in self.single:
            weight = as_weights(frame[self.single["weight"]], usable, first_row=first_row)
        self.scores.update(texts[usable].tolist(), P, weight)
        if len(self.scores.labels) > MOST_LABELS:
            self._match()  # says that this is no column of labels
        self._note_infinite(frame, first_row)
        self.sampler.add(batch, usable=usable, groups=self._groups(frame, usable, first_row))

    def labelled(self) -> LabelledTable:
        """Return the items that were drawn, and what is known about all rows."""
        match = self._match()
        overall = self.scores.overall(match)
        sample = self.sampler.sample()
        table = whole_table([sample.table])
        drawn_labels = self._texts(as_table(table)).tolist()
        counts = dict.fromkeys(match.classes, 0)
        for text in drawn_labels:
            if text in match.of_label:
                counts[match.of_label[text]] += 1
        self._check_classes(counts, overall["class_counts"])
        more = {"being_right": True} if len(self.names_seen) > _TWO else {}
        labelled = read_labelled(table, **(self.roles | more))
        for name in self.infinite.keys() & labelled.roles.features.keys():
            if labelled.roles.features[name] == "number":
                refuse_infinite_row(name, self.infinite[name])
        drawn = {
            "from_rows": sample.n_rows,
            "usable_rows": self.scores.n_rows,
            "items": labelled.n_items,
            "max_rows": self.sampler.max_rows,
            "seed": self.sampler.seed,
            "overall": overall,
        }
        notes = [_in_words(drawn), *self._more_notes(counts, overall["class_counts"])]
        return replace(
            labelled,
            rows=sample.rows[labelled.rows],
            n_read=sample.n_rows,
            notes=notes + labelled.notes,
            drawn=drawn,
        )

    def _note_infinite(self, frame: Any, first_row: int) -> None:
        """Remember infinite numbers in rows that no sample may hold: later they are refused."""
        if self.roles.get("use_features", True):
            for name in set(frame.columns) - self.infinite.keys():
                place = first_infinite(frame[name])
                if place is not None:
                    self.infinite[name] = first_row + place

    def _texts(self, frame: Any, first_row: int = 1) -> NDArray:
        """Return the labels as text; where classes are predicted, whether they are right.

        The scores are the same with two classes: the confidence is all that is known.
        """
        texts = _label_texts(frame[self.label])
        if self.predicted is None:
            return texts
        answers = _label_texts(frame[self.predicted])
        if not self.roles.get("drop_missing", False):
            refuse_no_prediction(texts.tolist(), answers.tolist(), self.predicted, first_row)
        if len(self.names_seen) <= _TWO:
            self.names_seen |= {spelled_alike(text) for text in {*texts, *answers}} - {None}
        return np.array(right_or_wrong(texts.tolist(), answers.tolist()), dtype=object)

    def _match(self) -> Any:
        if self.predicted is not None:
            return match_of_labels([], None)
        positive, classes = self.roles.get("positive"), split_classes(self.roles.get("classes"))
        return match_labels(
            self.columns, self.stars, self.scores.labels, self.label, positive, classes
        )

    def _words_for_nothing(self) -> frozenset[str]:
        """Return the words for "missing" that no column of probabilities belongs to."""
        if len(self.columns) == 1:
            return frozenset()  # one of the two labels may be such a word
        return frozenset(word for word in MISSING if not self._is_class(word))

    def _is_class(self, word: str) -> bool:
        classes = split_classes(self.roles.get("classes"))
        if classes is not None:
            return word in classes
        try:
            match_classes(self.columns, [word], label_column=self.label, stars=self.stars)
        except InputError:
            return False
        return True

    def _groups(self, frame: Any, usable: NDArray[np.bool_], first_row: int) -> list | None:
        if not self.group_columns:
            return None
        rows = np.flatnonzero(usable)
        refuse_no_group(frame.filter(usable.tolist()), self.group_columns, rows + first_row - 1)
        return group_names(frame, self.group_columns).tolist()

    def _check_classes(self, drawn: dict[str, int], of_all: dict[str, int]) -> None:
        if sum(n > 0 for n in drawn.values()) < 2 <= sum(n > 0 for n in of_all.values()):
            [only] = [name for name, n in drawn.items() if n]
            raise InputError(
                f"All {drawn[only]:,} rows drawn of {self.sampler.n_rows:,} hold {only!r}; "
                "calibration needs items of at least two classes. Pass a larger --max-rows "
                "(max_rows=)."
            )

    def _more_notes(self, drawn: dict[str, int], of_all: dict[str, int]) -> list[str]:
        notes = []
        for n, what in ((self.n_unlabelled, "label"), (self.n_absent, "probability")):
            if n:
                notes.append(f"{n:,} row{'s' if n > 1 else ''} without a {what} left out.")
        rare = [k for k, n in of_all.items() if n > drawn[k] and drawn[k] < _FEW_ITEMS]
        if rare:
            said = ", ".join(f"{k!r} {drawn[k]:,} of {of_all[k]:,}" for k in rare[:5])
            more = f" and {len(rare) - 5} classes more" if len(rare) > 5 else ""
            notes.append(f"Few rows of rare classes were drawn: {said}{more}. See --max-rows.")
        return notes


def _label_texts(column: nw.Series) -> NDArray:
    """Return :func:`~hetcal.tables.kinds.as_labels` of a long column with few different values.

    Cells of a CSV file are read one by one as a whole column would be: 1.0 is 1.
    """
    codes, distinct = pd.factorize(values_of(column))
    cells = [infer_column([v])[0] if isinstance(v, str) and v.strip() else v for v in distinct]
    texts = as_labels(nw.new_series("", np.array(cells, dtype=object), backend="pandas"))
    return np.array([*texts, None], dtype=object)[codes]  # the code of nothing is -1


def _in_words(drawn: dict[str, Any]) -> str:
    overall, usable = drawn["overall"], drawn["usable_rows"]
    every = usable == drawn["from_rows"]
    of = f"{usable:,} rows" if every else f"{usable:,} usable rows ({drawn['from_rows']:,} in all)"
    return (
        f"{drawn['items']:,} of {of}, drawn at random (--seed {drawn['seed']}); --max-rows draws "
        f"more. Over all {'' if every else 'usable '}rows the model's Brier score is "
        f"{overall['brier']:.4f}, log loss {overall['log_loss']:.4f}, accuracy "
        f"{overall['accuracy']:.4f}."
    )
