"""Modules that other libraries load at their start and a command may never need."""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from types import ModuleType
from typing import Any

_loading = threading.RLock()


class _Deferred(ModuleType):
    """Stands in ``sys.modules`` for a module, which is loaded when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        with _loading:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            return getattr(import_module(self.__name__), name)


def defer(name: str) -> None:
    """Let ``import name`` wait for the first use; for a process of our own, before it loads it.

    ``importlib.util.LazyLoader`` does not do: a second ``import`` of the module counts as its use.
    """
    if name not in sys.modules:
        sys.modules[name] = _Deferred(name)
