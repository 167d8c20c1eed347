"""What the support monitor catches, how soon, and how often it raises a false alarm.

    HETCAL_DATA=... python benchmarks/monitor.py              # the tables of the user guide
    HETCAL_DATA=... python benchmarks/monitor.py --runs 5     # a first look
    python benchmarks/monitor.py --blindness                  # what support alone does not see
    python benchmarks/monitor.py --speed                      # what an update costs

mnist-1v7, a linear SVM on 500 items, SWC on 3000; new items of which 0, 10, 50 or 100 % are turned
by 90 degrees, as in the paper. Every run redraws training, calibration and new items. All methods
work at the same level, 1 % of false alarms per stream.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import pairwise_distances

from hetcal import SimilarityCalibrator, SupportMonitor
from hetcal.calibration import get_calibrator
from hetcal.datasets import load_dataset, paper_classifier
from hetcal.monitor.bins import N_BINS, unit_bins
from hetcal.monitor.conformal import discoveries, running_p_values
from hetcal.monitor.martingale import Martingale

LEVEL, N_TRAIN, N_CAL, LENGTH, N_STREAMS = 0.01, 500, 3000, 600, 4
SHARES = (0.0, 0.1, 0.5, 1.0)
NEVER = np.inf


@dataclass
class Run:
    """One draw: scaled features and probabilities of calibration, straight and turned items."""

    X_cal: np.ndarray
    y_cal: np.ndarray
    P_cal: np.ndarray
    straight: tuple[np.ndarray, np.ndarray]
    turned: tuple[np.ndarray, np.ndarray]
    rng: np.random.Generator

    @classmethod
    def draw(cls, pixels: np.ndarray, y: np.ndarray, seed: int) -> Run:
        """Train the classifier and turn some of the items that it has not seen."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(pixels))
        train, cal, new = np.split(order, [N_TRAIN, N_TRAIN + N_CAL])
        center, spread = pixels[train].mean(axis=0), pixels[train].std(axis=0)
        spread[spread == 0] = 1.0
        scaled = (pixels - center) / spread
        classifier = paper_classifier("SVM").fit(scaled[train], y[train])
        straight, to_turn = np.split(new, 2)
        images = np.rot90(pixels[to_turn].reshape(-1, 28, 28), k=1, axes=(1, 2))
        turned = (images.reshape(len(to_turn), -1) - center) / spread

        def judged(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return X, classifier.predict_proba(X)

        X_cal, P_cal = judged(scaled[cal])
        return cls(X_cal, y[cal], P_cal, judged(scaled[straight]), judged(turned), rng)

    def stream(self, share: float, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return features, probabilities, and which items are turned."""
        turned = self.rng.random(length) < share
        rows = [
            self.rng.choice(len(part[0]), length, replace=False)
            for part in (self.straight, self.turned)
        ]
        X, P = (
            np.where(turned[:, None], self.turned[j][rows[1]], self.straight[j][rows[0]])
            for j in (0, 1)
        )
        return X, P, turned


def monitors(run: Run) -> dict[str, SupportMonitor]:
    """Return the monitors that are compared, fitted."""
    swc = get_calibrator("swc").fit(run.X_cal, run.y_cal, y_proba=run.P_cal)
    made = {
        name: SupportMonitor(swc, distance=distance, alarm_rate=LEVEL)
        for name, distance in (
            ("support and nearest", "nearest"),
            ("support and isolation", "isolation"),
            ("support alone", None),
        )
    }
    for monitor in made.values():
        monitor.fit(run.X_cal, y_proba=run.P_cal)
    part = N_CAL * 2 // 3
    less = get_calibrator("swc").fit(run.X_cal[:part], run.y_cal[:part], y_proba=run.P_cal[:part])
    held_out = SupportMonitor(less, reference="split", alarm_rate=LEVEL)
    made["split: support and nearest"] = held_out.fit(run.X_cal[part:], y_proba=run.P_cal[part:])
    return made


def delay(monitor: SupportMonitor, X: np.ndarray, P: np.ndarray) -> tuple[float, pd.DataFrame]:
    """Return after how many items the whole stream alarmed, and the table of items."""
    before = monitor.reset().n_seen_
    items = monitor.update(X, y_proba=P)
    own = [alarm["time"] for alarm in monitor.alarms_ if alarm["who"] == "all items"]
    return (own[0] - before if own else NEVER), items


class Oracle:
    """The best sequential test on the monitor's scores: it knows both laws and the share.

    Its capital is the likelihood ratio of "this share is turned" to "none is", by a grid over
    support and distance (or support alone) that was counted on thousands of items of either kind.
    """

    def __init__(self, monitor: SupportMonitor, run: Run, n_scores: int):
        self.monitor, self.n_scores = monitor, n_scores
        straight, turned = (self._scores(*part) for part in (run.straight, run.turned))
        n_bins = 14 if n_scores > 1 else 40
        both = np.vstack([straight, turned])
        self.edges = [
            np.quantile(both[:, j], np.linspace(0, 1, n_bins + 1)[1:-1]) for j in range(n_scores)
        ]
        counts = [self._grid(part) + 0.5 for part in (straight, turned)]
        self.straight, self.turned = (part / part.sum() for part in counts)

    def delay(self, X: np.ndarray, P: np.ndarray, share: float) -> float:
        """Return after how many items the capital reaches 1 / level."""
        cell = self._cells(self._scores(X, P))
        ratio = 1 - share + share * self.turned[cell] / self.straight[cell]
        return first(np.cumsum(np.log(ratio)) >= np.log(1 / LEVEL))

    def _scores(self, X: np.ndarray, P: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng(0)
        reference = self.monitor.reference_
        watched, scorer = self.monitor.calibrator_, self.monitor.scorer_
        scores = scorer.scores(watched, X, {"y_proba": P}, reference.n_trees, rng)
        return scores[: self.n_scores].T

    def _cells(self, scores: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(np.searchsorted(e, scores[:, j]) for j, e in enumerate(self.edges))

    def _grid(self, scores: np.ndarray) -> np.ndarray:
        counts = np.zeros([len(e) + 1 for e in self.edges])
        np.add.at(counts, self._cells(scores), 1)
        return counts


def first(over: np.ndarray) -> float:
    """Return the number of the first item that is over a bound."""
    places = np.flatnonzero(over)
    return float(places[0] + 1) if len(places) else NEVER


def ranked_delay(reference: np.ndarray, scores: np.ndarray, rng: np.random.Generator) -> float:
    """Return the delay of the same martingale on another score in [0, 1]; low is atypical."""
    counts = np.bincount(unit_bins(reference), minlength=N_BINS).astype(np.int64)
    p = running_p_values(counts, unit_bins(scores), rng.random(len(scores)))
    return first(Martingale.start(1).after(p[None])[1][0] >= np.log(1 / LEVEL))


def confidence(P: np.ndarray) -> np.ndarray:
    """Return the top probability, spread out where it saturates."""
    return np.clip(-np.log10(np.maximum(1 - P.max(axis=1), 1e-12)) / 12, 0, 1)


def classifier_drift(reference: np.ndarray, new: np.ndarray, seed: int) -> float:
    """Return the p-value that a forest cannot tell old from new, by out-of-bag votes."""
    X = np.vstack([reference, new])
    warnings.simplefilter("ignore", UserWarning)  # an item that every tree has drawn
    is_new = np.arange(len(X)) >= len(reference)
    forest = RandomForestClassifier(
        60, oob_score=True, class_weight="balanced", min_samples_leaf=2, random_state=seed
    ).fit(X, is_new)
    votes = forest.oob_decision_function_[:, 1]
    return float(mannwhitneyu(votes[is_new], votes[~is_new], alternative="greater").pvalue)


def mmd_drift(reference: np.ndarray, new: np.ndarray, rng: np.random.Generator) -> float:
    """Return the permutation p-value of the maximum mean discrepancy (Gaussian kernel)."""
    X = np.vstack([reference, new])
    D = pairwise_distances(X, metric="sqeuclidean")
    K = np.exp(-D / np.median(D[D > 0]))
    np.fill_diagonal(K, 0.0)
    n, m = len(reference), len(new)
    base = np.concatenate([np.full(n, 1 / n), np.full(m, -1 / m)])
    drawn = np.stack([base, *(rng.permutation(base) for _ in range(399))])
    values = ((drawn @ K) * drawn).sum(axis=1)
    return float((values >= values[0] - 1e-15).mean())


def one_run(run: Run, seed: int) -> tuple[list[dict], list[dict], list[dict]]:
    """Return delays, flags and batch tests of one run."""
    delays, flags, batches = [], [], []
    made = monitors(run)
    oracles = {
        "oracle on support": Oracle(made["support alone"], run, 1),
        "oracle on support and nearest": Oracle(made["support and nearest"], run, 2),
    }
    sure = confidence(run.P_cal)
    old = run.X_cal[:400]
    for share in SHARES:
        for number in range(N_STREAMS):
            X, P, turned = run.stream(share, LENGTH)
            row = {"seed": seed, "share": share}
            for name, monitor in made.items():
                after, items = delay(monitor, X, P)
                delays.append(row | {"method": name, "delay": after})
                flags.append(row | {"method": name} | quality(items, turned))
                if name == "support and isolation":
                    alone = pd.DataFrame({"flag": items["p_distance"] <= LEVEL})
                    alone["discovery"] = discoveries(items["p_distance"], monitor.fdr)
                    flags.append(row | {"method": "isolation alone"} | quality(alone, turned))
                    usual, new = monitor.reference_.scores[1], -items["distance"].to_numpy()
                    late = ranked_delay(usual, new, run.rng)
                    delays.append(row | {"method": "isolation alone", "delay": late})
            if share > 0:
                delays += [
                    row | {"method": name, "delay": oracle.delay(X, P, share)}
                    for name, oracle in oracles.items()
                ]
            late = ranked_delay(sure, confidence(P), run.rng)
            delays.append(row | {"method": "confidence of the model", "delay": late})
            if number == 0:
                for m in (50, 200):
                    tests = {
                        "classifier on X": classifier_drift(old, X[:m], seed),
                        "MMD on X": mmd_drift(old, X[:m], run.rng),
                    }
                    batches += [
                        row | {"method": name, "items": m, "found": p <= LEVEL}
                        for name, p in tests.items()
                    ]
    return delays, flags, batches


def quality(items: pd.DataFrame, turned: np.ndarray) -> dict[str, float]:
    """Return counts from which precision and recall are computed."""
    out = {"n": len(items), "turned": int(turned.sum())}
    for name in ("flag", "discovery"):
        marked = items[name].to_numpy()
        out |= {name: int(marked.sum()), f"{name}_right": int((marked & turned).sum())}
    return out


def show(delays: pd.DataFrame, flags: pd.DataFrame, batches: pd.DataFrame) -> None:
    """Print the tables."""
    delays["within_50"], delays["within_200"] = delays.delay <= 50, delays.delay <= 200
    delays["ever"] = np.isfinite(delays.delay)
    by = delays.groupby(["share", "method"])
    table = by[["within_50", "within_200", "ever"]].mean()
    table["median"] = by.delay.median()
    table["90 %"] = by.delay.quantile(0.9, interpolation="higher")
    print(f"\nStream alarms ({LENGTH} items; ever = within them)\n{table.round(3).to_string()}")
    drift = batches.groupby(["share", "method", "items"]).found.mean().unstack("items")
    print(f"\nBatch tests on X at {LEVEL:.0%}: share of runs that find it\n{drift.round(3)}")
    null = flags[flags.share == 0]
    by_seed = null.groupby(["method", "seed"])[["flag", "n"]].sum()
    rate = (by_seed.flag / by_seed.n).groupby("method").agg(["mean", "std", "min", "max"])
    rate["standard error"] = rate["std"] / np.sqrt(null.seed.nunique())
    print(f"\nFlag rate at 0 % (nominal {LEVEL})\n{rate.round(4).to_string()}")
    total = flags[flags.share > 0].groupby(["share", "method"]).sum(numeric_only=True)
    for name in ("flag", "discovery"):
        total[f"{name}: precision"] = total[f"{name}_right"] / total[name].clip(lower=1)
        total[f"{name}: recall"] = total[f"{name}_right"] / total["turned"]
    print(f"\nFlagged items\n{total.filter(like=':').round(3).to_string()}")


def blindness() -> None:
    """Print the share of items flagged at 1 % when one of d normal features is shifted."""
    rows = []
    for d in (2, 10, 50, 200):
        rng = np.random.default_rng(d)

        def draw(n: int, d: int = d, rng: np.random.Generator = rng):
            X = rng.normal(size=(n, d))
            p = 1 / (1 + np.exp(-X[:, 0]))
            truth = 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1]))
            return X, (rng.random(n) < truth).astype(int), np.column_stack([1 - p, p])

        X, y, P = draw(1500)
        swc = SimilarityCalibrator().fit(X, y, y_proba=P)
        new, _, P_new = draw(2000)
        for shift in (0, 4, 10):
            moved = new.copy()
            moved[:, -1] += shift
            row = {"features": d, "shift": shift}
            for kind in ("isolation", "nearest"):
                monitor = SupportMonitor(swc, distance=kind).fit(X, y_proba=P)
                for score in ("support", "distance", "all"):
                    name = {"support": "support", "distance": kind, "all": f"support+{kind}"}
                    p = monitor.p_values(moved, y_proba=P_new, score=score)
                    row[name[score]] = (p <= LEVEL).mean()
            rows.append(row)
    print(pd.DataFrame(rows).round(3).to_string(index=False))


def speed() -> None:
    """Print what an update costs, and how large the file of a monitor is that has seen much."""
    from hetcal import save
    from hetcal.datasets import make_hidden_heterogeneity

    data = make_hidden_heterogeneity(3000, n_features=20, random_state=0)
    swc = SimilarityCalibrator().fit(data.X, data.y, y_proba=data.y_proba)
    new = data.sample(100_000, random_state=1)
    for kind in ("nearest", "isolation", None):
        monitor = SupportMonitor(swc, distance=kind).fit(data.X, y_proba=data.y_proba)
        for size in (100, 10_000):
            started = time.process_time()
            for start in range(0, 20 * size if size < 1000 else len(new.X), size):
                rows = slice(start, start + size)
                monitor.update(new.X[rows], y_proba=new.y_proba[rows])
            n = 20 * size if size < 1000 else len(new.X)
            spent = (time.process_time() - started) / n
            print(f"{kind}: batches of {size}: {spent * 1e6:.0f} microseconds per item")
        with tempfile.TemporaryDirectory() as folder:
            save(swc, f"{folder}/c.hetcal")
            save(monitor, f"{folder}/m.hetcal")
            sizes = [Path(folder, f"{name}.hetcal").stat().st_size / 1e6 for name in "cm"]
        print(f"{kind}: file of the calibrator {sizes[0]:.1f} MB, of the monitor {sizes[1]:.1f} MB")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--blindness", action="store_true")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    if options.blindness or options.speed:
        blindness() if options.blindness else speed()
        return
    if not os.environ.get("HETCAL_DATA"):
        raise SystemExit("Set HETCAL_DATA to the folder of the data sets.")
    data = load_dataset("mnist-1v7")
    pixels, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    started, found = time.process_time(), ([], [], [])
    for seed in range(options.runs):
        for total, part in zip(found, one_run(Run.draw(pixels, y, seed), seed), strict=True):
            total.extend(part)
    show(*map(pd.DataFrame, found))
    print(f"\n{options.runs} runs, {time.process_time() - started:.0f} s of CPU")


if __name__ == "__main__":
    main()
