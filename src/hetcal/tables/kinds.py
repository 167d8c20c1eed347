"""What a column holds, and its values in the one form that calibrators get to see.

The kinds: ``number``, ``boolean`` (as 0 and 1), ``text`` (levels), ``date``, ``nested`` and
``empty``; a nested column that is used as a feature is a ``vector``. A table that comes later is
read by the kinds of the table that was fitted on, whatever format it comes in.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal._validation.text import as_text, is_missing, parse_numbers

_DATES = (nw.Date, nw.Datetime, nw.Time, nw.Duration)
_NESTED = (nw.List, nw.Array, nw.Struct, nw.Binary)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{4}( .*)?")
_DATES_LOOKED_AT = 1000
_PERHAPS_INFINITE = re.compile(r"[nN]").search  # of "inf", in any spelling


def as_table(data: Any) -> nw.DataFrame | None:
    """Return a narwhals view of a pandas, polars or Arrow table; None for anything else.

    The same as in ``_validation``, which would load scikit-learn first: who mistyped a column
    should not wait for that. Columns that are named by numbers are named by their text.
    """
    if isinstance(data, pd.DataFrame) and not all(isinstance(name, str) for name in data.columns):
        data = data.set_axis([str(name) for name in data.columns], axis=1)
    try:
        frame = nw.from_native(data, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        names = [str(name) for name in data.columns]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"The table has two columns named {twice!r}. Rename one of them, so that it is clear "
            "which is meant."
        ) from error
    return frame if isinstance(frame, nw.DataFrame) else None


def kind_of(series: nw.Series) -> str:
    """Return the kind of a column.

    Examples
    --------
    >>> table = nw.from_native(pd.DataFrame({"age": [31, 58], "day": ["2024-05-01", "2024-05-02"]}))
    >>> kind_of(table["age"]), kind_of(table["day"])
    ('number', 'date')
    """
    dtype = series.dtype
    if series.is_null().all():
        return "empty"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_numeric():
        return "number"
    if any(dtype == kind or isinstance(dtype, kind) for kind in _DATES):
        return "date"
    if any(dtype == kind or isinstance(dtype, kind) for kind in _NESTED):
        return "nested"
    return _kind_of_objects(values_of(series))


def values_of(series: nw.Series) -> NDArray:
    """Return the values as numpy gives them; text and mixtures as objects."""
    if series.dtype == nw.Decimal:
        return series.cast(nw.Float64).to_numpy()
    return np.asarray(series.to_numpy())


def as_numbers(series: nw.Series, *, first_row: int = 1) -> NDArray[np.float64]:
    """Return a column of numbers, truth values or text that reads as numbers; NaN is missing."""
    return parse_numbers(values_of(series), str(series.name), first_row=first_row)


def as_weights(
    series: nw.Series,
    rows: NDArray[np.bool_] | NDArray[np.int64] | None = None,
    *,
    first_row: int = 1,
) -> NDArray[np.float64]:
    """Return the weights of some rows of a column; ``first_row`` is the number of its first row.

    Raises
    ------
    InputError
        Where one of them is missing, infinite or negative.
    """
    values = values_of(series)
    places = np.arange(len(values))[slice(None) if rows is None else rows]
    if values.dtype == object:  # what other rows hold does not matter
        known, values = values, np.full(len(values), None)
        values[places] = known[places]
    weight = parse_numbers(values, str(series.name), first_row=first_row)
    bad = ~np.isfinite(weight[places]) | (weight[places] < 0)
    if bad.any():
        place = int(places[np.argmax(bad)])
        held = "nothing" if np.isnan(weight[place]) else f"{weight[place]:g}"
        raise InputError(
            f"Column {str(series.name)!r} (weight) holds {held} in row {place + first_row} "
            "(counted from 1). Write how much the row counts, a number from 0 (not at all) on."
        )
    return weight[places]


def as_levels(series: nw.Series) -> pd.Series:
    """Return a column as text, None where nothing is known."""
    values = values_of(series).tolist()
    return pd.Series([None if is_missing(v) else as_text(v) for v in values], dtype=object)


def as_labels(series: nw.Series) -> list[str | None]:
    """Return labels as text, None for a blank; a word such as "NA" may be a label and stays."""
    return [
        None if (not v.strip() if isinstance(v, str) else is_missing(v)) else as_text(v)
        for v in values_of(series).tolist()
    ]


def as_feature(series: nw.Series, kind: str, *, first_row: int | None = None) -> pd.Series:
    """Return a feature by its kind: float64 for numbers and truth values, text for levels.

    With ``first_row``, the number of the first row, an infinite number is an error.
    """
    if kind == "text":
        return as_levels(series)
    numbers = pd.Series(as_numbers(series, first_row=first_row or 1))
    if first_row is not None:
        refuse_infinite(numbers, str(series.name), first_row)
    return numbers


def as_components(series: nw.Series, *, first_row: int | None = None) -> dict[str, pd.Series]:
    """Return a column of vectors as columns of numbers, one per component.

    With ``first_row``, the number of the first row, an infinite number is an error.
    """
    from hetcal._validation.vectors import spread_vectors  # which loads scikit-learn

    try:
        spread = as_table(spread_vectors(series.to_frame().to_native()))
    except TypeError as error:
        raise InputError(str(error)) from error
    if spread is None or spread.columns == [series.name]:
        raise InputError(
            f"Column {series.name!r} holds no vectors: expected lists of numbers, all of one "
            "length. Leave it out, or turn it into numbers."
        )
    return {
        name: as_feature(spread[name], "number", first_row=first_row) for name in spread.columns
    }


def refuse_infinite(values: pd.Series, name: str, first_row: int = 1, of: str = "") -> None:
    """Raise where a feature holds an infinite number; ``of`` says which rows are counted."""
    infinite = np.isinf(values) if values.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if infinite.any():
        refuse_infinite_row(name, first_row + int(infinite.argmax()), of)


def refuse_infinite_row(name: str, row: int, of: str = "") -> NoReturn:
    """Raise for an infinite number in a row."""
    raise InputError(
        f"Column {name!r} holds an infinite number in row {row}{of} (counted from 1). Put a finite "
        "one in its place, or leave the cell empty if it is not known."
    )


def first_infinite(series: nw.Series) -> int | None:
    """Return the place of the first infinite number in a column; whatever is no number is not."""
    values = values_of(series)
    if values.dtype != object:
        infinite = np.isinf(values) if values.dtype.kind == "f" else np.zeros(0, dtype=bool)
        return int(infinite.argmax()) if infinite.any() else None
    # Few texts can be one ("inf"); reading all as numbers would take as long again.
    texts = [value if isinstance(value, str) else "" for value in values]
    named = _PERHAPS_INFINITE("\n".join(texts)) is not None
    places = [i for i, text in enumerate(texts) if _PERHAPS_INFINITE(text)] if named else []
    places += [i for i, value in enumerate(values) if isinstance(value, float) and np.isinf(value)]
    distinct = sorted({str(values[i]) for i in places})
    numbers = pd.to_numeric(pd.Series(distinct, dtype=object), errors="coerce")
    infinite_words = {word for word, n in zip(distinct, numbers, strict=True) if np.isinf(n)}
    return min((i for i in places if str(values[i]) in infinite_words), default=None)


def _kind_of_objects(values: NDArray) -> str:
    known: list[Any] = [v for v in values.tolist() if not is_missing(v)]
    if not known:
        return "empty"
    if all(isinstance(v, bool | np.bool_) for v in known):
        return "boolean"
    if all(isinstance(v, int | float | np.number) for v in known):
        return "number"
    if all(hasattr(v, "year") or hasattr(v, "total_seconds") for v in known):
        return "date"
    if any(isinstance(v, list | tuple | dict | set | np.ndarray | bytes) for v in known):
        return "nested"
    looked_at = known[:_DATES_LOOKED_AT]
    if all(isinstance(v, str) and _ISO_DATE.fullmatch(v.strip()) for v in looked_at):
        return "date"
    return "text"
