"""The words in which a class declares what of it is stored in files.

A class says so beside itself, with :func:`stored`; :mod:`hetcal.persistence` reads the declarations
and is the only one who writes and reads files.
"""

from hetcal._stored.declaration import Declaration, exactly, expect, stored

__all__ = ["Declaration", "exactly", "expect", "stored"]
