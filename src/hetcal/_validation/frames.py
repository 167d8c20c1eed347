"""Result tables as plain columns, for whatever stores estimators and knows no pandas."""

from __future__ import annotations

from typing import Any

import pandas as pd

_MARK = "columns of a table"


def columns_of(table: pd.DataFrame) -> dict[str, Any]:
    """Return a table as a dict: numbers as arrays, everything else as lists.

    Examples
    --------
    >>> columns_of(pd.DataFrame({"brier": [0.1, 0.2]}, index=["a", "b"]))["index"]
    ['a', 'b']
    """
    columns = {}
    for name in table.columns:
        values = table[name].to_numpy()
        columns[str(name)] = values if values.dtype.kind in "biuf" else values.tolist()
    numbered = isinstance(table.index, pd.RangeIndex)
    return {
        "columns": columns,
        "index": None if numbered else table.index.tolist(),
        "index_name": None if table.index.name is None else str(table.index.name),
    }


def from_columns(state: dict[str, Any]) -> pd.DataFrame:
    """Return the table that :func:`columns_of` took apart."""
    if state["index"] is None:
        return pd.DataFrame(state["columns"])
    index = pd.Index(state["index"], name=state["index_name"])
    return pd.DataFrame(state["columns"], index=index)


class TablesAsColumns:
    """Lets estimators with tables among their attributes be stored by skops too."""

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {
            name: {_MARK: columns_of(value)} if isinstance(value, pd.DataFrame) else value
            for name, value in state.items()
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(  # type: ignore[misc]
            {
                name: from_columns(value[_MARK])
                if isinstance(value, dict) and _MARK in value
                else value
                for name, value in state.items()
            }
        )
