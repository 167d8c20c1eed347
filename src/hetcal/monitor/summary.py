"""The state of a monitor as tables and JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hetcal.monitor.alarms import AlarmRule
from hetcal.monitor.counts import Counts

_SUPPORT_ONLY = (
    "Support alone cannot see items far outside the data; give SupportMonitor.fit the calibration "
    "items, so that their distance is watched too."
)


def groups_table(counts: Counts) -> pd.DataFrame:
    """Return one row per group; see :meth:`SupportMonitor.groups`."""
    return pd.DataFrame(
        [
            {
                "kind": group[0],
                "name": group[1],
                "reference": int(stream.base[0].sum()),
                "seen": stream.n_seen,
                "flagged": stream.n_flagged,
                "log10_evidence": stream.martingale.log_value / np.log(10),
                "labels": stream.labels.n,
                "accuracy_z": stream.label_z()[0],
                "brier_z": stream.label_z()[1],
                "log10_label_evidence": stream.label_evidence.log_value / np.log(10),
                "alarm": counts.alarms.have_named(group),
            }
            for group, stream in counts.streams.sorted()
        ]
    )


def summary(
    counts: Counts,
    rule: AlarmRule,
    *,
    rate: float,
    alarm_rate: float,
    reference: dict[str, Any],
) -> dict[str, Any]:
    """Return what a monitor has counted, as numbers and text that JSON can hold."""
    stream = counts.streams.all
    seen, labels = stream.n_seen, stream.labels
    return {
        "seen": seen,
        "flagged": stream.n_flagged,
        "flag_share": stream.n_flagged / seen if seen else None,
        "rate": rate,
        "alarm_rate": alarm_rate,
        "log10_evidence": stream.martingale.log_value / np.log(10),
        "log10_bound": rule.log_bound() / np.log(10),
        "alarm": counts.alarms.first,
        "alarms": list(counts.alarms.raised),
        "reference": reference,
        "scores": rule.scores,
        "groups": groups_table(counts).replace({np.nan: None}).to_dict("records"),
        "labels": {
            "n": labels.n,
            "log10_evidence": stream.label_evidence.log_value / np.log(10),
            "log10_bound": rule.log_label_bound() / np.log(10),
        }
        | labels.summary(stream.usual, rule.classes),
        "notes": [_SUPPORT_ONLY] if len(rule.scores) == 1 else [],
    }


def as_plain(value: Any) -> Any:
    """Return what :func:`json.dumps` takes for a value that it does not know."""
    return value.item() if isinstance(value, np.generic) else str(value)
