"""What a monitor has counted, as tables, numbers and text."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from hetcal._threads import synchronized
from hetcal.monitor.fitted import FittedMonitor
from hetcal.monitor.summary import as_plain, groups_table, summary


class TellingMonitor(FittedMonitor):
    """A monitor that tells what it has counted."""

    @synchronized
    def frame(self) -> pd.DataFrame:
        """Return the history, one row per update.

        Columns: ``when`` (UTC), ``seen`` (items so far), ``items``, ``flagged``, ``discoveries``,
        ``median_support``, ``log10_evidence`` after the batch and its peak within, ``window`` (the
        largest windowed statistic as a share of its bound), ``alarms`` (new ones), ``labels`` so
        far, ``accuracy_z`` and ``brier_z`` (observed minus expected, beyond what is usual for the
        calibrator, in standard deviations), ``log10_label_evidence``; and, of the labels that came
        since the row before, ``accuracy``, ``brier``, ``expected_accuracy`` and
        ``expected_brier``: by the calibrated probabilities and what is usual for the calibrator.
        """
        self._watched()
        return self.counts_.history.frame()

    @synchronized
    def groups(self) -> pd.DataFrame:
        """Return one row for all items, each class and each sub-population.

        Columns: ``kind`` (all, class, by), ``name``, ``reference`` (items), ``seen``, ``flagged``,
        ``log10_evidence``, ``labels``, ``accuracy_z``, ``brier_z``, ``log10_label_evidence``,
        ``alarm``.
        """
        self._watched()
        return groups_table(self.counts_)

    @synchronized
    def summary(self) -> dict[str, Any]:
        """Return everything that was counted, as numbers and text that JSON can hold."""
        self._watched()
        return summary(
            self.counts_,
            self._alarm_rule(),
            rate=self.rate,
            alarm_rate=self.alarm_rate,
            reference={"kind": self.reference, "items": int(self.reference_.scores.shape[1])},
        )

    def to_json(self) -> str:
        """Return :meth:`summary` as JSON."""
        return json.dumps(self.summary(), indent=2, default=as_plain)

    @property
    def alarm_(self) -> dict[str, Any] | None:
        """The first alarm since the last reset."""
        return self.counts_.alarms.first if hasattr(self, "counts_") else None
