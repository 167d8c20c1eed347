"""What each column of a table is for, remembered so that later tables are read the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal._stored.fields import flag, is_scalar, list_of, number, one_of, optional, text
from hetcal._validation.text import as_text
from hetcal.tables.class_columns import class_finder
from hetcal.tables.confidence import of_second_class, predicted_codes, right_or_wrong
from hetcal.tables.kinds import as_components, as_feature, as_labels, as_table
from hetcal.tables.output_columns import (
    both_classes,
    missing_rows,
    nothing_in,
    read_output,
)
from hetcal.tables.selection import did_you_mean, listed


@dataclass(frozen=True)
class Items:
    """Rows of a table as a calibrator takes them.

    Attributes
    ----------
    X : pandas.DataFrame or None
        The features; None where there are none.
    output : ndarray of shape (n, K)
        The classifier's probabilities or logits; equal for all classes where they are missing.
    kind : {"y_proba", "logits"}
        Which of the two.
    known : ndarray of bool
        Rows that have an output.
    predicted : ndarray of int
        The class that each row was given: by the column of predictions, else the most probable.
    missing_features, unknown_category : ndarray of bool
        Rows where a feature is missing, or a level that was not there at fit.
    """

    X: pd.DataFrame | None
    output: NDArray[np.float64]
    kind: str
    known: NDArray[np.bool_]
    predicted: NDArray[np.int64]
    missing_features: NDArray[np.bool_]
    unknown_category: NDArray[np.bool_]

    @property
    def arguments(self) -> dict[str, Any]:
        """The output as a named argument of ``predict_proba``."""
        return {self.kind: self.output}


_KINDS = one_of("number", "boolean", "text", "vector")


def _features(value: Any) -> bool:
    return all(text(name) and _KINDS(kind) for name, kind in value.items())


def _levels(value: Any) -> bool:
    return isinstance(value, dict) and all(map(list_of(text), value.values()))


# A file may come from anybody: what it says is used as names of columns, and as numbers.
_FIELDS = {
    "label": text,
    "output": list_of(text),
    "output_kind": one_of("y_proba", "logits"),
    "classes": list_of(is_scalar),
    "percent": flag,
    "below_one": number(0.0, 1.0),
    "features": _features,
    "levels": _levels,
    "groups": list_of(text),
    "weight": optional(text),
    "predicted": optional(text),
    "being_right": flag,
}


@dataclass(frozen=True)
class TableRoles:
    """What each column is for; made by :func:`hetcal.tables.read_labelled`.

    Attributes
    ----------
    label : str
        The column of observed labels.
    output : tuple of str
        The columns of probabilities or logits: one per class, or one for the second of two.
    output_kind : {"y_proba", "logits"}
        What they hold.
    classes : tuple
        The classes, in the order of the calibrator's columns.
    percent : bool
        Whether the probabilities are percentages.
    below_one : float
        Share of these percentages that are at most 1; 0 without percentages.
    features : dict
        From the name of each feature to its kind: "number", "boolean", "text" or "vector".
    levels : dict
        From the name of each text feature to the levels seen, of each vector to its components.
    groups : tuple of str
        The columns that name a group together; empty without groups.
    weight : str or None
        The column of weights.
    predicted : str or None
        The column of predicted classes, where ``output`` is the confidence in them.
    being_right : bool
        Whether the classes are "wrong" and "right": what the labels are is not calibrated, but
        whether ``predicted`` is the label.
    """

    label: str
    output: tuple[str, ...]
    output_kind: str
    classes: tuple[Any, ...]
    percent: bool = False
    below_one: float = 0.0
    features: dict[str, str] = field(default_factory=dict)
    levels: dict[str, list[str]] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    weight: str | None = None
    predicted: str | None = None
    being_right: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; the features as pairs, since JSON does not promise order."""
        data = asdict(self)
        data |= {key: list(data[key]) for key in ("output", "classes", "groups")}
        data["features"] = [list(pair) for pair in self.features.items()]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableRoles:
        """Return the roles from :meth:`to_dict`; ValueError or TypeError where they are none."""
        known = {key: data[key] for key in cls.__dataclass_fields__ if key in data}
        groups = known.get("groups") or ()
        known["groups"] = [groups] if isinstance(groups, str) else list(groups)
        known["features"] = dict(known["features"])
        wrong = [key for key, value in known.items() if not _FIELDS[key](value)]
        vectors = [name for name, kind in known["features"].items() if kind == "vector"]
        if wrong or not (known["output"] and set(vectors) <= set(known.get("levels", {}))):
            raise ValueError(f"Roles with a wrong {wrong or 'output or vector'}.")
        for key in ("output", "classes", "groups"):
            known[key] = tuple(known[key])
        return cls(**known)

    @property
    def numbers(self) -> set[str]:
        """Columns that are known to hold numbers."""
        return {name for name, kind in self.features.items() if kind == "number"} | set(self.output)

    def items(
        self,
        table: Any,
        *,
        first_row: int = 1,
        begins: bool | None = None,
        leave_missing: bool = False,
        remedy: str = "--leave-missing, which leaves such rows without a result",
    ) -> Items:
        """Return the rows of a table, read as at fit, whatever format they come in.

        Parameters
        ----------
        table : pandas, polars or Arrow table
            With the columns of the features and of the classifier's output; the cells may be text.
        first_row : int, default=1
            The number of the first row, for errors.
        begins : bool, optional
            Whether these are the first rows that are read; by default where ``first_row`` is 1.
        leave_missing : bool, default=False
            Whether rows without a probability are let through (see ``known``) or an error.
        remedy : str, optional
            What to pass against that error.
        """
        frame = as_table(table)
        if frame is None:
            raise TypeError(f"Expected a table with named columns; got {type(table).__name__}.")
        self.check_columns(frame.columns)
        logits = self.output_kind == "logits"
        given = self.read_output(frame, first_row=first_row, begins=begins)
        absent = missing_rows(given)
        if absent.any() and not leave_missing:
            raise InputError(
                f"{nothing_in(self.output, np.isnan(given), first_row)}. Pass {remedy}."
            )
        output = both_classes(given, logits=logits)
        output[absent] = 0.0 if logits else 1 / output.shape[1]
        X, unknown = self._features(frame, first_row)
        missing = np.zeros(len(given), bool) if X is None else X.isna().any(axis=1).to_numpy()
        predicted = self._predicted(frame)
        if predicted is None:
            predicted = output.argmax(axis=1)
        return Items(X, output, self.output_kind, ~absent, predicted, missing, unknown)

    def labels(self, table: Any) -> tuple[NDArray, NDArray[np.bool_]] | None:
        """Return the labels of a later table, and which rows have one; None without the column.

        Where there is no label, the first class stands in its place.
        """
        frame = as_table(table)
        if frame is None or self.label not in frame.columns:
            return None
        texts, found = self.class_labels(frame)
        unknown = sorted(
            {t.strip() for t, label in zip(texts, found, strict=True) if t and label is None}
        )
        if unknown:
            names = [as_text(label) for label in self.classes]
            raise InputError(
                f"Column {self.label!r} of the new rows holds {listed(unknown, 3)}; the classes "
                f"are {listed(names, 5)}. Correct the labels, or leave the column out."
            )
        known = np.array([text is not None for text in texts], dtype=bool)
        values = [self.classes[0] if label is None else label for label in found]
        return np.array(values, dtype=np.array(self.classes).dtype), known

    def read_output(
        self, frame: nw.DataFrame, *, first_row: int = 1, begins: bool | None = None
    ) -> NDArray[np.float64]:
        """Return the output: one column per class, or that of the second; NaN where missing."""
        given = read_output(
            frame,
            self.output,
            percent=self.percent,
            logits=self.output_kind == "logits",
            first_row=first_row,
            begins=begins,
            later=True,
            below_one=self.below_one,
        )
        if self.predicted is None or self.being_right:
            return given
        return of_second_class(
            as_labels(frame[self.predicted]), given, self.classes, self.predicted
        )

    def _predicted(self, frame: nw.DataFrame) -> NDArray[np.int64] | None:
        """Return the classes that a column says were predicted, where there is one."""
        if self.predicted is None or self.being_right:
            return None
        return predicted_codes(as_labels(frame[self.predicted]), self.classes, self.predicted)

    def class_labels(self, table: Any) -> tuple[list[str | None], list[Any]]:
        """Return the labels of a later table as text, and their classes; None where there is none.

        A text that is no class of the calibrator has None for a class.
        """
        frame: Any = as_table(table)
        if self.label not in frame.columns:
            raise InputError(
                f"The table lacks the column {self.label!r} of the labels. It has "
                f"{listed(list(frame.columns))}."
            )
        texts, find = self._label_texts(frame), class_finder(self.classes)
        return texts, [find(text) for text in texts]

    def _label_texts(self, frame: nw.DataFrame) -> list[str | None]:
        """Return the labels as text, None where there is none; whether right, where that counts."""
        texts = as_labels(frame[self.label])
        if not self.being_right:
            return texts
        if self.predicted not in frame.columns:
            return [None] * len(texts)
        return right_or_wrong(texts, as_labels(frame[self.predicted]))

    def _features(
        self, frame: nw.DataFrame, first_row: int
    ) -> tuple[pd.DataFrame | None, NDArray[np.bool_]]:
        unknown = np.zeros(frame.shape[0], dtype=bool)
        if not self.features:
            return None, unknown
        columns: dict[str, pd.Series] = {}
        for name, kind in self.features.items():
            if kind == "vector":
                columns |= self._components(frame[name], first_row)
                continue
            columns[name] = as_feature(frame[name], kind, first_row=first_row)
            if kind == "text":
                values = columns[name]
                unknown |= (values.notna() & ~values.isin(self.levels.get(name, []))).to_numpy()
        return pd.DataFrame(columns), unknown

    def _components(self, vectors: nw.Series, first_row: int) -> dict[str, pd.Series]:
        expected = self.levels[str(vectors.name)]
        if vectors.is_null().all():
            return {part: pd.Series(np.full(len(vectors), np.nan)) for part in expected}
        parts = as_components(vectors, first_row=first_row)
        if list(parts) != expected:
            raise InputError(
                f"Column {vectors.name!r} holds vectors of {len(parts)} numbers; the calibrator "
                f"was fitted with {len(expected)}. Compute them as for its table."
            )
        return parts

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where columns of the features or of the output are missing."""
        said = [] if self.predicted is None or self.being_right else [self.predicted]
        wanted = [*self.output, *said, *self.features]
        absent = [name for name in wanted if name not in set(names)]
        if absent:
            free = [name for name in names if name not in wanted]
            only_features = set(absent) <= set(self.features)
            remedy = (
                " Add what is missing (an empty cell is a missing value), or fit again without it: "
                f"--drop {','.join(absent[:5])}."
            )
            raise InputError(
                f"The table lacks {'columns' if len(absent) > 1 else 'the column'} "
                f"{listed(absent, 5)}, which the calibrator was fitted with."
                f"{did_you_mean(free, absent[0])} The table has {listed(list(names))}."
                f"{remedy if only_features else ''}"
            )
