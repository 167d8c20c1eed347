"""How far the gain that a hybrid states differs from the gain on new items, behind a perfect model.

    python benchmarks/stated_gain.py --items 60 --draws 300

The classifier says P(y | x) itself, so nothing can be gained. Stated is the out-of-sample gain in
Brier score on the calibration items; realised is minus the mean squared distance to the truth on
1000 new items. Printed are their difference (the bias of what is said) and what the hybrid costs,
as a share of the Brier score.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from hetcal import HybridCalibrator

N_NEW, FIRST_SEED = 1000, 1000


def main() -> None:
    """Print bias and cost with their standard errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--trees", type=int, default=60)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    draws = [one_draw(options.items, FIRST_SEED + d, options.trees) for d in range(options.draws)]
    for name, values in zip(("bias", "cost"), np.transpose(draws), strict=True):
        error = values.std() / len(values) ** 0.5
        print(f"{name}: {values.mean():.5f} +- {error:.5f}, largest {values.max():.4f}")


def one_draw(n: int, seed: int, n_trees: int) -> tuple[float, float]:
    """Return stated less realised gain, and the cost as a share of the Brier score."""
    X, y, P = items(np.random.default_rng(seed), n)
    hybrid = HybridCalibrator(n_estimators=n_trees).fit(X, y, y_proba=P)
    truth = np.eye(2)[y]
    stated = np.mean(((truth - P) ** 2 - (truth - hybrid.out_of_sample_proba_) ** 2).sum(axis=1))
    X_new, _, P_new = items(np.random.default_rng(99), N_NEW)
    Q = hybrid.predict_proba(X_new, y_proba=P_new)
    lost = np.mean(((Q - P_new) ** 2).sum(axis=1))
    return stated + lost, lost / np.mean((P_new * (1 - P_new)).sum(axis=1))


def items(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw six features, labels, and their true probabilities."""
    X = rng.normal(size=(n, 6))
    p = 1 / (1 + np.exp(-1.2 * X[:, 0] - 0.5 * X[:, 1]))
    return X, (rng.random(n) < p).astype(int), np.column_stack([1 - p, p])


if __name__ == "__main__":
    main()
