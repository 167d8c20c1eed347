"""Speed of the similarity-weighted vote against the paper's loop over pairs.

    python benchmarks/swc_speed.py                      # moons alone
    HETCAL_DATA=folder python benchmarks/swc_speed.py   # also mnist-4v9, mnist10, letter
    python benchmarks/swc_speed.py --growth             # with rows, items and threads
    python benchmarks/swc_speed.py --out experiments/results/speed/similarity.csv   # for the page

All times are CPU seconds of one thread. The loop is timed on a few test rows and scaled to all of
them; the largest difference from its results stands beside the times.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import make_moons
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from hetcal.kernels import forest as fk
from hetcal.kernels import use_core
from hetcal.kernels._backend import native

LOOP_ROWS = 40


def cpu_time(work: Callable[[], Any], repeat: int = 3) -> tuple[float, Any]:
    """Return the shortest CPU time of some runs, and the result."""
    best, result = np.inf, None
    for _ in range(repeat):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def loop_over_pairs(
    leaves: np.ndarray, leaves_cal: np.ndarray, y: np.ndarray, K: int, threshold: np.ndarray | None
) -> np.ndarray:
    """Return the calibrated probabilities, each pair of items looked at on its own."""
    Q = np.zeros((len(leaves), K))
    for r in range(len(leaves)):
        s = np.empty(len(leaves_cal))
        for i in range(len(leaves_cal)):
            s[i] = np.mean(leaves[r] == leaves_cal[i])
        if threshold is not None:
            kept = s >= threshold[r]
            if not kept.any():
                kept[np.argmax(s)] = True
            s = np.where(kept, s, 0.0)
        for k in range(K):
            Q[r, k] = s[y == k].sum()
    return normalised(Q)


def normalised(votes: np.ndarray) -> np.ndarray:
    return votes / np.maximum(votes.sum(axis=1, keepdims=True), 1e-300)


@dataclass(frozen=True)
class Case:
    """Calibration items and test rows in the augmented space [X, standardised p]."""

    name: str
    K: int
    Z_cal: np.ndarray
    y_cal: np.ndarray
    Z: np.ndarray
    threshold: np.ndarray


def make_case(
    name: str, X: np.ndarray, y: np.ndarray, sizes: tuple[int, int, int], model: Any
) -> Case:
    """Split, fit the classifier, and put its probabilities beside the features."""
    n_train, n_cal, n_test = sizes
    train, cal = slice(0, n_train), slice(n_train, n_train + n_cal)
    test = slice(n_train + n_cal, n_train + n_cal + n_test)
    X = StandardScaler().fit(X[train]).transform(X)
    P = model.fit(X[train], y[train]).predict_proba(X)
    P = StandardScaler().fit(P[cal]).transform(P)
    Z = np.hstack([X, P]).astype(np.float32)
    # Thresholds HH/2 as they occur: heterogeneity between 0 and 0.3.
    threshold = np.random.default_rng(0).uniform(0.0, 0.15, n_test)
    return Case(name, int(y.max()) + 1, Z[cal], y[cal].astype(np.int32), Z[test], threshold)


def cases() -> list[Case]:
    """Return moons and, where HETCAL_DATA says where they are, the paper's sets."""
    X, y = make_moons(2000, noise=0.3, random_state=0)
    found = [make_case("moons", X, y, (500, 1000, 500), DecisionTreeClassifier(random_state=0))]
    folder = os.environ.get("HETCAL_DATA")
    if not folder:
        return found
    rng = np.random.RandomState(0)
    digits = np.load(Path(folder) / "mnist.npz")
    X, y = digits["X"].astype(float), digits["y"].astype(int)
    chosen = rng.choice(np.flatnonzero((y == 4) | (y == 9)), 4000, replace=False)
    nines = (y[chosen] == 9).astype(int)
    found.append(make_case("mnist-4v9", X[chosen], nines, (500, 3000, 500), GaussianNB()))
    chosen = rng.choice(len(y), 7000, replace=False)
    found.append(make_case("mnist10", X[chosen], y[chosen], (1000, 5000, 1000), GaussianNB()))
    letters = np.load(Path(folder) / "letter.npz")
    X, y = letters["X"].astype(float), np.unique(letters["y"], return_inverse=True)[1]
    chosen = rng.choice(len(y), 9000, replace=False)
    found.append(make_case("letter", X[chosen], y[chosen], (2000, 5000, 2000), GaussianNB()))
    return found


@dataclass(frozen=True)
class Loop:
    """The paper's loop on some of the test rows."""

    rows: np.ndarray
    seconds_per_row: float
    swc: np.ndarray
    swc_hh: np.ndarray


