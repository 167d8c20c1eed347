"""Speed of hidden heterogeneity against the algorithm written plainly with scikit-learn.

    HETCAL_DATA=<folder> python benchmarks/hh_speed.py
    HETCAL_DATA=<folder> python benchmarks/hh_speed.py --out experiments/results/speed/hh.csv

The second also keeps the figures where the page of results (``hetcal paper page``) reads them.

One thread, CPU time, reference and kernels timed in the same process. The reference (seven forests
per neighbourhood) is timed on a few neighbourhoods of each case, spread over their sizes, and
interpolated in the size for the others; the column "sampled" says how many were timed. The kernels
always do the whole case.

Columns: ``exact`` and ``fast`` are the two modes of the compiled kernel; ``net`` is the fast mode
with neighbourhoods shared over a net on the simplex; ``pure`` is the scikit-learn path, timed on
the sampled neighbourhoods. ``parity`` is the largest difference of exact HH from the plain
algorithm on the sample. ``seed_diff`` is how far the mean HH moves between seeds 0 and 1 of the
plain algorithm (computed by the exact mode, its equal), to be compared with ``fast_diff`` and
``net_diff``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# ruff: noqa: E402 (threads must be limited before numpy is imported)
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from hetcal.datasets import paper_classifier, paper_split
from hetcal.kernels import use_core
from hetcal.kernels.local_forests import PAPER_ALPHAS, local_forest_scores
from hetcal.kernels.neighbourhoods import (
    hellinger_balls,
    merge_overlapping,
    nearest_leader,
    simplex_net,
    take_neighbourhoods,
    three_decimal_buckets,
)

CASES = {
    "moons": ("SVM", "RF", "DT"),
    "mnist-4v9": ("DT", "NB", "SVM"),
    "mnist10": ("SVM", "DT", "NB"),
    "letter": ("DT", "NB", "SVM"),
}
RADIUS = 0.1
BARS = {"geometric mean": 300, "worst": 80, "shared": 1000, "pure": 7}


def brier(proba, codes):
    error = proba.copy()
    error[np.arange(len(codes)), codes] -= 1
    return (error**2).sum() / len(codes)


def plain_hh(X, codes, n_classes, P, members, seed=0):
    """Algorithm 1 for one neighbourhood: seven bagged forests, the best by out-of-bag accuracy."""
    X, codes, P = X[members], codes[members], P[members]
    if len(members) == 0 or len(np.unique(codes)) == 1:
        return 0.0
    best_score, best_brier = 0.0, np.inf
    for alpha in PAPER_ALPHAS:
        forest = RandomForestClassifier(
            n_estimators=100, max_features=None, oob_score=True, ccp_alpha=alpha, random_state=seed
        )
        forest.fit(X, codes)
        if forest.oob_score_ > best_score:
            best_score = forest.oob_score_
            proba = np.zeros((len(members), n_classes))
            proba[:, forest.classes_] = forest.predict_proba(X)
            best_brier = brier(proba, codes)
    return max(brier(P, codes) - best_brier, 0.0)


def cpu_time(function, *args, **kwargs):
    begin = time.process_time()
    result = function(*args, **kwargs)
    return time.process_time() - begin, result


class Case:
    """One data set and classifier, with the neighbourhoods of the paper estimate."""

    def __init__(self, dataset, classifier):
        self.name = f"{dataset} {classifier}"
        split = paper_split(dataset, seed=0)
        model = paper_classifier(classifier).fit(split.X_train, split.y_train)
        self.P, self.P_test = model.predict_proba(split.X_cal), model.predict_proba(split.X_test)
        self.X, self.codes, self.n_classes = split.X_cal, split.y_cal, len(split.classes)
        self.first, self.bucket = three_decimal_buckets(self.P_test)
        self.balls = hellinger_balls(self.P, self.P_test[self.first], RADIUS)

    def members(self, j):
        """Items of one neighbourhood."""
        indptr, indices = self.balls
        return indices[indptr[j] : indptr[j + 1]]

    def kernel(self, balls=None, **options):
        """HH of the neighbourhoods, by default those of the paper estimate."""
        balls = self.balls if balls is None else balls
        return local_forest_scores(
            self.X, self.codes, self.n_classes, self.P, *balls, return_oob=False, **options
        ).hh

    def with_net(self):
        """Mean HH of the test items, one forest per cell of the net that they fall into."""
        spacing = RADIUS / 10
        leaders = simplex_net(self.P, spacing)
        cell = nearest_leader(leaders, self.P_test, spacing)
        used, place = np.unique(cell[cell >= 0], return_inverse=True)
        far = np.flatnonzero(cell < 0)  # no calibration item is near: a ball of their own
        balls = hellinger_balls(self.P, np.vstack([leaders[used], self.P_test[far]]), RADIUS)
        kept, group = merge_overlapping(*balls, len(self.X))
        hh = self.kernel(take_neighbourhoods(*balls, kept), mode="fast")[group]
        item = np.empty(len(cell), int)
        item[cell >= 0], item[far] = place, len(used) + np.arange(len(far))
        return hh[item].mean(), len(kept)

    def reference(self, n_sampled):
        """CPU time of the plain algorithm on the whole case; its values on the sample."""
        sizes = np.diff(self.balls[0])
        grown = [j for j in range(len(sizes)) if len(np.unique(self.codes[self.members(j)])) > 1]
        by_size = sorted(grown, key=lambda j: sizes[j])
        places = np.unique(np.linspace(0, len(by_size) - 1, n_sampled).round().astype(int))
        sampled = [by_size[i] for i in places]
        times, values, pure = [], [], 0.0
        for j in sampled:
            seconds, value = cpu_time(
                plain_hh, self.X, self.codes, self.n_classes, self.P, self.members(j)
            )
            times.append(seconds)
            values.append(value)
            with use_core("pure"):
                pure += cpu_time(self.kernel, take_neighbourhoods(*self.balls, np.array([j])))[0]
        total = np.interp(sizes[grown], sizes[sampled], times).sum()
        return total, sampled, np.array(values), sum(times) / pure


def measure(case, n_sampled):
    """Every figure of one case."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
        plain, sampled, values, pure_ratio = case.reference(n_sampled)
    exact_time, exact = cpu_time(case.kernel)
    fast_time, fast = cpu_time(case.kernel, mode="fast")
    net_time, (net_mean, n_cells) = cpu_time(case.with_net)
    other_seed = case.kernel(random_state=1)
    return {
        "case": case.name,
        "forests": len(case.first),
        "sampled": len(sampled),
        "plain_s": plain,
        "exact_s": exact_time,
        "exact_x": plain / exact_time,
        "fast_s": fast_time,
        "fast_x": plain / fast_time,
        "net_s": net_time,
        "net_forests": n_cells,
        "net_x": plain / net_time,
        "pure_x": pure_ratio,
        "parity": np.abs(exact[sampled] - values).max(),
        "mean_hh": exact[case.bucket].mean(),
        "seed_diff": abs(other_seed[case.bucket].mean() - exact[case.bucket].mean()),
        "fast_diff": abs(fast[case.bucket].mean() - exact[case.bucket].mean()),
        "net_diff": abs(net_mean - exact[case.bucket].mean()),
    }


