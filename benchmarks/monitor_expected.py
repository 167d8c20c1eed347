"""What the monitor expects of a bank's calls without labels, beside what the labels showed.

    HETCAL_DATA=... python benchmarks/monitor_expected.py    # 1 minute on one core

bank-marketing in its order of time, without the duration of the call: a gradient-boosted model
trained on calls 0 to 12 000, calibrated on the next 4000, then watched in blocks of 2000. Beside
the calibrator: the mean of p after one isotonic map, which is how CBPE estimates. Nothing was
tuned on the blocks that are shown. The second table repeats it with calls in random order (seed
0), where nothing changes.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.preprocessing import OrdinalEncoder

import hetcal

TRAIN, CALIBRATE, BLOCK = 12_000, 4000, 2000


def calls(order_seed):
    """Return features and labels, in the order of time or in a random one."""
    table = pd.read_csv(Path(os.environ["HETCAL_DATA"]) / "bank-marketing.csv.gz")
    if order_seed is not None:
        table = table.sample(frac=1.0, random_state=order_seed, ignore_index=True)
    y = (table["y"] == "yes").to_numpy().astype(int)
    X = table.drop(columns=["y", "duration"])
    text = X.select_dtypes(exclude="number").columns
    X[text] = OrdinalEncoder().fit_transform(X[text])
    return X.to_numpy(float), y


def story(write, order_seed):
    """Print one row per block."""
    X, y = calls(order_seed)
    cal = slice(TRAIN, TRAIN + CALIBRATE)
    model = HistGradientBoostingClassifier(random_state=0).fit(X[:TRAIN], y[:TRAIN])
    P = model.predict_proba(X)
    swc = hetcal.SimilarityCalibrator().fit(X[cal], y[cal], y_proba=P[cal])
    monitor = hetcal.SupportMonitor(swc).fit(X[cal], y_proba=P[cal])
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(P[cal, 1], y[cal])
    write("| calls | accuracy expected | shown | isotonic | Brier expected | shown | isotonic ")
    write("| flagged | note | alarms |\n")
    inside, errors = [], []
    for start in range(TRAIN + CALIBRATE, len(y) - BLOCK + 1, BLOCK):
        rows = slice(start, start + BLOCK)
        got = monitor.expected_performance(X[rows], y_proba=P[rows])
        Q = swc.predict_proba(X[rows], y_proba=P[rows])
        q = isotonic.predict(P[rows, 1])
        shown = np.mean(Q.argmax(axis=1) == y[rows]), hetcal.metrics.brier_score(y[rows], Q)
        plain = np.mean(np.maximum(q, 1 - q)), np.mean(2 * q * (1 - q))
        own = np.mean((q > 0.5) == y[rows]), np.mean(2 * (q - y[rows]) ** 2)
        inside.append(
            [e.low <= s <= e.high for e, s in zip((got.accuracy, got.brier), shown, strict=True)]
        )
        errors.append([got.accuracy.value - shown[0], plain[0] - own[0]])
        errors[-1] += [got.brier.value - shown[1], plain[1] - own[1]]
        monitor.update(X[rows], y_proba=P[rows], y=y[rows])
        tests = "; ".join(sorted({alarm["test"] for alarm in monitor.alarms_})) or "none"
        accuracy, brier = (
            f"{e.value:.3f} ({e.low:.3f} to {e.high:.3f})" for e in (got.accuracy, got.brier)
        )
        write(
            f"| {start} | {accuracy} | {shown[0]:.3f} | {plain[0]:.3f} for {own[0]:.3f} | {brier} "
            f"| {shown[1]:.3f} | {plain[1]:.3f} for {own[1]:.3f} | {got.flagged:.1%} "
            f"| {'yes' if got.note else ''} | {tests} |\n"
        )
        sys.stdout.flush()
    hits, mean = np.mean(inside, axis=0), np.abs(errors).mean(axis=0)
    write(f"intervals hold: accuracy {hits[0]:.0%}, Brier {hits[1]:.0%}; mean absolute error ")
    write("accuracy {:.4f} (isotonic {:.4f}), Brier {:.4f} (isotonic {:.4f})\n".format(*mean))


def main() -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")
    for order_seed in (None, 0):
        sys.stdout.write(f"\norder: {'time' if order_seed is None else 'random'}\n")
        story(sys.stdout.write, order_seed)


if __name__ == "__main__":
    main()
