"""What a monitor has to say: history, groups, a summary."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._threads import lock_of, synchronized
from hetcal.monitor.reference import Reference, Scorer
from hetcal.monitor.stream import Stream

HISTORY = (
    "when",
    "seen",
    "items",
    "flagged",
    "discoveries",
    "median_support",
    "log10_evidence",
    "log10_evidence_peak",
    "window",
    "alarms",
    "labels",
    "accuracy_z",
    "brier_z",
)
ALL = "all items"
_COUNTED = ("stream_", "class_streams_", "named_streams_", "alarms_", "_origins")


class MonitorReports:
    """The part of a monitor that people and machines read."""

    rate: float
    alarm_rate: float
    max_history: int
    reference: str
    classes_: NDArray
    scorer_: Scorer
    reference_: Reference
    stream_: Stream
    class_streams_: dict[str, Stream]
    named_streams_: dict[str, Stream]
    alarms_: list[dict[str, Any]]
    history_: NDArray[np.float64]
    #: A shard has so small a part of the alarm rate; see ``SupportMonitor.shard``.
    _alarm_share: float = 1.0
    #: See :mod:`hetcal.monitor.merging`.
    _origins: list[str]

    @property
    def lock(self) -> Any:
        """The lock: ``with monitor.lock:`` makes several calls one step."""
        return lock_of(self)

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            state = dict(vars(self))
            counted = {name: state[name] for name in _COUNTED if name in state}
            # Others may go on counting while a copy or a pickle is made of this.
            return state | copy.deepcopy(counted)

    @synchronized
    def frame(self) -> pd.DataFrame:
        """Return the history, one row per update.

        Columns: ``when`` (UTC), ``seen`` (items so far), ``items``, ``flagged``, ``discoveries``,
        ``median_support``, ``log10_evidence`` after the batch and its peak within, ``window`` (the
        largest windowed statistic as a share of its bound), ``alarms`` (new ones), ``labels`` so
        far, ``accuracy_z`` and ``brier_z`` (what happened against what was expected, beyond what is
        usual for the calibrator, in standard deviations).
        """
        self._ensure_fitted()
        table = pd.DataFrame(self.history_, columns=list(HISTORY))
        table["when"] = pd.to_datetime(table["when"], unit="s", utc=True)
        whole = ["seen", "items", "flagged", "discoveries", "alarms", "labels"]
        return table.astype(dict.fromkeys(whole, np.int64))

    @synchronized
    def groups(self) -> pd.DataFrame:
        """Return where each class and sub-population stands.

        Columns: ``kind`` (all, class, by), ``name``, ``reference`` (items), ``seen``, ``flagged``,
        ``log10_evidence``, ``labels``, ``accuracy_z``, ``brier_z``, ``alarm``.
        """
        self._ensure_fitted()
        raised = {alarm["who"] for alarm in self.alarms_}
        rows = [("all", ALL, self.stream_, ALL)]
        rows += [("class", name, s, f"class {name}") for name, s in self.class_streams_.items()]
        rows += [("by", name, s, f"by {name}") for name, s in self.named_streams_.items()]
        return pd.DataFrame(
            [
                {
                    "kind": kind,
                    "name": name,
                    "reference": int(stream.base[0].sum()),
                    "seen": stream.n_seen,
                    "flagged": stream.n_flagged,
                    "log10_evidence": stream.log_evidence / np.log(10),
                    "labels": stream.labels.n,
                    "accuracy_z": stream.label_z()[0],
                    "brier_z": stream.label_z()[1],
                    "alarm": who in raised,
                }
                for kind, name, stream, who in rows
            ]
        )

    @synchronized
    def summary(self) -> dict[str, Any]:
        """Return where everything stands, as numbers and text that JSON can hold."""
        self._ensure_fitted()
        groups = self.groups().replace({np.nan: None})
        seen = self.stream_.n_seen
        notes = []
        if len(self.scores_) == 1:
            notes.append(
                "Support alone cannot see items far outside the data; give SupportMonitor.fit the "
                "calibration items, so that their distance is watched too."
            )
        return {
            "seen": seen,
            "flagged": self.stream_.n_flagged,
            "flag_share": self.stream_.n_flagged / seen if seen else None,
            "rate": self.rate,
            "alarm_rate": self.alarm_rate,
            "log10_evidence": self.stream_.log_evidence / np.log(10),
            "log10_bound": self._log_bound() / np.log(10),
            "alarm": self.alarm_,
            "alarms": list(self.alarms_),
            "reference": {"kind": self.reference, "items": int(self.reference_.scores.shape[1])},
            "scores": list(self.scores_),
            "groups": groups.to_dict("records"),
            "labels": {"n": self.stream_.labels.n}
            | self.stream_.labels.summary(self.stream_.usual, self.classes_.tolist()),
            "notes": notes,
        }

    def to_json(self) -> str:
        """Return :meth:`summary` as JSON."""
        return json.dumps(self.summary(), indent=2, default=_plain)

    @property
    def alarm_(self) -> dict[str, Any] | None:
        """The first alarm since the last reset."""
        alarms = getattr(self, "alarms_", None)
        return alarms[0] if alarms else None

    @property
    def n_seen_(self) -> int:
        """Items since the beginning."""
        return self.stream_.n_seen

    @property
    def scores_(self) -> list[str]:
        """The names of the scores that are watched."""
        return ["support"] if self.scorer_.distance is None else ["support", "distance"]

    def _remember(self, items: pd.DataFrame, peak: float, sums: float, n_alarms: int) -> None:
        labels, ten = self.stream_.labels, np.log(10)
        row = [
            time.time(),
            self.n_seen_,
            len(items),
            items["flag"].sum(),
            items["discovery"].sum(),
            items["support"].median() if len(items) else np.nan,
            self.stream_.log_evidence / ten,
            peak / ten,
            sums,
            n_alarms,
            labels.n,
            *self.stream_.label_z()[:2],
        ]
        self.history_ = np.vstack([self.history_, row])[-self.max_history :]

    def _ensure_fitted(self) -> Any:
        raise NotImplementedError

    def _log_bound(self, share: float = 1.0) -> float:
        """Return the log evidence of an alarm; half of the rate belongs to the windowed test."""
        return float(np.log(2 * share / (self.alarm_rate * self._alarm_share)))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
