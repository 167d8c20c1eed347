"""How often each test of calibration rejects at 5 %: right probabilities, then wrong ones.

    python benchmarks/calibration_tests.py              # the table of the user guide
    python benchmarks/calibration_tests.py --trials 50

Labels are drawn from the probabilities (power: from others). In settings with groups labels have
the stated probabilities, and those of one group depend on each other by a shared normal variable
(correlation 0.3). In brackets the same test with its limit for many independent rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtr

from hetcal.metrics import calibration_test

TESTS = ("spiegelhalter", "kolmogorov-smirnov", "kuiper", "score")
LEVEL = 0.05
CORRELATION = 0.3
Draw = Callable[[np.random.Generator, int], np.ndarray]


@dataclass(frozen=True)
class Setting:
    """A law of probabilities, a number of rows, and what is done with them."""

    name: str
    law: Draw
    n: int
    weighted: bool = False
    group_size: int = 1
    truth: Callable[[np.ndarray], np.ndarray] = lambda P: P


def uniform(rng, n):
    return _two(rng.uniform(size=n))


def atoms(rng, n):
    return _two(rng.choice([0.02, 0.1, 0.3, 0.5, 0.9], size=n))


def rare(rng, n):
    return _two(rng.beta(0.5, 24.5, size=n))


def ten_classes(rng, n):
    return rng.dirichlet(np.linspace(0.05, 1.0, 10), size=n)


def overconfident(P):
    return _two(expit(0.7 * logit(P[:, 1])))


def too_low(P):
    return _two(expit(logit(P[:, 1]) + 0.3))


def waves(P):
    return _two(np.clip(P[:, 1] + 0.1 * np.sin(4 * np.pi * P[:, 1]), 0, 1))


def _two(p):
    return np.column_stack([1 - p, p])


SIZE = [
    *(Setting("uniform", uniform, n) for n in (100, 1000)),
    *(Setting("five values", atoms, n) for n in (100, 1000)),
    *(Setting("events of 2 %", rare, n) for n in (100, 1000)),
    *(Setting("ten classes", ten_classes, n) for n in (100, 1000)),
    *(Setting("events of 2 %, weights", rare, n, weighted=True) for n in (100, 1000)),
    *(Setting("groups of 10", uniform, n, group_size=10) for n in (200, 1000)),
    *(Setting("groups of 10, events of 2 %", rare, n, group_size=10) for n in (1000, 5000)),
    *(Setting("groups of 10, ten classes", ten_classes, n, group_size=10) for n in (1000,)),
]
POWER = [
    Setting("overconfident (slope 0.7)", uniform, 1000, truth=overconfident),
    Setting("too low (log-odds by 0.3)", uniform, 1000, truth=too_low),
    Setting("waves of 0.1", uniform, 1000, truth=waves),
    Setting("overconfident, groups of 10", uniform, 1000, group_size=10, truth=overconfident),
]


def sample(setting: Setting, seed: int):
    """Return labels, probabilities, weights and groups of one trial."""
    rng = np.random.default_rng([7, seed])
    P = setting.law(rng, setting.n)
    weight = rng.lognormal(size=setting.n) if setting.weighted else None
    groups = np.arange(setting.n) // setting.group_size
    shared = rng.normal(size=setting.n)[groups]
    share = CORRELATION if setting.group_size > 1 else 0.0
    own = rng.normal(size=setting.n)
    u = ndtr(np.sqrt(share) * shared + np.sqrt(1 - share) * own)
    Q = setting.truth(P)
    y = (u[:, None] >= np.cumsum(Q[:, :-1], axis=1)).sum(axis=1)
    return y, P, weight, (groups if setting.group_size > 1 else None)


def rejects(setting: Setting, test: str, seed: int, **options) -> bool:
    """Return whether a test rejects one sample at 5 %."""
    y, P, weight, groups = sample(setting, seed)
    options = {"groups": groups, "n_draws": 199, "random_state": seed} | options
    classes = np.arange(P.shape[1])
    found = calibration_test(y, P, test=test, classes=classes, sample_weight=weight, **options)
    return found.p_value <= LEVEL


def row(setting: Setting, n_trials: int) -> dict[str, object]:
    """Return the share of trials in which each test rejects."""
    naive = {"groups": None, "null": "asymptotic"}
    found: dict[str, object] = {"labels": setting.name, "rows": setting.n}
    for test in TESTS:
        share = np.mean([rejects(setting, test, seed) for seed in range(n_trials)])
        without = np.mean([rejects(setting, test, s, **naive) for s in range(n_trials)])
        found[test] = f"{100 * share:.1f} ({100 * without:.1f})"
    return found


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=500)
    n_trials = parser.parse_args().trials
    for title, settings in (("size", SIZE), ("power", POWER)):
        print(f"\n{title}: rejected in % of {n_trials} trials (with the limit for many rows)\n")
        rows = pd.DataFrame([row(setting, n_trials) for setting in settings])
        print("| " + " | ".join(rows.columns) + " |")
        print("|" + "---|" * rows.shape[1])
        for cells in rows.itertuples(index=False):
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
