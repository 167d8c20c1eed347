"""Calibrators and monitors as files that hold no code: ``save``, ``load``, ``describe``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hetcal._exceptions import FileFormatError

if TYPE_CHECKING:
    from hetcal.persistence.describing import describe
    from hetcal.persistence.file import load, save
    from hetcal.persistence.locks import locked

__all__ = ["FileFormatError", "describe", "load", "locked", "save"]

_HOME = {"describe": "describing", "load": "file", "locked": "locks", "save": "file"}


def __getattr__(name: str) -> Any:
    # On first use: whoever only describes a file does not wait for the calibrators.
    if name not in _HOME:
        raise AttributeError(f"module 'hetcal.persistence' has no attribute {name!r}")
    return getattr(import_module(f"hetcal.persistence.{_HOME[name]}"), name)
