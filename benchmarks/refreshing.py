"""What learning from newer labels brings on a bank's calls, with and without forgetting.

    HETCAL_DATA=... python benchmarks/refreshing.py    # 1 minute on one core

The model and the calls of benchmarks/monitor_expected.py: blocks of 2000 calls in their order of
time. Each block is predicted by calibrators that know the blocks before it and is learned after
that: a calibrator that stays as it was, one that is extended, and two that forget, by a half-life
and by a window of as many calls as the calibration set has (4000, set before the first run). The
last columns are what the refresh by a half-life said about itself: the gain on the block that it
had just learned, each call predicted without its label, beside the gain on the block that followed.
"""

from __future__ import annotations

import copy
import sys
import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import hetcal
from hetcal.data import CalibrationSet
from hetcal.metrics.gains import Gain
from hetcal.metrics.scores import brier_losses
from monitor_expected import BLOCK, CALIBRATE, TRAIN, calls

WAYS = {
    "as it was": None,
    "extended": {},
    "half-life": {"half_life": CALIBRATE},
    "window": {"window": CALIBRATE},
}


def main() -> None:
    """Print a row per block."""
    warnings.simplefilter("ignore")
    X, y = calls(None)
    model = HistGradientBoostingClassifier(random_state=0).fit(X[:TRAIN], y[:TRAIN])
    P, cal = model.predict_proba(X), slice(TRAIN, TRAIN + CALIBRATE)
    first = hetcal.SimilarityCalibrator().fit(X[cal], y[cal], y_proba=P[cal])
    learners = {name: copy.copy(first) for name in WAYS}
    write, stated = sys.stdout.write, ""
    write(f"| calls | model | {' | '.join(WAYS)} | said | came |\n")
    totals, before = [], None
    for start in range(TRAIN + CALIBRATE, len(y) - BLOCK + 1, BLOCK):
        rows = slice(start, start + BLOCK)
        said = {name: swc.predict_proba(X[rows], y_proba=P[rows]) for name, swc in learners.items()}
        losses = {name: brier_losses(Q, y[rows]) for name, Q in said.items()}
        scores = [brier_losses(P[rows], y[rows]).mean(), *(x.mean() for x in losses.values())]
        totals.append(scores)
        came = ""
        if before is not None:
            old = brier_losses(before.predict_proba(X[rows], y_proba=P[rows]), y[rows])
            came = f"{np.mean(old - losses['half-life']):+.4f}"
        shown = " | ".join(f"{score:.4f}" for score in scores)
        write(f"| {start} | {shown} | {stated} | {came} |\n")
        sys.stdout.flush()
        before = copy.copy(learners["half-life"])
        for name, options in WAYS.items():
            if options is not None:
                learners[name].extend(X[rows], y[rows], y_proba=P[rows], **options)
        own = learners["half-life"].out_of_sample_proba_[-BLOCK:]
        items = CalibrationSet.to_score(y[rows], P[rows])
        gain = Gain.between(said["half-life"], own, items)
        stated = f"{gain.value:+.4f} ({gain.low:+.4f} to {gain.high:+.4f})"
    write(
        "| mean | " + " | ".join(f"{score:.4f}" for score in np.mean(totals, axis=0)) + " | | |\n"
    )


if __name__ == "__main__":
    main()
