"""Everything that a monitor has counted, as one immutable value."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._stored import restored
from hetcal._typing import Matrix, Rows
from hetcal.monitor.alarms import AlarmRule, Alarms
from hetcal.monitor.groups import ALL, Members
from hetcal.monitor.history import History, with_columns_of_now
from hetcal.monitor.label_testing import run_label_tests
from hetcal.monitor.origins import Origins
from hetcal.monitor.stream import Stream
from hetcal.monitor.streams import Streams
from hetcal.monitor.testing import Peaks, run_tests


@dataclass(frozen=True, eq=False)
class Counts:
    """Streams, alarms, history and origins."""

    streams: Streams
    alarms: Alarms
    history: History
    origins: Origins

    @classmethod
    def start(cls, streams: Streams) -> Counts:
        """Return counts of nothing."""
        return cls(streams, Alarms([]), History.empty(), Origins([]))

    def emptied(self) -> Counts:
        """Return counts of nothing with the same reference."""
        return Counts.start(self.streams.map(Stream.emptied))

    def reset(self) -> Counts:
        """Start the tests anew; what was counted since the beginning stays counted."""
        streams = self.streams.map(Stream.reset)
        return replace(self, streams=streams, alarms=Alarms([]))

    def restarted(self, streams: Streams) -> Counts:
        """Go on with streams of another reference; items and history since the beginning stay."""
        old = self.streams.all
        everyone = replace(streams.all, n_seen=old.n_seen, n_flagged=old.n_flagged)
        streams = Streams(streams.by_group | {ALL: everyone})
        return replace(self, streams=streams, alarms=Alarms([]))

    def after(
        self,
        bins: Rows,
        uniform: Matrix,
        flags: NDArray[np.bool_],
        members: Members,
        rule: AlarmRule,
    ) -> tuple[Counts, Peaks]:
        """Count and test a batch; see :func:`hetcal.monitor.testing.run_tests`."""
        streams = self.streams.with_groups(members, rule.max_groups)
        streams, alarms, peaks = run_tests(
            streams, self.alarms, bins, uniform, flags, members, rule
        )
        counts = replace(self, streams=streams, alarms=alarms, origins=self.origins.begun())
        return counts, peaks

    def with_labels(
        self, Q: Matrix, stated: Matrix, codes: Rows, members: Members, rule: AlarmRule
    ) -> Counts:
        """Count and test the labels of items with calibrated (Q) and stated probabilities."""
        streams = self.streams.with_groups(members, rule.max_groups).with_labels(members, Q, codes)
        streams, alarms = run_label_tests(streams, self.alarms, (Q, stated), codes, members, rule)
        return replace(self, streams=streams, alarms=alarms, origins=self.origins.begun())

    def recorded(self, items: pd.DataFrame, peaks: Peaks, n_alarms: int, most: int) -> Counts:
        """Add an update to the history."""
        history = self.history.plus(items, self.streams.all, peaks, n_alarms, most)
        return replace(self, history=history)

    def merged(self, other: Counts, rule: AlarmRule, max_history: int) -> Counts:
        """Add what another process has counted, and look at the evidence of both together."""
        streams = self.streams.merged(other.streams, rule.max_groups, rule.width)
        alarms = self.alarms.merged(other.alarms)
        if streams.all.martingale.log_value >= rule.log_bound():
            alarms = alarms.plus(ALL, "evidence", "all", streams.all.n_seen)
        evidence = streams.all.label_evidence
        if evidence.log_value >= rule.log_label_bound():
            found = evidence.found(rule.classes)
            found.pop("since")  # the processes have counted labels of their own
            alarms = alarms.plus(ALL, "labels", time=streams.all.n_seen, **found)
        history = self.history.merged(other.history, max_history)
        return Counts(streams, alarms, history, self.origins.merged(other.origins))

    def without_reference(self) -> Counts:
        """Leave out what the monitor knows anyway, to be sent to another process."""
        return replace(self, streams=self.streams.map(Stream.without_reference))

    def with_reference_of(self, other: Counts) -> Counts:
        """Put back what :meth:`without_reference` has left out."""
        return replace(self, streams=self.streams.with_reference_of(other.streams))

    def to_stored(self) -> dict[str, Any]:
        """Return the parts that a file keeps."""
        return self.streams.to_stored() | {
            "alarms_": self.alarms.raised,
            "history_": self.history.rows,
            "origins": self.origins.names,
        }

    @classmethod
    def from_stored(cls, state: dict[str, Any]) -> Counts:
        """Take the counts out of the parts that a file keeps."""
        streams = Streams.from_stored(state)
        alarms = restored(Alarms, raised=state.pop("alarms_"))
        rows = state.pop("history_")
        names = state.pop("origins") if "origins" in state else _likely_names(streams, rows)
        history = restored(History, rows=with_columns_of_now(rows))
        return cls(streams, alarms, history, restored(Origins, names=names))


def _likely_names(streams: Streams, rows: Matrix) -> list[str]:
    """Name what an old file has counted by its first update, which its copies have as well."""
    if not streams.all.n_seen:
        return []
    return [hashlib.sha256(rows[:1].tobytes()).hexdigest()[:16]]
