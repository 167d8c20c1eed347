"""How often the intervals of `evaluate(groups_by=)` and of reliability diagrams hold the truth.

    python benchmarks/measuring_coverage.py               # the table of the user guide
    python benchmarks/measuring_coverage.py --trials 20 --of diagrams

Each function takes a law and a seed and returns, by name, whether the interval of one sample held
the true value. The truth is that of the law: of 400,000 items for groups; for diagrams the mean
of P(y | p) over the items of the bin, or under the kernel.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from hetcal.data import CalibrationSet
from hetcal.metrics import evaluate
from hetcal.metrics.ece import bin_of
from hetcal.metrics.reliability import (
    reliability_bins,
    smooth_reliability,
    with_simultaneous_bands,
)
from hetcal.metrics.smooth import ReflectedKernel

SHARES = (0.5, 0.3, 0.15, 0.05)
METRICS = ("brier_score", "accuracy", "smooth_calibration_error_binary", "observed_minus_predicted")


@dataclass(frozen=True)
class Law:
    """Probabilities, and how the truth of each of four groups differs from them."""

    name: str
    n: int
    draw: Callable[[np.random.Generator, int], np.ndarray]
    slopes: tuple[float, ...] = (1, 1, 1, 1)
    shifts: tuple[float, ...] = (0, 0, 0, 0)

    def sample(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return labels, probabilities, P(y | p, group) and groups."""
        rng = np.random.default_rng([11, seed])
        group = rng.choice(4, size=n, p=SHARES)
        p = self.draw(rng, n)
        q = expit(np.array(self.slopes)[group] * logit(p) + np.array(self.shifts)[group])
        return (rng.random(n) < q).astype(int), p, q, group


def even(rng, n):
    return rng.uniform(0.02, 0.98, size=n)


def rare(rng, n):
    return np.clip(rng.beta(0.5, 24.5, size=n), 1e-6, 1 - 1e-6)


LAWS = (
    Law("right", 1000, even),
    Law("wrong in two groups", 1000, even, slopes=(1, 1, 0.5, 1), shifts=(0, 0, 0, 0.7)),
    Law("events of 2 %", 4000, rare),
    Law("events of 2 %, wrong", 4000, rare, shifts=(0, 0, 0.7, 0)),
)


def group_intervals(law: Law, seed: int, n_bootstrap: int = 200) -> dict[str, float]:
    """Return whether all groups, the worst and the largest gap are held, metric by metric."""
    y, p, _, group = law.sample(law.n, seed)
    table = evaluate(y, p, groups_by=group, n_bootstrap=n_bootstrap, random_state=seed)
    truth = _truth(law)
    held: dict[str, float] = {}
    for metric in METRICS:
        rows = table.loc[metric].set_index("part")
        values = truth[metric]
        worst = -np.min(values) if metric == "accuracy" else np.max(np.abs(values))
        targets = {"group": values, "worst": abs(worst), "gap": np.ptp(values)}
        for part, target in targets.items():
            low, high = (np.asarray(rows.loc[part, end], dtype=float) for end in ("low", "high"))
            held[f"{metric}: {part}"] = bool(((low <= target) & (target <= high)).all())
    return held


@cache
def _truth(law: Law) -> dict[str, np.ndarray]:
    y, p, _, group = law.sample(400_000, 10**6)
    table = evaluate(y, p, groups_by=group, n_bootstrap=0)
    table = table[table["part"] == "group"]
    return {metric: table.loc[metric, "value"].to_numpy() for metric in METRICS}


def diagram_bands(law: Law, seed: int, n_bins: int = 10) -> dict[str, float]:
    """Return whether bands hold the true curve: each point (a share), and all points together."""
    y, p, q, _ = law.sample(law.n, seed)
    items, outcome = CalibrationSet.to_score(y, p, classes=[0, 1]), y.astype(float)
    bins = bin_of(p, items.weights, "equal-mass", n_bins)
    parts = (p, outcome, bins, items)
    binned = with_simultaneous_bands(reliability_bins(*parts), *parts)
    of_bins = np.bincount(bins, q)[np.unique(bins)] / binned["count"].to_numpy()
    smooth = smooth_reliability(p, outcome, items, random_state=seed)
    kernel = ReflectedKernel(p, outcome - p, items.weights, law.n)
    truth = kernel.places + kernel.mean((q - p)[:, None])[:, 0]
    of_places = np.interp(smooth["predicted"], kernel.places, truth)
    held: dict[str, float] = {}
    for name, table, target in (("bins", binned, of_bins), ("smooth", smooth, of_places)):
        for kind, suffix in (("pointwise", ""), ("simultaneous", "_simultaneous")):
            inside = (table[f"low{suffix}"] <= target) & (target <= table[f"high{suffix}"])
            held[f"{name}: {kind}"] = float(inside.mean() if not suffix else inside.all())
    return held


def coverage(
    law: Law, of: Callable[[Law, int], dict[str, float]], n_trials: int, first_seed: int
) -> pd.Series:
    """Return the share of trials in which each interval held."""
    seeds = range(first_seed, first_seed + n_trials)
    return pd.DataFrame([of(law, seed) for seed in seeds]).mean()


KINDS = {"groups": group_intervals, "diagrams": diagram_bands}


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    # Seeds below 1000 (diagrams: below 2000) were looked at while the bounds were made.
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--of", choices=list(KINDS), nargs="+", default=list(KINDS))
    options = parser.parse_args()
    n_trials, names = options.trials, [law.name for law in LAWS]
    for of in (KINDS[kind] for kind in options.of):
        shares = (coverage(law, of, n_trials, options.first_seed) for law in LAWS)
        table = pd.DataFrame(dict(zip(names, shares, strict=True)))
        print(f"\n| held in % of {n_trials} samples | " + " | ".join(names) + " |")
        print("|---" * (len(names) + 1) + "|")
        for name, row in table.iterrows():
            print(f"| {name} | " + " | ".join(f"{100 * s:.1f}" for s in row) + " |", flush=True)


if __name__ == "__main__":
    main()
