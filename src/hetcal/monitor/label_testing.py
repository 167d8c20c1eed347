"""Labels before the tests of the whole stream and of each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hetcal._typing import Matrix, Rows
from hetcal.monitor.alarms import AlarmRule, Alarms
from hetcal.monitor.groups import ALL, Members
from hetcal.monitor.label_evidence import bounded_excesses
from hetcal.monitor.martingale import log_mean
from hetcal.monitor.streams import Streams


def run_label_tests(
    streams: Streams,
    alarms: Alarms,
    sources: Sequence[Matrix],
    codes: Rows,
    members: Members,
    rule: AlarmRule,
) -> tuple[Streams, Alarms]:
    """Let every stream bet on its labels, and raise the alarms that are due.

    Parameters
    ----------
    sources : sequence of ndarray of shape (m, K), m > 0
        Calibrated and stated probabilities.
    codes : ndarray of int of shape (m,)
        The labels, in the order in which they came.
    members : dict
        Which items belong to each group; groups without a stream are passed over.
    """
    excess, tested = bounded_excesses(sources, codes), dict(streams.by_group)
    everyone = np.ones(len(codes), dtype=bool)
    for group, own in ({ALL: everyone} | members).items():
        if group not in tested:
            continue
        before = tested[group].label_evidence
        after, logs = before.after(excess[:, own])
        tested[group] = replace(tested[group], label_evidence=after)
        over = log_mean(logs) >= rule.log_label_bound(group)
        if over.any():
            then, _ = before.after(excess[:, own][:, : over.argmax() + 1])
            found = then.found(rule.classes)
            alarms = alarms.plus(group, "labels", time=streams.all.n_seen, **found)
    return Streams(tested), alarms
