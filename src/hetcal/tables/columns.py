"""Any table to calibration items: labels, probabilities, features, and what was assumed.

:func:`read_labelled` is what every command reads its table with, and can be called from Python. It
says what it assumed and left out (``notes``), and refuses what it cannot understand with a line
that names the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal.tables.class_columns import (
    ClassMatch,
    match_classes,
    match_given_classes,
    match_positive,
    positive_of,
    split_classes,
)
from hetcal.tables.column_order import check_order
from hetcal.tables.confidence import (
    RIGHT,
    match_of_labels,
    of_second_class,
    predicted_but_no_label,
    refuse_confidence,
    refuse_proba_of_one_class,
    right_or_wrong,
    two_classes,
)
from hetcal.tables.features import TableFeatures, read_features
from hetcal.tables.groups import group_names, refuse_no_group
from hetcal.tables.kinds import (
    as_labels,
    as_levels,
    as_table,
    as_weights,
    first_infinite,
    kind_of,
    refuse_infinite_row,
    values_of,
)
from hetcal.tables.labelled_table import LabelledTable
from hetcal.tables.output_columns import (
    both_classes,
    missing_rows,
    nothing_in,
    read_output,
    within_unit_interval,
)
from hetcal.tables.roles import TableRoles
from hetcal.tables.selection import listed, one_column, pattern_parts, select_columns

Names = str | Sequence[str]

MOST_LABELS = 1000


def read_labelled(
    table: Any,
    *,
    label: str,
    proba: Names | None = None,
    logits: Names | None = None,
    positive: Any = None,
    classes: Names | None = None,
    predicted: str | None = None,
    confidence: str | None = None,
    being_right: bool = False,
    features: Names | None = None,
    drop: Names | None = None,
    groups: Names | None = None,
    weight: str | None = None,
    by: Names | None = None,
    time: str | None = None,
    percent: bool = False,
    drop_missing: bool = False,
    accept_order: bool = False,
    use_features: bool = True,
) -> LabelledTable:
    """Return the calibration items of a table.

    Parameters
    ----------
    table : pandas, polars or Arrow table
        One row per item, for example from :func:`hetcal.tables.read_table`.
    label : str
        The column of observed labels. Rows without a label are left out.
    proba, logits : str or list of str
        The columns of probabilities (or logits): a pattern (``"p_*"``), a list separated by commas,
        or a list of names. The classes are what differs between the names, matched with the labels.
        A single column is the probability of ``positive``.
    positive : str, number or bool, optional
        The label that a single column is the probability of.
    classes : str or list of str, optional
        The classes in the order of the columns, where their names do not tell them.
    predicted, confidence : str, optional
        The columns of a predicted class and of the confidence in it, instead of ``proba``. With two
        classes the confidence is the probability of the predicted one. With more, what is
        calibrated is the probability that the prediction is right: labels become ``"right"`` and
        ``"wrong"``, and the predicted class is a feature.
    being_right : bool, default=False
        Whether to do so with two classes too.
    features : str or list of str, optional
        The features; by default every other column that can be one. A column that is named one by
        one is taken even if it looks like an id.
    drop : str or list of str, optional
        Columns that are not features.
    groups : str or list of str, optional
        The column of groups (items of one patient), or several that name a group together.
    weight : str, optional
        The column of weights.
    by : str or list of str, optional
        Columns to report by; they stay features.
    time : str, optional
        The column of time; it is no feature.
    percent : bool, default=False
        Whether the probabilities are percentages.
    drop_missing : bool, default=False
        Whether rows without a probability are left out, or an error.
    accept_order : bool, default=False
        Whether to go on where the labels clearly go with other columns than their own (see the
        documentation of the commands), or to raise.
    use_features : bool, default=True
        False for a method that looks at the probabilities alone: then ``X`` is None.

    Returns
    -------
    LabelledTable

    Examples
    --------
    >>> table = pd.DataFrame({
    ...     "age": [31, 58, 44], "p_no": [0.7, 0.2, 0.5], "p_yes": [0.3, 0.8, 0.5],
    ...     "outcome": ["no", "yes", "yes"]})
    >>> labelled = read_labelled(table, label="outcome", proba="p_*")
    >>> labelled.classes.tolist(), list(labelled.X.columns)
    (['no', 'yes'], ['age'])
    """
    frame = _checked_frame(table)
    names = list(frame.columns)
    label = one_column(names, label, "label")
    columns, stars, is_logits = output_columns(
        names, proba=proba, logits=logits, predicted=predicted, confidence=confidence
    )
    refuse_label_among(columns, label)
    single = single_columns(names, weight=weight, time=time, predicted=predicted)
    predicted = single.get("predicted")
    group_columns = columns_of_groups(names, groups)
    texts = as_labels(frame[label])
    given = read_output(frame, columns, percent=percent, logits=is_logits)
    if predicted is None:
        match = match_labels(columns, stars, texts, label, positive, split_classes(classes))
        if not (accept_order or is_logits):
            refuse_confidence(frame, columns, given, match, label)
    else:
        refuse_beside_confidence(positive, classes)
        answers = as_labels(frame[predicted])
        if not drop_missing:
            refuse_no_prediction(texts, answers, predicted)
        two = None if being_right else two_classes(texts, answers)
        strange = predicted_but_no_label(texts, answers)
        if two is None:
            texts = right_or_wrong(texts, answers)
        else:
            if not accept_order:
                refuse_proba_of_one_class(answers, given, two, columns[0])
            given = of_second_class(answers, given, two, predicted)
        match, being_right = match_of_labels(texts, two), two is None
        match.notes.extend(strange)
    notes = list(match.notes)
    if is_logits and len(columns) == 1 and within_unit_interval(given):
        notes.append(
            f"{columns[0]} is between 0 and 1 in every row. If it holds probabilities, pass it "
            "with --proba (proba=): --logits takes log-odds."
        )
    kept = _kept_rows(texts, match, given, columns, drop_missing=drop_missing, notes=notes)
    whole, frame = frame, frame[kept]
    y, order = _labels(frame[label], [texts[row] for row in kept], match)
    found = TableFeatures(None)
    taken = {label, *columns, *single.values(), *group_columns}
    taken -= {predicted} if being_right else set()
    if use_features:
        found = read_features(frame, taken=taken, wanted=features, drop=drop, y=y)
        _refuse_infinite_left_out(whole, kept, found.kinds)
    else:
        for role, wanted in {"features": features, "drop": drop}.items():
            if wanted is not None:
                select_columns(names, wanted, role)  # a mistyped name is no less an error
    roles = TableRoles(
        label=label,
        output=tuple(columns),
        output_kind="logits" if is_logits else "y_proba",
        classes=tuple(order.tolist()),
        percent=percent,
        below_one=float((given[kept] <= 0.01).mean()) if percent else 0.0,
        features=found.kinds,
        levels=found.levels,
        groups=tuple(group_columns),
        weight=single.get("weight"),
        predicted=predicted,
        being_right=being_right,
    )
    by_names = select_columns(names, by, "by") if by is not None else []
    labelled = LabelledTable(
        X=found.X,
        y=y,
        output=both_classes(given[kept], logits=is_logits),
        classes=order,
        roles=roles,
        groups=_groups(frame, group_columns, kept),
        weight=as_weights(whole[single["weight"]], kept) if "weight" in single else None,
        by={name: as_levels(frame[name]).to_numpy() for name in by_names},
        time=values_of(frame[single["time"]]) if "time" in single else None,
        rows=kept,
        n_read=len(texts),
        left_out=found.left_out,
        other_columns=_other_columns(frame, taken | set(found.kinds)),
        notes=notes + found.notes,
    )
    if not is_logits and np.isin(given[kept], (0, 1)).all():
        labelled.notes.append(
            f"{listed(columns, 5)}: nothing but 0 and 1. These look like predicted classes; all "
            "that can be learned from them is how often each is right. Probabilities say more: "
            "pass the model's predict_proba."
        )
    if being_right:
        labelled.notes.insert(0, _about_being_right(labelled))
    check_order(labelled, accept=accept_order)
    _note_copies(labelled)
    return labelled


def _refuse_infinite_left_out(
    whole: nw.DataFrame, kept: NDArray[np.int64], kinds: dict[str, str]
) -> None:
    """Raise for infinite features in rows that are left out, as a later table would be refused."""
    rows = np.setdiff1d(np.arange(len(whole)), kept)
    for name in (name for name, kind in kinds.items() if kind == "number" and len(rows)):
        place = first_infinite(whole[name][rows.tolist()])
        if place is not None:
            refuse_infinite_row(name, int(rows[place]) + 1)


def _other_columns(frame: nw.DataFrame, used: set[str]) -> dict[str, NDArray]:
    """Return the columns without a use that may number events or persons."""
    return {
        name: as_levels(frame[name]).to_numpy()
        for name in frame.columns
        if name not in used and kind_of(frame[name]) in ("number", "boolean", "text", "date")
    }


def _checked_frame(table: Any) -> nw.DataFrame:
    frame = as_table(table)
    if frame is None:
        remedy = "Make one, e.g. pandas.DataFrame(...)."
        if isinstance(table, str | Path):
            remedy = "Read the file first: hetcal.tables.read_table(path)."
        elif hasattr(table, "collect"):
            remedy = "Pass table.collect()."
        raise TypeError(
            "Expected a table with named columns (pandas, polars, Arrow); got "
            f"{type(table).__name__}. {remedy}"
        )
    if frame.shape[0] == 0:
        raise InputError("The table has no rows. Pass one with labelled items.")
    return frame


def output_columns(
    names: list[str],
    *,
    proba: Names | None = None,
    logits: Names | None = None,
    predicted: str | None = None,
    confidence: str | None = None,
) -> tuple[list[str], list[str] | None, bool]:
    """Return the columns of the output, what a pattern's star stands for, whether logits."""
    if (predicted is None) != (confidence is None):
        raise InputError(
            "--predicted (the predicted class) and --confidence (the probability that the model "
            "gave it) go together. Name both columns."
        )
    given = [wanted for wanted in (proba, logits, confidence) if wanted is not None]
    if len(given) != 1:
        raise InputError(
            "Name the columns of probabilities with --proba (proba=), e.g. --proba 'p_*', or those "
            "of logits with --logits (logits=), or a predicted class and its probability with "
            "--predicted and --confidence; one of the three. The columns are "
            f"{listed(names)}."
        )
    wanted = given[0]
    if confidence is not None:
        return [one_column(names, confidence, "confidence")], None, False
    columns = select_columns(names, wanted, "proba" if proba is not None else "logits")
    return columns, pattern_parts(columns, wanted), logits is not None


