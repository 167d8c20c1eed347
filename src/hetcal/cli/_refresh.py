"""``hetcal refresh``: a calibrator learns from newer rows, and says whether that was better."""

from __future__ import annotations

import json
import time as clock
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hetcal.cli import _options as options
from hetcal.cli import _table_input as inputs
from hetcal.cli._console import errors, print_json, results
from hetcal.cli._working import bar, file_size, tell, tell_line, warnings_as_notes
from hetcal.tables.sizes import MAX_ROWS

if TYPE_CHECKING:
    from hetcal.batches.model import LoadedModel
    from hetcal.batches.refresh import Refreshed
    from hetcal.tables.later_rows import LaterRows

_FORGETTING = "Forgetting"


def refresh(
    *,
    model: options.Model,
    table: options.Table,
    out: Annotated[
        Path | None,
        options.file(
            "MODEL.hetcal",
            "Where to write the refreshed calibrator; without it, only say what it would gain.",
            "--out",
            "-o",
        ),
    ] = None,
    calibration: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE",
            help="The table of hetcal fit, then those of refreshes: all rows are learned anew. "
            "swc, sba and sbaw need none, since their file holds them.",
            show_default=False,
        ),
    ] = None,
    half_life: Annotated[
        str | None,
        typer.Option(
            metavar="SPAN",
            help="After so many rows (with --time: so much time, '30 days') a row counts half.",
            rich_help_panel=_FORGETTING,
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            metavar="SPAN",
            help="Only so many of the newest rows stay (with --time: rows of so much time).",
            rich_help_panel=_FORGETTING,
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="When each row was seen: a date or a number. Without it, rows are taken in their "
            "order. The file remembers it.",
            rich_help_panel=_FORGETTING,
        ),
    ] = None,
    only_if_better: Annotated[
        bool,
        options.flag(
            "--only-if-better",
            "Write nothing unless the whole interval of the gain is above 0.",
            options.FILES,
        ),
    ] = False,
    drop_missing: Annotated[
        bool,
        options.flag(
            "--drop-missing", "Leave rows without a probability out, instead of stopping."
        ),
    ] = False,
    max_rows: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=20,
            help="Most rows to take from each table: the last ones.",
            rich_help_panel=options.FILES,
        ),
    ] = MAX_ROWS,
    reading: options.Reading,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Let a calibrator learn from newer labelled rows, and say whether that is better.

    Compared are the calibrator of before, which must not have seen the rows, and the refreshed one,
    which predicts each row without its label. Exit code 0, whether it is better or not.

    Example: hetcal refresh loans.hetcal march.csv --half-life 5000 -o loans-march.hetcal
    """
    from hetcal.tables.writing import check_model_target

    started = clock.perf_counter()
    if out is not None:
        check_model_target(out, overwrite=overwrite)
    with bar(f"Loading {model}", quiet=quiet or as_json) as say:
        from hetcal.batches.model import describe_file, load_model
        from hetcal.batches.refresh import refresh as learned
        from hetcal.calibration.out_of_sample_support import low_support
        from hetcal.persistence import describe, save

        loaded, described = load_model(model), describe_file(model, describe)
        metadata = loaded.metadata
        past = metadata.get("refreshes", [])
        time = time or (past[-1].get("time") if past else None)
        say(f"Reading {table}", None)
        new, *old = (
            _read(source, loaded.roles, time, max_rows, drop_missing, reading)
            for source in (table, *(calibration or ()))
        )
        digest = new.digest()
        _refuse_seen(table, digest, past)
        say(f"Learning from {new.n_items:,} rows", None)
        with warnings_as_notes() as warned:
            refreshed = learned(loaded, new, old, half_life=half_life, window=window)
            low = low_support(refreshed.calibrator)
        record = {
            "from": {"file": model.name, "made": described["made"]},
            "source": Path(table).name,
            "calibration": [Path(source).name for source in calibration or ()],
            "rows_read": new.n_read,
            "half_life": half_life,
            "window": window,
            "time": time,
            "rows": digest,
            **_measured(refreshed),
            "notes": new.notes + _one_class(new) + warned,
        }
        sources = [Path(source).name for source in (*(calibration or ()), table)]
        items = _items(loaded, refreshed, sources, [*old, new], time, max_rows)
        written = out if out is not None and _wanted(refreshed, only_if_better) else None
        if written is not None:
            save(
                refreshed.calibrator,
                written,
                forget_features=bool(loaded.facts.get("forget_features")),
                metadata=metadata
                | {"fit": loaded.record | {"low_support": low}, "refreshes": [*past, record]}
                | _sample(loaded, [*old, new])
                | items,
            )
    shown = _Shown(record, written, out, clock.perf_counter() - started)
    if as_json:
        print_json(json.dumps(shown.facts(), indent=2))
    elif quiet:
        tell(results(), shown.scores())
    else:
        shown.show(inputs.apply_command(str(written), table, reading, new="new"))


def _read(
    source: str,
    roles: Any,
    time: str | None,
    max_rows: int,
    drop_missing: bool,
    reading: options.Reading,
) -> LaterRows:
    from hetcal.tables.later_rows import read_later

    return read_later(
        source, roles, time=time, max_rows=max_rows, drop_missing=drop_missing, **vars(reading)
    )


def _items(
    loaded: LoadedModel,
    refreshed: Refreshed,
    sources: list[str],
    read: list[LaterRows],
    time: str | None,
    max_rows: int,
) -> dict[str, Any]:
    """Return what the file is to say about the tables of the items; nothing where that is lost."""
    from hetcal.batches.item_tables import ItemTable, after_refresh, item_tables

    pairs = zip(sources, read, strict=True)
    added = [ItemTable.read(source, rows, time, max_rows) for source, rows in pairs]
    before = item_tables(loaded) if len(read) == 1 else []
    if before is None:
        return {}
    tables = after_refresh([*before, *added], refreshed.kept)
    return {"items": [table.to_dict() for table in tables]}


def _sample(loaded: LoadedModel, read: list[LaterRows]) -> dict[str, Any]:
    """Return by what the rows that the model has learned from are known again."""
    import numpy as np

    from hetcal.batches.row_sample import KEY, RowSample
    from hetcal.tables.later_rows import row_hashes

    hashes = np.concatenate([row_hashes(rows.X, rows.output) for rows in read])
    stored = RowSample.stored(loaded)
    if stored is None or len(read) > 1:
        return {KEY: RowSample.of(hashes).to_dict()}
    return {KEY: stored.with_more(hashes).to_dict()}


def _refuse_seen(table: str, digest: str, past: list[dict[str, Any]]) -> None:
    from hetcal._exceptions import InputError

    for number, earlier in enumerate(past, start=1):
        if earlier.get("rows") == digest:
            raise InputError(
                f"{table} holds the rows of refresh {number} ({earlier.get('source')}), which the "
                "model has learned from already. Pass newer rows, or the file of before."
            )


def _one_class(new: LaterRows) -> list[str]:
    classes = set(new.y.tolist())
    if len(classes) > 1:
        return []
    return [f"Labels of one class only ({classes.pop()}): the gain says little about the others."]


def _measured(refreshed: Refreshed) -> dict[str, Any]:
    gain = refreshed.gain
    return {
        "items": refreshed.n_items,
        "new_items": refreshed.n_new,
        "brier_model": refreshed.brier_model,
        "brier_before": refreshed.brier_before,
        "brier_after": refreshed.brier_after,
        "gain_low": None if gain is None else gain.low,
        "gain_high": None if gain is None else gain.high,
    }


def _wanted(refreshed: Refreshed, only_if_better: bool) -> bool:
    better = refreshed.gain is not None and refreshed.gain.low > 0
    return better or not only_if_better


@dataclass(frozen=True)
class _Shown:
    """What a refresh was good for; tells about it."""

    record: dict[str, Any]
    written: Path | None
    wanted: Path | None
    seconds: float

    def facts(self) -> dict[str, Any]:
        """Return everything, for machines."""
        saved = None if self.written is None else str(self.written)
        return {"saved": saved, "seconds": round(self.seconds, 2), **self.record}

    def show(self, next_command: str) -> None:
        """Print what was found, what was written, and what to type next."""
        console, record = results(), self.record
        tell(
            console,
            f"{record['new_items']:,} new row{'s' if record['new_items'] > 1 else ''} of "
            f"{record['rows_read']:,} learned; "
            f"{record['items']:,} calibration items now",
        )
        tell(console, self.scores())
        tell(console, self._verdict(), "bold yellow" if not self._better() else "bold green")
        for note in record["notes"]:
            tell(errors(), f"note: {note}", "yellow")
        if self.written is not None:
            size = file_size(self.written.stat().st_size)
            tell(console, f"Saved {self.written} ({size}, {self.seconds:.1f} s). Next:")
            tell_line(console, f"  {next_command}", "bold")
            if not self._better():
                tell(console, "(with --only-if-better nothing is written without a gain)", "dim")
        elif self.wanted is not None:
            tell(console, f"Nothing written to {self.wanted}: --only-if-better.")
        else:
            tell(console, "Nothing written; name a file with -o to keep the refreshed calibrator.")

    def scores(self) -> str:
        """Return the Brier scores of the new rows."""
        record = self.record
        known = f"{record['brier_model']:.4f} as the model states, {record['brier_before']:.4f}"
        if record["brier_after"] is None:
            return f"Brier score of the new rows: {known} before; too few items to measure it after"
        gain = record["brier_before"] - record["brier_after"]
        return (
            f"Brier score of the new rows: {known} by {record['from']['file']}, "
            f"{record['brier_after']:.4f} refreshed, each row predicted without its label: "
            f"gain {gain:+z.4f} ({self._interval()})"
        )

    def _interval(self) -> str:
        low, high = self.record["gain_low"], self.record["gain_high"]
        if low is None:
            return "too few rows for an interval"
        return f"95 % interval {low:+z.4f} to {high:+z.4f}"

    def _better(self) -> bool:
        return self.record["gain_low"] is not None and self.record["gain_low"] > 0

    def _verdict(self) -> str:
        if self._better():
            return "Better on rows like the new ones."
        if self.record["gain_high"] is not None and self.record["gain_high"] < 0:
            return "Worse on rows like the new ones: keep the file of before."
        return "No clear gain: these rows do not show that the file of before is out of date."
