"""Warnings that one thread leaves out or collects, while others go on as before.

``warnings.catch_warnings`` puts back the filters of the moment it was entered, which belong to all
threads: two that overlap leave the filters of one of them behind. Here two filters are added while
any thread needs them. They ask what the thread that warns wants, and are taken away again alone.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TextIO


class _Wish(NamedTuple):
    """What is to become of warnings of some categories: collected, or left out."""

    categories: tuple[type[Warning], ...]
    collected: list[warnings.WarningMessage] | None


class _Wishes(threading.local):
    """Those of a thread, the latest last."""

    def __init__(self) -> None:
        self.stack: list[_Wish] = []

    def on(self, category: type) -> _Wish | None:
        """Return what holds for a category."""
        fitting = (wish for wish in reversed(self.stack) if issubclass(category, wish.categories))
        return next(fitting, None)


_mine = _Wishes()


class _LeftOutHere(type):
    def __subclasscheck__(cls, category: type) -> bool:
        wish = _mine.on(category)
        return wish is not None and wish.collected is None


class _CollectedHere(type):
    def __subclasscheck__(cls, category: type) -> bool:
        wish = _mine.on(category)
        return wish is not None and wish.collected is not None


class _LeftOut(Warning, metaclass=_LeftOutHere):
    """What the thread that warns leaves out."""


class _Collected(Warning, metaclass=_CollectedHere):
    """What the thread that warns collects."""


_FILTERS: list[tuple[Any, ...]] = [
    ("ignore", None, _LeftOut, None, 0),
    ("always", None, _Collected, None, 0),
]
_lock, _n_inside, _shown_by = threading.RLock(), 0, warnings.showwarning


def _begin_anew() -> None:
    """Go on in a forked process, which has one thread and no owner of a lock that was held."""
    global _lock, _n_inside
    _lock, _n_inside = threading.RLock(), len(_mine.stack)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@contextmanager
def silenced(*categories: type[Warning]) -> Iterator[None]:
    """Leave warnings of this thread out; all, where no category is named.

    Examples
    --------
    >>> with silenced(UserWarning):
    ...     warnings.warn("nobody hears this")
    """
    with _wished(_Wish(categories or (Warning,), None)):
        yield


@contextmanager
def collected() -> Iterator[list[warnings.WarningMessage]]:
    """Collect the warnings of this thread instead of showing them.

    Examples
    --------
    >>> with collected() as said:
    ...     warnings.warn("for later")
    >>> [str(warning.message) for warning in said]
    ['for later']
    """
    said: list[warnings.WarningMessage] = []
    with _wished(_Wish((Warning,), said)):
        yield said


@contextmanager
def _wished(wish: _Wish) -> Iterator[None]:
    _enter()
    _mine.stack.append(wish)
    try:
        yield
    finally:
        _mine.stack.pop()
        _leave()


def _enter() -> None:
    global _n_inside, _shown_by
    with _lock:
        _n_inside += 1
        for action, _, category, _, _ in _FILTERS:  # again, where others have put theirs before
            warnings.simplefilter(action, category)
        if warnings.showwarning is not _show:
            _shown_by, warnings.showwarning = warnings.showwarning, _show


def _leave() -> None:
    global _n_inside
    with _lock:
        _n_inside -= 1
        if _n_inside:
            return
        for added in _FILTERS:
            if added in warnings.filters:
                warnings.filters.remove(added)  # type: ignore[attr-defined]
        if warnings.showwarning is _show:
            warnings.showwarning = _shown_by


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    wish = _mine.on(category)
    if wish is None or wish.collected is None:
        _shown_by(message, category, filename, lineno, file, line)
    else:
        wish.collected.append(warnings.WarningMessage(message, category, filename, lineno))
