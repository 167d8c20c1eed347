"""Estimators and monitors that several threads share.

The state of an estimator is its ``__dict__``. Methods that change it (``fit``, ``extend``,
``set_params``) work on a draft, an object of the same class with a copy of that dict, which takes
the place of the old one by a single assignment when nothing was raised. All other public methods
work on a snapshot, an object that shares the dict of that moment. So whoever predicts while others
fit gets the old answer or the new one, and a failed ``fit`` changes nothing. What is computed on
first use is kept in the dict that it belongs to.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M")

_CHANGING = ("fit", "fit_set", "extend", "extend_items", "retain")


class _Locks:
    """One lock per object, kept outside of it: copies, pickles and clones have their own."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        self.guard = threading.RLock()
        self.by_owner: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def of(self, owner: Any) -> Any:
        with self.guard:
            return self.by_owner.setdefault(owner, threading.RLock())


_locks = _Locks()
if hasattr(os, "register_at_fork"):
    # A forked process does not have the threads that would release the locks they hold.
    os.register_at_fork(after_in_child=_locks.begin_anew)


def lock_of(owner: Any) -> Any:
    """Return the lock of an object; the thread that holds it may take it again."""
    return _locks.of(owner)


def snapshot(owner: M) -> M:
    """Return the object in its state of now, which no later :func:`changed` touches."""
    now = object.__new__(type(owner))
    now.__dict__ = owner.__dict__
    return now


@contextmanager
def changed(owner: M) -> Iterator[M]:
    """Give a draft to change; it becomes the object's state in one step unless something is raised.

    One thread at a time; others wait.
    """
    with lock_of(owner):
        draft = object.__new__(type(owner))
        draft.__dict__ = owner.__dict__.copy()
        yield draft
        owner.__dict__ = draft.__dict__


def on_snapshot(method: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """Let a method work on the state of the moment of the call."""

    @functools.wraps(method)
    def reading(self: M, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(snapshot(self), *args, **kwargs)

    return reading


def on_draft(method: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """Let a method that changes an object do so in one step, or not at all."""

    @functools.wraps(method)
    def changing(self: M, *args: P.args, **kwargs: P.kwargs) -> T:
        with changed(self) as draft:
            result: Any = method(draft, *args, **kwargs)
        return self if result is draft else result  # type: ignore[return-value]

    return changing


def synchronized(method: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """Let one thread at a time call the methods of an object that are marked so."""

    @functools.wraps(method)
    def waiting(self: M, *args: P.args, **kwargs: P.kwargs) -> T:
        with lock_of(self):
            return method(self, *args, **kwargs)

    return waiting


class ThreadSafe:
    """Base of estimators: every public method of a subclass works on a snapshot or on a draft.

    Methods under another decorator (``available_if``) need :func:`on_snapshot` of their own.
    Whatever a method changes must be assigned anew; an array that is changed in place changes in
    the snapshots of others too.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, value in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if isinstance(value, FunctionType):
                setattr(cls, name, (on_draft if name in _CHANGING else on_snapshot)(value))
            elif isinstance(value, property) and value.fget is not None:
                setattr(cls, name, value.getter(on_snapshot(value.fget)))

    @on_draft
    def set_params(self, **params: Any) -> Any:
        """Set parameters, all in one step; see :meth:`sklearn.base.BaseEstimator.set_params`."""
        return super().set_params(**params)  # type: ignore[misc]

    def __getstate__(self) -> dict[str, Any]:
        # A copy: others may keep what they compute on first use while this one is written.
        state: Any = super().__getstate__()
        return dict(state)
