"""The one place that knows about versions and defects of other libraries."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sklearn
from sklearn.utils.fixes import parse_version
from threadpoolctl import threadpool_limits  # a requirement of scikit-learn itself

__all__ = [
    "SKLEARN_VERSION",
    "many_classes",
    "neighbour_search",
    "side_by_side",
    "threadpool_limits",
]

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


@contextmanager
def many_classes() -> Iterator[None]:
    """Let scikit-learn fit labels of many classes without asking whether they are numbers."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        yield


def side_by_side(parts: dict[str, Any]) -> Any:
    """Return scikit-learn's drawing of an estimator that is made of others, by their names."""
    # Not public, but what its own meta-estimators use.
    from sklearn.utils._repr_html.estimator import _VisualBlock

    names = [f"{name}: {type(part).__name__}" for name, part in parts.items()]
    details = [str(part) for part in parts.values()]
    return _VisualBlock("parallel", list(parts.values()), names=names, name_details=details)


def _own_turns_after_fork() -> None:
    """Forget whose turn it was: that thread is not there any more."""
    global _searching
    _searching = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_own_turns_after_fork)
