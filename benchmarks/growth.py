"""Time, memory and quality of methods side by side, as the calibration set grows.

    OMP_NUM_THREADS=1 PEERS/bin/python benchmarks/growth.py             # 300 to 30 000 items
    OMP_NUM_THREADS=1 PEERS/bin/python benchmarks/growth.py --sizes 100000

Every method and size has a process of its own (forked), so that its peak memory is its own: what it
grows by between the data and the end of fit and prediction (10 000 new rows). Times are processor
seconds of one thread. The data are ``make_hidden_heterogeneity`` with 20 features, whose P(y | x)
is known: the excess is the mean squared distance from it, which is what a Brier score has above the
least possible one. PEERS and ``--out`` are as in ``repair_tables.py``.
"""

from __future__ import annotations

import argparse
import logging
import resource
import time
import warnings
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from hetcal.datasets import make_hidden_heterogeneity
from repair_tables import METHODS, Items, installed, warm_up

OUT = Path(__file__).parent / "results" / "growth.csv"
SIZES = (300, 1000, 3000, 10_000, 30_000)
N_NEW, N_FEATURES, SEED = 10_000, 20, 0
MEASURED = (
    *("hetcal hybrid", "hetcal global", "paper SWC", "sklearn isotonic", "MCGrad"),
    *("forest on [X, P]", "boosting on [X, P]"),
)


def items_of(data) -> Items:
    named = pd.DataFrame({"all": np.zeros(len(data.y), dtype=int)})
    return Items(data.X, data.y, data.y_proba, named)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(method: str, n: int) -> dict[str, float | int | str]:
    """Return what one method costs on n items, and how far it is from the truth."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    drawn = make_hidden_heterogeneity(
        n, n_features=N_FEATURES, heterogeneity=0.8, miscalibration=0.5, random_state=SEED
    )
    new = drawn.sample(N_NEW, random_state=SEED + 1)
    warm_up([method])
    before, start = peak_mb(), time.process_time()
    Q = METHODS[method][2](items_of(drawn), items_of(new))
    return {
        "method": method,
        "n_cal": n,
        "seconds": round(time.process_time() - start, 3),
        "megabytes": round(peak_mb() - before, 1),
        "excess": round(float(((Q - new.true_proba) ** 2).sum(axis=1).mean()), 6),
        "excess_before": round(float(((new.y_proba - new.true_proba) ** 2).sum(axis=1).mean()), 6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--methods", nargs="+", default=MEASURED)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    done = pd.read_csv(options.out) if options.out.exists() else pd.DataFrame()
    have = set() if done.empty else set(zip(done["method"], done["n_cal"], strict=True))
    for n in options.sizes:
        for method in options.methods:
            if (method, n) in have or not installed(METHODS[method][1]):
                continue
            with get_context("fork").Pool(1) as pool:
                row = pool.apply(measure, (method, n))
            done = pd.concat([done, pd.DataFrame([row])])
            done.to_csv(options.out, index=False, lineterminator="\n")
            print(done.tail(1).to_string(index=False, header=False), flush=True)


if __name__ == "__main__":
    main()
