"""How long the hybrid takes to fit, beside a random forest and gradient boosting on the same table.

    OMP_NUM_THREADS=1 python benchmarks/fit_speed.py            # 3000 x 30, two classes
    OMP_NUM_THREADS=1 python benchmarks/fit_speed.py --large    # 10 000 x 40, three classes, groups
    OMP_NUM_THREADS=1 python benchmarks/fit_speed.py --wide     # 20 000 x 768 float32, two classes

Tables have missing values, categories and groups of one to five rows that are alike. Times are
processor seconds of one thread; each stands beside its ratio to ``RandomForestClassifier(300)`` and
to that forest and ``HistGradientBoostingClassifier()`` together, both fitted in the same run. The
wide table is that of ``embeddings.py``; of its forest a tenth of the trees is grown, times ten.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from embeddings import generate
from hetcal import HybridCalibrator

N_SMALL = 3000  # of larger tables only the fit with groups is measured
N_CATEGORIES = 4
MISSING = 0.1
N_TREES = 300


class Table(NamedTuple):
    """Calibration items of a classifier that sees the linear part of the truth."""

    X: pd.DataFrame
    y: np.ndarray
    y_proba: np.ndarray
    groups: np.ndarray
    weight: np.ndarray

    @property
    def encoded(self) -> np.ndarray:
        """The features as scikit-learn's forests take them."""
        return pd.get_dummies(self.X).to_numpy(dtype=float)


def make_table(n_rows: int, n_features: int, n_classes: int, seed: int = 0) -> Table:
    """Draw a table: the last column is a category, the others are numbers, a tenth missing."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_rows), rng.integers(1, 6, n_rows))[:n_rows]
    d = n_features - 1
    numbers = rng.normal(size=(n_rows, d))[groups] + 0.5 * rng.normal(size=(n_rows, d))
    level = rng.integers(0, N_CATEGORIES, n_rows)[groups]
    slopes = rng.normal(size=(d, n_classes)) * (rng.random((d, 1)) < 0.3)
    slopes *= 2 / np.sqrt((slopes**2).sum(axis=0).mean())
    # Which way a feature works depends on another and on the category: hidden from the classifier.
    hidden = (
        np.sign(numbers[:, :1])
        * numbers[:, 1:2]
        * rng.normal(size=(N_CATEGORIES, n_classes))[level]
    )
    score = numbers @ slopes + 2 * hidden
    odds = np.exp(score - score.max(axis=1, keepdims=True))
    truth = odds / odds.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
    half = n_rows // 2
    model = LogisticRegression(max_iter=1000).fit(numbers[:half], y[:half])
    y_proba = model.predict_proba(numbers)
    numbers[rng.random(numbers.shape) < MISSING] = np.nan
    X = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(d)])
    X["kind"] = pd.Categorical([f"level {k}" for k in level])
    return Table(X, y, y_proba, groups, rng.uniform(0.5, 3.0, n_rows))


def seconds(call: Callable[[], Any]) -> float:
    """Return processor seconds of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def measure(table: Table) -> None:
    """Print what each fit takes."""
    X, y = table.encoded, table.y
    forest = seconds(lambda: RandomForestClassifier(N_TREES, random_state=0).fit(X, y))
    boosting = seconds(lambda: HistGradientBoostingClassifier(random_state=0).fit(X, y))
    fits = {
        "hybrid": {},
        "hybrid, groups": {"groups": table.groups},
        "hybrid, weights": {"sample_weight": table.weight},
        "hybrid, groups and weights": {"groups": table.groups, "sample_weight": table.weight},
    }
    if len(y) > N_SMALL:
        fits = {"hybrid, groups": fits["hybrid, groups"]}
    print(f"\n{len(y)} x {table.X.shape[1]}, {table.y_proba.shape[1]} classes")
    rows = {"RandomForestClassifier(300)": forest, "HistGradientBoostingClassifier()": boosting}
    for name, options in fits.items():
        rows[name] = seconds(
            lambda options=options: HybridCalibrator(n_jobs=1).fit(
                table.X, y, y_proba=table.y_proba, **options
            )
        )
    for name, took in rows.items():
        print(
            f"{name:34} {took:7.2f} s {took / forest:6.2f} x forest "
            f"{took / (forest + boosting):6.2f} x forest and boosting "
            f"{took / rows.get('hybrid', np.nan):6.2f} x hybrid",
            flush=True,
        )


def measure_wide(n_rows: int, n_columns: int) -> None:
    """Print what a fit to float32 embeddings takes."""
    X, y, y_proba = generate(n_rows, n_columns, 1)
    part = N_TREES // 10
    forest = 10 * seconds(lambda: RandomForestClassifier(part, random_state=0).fit(X, y))
    took = seconds(lambda: HybridCalibrator(n_jobs=1).fit(X, y, y_proba=y_proba))
    print(f"\n{n_rows} x {n_columns} float32, 2 classes")
    print(f"{'hybrid':34} {took:7.2f} s {took / forest:6.2f} x forest")


def main() -> None:
    """Measure the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="10 000 x 40, three classes, groups")
    parser.add_argument("--wide", action="store_true", help="20 000 x 768 float32, two classes")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if arguments.large:
            measure(make_table(10_000, 40, 3))
        if arguments.wide:
            measure_wide(20_000, 768)
        if not arguments.large and not arguments.wide:
            measure(make_table(N_SMALL, 30, 2))


if __name__ == "__main__":
    main()
