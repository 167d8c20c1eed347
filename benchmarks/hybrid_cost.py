"""What the hybrid calibrator costs: seconds to fit and to predict, and memory.

    python benchmarks/hybrid_cost.py            # fit 5000 x 784 with ten classes, two threads
    python benchmarks/hybrid_cost.py --predict 1000000

The first figure is the wall time (and processor time) of a fit on items that look like images: ten
clusters with shared directions in 784 columns. The second is prediction of many rows of 20 columns
after a fit on 3000 items of two classes, with the growth of the process beyond input and output.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings

import numpy as np

from hetcal import HybridCalibrator
from hetcal.datasets import make_hidden_heterogeneity


def image_like(n: int, n_features: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return features, labels and the probabilities of a mediocre classifier."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    directions = rng.normal(size=(30, n_features))
    X = (rng.normal(size=(n_classes, 30))[y] + rng.normal(size=(n, 30))) @ directions
    X += rng.normal(size=(n, n_features))
    logits = 2 * np.eye(n_classes)[y] + rng.normal(size=(n, n_classes))
    P = np.exp(logits)
    return X, y, P / P.sum(axis=1, keepdims=True)


def peak_mebibytes() -> float:
    """Return the largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(task):
    """Run a task; return its result, wall seconds and processor seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    result = task()
    return result, time.perf_counter() - wall, time.process_time() - processor


def fit_cost(n: int, n_features: int, n_classes: int, n_jobs: int) -> None:
    """Print what a fit on image-like items costs."""
    X, y, P = image_like(n, n_features, n_classes)
    before = peak_mebibytes()
    hybrid = HybridCalibrator(n_jobs=n_jobs)
    _, wall, processor = timed(lambda: hybrid.fit(X, y, y_proba=P))
    print(
        f"fit {n} x {n_features}, {n_classes} classes, n_jobs={n_jobs}: {wall:.1f} s wall, "
        f"{processor:.1f} s processor, peak memory +{peak_mebibytes() - before:.0f} MiB"
    )
    _, wall, processor = timed(lambda: hybrid.predict_proba(X[:2000], y_proba=P[:2000]))
    print(f"predict 2000 of them: {wall:.1f} s wall, {processor:.1f} s processor")


def predict_cost(n_rows: int, n_jobs: int) -> None:
    """Print what prediction of many rows costs."""
    data = make_hidden_heterogeneity(3000, n_features=20, heterogeneity=0.8, random_state=0)
    hybrid = HybridCalibrator(n_jobs=n_jobs).fit(data.X, data.y, y_proba=data.y_proba)
    new = data.sample(n_rows, random_state=1)
    hybrid.predict_proba(new.X[:20000], y_proba=new.y_proba[:20000])
    before = peak_mebibytes()
    Q, wall, processor = timed(lambda: hybrid.predict_proba(new.X, y_proba=new.y_proba))
    print(
        f"predict {n_rows} x {new.X.shape[1]}: {wall:.0f} s wall, {processor:.0f} s processor, "
        f"output {Q.nbytes / 2**20:.0f} MiB, peak memory +{peak_mebibytes() - before:.0f} MiB"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=5000)
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--predict", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.predict:
        predict_cost(arguments.predict, arguments.jobs)
    else:
        fit_cost(arguments.items, arguments.features, arguments.classes, arguments.jobs)


if __name__ == "__main__":
    main()
