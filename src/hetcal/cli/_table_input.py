"""What ``fit``, ``diagnose`` and ``compare`` share: reading tables and writing commands."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetcal._exceptions import ColumnOrderWarning, InputError
from hetcal.cli._options import MAX_ROWS

if TYPE_CHECKING:
    from hetcal.tables.labelled_table import LabelledTable

_FLAGS = frozenset({"percent", "drop_missing", "accept_order"})


def reading(format: Any, encoding: str, decimal: str) -> dict[str, Any]:
    """Return how a table is read; what is not the usual way is part of every command to copy."""
    kind = None if format is None else str(format)
    return {"format": kind, "encoding": encoding, "decimal": decimal}


def unusual(how: dict[str, Any]) -> dict[str, Any]:
    """Return what must be typed to read a table so."""
    usual = reading(None, "utf-8", ".")
    return {name: value for name, value in how.items() if value != usual[name]}


def read(
    table: str,
    roles: dict[str, Any],
    how: dict[str, Any],
    *,
    max_rows: int,
    seed: int,
    say: Callable[[str, float | None], object],
) -> LabelledTable:
    """Return the calibration items of a table that has features."""
    from hetcal.tables.large_tables import draw_labelled

    labelled = draw_labelled(
        table,
        max_rows=max_rows,
        random_state=seed,
        progress=lambda share: say(f"Reading {table}", share),
        **how,
        **roles,
    )
    if labelled.X is None:
        raise InputError(
            "No column is left for the features. Name some with --features, or see how good the "
            "probabilities are on average with hetcal.metrics.evaluate in Python."
        )
    return labelled


@contextmanager
def order_was_checked() -> Iterator[None]:
    """Leave out the warning about the order of columns: it was given when the table was read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnOrderWarning)
        yield


def drawing(max_rows: int, seed: int) -> dict[str, Any]:
    """Return what must be typed to draw the same rows."""
    usual = max_rows == MAX_ROWS
    return {"max_rows": None if usual else max_rows, "seed": seed or None}


def arguments_of(roles: dict[str, Any]) -> list[str]:
    """Return the options that say what the columns are for, as they are typed."""
    words: list[str] = []
    for name, value in roles.items():
        flag = f"--{name.replace('_', '-')}"
        if name in _FLAGS:
            words += [flag] if value else []
        elif value is not None:
            words += [flag, str(value)]
    return words


def command_line(*words: str) -> str:
    """Return a command that a shell reads as these very words."""
    return shlex.join(["hetcal", *words])


def stem_of(table: str) -> str:
    """Return the table's name without folder and endings."""
    return "table" if table == "-" else Path(table).name.split(".")[0] or "table"


def folder_of(table: str) -> Path:
    """Return the table's folder; the current one for standard input."""
    return Path() if table == "-" else Path(table).parent


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
