"""What `hetcal.advise` says about black boxes on real tables.

    HETCAL_DATA=folder python benchmarks/advice_tables.py              # 18 cells, the first trial
    HETCAL_DATA=folder python benchmarks/advice_tables.py --n-cal 300

The calibration items are those of ``benchmarks/hybrid.py tables``. Beside the gains that the advice
states stand the Brier scores on 8000 test rows: of the probabilities as they are, of the best
global map that the advice names, and of the hybrid.
"""

from __future__ import annotations

import argparse
import warnings

import hetcal
from hetcal.metrics import brier_score
from hetcal.paper.data import trial_data
from hetcal.paper.hindsight import CELL_SETS

HEAD = "data set", "classifier", "items", "verdict", "global gain", "local gain", "as it is", "map"


def row(dataset: str, classifier: str, n_cal: int, seed: int) -> list[str]:
    data = trial_data(dataset, classifier, n_cal, seed)
    cal, new = {"y_proba": data.P_cal}, {"y_proba": data.P_test}
    hybrid = hetcal.HybridCalibrator(classes=data.classes).fit(data.X_cal, data.y_cal, **cal)
    advice = hetcal.advise(data.X_cal, data.y_cal, **cal, classes=data.classes, hybrid=hybrid)
    evidence = advice.evidence
    best_map = hetcal.get_calibrator(evidence.best_map, classes=data.classes)
    best_map.fit(None, data.y_cal, **cal)
    said = [data.P_test, best_map.predict_proba(**new), hybrid.predict_proba(data.X_test, **new)]
    scores = [brier_score(data.y_test, Q, classes=data.classes) for Q in said]
    gains = (evidence.global_gain, evidence.local_gain)
    return [
        dataset,
        classifier,
        str(n_cal),
        advice.verdict,
        *(f"{gain.value:+.4f} ({gain.low:+.4f} to {gain.high:+.4f})" for gain in gains),
        *(f"{score:.4f}" for score in scores),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-cal", type=int, nargs="*", default=[300, 3000])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| " + " | ".join([*HEAD, "hybrid"]) + " |")
    print("|" + "---|" * (len(HEAD) + 1))
    for dataset, classifier, n_cal in CELL_SETS["tables"]:
        if n_cal in arguments.n_cal:
            print(
                "| " + " | ".join(row(dataset, classifier, n_cal, arguments.seed)) + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
