"""``hetcal apply``: calibrated probabilities beside the rows of a table of any size."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hetcal._printable import counted
from hetcal.cli import _options as options
from hetcal.cli._console import errors, print_json
from hetcal.cli._working import bar, tell
from hetcal.tables.sizes import BATCH_ROWS

if TYPE_CHECKING:
    from hetcal.batches import Additions

_ENGINE = "Engine"


class Engine(StrEnum):
    """Where the rows are calibrated."""

    local = "local"
    dask = "dask"


def apply(
    *,
    model: options.Model,
    table: options.Table,
    out: Annotated[
        str,
        options.file(
            "OUT",
            "Where to write the rows; - is standard output. With --engine dask a folder.",
            "--out",
            "-o",
        ),
    ],
    columns: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="What to add: q (probabilities), class, support, size (effective), flags.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = "q,class,support,size,flags",
    interval: Annotated[
        bool,
        options.flag(
            "--interval",
            "Add q_<class>_low and q_<class>_high: 90 % intervals of P(y | x) of each row (of a "
            "hybrid).",
            options.OUTPUT,
        ),
    ] = False,
    expected: options.Expected = False,
    prefix: Annotated[
        str,
        typer.Option(help="Before the class in the new columns.", rich_help_panel=options.OUTPUT),
    ] = "q_",
    only_new: Annotated[
        bool,
        options.flag(
            "--only-new", "Write the new columns only, not those of TABLE.", options.OUTPUT
        ),
    ] = False,
    leave_missing: Annotated[
        bool,
        options.flag(
            "--leave-missing", "Rows without a probability get no result, instead of stopping."
        ),
    ] = False,
    batch_rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = BATCH_ROWS,
    reading: options.Reading,
    out_format: Annotated[
        options.TableFormat | None,
        options.flag("--out-format", "What OUT is, where its name does not say so.", options.FILES),
    ] = None,
    overwrite: options.Overwrite = False,
    verbatim: options.Verbatim = False,
    engine: Annotated[
        Engine,
        typer.Option(
            help="dask: Parquet (a file, a folder or a pattern) to a folder of Parquet parts, in "
            "many processes.",
            rich_help_panel=_ENGINE,
        ),
    ] = Engine.local,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Of a dask cluster, such as tcp://10.0.0.5:8786. Default: processes of this "
            "machine.",
            rich_help_panel=_ENGINE,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many processes, without --scheduler. Default: one per core.",
            rich_help_panel=_ENGINE,
        ),
    ] = None,
    part_rows: Annotated[
        int,
        typer.Option(
            min=1,
            help="A file with more rows becomes several parts, where its row groups permit.",
            rich_help_panel=_ENGINE,
        ),
    ] = 1_000_000,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Add calibrated probabilities to a table, as many rows out as in and in the same order.

    Adds q_<class>, predicted_class, support and effective_size (where the method has them), and
    flags: low_support, unknown_category, missing_features, label_changed, crosses_half,
    no_probability.

    Example: hetcal apply loans.hetcal new.csv -o calibrated.csv
    """
    from hetcal._exceptions import InputError

    if as_json and out == "-":
        raise InputError("--json and -o - both write to standard output. Write to a file.")
    columns += ",interval" if interval else ""
    adding: dict[str, Any] = {"columns": columns, "prefix": prefix, "leave_missing": leave_missing}
    sizes: dict[str, Any] = {"batch_rows": batch_rows, "only_new": only_new}
    started = time.perf_counter()
    written: Any
    with bar(f"Loading {model}", quiet=quiet or as_json) as say:
        if engine == Engine.dask:
            if expected:
                raise InputError("--expected is not for --engine dask. Use hetcal monitor.")
            _refuse_other_formats(table, out, reading.format, out_format)
            more: dict[str, Any] = {"part_rows": part_rows, "overwrite": overwrite}
            more |= {"scheduler": scheduler, "workers": workers}
            written = _on_dask(model, table, out, adding | sizes | more, say)
        elif scheduler is not None or workers is not None:
            raise InputError("--scheduler and --workers are for --engine dask. Add it.")
        else:
            from hetcal.batches import Additions, load_model

            adding |= {"expected": expected, "count_learned": True}
            written = Additions(load_model(model), **adding)
            writing = {"format": out_format, "overwrite": overwrite, "verbatim": verbatim}
            _stream(written, table, out, reading, writing, **sizes, say=say)
    seconds = time.perf_counter() - started
    if as_json:
        facts = {"written": out, "rows": written.n_rows, "seconds": round(seconds, 2)}
        facts |= {"columns": written.names, "flags": written.counts}
        if engine == Engine.dask:
            facts |= {"engine": "dask", "parts": written.n_parts}
        else:
            facts["notes"] = _notes(written)
            if written.expected is not None:
                facts["expected"] = written.expected.to_dict()
        print_json(json.dumps(facts, indent=2))
    elif not quiet:
        _show(written, out, seconds)
        for note in _notes(written) if engine == Engine.local else ():
            tell(errors(), f"note: {note}", "yellow")
    if expected and not as_json and written.expected is not None:
        _show_expected(written.expected)


