"""Alarms from labels: how often for nothing, how soon after a change, and how a window does.

    python benchmarks/monitor_labels.py           # four tables, 8 minutes on one core
    python benchmarks/monitor_labels.py --late    # the last of them, 3 minutes
    python benchmarks/monitor_labels.py --quick   # a tenth of the streams

Streams of labels with two classes and five sub-populations, tested by accuracy, Brier score and
share of the second class, against calibrated and stated probabilities, for all items, each
predicted class and each sub-population at once. The bands come from 1000 simulated calibration
items, or are 0 ("exact"). Bets, width of the band and weights of the groups were fixed before the
first run.
Seeds: stream s of a table draws from ``default_rng([table, s])``.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
from scipy.special import expit

import hetcal
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.monitor.alarms import AlarmRule, Alarms
from hetcal.monitor.groups import class_members, named_members
from hetcal.monitor.label_testing import run_label_tests
from hetcal.monitor.labels import LabelSums
from hetcal.monitor.streams import Streams

RATE, LONG, BEFORE, AFTER, WINDOW = 0.01, 5000, 1000, 4000, 200
NAMES = np.array(["a", "b", "c", "d", "e"], dtype=object)
CLASSES = np.array([0, 1])
RULE = AlarmRule(RATE, 100, 10_000, 20, ["support"], [0, 1])
CHANGES = {
    "log-odds of all + 0.25": lambda z, by: z + 0.25,
    "log-odds of all + 0.5": lambda z, by: z + 0.5,
    "log-odds of all + 1": lambda z, by: z + 1.0,
    "overconfident, log-odds halved": lambda z, by: 0.5 * z,
    "one of five sub-populations - 1": lambda z, by: z - 1.0 * (by == "a"),
}


def two_columns(q):
    """Return probabilities of both classes."""
    return np.column_stack([1 - q, q])


def draw(rng, n, change=lambda z, by: z):
    """Return calibrated and stated probabilities, labels, sub-populations and the truth."""
    z, by = rng.normal(0.0, 1.5, n), NAMES[rng.integers(0, 5, n)]
    truth = expit(change(z, by))
    codes = (rng.random(n) < truth).astype(np.int64)
    return two_columns(expit(z)), two_columns(expit(1.5 * z)), codes, by, truth


def members_of(stated, by):
    """Return who is in which predicted class and sub-population."""
    return class_members(CLASSES, stated.argmax(axis=1), 20) | named_members(by)


def started(rng, n_calibration):
    """Return streams whose bands come from so many calibration items; 0: exact."""
    Q, stated, codes, by, _ = draw(rng, max(n_calibration, 500))
    members, nobody = members_of(stated, by), np.zeros((1, 0), dtype=np.int64)
    if not n_calibration:  # only the calibrated probabilities are right
        members = {group: own[:0] for group, own in members.items()}
        return Streams.start(nobody, members, lambda own: [LabelSums.empty(2)])

    def usual(own):
        rows = slice(None) if own is None else own
        return [LabelSums.over(P[rows], codes[rows]) for P in (Q, stated)]

    streams = Streams.start(nobody, {}, usual)
    parts = {
        group: Streams.start(nobody, {}, lambda _, own=own: usual(own)).all
        for group, own in members.items()
    }
    return Streams(streams.by_group | parts)


def first_alarm(streams, sample, at_once, start=0):
    """Return the label at which the first alarm comes, to so many, and who raises it.

    The labels before ``start`` are looked at once.
    """
    Q, stated, codes, by, _ = sample
    ends = [*([start] if start else []), *range(start + at_once, len(codes) + 1, at_once)]
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        rows = slice(begin, end)
        members = {g: own for g, own in members_of(stated[rows], by[rows]).items() if own.any()}
        streams, alarms = run_label_tests(
            streams, Alarms([]), (Q[rows], stated[rows]), codes[rows], members, RULE
        )
        if alarms.raised:
            return end, alarms.first["who"]
    return np.inf, None


def first_windowed(sample, bound):
    """Return the label at which a window of accuracy, Brier score or share exceeds a bound."""
    Q, _, codes, _, _ = sample
    q = Q[:, 1]
    first = np.inf
    for weight in (np.sign(q - 0.5), 2 * q - 1, np.ones_like(q)):
        total = np.cumsum(np.vstack([weight * (codes - q), weight**2 * q * (1 - q)]), axis=1)
        excess, variance = total[:, WINDOW:] - total[:, :-WINDOW]
        over = np.abs(excess) >= bound * np.sqrt(variance)
        if over.any():
            first = min(first, int(over.argmax()) + WINDOW)
    return first


def oracle_delay(sample):
    """Return the labels until a likelihood ratio that knows the change reaches 1 / rate."""
    Q, _, codes, _, truth = sample
    rows = np.arange(len(codes))
    ratio = np.log(two_columns(truth)[rows, codes] / Q[rows, codes]).cumsum()
    over = ratio >= np.log(1 / RATE)
    return int(over.argmax()) + 1 if over.any() else np.inf


def joined(one, two):
    """Return one sample after the other."""
    return tuple(np.concatenate(parts) for parts in zip(one, two, strict=True))


def null_table(n_streams, write):
    """Print the share of streams that alarm while nothing changes."""
    write(f"\nalarms within {LONG} labels while nothing changes, of {n_streams} streams\n")
    found = {"exact": 0, "band of 1000 items": 0, "window |z| > 2.6": 0, "window |z| > 4.5": 0}
    for s in range(n_streams):
        rng = np.random.default_rng([1, s])
        exact, banded = started(rng, 0), started(rng, 1000)
        sample = draw(rng, LONG)
        found["exact"] += np.isfinite(first_alarm(exact, sample, 1000)[0])
        found["band of 1000 items"] += np.isfinite(first_alarm(banded, sample, 1000)[0])
        found["window |z| > 2.6"] += np.isfinite(first_windowed(sample, 2.6))
        found["window |z| > 4.5"] += np.isfinite(first_windowed(sample, 4.5))
    for name, n in found.items():
        write(f"| {name} | {n / n_streams:.1%} |\n")


def fitted_table(n_calibrators, n_each, write):
    """Print the share of alarms for calibrators that were fitted, and so are a little wrong."""
    write(f"\nfitted calibrators, {n_calibrators} of each, {n_each} streams of 2000 labels each\n")
    for n_items in (300, 1000):
        n_alarms = n_exact = 0
        for s in range(n_calibrators):
            law = make_hidden_heterogeneity(n_items, heterogeneity=1.0, random_state=s)
            swc = hetcal.SimilarityCalibrator().fit(law.X, law.y, y_proba=law.y_proba)
            monitor = hetcal.SupportMonitor(swc).fit(law.X, y_proba=law.y_proba)
            for t in range(n_each):
                new = law.sample(2000, random_state=1000 * (s + 1) + t)
                shard = monitor.shard(0, 1).reset()
                shard._alarm_share = 1.0
                shard.update_labels(new.X, new.y, y_proba=new.y_proba)
                n_alarms += shard.alarm_ is not None
                Q = swc.predict_proba(new.X, y_proba=new.y_proba)
                codes = np.searchsorted(swc.classes_, new.y)
                bare = Streams.start(np.zeros((1, 0), int), {}, lambda own: [LabelSums.empty(2)])
                alarms = run_label_tests(bare, Alarms([]), (Q,), codes, {}, RULE)[1]
                n_exact += bool(alarms.raised)
        n = n_calibrators * n_each
        write(f"| {n_items} items | band: {n_alarms / n:.1%} | exact: {n_exact / n:.1%} |\n")


def delay_table(n_streams, write):
    """Print labels from the change to the alarm, median and 90 % quantile."""
    write(f"\nlabels until the alarm after a change at label {BEFORE}, {n_streams} streams\n")
    for number, (name, change) in enumerate(CHANGES.items()):
        delays = {key: [] for key in ("exact", "band of 1000 items", "window 4.5", "oracle")}
        named = []
        for s in range(n_streams):
            rng = np.random.default_rng([2 + number, s])
            exact, banded = started(rng, 0), started(rng, 1000)
            after = draw(rng, AFTER, change)
            sample = joined(draw(rng, BEFORE), after)
            first, who = first_alarm(banded, sample, 20)
            delays["band of 1000 items"].append(first - BEFORE)
            named.append(who)
            delays["exact"].append(first_alarm(exact, sample, 20)[0] - BEFORE)
            delays["window 4.5"].append(first_windowed(sample, 4.5) - BEFORE)
            delays["oracle"].append(oracle_delay(after))
        who = max(set(named), key=named.count)
        write(f"| {name} | {' | '.join(cells_of(delays))} | named first: {who} |\n")
        sys.stdout.flush()


def late_table(n_streams, write):
    """Print how much longer it takes when the change comes later."""
    write(f"\nlabels until the alarm by when the change comes, {n_streams} streams\n")
    for number, name in enumerate(("log-odds of all + 0.5", "log-odds of all + 1")):
        for before in (0, 1000, 10_000):
            delays = {"exact": [], "band of 1000 items": []}
            for s in range(n_streams):
                rng = np.random.default_rng([20 + number, before, s])
                for key, n_calibration in (("exact", 0), ("band of 1000 items", 1000)):
                    streams = started(rng, n_calibration)
                    sample = joined(draw(rng, before), draw(rng, AFTER, CHANGES[name]))
                    delays[key].append(first_alarm(streams, sample, 20, before)[0] - before)
            write(f"| {name} | after {before} | {' | '.join(cells_of(delays))} |\n")
            sys.stdout.flush()


def cells_of(delays):
    """Return the median and the 90 % quantile of each method."""
    return [
        f"{key}: {np.quantile(d, 0.5, method='higher'):.0f} "
        f"({np.quantile(d, 0.9, method='higher'):.0f})"
        for key, d in delays.items()
    ]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--late", action="store_true", help="the last table only")
    options = parser.parse_args()
    quick = options.quick
    warnings.simplefilter("ignore")
    write = sys.stdout.write
    if not options.late:
        null_table(100 if quick else 1000, write)
        fitted_table(2 if quick else 20, 10, write)
        delay_table(10 if quick else 100, write)
    late_table(5 if quick else 50, write)


if __name__ == "__main__":
    main()