def refuse_label_among(columns: list[str], label: str) -> None:
    """Raise where the label is one of the columns of probabilities."""
    if label in columns:
        raise InputError(
            f"{label!r} is named as the label and is among the columns of probabilities "
            f"{listed(columns, 5)}. Name the columns of probabilities one by one."
        )


def single_columns(names: list[str], **wanted: str | None) -> dict[str, str]:
    """Return the columns of roles that one column has, where the role was given."""
    return {role: one_column(names, n, role) for role, n in wanted.items() if n is not None}


def columns_of_groups(names: list[str], groups: Names | None) -> list[str]:
    """Return the columns that name a group, none where there are no groups."""
    return [] if groups is None else select_columns(names, groups, "groups")


def refuse_beside_confidence(positive: Any, classes: Names | None) -> None:
    """Raise where options of probabilities are given beside a predicted class."""
    if positive is not None or classes is not None:
        raise InputError(
            "--positive and --classes say which class a column of --proba belongs to; --confidence "
            "belongs to the class in --predicted. Leave them out."
        )


def refuse_no_prediction(
    texts: Sequence[str | None], answers: Sequence[str | None], column: str, first_row: int = 1
) -> None:
    """Raise for labelled rows without a predicted class."""
    pairs = zip(texts, answers, strict=True)
    absent = np.array([text is not None and answer is None for text, answer in pairs], dtype=bool)
    if absent.any():
        refuse_missing([column], absent, first_row)


