"""Do something else in the middle of a call, at moments that are the same in every run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hetcal

_PACKAGE = str(Path(hetcal.__file__).parent)


# A change of state shows before these: the end of the step that publishes it.
LAST = 3


class StoppedError(BaseException):
    """Ends a call in the middle."""


def count_moments(work: Callable[[], Any]) -> int:
    """Return how often the package's functions are entered and left during a call."""
    seen = [0]

    def count(number: int) -> None:
        seen[0] = number + 1

    at_moments(work, count)
    return seen[0]


def at_moments(work: Callable[[], Any], happens: Callable[[int], None]) -> Any:
    """Return the result of a call, with ``happens(i)`` at its i-th moment."""
    number = -1

    def watch(frame: Any, event: str, _: Any) -> None:
        nonlocal number
        if event in ("call", "return") and frame.f_code.co_filename.startswith(_PACKAGE):
            number += 1
            happens(number)

    sys.setprofile(watch)
    try:
        return work()
    finally:
        sys.setprofile(None)


def spread(n_moments: int, n_chosen: int) -> list[int]:
    """Return some moments, from the first to the last."""
    return sorted({round(i * (n_moments - 1) / (n_chosen - 1)) for i in range(n_chosen)})
