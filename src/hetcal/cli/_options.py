"""Options that several commands share: what the columns of a table are for, how it is read.

A dataclass below is a set of options that belong together. A command has one parameter of that
type (by keyword, since options have no order), and :func:`command` makes an option of every field.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hetcal.cli._deferred import defer_unused
from hetcal.tables.sizes import MAX_ROWS

COLUMNS, FILES, OUTPUT = "Columns of the table", "Files", "Output"


class TableFormat(StrEnum):
    """Kinds of tables."""

    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"


def column(metavar: str, help: str) -> Any:
    """Return an option that names columns of the table."""
    return typer.Option(metavar=metavar, help=help, rich_help_panel=COLUMNS)


def file(metavar: str, help: str, *names: str) -> Any:
    """Return an option that names a file."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=FILES)


def flag(name: str, help: str, panel: str | None = None) -> Any:
    """Return an option without a value; named, or typer would add one that says the opposite."""
    return typer.Option(name, help=help, rich_help_panel=panel)


@dataclass(frozen=True)
class Columns:
    """What the columns of a table with labels are for; see :func:`hetcal.tables.read_labelled`."""

    label: Annotated[str, column("COLUMN", "What really happened: the observed class.")]
    proba: Annotated[
        str | None,
        column(
            "PATTERN",
            "The model's probabilities: a pattern such as 'p_*' (p_yes, p_no) or names separated "
            "by commas, one column per class; or one column for two classes.",
        ),
    ] = None
    logits: Annotated[
        str | None,
        column("PATTERN", "The model's output before the softmax, instead of --proba."),
    ] = None
    positive: Annotated[
        str | None, column("VALUE", "The label that a single column is the probability of.")
    ] = None
    classes: Annotated[
        str | None,
        column(
            "NAMES",
            "The labels in the order of the columns, separated by commas, where the columns are "
            "not named after them.",
        ),
    ] = None
    predicted: Annotated[
        str | None,
        column(
            "COLUMN", "The class that the model predicted, with --confidence instead of --proba."
        ),
    ] = None
    confidence: Annotated[
        str | None,
        column(
            "COLUMN",
            "The probability of the predicted class. With three classes and more, the "
            "probability of being right is calibrated.",
        ),
    ] = None
    percent: Annotated[
        bool, flag("--percent", "The probabilities are percentages: divide them by 100.", COLUMNS)
    ] = False
    features: Annotated[
        str | None,
        column(
            "NAMES",
            "What items are compared by: names or patterns, separated by commas. Default: every "
            "other column, except ids, dates and free text.",
        ),
    ] = None
    drop: Annotated[str | None, column("NAMES", "Columns that are no features.")] = None
    groups: Annotated[
        str | None,
        column(
            "NAMES",
            "Rows with the same value (one customer, one patient) stay together; several columns "
            "separated by commas: the same value in each.",
        ),
    ] = None
    weight: Annotated[str | None, column("COLUMN", "How much each row counts.")] = None
    drop_missing: Annotated[
        bool,
        flag(
            "--drop-missing", "Leave rows without a probability out, instead of stopping.", COLUMNS
        ),
    ] = False
    accept_order: Annotated[
        bool,
        flag(
            "--accept-order",
            "Go on although the probabilities rank the labels the wrong way round.",
            COLUMNS,
        ),
    ] = False


@dataclass(frozen=True)
class ReportColumns(Columns):
    """The same, with what a report is broken down by."""

    by: Annotated[
        str | None, column("NAMES", "Report these columns' groups too, separated by commas.")
    ] = None
    time: Annotated[
        str | None,
        column(
            "COLUMN",
            "When each row was seen: methods learn from earlier rows and are scored on later.",
        ),
    ] = None


@dataclass(frozen=True)
class Reading:
    """How a table is read; see :func:`hetcal.tables.read_table`."""

    format: Annotated[
        TableFormat | None,
        typer.Option(
            help="What TABLE is, where its name does not say so (standard input: csv).",
            rich_help_panel=FILES,
        ),
    ] = None
    encoding: Annotated[str, typer.Option(help="Of a CSV file.", rich_help_panel=FILES)] = "utf-8"
    decimal: Annotated[
        str,
        typer.Option(
            metavar="SIGN",
            help="Decimal sign of a CSV file: a point, or a comma as Excel writes it in many "
            "places.",
            rich_help_panel=FILES,
        ),
    ] = "."


@dataclass(frozen=True)
class Drawing:
    """Which rows of a large table are used; see :func:`hetcal.tables.draw_labelled`."""

    max_rows: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=20,
            help="Most rows to compute with. From a larger table so many are drawn at random, and "
            "the model is scored over all rows.",
            rich_help_panel=FILES,
        ),
    ] = MAX_ROWS
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Of drawn rows, folds, forests and boosting.")
    ] = 0


Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV (also .csv.gz), Parquet (or a folder of it), Arrow, Feather; - is stdin.",
        show_default=False,
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL.hetcal", help="From hetcal fit.", show_default=False)
]
Overwrite = Annotated[bool, flag("--overwrite", "Replace the output if it is there.", FILES)]
Verbatim = Annotated[
    bool,
    flag(
        "--verbatim",
        "Leave text in CSV output as it is, also what a spreadsheet would run as a formula; "
        "by default '=1+1' is written with an apostrophe before it.",
        FILES,
    ),
]
Json = Annotated[bool, flag("--json", "One JSON object on standard output.", OUTPUT)]
JsonFile = Annotated[
    str | None,
    file(
        "FILE.json",
        "Write every number as JSON; - is standard output, which then holds nothing else.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="No progress, no explanations.", rich_help_panel=OUTPUT),
]
Expected = Annotated[
    bool,
    flag(
        "--expected",
        "Say what accuracy, Brier score and log loss to expect of these rows, without labels.",
        OUTPUT,
    ),
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Cores to use. Default: all.", show_default=False)
]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command for typer: a parameter that is a set of options becomes these options."""
    given = inspect.signature(function, eval_str=True).parameters.values()
    sets: dict[str, Any] = {p.name: p.annotation for p in given if is_dataclass(p.annotation)}

    @functools.wraps(function)
    def run(**values: Any) -> None:
        defer_unused()
        for name, kind in sets.items():
            values[name] = kind(**{f.name: values.pop(f.name) for f in fields(kind)})
        function(**values)

    options = [
        option.replace(kind=option.KEYWORD_ONLY)
        for p in given
        for option in (
            inspect.signature(sets[p.name], eval_str=True).parameters.values()
            if p.name in sets
            else [p]
        )
    ]
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return run
