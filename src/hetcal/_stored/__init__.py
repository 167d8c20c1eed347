"""The words in which a class declares what of it is stored in files, and the one reader of them.

A class says so beside itself, with :func:`stored`. :mod:`hetcal.persistence`, which is the only one
who writes and reads files, takes objects apart and puts them together by these declarations.
"""

from hetcal._stored.declaration import Declaration, expect, stored
from hetcal._stored.reader import restored

__all__ = ["Declaration", "expect", "restored", "stored"]