def _labels(
    column: nw.Series, texts: list[str | None], match: ClassMatch
) -> tuple[NDArray, NDArray]:
    """Return the label of each item, and the classes, both in the type of the column."""
    classes = _typed_classes(match.classes, values_of(column))
    of_text = dict(zip(match.classes, classes.tolist(), strict=True))
    y = np.array([of_text[match.of_label[str(text)]] for text in texts], dtype=classes.dtype)
    seen = np.unique(y)
    if seen.size < 2:
        raise InputError(
            f"Every row of {column.name!r} holds {seen.tolist()[0]!r}; calibration needs items of "
            "at least two classes. Add rows of another class."
        )
    return y, classes


def match_labels(
    columns: list[str],
    stars: list[str] | None,
    texts: Sequence[str | None],
    label: str,
    positive: Any,
    classes: list[str] | None = None,
) -> ClassMatch:
    """Return which class each column and each spelling of a label means."""
    labels = sorted({text for text in texts if text is not None})
    if not labels:
        raise InputError(f"Column {label!r} (label) holds no label at all.")
    if len(labels) > MOST_LABELS:
        raise InputError(
            f"Column {label!r} (label) holds {len(labels):,} different values, such as "
            f"{listed(labels, 3)}. Name the column of observed classes."
        )
    if len(columns) == 1:
        if classes is not None:
            positive = positive_of(classes, positive)
        return match_positive(columns[0], labels, positive, label_column=label)
    if classes is not None:
        match = match_given_classes(columns, labels, classes, label_column=label)
    else:
        match = match_classes(columns, labels, label_column=label, stars=stars)
    if positive is not None:
        match.notes.append("--positive is not needed: there is one column per class.")
    return match


