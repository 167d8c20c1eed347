"""``hetcal inspect``: what is in a calibrator's file, and how it was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetcal._exceptions import FileFormatError
from hetcal.cli import _options as options
from hetcal.cli._console import cell, print_json, print_table, results
from hetcal.cli._working import bar, file_size

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN = 8
_NAME_WIDTH = 30
_TOLD = ("fit", "table", "refreshes", "items", "learned_rows")
_COUNTED = {"counted_rows": "items of", "counted_labels": "labels of"}


def inspect(
    model: options.Model,
    as_json: options.Json = False,
) -> None:
    """Show what is in a calibrator's file and how it was made. Nothing in it is run.

    Example: hetcal inspect loans.hetcal
    """
    with bar(f"Reading {model}", quiet=as_json):
        from hetcal.batches.model import describe_file
        from hetcal.persistence import describe

        facts = describe_file(model, describe)
    if as_json:
        print_json(json.dumps({"file": str(model), **facts}, indent=2))
        return
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", max_width=_NAME_WIDTH, overflow="fold")
    table.add_column(overflow="fold")
    for name, value in _shown(model, facts):
        table.add_row(cell(name), cell(value))
    print_table(results(), table)


def _shown(model: Path, facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines; the description in a file may be anything that JSON can hold."""
    try:
        return [(str(name), str(value)) for name, value in _lines(model, facts)]
    except (KeyError, IndexError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(
            f"{model.name}: the description is not what hetcal writes ({type(error).__name__}: "
            f"{error}). See all of it with --json, and do not trust the file."
        ) from error


def _lines(model: Path, facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    made, calibrator, metadata = facts["made"], facts["calibrator"], facts["metadata"]
    record, roles = metadata.get("fit", {}), metadata.get("table", {})
    yield (
        "file",
        (f"{model} ({file_size(facts['file_bytes'])}, format version {facts['format_version']})"),
    )
    versions = ", ".join(f"{name} {made[name]}" for name in made if name != "date")
    yield "made", f"{made['date']} with {versions}" if "date" in made else f"with {versions}"
    yield "calibrator", _calibrator(calibrator, record)
    settings = {k: v for k, v in calibrator["settings"].items() if k != "classes"}
    yield "settings", ", ".join(f"{k}={v!r}" for k, v in settings.items()) or "none"
    yield "classes", _listed([str(name) for name in calibrator["classes"]])
    if record:
        yield "fitted on", _fitted_on(record)
        yield "Brier score", _scores(record)
    refreshes = metadata.get("refreshes", [])
    dates = [step["from"]["made"].get("date", "") for step in refreshes] + [made.get("date", "")]
    if refreshes and dates[0]:
        yield "fitted", dates[0]
    for number, step in enumerate(refreshes, start=1):
        yield f"refresh {number}", _refreshed(step, dates[number])
    if roles:
        kind = "logits" if roles["output_kind"] == "logits" else "probabilities"
        percent = " in percent" if roles.get("percent") else ""
        if roles.get("predicted"):
            yield "predicted", roles["predicted"]
            kind = "confidence"
        yield kind, _listed(roles["output"]) + percent
        if roles.get("being_right"):
            yield "calibrated", f"the probability that {roles['predicted']!r} is right"
        yield "label", roles["label"]
        groups = roles.get("groups") or []
        if groups:
            yield "groups", groups if isinstance(groups, str) else ", ".join(groups)
        if roles.get("weight"):
            yield "weight", roles["weight"]
    yield "features", _features(calibrator)
    if calibrator.get("forget_features"):
        yield "forgotten", "the features of the calibration items; evidence is not available"
    for note in record.get("notes", []):
        yield "note", note
    own = {name: value for name, value in metadata.items() if name not in _TOLD}
    for name, words in _COUNTED.items():  # digests of a monitor's latest tables
        if isinstance(own.get(name), list):
            n = len(own.pop(name))
            yield "counted", f"{words} {n or 'no'} table{'s' if n > 1 else ''}"
    for name, value in own.items():
        yield str(name), value if isinstance(value, str) else json.dumps(value)


def _calibrator(calibrator: dict[str, Any], record: dict[str, Any]) -> str:
    method = record.get("method")
    name = str(calibrator["kind"])
    inner = calibrator.get("method")
    if inner and inner != name:
        name = f"{name} around {inner}"
    return f"{method} ({name})" if method else name


def _fitted_on(record: dict[str, Any]) -> str:
    text = f"{record['items']:,} items of {record['source']}"
    if record["rows_read"] != record["items"]:
        text += f" ({record['rows_read']:,} rows read)"
    return text


def _refreshed(step: dict[str, Any], date: str) -> str:
    """Say when, from which rows, how old ones were forgotten, and whether it was better."""
    rows = f"{step['new_items']:,} row{'s' if step['new_items'] > 1 else ''}"
    text = f"{date} by {rows} of {step['source']}, {step['items']:,} items then"
    by_time = f" of {step['time']}" if step.get("time") else " rows"
    for name in ("half_life", "window"):
        if step.get(name):
            text += f", {name.replace('_', '-')} {step[name]}{by_time}"
    if step.get("brier_after") is None:
        return text
    text += (
        f": Brier score of these {step['brier_before']:.4f} before, {step['brier_after']:.4f} after"
    )
    if step["gain_low"] is None:
        return f"{text} (too few rows for an interval)"
    return f"{text} (gain {step['gain_low']:+z.4f} to {step['gain_high']:+z.4f})"


def _scores(record: dict[str, Any]) -> str:
    after = record.get("brier_after")
    text = f"{record['brier_before']:.4f} before"
    return text if after is None else f"{text}, {after:.4f} after, on items not seen"


def _features(calibrator: dict[str, Any]) -> str:
    features = calibrator.get("features")
    if not features:
        return "not used"
    shown = [
        f"{feature['name']} ({feature['levels']} levels)"
        if "levels" in feature
        else str(feature["name"])
        for feature in features
    ]
    return f"{len(features)}: {_listed(shown, 30)}"


def _listed(values: list[str], most: int = _SHOWN) -> str:
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(values[:most]) + more
