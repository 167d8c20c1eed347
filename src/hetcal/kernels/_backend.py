"""The one place that chooses between the compiled core and its pure-Python twins.

The environment variable ``HETCAL_CORE`` decides at run time:

- ``auto`` (or unset): the compiled core where it was built, else the pure twins;
- ``pure``: always the pure twins;
- ``native``: the compiled core, and an error where it is missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

try:
    from hetcal._core import _native
except ImportError:
    _native = None  # type: ignore[assignment]

_VARIABLE = "HETCAL_CORE"
_CHOICES = ("auto", "pure", "native")


def native() -> ModuleType | None:
    """Return the compiled core, or None where the pure twins are to be used."""
    choice = os.environ.get(_VARIABLE) or "auto"
    if choice == "pure":
        return None
    if choice not in _CHOICES:
        raise ValueError(
            f"{_VARIABLE} must be one of {', '.join(_CHOICES)}; got {choice!r}. "
            f"Unset it to let hetcal choose."
        )
    if choice == "native" and _native is None:
        raise ImportError(
            f"{_VARIABLE}=native, but hetcal was installed without its compiled core. "
            "Install a C++17 compiler and reinstall hetcal, or unset the variable."
        )
    return _native


def core_name() -> str:
    """Return ``"native"`` or ``"pure"``: what the next kernel call will use."""
    return "pure" if native() is None else "native"


@contextmanager
def use_core(choice: str) -> Iterator[None]:
    """Choose the core for the duration of a ``with`` block (for tests and benchmarks)."""
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = choice
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
