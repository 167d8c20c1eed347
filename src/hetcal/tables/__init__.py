"""Tables in and out: reading, what each column is for, drawing rows, writing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hetcal.tables.columns import read_labelled
    from hetcal.tables.labelled_table import LabelledTable
    from hetcal.tables.large_tables import draw_labelled
    from hetcal.tables.reading import open_table, read_batches, read_table
    from hetcal.tables.roles import Items, TableRoles
    from hetcal.tables.sampling import Sample, draw_rows
    from hetcal.tables.writing import TableWriter

__all__ = [
    "Items",
    "LabelledTable",
    "Sample",
    "TableRoles",
    "TableWriter",
    "draw_labelled",
    "draw_rows",
    "open_table",
    "read_batches",
    "read_labelled",
    "read_table",
]

_HOME = {
    "Items": "roles",
    "LabelledTable": "labelled_table",
    "Sample": "sampling",
    "TableRoles": "roles",
    "TableWriter": "writing",
    "draw_labelled": "large_tables",
    "draw_rows": "sampling",
    "open_table": "reading",
    "read_batches": "reading",
    "read_labelled": "columns",
    "read_table": "reading",
}


def __getattr__(name: str) -> Any:
    # On first use: whoever only reads a table waits for no other module.
    if name not in _HOME:
        raise AttributeError(f"module 'hetcal.tables' has no attribute {name!r}")
    return getattr(import_module(f"hetcal.tables.{_HOME[name]}"), name)
