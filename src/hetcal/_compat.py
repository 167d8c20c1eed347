"""The one place that knows about versions and defects of other libraries."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import sklearn
from sklearn.utils.fixes import parse_version
from threadpoolctl import threadpool_limits  # a requirement of scikit-learn itself

__all__ = ["SKLEARN_VERSION", "openmp", "threadpool_limits"]

SKLEARN_VERSION = parse_version(sklearn.__version__)

_IMPORTED_BY = os.getpid()


def openmp() -> AbstractContextManager[Any]:
    """Return a context for calls into scikit-learn that use OpenMP.

    After a fork GNU's OpenMP waits for ever for threads that only the parent has, so a forked
    process works with one thread. Everywhere else nothing changes.
    """
    if os.getpid() == _IMPORTED_BY:
        return nullcontext()
    return threadpool_limits(1, user_api="openmp")
