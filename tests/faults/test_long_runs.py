"""A monitor that is updated for ever stays as large as it is."""

from __future__ import annotations

import gc
import pickle
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import hetcal

N_ITEMS = 20


@pytest.fixture
def step(data, calibrators):
    """Return a monitor and a function that gives it one batch, with names that keep changing."""
    monitor = hetcal.SupportMonitor(calibrators["swc"], max_history=12, window=8, max_groups=5)
    monitor.fit(data.cal.X, y_proba=data.cal.y_proba)
    rng = np.random.default_rng(0)

    def update(number):
        rows = rng.integers(0, len(data.new.y), N_ITEMS)
        names = [f"customer {number}-{i}" for i in range(N_ITEMS)]
        new = data.new
        monitor.update(new.X[rows], y_proba=new.y_proba[rows], y=new.y[rows], by=names)
        monitor.summary()

    return monitor, update


def state_size(monitor) -> int:
    kept = monitor.__getstate__() | {"calibrator": None, "calibrator_": None, "scorer_": None}
    return len(pickle.dumps(kept))


def held_by_hetcal():
    """Return the bytes that our calls hold; threads of other tests hold some as well."""
    gc.collect()
    ours = tracemalloc.Filter(True, "*/hetcal/monitor/*", all_frames=True)
    snapshot = tracemalloc.take_snapshot().filter_traces([ours])
    return sum(trace.size for trace in snapshot.traces)


def test_memory_and_state_stay_flat(step):
    monitor, update = step
    for number in range(60):  # until history and window are full and the libraries below are warm
        update(number)
    size = state_size(monitor)
    tracemalloc.start(10)
    update(60)
    before = held_by_hetcal()
    for number in range(61, 76):
        update(number)
    grown = held_by_hetcal() - before
    tracemalloc.stop()
    # Small caches of the libraries below still fill, up to 1 kB an update beside other tests, ever
    # less; a table of the items of an update would take 2 kB, the counts of a name 130 kB.
    assert grown < 15 * 1800
    assert state_size(monitor) < size + 200
    assert monitor.n_seen_ == 76 * N_ITEMS
    assert len(monitor.frame()) == 12
    assert len(monitor.counts_.streams.of_kind("by")) == 5


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory from /proc")
def test_a_week(monkeypatch, capsys):
    """Run the benchmark itself, which fails where anything grows."""
    import runpy

    monkeypatch.setattr(sys, "argv", ["monitor_week.py"])
    script = Path(__file__).parents[2] / "benchmarks" / "monitor_week.py"
    runpy.run_path(str(script), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) == 8
