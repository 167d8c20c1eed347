"""``hetcal export``: a global map as ONNX, Python or SQL, for where hetcal is not installed."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from hetcal._exceptions import InputError
from hetcal.cli import _options as options


class Target(StrEnum):
    """What a map can be written as."""

    onnx = "onnx"
    python = "python"
    sql = "sql"


class Dialect(StrEnum):
    """How names are quoted in SQL."""

    ansi = "ansi"
    mysql = "mysql"


def export(
    *,
    model: options.Model,
    format: Annotated[
        Target,
        typer.Option(help="python and sql are for two classes.", rich_help_panel=options.OUTPUT),
    ],
    out: Annotated[
        str,
        options.file("FILE", "Where to write it; - is standard output.", "--out", "-o"),
    ] = "-",
    column: Annotated[
        str | None,
        options.column(
            "COLUMN",
            "sql: the column with the probability (or log-odds) of the second class. Default: "
            "that of the table of hetcal fit.",
        ),
    ] = None,
    dialect: Annotated[
        Dialect, typer.Option(help="sql: how names are quoted.", rich_help_panel=options.OUTPUT)
    ] = Dialect.ansi,
    overwrite: options.Overwrite = False,
) -> None:
    """Write a global map (not one that compares items) as ONNX, Python or SQL.

    Python and SQL give the probability of the second class, which a comment in them names.

    Example: hetcal export loans.hetcal --format sql
    """
    from hetcal.batches.model import describe_file, read_roles
    from hetcal.persistence import describe, load
    from hetcal.persistence.atomic_file import AtomicFile
    from hetcal.tables.writing import check_target

    if out != "-":
        check_target(Path(out), overwrite=overwrite, model=model)
    roles = describe_file(model, describe)["metadata"].get("table")
    if roles is not None:
        read_roles(model, roles)
    content = _content(load(model), roles, format, column, dialect)
    if out != "-":
        with AtomicFile(out, overwrite=overwrite) as stream:
            stream.write(content)
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _content(
    calibrator: Any, roles: Any, format: Target, column: str | None, dialect: Dialect
) -> bytes:
    from hetcal.export import to_onnx, to_python, to_sql

    if format is Target.onnx:
        return to_onnx(calibrator).SerializeToString()
    if format is Target.python:
        return to_python(calibrator).encode()
    write = partial(to_sql, calibrator, dialect=dialect.value)
    if column is None:
        write(column="p")  # refuses what no column would help
        column = _second_class_column(roles)
    return (write(column=column) + "\n").encode()


def _second_class_column(roles: Any) -> str:
    """Return the column of the table of ``hetcal fit`` that the expression reads."""
    unclear = "it was saved from Python" if not roles else None
    if roles:
        if roles.get("percent"):
            unclear = "its table holds percentages"
        elif roles.get("predicted") and not roles.get("being_right"):
            unclear = "its table holds the confidence in the predicted class"
        elif roles["output_kind"] == "logits" and len(roles["output"]) > 1:
            unclear = "its table holds logits, and SQL takes the log-odds of the second class"
    if unclear:
        raise InputError(
            f"Which column the expression reads is not clear: {unclear}. Name one that holds the "
            "probability (from logits: the log-odds) of the second class: --column NAME."
        )
    return str(roles["output"][-1])
