"""Dates in columns, read alike in all of their rows."""

from __future__ import annotations

import re

import pandas as pd

_DAY_AND_MONTH = re.compile(r"^\s*(\d{1,2})[./-](\d{1,2})[./-](?:\d{4}|\d{2})\b")
_WITH_POINTS, _MONTHS = re.compile(r"^\s*\d+\.\d+\."), 12
# pandas takes it for a time of today.
_CLOCK = r"\s*\d{1,2}:\d{2}.*"


def are_dates(values: pd.Series) -> bool:
    """Return whether values are dates rather than numbers, or text of either.

    Examples
    --------
    >>> are_dates(pd.Series(["2024-05-01", "2024-05-02"])), are_dates(pd.Series(["1", "2.5"]))
    (True, False)
    """
    if pd.api.types.is_datetime64_any_dtype(values):
        return True
    numbers = pd.to_numeric(values, errors="coerce")
    return bool((numbers.isna() & values.notna()).any())


def read_dates(values: pd.Series, name: str) -> pd.Series:
    """Return dates in UTC, NaT where there is none; what is the month, the whole column shows.

    Examples
    --------
    >>> read_dates(pd.Series(["05.03.2024", "2024-03-06", "soon"]), "times").dt.strftime("%d %b")
    0    05 Mar
    1    06 Mar
    2       NaN
    dtype: ...
    """
    dates = pd.to_datetime(values, errors="coerce", utc=True, format="ISO8601")
    others = values[dates.isna() & values.notna()]
    numbers = pd.to_numeric(others, errors="coerce").notna()
    others = others[~(numbers | others.astype(str).str.fullmatch(_CLOCK))]
    if others.empty:
        return dates
    read = pd.to_datetime(
        others, errors="coerce", format="mixed", utc=True, dayfirst=_day_first(others, name)
    )
    return dates.where(~dates.index.isin(others.index), read.reindex(dates.index))


def _day_first(values: pd.Series, name: str) -> bool:
    """Return whether 05.03.2024 is in March, as the whole column shows: pandas asks each cell.

    Points stand between day, month and year wherever they are written.
    """
    texts = values.astype(str)
    parts = texts.str.extract(_DAY_AND_MONTH).dropna()
    if parts.empty:
        return False
    beyond = parts.astype(int).max() > _MONTHS
    if beyond.nunique() == 2:
        return bool(beyond[0])
    shown = texts[parts.index]
    if not beyond.any() and shown.str.contains(_WITH_POINTS).all():
        return True
    raise ValueError(
        f"{name} holds dates such as {shown.iloc[0]!r}, and its rows do not show what is the day "
        "and what the month. Write them as 2024-03-05."
    )
