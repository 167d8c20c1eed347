"""What float32 embeddings of many columns cost, as they are and projected to fewer columns.

    python benchmarks/embeddings.py                        # 50 000 x 768, each step in a process
    python benchmarks/embeddings.py --items 2000 --columns 64

Generated data: embeddings of 40 directions plus noise, as language models give them, and a
classifier that is over-confident on one side of one direction. Printed are processor seconds of one
thread, the peak memory of the process (embeddings and libraries included), and the Brier score on
20 000 new items, the classifier's own beside it.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.decomposition import PCA

import hetcal
from hetcal.metrics import brier_score

METHODS = ("temperature", "cosine", "swc", "hybrid", "heterogeneity")
N_NEW = 20_000


def generate(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return embeddings, labels and the probabilities of a classifier that hides a direction."""
    directions = np.random.default_rng(0).normal(size=(40, d)).astype(np.float32) / 6
    rng = np.random.default_rng(seed)
    topics = rng.standard_normal((n, 40), dtype=np.float32)
    X = topics @ directions
    X += 0.5 * rng.standard_normal(X.shape, dtype=np.float32)
    said = 2.0 * topics[:, 0]
    meant = np.where(topics[:, 1] > 0, 0.4, 1.0) * said
    y = (rng.random(n) < expit(meant)).astype(int)
    p = expit(said).astype(float)
    return X, y, np.column_stack([1 - p, p])


def named(method: str) -> Any:
    """Return a calibrator; "cosine" is the vote of the hundred items at the smallest angles."""
    if method == "cosine":
        return hetcal.SimilarityCalibrator("cosine", n_neighbors=100)
    return hetcal.get_calibrator(method)


def peak() -> float:
    """Return the largest memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def measure(method: str, n: int, d: int, n_components: int) -> None:
    """Print one row of the table."""
    X, y, P = generate(n, d, 1)
    X_new, y_new, P_new = generate(N_NEW, d, 2)
    start = time.process_time()
    if n_components:
        projection = PCA(n_components, random_state=0).fit(X)
        X, X_new = projection.transform(X), projection.transform(X_new)
    projected = time.process_time()
    if method == "heterogeneity":
        hidden = hetcal.HiddenHeterogeneity().fit(X, y, y_proba=P)
        fitted, score = time.process_time(), f"p = {hidden.p_value_:.2g}"
    else:
        calibrator = named(method).fit(X, y, y_proba=P)
        fitted = time.process_time()
        score = f"{brier_score(y_new, calibrator.predict_proba(X_new, y_proba=P_new)):.4f}"
    seconds = (projected - start, fitted - projected, time.process_time() - fitted)
    shown = " | ".join(f"{value:.1f} s" for value in seconds)
    print(
        f"| `{method}` | {X.shape[1]} | {shown} | {peak():.0f} MB | {score} "
        f"({brier_score(y_new, P_new):.4f}) |",
        flush=True,
    )


def main() -> None:
    """Measure every method in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("--components", type=int, nargs="*", default=[50, 0])
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--one", action="store_true", help="measure in this process")
    given = parser.parse_args()
    if given.one:
        measure(given.methods[0], given.items, given.columns, given.components[0])
        return
    print(
        f"{given.items:,} x {given.columns} float32, {given.items * given.columns * 4e-6:.0f} MB\n"
    )
    print(
        "| method | columns | projection | fit | 20 000 new items | memory | Brier score (before) |"
    )
    print("|---|---:|---:|---:|---:|---:|---|", flush=True)
    for components in given.components:
        for method in given.methods:
            line = [sys.executable, __file__, "--one", "--items", str(given.items)]
            line += ["--columns", str(given.columns), "--components", str(components)]
            environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            subprocess.run([*line, "--methods", method], check=False, env=environment)


if __name__ == "__main__":
    main()
