"""``hetcal monitor``: whether a calibrator's items still resemble what comes in."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hetcal.cli import _options as options
from hetcal.cli._console import results
from hetcal.cli._working import bar, tell

if TYPE_CHECKING:
    from hetcal.batches.model import LoadedModel
    from hetcal.monitor import SupportMonitor

EXIT_ALARM = 3
_BATCH_ROWS = 50_000
_TESTS, _REFERENCE = "Tests", "What is usual"
_GROUPS_SHOWN = 12


def monitor(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL.hetcal", help="From hetcal fit.", show_default=False),
    ],
    table: options.Table,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.hetcal",
            help="What was counted so far: made by the first run, continued by the next ones.",
            rich_help_panel="Files",
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="The table of hetcal fit. With it, items far outside the data are seen too. "
            "Needed once; FILE remembers it.",
            rich_help_panel=_REFERENCE,
        ),
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Items that hetcal fit has not seen, to compare with instead.",
            rich_help_panel=_REFERENCE,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Sub-populations to watch on their own.",
            rich_help_panel="Columns of the table",
        ),
    ] = None,
    rate: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Share of items flagged while all is well.",
            rich_help_panel=_TESTS,
        ),
    ] = 0.01,
    alarm_rate: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Probability of a false alarm in 10000 items.",
            rich_help_panel=_TESTS,
        ),
    ] = 0.01,
    fail_on_alarm: Annotated[
        bool,
        typer.Option("--fail-on-alarm", help="End with exit code 3 while there is an alarm."),
    ] = False,
    reset: Annotated[
        bool,
        typer.Option("--reset", help="Start the tests anew first; counts and history stay."),
    ] = False,
    leave_missing: Annotated[
        bool,
        typer.Option(
            "--leave-missing", help="Leave rows without a probability out, instead of stopping."
        ),
    ] = False,
    wait: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="How long to wait for another process that is writing FILE.",
            rich_help_panel="Files",
        ),
    ] = 600,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Watch calibration support: flag items, and raise an alarm when the stream has changed.

    Labels, where TABLE has the column, are compared with what the calibrator expects. Exit codes:
    0 whether there is an alarm or not, unless --fail-on-alarm is given: then 3 with an alarm.

    Example: hetcal monitor loans.hetcal new.csv --history loans-history.hetcal --fail-on-alarm
    """
    with bar(f"Loading {model}", quiet=quiet or as_json) as say:
        from hetcal.batches.model import load_model

        loaded = load_model(model)
        reading = {"format": None if format is None else str(format), "encoding": encoding}
        with _alone(history, wait, say):
            if history is not None and history.is_file():
                watcher = _continued(history, loaded, calibration or held_out)
            else:
                settings = {"rate": rate, "alarm_rate": alarm_rate}
                watcher = _started(loaded, calibration, held_out, by, settings, reading)
            if reset:
                watcher.reset()
            before = watcher.stream_.n_seen
            _stream(watcher, loaded, table, by, leave_missing, reading, say)
            if history is not None:
                from hetcal.io import save

                save(watcher, history, metadata={"table": loaded.roles.to_dict()})
    if as_json:
        typer.echo(watcher.to_json())
    else:
        _show(watcher, watcher.stream_.n_seen - before, history, quiet=quiet)
    if fail_on_alarm and watcher.alarm_ is not None:
        raise typer.Exit(EXIT_ALARM)


def _alone(history: Path | None, wait: float, say: Any) -> contextlib.AbstractContextManager[None]:
    """Keep other processes from continuing the same history: what one adds the other would lose."""
    if history is None:
        return contextlib.nullcontext()
    from hetcal.io.locks import locked
    from hetcal.io.writing import check_target

    check_target(history, overwrite=True)
    return locked(
        history, wait=wait, waiting=lambda: say(f"Another process is writing {history}", None)
    )


def _started(
    loaded: LoadedModel,
    calibration: str | None,
    held_out: str | None,
    by: str | None,
    settings: dict[str, Any],
    reading: dict[str, Any],
) -> SupportMonitor:
    from hetcal._exceptions import InputError
    from hetcal.monitor import SupportMonitor

    if calibration is not None and held_out is not None:
        raise InputError("Pass --calibration or --held-out, not both.")
    if not loaded.has_support:
        raise InputError(
            f"{loaded.facts['method']} has no calibration support to watch. Fit with --method "
            "hybrid or --method swc."
        )
    kind = "oob" if held_out is None else "split"
    made = SupportMonitor(loaded.calibrator, reference=kind, **settings)
    source = calibration or held_out
    if source is None:
        return made.fit()
    X, output, names = _reference_items(source, loaded, by, reading, labelled=held_out is None)
    return made.fit(X, **output, by=names)


