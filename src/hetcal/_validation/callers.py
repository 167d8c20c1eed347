"""Whose line of code a warning is about."""

from __future__ import annotations

import sys


def levels_to_caller() -> int:
    """Return the stacklevel of the first caller outside of hetcal: the line that the user wrote."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]
