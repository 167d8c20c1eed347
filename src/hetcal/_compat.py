"""The one place that knows about versions and defects of other libraries."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import sklearn
from sklearn.utils.fixes import parse_version
from threadpoolctl import threadpool_limits  # a requirement of scikit-learn itself

__all__ = ["SKLEARN_VERSION", "neighbour_search", "threadpool_limits"]

SKLEARN_VERSION = parse_version(sklearn.__version__)

_IMPORTED_BY = os.getpid()
_searching = threading.RLock()


@contextmanager
def neighbour_search() -> Iterator[None]:
    """Surround scikit-learn's searches for neighbours, which are not made for forks and threads.

    While a search goes on, scikit-learn replaces the filters of warnings, which belong to the whole
    process: two searches at once can leave the wrong ones behind. So threads take turns. And after
    a fork GNU's OpenMP waits for ever for threads that only the parent has, so a forked process
    works with one thread.
    """
    with _searching:
        if os.getpid() == _IMPORTED_BY:
            yield
        else:
            with threadpool_limits(1, user_api="openmp"):
                yield


def _own_turns_after_fork() -> None:
    """Forget whose turn it was: that thread is not there any more."""
    global _searching
    _searching = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_own_turns_after_fork)
