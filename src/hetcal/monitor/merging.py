"""Whether two monitors may be merged, and the history of both.

Whoever counts its first item draws a random name, its origin, which copies and files keep. Two
monitors that share an origin have counted the same items: merged, these would count twice.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal.monitor.reports import HISTORY

MOST_ORIGINS = 1000  # a long-lived monitor that takes in shards every day stays small

_MUST_AGREE = ("window", "horizon", "rate", "fdr", "alarm_rate")
_WHEN, _SEEN, _ITEMS, _LABELS = (
    HISTORY.index(name) for name in ("when", "seen", "items", "labels")
)

Matrix = NDArray[np.float64]


def begin(known: list[str]) -> None:
    """Name an origin where nothing has been counted so far."""
    if not known:
        known.append(secrets.token_hex(8))


def check(one: Any, other: Any) -> None:
    """Raise where two monitors with the same reference cannot be merged."""
    for name in _MUST_AGREE:
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            raise ValueError(
                "SupportMonitor.merge needs equal window, horizon and rates; "
                f"{name} is {mine} here and {theirs} there."
            )
    if one is other or not set(one._origins).isdisjoint(other._origins):
        raise ValueError(
            "SupportMonitor.merge got two monitors that have counted the same items, which would "
            "count twice. Begin each process with an empty monitor.shard(number, of), and merge "
            "each of them once."
        )


def origins(mine: list[str], theirs: list[str]) -> list[str]:
    """Return the origins of both; with too many of them the first and the latest."""
    both = mine + theirs
    return both[:1] + both[1:][-(MOST_ORIGINS - 1) :]


def history(mine: Matrix, theirs: Matrix) -> Matrix:
    """Return the rows of both by time; what they count "so far" is that of both together."""
    joined = np.vstack([mine, theirs])
    order = np.argsort(joined[:, _WHEN], kind="stable")
    own = order < len(mine)
    joined = joined[order]
    for column in (_SEEN, _LABELS):
        joined[:, column] = _so_far(mine, column, own) + _so_far(theirs, column, ~own)
    return joined


def _so_far(part: Matrix, column: int, own: NDArray[np.bool_]) -> Matrix:
    """Return what one of them had counted at each row of both."""
    before = 0.0
    if len(part):
        first = part[0]
        before = first[_SEEN] - first[_ITEMS]
        if column == _LABELS and before:  # older rows are gone
            before = first[_LABELS]
    return np.append(before, part[:, column])[np.cumsum(own)]
