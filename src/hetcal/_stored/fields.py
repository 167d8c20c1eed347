"""What an attribute may hold: small predicates from which classes declare their stored state.

A declaration is a mapping from attribute names to predicates, ``{"weight_": number(0, 1)}``. What
is not declared has no place in a file; what does not fit its predicate refuses the file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

Field = Callable[[Any], bool]

#: Far beyond every fitted number, and sums and products of a few of them stay finite.
LARGEST = 1e100
#: The columns that a table may have.
MOST_FEATURES = 1_000_000
#: The items that a calibration set may have.
MOST_ITEMS = 1 << 40
#: The classes that a problem may have.
MOST_CLASSES = 1 << 24
#: A classifier's probabilities may come from single precision: its rounding is no mistake.
_ONE = 1 + 1e-5
_SCALARS = (bool, int, float, str, type(None), np.generic)


def is_whole(value: Any, low: float = -np.inf, high: float = np.inf) -> bool:
    """Tell whether a value is an integer, no bool, within bounds."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and low <= value <= high


def is_number(value: Any, low: float = -np.inf, high: float = np.inf) -> bool:
    """Tell whether a value is a finite number within bounds."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool):
        return False
    return bool(np.isfinite(value)) and low <= value <= high


def is_array(value: Any, kind: str, shape: tuple[int | None, ...]) -> bool:
    """Tell whether a value is an array of a kind (``"f"``, ``"iu"``) and shape (None: any)."""
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind in kind
        and value.ndim == len(shape)
        and all(want is None or have == want for have, want in zip(value.shape, shape, strict=True))
    )


def is_scalar(value: Any) -> bool:
    """Tell whether a value is a single one: a number, text, true, false or None."""
    return isinstance(value, _SCALARS)


def in_range(values: np.ndarray, low: int, high: int) -> bool:
    """Tell whether all values lie in ``range(low, high)``."""
    return values.size == 0 or (int(values.min()) >= low and int(values.max()) < high)


def within(values: np.ndarray, low: float, high: float) -> bool:
    """Tell whether all values, none of them NaN, lie between two bounds, these included."""
    return values.size == 0 or bool(values.min() >= low and values.max() <= high)


def rising(values: np.ndarray, *, strictly: bool) -> bool:
    """Tell whether values never fall.

    By comparison: the difference of two integers may be too large for their type, and then has the
    wrong sign.
    """
    later, earlier = values[1:], values[:-1]
    return bool((later > earlier if strictly else later >= earlier).all())


def setting(value: Any) -> bool:
    """Take what constructors take: scalars, lists of them, and a list of classes as an array."""
    if isinstance(value, list | tuple):
        return all(setting(item) for item in value)
    if isinstance(value, float | np.floating):
        return not np.isnan(value)
    return is_scalar(value) or (isinstance(value, np.ndarray) and value.ndim == 1)


def flag(value: Any) -> bool:
    """Take true and false."""
    return isinstance(value, bool | np.bool_)


def text(value: Any) -> bool:
    """Take text."""
    return isinstance(value, str)


def column_names(value: Any) -> bool:
    """Take the names of columns: an array of text."""
    return isinstance(value, np.ndarray) and value.dtype == object and all(map(text, value))


def table(value: Any) -> bool:
    """Take a table."""
    return isinstance(value, pd.DataFrame)


def number(low: float = -LARGEST, high: float = LARGEST, *, may_miss: bool = False) -> Field:
    """Take finite numbers within bounds, on request NaN too."""
    return lambda value: (
        is_number(value, low, high) or (may_miss and isinstance(value, float) and value != value)
    )


def whole(low: int, high: int) -> Field:
    """Take integers within bounds."""
    return lambda value: is_whole(value, low, high)


def count(value: Any) -> bool:
    """Take how many of something there are."""
    return is_whole(value, 0, 1 << 60)


def one_of(*known: Any) -> Field:
    """Take some values."""
    return lambda value: is_scalar(value) and value in known


def instance(cls: type | tuple[type, ...], *fitted: str) -> Field:
    """Take objects of a class that have some attributes: those of a fitted one."""
    return lambda value: isinstance(value, cls) and all(name in vars(value) for name in fitted)


def instance_of(module: str, name: str) -> Field:
    """Take objects of a class of another library, which is not loaded to look for them."""
    return lambda value: isinstance(value, getattr(sys.modules.get(module), name, ()))


def optional(field: Field) -> Field:
    """Take None as well."""
    return lambda value: value is None or field(value)


def either(*fields: Field) -> Field:
    """Take what one of several takes."""
    return lambda value: any(field(value) for field in fields)


def list_of(field: Field, most: int = 1 << 24) -> Field:
    """Take lists."""
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(field, value))


def numbers(*shape: int | None, low: float = -LARGEST, high: float = LARGEST) -> Field:
    """Take arrays of 64-bit numbers within bounds."""
    return lambda value: (
        is_array(value, "f", shape) and value.dtype == np.float64 and within(value, low, high)
    )


def integers(*shape: int | None, low: int, high: int) -> Field:
    """Take arrays of 64-bit integers in ``range(low, high)``."""
    return lambda value: (
        is_array(value, "i", shape) and value.dtype == np.int64 and in_range(value, low, high)
    )


def array_of(dtype: Any, *shape: int | None) -> Field:
    """Take arrays of the very type that a kernel uses: a cast could change what a value means."""
    return lambda value: is_array(value, "biuf", shape) and value.dtype == dtype


def probabilities(*shape: int | None) -> Field:
    """Take arrays of numbers from 0 to 1."""
    return numbers(*shape, low=0.0, high=_ONE)


def matrix(value: Any) -> bool:
    """Take items with finite features: a matrix, dense or sparse, with at least one row."""
    if sparse.issparse(value):
        return value.shape[0] > 0 and value.ndim == 2 and numbers(None)(value.data)
    return numbers(None, None)(value) and len(value) > 0


def labels(value: Any) -> bool:
    """Take the classes: an array of at least two different labels."""
    return (
        isinstance(value, np.ndarray)
        and value.ndim == 1
        and len(np.unique(value)) == len(value)
        and len(value) >= 2
    )
