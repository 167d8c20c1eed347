"""What ``fit``, ``diagnose`` and ``compare`` share: reading tables and writing commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetcal._exceptions import InputError

if TYPE_CHECKING:
    from hetcal.cli._options import Columns, Drawing, Reading
    from hetcal.tables.labelled_table import LabelledTable

_OTHERWISE = "compare the global maps, which need none: hetcal compare"


def read(
    table: str,
    columns: Columns,
    reading: Reading,
    drawing: Drawing,
    say: Callable[[str, float | None], object],
    *,
    use_features: bool = True,
    otherwise: str | None = _OTHERWISE,
) -> LabelledTable:
    """Return the calibration items of a table; ``otherwise`` says what to do without features.

    None: they may be missing.
    """
    from hetcal.tables.large_tables import draw_labelled

    labelled = draw_labelled(
        table,
        max_rows=drawing.max_rows,
        random_state=drawing.seed,
        progress=lambda share: say(f"Reading {table}", share),
        use_features=use_features,
        **vars(reading),
        **vars(columns),
    )
    if use_features and labelled.X is None and otherwise is not None:
        raise InputError(
            f"No column is left for the features. Name some with --features, or {otherwise}."
        )
    return labelled


def arguments_of(options: Any) -> list[str]:
    """Return what must be typed for a set of options: those that are not as usual."""
    words: list[str] = []
    for option in fields(options):
        value = getattr(options, option.name)
        if value != option.default:
            flag = f"--{option.name.replace('_', '-')}"
            words += [flag] if value is True else [flag, str(value)]
    return words


def command_line(*words: str) -> str:
    """Return a command that a shell reads as these very words."""
    return shlex.join(["hetcal", *words])


def apply_command(model: str, table: str, reading: Reading, *, new: str) -> str:
    """Return the command that calibrates a new table of the same kind."""
    kind = ".csv" if table == "-" else "".join(Path(table).suffixes[-2:])
    kind = kind or (".parquet" if Path(table).is_dir() else "")
    read_so = arguments_of(reading)
    return command_line("apply", model, f"{new}{kind}", *read_so, "-o", f"calibrated{kind}")


def counted(labelled: LabelledTable, n_features: int | None) -> str:
    """Return how many items count and how many features they have; None: these are not used."""
    weight = labelled.weight
    n_items = labelled.n_items if weight is None else int((weight > 0).sum())
    items = f"{n_items:,} item{'' if n_items == 1 else 's'}"
    if n_items < labelled.n_items:
        items += f" ({labelled.n_items - n_items:,} more have weight 0)"
    if labelled.drawn is not None:
        items += f" drawn from {labelled.n_read:,} rows"
    if n_features is None:
        return f"{items}, features not used"
    return f"{items}, {n_features} feature{'' if n_features == 1 else 's'}"


def stem_of(table: str) -> str:
    """Return the table's name without folder and endings."""
    return "table" if table == "-" else Path(table).name.split(".")[0] or "table"


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
