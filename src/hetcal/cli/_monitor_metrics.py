"""What ``hetcal monitor`` has counted, in the formats that other programs collect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from hetcal._printable import printable, printable_json

#: Name of a metric, the part of a group's row that it shows, its type and what it means.
_BY_GROUP = (
    ("hetcal_items_total", "seen", "counter", "Items since the beginning."),
    ("hetcal_flagged_items_total", "flagged", "counter", "Items that are hardly covered."),
    ("hetcal_labels_total", "labels", "counter", "Labels since the beginning."),
    ("hetcal_support_evidence_log10", "log10_evidence", "gauge", "Evidence that items changed."),
    (
        "hetcal_label_evidence_log10",
        "log10_label_evidence",
        "gauge",
        "Evidence that probabilities are wrong.",
    ),
    ("hetcal_alarm", "alarm", "gauge", "1 while there is an alarm."),
)
_EXPECTED = ("accuracy", "brier", "log_loss")


class MetricsFormat(StrEnum):
    """How other programs read what was counted."""

    JSON_LINES = "json-lines"
    PROMETHEUS = "prometheus"


def metrics_text(facts: dict[str, Any], wanted: MetricsFormat) -> str:
    """Return the facts of ``SupportMonitor.summary``, and ``expected``, as lines."""
    make = prometheus if wanted is MetricsFormat.PROMETHEUS else json_lines
    return "\n".join(make(facts))


def json_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Return one line for the whole, one for each group and one for each alarm."""
    inner = ("groups", "alarms", "alarm")
    rows = [{"record": "summary"} | {k: v for k, v in facts.items() if k not in inner}]
    rows += [{"record": "group"} | row for row in facts["groups"]]
    rows += [{"record": "alarm"} | alarm for alarm in facts["alarms"]]
    return (printable_json(json.dumps(row)) for row in rows)


def prometheus(facts: dict[str, Any]) -> Iterator[str]:
    """Return the lines of Prometheus' text format, for its textfile collector."""
    for name, part, kind, about in _BY_GROUP:
        yield from _head(name, kind, about)
        for row in facts["groups"]:
            labels = _labels(kind=row["kind"], name=row["name"])
            yield f"{name}{{{labels}}} {float(row[part])!r}"
    if "expected" in facts:
        name = "hetcal_expected_score"
        yield from _head(name, "gauge", "Score to expect of the latest rows, without labels.")
        for score in _EXPECTED:
            for bound, value in facts["expected"][score].items():
                yield f"{name}{{{_labels(score=score, bound=bound)}}} {float(value)!r}"


def _head(name: str, kind: str, about: str) -> tuple[str, str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def _labels(**values: str) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in values.items())


def _escaped(value: str) -> str:
    shown = printable(value, keep="\n").replace("\\", "\\\\")
    return shown.replace('"', '\\"').replace("\n", "\\n")
