"""Alarms without labels on streams whose neighbours are alike: how often for nothing, how soon.

    python benchmarks/monitor_dependence.py    # 3 minutes on one core

Three normal features; of the stream each is a stationary AR(1) series with the same marginal as the
calibration items. 10 calibrators of 500 items (seeds 0 to 9), 30 streams each. ``dependence`` is
what ``suggest_dependence`` says about another stream of 3000 items per calibrator. The share of
streams that alarm within 3000 items, of all items (nominal 1 %) and of anything (nominal 2 %), and
the items until the alarm after all features move by 1.5 standard deviations.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.signal import lfilter
from scipy.special import expit

import hetcal
from hetcal.monitor import suggest_dependence

OUT = Path(__file__).parent / "results" / "monitor_dependence.csv"
CALIBRATORS, STREAMS, LONG, SHIFT = 10, 30, 3000, 1.5
PHIS = (0.0, 0.5, 0.9, 0.97)


def stated(X):
    """Return a classifier's probabilities."""
    q = expit(X[:, 0])
    return np.column_stack([1 - q, q])


def series(rng, n, phi):
    """Return stationary series with a standard normal marginal."""
    noise = rng.normal(size=(n, 3))
    noise[1:] *= np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=0)


def watched(seed):
    """Return a monitor that has counted nothing."""
    rng = np.random.default_rng([0, seed])
    X = rng.normal(size=(500, 3))
    y = (rng.random(500) < expit(X[:, 0] + np.sign(X[:, 1]))).astype(int)
    swc = hetcal.SimilarityCalibrator().fit(X, y, y_proba=stated(X))
    return hetcal.SupportMonitor(swc).fit(X, y_proba=stated(X))


def alarms_of(monitor, X, dependence):
    """Return the alarms of a stream."""
    fresh = monitor.shard(0, 1)
    fresh._alarm_share, fresh.dependence = 1.0, dependence
    fresh.update(X, y_proba=stated(X))
    return fresh.alarms_


def first(alarms):
    """Return when the first alarm came."""
    return alarms[0]["time"] if alarms else np.inf


def suggested(monitor, phi, seed):
    """Return what is measured on a stream of its own."""
    X = series(np.random.default_rng([1, seed]), LONG, phi)
    scores = [monitor.p_values(X, y_proba=stated(X), score=name) for name in monitor.scores_]
    return suggest_dependence(*scores)


def one_row(monitors, phi, chosen):
    """Return the alarms of all streams with one autocorrelation and one choice of dependence."""
    found, anything, delays, used = 0, 0, [], []
    for seed, monitor in enumerate(monitors):
        k = 1 if chosen == "1" else suggested(monitor, phi, seed)
        used.append(k)
        for s in range(STREAMS):
            X = series(np.random.default_rng([2, seed, s]), LONG, phi)
            alarms = alarms_of(monitor, X, k)
            anything += bool(alarms)
            found += any(alarm["who"] == "all items" for alarm in alarms)
            if s < 5:
                delays.append(first(alarms_of(monitor, X + SHIFT, k)))
    return {
        "phi": phi,
        "dependence": chosen,
        "k_from": min(used),
        "k_to": max(used),
        "streams": CALIBRATORS * STREAMS,
        "all_items": found,
        "anything": anything,
        "delay": np.quantile(delays, 0.5, method="higher"),
        "delay_90": np.quantile(delays, 0.9, method="higher"),
    }


def table_of(found: pd.DataFrame) -> str:
    """Return the table of the documentation."""
    lines = ["| φ | k | alarms of all items | of anything | items until the alarm (of 90 %) |"]
    lines.append("| ---: | ---: | ---: | ---: | ---: |")
    for row in found.itertuples():
        k = "1" if row.dependence == "1" else f"measured: {row.k_from} to {row.k_to}"
        lines.append(
            f"| {row.phi:g} | {k} | {row.all_items / row.streams:.1%} "
            f"| {row.anything / row.streams:.1%} | {row.delay:.0f} ({row.delay_90:.0f}) |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run all streams, keep the counts and print the table."""
    warnings.simplefilter("ignore")
    monitors = [watched(seed) for seed in range(CALIBRATORS)]
    found = pd.DataFrame(
        [one_row(monitors, phi, chosen) for phi in PHIS for chosen in ("1", "suggested")]
    )
    found.to_csv(OUT, index=False)
    print(table_of(found))


if __name__ == "__main__":
    main()
