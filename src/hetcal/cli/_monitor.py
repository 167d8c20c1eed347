"""``hetcal monitor``: whether a calibrator's items still resemble what comes in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hetcal._printable import counted
from hetcal.cli import _options as options
from hetcal.cli._console import cell, errors, numbers_table, print_json, print_lines, results
from hetcal.cli._monitor_metrics import MetricsFormat, metrics_text
from hetcal.cli._working import bar, tell

if TYPE_CHECKING:
    import pandas as pd

    from hetcal.batches.model import LoadedModel
    from hetcal.cli._monitor_tables import Watched
    from hetcal.cli._reference_items import ReferenceTables
    from hetcal.monitor import ExpectedPerformance, SupportMonitor

EXIT_SUPPORT_ALARM, EXIT_LABEL_ALARM = 3, 4
_TESTS, _REFERENCE = "Tests", "Reference items"
_GROUPS_SHOWN = 12
_SUPPORT_ONLY = (
    "Support alone cannot see items far outside the data. Begin with --calibration {tables}, and "
    "their distance is watched too."
)


def monitor(
    *,
    model: options.Model,
    table: options.Table,
    history: Annotated[
        Path | None,
        options.file(
            "FILE.hetcal",
            "What was counted so far: made by the first run, continued by the next ones.",
        ),
    ] = None,
    calibration: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE",
            help="The table of hetcal fit, then those of refreshes. With it, items far outside the "
            "data are seen too. The run that begins FILE reads it; later ones only to say what has "
            "changed (with an alarm, or --html).",
            show_default=False,
            rich_help_panel=_REFERENCE,
        ),
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Items to compare with instead, none of which was in the table of hetcal fit.",
            rich_help_panel=_REFERENCE,
        ),
    ] = None,
    by: Annotated[
        str | None,
        options.column("COLUMN", "Sub-populations to watch on their own."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of items flagged while all is well. FILE remembers it.",
            show_default="0.01",
            rich_help_panel=_TESTS,
        ),
    ] = None,
    alarm_rate: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Probability of a false alarm in 10000 items. FILE remembers it.",
            show_default="0.01",
            rich_help_panel=_TESTS,
        ),
    ] = None,
    dependence: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000_000,
            help="Of so many rows in a row the tests see one: for rows in the order of time, whose "
            "neighbours are alike. FILE remembers it.",
            show_default="1",
            rich_help_panel=_TESTS,
        ),
    ] = None,
    fail_on_alarm: Annotated[
        bool,
        options.flag(
            "--fail-on-alarm",
            "End with exit code 3 while there is an alarm of support, 4 where labels alone say so.",
        ),
    ] = False,
    reset: Annotated[
        bool,
        options.flag("--reset", "Start the tests anew first; counts and history stay."),
    ] = False,
    labels_only: Annotated[
        bool,
        options.flag(
            "--labels-only", "The rows were counted before; now their labels are known too."
        ),
    ] = False,
    again: Annotated[
        bool,
        options.flag(
            "--again", "With --labels-only: also a table whose labels FILE has counted before."
        ),
    ] = False,
    expected: options.Expected = False,
    leave_missing: Annotated[
        bool,
        options.flag(
            "--leave-missing", "Leave rows without a probability out, instead of stopping."
        ),
    ] = False,
    wait: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="How long to wait for another process that is writing FILE.",
            rich_help_panel=options.FILES,
        ),
    ] = 600,
    html: Annotated[
        Path | None,
        options.file(
            "REPORT.html",
            "Write what the monitor said when as a page for any browser. With --calibration (or "
            "--held-out) TABLE it also says which features of the new rows have changed.",
        ),
    ] = None,
    metrics: Annotated[
        MetricsFormat | None,
        typer.Option(
            help="Print what was counted for other programs: one JSON object per line, or "
            "Prometheus' text format.",
            show_default=False,
            rich_help_panel=options.FILES,
        ),
    ] = None,
    reading: options.Reading,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Watch calibration support: flag items, and raise an alarm when the stream has changed.

    Labels, where TABLE has the column, are tested against calibrated and stated probabilities, and
    raise alarms of their own. Exit codes: 0 whether there is an alarm or not, unless
    --fail-on-alarm is given: then 3 with an alarm of support, 4 where labels alone raise one.

    Example: hetcal monitor loans.hetcal new.csv --history loans-history.hetcal --fail-on-alarm
    """
    from hetcal._exceptions import InputError

    if calibration and held_out is not None:
        raise InputError("Pass --calibration or --held-out, not both.")
    if as_json and metrics is not None:
        raise InputError("Pass --json or --metrics, not both.")
    if labels_only and expected:
        raise InputError("Pass --labels-only or --expected, not both: labels need no forecast.")
    if again and not labels_only:
        raise InputError("--again is for --labels-only. Add it, or leave --again out.")
    if html is not None:
        from hetcal.tables.writing import check_page_target

        check_page_target(html)
        if history is not None and os.path.realpath(html) == os.path.realpath(history):
            raise InputError(f"--html and --history both name {html}. Choose another name for one.")
    with bar(f"Loading {model}", quiet=quiet or as_json or metrics is not None) as say:
        from hetcal.batches.model import load_model
        from hetcal.cli._monitor_history import alone, continued, recorded
        from hetcal.cli._monitor_tables import changes_since, watch
        from hetcal.cli._reference_items import ReferenceTables, tables_in_words
        from hetcal.monitor.expected import Expectation

        loaded = load_model(model)
        settings = {"rate": rate, "alarm_rate": alarm_rate, "dependence": dependence}
        settings = {name: value for name, value in settings.items() if value is not None}
        notes: list[str] = []
        with alone(history, wait, say):
            begun = history is not None and history.is_file()
            columns = None if begun else by
            reference = ReferenceTables(loaded, calibration, held_out, columns, reading)
            if history is not None and begun:
                watcher = continued(history, loaded, calibration, held_out, settings, notes)
            else:
                watcher = _started(loaded, reference, settings)
            if html is not None:
                _ = reference.items  # what cannot be read is told before anything is counted
            if reset:
                watcher.reset()
            expectation = Expectation(watcher.calibrator_) if expected else None
            watched = watch(
                watcher,
                loaded,
                table,
                by=by,
                labels_only=labels_only,
                leave_missing=leave_missing,
                reading=reading,
                say=say,
                expectation=expectation,
            )
            notes += watched.notes
            changes = None
            if html is not None or watched.keeps_alarm:
                changes = changes_since(watcher, watched, reference, notes)
            if history is not None:
                insist = again or not labels_only
                notes += recorded(watcher, history, loaded, table, watched, insist=insist)
        performance = None
        if expectation is not None and watched.expected is not None:
            performance = expectation.performance(watched.expected, 0.95, watcher.rate)
        if html is not None:
            from hetcal.report import MonitorReport

            MonitorReport.of(
                watcher, name=model.stem, expected=performance, changes=changes, notes=notes
            ).to_html(html)
    if not watched.keeps_alarm:
        changes = None  # no more than chance
    if len(watcher.scores_) == 1:
        notes.append(_SUPPORT_ONLY.format(tables=tables_in_words(loaded)))
    if performance is not None and performance.note is not None:
        notes.append(performance.note)
    if as_json or metrics is not None:
        facts = json.loads(watcher.to_json()) | {"notes": notes}
        if changes is not None:
            facts["changes"] = json.loads(changes.to_json(orient="records"))
        if performance is not None:
            facts["expected"] = performance.to_dict()
        if metrics is None:
            print_json(json.dumps(facts, indent=2))
        else:
            print_lines(metrics_text(facts, metrics))
    else:
        _show(watcher, watched, history, notes, performance, changes, quiet=quiet)
        if html is not None and not quiet:
            tell(results(), f"Report in {html}.")
    if fail_on_alarm and watcher.alarm_ is not None:
        labels_alone = all(alarm["test"] == "labels" for alarm in watcher.alarms_)
        raise typer.Exit(EXIT_LABEL_ALARM if labels_alone else EXIT_SUPPORT_ALARM)


