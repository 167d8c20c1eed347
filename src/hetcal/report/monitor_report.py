"""What a monitor said when, as plain data and as one HTML page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from hetcal.monitor import ExpectedPerformance, SupportMonitor
from hetcal.monitor.in_words import alarm_sentences, headline
from hetcal.monitor.summary import as_plain
from hetcal.persistence.atomic_file import write_atomic
from hetcal.report.html.history_pictures import Picture, label_pictures, support_pictures
from hetcal.report.model import versions

_ALARM_KEYS = ("time", "who", "test", "score", "labels", "since", "log10_evidence")


@dataclass(frozen=True, kw_only=True)
class MonitorReport:
    """What a :class:`hetcal.SupportMonitor` has counted and said.

    Attributes
    ----------
    title, created, headline : str
    sentences : list of str
        The first alarms.
    alarms, groups : list of dict
        All alarms since the last reset; all items, classes and sub-populations.
    history : list of dict
        The rows of :meth:`hetcal.SupportMonitor.frame`, None where nothing is known.
    seen, flag_share, rate, alarm_rate, log10_evidence, log10_bound, ...
        From :meth:`hetcal.SupportMonitor.summary`.
    expected : dict or None
        Scores to expect of the newest rows.
    changes : list of dict or None
        Which features have changed.
    """

    title: str
    created: str
    headline: str
    sentences: list[str]
    alarms: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    history: list[dict[str, Any]]
    seen: int
    n_labels: int
    flag_share: float | None
    rate: float
    alarm_rate: float
    log10_evidence: float
    log10_bound: float
    log10_label_evidence: float
    log10_label_bound: float
    reference_items: int
    scores: list[str]
    settings: dict[str, str]
    versions: dict[str, str]
    notes: list[str]
    expected: dict[str, Any] | None = None
    changes: list[dict[str, Any]] | None = None
    command: str | None = None

    @classmethod
    def of(
        cls,
        monitor: SupportMonitor,
        *,
        name: str | None = None,
        expected: ExpectedPerformance | None = None,
        changes: pd.DataFrame | None = None,
        notes: Sequence[str] = (),
        command: str | None = None,
    ) -> Self:
        """Return the report of a monitor.

        Parameters
        ----------
        monitor : SupportMonitor
        name : str, optional
            What is watched, for the title.
        expected : ExpectedPerformance, optional
            From :meth:`hetcal.SupportMonitor.expected_performance`.
        changes : pandas.DataFrame, optional
            From :meth:`hetcal.SupportMonitor.what_changed`.
        notes : sequence of str, optional
        command : str, optional
            The command that made it.
        """
        with monitor.lock:  # numbers and history of the same moment
            facts, history = monitor.summary(), monitor.frame()
        history["when"] = history["when"].map(lambda when: when.isoformat(timespec="seconds"))
        return cls(
            title=f"Monitor report{f': {name}' if name else ''}",
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            headline=headline(facts),
            sentences=alarm_sentences(facts),
            alarms=[{key: alarm.get(key) for key in _ALARM_KEYS} for alarm in facts["alarms"]],
            groups=[row for row in facts["groups"] if row["seen"] or row["labels"]],
            history=_records(history),
            seen=facts["seen"],
            n_labels=facts["labels"]["n"],
            log10_label_evidence=facts["labels"]["log10_evidence"],
            log10_label_bound=facts["labels"]["log10_bound"],
            reference_items=facts["reference"]["items"],
            settings=_settings(monitor),
            versions=versions(),
            notes=[*facts["notes"], *notes],
            expected=None if expected is None else expected.to_dict(),
            changes=None if changes is None else _records(changes),
            command=command,
            **{key: facts[key] for key in _KEPT},
        )

    @property
    def n_updates(self) -> int:
        """How many updates the history holds."""
        return len(self.history)

    @property
    def has_labels(self) -> bool:
        """Whether there is something to show of labels."""
        return any(row["labels"] for row in self.history)

    def support_pictures(self) -> list[Picture]:
        """Return support over time."""
        return support_pictures(self.history, self.rate, self.log10_bound)

    def label_pictures(self) -> list[Picture]:
        """Return labels over time."""
        return label_pictures(self.history, self.log10_label_bound)

    def to_dict(self) -> dict[str, Any]:
        """Return dictionaries, lists, numbers and texts."""
        return json.loads(json.dumps(asdict(self), default=as_plain))

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one self-contained HTML page, and write it to ``path`` where one is given."""
        from hetcal.report.html.page import monitor_page

        text = monitor_page(self)
        if path is not None:
            write_atomic(path, text)
        return text


_KEPT = ("flag_share", "rate", "alarm_rate", "log10_evidence", "log10_bound", "scores")


def _settings(monitor: SupportMonitor) -> dict[str, str]:
    names = ("reference", "rate", "fdr", "alarm_rate", "window", "horizon", "dependence")
    told = {name: str(getattr(monitor, name)) for name in names}
    return {"calibrator": type(monitor.calibrator_).__name__} | told


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows that JSON can hold: None where nothing is known."""
    rows = table.to_dict("records")
    return [{str(name): _or_none(value) for name, value in row.items()} for row in rows]


def _or_none(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, int | str) else str(value)
