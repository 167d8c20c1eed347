"""``hetcal compare``: every method on the table's own rows, side by side."""

from __future__ import annotations

import json as to_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hetcal._printable import counted
from hetcal.cli import _options as options
from hetcal.cli import _table_input as inputs
from hetcal.cli._console import errors, numbers_table, print_json, print_table, results
from hetcal.cli._working import bar, tell, tell_line, warnings_as_notes

if TYPE_CHECKING:
    import pandas as pd

    from hetcal.diagnosis import Comparison

_METRICS = ("brier", "log_loss", "ece", "accuracy")


def compare(
    *,
    table: options.Table,
    columns: options.Columns,
    methods: Annotated[
        str,
        typer.Option(metavar="NAMES", help="Which, separated by commas, or all of them."),
    ] = "all",
    baselines: Annotated[
        bool, typer.Option(help="Forest and gradient boosting on the same rows.")
    ] = True,
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Cross-validate every method on so many folds. Without it each predicts the rows "
            "in its own way, as hetcal fit and hetcal diagnose do.",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=1, help="Shuffles of the folds, together with --folds.")
    ] = 1,
    out: Annotated[
        Path | None,
        options.file("TABLE.csv", "Write one line per method and metric.", "--out", "-o"),
    ] = None,
    json: options.JsonFile = None,
    verbatim: options.Verbatim = False,
    drawing: options.Drawing,
    reading: options.Reading,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
) -> None:
    """Compare all calibration methods on a table, each row predicted without its label.

    Plain retrained models stand beside them: where they win, retraining is the better answer.

    Example: hetcal compare loans.csv --label outcome --proba 'p_*' --methods platt,swc,hybrid
    """
    from hetcal.persistence.atomic_file import write_atomic
    from hetcal.tables.writing import TableWriter, check_other_file

    to_stdout = json == "-"
    for path in (out, None if to_stdout else json):
        if path is not None:
            check_other_file(path, table)
    with bar(f"Reading {table}", quiet=quiet or to_stdout) as say:
        labelled = inputs.read(table, columns, reading, drawing, say, otherwise=None)
        from hetcal.diagnosis import compare as run

        with warnings_as_notes() as said:
            comparison = run(
                labelled.items,
                methods=methods if methods == "all" else [m.strip() for m in methods.split(",")],
                baselines=baselines,
                cv=folds,
                n_repeats=repeats,
                keep_predictions=False,
                random_state=drawing.seed,
                n_jobs=jobs or inputs.n_cores(),
                progress=lambda done, total, what: say(what, done / total),
            )
    frame = comparison.frame()
    frame["items"], frame["rows_read"] = labelled.n_items, labelled.n_read
    if out is not None:
        with TableWriter(out, format="csv", overwrite=True, verbatim=verbatim) as written_table:
            written_table.write({name: frame[name].to_numpy() for name in frame.columns})
    if json is not None:
        text = to_json.dumps(_records(frame), indent=2)
        if to_stdout:
            for note in said:
                tell(errors(), f"note: {note}", "yellow")
            print_json(text)
            return
        write_atomic(json, text)
    written = [str(path) for path in (out, json) if path is not None]
    _show(comparison, [*labelled.notes, *said], written, quiet=quiet)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]


def _show(
    comparison: Comparison, table_notes: list[str], written: list[str], *, quiet: bool
) -> None:
    from rich.text import Text

    console = results()
    frame = comparison.frame().set_index(["method", "metric"])
    titles = ("Brier", "95 % interval", "log loss", "ECE", "accuracy", "above best")
    table = numbers_table("method", *titles, gap=1)
    for name in comparison.methods:
        rows = frame.loc[name]
        brier = rows.loc["brier"]
        if brier["value"] != brier["value"]:
            table.add_row(Text(name), "failed", *[""] * 5)
            continue
        shown = [_figure(rows.loc[metric]) for metric in _METRICS]
        ends = "" if brier.isna()["low"] else f"{brier['low']:.3f} to {brier['high']:.3f}"
        gap = "best" if brier["best"] else f"{brier['difference']:+z.4f}"
        table.add_row(Text(name), shown[0], Text(ends, style="dim"), *shown[1:], gap)
    print_table(console, table)
    if quiet:
        return
    tested = f"{comparison.n_splits} splits" if comparison.n_splits else "each without its label"
    named = any(" on " in name for name in comparison.methods)  # 'forest on [X, P]'
    console.print(
        f"{counted(comparison.n_items, 'item')}, {tested}. * within one standard error of the best",
        style="dim",
    )
    if named:
        console.print("X: the features, P: the model's probabilities", style="dim")
    for note in table_notes:
        tell(errors(), f"note: {note}", "yellow")
    notes = frame.xs("brier", level="metric")["note"]
    for method, note in notes[notes != ""].items():
        tell(console, f"{method}: {note}", "yellow")
    for path in written:
        tell_line(console, f"Written: {path}", "bold")


def _figure(row: Any) -> Any:
    from rich.text import Text

    near = bool(row["within_one_se"])
    text = f"{row['value']:.4f}{'*' if near else ' '}"
    return Text(text, style="bold green" if near else "")