def _started(
    loaded: LoadedModel, reference: ReferenceTables, settings: dict[str, Any]
) -> SupportMonitor:
    from hetcal._exceptions import InputError
    from hetcal.cli._reference_items import other_items
    from hetcal.monitor import SupportMonitor
    from hetcal.monitor.watched import OtherItemsError

    if not loaded.has_support:
        raise InputError(
            f"{loaded.facts['method']} has no calibration support to watch. Fit with --method "
            "hybrid or --method swc."
        )
    kind = "oob" if reference.held_out is None else "split"
    made = SupportMonitor(loaded.calibrator, reference=kind, **settings)
    if reference.items is None:
        return made.fit()
    try:
        return made.fit(**reference.items.arguments())
    except OtherItemsError as error:
        raise other_items(reference.calibration or [], loaded) from error


def _show(
    watcher: SupportMonitor,
    watched: Watched,
    history: Path | None,
    notes: list[str],
    performance: ExpectedPerformance | None,
    changes: pd.DataFrame | None,
    *,
    quiet: bool,
) -> None:
    from hetcal.monitor.in_words import changes_sentences, expected_sentence

    console = results()
    facts = watcher.summary()
    _show_alarms(console, facts)
    if quiet:
        return
    share = facts["flag_share"]
    flagged = "" if share is None else f", {facts['flagged']:,} flagged ({100 * share:.2f} %"
    usual = "" if share is None else f"; {100 * facts['rate']:g} % while all is well)"
    alone = watched.n_labels and not watched.n_rows
    new = counted(watched.n_labels, "label") if alone else counted(watched.n_rows, "item")
    tell(console, f"{new} now, {counted(facts['seen'], 'item')} in all{flagged}{usual}")
    tell(
        console,
        f"evidence of a change 10^{facts['log10_evidence']:.1f}, alarm at "
        f"10^{facts['log10_bound']:.1f}; "
        f"compared with {facts['reference']['items']:,} items by {' and '.join(facts['scores'])}",
    )
    _show_groups(console, facts)
    for sentence in changes_sentences(changes, watched.groups):
        tell(console, sentence)
    if performance is not None:
        tell(console, expected_sentence(performance))
    for note in notes:
        tell(errors(), f"note: {note}", "yellow")
    if history is not None:
        tell(console, f"History in {history}.")


