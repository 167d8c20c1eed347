"""Options that several commands share: what the columns of a table are for."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

#: Rows that are computed with; as in ``hetcal.tables.sampling``, which need not be loaded for this.
MAX_ROWS = 50_000
_COLUMNS, _FILES, _OUTPUT = "Columns of the table", "Files", "Output"


class TableFormat(StrEnum):
    """Kinds of tables."""

    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"


Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV (also .csv.gz), Parquet, Arrow or Feather; - is standard input.",
        show_default=False,
    ),
]
Label = Annotated[
    str,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="What really happened: the observed class of each row.",
        rich_help_panel=_COLUMNS,
        show_default=False,
    ),
]
Proba = Annotated[
    str | None,
    typer.Option(
        "--proba",
        metavar="PATTERN",
        help="The model's probabilities: a pattern such as 'p_*' (p_yes, p_no) or names separated "
        "by commas, one column per class; or one column for two classes.",
        rich_help_panel=_COLUMNS,
    ),
]
Logits = Annotated[
    str | None,
    typer.Option(
        "--logits",
        metavar="PATTERN",
        help="The model's output before the softmax, instead of --proba.",
        rich_help_panel=_COLUMNS,
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="VALUE",
        help="The label that a single column is the probability of.",
        rich_help_panel=_COLUMNS,
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="NAMES",
        help="The labels in the order of the columns, separated by commas, where the columns are "
        "not named after them.",
        rich_help_panel=_COLUMNS,
    ),
]
Predicted = Annotated[
    str | None,
    typer.Option(
        "--predicted",
        metavar="COLUMN",
        help="The class that the model predicted, with --confidence instead of --proba.",
        rich_help_panel=_COLUMNS,
    ),
]
Confidence = Annotated[
    str | None,
    typer.Option(
        "--confidence",
        metavar="COLUMN",
        help="The probability of the predicted class. With three classes and more, the "
        "probability of being right is calibrated.",
        rich_help_panel=_COLUMNS,
    ),
]
AcceptOrder = Annotated[
    bool,
    typer.Option(
        "--accept-order",
        help="Go on although the probabilities rank the labels the wrong way round.",
        rich_help_panel=_COLUMNS,
    ),
]
Percent = Annotated[
    bool,
    typer.Option(
        "--percent",
        help="The probabilities are percentages: divide them by 100.",
        rich_help_panel=_COLUMNS,
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        metavar="NAMES",
        help="What items are compared by: names or patterns, separated by commas. Default: every "
        "other column, except ids, dates and free text.",
        rich_help_panel=_COLUMNS,
    ),
]
Drop = Annotated[
    str | None,
    typer.Option(
        "--drop", metavar="NAMES", help="Columns that are no features.", rich_help_panel=_COLUMNS
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="NAMES",
        help="Rows with the same value (one customer, one patient) stay together; several columns "
        "separated by commas: the same value in each.",
        rich_help_panel=_COLUMNS,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight", metavar="COLUMN", help="How much each row counts.", rich_help_panel=_COLUMNS
    ),
]
DropMissing = Annotated[
    bool,
    typer.Option(
        "--drop-missing",
        help="Leave rows without a probability out, instead of stopping.",
        rich_help_panel=_COLUMNS,
    ),
]
MaxRows = Annotated[
    int,
    typer.Option(
        "--max-rows",
        metavar="N",
        min=20,
        help="Most rows to compute with. From a larger table so many are drawn at random, and the "
        "model is scored over all rows.",
        rich_help_panel=_FILES,
    ),
]
Format = Annotated[
    TableFormat | None,
    typer.Option(
        "--format",
        help="What TABLE is, where its name does not say so (standard input: csv).",
        rich_help_panel=_FILES,
    ),
]
Encoding = Annotated[
    str,
    typer.Option("--encoding", help="Of a CSV file.", rich_help_panel=_FILES),
]
Decimal = Annotated[
    str,
    typer.Option(
        "--decimal",
        metavar="SIGN",
        help="Decimal sign of a CSV file: a point, or a comma as Excel writes it in many places.",
        rich_help_panel=_FILES,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace the output if it is there.", rich_help_panel=_FILES),
]
Verbatim = Annotated[
    bool,
    typer.Option(
        "--verbatim",
        help="Leave text in CSV output as it is, also what a spreadsheet would run as a formula; "
        "by default '=1+1' is written with an apostrophe before it.",
        rich_help_panel=_FILES,
    ),
]
ModelOut = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="MODEL.hetcal",
        help="Where to write the calibrator.",
        rich_help_panel=_FILES,
        show_default=False,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="One JSON object on standard output.", rich_help_panel=_OUTPUT),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="No progress, no explanations.", rich_help_panel=_OUTPUT),
]
