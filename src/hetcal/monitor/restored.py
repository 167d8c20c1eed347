"""Whether the parts of a monitor that comes from a file fit together."""

from __future__ import annotations

from typing import Any

from hetcal._stored import expect
from hetcal._stored.fields import in_range
from hetcal.monitor.bins import N_BINS
from hetcal.monitor.checks import check_parameters
from hetcal.monitor.label_evidence import n_tests


def check_restored(monitor: Any) -> None:
    """Raise where no monitor could have these parts."""
    check_parameters(monitor)
    reference, n_scores, K = monitor.reference_, len(monitor.scores_), len(monitor.classes_)
    expect(len(reference.scores) == n_scores, monitor, "has a reference of other scores")
    known = reference.top is None or in_range(reference.top, 0, K)
    expect(known, monitor, "has a reference of other classes")
    short = len(monitor.counts_.history.rows) <= monitor.max_history
    expect(short, monitor, "has a history that is too long")
    streams = monitor.counts_.streams
    few = all(len(streams.of_kind(kind)) <= monitor.max_groups for kind in ("class", "by"))
    expect(few, monitor, "has too many groups")
    labels = {str(label) for label in monitor.classes_.tolist()}
    expect(set(streams.of_kind("class")) <= labels, monitor, "has groups of other classes")
    for stream in streams.by_group.values():
        expect(stream.base.shape == (n_scores, N_BINS), monitor, "has counts of other scores")
        expect(len(stream.labels.excess) == 2 + K, monitor, "has labels of other classes")
        known = len(stream.label_evidence.low) in (n_tests(K, 1), n_tests(K, 2))
        expect(known, monitor, "tests the labels of other classes")
        short = all(len(tail) <= monitor.window for tail in stream.window.tails)
        expect(short, monitor, "has a window of another width")
