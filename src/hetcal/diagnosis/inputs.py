"""What diagnose, advise, compare and learning_curve are called with, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hetcal._typing import Matrix, Rows
from hetcal._validation import (
    check_columns_match_classes,
    check_labels,
    check_logits,
    check_proba,
    check_proba_names,
    check_same_rows,
    warn_large_counts,
)
from hetcal._validation.containers import as_frame, as_vector, masked_as_missing, take_rows
from hetcal._validation.dates import are_dates, read_dates
from hetcal._validation.features import rows_and_columns
from hetcal.data import CalibrationSet
from hetcal.data.scores import Scores
from hetcal.metrics.scores import check_cost_matrix


def calibration_items(
    caller: str,
    X: Any,
    y: Any,
    y_proba: Any,
    logits: Any,
    classes: Any,
    sample_weight: Any,
    groups: Any,
    *,
    need_features: bool = False,
) -> CalibrationSet:
    """Return what was given as a calibration set; one that was made before is handed on."""
    if isinstance(X, CalibrationSet):
        beside = (y, y_proba, logits, classes, sample_weight, groups)
        if any(part is not None for part in beside):
            raise TypeError(
                f"{caller} got a CalibrationSet, which holds labels, the classifier's output, "
                "classes, weights and groups, and some of these again. Pass the set alone."
            )
        items = X
    else:
        items = CalibrationSet.check(
            X,
            y,
            y_proba=y_proba,
            logits=logits,
            classes=classes,
            sample_weight=sample_weight,
            groups=groups,
            caller=caller,
        )
    warn_large_counts(items.weight)
    if need_features and not items.has_features:
        raise ValueError(
            f"{caller} compares items by their features; X is None. Pass X; how good the "
            "probabilities are on average, hetcal.metrics.evaluate says without it."
        )
    if need_features and len(np.shape(items.X)) != 2:
        rows_and_columns(items.X)  # says what it should be
    return items


@dataclass(frozen=True)
class NewItems:
    """Items that nothing learns from.

    Attributes
    ----------
    X : table, array or None
        Their features, where they were given.
    kind : {"y_proba", "logits"}
        What the classifier's output is.
    output : ndarray of shape (m, K)
        The classifier's output.
    codes : ndarray of shape (m,) or None
        Labels as columns of the output, -1 where unknown; None where none is known.
    """

    X: Any
    kind: str
    output: Matrix
    codes: Rows | None = None

    @property
    def proba(self) -> Matrix:
        """The classifier's probabilities."""
        return self.output if self.kind == "y_proba" else Scores.from_logits(self.output).proba


def new_items(
    caller: str,
    items: CalibrationSet,
    ending: str,
    X: Any,
    y_proba: Any,
    logits: Any,
    y: Any = None,
    *,
    need_features: bool = False,
) -> NewItems | None:
    """Return the new items, or None where there are none; ``ending`` is that of the arguments."""
    given = {"y_proba": y_proba, "logits": logits}
    output, name = given.pop(items.kind), f"{items.kind}_{ending}"
    for other, unexpected in given.items():
        if unexpected is not None:
            raise ValueError(
                f"{caller} got {other}_{ending}, but the calibration items came with {items.kind}. "
                f"Pass {name}."
            )
    if output is None:
        for part, unexpected in {"X": X, "y": y}.items():
            if unexpected is not None:
                raise ValueError(
                    f"{caller} got {part}_{ending} without {name}. Pass the classifier's output on "
                    f"the same new items too, or leave out {part}_{ending}."
                )
        return None
    if need_features and X is None:
        raise ValueError(
            f"{caller} got {name} without X_{ending}. Pass the features of the new items too."
        )
    checked = (check_proba if items.kind == "y_proba" else check_logits)(output, name=name)
    check_columns_match_classes(checked.shape[1], items.classes, name=name, given=True)
    check_proba_names(output, items.classes, name=name)
    if X is not None:
        check_same_rows(**{f"X_{ending}": X, name: output})
    codes = None if y is None else _known_codes(items, y, len(checked), f"y_{ending}", name)
    return NewItems(X, items.kind, checked, codes)


def _known_codes(items: CalibrationSet, y: Any, n: int, name: str, other: str) -> Rows | None:
    """Return the class number of each new item, -1 where it has no label; None without labels."""
    values = pd.Series(as_vector(y, name))
    check_same_rows(**{name: values, other: np.empty((n, 1))})
    known = values.notna().to_numpy()
    if not known.any():
        return None
    codes = np.full(n, -1, dtype=np.int64)
    codes[known] = check_labels(np.array(values[known].tolist()), items.classes)[0]
    return codes


