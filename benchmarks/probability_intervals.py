"""How often `HybridCalibrator.predict_interval` holds P(y | x), and how wide it is.

    python benchmarks/probability_intervals.py --half confirm --items 500 --draws 2

On problems with known truth (`hetcal.datasets.list_problems`). Coverage is the share of new items
and classes whose P(y | x) lies inside; of two classes one counts. Beside it stands a bootstrap of
boosting on [X, log p], the mean of its replicates plus and minus so many of their standard
deviations, in log-odds, that it covers as much (which only who knows the truth can do). The
constants of the interval were chosen on the half "develop".
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy.sparse import issparse

from hetcal import HybridCalibrator
from hetcal.calibration.hybrid.retrained import BoostingFamily
from hetcal.data import CalibrationSet
from hetcal.datasets import list_problems, make_problem

N_NEW, N_REPLICATES, LEVEL = 1000, 20, 0.9
KINDS = ("alternative", "null")


def main() -> None:
    """Print one row per problem, then how many lie between 85 and 96 %."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("develop", "confirm"), default="confirm")
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0])
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--trees", type=int, default=60)
    parser.add_argument("--problems", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| problem | items | coverage | width | boosting, as wide as that takes | cost |")
    print("|---|---|---|---|---|---|")
    rows = []
    for name in options.problems or list_problems(options.kind, half=options.half):
        seeds = range(options.first_seed, options.first_seed + options.draws)
        draws = [one_draw(name, options.items, seed, options.trees) for seed in seeds]
        rows.append(np.mean(draws, axis=0))
        cells = "{:.3f} | {:.3f} | {:.3f} | {:.1f}".format(*rows[-1])
        print(f"| {name} | {options.items} | {cells} |", flush=True)
    table = np.array(rows)
    inside = ((table[:, 0] >= 0.85) & (table[:, 0] <= 0.96)).sum()
    print(
        f"{len(rows)} problems, {options.draws} draws: {inside} covered 85 to 96 %, "
        f"{(table[:, 0] > 0.96).sum()} more, {(table[:, 0] < 0.85).sum()} less; narrower than "
        f"boosting on {(table[:, 1] < table[:, 2]).sum()}, mean width {table[:, 1].mean():.3f} "
        f"instead of {table[:, 2].mean():.3f}."
    )


def one_draw(name: str, n: int, seed: int, n_trees: int) -> tuple[float, float, float, float]:
    """Return coverage, width, width of boosting, and the time of intervals over predictions."""
    draw = Draw(name, n, seed, n_trees)
    low, high, truth = draw.interval()
    coverage = np.mean((low <= truth) & (truth <= high))
    center, spread = bootstrap(draw, np.random.default_rng(seed))
    boosted = width_at(coverage, center, spread, log_odds(truth))
    plain = seconds(lambda: draw.hybrid.predict_proba(*draw.new[:1], y_proba=draw.new[1]))
    whole = seconds(lambda: draw.hybrid.predict_interval(*draw.new[:1], y_proba=draw.new[1]))
    return float(coverage), float(np.mean(high - low)), boosted, whole / plain


class Draw:
    """Items of a problem, a hybrid fitted to the first n, and N_NEW others."""

    def __init__(self, name: str, n: int, seed: int, n_trees: int):
        problem = make_problem(name, n + N_NEW, random_state=seed)
        X = problem.X.toarray() if issparse(problem.X) else problem.X
        self.items = CalibrationSet.check(
            X,
            problem.y,
            y_proba=problem.y_proba,
            groups=problem.groups,
            sample_weight=problem.sample_weight,
            classes=np.arange(problem.n_classes),
            caller="benchmark",
        )
        self.n = n
        self.hybrid = HybridCalibrator(n_estimators=n_trees).fit_set(self.items.take(np.arange(n)))
        self.new = (X.iloc[n:] if hasattr(X, "iloc") else X[n:], problem.y_proba[n:])
        self.counted = slice(1 if problem.n_classes == 2 else 0, None)
        self.truth = problem.true_proba[n:][:, self.counted]

    def interval(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return both ends for new items and classes, and the truth."""
        low, high = self.hybrid.predict_interval(self.new[0], y_proba=self.new[1], level=LEVEL)
        return low[:, self.counted], high[:, self.counted], self.truth


def bootstrap(draw: Draw, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of the log-odds that boosting says on resampled items."""
    items, new, said = draw.items, np.arange(draw.n, draw.n + N_NEW), []
    for _ in range(N_REPLICATES):
        family = BoostingFamily("boosting-small").fit(items.take(rng.choice(draw.n, draw.n)))
        Q = family.predict(items.features()[new], items.scores.take(new))[0]
        said.append(log_odds(Q[:, draw.counted]))
    return np.mean(said, axis=0), np.std(said, axis=0, ddof=1)


def width_at(coverage: float, center, spread, truth) -> float:
    """Return the mean width, in probabilities, of intervals scaled to this coverage."""
    factor = np.quantile(np.abs(truth - center) / np.maximum(spread, 1e-9), coverage)
    return float(np.mean(logistic(center + factor * spread) - logistic(center - factor * spread)))


def log_odds(p: np.ndarray) -> np.ndarray:
    """Return log-odds, finite for 0 and 1."""
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p / (1 - p))


def logistic(x: np.ndarray) -> np.ndarray:
    """Return the probability of log-odds."""
    return 1 / (1 + np.exp(-x))


def seconds(work) -> float:
    """Return the shortest of three times of the processor."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main()
