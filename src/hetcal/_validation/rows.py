"""Checks that hold row by row: equal lengths, the same order, weights, groups."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import WeightWarning, levels_to_caller
from hetcal._validation.containers import (
    as_array,
    as_float_array,
    as_frame,
    as_vector,
    number_of_rows,
)

_LARGEST_WEIGHT = 1e100
#: Weights above this on average are rarely counts of items, and a warning asks.
_MOST_PER_ROW = 10
# Equal rows that weighted ones are worth, below which nothing is learned; and as a share of them,
# since a few rows are not uneven for being few.
_HANDFUL, _UNEVEN = 5, 0.25

_GIVEN_WITH_THE_ITEMS = ("X", "y", "groups", "sample_weight")


def check_same_rows(**named: Any) -> int:
    """Return the common number of rows of the arguments that are not None.

    Examples
    --------
    >>> check_same_rows(X=[[1], [2]], y=[0, 1], y_proba=None)
    2
    >>> check_same_rows(X=[[1], [2]], y=[0, 1, 1])
    Traceback (most recent call last):
    ...
    ValueError: X has 2 rows but y has 3. Each row of X, y and y_proba must describe the same...
    """
    rows = {name: number_of_rows(data, name) for name, data in named.items() if data is not None}
    (first, n_rows), *rest = rows.items()
    for name, n in rest:
        if n != n_rows:
            raise ValueError(
                f"{first} has {n_rows} rows but {name} has {n}. Each row of X, y and y_proba must "
                "describe the same item (inconsistent numbers of samples); select the same rows "
                "in each."
            )
    if n_rows == 0:
        raise ValueError(
            f"{first} is empty: found 0 sample(s) while a minimum of 1 is required. "
            "Pass at least one row."
        )
    check_same_order(**named)
    return n_rows


def check_same_order(**named: Any) -> None:
    """Raise when pandas objects hold the same rows, by their index, in another order.

    Indexes are not aligned, as in scikit-learn: the first row belongs to the first label. Numbers
    from 0 on may be those of a table that was made from an array, so that there a warning must do.

    Examples
    --------
    >>> check_same_order(
    ...     X=pd.DataFrame({"age": [31, 58]}, index=[7, 8]), y=pd.Series([0, 1], index=[8, 7])
    ... )
    Traceback (most recent call last):
    ...
    ValueError: X and y hold the same rows in another order, by their index. Align them, e.g. ...
    """
    indexed = [(name, data.index) for name, data in named.items() if _has_index(name, data)]
    for (first, expected), (name, index) in combinations(indexed, 2):
        if _in_other_order(expected, index):
            text = (
                f"{first} and {name} hold the same rows in another order, by their index. Align "
                f"them, e.g. {name}.loc[{first}.index]; if their order is right, pass both with "
                ".reset_index(drop=True)."
            )
            if not (_numbered(expected) or _numbered(index)):
                raise ValueError(text)
            warnings.warn(text, UserWarning, stacklevel=levels_to_caller())


def _has_index(name: str, data: Any) -> bool:
    index = getattr(data, "index", None)
    # A table of predictions is often made from an array: then its numbers say nothing.
    says_nothing = isinstance(index, pd.RangeIndex) and name not in _GIVEN_WITH_THE_ITEMS
    return isinstance(index, pd.Index) and not says_nothing


def _numbered(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _in_other_order(one: pd.Index, other: pd.Index) -> bool:
    if one is other or len(one) != len(other) or one.nlevels != other.nlevels or one.equals(other):
        return False
    return bool(one.is_unique and other.is_unique and other.isin(one).all())


def check_sample_weight(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Return weights as float64, all ones when None."""
    if sample_weight is None:
        return np.ones(n_rows)
    if np.isscalar(sample_weight):
        raise ValueError(
            f"sample_weight is the single number {sample_weight!r}; pass one weight per row."
        )
    weight = as_float_array(as_vector(sample_weight, "sample_weight"), "sample_weight")
    if weight.shape[0] != n_rows:
        raise ValueError(
            f"sample_weight has {weight.shape[0]} values but there are {n_rows} rows; "
            "pass one weight per row."
        )
    bad = ~np.isfinite(weight) | (weight < 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight must be finite and not negative; row {row} has {float(weight[row])!r}. "
            "Drop such rows or set their weight to 0."
        )
    if not weight.any():
        raise ValueError(
            "sample_weight is zero for every row; at least one row needs a positive weight."
        )
    if weight.max() > _LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight holds {weight.max():g}; sums of such weights are no numbers any more. "
            "Divide all weights by their mean."
        )
    return weight


