"""How far the gain that a hybrid states differs from the gain on new items, and what it costs.

    python benchmarks/stated_gain.py --items 60 --draws 300
    python benchmarks/stated_gain.py --items 60 --draws 100 --slope 2

By default the classifier says P(y | x) itself, so nothing can be gained. ``--slope`` multiplies its
log-odds: 2 is an over-confident one. Stated is the out-of-sample gain in Brier score on the
calibration items; realised is the gain by the known P(y | x) of 1000 new items. Printed are their
difference (the bias of what is said), what the hybrid costs as a share of the Brier score (less
than zero: gains), and the worst draws of each fifty.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from hetcal import HybridCalibrator
from hetcal.metrics.scores import brier_losses

N_NEW = 1000


def main() -> None:
    """Print bias and cost with their standard errors, and the worst of fifty."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--trees", type=int, default=60)
    parser.add_argument("--slope", type=float, default=1.0)
    parser.add_argument("--first-seed", type=int, default=1000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(options.first_seed, options.first_seed + options.draws)
    draws = [one_draw(options.items, seed, options.trees, options.slope) for seed in seeds]
    bias, cost = np.transpose(draws)
    for name, values in (("bias", bias), ("cost", cost)):
        error = values.std() / len(values) ** 0.5
        print(f"{name}: {values.mean():.5f} +- {error:.5f}, largest {values.max():.4f}")
    worst = [cost[first : first + 50].max() for first in range(0, len(cost) - 49, 50)]
    print("worst of each fifty:", *(f"{w:.3f}" for w in worst))


def one_draw(n: int, seed: int, n_trees: int, slope: float = 1.0) -> tuple[float, float]:
    """Return stated less realised gain, and the cost as a share of the Brier score."""
    X, y, P, _ = items(np.random.default_rng(seed), n, slope)
    hybrid = HybridCalibrator(n_estimators=n_trees).fit(X, y, y_proba=P)
    stated = np.mean(brier_losses(P, y) - brier_losses(hybrid.out_of_sample_proba_, y))
    X, _, P, truth = items(np.random.default_rng(99), N_NEW, slope)
    before, after = (
        np.mean(((Q - truth) ** 2).sum(axis=1)) for Q in (P, hybrid.predict_proba(X, y_proba=P))
    )
    brier = before + np.mean((truth * (1 - truth)).sum(axis=1))
    return stated + after - before, (after - before) / brier


def items(rng: np.random.Generator, n: int, slope: float = 1.0) -> tuple[np.ndarray, ...]:
    """Draw six features, labels, stated probabilities, and the true ones."""
    X = rng.normal(size=(n, 6))
    log_odds = 1.2 * X[:, 0] + 0.5 * X[:, 1]
    stated, true = (1 / (1 + np.exp(-s * log_odds)) for s in (slope, 1.0))
    y = (rng.random(n) < true).astype(int)
    return X, y, np.column_stack([1 - stated, stated]), np.column_stack([1 - true, true])


if __name__ == "__main__":
    main()
