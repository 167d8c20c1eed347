"""The cells on which the hybrid's settings were chosen, with trials that no report uses.

    HETCAL_DATA=folder python benchmarks/hybrid_development.py --seeds 3 --items 50

Prints, per cell, the Brier score of the hybrid and of some variants divided by that of the best
global map in hindsight. Seeds count from 100, so that the trials 0 to 9 stay for reports.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd

from hetcal import HybridCalibrator, get_calibrator
from hetcal.datasets import paper_classifier, paper_split
from hetcal.metrics import brier_score

CELLS = [
    ("mnist-3v5", "SVM", 50),
    *(("mnist-4v9", name, 50) for name in ("NB", "DT", "RF", "SVM")),
    ("mnist-1v7", "RF", 50),
    ("letter", "NB", 50),
    ("letter", "SVM", 50),
    *(("mnist-4v9", name, 200) for name in ("NB", "RF", "SVM")),
    *(("mnist-1v7", name, 200) for name in ("RF", "SVM")),
    ("fashion-mnist", "RF", 200),
    *(("letter", name, 200) for name in ("NB", "DT", "RF")),
    *(("mnist-4v9", name, 1000) for name in ("RF", "SVM")),
    *(("letter", name, 1000) for name in ("NB", "DT", "RF")),
]
SETTINGS = {"hybrid": {}, "caution 0": {"caution": 0.0}, "caution 2": {"caution": 2.0}}
# What "auto" asks on letter, and on images; the variants leave one family out.
ON_LETTER = ("proximity", "forests", "neighbours", "kernel")
ON_IMAGES = ("proximity", "neighbours", "kernel", "wide-boosting")
LEFT_OUT = ("kernel", "wide-boosting")
GLOBAL = ("uncalibrated", "temperature", "isotonic")


def variants(name: str) -> dict[str, dict]:
    """Return the parameters of the hybrid and its variants."""
    families = ON_LETTER if name == "letter" else ON_IMAGES
    return SETTINGS | {
        f"without {out}": {"experts": [family for family in families if family != out]}
        for out in LEFT_OUT
    }


def scores(name: str, classifier: str, n: int, seed: int) -> dict[str, float]:
    """Return the Brier score of every method in one trial."""
    data = paper_split(name, seed, n)
    model = paper_classifier(classifier).fit(data.X_train, data.y_train)
    P, P_test = model.predict_proba(data.X_cal), model.predict_proba(data.X_test)
    classes = np.arange(P.shape[1])
    methods = {method: get_calibrator(method, classes=classes) for method in GLOBAL}
    methods |= {
        key: HybridCalibrator(classes=classes, **params) for key, params in variants(name).items()
    }
    said = {
        key: method.fit(data.X_cal, data.y_cal, y_proba=P).predict_proba(
            data.X_test, y_proba=P_test
        )
        for key, method in methods.items()
    }
    return {key: brier_score(data.y_test, Q, classes=classes) for key, Q in said.items()}


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--items", type=int, nargs="*", default=[50, 200, 1000])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = {}
    for cell in CELLS:
        if cell[2] in arguments.items:
            trials = [scores(*cell, 100 + trial) for trial in range(arguments.seeds)]
            means = pd.DataFrame(trials).mean()
            rows[cell] = means[list(variants(cell[0]))] / means[list(GLOBAL)].min()
            print(*cell, rows[cell].round(3).to_dict(), flush=True)
    print("geometric mean", np.exp(np.log(pd.DataFrame(rows)).mean(axis=1)).round(3).to_dict())


if __name__ == "__main__":
    main()
