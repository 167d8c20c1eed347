"""What a monitor says, in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from hetcal._validation.text import short

if TYPE_CHECKING:
    import pandas as pd

    from hetcal.monitor.expected import ExpectedPerformance

#: Features that are named, and the distance from which they are; deviations of a class's share.
_FEATURES_NAMED, _LEAST_DISTANCE, _LEAST_Z = 3, 0.1, 3.0
_SCORES = {"accuracy": "accuracy", "brier": "Brier score", "log_loss": "log loss"}


def expected_sentence(performance: ExpectedPerformance) -> str:
    """Return what to expect of rows without labels."""
    scores = [
        f"{word} {{:.3f}} ({{:.3f}} to {{:.3f}})".format(*getattr(performance, name))
        for name, word in _SCORES.items()
    ]
    return (
        f"Expected of these rows, if labels depend on them as they used to: {', '.join(scores)} "
        "(95 % intervals)"
    )


def changes_sentences(changes: pd.DataFrame | None, groups: Sequence[dict[str, Any]]) -> list[str]:
    """Return which features and which balance of predicted classes have changed most.

    ``changes`` is what :meth:`SupportMonitor.what_changed` returns (None: not known), ``groups``
    the rows of :meth:`SupportMonitor.groups`.
    """
    if changes is None:
        return []
    moved = changes[changes["distance"] >= _LEAST_DISTANCE].head(_FEATURES_NAMED)
    features = [_feature(row) for row in moved.to_dict("records")]
    said = [f"What has changed most: {'; '.join(features)}."] if features else []
    return said + _class_balance([row for row in groups if row["kind"] == "class"])


def _feature(row: Mapping[Any, Any]) -> str:
    before, now = (
        short(float(v)) if isinstance(v, Real) else str(v) for v in (row["before"], row["now"])
    )
    kind = "median" if isinstance(row["now"], Real) else "mostly"
    text = f"{row['feature']} ({kind} {before} before, {now} now"
    if row["unseen"] > 0:
        text += f"; {row['unseen']:.0%} of the rows hold values never seen before"
    if row["recovered"] > 0:
        text += f"; with usual values {row['recovered']:.0%} of the flagged rows are not flagged"
    return f"{text})"


def _class_balance(rows: list[dict[str, Any]]) -> list[str]:
    """Return the class whose share of the predictions has changed most, where that is no chance."""
    n, m = (sum(row[name] for row in rows) for name in ("reference", "seen"))
    if not (n and m):
        return []
    shifts = []
    for row in rows:
        share, now = row["reference"] / n, row["seen"] / m
        middle = (row["reference"] + row["seen"]) / (n + m)
        deviation = math.sqrt(middle * (1 - middle) * (1 / n + 1 / m))
        shifts.append((abs(now - share) / max(deviation, 1e-12), row["name"], share, now))
    z, name, share, now = max(shifts)
    if z < _LEAST_Z:
        return []
    return [f"{name} is the most probable class of {now:.0%} of the rows, {share:.0%} before."]


def headline(facts: dict[str, Any]) -> str:
    """Return whether there is an alarm, from :meth:`SupportMonitor.summary`."""
    if facts["alarms"]:
        kinds = {"labels" if a["test"] == "labels" else "support" for a in facts["alarms"]}
        return f"Alarm of {' and '.join(sorted(kinds, reverse=True))}"
    what = "items or labels have changed" if facts["labels"]["n"] else "items have changed"
    return f"No alarm: nothing says that the {what}."


def alarm_sentences(facts: dict[str, Any]) -> list[str]:
    """Return which alarm came first of those of support, and of those of labels."""
    of_labels = [alarm for alarm in facts["alarms"] if alarm["test"] == "labels"]
    of_support = [alarm for alarm in facts["alarms"] if alarm["test"] != "labels"]
    return [_of_support(a) for a in of_support[:1]] + [_of_labels(a) for a in of_labels[:1]]


def _of_support(alarm: dict[str, Any]) -> str:
    return (
        f"ALARM at item {alarm['time']:,}: {alarm['who']}, by {alarm['score']} "
        f"({alarm['test']}). The calibration set no longer covers what comes in."
    )


def _of_labels(alarm: dict[str, Any]) -> str:
    since = f", likely since label {alarm['since']:,}" if "since" in alarm else ""
    return (
        f"ALARM at label {alarm['labels']:,}{since}: {alarm['who']}, {alarm['score']} "
        f"(evidence 10^{alarm['log10_evidence']:.1f}). The probabilities are wrong by more than on "
        "the calibration items."
    )
