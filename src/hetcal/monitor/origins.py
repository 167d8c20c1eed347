"""Which counts a monitor contains, so that none are merged twice.

A monitor that counts its first item draws a random name, its origin, which copies and files keep.
Two monitors that share an origin have counted the same items.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from hetcal._stored import stored
from hetcal._stored.fields import list_of

MOST_ORIGINS = 1000  # a long-lived monitor that takes in shards every day stays small


def _name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 64


@stored({"names": list_of(_name, MOST_ORIGINS)}, inline=True)
@dataclass(frozen=True)
class Origins:
    """The origins of a monitor's counts.

    Attributes
    ----------
    names : list of str
    """

    names: list[str]

    def begun(self) -> Origins:
        """Name an origin where nothing has been counted so far."""
        return self if self.names else Origins([secrets.token_hex(8)])

    def overlap(self, other: Origins) -> bool:
        """Tell whether both have counted the same items."""
        return not set(self.names).isdisjoint(other.names)

    def merged(self, other: Origins) -> Origins:
        """Return the origins of both; with too many of them the first and the latest."""
        both = self.names + other.names
        return Origins(both[:1] + both[1:][-(MOST_ORIGINS - 1) :])
