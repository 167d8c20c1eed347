"""Reading numpy, pandas, polars, tensors and lists alike."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hetcal._validation.text import short_list


def as_frame(data: Any) -> nw.DataFrame | None:
    """Return a narwhals view of a pandas, polars or Arrow table; None for anything else."""
    if isinstance(data, np.ndarray):  # the common case, and narwhals takes a while to say no
        return None
    frame = _seen(data, eager_only=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _seen(data: Any, **options: Any) -> Any:
    """Return a narwhals view of data, or the data where there is none."""
    try:
        return nw.from_native(data, pass_through=True, **options)
    except nw.exceptions.DuplicateError as error:
        names = [str(name) for name in data.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(
            f"The table with the columns {short_list(names, 20)} has several that are "
            f"named {short_list(twice)}. "
            "Give each column a name of its own."
        ) from error


def without_tensor(data: Any, name: str) -> Any:
    """Return a tensor, or anything else with ``__array__`` or ``__dlpack__``, as a NumPy array.

    Arrays, tables, sparse matrices and lists stay as they are.

    Examples
    --------
    >>> class Tensor:
    ...     def __dlpack__(self, **options):
    ...         return np.ones(2).__dlpack__(**options)
    ...
    ...     def __dlpack_device__(self):
    ...         return (1, 0)
    >>> without_tensor(Tensor(), "y")
    array([1., 1.])
    """
    if isinstance(data, np.ndarray | list | tuple) or sparse.issparse(data):
        return data
    if not (hasattr(data, "__array__") or hasattr(data, "__dlpack__")):
        return data
    native = _seen(data, allow_series=True)
    if isinstance(native, nw.DataFrame | nw.LazyFrame | nw.Series):
        return data
    try:
        if hasattr(data, "detach"):  # torch: no gradients are wanted, from whatever device
            data = data.detach().cpu()
            data = data.float() if "bfloat16" in str(data.dtype) else data  # unknown to NumPy
        return np.asarray(data) if hasattr(data, "__array__") else np.from_dlpack(data)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise TypeError(
            f"{name} is a {type(data).__name__} that cannot be read as a NumPy array ({error}). "
            "Pass a dense array of numbers in main memory."
        ) from error


def column_names(data: Any) -> list[str] | None:
    """Return the names of a table's columns; None for arrays and for a library's default names.

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"p_no": [0.3], "p_yes": [0.7]}))
    ['p_no', 'p_yes']
    >>> column_names(pd.DataFrame([[0.3, 0.7]])) is None
    True
    """
    frame = as_frame(data)
    if frame is None:
        return None
    names = [str(name) for name in frame.columns]
    defaults = ("", "column_")  # pandas numbers its columns, polars puts a word before the number
    if any(names == [f"{word}{j}" for j in range(len(names))] for word in defaults):
        return None
    return names


def as_array(data: Any, name: str) -> NDArray:
    """Return ``data`` as a dense numpy array, whatever container it comes in."""
    data = _with_masks(without_tensor(data, name))
    if isinstance(data, np.ndarray):
        _refuse_masked(data, name)
        array = np.asarray(data)
        if not array.dtype.isnative:  # pandas compares values in the byte order of the machine only
            array = array.astype(array.dtype.newbyteorder("="))
        return array
    if data is None:
        raise ValueError(f"{name} is missing. Pass {name}=...")
    if sparse.issparse(data):
        raise TypeError(f"{name} is a sparse matrix; pass a dense array, e.g. {name}.toarray().")
    native = _seen(data, allow_series=True)
    if isinstance(native, nw.LazyFrame):
        raise TypeError(f"{name} is a lazy table. Pass {name}.collect().")
    if isinstance(native, nw.DataFrame | nw.Series):
        return np.asarray(native.to_numpy())
    return np.asarray(data)


def masked_as_missing(X: Any) -> Any:
    """Return features of which masked values are missing ones; all else as it is.

    Examples
    --------
    >>> masked_as_missing(np.ma.masked_equal([[1, 2], [3, 9]], 9))
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    X = _with_masks(without_tensor(X, "X"))
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.is_masked(X):
        return np.asarray(X)
    if X.dtype.kind in "biuf":
        return np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
    values = np.array(X, dtype=object)
    values[np.ma.getmaskarray(X)] = None  # which np.ma.filled takes for "some value of this type"
    return values


