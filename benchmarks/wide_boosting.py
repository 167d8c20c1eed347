"""What boosting with few columns per tree costs and brings on wide data.

    python benchmarks/wide_boosting.py                        # cost, beside scikit-learn's boosting
    HETCAL_DATA=folder python benchmarks/wide_boosting.py --hybrid

The first prints processor seconds of one fit on items that look like images, scikit-learn's
boosting with all columns beside it. The second prints the Brier score of the hybrid with its
wide-boosting experts divided by that without them, on the digits that serve development (4 and 9,
1 and 7, and all four together), with splits that no report uses: 500 items train the classifier,
6000 test.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from hetcal import HybridCalibrator
from hetcal.datasets import load_dataset, paper_classifier
from hetcal.kernels.boosting import Boosting
from hetcal.metrics import brier_score, log_loss
from hybrid_cost import image_like

N_TRAIN, N_TEST = 500, 6000


def cost() -> None:
    """Print seconds of a fit with few columns per tree, and with all."""
    for n_classes in (2, 10):
        X, y, _ = image_like(3000, 784, n_classes)
        seconds = []
        for model in (Boosting(), HistGradientBoostingClassifier(max_iter=300, random_state=0)):
            start = time.process_time()
            model.fit(X, y)
            seconds.append(time.process_time() - start)
        print(
            f"3000 x 784, {n_classes} classes, 300 rounds: {seconds[0]:.1f} s, scikit-learn with "
            f"all columns {seconds[1]:.1f} s ({seconds[1] / seconds[0]:.0f} times as long)"
        )


def digits(*names: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels and labels of some pairs of digits."""
    pairs = [load_dataset(name) for name in names]
    X = np.vstack([np.asarray(pair.X, dtype=float) for pair in pairs])
    y = np.concatenate([np.asarray(pair.y).astype(str) for pair in pairs])
    return X, np.unique(y, return_inverse=True)[1]


def hybrid_scores(X, y, classifier: str, n_cal: int, seed: int) -> np.ndarray:
    """Return Brier score and log loss of the hybrid with and without the experts."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, cal = order[:N_TRAIN], order[N_TRAIN : N_TRAIN + n_cal]
    test = order[N_TRAIN + n_cal :][:N_TEST]
    model = paper_classifier(classifier).fit(X[train], y[train])
    said = {"y_proba": model.predict_proba(X[cal])}, {"y_proba": model.predict_proba(X[test])}
    scores = []
    for experts in ("auto", ["proximity", "neighbours", "kernel"]):
        hybrid = HybridCalibrator(experts).fit(X[cal], y[cal], **said[0])
        Q = hybrid.predict_proba(X[test], **said[1])
        scores.append((brier_score(y[test], Q), log_loss(y[test], Q)))
    return np.array(scores)


def hybrid(seeds: int) -> None:
    """Print what the experts change on the digits of development."""
    sets = {
        "4 and 9": (("mnist-4v9",), (200, 1000, 3000)),
        "1 and 7": (("mnist-1v7",), (200, 1000, 3000)),
        "1, 4, 7 and 9": (("mnist-4v9", "mnist-1v7"), (1000, 5000)),
    }
    for title, (names, sizes) in sets.items():
        X, y = digits(*names)
        for n_cal in sizes:
            scores = np.array(
                [
                    hybrid_scores(X, y, name, n_cal, seed)
                    for name in ("NB", "SVM", "DT")
                    for seed in range(200, 200 + seeds)
                ]
            )
            ratio = np.exp(np.log(scores[:, 0] / scores[:, 1]).mean(axis=0))
            worst = (scores[:, 0] / scores[:, 1])[:, 0].max()
            print(
                f"{title}, {n_cal} items: Brier score {ratio[0]:.3f} (worst of {len(scores)} "
                f"{worst:.3f}), log loss {ratio[1]:.3f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hybrid", action="store_true", help="what it brings, not what it costs")
    parser.add_argument("--seeds", type=int, default=2, help="splits per set and size")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    hybrid(options.seeds) if options.hybrid else cost()


if __name__ == "__main__":
    main()
