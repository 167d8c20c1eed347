"""Columns that divide rows into groups to be compared, each column by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._validation.containers import as_array, as_frame, as_vector

# More are a quantity or a name of each row, not groups to be compared.
_MOST_GROUPS = 100
MISSING = "(missing)"


class Grouping(NamedTuple):
    """One way to divide the rows: its name, the names of its groups, the group of each row."""

    by: str
    groups: list[Any]
    codes: NDArray[np.int64]


def check_groups_by(groups_by: Any, n_rows: int, *, name: str, caller: str) -> list[Grouping]:
    """Return the groupings that a vector, a table or a dict of vectors stands for.

    Rows without a value are a group of their own.

    Examples
    --------
    >>> [grouping] = check_groups_by(["b", "a", None], 3, name="groups_by", caller="evaluate")
    >>> grouping.groups, grouping.codes
    (['a', 'b', '(missing)'], array([1, 0, 2]))
    """
    if isinstance(groups_by, str):
        raise TypeError(
            f"{caller}: {name} is the string {groups_by!r}. Pass the column itself, for example "
            f"{name}=table[{groups_by!r}]."
        )
    _refuse_same_names(groups_by, name, caller)
    columns = _columns(groups_by, name)
    if not columns:
        raise ValueError(f"{caller}: {name} is empty. Pass at least one column of group names.")
    return [
        Grouping(by, *_coded(vector, by, n_rows, name, caller)) for by, vector in columns.items()
    ]


def _refuse_same_names(groups_by: Any, name: str, caller: str) -> None:
    given: Any = getattr(groups_by, "column_names", [])  # of Arrow; polars lets no name come twice
    if isinstance(groups_by, Mapping):
        given = groups_by
    elif isinstance(groups_by, pd.DataFrame):
        given = groups_by.columns
    [(by, times)] = Counter(map(str, given)).most_common(1) or [("", 0)]
    if times > 1:
        raise ValueError(
            f"{caller}: {name} has several columns called {by!r}, so their groups could not be "
            "told apart. Rename them, or pass one of them."
        )


def _columns(groups_by: Any, name: str) -> dict[str, NDArray]:
    if isinstance(groups_by, Mapping):
        return {str(by): as_vector(column, f"{name}[{by!r}]") for by, column in groups_by.items()}
    frame = as_frame(groups_by)
    if frame is not None:
        return {str(column.name): as_vector(column, name) for column in frame.iter_columns()}
    array = as_array(groups_by, name)
    if array.ndim == 2 and array.shape[1] > 1:
        return {f"column {j}": array[:, j] for j in range(array.shape[1])}
    own_name = getattr(groups_by, "name", None)
    return {"group" if own_name in (None, "") else str(own_name): as_vector(groups_by, name)}


def _coded(
    vector: NDArray, by: str, n_rows: int, name: str, caller: str
) -> tuple[list[Any], NDArray[np.int64]]:
    if vector.shape[0] != n_rows:
        raise ValueError(
            f"{caller}: {name}[{by!r}] has {vector.shape[0]} values but there are {n_rows} rows; "
            "pass one group name per row."
        )
    missing = pd.isna(vector)
    codes = np.empty(n_rows, dtype=np.int64)
    codes[~missing], found = pd.factorize(vector[~missing], sort=_sortable(vector[~missing]))
    codes[missing] = found.shape[0]
    groups = found.tolist()
    if missing.any():
        groups.append(_name_of_missing(groups))
    if len(groups) > _MOST_GROUPS:
        raise ValueError(
            f"{caller}: {name}[{by!r}] has {len(groups)} different values; at most {_MOST_GROUPS} "
            "groups are compared. Divide quantities into ranges first, e.g. pandas.qcut(..., 4)."
        )
    return groups, codes


def _name_of_missing(groups: list[Any]) -> str:
    """Return what rows without a value are called; never as a group that has this very name."""
    taken, name = set(map(str, groups)), MISSING
    while name in taken:
        name = f"(no value, not {name!r})"
    return name


def _sortable(values: NDArray) -> bool:
    try:
        np.sort(values)
    except TypeError:  # names and numbers together
        return False
    return True
