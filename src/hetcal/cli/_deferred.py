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


# A third of the start: scikit-learn loads the first for one function that predictions do not call,
# and scipy all that numpy has, also what translates Fortran. scikit-learn 1.7 loads
# the second for a transformation of features.
_UNUSED = ("scipy.stats", "scipy.optimize", "numpy.f2py")


def defer_unused() -> None:
    """Put off modules that predictions do not need; for a process of our own."""
    for name in _UNUSED:
        _defer(name)


def _defer(name: str) -> None:
    """Let ``import name`` wait for the first use, unless it is loaded already.

    ``importlib.util.LazyLoader`` does not do: a second ``import`` of the module counts as its use.
    """
    if name not in sys.modules:
        sys.modules[name] = deferred = _Deferred(name)
        package, _, part = name.rpartition(".")
        setattr(import_module(package), part, deferred)