@dataclass(frozen=True)
class Request:
    """What diagnose was asked, checked; its parameters say what each part means.

    Attributes
    ----------
    items : CalibrationSet
        Those of positive weight, in order of time where there is one.
    rows : ndarray of shape (n,)
        Their places in the table that was given.
    moment : ndarray of shape (n,) or None
        Their ranks in time.
    identifiers : dict
        Numbered values of columns that are no features, by name.
    worthwhile : float
        The smallest gain that matters, as a share of the Brier score.
    """

    items: CalibrationSet
    rows: Rows
    moment: Rows | None
    by: Any
    identifiers: dict[str, Rows]
    costs: Matrix | None
    new: NewItems | None
    classes_given: bool
    learning_curve: bool
    name: str
    worthwhile: float
    random_state: int
    n_jobs: int | None


def check_worthwhile(caller: str, share: float) -> float:
    """Return the smallest gain that matters, as a share of the Brier score."""
    if not 0 < share < 1:
        raise ValueError(
            f"{caller}: worthwhile must lie between 0 and 1, both excluded; got {share!r}. "
            "Pass 0.02 for 2 % of the Brier score."
        )
    return float(share)


def numbered_columns(caller: str, columns: Any, items: CalibrationSet) -> dict[str, Rows]:
    """Return the values of named columns as numbers, equal where the values are."""
    if columns is None:
        return {}
    frame = as_frame(columns)
    if frame is None and not isinstance(columns, Mapping):
        raise TypeError(
            f"{caller}: identifiers must be a table or a dict of columns by name; got "
            f"{type(columns).__name__}. Pass e.g. {{'patient': patients}}."
        )
    names = columns if frame is None else frame.columns
    values = {str(name): as_vector(columns[name], str(name)) for name in names}
    check_same_rows(y=items.codes, **values)
    return {name: pd.factorize(column, use_na_sentinel=False)[0] for name, column in values.items()}


def in_order_of_time(
    items: CalibrationSet, time: Any, by: Any
) -> tuple[CalibrationSet, Rows, Rows | None, Any]:
    """Return the items that count, their rows, their moments, and ``by`` in the same order."""
    rows = np.flatnonzero(items.weights > 0)
    moment = None
    if time is not None:
        moment = _moments(time, items.n_items)
        rows = rows[np.argsort(moment[rows], kind="stable")]
        moment = moment[rows]
    if isinstance(by, Mapping):
        check_same_rows(y=items.codes, **{str(key): value for key, value in by.items()})
        by = {key: take_rows(as_vector(value, str(key)), rows) for key, value in by.items()}
    if np.array_equal(rows, np.arange(items.n_items)):
        return items, rows, moment, by
    return items.take(rows).detached(), rows, moment, by


def _moments(time: Any, n: int) -> Rows:
    """Return the rank of each moment, equal where the times are."""
    values = pd.Series(as_vector(time, "time"))
    if len(values) != n:
        raise ValueError(
            f"diagnose: time has {len(values)} values for {n} items. Pass one per item."
        )
    if values.isna().any():
        raise ValueError(
            f"diagnose: time is missing in row {int(values.isna().to_numpy().argmax())} (counted "
            "from 0). Fill it in, or leave such rows out."
        )
    if are_dates(values):
        dates = read_dates(values, "diagnose: time")
        unknown = dates.isna()
        if 0 < unknown.mean() < 0.5:  # else it is text that sorts, such as 2024-W09
            place = int(unknown.to_numpy().argmax())
            raise ValueError(
                f"diagnose: time holds dates, but {str(values[place])!r} in row {place} (counted "
                "from 0). Correct it, or leave such rows out."
            )
        values = values.astype(str) if unknown.any() else dates
    else:
        values = pd.to_numeric(values)
    return values.rank(method="dense").to_numpy().astype(np.int64) - 1


def check_costs(costs: Any, items: CalibrationSet) -> Matrix | None:
    """Return the cost matrix, or None where there is none."""
    if costs is None:
        return None
    return check_cost_matrix(costs, items.n_classes)


def named(X: Any, names: Sequence[str] | None) -> Any:
    """Return an array as a table with these column names."""
    if names is None or X is None or isinstance(X, CalibrationSet) or as_frame(X) is not None:
        return X
    matrix = np.asarray(masked_as_missing(X))
    if matrix.ndim != 2 or matrix.shape[1] != len(names):
        raise ValueError(
            f"diagnose: feature_names has {len(names)} names for an array of shape {matrix.shape}."
        )
    return pd.DataFrame(matrix, columns=list(names))
