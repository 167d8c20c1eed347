"""``hetcal apply``: calibrated probabilities beside the rows of a table of any size."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hetcal.cli import _options as options
from hetcal.cli._console import errors
from hetcal.cli._working import bar, tell

if TYPE_CHECKING:
    from hetcal.cli._additions import Additions

_BATCH_ROWS = 50_000


def apply(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL.hetcal", help="From hetcal fit.", show_default=False),
    ],
    table: options.Table,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="OUT",
            help="Where to write the rows; - is standard output.",
            rich_help_panel="Files",
            show_default=False,
        ),
    ],
    columns: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="What to add: q (probabilities), class, support, size (effective), flags.",
            rich_help_panel="Output",
        ),
    ] = "q,class,support,size,flags",
    prefix: Annotated[
        str,
        typer.Option(help="Before the class in the new columns.", rich_help_panel="Output"),
    ] = "q_",
    only_new: Annotated[
        bool,
        typer.Option(
            "--only-new",
            help="Write the new columns only, not those of TABLE.",
            rich_help_panel="Output",
        ),
    ] = False,
    leave_missing: Annotated[
        bool,
        typer.Option(
            "--leave-missing",
            help="Rows without a probability get no result, instead of stopping.",
        ),
    ] = False,
    batch_rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = _BATCH_ROWS,
    format: options.Format = None,
    out_format: Annotated[
        options.TableFormat | None,
        typer.Option(
            "--out-format",
            help="What OUT is, where its name does not say so.",
            rich_help_panel="Files",
        ),
    ] = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Add calibrated probabilities to a table, as many rows out as in and in the same order.

    Adds q_<class>, predicted_class, support and effective_size (where the method has them), and
    flags: low_support, unknown_category, missing_features, label_changed, no_probability.

    Example: hetcal apply loans.hetcal new.csv -o calibrated.csv
    """
    from hetcal._exceptions import InputError

    if as_json and out == "-":
        raise InputError("--json and -o - both write to standard output. Write to a file.")
    started = time.perf_counter()
    with bar(f"Loading {model}", quiet=quiet or as_json) as say:
        from hetcal.cli._additions import Additions
        from hetcal.cli._model import load_model

        loaded = load_model(model)
        additions = Additions(loaded, columns=columns, prefix=prefix, leave_missing=leave_missing)
        _stream(
            additions,
            table,
            out,
            {"format": format, "encoding": encoding, "decimal": decimal},
            {"format": out_format, "overwrite": overwrite},
            batch_rows=batch_rows,
            only_new=only_new,
            say=say,
        )
    seconds = time.perf_counter() - started
    if as_json:
        facts = {"written": out, "rows": additions.n_rows, "seconds": round(seconds, 2)}
        facts |= {"columns": additions.names, "flags": additions.counts}
        typer.echo(json.dumps(facts, indent=2))
    elif not quiet:
        _show(additions, out, seconds)


def _stream(
    additions: Additions,
    table: str,
    out: str,
    reading: dict[str, Any],
    writing: dict[str, Any],
    *,
    batch_rows: int,
    only_new: bool,
    say: Any,
) -> None:
    from hetcal.io.tables import open_table, table_format
    from hetcal.io.writing import TableWriter

    if out == "-" and writing["format"] is None:
        writing["format"] = table_format(table, reading["format"])
    with open_table(table, **reading) as source:
        if not only_new:
            additions.refuse_columns_that_are_there(source.names)
        with (
            TableWriter(out, delimiter=_delimiter(source, out), **writing) as target,
            warnings.catch_warnings(),
        ):
            # What the warnings say is in the flags, row by row.
            warnings.simplefilter("ignore")
            for batch in source.batches(batch_rows):
                new = additions.to(batch)
                target.write(new if only_new else additions.kept(batch, target.format) | new)
                say(f"Calibrating {table}: {additions.n_rows:,} rows", source.done())


def _delimiter(source: Any, out: str) -> str | None:
    """Return the input's separator for output of the same kind."""
    return None if out.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else source.delimiter


def _show(additions: Additions, out: str, seconds: float) -> None:
    # On stderr: the rows themselves may be on standard output.
    console = errors()
    where = "standard output" if out == "-" else out
    names = ", ".join(additions.shown_names())
    tell(console, f"{additions.n_rows:,} rows to {where} ({seconds:.1f} s), with {names}")
    for flag, count in additions.counts.items():
        if count:
            share = count / additions.n_rows
            console.print(f"  {flag:<17} {count:>12,} rows ({share:.1%})", markup=False)