def weights_as_counts(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights of which those above zero have a mean of at least 1.

    A row that is there counts for one item or more. Weights that are merely relative, for example
    normalised to sum to one, would else look like next to no data, and priors would win.

    Examples
    --------
    >>> weights_as_counts(np.array([0.25, 0.75, 0.0]))
    array([0.5, 1.5, 0. ])
    >>> weights_as_counts(np.array([1.0, 3.0]))
    array([1., 3.])
    """
    return relative_weights(weight) if weight[weight > 0].mean() < 1 else weight


def relative_weights(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights of which those above zero have a mean of 1: only their ratios are left.

    Examples
    --------
    >>> relative_weights(np.array([1000.0, 3000.0, 0.0]))
    array([0.5, 1.5, 0. ])
    """
    return weight / weight[weight > 0].mean()


def warn_large_counts(weight: NDArray[np.float64] | None) -> None:
    """Warn where weights, taken as counts, stand for many more items than there are rows."""
    if weight is None:
        return
    known = weight[weight > 0]
    if known.mean() > _MOST_PER_ROW:
        warnings.warn(
            f"sample_weight (--weight) is {known.mean():,.0f} on average. Global maps take "
            f"weights as counts (2 is the row twice), so the {known.shape[0]:,} rows stand for "
            f"{known.sum():,.0f} items that support whatever fits them. If only the ratios of the "
            "weights have a meaning (amounts, survey weights, 1 / rate of sampling), divide them "
            "by their mean, sample_weight / sample_weight.mean() (for --weight: in the table), or "
            "use the hybrid (--method hybrid), to which only ratios matter.",
            WeightWarning,
            stacklevel=levels_to_caller(),
        )


def warn_uneven_weights(weight: NDArray[np.float64], *, caller: str) -> None:
    """Warn where weights leave less than a handful of rows, by Kish's number of equal ones."""
    known = weight[weight > 0] / weight.max()
    worth = known.sum() ** 2 / (known @ known)
    if worth < min(_HANDFUL, _UNEVEN * known.shape[0]):
        warnings.warn(
            f"{caller}: sample_weight (--weight) is so uneven that the {known.shape[0]:,} rows are "
            f"worth {worth:.1f} equal ones, (sum w)^2 / sum w^2; {_HANDFUL} are the least that "
            "anything can be learned from. Whatever is said is what the heaviest rows say. Check "
            "the largest weights, cap them, or leave sample_weight out.",
            WeightWarning,
            stacklevel=levels_to_caller(),
        )


def check_groups(groups: Any, n_rows: int) -> NDArray[np.int64] | None:
    """Return group numbers 0..G-1 (items of one group stay together), or None.

    Several columns, as a table or an array, name a group together: rows are of one group where all
    of them are equal.

    Examples
    --------
    >>> check_groups([["a", 1], ["a", 2], ["b", 1], ["a", 2]], 4)
    array([0, 1, 2, 1])
    """
    if groups is None:
        return None
    columns = _group_columns(groups)
    for name, vector in columns.items():
        _check_group_column(vector, name, n_rows)
    codes = np.zeros(n_rows, dtype=np.int64)
    for vector in columns.values():
        of_column = np.unique(_group_names(vector), return_inverse=True)[1]
        # Numbered anew after each column, so that products cannot become too large.
        codes = np.unique(codes * (of_column.max() + 1) + of_column, return_inverse=True)[1]
    if not codes.any():
        first = [str(vector[0]) for vector in columns.values()]
        raise ValueError(
            f"groups holds the single value {', '.join(map(repr, first))}, so no split can keep "
            "groups apart. Pass at least two groups, or groups=None if the rows are independent."
        )
    return codes.astype(np.int64)


def _group_names(vector: NDArray) -> NDArray:
    """Return the values of a column of groups as text: equal ones as equal text."""
    if vector.dtype.kind in "OS":  # pairs and bytes too, which NumPy cannot turn into text
        return np.array([str(value) for value in vector.tolist()])
    return (vector + 0 if vector.dtype.kind == "f" else vector).astype(str)  # -0 is 0


def _group_columns(groups: Any) -> dict[str, NDArray]:
    """Return the columns of groups one by one: put together, their types would be changed."""
    frame = as_frame(groups)
    if frame is not None and frame.shape[1] > 1:
        return {f"groups[{c.name!r}]": as_vector(c, "groups") for c in frame.iter_columns()}
    array = as_array(groups, "groups")
    if array.ndim == 2 and array.shape[1] > 1:
        return {f"groups[:, {j}]": array[:, j] for j in range(array.shape[1])}
    return {"groups": as_vector(groups, "groups")}


def _check_group_column(vector: NDArray, name: str, n_rows: int) -> None:
    if vector.shape[0] != n_rows:
        raise ValueError(
            f"{name} has {vector.shape[0]} values but there are {n_rows} rows; "
            "pass one group name per row."
        )
    missing = np.flatnonzero(pd.isna(vector))
    if missing.shape[0]:
        raise ValueError(
            f"{name} has {missing.shape[0]} missing value(s), the first in row {missing[0]}. "
            "Give every row a group; a row on its own is a group of one."
        )
