"""Columns of vectors (embeddings) to columns of numbers, one per component."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from hetcal._validation.containers import as_frame

_SEQUENCES = (list, tuple, np.ndarray)


def spread_vectors(X: Any) -> Any:
    """Return features with one column per component in place of each column of vectors.

    Vectors are lists or arrays of numbers, all of one length; where one is missing, its numbers
    are. An array of arrays becomes one array. What holds no vectors comes back as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> spread_vectors(pd.DataFrame({"age": [31, 58], "text": [[0.1, 0.2], [0.3, 0.4]]}))
       age  text[0]  text[1]
    0   31      0.1      0.2
    1   58      0.3      0.4
    """
    frame = as_frame(X)
    if frame is None:
        return _stacked(X) if len(getattr(X, "shape", ())) == 1 else X
    if not any(_holds_vectors(column) for column in frame.iter_columns()):
        return X
    parts = [part for column in frame.iter_columns() for part in _parts(column)]
    return frame.select(*parts).to_native()


def _stacked(X: Any) -> Any:
    array = np.asarray(X)
    if array.ndim == 1 and _are_vectors(array):
        return _matrix(array, np.array([_is_missing(value) for value in array]), "X")
    return X if array.ndim == 1 else array


def _parts(column: nw.Series) -> list[nw.Series]:
    if not _holds_vectors(column):
        return [column]
    # Some versions of polars show a missing list as an empty one.
    missing = column.is_null().to_numpy()
    matrix = _matrix(column.to_numpy(), missing, f"Column {column.name!r} of X")
    return [
        nw.new_series(f"{column.name}[{j}]", values, backend=column.implementation)
        for j, values in enumerate(np.ascontiguousarray(matrix.T))
    ]


def _holds_vectors(column: nw.Series) -> bool:
    dtype = column.dtype
    if isinstance(dtype, nw.List | nw.Array):
        return dtype.inner.is_numeric() and not column.is_null().all()
    return dtype == nw.Object and _are_vectors(column.to_numpy())


def _are_vectors(values: NDArray) -> bool:
    if values.dtype != object:
        return False
    return isinstance(next((v for v in values if not _is_missing(v)), None), _SEQUENCES)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _matrix(values: NDArray, missing: NDArray[np.bool_], name: str) -> NDArray[np.float64]:
    """Return vectors as the rows of a matrix."""
    if values.ndim == 2:
        return np.where(missing[:, None], np.nan, values)
    known = ~missing
    lengths = sorted({len(vector) for vector in values[known]})
    if len(lengths) > 1:
        raise TypeError(
            f"{name} holds vectors of {lengths[0]} to {lengths[-1]} numbers; all must have one "
            "length. Leave it out, or make them equally long."
        )
    matrix = np.full((len(values), lengths[0]), np.nan)
    try:
        matrix[known] = np.stack([np.asarray(v, dtype=np.float64) for v in values[known]])
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} holds lists that are not of numbers ({error}). Leave it out, or encode it."
        ) from error
    return matrix
