"""What a monitor says, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hetcal.monitor.expected import ExpectedPerformance

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