def _kept_rows(
    texts: list[str | None],
    match: ClassMatch,
    given: NDArray[np.float64],
    columns: list[str],
    *,
    drop_missing: bool,
    notes: list[str],
) -> NDArray[np.int64]:
    labelled = np.array([text in match.of_label for text in texts])
    if not labelled.all():
        n = int((~labelled).sum())
        notes.append(f"{n:,} row{'s' if n > 1 else ''} without a label left out.")
    absent = missing_rows(given)
    if (absent & labelled).any():
        n = int((absent & labelled).sum())
        if not drop_missing:
            refuse_missing(columns, np.isnan(given) & labelled[:, None])
        notes.append(f"{n:,} row{'s' if n > 1 else ''} without a probability left out.")
    kept = np.flatnonzero(labelled & ~absent)
    if kept.size < 2:
        raise InputError(
            f"{kept.size} of {len(texts):,} rows can be used; calibration needs items of at least "
            "two classes. Pass more labelled rows."
        )
    return kept


def refuse_missing(columns: list[str], absent: NDArray[np.bool_], first_row: int = 1) -> NoReturn:
    """Raise for labelled rows without a probability; ``absent`` may say in which columns."""
    raise InputError(
        f"{nothing_in(columns, absent, first_row)}. Pass --drop-missing to leave such rows out, or "
        "fill them in."
    )


def _typed_classes(names: list[str], labels: NDArray) -> NDArray:
    """Return the classes in the type of the labels, where every class can have it."""
    values = [value for value in labels.tolist() if value is not None]
    if all(isinstance(value, bool) for value in values) and set(names) <= {"True", "False"}:
        return np.array([name == "True" for name in names])
    if all(isinstance(value, int | float) for value in values):
        try:
            return np.array([int(name) for name in names], dtype=np.int64)
        except ValueError:
            pass
    return np.array(names)


def _about_being_right(labelled: LabelledTable) -> str:
    n_right = int((labelled.y == RIGHT).sum())
    return (
        f"What is calibrated is the probability that {labelled.roles.predicted!r} is right: the "
        f"classes are 'wrong' and 'right' ({n_right:,} of {labelled.n_items:,} rows). Nothing is "
        "known about the classes that were not predicted."
    )


def _groups(frame: nw.DataFrame, columns: list[str], rows: NDArray[np.int64]) -> NDArray | None:
    if not columns:
        return None
    refuse_no_group(frame, columns, rows)
    return group_names(frame, columns).to_numpy(dtype=str)


def _note_copies(labelled: LabelledTable) -> None:
    """Say how many rows repeat another: out-of-sample figures treat them as separate items.

    As in the diagnosis, rows that are equal because features have few values say nothing.
    """
    if labelled.groups is not None or labelled.X is None:
        return
    parts = pd.DataFrame(labelled.output, columns=[f"\0{j}" for j in range(len(labelled.classes))])
    parts["\0y"] = labelled.y
    parts = pd.concat([parts, labelled.X.reset_index(drop=True)], axis=1)
    copies = int(parts.duplicated().sum())
    if copies and _beyond_chance(labelled):
        labelled.notes.append(
            f"{copies:,} row{'s are' if copies > 1 else ' is'} like an earlier one in all used "
            "columns. If they are the same item, out-of-sample figures are too good: remove the "
            "copies, or name the item's column with --groups."
        )


def _beyond_chance(labelled: LabelledTable) -> bool:
    from hetcal.data.repeated_rows import repeated_rows  # which loads scikit-learn

    # Weights do not matter here, and are looked at where they do.
    return repeated_rows(replace(labelled, weight=None).items) is not None
