"""Options that are one of a few words."""

from __future__ import annotations

from collections.abc import Iterable


def check_choice(value: str, name: str, choices: Iterable[str], caller: str) -> None:
    """Raise when an option is not one of its words."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{caller}: {name} must be one of {listed}; got {value!r}.")
