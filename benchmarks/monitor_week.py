"""A week of updates to one monitor: whether its memory or its file grow, whether it slows.

    python benchmarks/monitor_week.py

One update a minute for seven days (10 080 updates of 100 items each), with labels for half of the
items and with names of sub-populations that keep changing. The history is saved and loaded again
every day, as a restart would. Prints one line a day; fails where memory or file have grown after
the second day, by which the history has reached its 2000 rows.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import hetcal
from hetcal.datasets import make_hidden_heterogeneity

DAYS, MINUTES = 7, 24 * 60


def resident_megabytes() -> float:
    """Return the memory of this process that is in use now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def watched(n_items: int):
    """Return a monitor and the law of its items."""
    law = make_hidden_heterogeneity(1000, heterogeneity=1.0, random_state=0)
    swc = hetcal.SimilarityCalibrator().fit(law.X, law.y, y_proba=law.y_proba)
    monitor = hetcal.SupportMonitor(swc, max_history=2000)
    return monitor.fit(law.X, y_proba=law.y_proba), law.sample(50 * n_items, random_state=1)


def one_day(monitor, new, n_updates: int, n_items: int, rng) -> float:
    """Update the monitor; return processor seconds per update."""
    started = time.process_time()
    for minute in range(n_updates):
        rows = rng.integers(0, len(new.y), n_items)
        y = new.y[rows].astype(object)
        y[::2] = None
        by = [f"customer {rng.integers(1 << 30)}" if i % 10 == 0 else "usual" for i in rows]
        monitor.update(new.X[rows], y_proba=new.y_proba[rows], y=y, by=by)
        if minute % 100 == 0:
            monitor.summary()
    return (time.process_time() - started) / n_updates


def main() -> None:
    """Run the week and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=MINUTES, help="a day")
    parser.add_argument("--items", type=int, default=100, help="an update")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(2)
    monitor, new = watched(given.items)
    write = sys.stdout.write
    write("day      items  memory MB  file kB  ms per update\n")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "watch.hetcal"
        for day in range(1, DAYS + 1):
            seconds = one_day(monitor, new, given.updates, given.items, rng)
            hetcal.save(monitor, path)
            monitor = hetcal.load(path)
            gc.collect()
            rows.append((resident_megabytes(), path.stat().st_size / 1e3, 1e3 * seconds))
            write(
                f"{day:>3} {monitor.n_seen_:>10,} "
                + "{:>10.1f} {:>8.1f} {:>14.2f}\n".format(*rows[-1])
            )
            sys.stdout.flush()
    expected = DAYS * given.updates * given.items
    if monitor.n_seen_ != expected:
        raise SystemExit(f"{monitor.n_seen_} items were counted, of {expected}.")
    (memory, size, _), (last_memory, last_size, _) = rows[1], rows[-1]
    if last_memory > memory + 5 or last_size > 1.05 * size:
        raise SystemExit("Memory or file have grown.")


if __name__ == "__main__":
    main()
