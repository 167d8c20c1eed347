"""Calibrators as files that hold no code: ``save``, ``load``, ``describe``; and reading tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hetcal._exceptions import FileFormatError

if TYPE_CHECKING:
    from hetcal.io.columns import read_problem
    from hetcal.io.describing import describe
    from hetcal.io.file import load, save
    from hetcal.io.large_tables import draw_problem
    from hetcal.io.locks import locked
    from hetcal.io.problem import Problem
    from hetcal.io.roles import Items, TableRoles
    from hetcal.io.sampling import Sample, draw_rows
    from hetcal.io.tables import open_table, read_batches, read_table
    from hetcal.io.writing import TableWriter

__all__ = [
    "FileFormatError",
    "Items",
    "Problem",
    "Sample",
    "TableRoles",
    "TableWriter",
    "describe",
    "draw_problem",
    "draw_rows",
    "load",
    "locked",
    "open_table",
    "read_batches",
    "read_problem",
    "read_table",
    "save",
]

# Tables and descriptions are read without waiting for the calibrators; the rest is in ``file``.
_LIGHT = {
    "Items": "roles",
    "Problem": "problem",
    "Sample": "sampling",
    "TableRoles": "roles",
    "TableWriter": "writing",
    "describe": "describing",
    "draw_problem": "large_tables",
    "draw_rows": "sampling",
    "locked": "locks",
    "open_table": "tables",
    "read_batches": "tables",
    "read_problem": "columns",
    "read_table": "tables",
}


def __getattr__(name: str) -> Any:
    # On first use: whoever only reads a table does not wait for the calibrators.
    if name not in __all__:
        raise AttributeError(f"module 'hetcal.io' has no attribute {name!r}")
    return getattr(import_module(f"hetcal.io.{_LIGHT.get(name, 'file')}"), name)