def _on_dask(model: Path, table: str, out: str, options: dict[str, Any], say: Any) -> Any:
    from hetcal.dask import apply_parquet

    def tell_progress(done: int, rows: int) -> None:
        say(f"Calibrating {table}: {done:,} of {rows:,} rows", done / rows if rows else None)

    say("Starting workers" if options["scheduler"] is None else "Connecting", None)
    return apply_parquet(model, table, out, progress=tell_progress, **options)


def _refuse_other_formats(table: str, out: str, format: Any, out_format: Any) -> None:
    from hetcal._exceptions import InputError

    if table == "-" or out == "-" or format not in (None, "parquet"):
        raise InputError(
            f"--engine dask reads Parquet (a file, a folder or a pattern) and writes a folder; got "
            f"{table} and -o {out}. Leave --engine dask away, or write the table as Parquet."
        )
    if out_format not in (None, "parquet"):
        raise InputError(f"--engine dask writes Parquet, not {out_format}.")


def _stream(
    additions: Additions,
    table: str,
    out: str,
    reading: options.Reading,
    writing: dict[str, Any],
    *,
    batch_rows: int,
    only_new: bool,
    say: Any,
) -> None:
    from hetcal.tables.reading import open_table, table_format
    from hetcal.tables.writing import TableWriter

    if out == "-" and writing["format"] is None:
        writing["format"] = table_format(table, reading.format)
    with open_table(table, **vars(reading)) as source:
        if not only_new:
            additions.refuse_columns_that_are_there(source.names)
        with TableWriter(out, delimiter=_delimiter(source, out), **writing) as target:
            for batch in source.batches(batch_rows):
                new = additions.to(batch)
                target.write(new if only_new else additions.kept(batch, target.format) | new)
                say(f"Calibrating {table}: {additions.n_rows:,} rows", source.done())


def _delimiter(source: Any, out: str) -> str | None:
    """Return the input's separator for output of the same kind."""
    return None if out.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else source.delimiter


def _notes(written: Additions) -> list[str]:
    """Say that rows are no new ones to the model, where many are not."""
    if written.learned is None or not written.learned.share:
        return []
    return [
        f"{written.learned.in_words} are rows that the model was fitted on: it has learned from "
        "their labels and looks better on them than on new rows. To measure it, use hetcal "
        "diagnose, which predicts each row without its label."
    ]


def _show_expected(performance: Any) -> None:
    from hetcal.monitor.in_words import expected_sentence

    tell(errors(), expected_sentence(performance))
    if performance.note is not None:
        tell(errors(), f"note: {performance.note}", "yellow")


def _show(written: Any, out: str, seconds: float) -> None:
    # On stderr: the rows themselves may be on standard output.
    console = errors()
    where = "standard output" if out == "-" else out
    names = ", ".join(written.shown)
    tell(console, f"{counted(written.n_rows, 'row')} to {where} ({seconds:.1f} s), with {names}")
    for flag, count in written.counts.items():
        if count:
            share = count / written.n_rows
            rows = counted(count, "row").split(" ")
            console.print(f"  {flag:<17} {rows[0]:>12} {rows[1]} ({100 * share:.1f} %)")
