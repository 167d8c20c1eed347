"""Columns that are no features: row numbers, ids, dates, free text, and what never varies."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from hetcal.tables.decimal_commas import COMMA_NUMBER

#: The reasons for text that may be numbers.
WITH_COMMAS, WITH_PERCENT = "numbers with a comma", "numbers with a % sign"
_PERCENT = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)\s*%\s*")
# Below so many rows nothing can be said about how a column varies.
_FEW_ROWS = 20
_MOST_LEVELS = 100
_ID_NAME = re.compile(r"(^|[_\W])(id|ids|uuid|guid|key|index|idx|rowid|nr|row)$", re.IGNORECASE)
_ID_CAMEL = re.compile(r"[a-z](Id|ID|Key|Uuid|UUID)$")
_INDEX_NAMES = {"", "Unnamed: 0", "__index_level_0__"}
# Whole numbers drawn at random from so few would coincide, but for one table in 20 000.
_PAIRS_WITHOUT_A_TIE = 10


def why_excluded(name: str, values: pd.Series, kind: str) -> str | None:
    """Return why a column is no feature, or None where it may be one.

    Parameters
    ----------
    name : str
        The column.
    values : pandas.Series
        Its values, from :func:`hetcal.tables.kinds.as_feature`.
    kind : str
        Its kind, from :func:`hetcal.tables.kinds.kind_of`.

    Examples
    --------
    >>> why_excluded("customer_id", pd.Series(range(100, 200)), "number")
    'an id'
    >>> why_excluded("age", pd.Series([31, 58, 44] * 20), "number") is None
    True
    """
    if kind in ("date", "nested", "empty"):
        return {"date": "a date", "nested": "lists or records", "empty": "empty"}[kind]
    n_rows, n_distinct = len(values), int(values.nunique())
    named_like_id = _named_like_id(name) and (kind == "text" or _whole(values))
    if n_rows < _FEW_ROWS:
        return "an id" if named_like_id else None
    if n_distinct <= 1 and not values.isna().any():
        return "the same in every row"
    if named_like_id and n_distinct > max(_FEW_ROWS, 0.1 * n_rows):
        return "an id" if n_distinct == n_rows else f"an id, {n_distinct:,} different ones"
    if kind == "number" and _counts_rows(values):
        return "a row number"
    if kind == "number" and _numbers_rows(values):
        return "a different whole number in every row, like an id"
    if kind == "text" and with_commas(values):
        return WITH_COMMAS
    if kind == "text" and with_percent(values):
        return WITH_PERCENT
    if kind == "text":
        if n_distinct == n_rows:
            return "a different text in every row"
        if n_distinct > _MOST_LEVELS:
            return f"text with {n_distinct:,} different values"
    return None


def with_commas(values: pd.Series) -> bool:
    """Say whether text holds numbers with commas, and nothing else.

    Examples
    --------
    >>> with_commas(pd.Series(["0,5", "12", None])), with_commas(pd.Series(["a,b", "12"]))
    (True, False)
    """
    texts = values.dropna().astype(str)
    return bool(texts.str.fullmatch(COMMA_NUMBER).all() and texts.str.contains(",").any())


def with_percent(values: pd.Series) -> bool:
    """Say whether text holds numbers with a % sign, and nothing else.

    Examples
    --------
    >>> with_percent(pd.Series(["0.5 %", "12%", None])), with_percent(pd.Series(["5 %", "12"]))
    (True, False)
    """
    texts = values.dropna().astype(str)
    return bool(len(texts) and texts.str.fullmatch(_PERCENT).all())


def _named_like_id(name: str) -> bool:
    return bool(name in _INDEX_NAMES or _ID_NAME.search(name) or _ID_CAMEL.search(name))


def _whole(values: pd.Series) -> bool:
    numbers = values.dropna().to_numpy(dtype=np.float64)
    return bool((numbers == np.floor(numbers)).all())


def _numbers_rows(values: pd.Series) -> bool:
    """Say whether whole numbers lie so close together that equal ones were to be expected.

    Of n numbers out of R, about n^2 / 2R pairs coincide by chance; more, where some are frequent.
    """
    if values.isna().any() or values.nunique() < len(values) or not _whole(values):
        return False
    numbers = values.to_numpy(dtype=np.float64)
    return len(numbers) ** 2 / 2 >= _PAIRS_WITHOUT_A_TIE * (np.ptp(numbers) + 1)


def _counts_rows(values: pd.Series) -> bool:
    numbers = values.to_numpy(dtype=np.float64)
    return bool(np.isin(numbers[0], (0, 1)) and (np.diff(numbers) == 1).all())
