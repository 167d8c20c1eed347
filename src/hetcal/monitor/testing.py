"""One batch of items before all tests: of the whole stream, and of each group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix, Rows
from hetcal.monitor.alarms import AlarmRule, Alarms
from hetcal.monitor.groups import ALL, Members
from hetcal.monitor.martingale import log_mean
from hetcal.monitor.streams import Streams


class Peaks(NamedTuple):
    """How near to an alarm the stream of all items came within a batch."""

    #: Largest logarithm of the martingale.
    log_evidence: float
    #: Largest windowed statistic, as a share of its bound.
    window: float


def run_tests(
    streams: Streams,
    alarms: Alarms,
    bins: Rows,
    uniform: Matrix,
    flags: NDArray[np.bool_],
    members: Members,
    rule: AlarmRule,
) -> tuple[Streams, Alarms, Peaks]:
    """Let every stream see its items of a batch, and raise the alarms that are due.

    All items are counted; the tests see those that the rule names.

    Parameters
    ----------
    bins, uniform : ndarray of shape (n_scores, m), m > 0
        Bins of the scores, and the draws that break ties.
    flags : ndarray of bool of shape (m,)
        Which items were flagged.
    members : dict
        Which items belong to each group, at least one; groups without a stream are passed over.
    """
    before, limit = streams.all.n_seen, rule.window_bound()
    seen = rule.tested(before, len(flags))
    streams = streams.counted(flags, members)
    if not seen.any():
        return streams, alarms, Peaks(streams.all.martingale.log_value, 0.0)
    bins, uniform, times = bins[:, seen], uniform[:, seen], before + 1 + np.flatnonzero(seen)
    tested = dict(streams.by_group)
    tested[ALL], logs, sums = streams.all.after(bins, uniform, rule.width)
    evidence = log_mean(logs)
    alarms = alarms.plus_first(ALL, "evidence", logs, evidence >= rule.log_bound(), times, rule)
    over = np.asarray((sums >= limit).any(axis=0))
    alarms = alarms.plus_first(ALL, "window", sums, over, times, rule)
    for group, all_own in members.items():
        own = all_own[seen]
        if group not in tested or not own.any():
            continue
        tested[group], logs, _ = tested[group].after(bins[:, own], uniform[:, own], rule.width)
        over = log_mean(logs) >= rule.log_bound(group)
        alarms = alarms.plus_first(group, "evidence", logs, over, times[own], rule)
    peaks = Peaks(float(evidence.max()), float(sums.max() / limit))
    return Streams(tested), alarms, peaks
