"""How many threads products of matrices may use: one, many where X is wide.

On a few dozen columns the matrices are small: threads double the processor time, change the last
digits of results, and where cores are shared with others wait for each other, twenty times as long
as the work takes. With hundreds of columns they are a gain. Whoever sets the number in the
environment decides.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_DECIDE = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_WIDE = 300  # columns


@contextmanager
def one_blas_thread(n_columns: int) -> Iterator[None]:
    """Let products of matrices use one thread, unless X is wide or the user has set a number."""
    if n_columns >= _WIDE or any(name in os.environ for name in _DECIDE):
        yield
        return
    with _libraries().limit(limits=1, user_api="blas"):
        yield


def with_one_blas_thread(items: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Call a function under :func:`one_blas_thread`; this argument of it has the features, X."""

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def limited(*args: P.args, **kwargs: P.kwargs) -> T:
            shape: tuple[int, ...] = getattr(getattr(args[items], "X", None), "shape", ())
            with one_blas_thread(shape[1] if len(shape) > 1 else 0):
                return function(*args, **kwargs)

        return limited

    return decorated


@functools.cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401 - it brings a BLAS of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