def _with_masks(data: Any) -> Any:
    """Return a list of which parts are masked as one array: NumPy would drop the masks."""
    if isinstance(data, list | tuple) and any(isinstance(v, np.ma.MaskedArray) for v in data):
        return np.ma.array(data)
    return data


def _refuse_masked(array: NDArray, name: str) -> None:
    if not np.ma.is_masked(array):
        return
    mask = np.ma.getmaskarray(array)
    rows = mask.reshape(array.shape[0] if array.ndim else 1, -1).any(axis=1)
    of_rows = "" if array.ndim == 1 else ".any(axis=1)"
    raise ValueError(
        f"{name} has {int(rows.sum())} row(s) with masked values, the first is row "
        f"{int(np.argmax(rows))}. Only features may be missing: leave these rows out of every "
        f"argument, {name}[~mask], X[~mask], ... with mask = numpy.ma.getmaskarray({name})"
        f"{of_rows}, or fill them in with {name}.filled(...)."
    )


def as_vector(data: Any, name: str) -> NDArray:
    """Return ``data`` as a one-dimensional array; a single column is flattened."""
    array = as_array(data, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"{name} should be a 1d array with one value per row; got an array of shape "
            f"{array.shape}. Pass a single column."
        )
    return array


def as_float_array(data: Any, name: str) -> NDArray[np.float64]:
    """Return ``data`` as float64, or say that it is not numeric."""
    array = as_array(data, name)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} holds complex numbers.")
    if array.dtype.kind in "mM":  # NumPy would count days, or whatever their unit is
        raise TypeError(f"{name} must hold numbers; got an array of {array.dtype}. Convert it.")
    try:
        # One memory order, so that sums do not depend on the container by a rounding error.
        return np.asarray(array, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        example = _example(array)
        remedy = "Convert the columns to numbers first."
        if isinstance(example, str) and is_number(example.replace(",", ".")):
            remedy = "Write decimal points in place of commas, e.g. text.replace(',', '.')."
        raise plain_kind(error)(
            f"{name} must hold numbers; got values such as {example!r} ({error}). {remedy}"
        ) from error


def plain_kind(error: Exception) -> type[Exception]:
    """Return TypeError or ValueError: what an error is that may be made from more than a text.

    Examples
    --------
    >>> plain_kind(UnicodeDecodeError("utf-8", b"", 0, 1, "odd")).__name__
    'ValueError'
    """
    return TypeError if isinstance(error, TypeError) else ValueError


def _example(array: NDArray) -> Any:
    for value in array.ravel()[:1000].tolist():
        if not is_number(value):
            return value
    return array.ravel()[:1].tolist()


def is_number(value: Any) -> bool:
    """Return whether Python reads a value, or a text, as a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def number_of_rows(data: Any, name: str = "y") -> int:
    """Return the number of rows of any container."""
    shape = getattr(data, "shape", None)
    of_dicts = isinstance(data, list | tuple) and len(data) > 0 and isinstance(data[0], dict)
    # Log-probabilities may come as dicts, and some sparse matrices are dicts themselves.
    if name == "X" and (of_dicts or (shape is None and isinstance(data, dict))):
        raise TypeError(
            f"{name} is a {'list of dicts' if of_dicts else 'dict'}. Pass it as a table: "
            f"pandas.DataFrame({name})."
        )
    if shape is None and hasattr(data, "collect"):
        raise TypeError(f"{name} is a lazy table. Pass {name}.collect().")
    if shape is None:
        sized = hasattr(data, "__len__")
        shape = (len(data),) if sized else np.shape(without_tensor(data, name))
    if len(shape) == 0:
        raise ValueError(
            f"{name} is a single value ({data!r}); expected a sequence with one entry per row. "
            f"Pass {name} as an array, a table or a list."
        )
    return int(shape[0])


def take_rows(table: Any, rows: Any) -> Any:
    """Return some rows of a table, array, sparse matrix or list, in its own container.

    Those of a tensor are a NumPy array.
    """
    # Late: what only reads tables runs without scikit-learn, which takes a second to import.
    from sklearn.utils import _safe_indexing

    return _safe_indexing(without_tensor(table, "X"), rows)
