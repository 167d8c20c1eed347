"""The group of each row, by one column or by several together."""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal.tables.kinds import as_levels
from hetcal.tables.output_columns import row_numbers

_BETWEEN = "\x1f"  # "unit separator": in no name, so that a, bc and ab, c differ


def group_names(frame: nw.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Return the name of each row's group as text; None where a column is empty.

    Examples
    --------
    >>> table = nw.from_native(pd.DataFrame({"set": ["a", "a", None], "question": [1, 2, 1]}))
    >>> group_names(table, ["question"]).tolist()
    ['1', '2', '1']
    >>> group_names(table, ["set", "question"]).isna().tolist()
    [False, False, True]
    """
    levels = [as_levels(frame[name]) for name in columns]
    if len(levels) == 1:
        return levels[0]
    rows = zip(*(column.tolist() for column in levels), strict=True)
    names = [None if None in row else _BETWEEN.join(row) for row in rows]
    return pd.Series(names, dtype=object)


def refuse_no_group(frame: nw.DataFrame, columns: Sequence[str], rows: NDArray[np.int64]) -> None:
    """Raise where a row has no group, and name the column; ``rows`` are places in the table."""
    for name in columns:
        absent = rows[as_levels(frame[name]).isna().to_numpy()]
        if absent.size:
            places = np.zeros(int(absent[-1]) + 1, dtype=bool)
            places[absent] = True
            raise InputError(
                f"Column {name!r} (groups) is empty in {row_numbers(places)} (counted from 1). "
                "Fill it in, or leave these rows out."
            )
