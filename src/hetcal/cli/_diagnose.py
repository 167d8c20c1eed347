"""``hetcal diagnose``: are the probabilities right, for whom not, and what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hetcal._exceptions import InputError
from hetcal.cli import _options as options
from hetcal.cli import _table_input as inputs
from hetcal.cli._console import errors, print_json, results
from hetcal.cli._working import bar, tell, tell_line, warnings_as_notes

if TYPE_CHECKING:
    from hetcal.report.model import Report
    from hetcal.tables.labelled_table import LabelledTable

_REPORT = "report.html"
_WORTHWHILE = 0.02


def diagnose(
    *,
    table: options.Table,
    columns: options.ReportColumns,
    test: Annotated[
        str | None,
        options.file(
            "TABLE", "New rows: are they like the calibration rows? Scored where they have labels."
        ),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            metavar="COSTS",
            help="What mistakes cost: 'fp=1,fn=10' for two classes, or 'truth:decision=cost,...'.",
        ),
    ] = None,
    worthwhile: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0.0001,
            max=0.9999,
            help="The smallest gain that matters, as a share of the Brier score.",
        ),
    ] = _WORTHWHILE,
    learning_curve: Annotated[
        bool,
        options.flag(
            "--learning-curve",
            "Measure growing calibration sizes too; takes several times as long.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        options.file(
            "REPORT.html",
            "Where to write the report. Default: report.html beside the table.",
            "--out",
            "-o",
        ),
    ] = None,
    json: options.JsonFile = None,
    verbose: Annotated[
        bool, options.flag("--verbose", "Print the numbers behind the verdict.", options.OUTPUT)
    ] = False,
    drawing: options.Drawing,
    reading: options.Reading,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
) -> None:
    """Find out whether a model's probabilities are right, for whom they are not, and what to do.

    Printed are what to do now and how sure it is; report.html holds everything and opens in any
    browser.

    Example: hetcal diagnose loans.csv --label outcome --proba 'p_*'
    """
    from hetcal.tables.writing import check_other_file

    target = _checked_target(out, Path() if table == "-" else Path(table).parent)
    if json is not None and json != "-":
        check_other_file(json, table)
    to_stdout = json == "-"
    calm = quiet or to_stdout
    if not calm:  # at once: whoever waits sees that it runs
        tell_line(results(), f"Diagnosing {table}", "bold")
    with bar(f"Reading {table}", quiet=calm) as say:
        labelled = inputs.read(table, columns, reading, drawing, say)
        costs = _costs(cost, labelled)
        new, new_rows = _new_items(test, labelled, reading, drawing)
        if not calm:
            _introduce(labelled)
        from hetcal.report import diagnose as run

        with warnings_as_notes() as said:
            report = run(
                labelled.items,
                by=_by(labelled),
                time=labelled.time,
                identifiers=labelled.other_columns,
                costs=costs,
                learning_curve=learning_curve,
                name=inputs.stem_of(table),
                worthwhile=worthwhile,
                random_state=drawing.seed,
                n_jobs=jobs or inputs.n_cores(),
                progress=lambda done, total, what: say(what.capitalize(), done / total),
                **new,
            )
    missing = [text for text in said if text not in report.warnings]
    words: list[str] = []
    for option, value in {"--test": test, "--cost": cost}.items():
        words += [] if value is None else [option, value]
    words += [*inputs.arguments_of(drawing), *inputs.arguments_of(reading)]
    words += ["--learning-curve"] if learning_curve else []
    words += [] if worthwhile == _WORTHWHILE else ["--worthwhile", str(worthwhile)]

    def again(columns: options.ReportColumns) -> str:
        return inputs.command_line("diagnose", table, *inputs.arguments_of(columns), *words)

    # The same rows, where only some of them are used.
    drawn = options.Drawing() if labelled.drawn is None else drawing
    title, following = "Do this", _commands_to_copy(report, table, columns, reading, drawn)
    if following is None:
        groups = report.verdict.belong_together
        title = _when_to_ask_again(report, _with_empty_values(groups, labelled))
        following = again(replace(columns, groups=",".join(groups)) if groups else columns)
    report = replace(
        _with_places(report, labelled, new_rows),
        command=again(columns),
        verdict=replace(report.verdict, command=following, command_title=title),
        warnings=[*report.warnings, *missing],
        notes=list(labelled.notes),
    )
    replaced = target.exists()
    report.to_html(target)
    if to_stdout:
        print_json(report.to_json())
    elif json is not None:
        report.to_json(json)
    if not to_stdout:
        written = f"{target} (the earlier one is replaced)" if replaced else f"{target}"
        _show(report, written, json, quiet=quiet, verbose=verbose)


def _introduce(labelled: LabelledTable) -> None:
    console = results()
    classes = ", ".join(str(c) for c in labelled.classes.tolist()[:6])
    more = f" and {len(labelled.classes) - 6} more" if len(labelled.classes) > 6 else ""
    d = 0 if labelled.X is None else labelled.X.shape[1]
    tell_line(console, f"{inputs.counted(labelled, d)}, classes {classes}{more}.")
    for note in labelled.notes:
        tell(errors(), f"note: {note}", "yellow")


def _with_places(report: Report, labelled: LabelledTable, new_rows: Any) -> Report:
    """Return the report with rows of the tables, not of the items that are left of them."""
    places = {"calibration set": labelled.rows, "test table": new_rows}
    weakest = [replace(item, row=int(places[item.table][item.row])) for item in report.weakest]
    settings = report.settings
    if labelled.drawn is not None:
        settings = settings | {"items": f"{labelled.n_items:,} drawn from {labelled.n_read:,} rows"}
    return replace(report, weakest=weakest, settings=settings)


def _by(labelled: LabelledTable) -> Any:
    """Return columns of the features by name (numbers are cut there), others with their values."""
    if not labelled.by:
        return None
    if labelled.X is not None and set(labelled.by) <= set(labelled.X.columns):
        return list(labelled.by)
    return labelled.by


def _new_items(
    test: str | None,
    labelled: LabelledTable,
    reading: options.Reading,
    drawing: options.Drawing,
) -> tuple[dict[str, Any], Any]:
    """Return what ``diagnose`` takes about the rows of a test table, and their places in it."""
    if test is None:
        return {}, None
    from hetcal.tables.reading import read_batches
    from hetcal.tables.sampling import draw_rows

    batches = read_batches(test, encoding=reading.encoding, decimal=reading.decimal)
    sample = draw_rows(batches, drawing.max_rows, random_state=drawing.seed)
    if len(sample.rows) < sample.n_rows:
        labelled.notes.append(
            f"Of the {sample.n_rows:,} rows of {test}, {len(sample.rows):,} were drawn at random."
        )
    new = labelled.roles.items(sample.table)
    given: dict[str, Any] = {"X_test": new.X, f"{labelled.roles.output_kind}_test": new.output}
    labels = labelled.roles.labels(sample.table)
    if labels is not None and labels[1].any():
        given["y_test"] = [label if k else None for label, k in zip(*labels, strict=True)]
    return given, sample.rows


def _costs(text: str | None, labelled: LabelledTable) -> Any:
    """Return the cost matrix that ``--cost`` describes: zeros where nothing is said."""
    if text is None:
        return None
    import numpy as np

    names = [str(c) for c in labelled.classes.tolist()]
    matrix = np.zeros((len(names), len(names)))
    for part in text.split(","):
        key, equals, value = part.rpartition("=")
        key = key.strip()
        place = {"fp": (0, 1), "fn": (1, 0)}.get(key.lower()) if len(names) == 2 else None
        if place is None and ":" in key:
            truth, _, decision = key.partition(":")
            if truth.strip() in names and decision.strip() in names:
                place = names.index(truth.strip()), names.index(decision.strip())
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not equals or place is None or not np.isfinite(number):
            raise InputError(
                f"--cost: {part.strip()!r} is not understood. Write 'fp=1,fn=10' for two classes, "
                f"or 'truth:decision=cost' with classes among {', '.join(names[:6])}."
            )
        matrix[place] = number
    return matrix


def _commands_to_copy(
    report: Report,
    table: str,
    columns: options.ReportColumns,
    reading: options.Reading,
    drawing: options.Drawing,
) -> str | None:
    """Return what to type next, where a calibrator is what is recommended."""
    recommended = report.method(report.verdict.recommended) if report.comparison else None
    if recommended is None or recommended.scope not in ("global", "local"):
        return None
    method = [] if recommended.method == "hybrid" else ["--method", recommended.method]
    file = f"{inputs.stem_of(table)}.hetcal"
    words = [
        *inputs.arguments_of(replace(columns, by=None, time=None)),
        *inputs.arguments_of(reading),
        *inputs.arguments_of(drawing),
    ]
    fit = inputs.command_line("fit", table, *words, *method, "-o", file)
    return f"{fit}\n{inputs.apply_command(file, table, reading, new='NEW')}"


def _with_empty_values(names: list[str], labelled: LabelledTable) -> list[str]:
    """Return the columns in which a value is missing: as groups they must be filled in first."""
    import pandas as pd

    features = pd.DataFrame() if labelled.X is None else labelled.X
    known = labelled.other_columns | {name: features[name] for name in names if name in features}
    return [name for name in names if name in known and pd.isna(known[name]).any()]


def _when_to_ask_again(report: Report, empty: list[str]) -> str:
    """Return when to diagnose once more, where nothing is to be fitted."""
    verdict = report.verdict
    if verdict.belong_together:
        filled = f", when the empty values of {' and '.join(empty)} are filled in" if empty else ""
        return f"Do this first{filled}"
    if verdict.verdict == "leave it":
        return "Nothing to run now. When there are new labelled rows"
    if verdict.void:
        return "When the warning is settled"
    sure = verdict.certainty
    if sure.items_to_settle is None and sure.groups_to_settle is not None:
        return "When there are labelled rows of other groups"
    return "When there are more labelled rows"


def _checked_target(out: Path | None, folder: Path) -> Path:
    """Return where the report goes; what is not ours is not replaced."""
    from hetcal.tables.writing import check_page_target

    target = folder / _REPORT if out is None else out
    check_page_target(target)
    return target


def _show(report: Report, target: str, json: str | None, *, quiet: bool, verbose: bool) -> None:
    from hetcal.report import text

    console = results()
    width = min(console.width, 80)

    def lines(part: list[str], style: str | None = None) -> None:
        for line in part:
            tell_line(console, line, style)

    if quiet:
        lines([*text.verdict_lines(report, width)[:1], f"Report: {target}"])
        return
    verdict = text.verdict_lines(report, width)
    warned = set(text.warning_lines(report, width)) - {""}
    console.print()
    lines(verdict[:1], "bold")
    for line in verdict[1:]:
        lines([line], "yellow" if line in warned else None)
    compared = text.comparison_lines(report)
    if compared:
        console.print()
        lines(compared)
    more = text.subgroup_lines(report, width) + text.test_lines(report)
    more += text.support_lines(report)
    if more:
        lines(more)
    if verbose:
        lines(text.reason_lines(report, width))
    written = [f"Report: {target}"] + ([] if json is None else [f"Numbers: {json}"])
    console.print()
    lines(written, "bold")
