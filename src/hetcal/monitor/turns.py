"""A monitor that several threads share: who changes or reads its counts waits for the others."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="TakesTurns")


class TakesTurns:
    """Holds a lock of its own; copies and pickles get a new one."""

    @property
    def turn(self) -> Any:
        """The lock: ``with monitor.turn:`` makes several calls one step."""
        # setdefault is one step for all threads, so that they agree on the lock.
        return self.__dict__.setdefault("_turn", threading.RLock())

    def __getstate__(self) -> dict[str, Any]:
        with self.turn:
            return {name: value for name, value in self.__dict__.items() if name != "_turn"}


def in_turn(method: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """Let one thread at a time call the methods of an object that are marked so."""

    @functools.wraps(method)
    def waiting(self: M, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.turn:
            return method(self, *args, **kwargs)

    return waiting