def run_loop(case: Case) -> Loop:
    """Time the loop over pairs on a few rows."""
    rows = np.linspace(0, len(case.Z) - 1, LOOP_ROWS).astype(int)
    forest = fk.fit_forest(case.Z_cal, case.y_cal, case.K)
    leaves = fk.apply(forest, case.Z[rows]), fk.apply(forest, case.Z_cal)
    seconds, swc = cpu_time(lambda: loop_over_pairs(*leaves, case.y_cal, case.K, None), 2)
    swc_hh = loop_over_pairs(*leaves, case.y_cal, case.K, case.threshold[rows])
    return Loop(rows, seconds / LOOP_ROWS, swc, swc_hh)


def fit(case: Case) -> tuple[fk.Forest, np.ndarray, fk.LeafMass]:
    """Return all that the vote needs: this is what "fit" costs."""
    forest = fk.fit_forest(case.Z_cal, case.y_cal, case.K)
    leaves = fk.apply(forest, case.Z_cal)
    return forest, leaves, fk.leaf_class_mass(forest.n_leaves, leaves, case.y_cal, case.K)


def measure(case: Case, loop: Loop, core: str) -> str:
    """Return one line: what the loop needs, what the kernels need, how far they differ."""
    n, row_s = len(case.Z), loop.seconds_per_row
    fit_s, (forest, leaves, mass) = cpu_time(lambda: fit(case), 2 if core == "pure" else 5)
    index = fk.build_index(forest.n_leaves, leaves)
    many = np.vstack([case.Z] * max(1, 20_000 // n))
    swc_s, votes = cpu_time(lambda: fk.vote(forest, case.Z, mass), 5)
    many_s, _ = cpu_time(lambda: fk.vote(forest, many, mass), 3)
    one_s, _ = cpu_time(lambda: [fk.vote(forest, case.Z[:1], mass) for _ in range(100)], 3)
    hh_s, hh = cpu_time(
        lambda: fk.thresholded_vote(
            forest, index, case.Z, case.y_cal, case.K, threshold=case.threshold
        ),
        5,
    )
    error = np.abs(normalised(votes)[loop.rows] - loop.swc).max()
    error_hh = np.abs(normalised(hh.votes)[loop.rows] - loop.swc_hh).max()
    return (
        f"{case.name:10} {core:6} loop {row_s * n:7.2f} s | fit {fit_s:7.4f} s"
        f" | fit+predict {row_s * n / (fit_s + swc_s):5.0f}x | predict {row_s * n / swc_s:6.0f}x,"
        f" {len(many)} rows {row_s * len(many) / many_s:6.0f}x"
        f" ({len(many) / many_s / 1e3:4.0f}k/s), one row {one_s * 10:6.4f} ms, diff {error:.0e}"
        f" | SWC-HH predict {row_s * n / hh_s:5.0f}x ({n / hh_s / 1e3:4.0f}k/s),"
        f" diff {error_hh:.0e} | support {hh.support.mean():5.1f}"
    )


def measure_growth(d: int = 20) -> None:
    """Print how the plain vote grows with rows and items, and what a second thread brings."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200_000, d))
    for n_cal in (1_000, 4_000, 16_000, 64_000):
        Z_cal = rng.standard_normal((n_cal, d))
        y = (Z_cal[:, 0] + Z_cal[:, 1] * Z_cal[:, 2] + rng.normal(size=n_cal) > 0).astype(np.int32)
        fit_s, forest = cpu_time(lambda Z_cal=Z_cal, y=y: fk.fit_forest(Z_cal, y, 2), 1)
        mass = fk.leaf_class_mass(forest.n_leaves, fk.apply(forest, Z_cal), y, 2)
        rows = {}
        for n in (20_000, 200_000):
            seconds, _ = cpu_time(lambda n=n, f=forest, m=mass: fk.vote(f, Z[:n], m), 3)
            rows[n] = 1e6 * seconds / n
        wall = {}
        for threads in (1, 2):
            start = time.perf_counter()
            fk.vote(forest, Z, mass, threads)
            wall[threads] = time.perf_counter() - start
        print(
            f"{n_cal:6} items: fit {fit_s:6.2f} s; {rows[20_000]:.2f} microseconds a row at 20 000"
            f" rows, {rows[200_000]:.2f} at 200 000; two threads {wall[1] / wall[2]:.2f} times as"
            " fast (wall)",
            flush=True,
        )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--growth", action="store_true", help="with rows, items and threads")
    parser.add_argument("--only", help="name of one case")
    parser.add_argument("--core", choices=["pure", "native"], help="this core alone")
    parser.add_argument("--out", help="CSV for what a pair of items costs the loop")
    arguments = parser.parse_args()
    if arguments.growth:
        measure_growth()
        return
    cores = ["pure"] if native() is None else ["pure", "native"]
    loops = []
    for case in cases():
        if arguments.only not in (None, case.name):
            continue
        loop = run_loop(case)
        seconds = loop.seconds_per_row / len(case.y_cal)
        loops.append({"case": case.name, "n_cal": len(case.y_cal), "seconds_per_pair": seconds})
        for core in [arguments.core] if arguments.core else cores:
            with use_core(core):
                print(measure(case, loop, core), flush=True)
    if arguments.out:
        pd.DataFrame(loops).to_csv(arguments.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
