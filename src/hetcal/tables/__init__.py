"""Tables in and out: reading, what each column is for, drawing rows, writing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hetcal.tables.columns import read_problem
    from hetcal.tables.large_tables import draw_problem
    from hetcal.tables.problem import Problem
    from hetcal.tables.reading import open_table, read_batches, read_table
    from hetcal.tables.roles import Items, TableRoles
    from hetcal.tables.sampling import Sample, draw_rows
    from hetcal.tables.writing import TableWriter

__all__ = [
    "Items",
    "Problem",
    "Sample",
    "TableRoles",
    "TableWriter",
    "draw_problem",
    "draw_rows",
    "open_table",
    "read_batches",
    "read_problem",
    "read_table",
]

_HOME = {
    "Items": "roles",
    "Problem": "problem",
    "Sample": "sampling",
    "TableRoles": "roles",
    "TableWriter": "writing",
    "draw_problem": "large_tables",
    "draw_rows": "sampling",
    "open_table": "reading",
    "read_batches": "reading",
    "read_problem": "columns",
    "read_table": "reading",
}


def __getattr__(name: str) -> Any:
    # On first use: whoever only reads a table waits for no other module.
    if name not in _HOME:
        raise AttributeError(f"module 'hetcal.tables' has no attribute {name!r}")
    return getattr(import_module(f"hetcal.tables.{_HOME[name]}"), name)
