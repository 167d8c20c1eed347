"""Monitors of several processes: shards of one, and what they have counted put together."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from hetcal._threads import changed, synchronized
from hetcal.monitor.checks import check_same_settings
from hetcal.monitor.fitted import FittedMonitor

_SHARD_SEED = 4  # the monitor's own draws use 0 to 3


class MergingMonitor(FittedMonitor):
    """A monitor that has shards."""

    @synchronized
    def shard(self, number: int, of: int) -> Self:
        """Return an empty monitor with the same reference, for one of several processes.

        All shards together, with the look at the evidence once they are merged into this monitor,
        raise a false alarm with a probability of at most ``alarm_rate``: half of it is divided
        among the shards, half belongs to the look. Each shard draws its own random numbers, the
        same for the same number.

        Parameters
        ----------
        number : int
            Which shard, from 0.
        of : int
            How many there are.
        """
        self._watched()
        if not 0 <= number < of:
            raise ValueError(f"number must lie from 0 to {of - 1}, of={of}; got {number!r}.")
        shard = copy.copy(self)
        seeds = np.random.SeedSequence([self.random_state, _SHARD_SEED, number])
        shard.random_state = int(seeds.generate_state(1)[0])
        # Half of the rate for the look at the merged evidence, half for all shards together.
        shard._alarm_share = self._alarm_share / (2 * of)
        shard.counts_ = self.counts_.emptied()
        return shard

    def merge(self, other: Self) -> Self:
        """Add what another process has counted with the same reference.

        Begin the other one empty: with :meth:`shard`, or by loading a file that has counted nothing
        yet. Monitors that have a counted past in common (two copies of a used file, or one monitor
        twice) are refused, since that past would be counted twice.

        Counts add up. Evidence is combined by the *mean* of the martingales, each weighted by the
        number of processes it comes from: the shards share one reference and so are not
        independent, and a mean of expectations needs no independence. At any one merge a false
        alarm has a probability of at most ``alarm_rate``. The window takes the latest items of each
        in turn.
        """
        # In one order, whoever merges whom: two merges would wait for each other for ever.
        one, two = (self, other) if id(self) < id(other) else (other, self)
        with one.lock, two.lock:
            self._watched()
            other._watched()
            self._check_mergeable(other)
            with changed(self) as draft:
                draft.counts_ = self.counts_.merged(
                    other.counts_, self._alarm_rule(), self.max_history
                )
        return self

    def _check_mergeable(self, other: Self) -> None:
        if not np.array_equal(self.reference_.scores, other.reference_.scores):
            raise ValueError(
                "SupportMonitor.merge needs monitors with the same reference; these differ. Fit "
                "one, save it, and load it in every process."
            )
        check_same_settings(self, other)
        mine, theirs = (m.counts_.streams.all.label_evidence.low for m in (self, other))
        if not np.array_equal(mine, theirs):
            raise ValueError(
                "SupportMonitor.merge needs monitors that test labels alike; one of these comes "
                "from a file of old, or was fitted without y_proba. Fit one, save it, and load it "
                "in every process."
            )
        if self is other or self.counts_.origins.overlap(other.counts_.origins):
            raise ValueError(
                "SupportMonitor.merge got two monitors that have counted the same items, which "
                "would count twice. Begin each process with an empty monitor.shard(number, of), "
                "and merge each of them once."
            )