def _show_alarms(console: Any, facts: dict[str, Any]) -> None:
    """Say which alarm came first of those of support, and of those of labels."""
    from hetcal.monitor.in_words import alarm_sentences, headline

    if not facts["alarms"]:
        tell(console, headline(facts), "bold green")
    for sentence in alarm_sentences(facts):
        tell(console, sentence, "bold red")


def _show_groups(console: Any, facts: dict[str, Any]) -> None:
    rows = [row for row in facts["groups"] if row["seen"] or row["labels"]]
    rows.sort(key=lambda row: (row["kind"] != "all", -row["log10_evidence"]))
    columns = "who", "items", "flagged", "evidence", "labels", "accuracy z", "label evidence"
    table = numbers_table(*columns)
    for row in rows[:_GROUPS_SHOWN]:
        z = row["accuracy_z"]
        name = row["name"] if row["kind"] == "all" else f"{row['kind']} {row['name']}"
        table.add_row(
            cell(name) + (cell(" (alarm)", "red") if row["alarm"] else cell("")),
            f"{row['seen']:,}",
            f"{row['flagged']:,}",
            f"10^{row['log10_evidence']:.1f}",
            f"{row['labels']:,}",
            "" if z is None else f"{z:+.1f}",
            f"10^{row['log10_label_evidence']:.1f}" if row["labels"] else "",
        )
    console.print(table)
