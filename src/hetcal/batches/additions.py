"""The columns that calibration adds to a table, batch by batch."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal._validation.text import parse_numbers
from hetcal.batches.model import LoadedModel
from hetcal.batches.row_sample import LearnedRows, RowSample
from hetcal.tables.later_rows import row_hashes
from hetcal.tables.roles import Items
from hetcal.tables.selection import listed

if TYPE_CHECKING:
    from hetcal.monitor import ExpectedPerformance

_CHOICES = ("q", "class", "support", "size", "flags", "interval")
EVERYTHING = "q,class,support,size,flags"
LEVEL = 0.9  # of the interval
_CLASS, _SUPPORT, _SIZE, _FLAGS = "predicted_class", "support", "effective_size", "flags"
FLAGS = (
    "no_probability",
    "low_support",
    "unknown_category",
    "missing_features",
    "label_changed",
    "crosses_half",
)


class _Expected:
    """Scores to expect of rows without labels, batch by batch."""

    def __init__(self, model: LoadedModel):
        from hetcal.monitor.expected import Expectation

        if not hasattr(model.calibrator, "calibration_labels"):
            raise InputError(
                f"--expected: {type(model.calibrator).__name__} does not know how right it was on "
                "its own items. Fit with --method hybrid or swc, and without --preserve."
            )
        self._expectation = Expectation(model.calibrator)
        self._low_support = model.record.get("low_support") or 0.0
        self._sums: Any = None

    def add(self, Q: NDArray[np.float64], support: NDArray[np.float64]) -> None:
        sums = self._expectation.sums(Q, int((support < self._low_support).sum()))
        self._sums = sums if self._sums is None else self._sums + sums

    def performance(self) -> ExpectedPerformance | None:
        from hetcal.calibration.out_of_sample_support import LOW_SHARE

        if self._sums is None:
            return None
        return self._expectation.performance(self._sums, 0.95, LOW_SHARE)


class Additions:
    """Calibrated probabilities and what stands behind them, for one batch after the other.

    Attributes
    ----------
    kinds : dict
        From the name of each new column to "number", "whole", "yes or no" or "text".
    n_rows : int
        Rows so far.
    counts : dict
        How many rows have each flag.
    learned : LearnedRows or None
        How many rows the model has learned from, where ``count_learned`` asks for it.
    """

    def __init__(
        self,
        model: LoadedModel,
        *,
        columns: str = EVERYTHING,
        prefix: str = "q_",
        leave_missing: bool = False,
        first_row: int = 1,
        expected: bool = False,
        count_learned: bool = False,
    ):
        wanted = [part.strip() for part in columns.split(",") if part.strip()]
        unknown = [part for part in wanted if part not in _CHOICES]
        if unknown or not wanted:
            raise InputError(
                f"--columns {columns} names {listed(unknown) or 'nothing'}; choose from "
                f"{', '.join(_CHOICES)}."
            )
        self._calibrator, self._roles = model.calibrator, model.roles
        self._low_support = model.record.get("low_support")
        self._leave_missing = leave_missing
        self._expected = _Expected(model) if expected else None
        with_support = expected or bool({"support", "flags"} & set(wanted))
        self._with_support = model.has_support and with_support
        available = {"support": model.has_support, "size": model.has_size}
        available["class"] = not model.roles.being_right  # the table has the predicted class
        self._wanted = {part for part in wanted if available.get(part, True)}
        self._q_names = [f"{prefix}{name}" for name in model.roles.classes]
        self._ends = [f"{name}_{end}" for name in self._q_names for end in ("low", "high")]
        if "interval" in wanted and not hasattr(model.calibrator, "predict_interval"):
            raise InputError(
                f"--interval: {type(model.calibrator).__name__} has no interval of P(y | x). Fit "
                "with --method hybrid."
            )
        self.kinds = self._new_columns()
        self._first_row, self.n_rows = first_row, 0
        self.counts = dict.fromkeys(FLAGS, 0)
        self.learned = LearnedRows(RowSample.stored(model)) if count_learned else None

    @property
    def names(self) -> list[str]:
        """The new columns."""
        return list(self.kinds)

    def refuse_columns_that_are_there(self, names: list[str]) -> None:
        """Raise where a new column would have the name of an old one."""
        there = [name for name in self.names if name in set(names)]
        if there:
            with_prefix = {*self._q_names, *self._ends}
            ways = ["write the new columns alone (--only-new)", "leave some away (--columns)"]
            ways += ["use another --prefix"] if with_prefix.issuperset(there) else []
            raise InputError(
                f"The table has the column{'s' if len(there) > 1 else ''} {listed(there, 5)} "
                f"already. Apply to the original table, {', '.join(ways[:-1])}, or {ways[-1]}."
            )

    def to(self, batch: Any) -> dict[str, Any]:
        """Return the new columns of a batch."""
        items = self._roles.items(
            batch,
            first_row=self._first_row + self.n_rows,
            leave_missing=self._leave_missing,
        )
        n = items.output.shape[0]
        self.n_rows += n
        if self.learned is not None:
            self.learned.count(row_hashes(items.X, items.output))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is in the flags, row by row
            Q, support, size = self._predictions(items) if n else self._nothing()
            ends = self._interval(items) if "interval" in self._wanted else {}
        if self._expected is not None and items.known.any():
            self._expected.add(Q[items.known], support[items.known])
        Q[~items.known] = np.nan
        top = Q.argmax(axis=1) if n else np.zeros(0, dtype=np.int64)
        new: dict[str, Any] = {}
        if "q" in self._wanted:
            new |= {name: Q[:, j] for j, name in enumerate(self._q_names)}
        new |= ends
        if "class" in self._wanted:
            new[_CLASS] = self._classes_of(top, items.known)
        if "support" in self._wanted and support is not None:
            new[_SUPPORT] = np.where(items.known, support, np.nan)
        if "size" in self._wanted and size is not None:
            new[_SIZE] = np.where(items.known, size, np.nan)
        if "flags" in self._wanted:
            new[_FLAGS] = self._flags(items, top, support)
        return new

    @property
    def expected(self) -> ExpectedPerformance | None:
        """What scores to expect of all rows so far, where that was asked for and there are any."""
        return None if self._expected is None else self._expected.performance()

    def kept(self, batch: Any, format: str) -> dict[str, Any]:
        """Return the columns of the table itself, in types that do not change between batches.

        Text of a CSV file goes to CSV as it stands; elsewhere what is known to be a number becomes
        one.
        """
        if not isinstance(batch, pd.DataFrame):
            return {name: batch[name] for name in batch.column_names}
        numbers = self._roles.numbers if format != "csv" else set()
        return {
            name: parse_numbers(batch[name].tolist(), name)
            if name in numbers
            else batch[name].to_numpy()
            for name in batch.columns
        }

    @property
    def shown(self) -> list[str]:
        """The new columns for people, shortened where there are many classes."""
        if len(self._q_names) <= 4 or "q" not in self._wanted:
            return self.names
        return [f"{self._q_names[0]} ... {self._q_names[-1]}", *self.names[len(self._q_names) :]]

    def _new_columns(self) -> dict[str, str]:
        own = {"i": "whole", "b": "yes or no", "f": "number"}
        label = own.get(np.array(self._roles.classes).dtype.kind, "text")
        kinds = dict.fromkeys(self._q_names, "number") if "q" in self._wanted else {}
        kinds |= dict.fromkeys(self._ends, "number") if "interval" in self._wanted else {}
        others = {
            "class": (_CLASS, label),
            "support": (_SUPPORT, "number"),
            "size": (_SIZE, "number"),
            "flags": (_FLAGS, "text"),
        }
        return kinds | dict(others[part] for part in others if part in self._wanted)

    def _predictions(self, items: Items) -> tuple[Any, Any, Any]:
        support = size = None
        given = items.arguments
        if self._with_support:
            Q, support = self._calibrator.predict_proba(items.X, **given, return_support=True)
        else:
            Q = self._calibrator.predict_proba(items.X, **given)
        if "size" in self._wanted:
            size = self._calibrator.effective_sample_size(items.X, **given)
        return np.array(Q), support, size

    def _interval(self, items: Items) -> dict[str, Any]:
        """Return the columns of both ends of the interval of P(y | x), by class."""
        n, K = items.output.shape[0], len(self._q_names)
        ends = np.full((n, K, 2), np.nan)
        if n:
            found = self._calibrator.predict_interval(items.X, **items.arguments, level=LEVEL)
            ends[:] = np.stack(found, axis=2)
        ends[~items.known] = np.nan
        return dict(zip(self._ends, ends.reshape(n, 2 * K).T, strict=True))

    def _nothing(self) -> tuple[Any, Any, Any]:
        none = np.zeros(0)
        return np.zeros((0, len(self._q_names))), none, none

    def _classes_of(self, top: NDArray[np.int64], known: NDArray[np.bool_]) -> Any:
        classes = np.array(self._roles.classes)
        chosen = classes.astype(object)[top]
        chosen[~known] = None
        # A type of its own, so that rows without a result do not change it.
        own: Any = {"i": "Int64", "b": "boolean"}.get(classes.dtype.kind)
        return chosen if own is None else pd.array(chosen, dtype=own)

    def _flags(self, items: Items, top: NDArray[np.int64], support: Any) -> NDArray:
        known = items.known
        # Where the probability of being right is calibrated, the predicted class stays.
        changed = "crosses_half" if self._roles.being_right else "label_changed"
        marks = {
            "no_probability": ~known,
            "unknown_category": items.unknown_category,
            "missing_features": items.missing_features,
            changed: known & (top != items.predicted),
        }
        if support is not None and self._low_support is not None:
            marks["low_support"] = known & (support < self._low_support)
        words = np.full(known.shape[0], "", dtype=object)
        for flag in FLAGS:
            if flag in marks:
                self.counts[flag] += int(marks[flag].sum())
                words[marks[flag]] += f"{flag};"
        return np.array([word[:-1] for word in words.tolist()], dtype=object)
