"""Peak memory of SWC beyond its data, and the latency of one row, through the public interface.

python benchmarks/swc_memory.py                    # 1 million new items, 100 000 calibration items
python benchmarks/swc_memory.py --new 100000 --calibration 10000
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from hetcal import SimilarityCalibrator
from hetcal.kernels import core_name

LATENCY_CALLS = 300


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def draw(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, labels and the probabilities of a classifier that sees one feature."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    p = 1 / (1 + np.exp(-X[:, 0]))
    y = (rng.random(n) < np.where(X[:, 1] > 0, p, 1 - p)).astype(int)
    return X, y, np.column_stack([1 - p, p])


def main() -> None:
    """Fit, predict, and print time and memory of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--new", type=int, default=1_000_000)
    parser.add_argument("--calibration", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=20)
    options = parser.parse_args()
    X, y, P = draw(options.calibration, options.features, seed=0)
    X_new, _, P_new = draw(options.new, options.features, seed=1)
    swc = SimilarityCalibrator()
    small = slice(0, 50)  # imports and first calls are no part of the measurement
    swc.fit(X[small], y[small], y_proba=P[small]).predict_proba(X[small], y_proba=P[small])
    data = peak_mb()

    start = time.process_time()
    swc.fit(X, y, y_proba=P)
    fit_s, fit_mb = time.process_time() - start, peak_mb() - data
    start = time.process_time()
    Q, _ = swc.predict_proba(X_new, y_proba=P_new, return_support=True)
    predict_s, all_mb = time.process_time() - start, peak_mb() - data

    one, p_one = X_new[:1].copy(), P_new[:1].copy()
    times = []
    for _ in range(LATENCY_CALLS):
        start = time.perf_counter()
        swc.predict_proba(one, y_proba=p_one)
        times.append(time.perf_counter() - start)
    print(
        f"{core_name()} core, {options.calibration} calibration items, {options.new} new items, "
        f"{options.features} features, 2 classes\n"
        f"fit      {fit_s:7.1f} s CPU, peak {fit_mb:6.0f} MB beyond the data\n"
        f"predict  {predict_s:7.1f} s CPU ({options.new / predict_s / 1e3:.0f}k rows/s), "
        f"peak {all_mb:6.0f} MB beyond the data (result {Q.nbytes / 2**20:.0f} MB)\n"
        f"one row  {np.median(times) * 1e3:7.3f} ms (median), {np.min(times) * 1e3:.3f} ms (best)"
    )


if __name__ == "__main__":
    main()
