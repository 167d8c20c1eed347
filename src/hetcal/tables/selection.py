"""Which columns are meant: names, lists of names, and patterns such as ``p_*``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from hetcal._exceptions import InputError
from hetcal._validation.text import closest

_SHOWN = 12


def one_column(names: Sequence[str], wanted: str, role: str) -> str:
    """Return the column of that name, or raise and name the nearest ones.

    Examples
    --------
    >>> one_column(["age", "outcome"], "outcom", "label")
    Traceback (most recent call last):
    ...
    hetcal._exceptions.InputError: There is no column 'outcom' (label). Did you mean 'outcome'? ...
    """
    if wanted in names:
        return wanted
    raise InputError(
        f"There is no column {wanted!r} ({role}).{did_you_mean(names, wanted)} "
        f"The columns are {listed(names)}."
    )


def select_columns(names: Sequence[str], wanted: str | Sequence[str], role: str) -> list[str]:
    """Return the columns that a pattern, a comma-separated list or a list of these name, in order.

    Examples
    --------
    >>> select_columns(["age", "p_no", "p_yes"], "p_*", "proba")
    ['p_no', 'p_yes']
    >>> select_columns(["age", "p_no", "p_yes"], "p_yes,p_no", "proba")
    ['p_yes', 'p_no']
    """
    chosen: list[str] = []
    for part in _parts(names, wanted):
        found = [part] if part in names else [name for name in names if fnmatchcase(name, part)]
        if not found and is_pattern(part):
            raise InputError(
                f"No column matches {part!r} ({role}). The columns are {listed(names)}."
            )
        for name in found or [one_column(names, part, role)]:
            if name not in chosen:
                chosen.append(name)
    if not chosen:
        raise InputError(f"No column is named for {role}. The columns are {listed(names)}.")
    return chosen


def named_exactly(names: Sequence[str], wanted: str | Sequence[str] | None) -> set[str]:
    """Return the columns that were named one by one, not by a pattern."""
    return set() if wanted is None else {part for part in _parts(names, wanted) if part in names}


def pattern_parts(columns: Sequence[str], wanted: str | Sequence[str]) -> list[str] | None:
    """Return what the star of a single pattern stands for in each column; None without one."""
    if not isinstance(wanted, str) or wanted.count("*") != 1 or set("?[,") & set(wanted):
        return None
    before, after = (re.escape(part) for part in wanted.split("*"))
    found = [re.fullmatch(f"{before}(.*){after}", name, re.DOTALL) for name in columns]
    return [match.group(1) for match in found if match] if all(found) else None


def is_pattern(text: str) -> bool:
    """Return whether a name stands for several columns."""
    return any(sign in text for sign in "*?[")


def listed(values: Sequence[object], most: int = _SHOWN) -> str:
    """Return the first values in words."""
    shown = ", ".join(repr(value) for value in list(values)[:most])
    return f"{shown} and {len(values) - most} more" if len(values) > most else shown


def did_you_mean(names: Sequence[str], wanted: str) -> str:
    """Return the question that a wrong name deserves, or nothing."""
    folded = {name.strip().casefold(): name for name in names}
    near = closest(wanted.strip().casefold(), folded, n=3)
    return f" Did you mean {' or '.join(repr(folded[name]) for name in near)}?" if near else ""


def _parts(names: Sequence[str], wanted: str | Sequence[str]) -> list[str]:
    given = [wanted] if isinstance(wanted, str) else list(wanted)
    parts: list[str] = []
    for text in given:
        # A name may hold a comma itself.
        parts += [text] if text in names else [part.strip() for part in text.split(",")]
    return [part for part in parts if part]
