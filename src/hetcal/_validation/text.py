"""Cells of text, as a CSV file holds them, to numbers, truth values and words.

Numbers are read by Python's own rules, exactly, and the same at fit and at apply. A number with
leading zeros (``"02139"``) is a code, not a quantity, and stays text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import InputError

Cells = Sequence[Any] | NDArray[Any]

#: Cells that say "not known".
MISSING = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None", "none"]
)
_TRUTH = {"true": 1.0, "false": 0.0}
# That much of two names must be the same; "aeg" and "age" have 0.67.
_CLOSE = 0.66


def is_missing(value: Any) -> bool:
    """Return whether a cell of any kind holds nothing."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, str):
        return value.strip() in MISSING
    return isinstance(value, float | np.floating) and math.isnan(value)


def as_text(value: Any) -> str:
    """Return a value as people write it: whole numbers without a decimal point, truth as words.

    Examples
    --------
    >>> as_text(1.0), as_text(2), as_text(True), as_text("New York")
    ('1', '2', 'True', 'New York')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def closest(wanted: str, names: Iterable[str], n: int = 1) -> list[str]:
    """Return the names that somebody who mistyped one of them may have meant.

    Examples
    --------
    >>> closest("temprature", ["platt", "temperature"]), closest("bagging", ["beta", "binning"])
    (['temperature'], [])
    """
    from difflib import get_close_matches

    return get_close_matches(wanted, list(names), n=n, cutoff=_CLOSE)


def short(number: float) -> str:
    """Write a number with four digits, or whole where it has more before the point.

    Examples
    --------
    >>> short(0.123456), short(15024.0)
    ('0.1235', '15024')
    """
    return f"{number:.4g}" if abs(number) < 10_000 else f"{number:.0f}"


def short_list(values: Iterable[Any], most: int = 10) -> str:
    """Return the first values as Python writes a list, and how many more there are.

    Examples
    --------
    >>> short_list(["a", "b"]), short_list(range(25), 3)
    ("['a', 'b']", '[0, 1, 2] and 22 more')
    """
    known = list(values)
    more = f" and {len(known) - most:,} more" if len(known) > most else ""
    return f"{known[:most]}{more}"


def parse_numbers(values: Cells, name: str, *, first_row: int = 1) -> NDArray[np.float64]:
    """Return cells as float64, missing ones as NaN; a cell that is no number is an error.

    Parameters
    ----------
    values : sequence
        Text, or numbers already.
    name : str
        The column, for the error.
    first_row : int, default=1
        The number that people would give to the first of these rows.

    Examples
    --------
    >>> parse_numbers(["0.25", "", "1e-3"], "p")
    array([0.25 ,   nan, 0.001])
    """
    try:
        return _as_floats(values)
    except (TypeError, ValueError):
        pass
    cells = [np.nan if is_missing(value) else _truth_as_number(value) for value in values]
    try:
        return _as_floats(cells)
    except (TypeError, ValueError):
        place, cell = next((i, cell) for i, cell in enumerate(cells) if not _is_number(cell))
        raise InputError(
            f"Column {name!r} should hold numbers, but row {first_row + place} (counted from 1) "
            f"holds {cell!r}. {_number_remedy(str(cell))}"
        ) from None


def infer_column(values: Sequence[str]) -> pd.Series:
    """Return a whole column of text as what it is: whole numbers, numbers, truth values or text.

    Examples
    --------
    >>> infer_column(["1", "2"]).tolist(), infer_column(["1", ""]).tolist()
    ([1, 2], [1.0, nan])
    >>> infer_column(["02139", "10001"]).tolist(), infer_column(["TRUE", "false"]).tolist()
    (['02139', '10001'], [True, False])
    """
    missing = [value in MISSING or is_missing(value) for value in values]
    known = [value for value, absent in zip(values, missing, strict=True) if not absent]
    if known and _all_numbers(known):
        if len(known) == len(values):
            whole = _as_integers(known)
            if whole is not None:
                return pd.Series(whole)
        cells = [np.nan if a else v for v, a in zip(values, missing, strict=True)]
        return pd.Series(_as_floats(cells))
    if known and all(value.strip().lower() in _TRUTH for value in known):
        truths = [
            None if a else _TRUTH[v.strip().lower()] == 1.0
            for v, a in zip(values, missing, strict=True)
        ]
        return pd.Series(truths, dtype=bool if len(known) == len(values) else object)
    # Words that usually mean "missing" may be a class or a level here; only blanks are nothing.
    return pd.Series([None if not v.strip() else v for v in values], dtype=object)


def _as_floats(values: Cells) -> NDArray[np.float64]:
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return values.astype(np.float64)
    return np.array(list(values), dtype=object).astype(np.float64)


def _as_integers(values: Sequence[str]) -> NDArray[np.int64] | None:
    try:
        return np.array(values, dtype=object).astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        return None


def _all_numbers(values: Sequence[str]) -> bool:
    try:
        _as_floats(values)
    except ValueError:
        return False
    return not any(_is_code(value.strip()) for value in values)


def _is_code(text: str) -> bool:
    digits = text.lstrip("+-")
    return (digits[:1] == "0" and digits[1:2].isdigit()) or "_" in text


def _truth_as_number(value: Any) -> Any:
    return _TRUTH.get(value.strip().lower(), value) if isinstance(value, str) else value


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _number_remedy(cell: str) -> str:
    if cell.rstrip().endswith("%"):
        return "If these are percentages, say so at fit: --percent (percent=True)."
    if "," in cell:
        return (
            "If the comma is a decimal sign, pass --decimal , (decimal=','); else write numbers "
            "without separators, e.g. 1234.5."
        )
    return "Correct the cell, leave it empty if it is not known, or use another column."
