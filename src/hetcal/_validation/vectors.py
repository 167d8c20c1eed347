"""Columns of vectors (embeddings) and sparse columns to columns of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._validation.containers import as_frame

#: Bytes as dense numbers up to which a table of sparse columns is read as any other table.
_LARGEST_DENSE = 100_000_000
_SEQUENCES = (list, tuple, np.ndarray)


def spread_vectors(X: Any, known: Iterable[str] | None = None) -> Any:
    """Return features with one column per component in place of each column of vectors.

    Vectors are lists or arrays of numbers, all of one length; where one is missing, its numbers
    are. An array of arrays becomes one array. Sparse columns of pandas become plain ones; a table
    of nothing else, too large for that, becomes a sparse matrix, which says what to do where it
    cannot be used. What holds no vectors comes back as it is.

    Parameters
    ----------
    X : table, array, Series or anything else
    known : iterable of str, optional
        The columns at fit. They tell how long vectors are of which all are missing.

    Examples
    --------
    >>> import pandas as pd
    >>> spread_vectors(pd.DataFrame({"age": [31, 58], "text": [[0.1, 0.2], [0.3, 0.4]]}))
       age  text[0]  text[1]
    0   31      0.1      0.2
    1   58      0.3      0.4
    """
    X = _without_sparse_columns(X)
    frame = as_frame(X)
    if frame is None:
        return _stacked(X) if len(getattr(X, "shape", ())) == 1 else X
    lengths = {} if known is None else vector_lengths(known)
    blocks = {column.name: _block(column, lengths) for column in frame.iter_columns()}
    if all(block is None for block in blocks.values()):
        return X
    return _side_by_side(nw.maybe_reset_index(frame), blocks)


def _without_sparse_columns(X: Any) -> Any:
    """Return a table without sparse columns of pandas."""
    if not isinstance(X, pd.DataFrame):
        return X
    table: Any = X  # whose accessor .sparse the types of pandas do not know
    kinds = {j: dtype for j, dtype in enumerate(X.dtypes) if isinstance(dtype, pd.SparseDtype)}
    if not kinds:
        return X
    zeros = all(kind.fill_value == 0 for kind in kinds.values())
    if len(kinds) == X.shape[1] and zeros and 8 * X.size > _LARGEST_DENSE:
        return table.sparse.to_coo().tocsr()
    columns = [table.iloc[:, j] for j in range(X.shape[1])]
    return pd.concat(
        [c.sparse.to_dense() if j in kinds else c for j, c in enumerate(columns)], axis=1
    )


def vector_lengths(names: Iterable[str]) -> dict[str, int]:
    """Return which vectors were spread into columns of these names, and how long they are.

    Examples
    --------
    >>> vector_lengths(["age", "text[0]", "text[1]", "odd[3]"])
    {'text': 2}
    """
    known = set(names)
    often = Counter(name.rpartition("[")[0] for name in known if name.endswith("]"))
    return {
        name: length
        for name, length in often.items()
        if name not in known and all(f"{name}[{j}]" in known for j in range(length))
    }


def _stacked(X: Any) -> Any:
    array = np.asarray(X)
    if array.ndim != 1:
        return array
    missing = np.asarray(pd.isna(array))
    return _matrix(array, missing, "X") if _are_vectors(array, missing) else X


def _block(column: nw.Series, lengths: dict[str, int]) -> NDArray[np.float64] | None:
    """Return a column of vectors as a matrix, None for any other."""
    dtype = column.dtype
    inner: Any = dtype.inner if isinstance(dtype, nw.List | nw.Array) else None
    if inner is None and dtype != nw.Object and column.name not in lengths:
        return None
    missing = column.is_null().to_numpy()
    if missing.all():
        length = lengths.get(column.name)
        return None if length is None else np.full((len(column), length), np.nan)
    values = column.to_numpy()
    if inner is None:
        are_vectors = _are_vectors(values, missing)
    else:
        are_vectors = inner.is_numeric() or inner == nw.Boolean
    return _matrix(values, missing, f"Column {column.name!r} of X") if are_vectors else None


def _are_vectors(values: NDArray, missing: NDArray[np.bool_]) -> bool:
    known = values[~missing]
    return known.dtype == object and known.size > 0 and isinstance(known[0], _SEQUENCES)


def _side_by_side(frame: nw.DataFrame, blocks: dict[Any, NDArray | None]) -> Any:
    """Return the columns of a table with matrices in place of some."""
    parts = []
    for j, (name, block) in enumerate(blocks.items()):
        if block is None:
            parts.append(frame[:, [j]])
            continue
        names = [f"{name}[{k}]" for k in range(block.shape[1])]
        both = [column for column in names if column in blocks]
        if both:
            raise ValueError(
                f"Column {name!r} of X holds vectors, whose numbers become the columns "
                f"{names[0]!r} to {names[-1]!r}, and X has {both[:5]} already. Rename one of them."
            )
        parts.append(nw.from_numpy(block, names, backend=frame.implementation))
    return nw.concat(parts, how="horizontal").to_native()


def _matrix(values: NDArray, missing: NDArray[np.bool_], name: str) -> NDArray[np.float64]:
    """Return vectors as the rows of a matrix."""
    if values.ndim == 2:
        return np.where(missing[:, None], np.nan, values).astype(np.float64)
    # Some versions of polars show a missing list as an empty one.
    vectors = [_vector(value, name) for value in values[~missing]]
    lengths = sorted({len(vector) for vector in vectors})
    if len(lengths) > 1 or lengths[0] == 0:
        raise TypeError(
            f"{name} holds vectors of {lengths[0]} to {lengths[-1]} numbers; all must have one "
            "length, at least 1. Leave it out, or make them equally long."
        )
    matrix = np.full((len(values), lengths[0]), np.nan)
    matrix[~missing] = vectors
    return matrix


def _vector(value: Any, name: str) -> NDArray[np.float64]:
    """Return one vector as an array, or say why it is none."""
    try:
        array = np.asarray(value)
        if array.dtype == object:
            array = np.where(pd.isna(array), np.nan, array)
            text = any(isinstance(part, str) for part in array)
        else:
            text = array.dtype.kind not in "biuf"
        if isinstance(value, _SEQUENCES) and array.ndim == 1 and not text:
            return array.astype(np.float64)
    except (TypeError, ValueError):  # lists of different lengths, or of other objects
        pass
    shown = repr(value)
    raise TypeError(
        f"{name} must hold lists of numbers only; got {shown[:60]}"
        f"{'...' if len(shown) > 60 else ''}. Leave it out, or encode it."
    )