def show(row, header=False):
    formats = {"case": "14s", "forests": "7d", "sampled": "7d", "net_forests": "11d"}
    if header:
        widths = {
            name: int("".join(c for c in formats.get(name, "9") if c.isdigit())) for name in row
        }
        print("  ".join(f"{name:>{widths[name]}s}" for name in row))
    cells = []
    for name, value in row.items():
        if name in formats:
            cells.append(format(value, formats[name]))
        elif name == "parity":
            cells.append(f"{value:9.1e}")
        elif name.endswith("_x"):
            cells.append(f"{value:9.1f}" if value < 100 else f"{value:9.0f}")
        else:
            cells.append(f"{value:9.4f}" if value < 100 else f"{value:9.0f}")
    print("  ".join(cells), flush=True)


COLD = """
import time, numpy as np, sklearn.ensemble, sklearn.neighbors
X, y, P = np.random.rand(60, 3), np.arange(60) % 2, np.full((60, 2), 0.5)
begin = time.perf_counter()
from hetcal.kernels.local_forests import local_forest_scores
from hetcal.kernels.neighbourhoods import hellinger_balls
local_forest_scores(X, y, 2, P, *hellinger_balls(P, P[:1]))
print(time.perf_counter() - begin)
"""


def cold_start():
    """Seconds from scikit-learn imported to the first result, the best of three processes."""
    runs = [
        subprocess.run([sys.executable, "-c", COLD], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    return min(float(run.stdout) for run in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=3, help="reference neighbourhoods per case")
    parser.add_argument("--cases", nargs="*", help='such as "moons SVM"; all by default')
    parser.add_argument("--out", help="CSV for the figures, written after each case")
    options = parser.parse_args()
    rows = []
    for dataset, classifiers in CASES.items():
        for classifier in classifiers:
            if options.cases and f"{dataset} {classifier}" not in options.cases:
                continue
            row = measure(Case(dataset, classifier), options.sample)
            show(row, header=not rows)
            rows.append(row)
            if options.out:
                pd.DataFrame(rows).to_csv(options.out, index=False, float_format="%.6g")
    print()
    for mode in ("exact", "fast", "net"):
        ratios = np.array([row[f"{mode}_x"] for row in rows])
        print(
            f"{mode:5s}  geometric mean {np.exp(np.log(ratios).mean()):.0f} x "
            f"(bar {BARS['geometric mean']}), worst {ratios.min():.0f} x (bar {BARS['worst']})"
        )
    for row in rows:
        if row["case"] in ("moons SVM", "mnist-4v9 SVM"):
            print(
                f"shared neighbourhoods, {row['case']}: {row['net_x']:.0f} x (bar {BARS['shared']})"
            )
    print(f"pure: worst {min(row['pure_x'] for row in rows):.1f} x (bar {BARS['pure']})")
    print(
        f"parity with the plain algorithm on the sample: {max(row['parity'] for row in rows):.1e}"
    )
    print(f"cold start beyond importing scikit-learn: {1000 * cold_start():.0f} ms (bar 100)")


if __name__ == "__main__":
    main()