def _continued(history: Path, loaded: LoadedModel, given: str | None) -> SupportMonitor:
    import numpy as np

    from hetcal._exceptions import InputError
    from hetcal.io import load
    from hetcal.monitor import SupportMonitor

    watcher = load(history)
    if not isinstance(watcher, SupportMonitor):
        raise InputError(f"{history} holds no history but a {type(watcher).__name__}.")
    if given is not None:
        raise InputError(
            f"{history} knows what is usual already. Leave --calibration and --held-out out, or "
            "begin another file."
        )
    mine = getattr(loaded.calibrator, "calibrator_", loaded.calibrator)
    same = type(mine) is type(watcher.calibrator_) and np.array_equal(
        mine.honest_support(), watcher.calibrator_.honest_support()
    )
    if not same:
        raise InputError(f"{history} was begun with another calibrator. Begin another file.")
    return watcher


def _reference_items(
    source: str, loaded: LoadedModel, by: str | None, reading: dict[str, Any], *, labelled: bool
) -> tuple[Any, dict[str, Any], Any]:
    import numpy as np

    from hetcal.io.tables import read_table

    frame = read_table(source, **reading)
    items = loaded.roles.items(frame, leave_missing=True)
    rows = items.known
    if labelled:  # as hetcal fit has read them
        rows = rows & np.array([text is not None for text in _texts(frame, loaded.roles.label)])
    X = None if items.X is None else items.X[rows]
    names = None if by is None else np.array(_texts(frame, by), dtype=object)[rows]
    return X, {items.kind: items.output[rows]}, names


def _stream(
    watcher: SupportMonitor,
    loaded: LoadedModel,
    table: str,
    by: str | None,
    leave_missing: bool,
    reading: dict[str, Any],
    say: Any,
) -> None:
    import numpy as np

    from hetcal.io.tables import open_table
    from hetcal.io.text import as_text

    roles, n_read = loaded.roles, 0
    classes = {as_text(label): label for label in roles.classes}
    with open_table(table, **reading) as source, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for batch in source.batches(_BATCH_ROWS):
            items = roles.items(batch, first_row=n_read + 1, leave_missing=leave_missing)
            rows = items.known
            n_read += len(rows)
            X = None if items.X is None else items.X[rows]
            known: dict[str, Any] = {}
            if roles.label in source.names:
                labels = [classes.get(text or "") for text in _texts(batch, roles.label)]
                known["y"] = np.array(labels, dtype=object)[rows]
            if by is not None:
                known["by"] = np.array(_texts(batch, by), dtype=object)[rows]
            if rows.any():
                watcher.update(X, **{items.kind: items.output[rows]}, **known)
            say(f"Watching {table}: {n_read:,} rows", source.done())


def _texts(table: Any, column: str) -> list[str | None]:
    """Return a column as text; None where it is blank."""
    from hetcal._exceptions import InputError
    from hetcal._validation.containers import as_frame
    from hetcal.io.kinds import as_labels
    from hetcal.io.selection import listed

    frame: Any = as_frame(table)
    if column not in frame.columns:
        raise InputError(
            f"The table lacks the column {column!r}. It has {listed(list(frame.columns))}."
        )
    return as_labels(frame[column])


def _show(watcher: SupportMonitor, n_new: int, history: Path | None, *, quiet: bool) -> None:
    console = results()
    facts = watcher.summary()
    alarm = facts["alarm"]
    if alarm is None:
        tell(console, "No alarm: nothing says that the items have changed.", "bold green")
    else:
        tell(
            console,
            f"ALARM at item {alarm['time']:,}: {alarm['who']}, by {alarm['score']} "
            f"({alarm['test']}). The calibration set no longer covers what comes in.",
            "bold red",
        )
    if quiet:
        return
    share = facts["flag_share"]
    flagged = "" if share is None else f", {facts['flagged']:,} flagged ({share:.2%}"
    usual = "" if share is None else f"; {facts['rate']:.2%} while all is well)"
    tell(console, f"{n_new:,} items now, {facts['seen']:,} in all{flagged}{usual}")
    tell(
        console,
        f"evidence 10^{facts['log10_evidence']:.1f}, alarm at 10^{facts['log10_bound']:.1f}; "
        f"compared with {facts['reference']['items']:,} items by {' and '.join(facts['scores'])}",
    )
    _show_groups(console, facts)
    if len(facts["scores"]) == 1:
        tell(
            console,
            "note: support alone cannot see items far outside the data. Begin with --calibration "
            "TABLE, the table of hetcal fit, and their distance is watched too.",
            "yellow",
        )
    if history is not None:
        tell(console, f"History in {history}.")


def _show_groups(console: Any, facts: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    rows = [row for row in facts["groups"] if row["seen"]]
    rows.sort(key=lambda row: (row["kind"] != "all", -row["log10_evidence"]))
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("who")
    for title in ("items", "flagged", "evidence", "labels", "accuracy z"):
        table.add_column(title, justify="right")
    for row in rows[:_GROUPS_SHOWN]:
        z = row["accuracy_z"]
        name = row["name"] if row["kind"] == "all" else f"{row['kind']} {row['name']}"
        table.add_row(
            escape(name) + (" [red](alarm)[/]" if row["alarm"] else ""),
            f"{row['seen']:,}",
            f"{row['flagged']:,}",
            f"10^{row['log10_evidence']:.1f}",
            f"{row['labels']:,}",
            "" if z is None else f"{z:+.1f}",
        )
    console.print(table)
