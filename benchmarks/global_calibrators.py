"""Global calibrators against their peers, and what "global" costs behind a perfect model.

    HETCAL_DATA=folder python benchmarks/global_calibrators.py                  # confirm
    HETCAL_DATA=folder python benchmarks/global_calibrators.py --part develop
    python benchmarks/global_calibrators.py --part perfect --draws 200
    python benchmarks/global_calibrators.py --part cost

Rivals that are not installed are left out (``pip install netcal torch probmetrics numba betacal
venn-abers``). All have their documented defaults.

Which cells developed a setting, and which only confirm
--------------------------------------------------------
Written down before the first run. ``DEVELOP`` chose, with trials 100 and up: which maps "global"
averages, its imagined items, the shrinkage of "matrix", the penalties of "spline". The older maps
were developed on mnist-3v5, mnist-1v7, letter DT, mnist10 and the two resnet20 (ridges of bcts and
vector, the common prior of Platt and beta, smoothed targets, isotonic's pseudo-error, histogram
bins, the floor for hard zeros). ``CONFIRM`` has other data sets and networks, trials 0 and up, and
was run once, when everything was fixed. Of it fashion-mnist and the resnet56 were already looked at
when the older maps were confirmed.

How the scores are computed
---------------------------
All calibrators of a cell see the same calibration items; test items are the split's own and the
unused rest of the pool. Log loss cuts probabilities at 1e-15 (a method that says "impossible" pays
34.5 nats for each such item). Network outputs reach every calibrator as float64 probabilities.
Ratios are geometric means over cells and sizes of trial means.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from hetcal.calibration import GlobalCalibrator, get_calibrator, list_calibrators
from hetcal.paper.data import trial_data

DEVELOP = [
    *(("mnist-1v7", name) for name in ("RF", "SVM", "DT")),
    *(("mnist-4v9", name) for name in ("NB", "DT", "RF", "SVM", "GBT")),
    *((table, name) for table in ("adult", "credit-default") for name in ("LR", "NB", "GBT")),
    *(("mnist10", name) for name in ("NB", "RF", "DT")),
    *(("letter", name) for name in ("NB", "DT", "RF", "SVM")),
    ("cifar10", "resnet20"),
    ("cifar100", "resnet20"),
]
CONFIRM = [
    *(("mnist-3v8", name) for name in ("NB", "DT", "RF", "SVM", "GBT")),
    *(("bank-marketing", name) for name in ("LR", "NB", "GBT")),
    *(("fashion-mnist", name) for name in ("NB", "DT", "RF", "SVM")),
    *((data, net) for data in ("cifar10", "cifar100") for net in ("resnet56", "repvgg_a2")),
]
SIZES = (200, 1000, 3000)
POOL = 3000
FIRST_TRIAL = {"develop": 100, "confirm": 0}

Calibrate = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class ReadsProba(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose features are its probabilities, for scikit-learn's wrapper."""

    def __init__(self, n_classes: int = 2):
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def fit(self, X, y):
        """Do nothing."""
        return self

    def predict_proba(self, X):
        """Return the features."""
        return np.asarray(X)

    def predict(self, X):
        """Return the most probable class."""
        return self.classes_[np.asarray(X).argmax(axis=1)]

    def __sklearn_is_fitted__(self):
        return True


class ReadsLogProba(ReadsProba):
    """The same with a decision function, which scikit-learn prefers to probabilities."""

    def decision_function(self, X):
        """Return log-odds (two classes) or log-probabilities."""
        L = np.log(np.clip(X, 1e-12, 1))
        return L[:, 1] - L[:, 0] if self.n_classes == 2 else L


def hetcal(name: str, preset: str | None = None) -> Calibrate:
    def run(P, y, P_new):
        calibrator = get_calibrator(name, preset=preset, classes=np.arange(P.shape[1]))
        return calibrator.fit(None, y, y_proba=P).predict_proba(y_proba=P_new)

    return run


def scikit_learn(method: str, reader: type[ReadsProba] = ReadsProba) -> Calibrate:
    def run(P, y, P_new):
        wrapped = CalibratedClassifierCV(FrozenEstimator(reader(P.shape[1])), method=method)
        return wrapped.fit(P, y).predict_proba(P_new)

    return run


def netcal(module: str, name: str, **options) -> Calibrate:
    def run(P, y, P_new):
        make = getattr(importlib.import_module(f"netcal.{module}"), name)
        binary = P.shape[1] == 2
        calibrator = make(**options).fit(P[:, 1] if binary else P, y)
        Q = np.asarray(calibrator.transform(P_new[:, 1] if binary else P_new), dtype=float)
        return np.column_stack([1 - Q.ravel(), Q.ravel()]) if binary else Q

    return run


def probmetrics(name: str, home: str | None = None, **options) -> Calibrate:
    """Return a map of probmetrics by its name in the factory, or a class of one of its modules."""

    def run(P, y, P_new):
        if home is None:
            make = importlib.import_module("probmetrics.calibrators").get_calibrator
            calibrator = make(name, **options)
        else:
            module = importlib.import_module(f"probmetrics.calibrators.{home}")
            calibrator = getattr(module, name)(**options)
        return np.asarray(calibrator.fit(P, y).predict_proba(P_new), dtype=float)

    return run


def venn_abers(P, y, P_new):
    from venn_abers import VennAbersCalibrator

    said = VennAbersCalibrator().predict_proba(p_cal=P, y_cal=y, p_test=P_new)
    return np.asarray(said, dtype=float)


def betacal(P, y, P_new):
    from betacal import BetaCalibration

    q = BetaCalibration(parameters="abm").fit(P[:, 1], y).predict(P_new[:, 1])
    return np.column_stack([1 - q, q])


def only(run: Calibrate, least: int = 2, most: int = 1000) -> Calibrate:
    """Return a contestant that takes part with so many classes."""
    return lambda P, y, P_new: run(P, y, P_new) if least <= P.shape[1] <= most else None


def families() -> dict[str, dict[str, Calibrate]]:
    """Return the contestants; the first of each family is hetcal's default."""
    names = [name for name in list_calibrators() if is_global(name)]
    table: dict[str, dict[str, Calibrate]] = {name: {"hetcal": hetcal(name)} for name in names}
    # A matrix takes long with a hundred classes, and probmetrics' own has as many parameters.
    table["platt"] |= {
        "sklearn sigmoid": scikit_learn("sigmoid"),
        "sklearn sigmoid on log p": scikit_learn("sigmoid", ReadsLogProba),
    }
    table["temperature"] |= {"sklearn temperature": scikit_learn("temperature")}
    table["isotonic"] |= {"sklearn isotonic": scikit_learn("isotonic")}
    if installed("netcal"):
        # Minutes per fit beyond ten classes.
        logistic = netcal("scaling", "LogisticCalibration")
        table["platt"]["netcal logistic"] = only(logistic, most=2)
        table["vector"]["netcal logistic"] = only(logistic, 3, 10)
        table["temperature"]["netcal"] = netcal("scaling", "TemperatureScaling")
        table["beta"]["netcal"] = only(netcal("scaling", "BetaCalibration"), most=2)
        table["isotonic"]["netcal"] = netcal("binning", "IsotonicRegression")
        table["histogram"]["netcal 10 bins"] = netcal("binning", "HistogramBinning", bins=10)
    if installed("probmetrics") and installed("numba"):
        for family, name, classes in (
            ("platt", "platt", (2, 1000)),
            ("platt", "platt-logits", (2, 1000)),
            ("platt", "affine-scaling", (2, 2)),
            ("temperature", "temp-scaling", (2, 1000)),
            ("temperature", "ts-mix", (2, 1000)),
            ("temperature", "linear-scaling", (2, 2)),
            ("temperature", "guo-ts", (2, 1000)),
            ("vector", "svs", (3, 1000)),
            ("matrix", "sms", (3, 1000)),
            ("matrix", "logistic", (2, 10)),
            ("matrix", "logistic-mix", (2, 10)),
            ("quadratic", "quadratic-scaling", (2, 2)),
            ("isotonic", "isotonic", (2, 1000)),
            ("isotonic", "cir", (2, 10)),
            ("venn-abers", "ivap-ovr", (2, 10)),
            ("venn-abers", "ivap-ovo", (2, 10)),
        ):
            table[family][f"probmetrics {name}"] = only(probmetrics(name), *classes)
        ets = probmetrics("ETSCalibrator", "temperature_scaling")
        table["ets"]["probmetrics ets"] = ets
        ets = probmetrics("ETSCalibrator", "temperature_scaling", loss="ce")
        table["ets"]["probmetrics ets ce"] = ets
        spline = only(probmetrics("CDFSplineCalibrator", "splines"), most=2)
        table["spline"]["probmetrics cdf-spline"] = spline
        if installed("betacal"):
            table["beta"]["probmetrics beta"] = only(probmetrics("beta"), most=2)
    if installed("betacal"):
        table["beta"]["betacal"] = only(betacal, most=2)
    if installed("venn_abers"):
        table["venn-abers"]["venn-abers"] = only(venn_abers, most=10)
    return table


def is_global(name: str) -> bool:
    return isinstance(get_calibrator(name), GlobalCalibrator)


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def pools(cells, trials: range) -> Iterator[tuple[str, int, tuple]]:
    """Yield each cell's probabilities and labels: calibration pool, test set."""
    for dataset, classifier in cells:
        n_pool = 5000 if dataset == "letter" or dataset.startswith("cifar") else 8000
        for seed in trials:
            data = trial_data(dataset, classifier, n_pool, seed)
            P, y = data.P_cal.astype(np.float64), data.y_cal
            P_test = np.vstack([data.P_test, P[POOL:]])
            y_test = np.append(data.y_test, y[POOL:])
            yield f"{dataset} {classifier}", seed, (P[:POOL], y[:POOL], P_test, y_test)


def scores(Q: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    rows = np.arange(y.shape[0])
    error = Q.copy()
    error[rows, y] -= 1
    return -np.log(np.clip(Q[rows, y], 1e-15, 1)).mean(), (error**2).sum(axis=1).mean()


def tried(run: Calibrate, P, y, P_new) -> tuple[np.ndarray | None, str]:
    """Return the predictions, or why there are none; None and no reason where it does not apply."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            Q = run(P, y, P_new)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"[:80]
    if Q is not None and (Q.shape != P_new.shape or not np.isfinite(Q).all()):
        return None, "not finite, or of another shape"
    return Q, ""


def measure(cells, sizes, trials: range, out: Path | None, ours: bool) -> pd.DataFrame:
    """Return one row per cell, size, trial, family and contestant, or hetcal's own alone."""
    records = []
    for cell, seed, (P, y, P_test, y_test) in pools(cells, trials):
        for n in sizes:
            for family, contestants in families().items():
                for name, run in contestants.items():
                    if ours and name != "hetcal":
                        continue
                    begin = time.process_time()
                    Q, failure = tried(run, P[:n], y[:n], P_test)
                    if Q is None and not failure:
                        continue
                    log_loss, brier = (np.nan, np.nan) if Q is None else scores(Q, y_test)
                    records.append(
                        {
                            "cell": cell,
                            "n_cal": n,
                            "seed": seed,
                            "classes": P.shape[1],
                            "family": family,
                            "method": name,
                            "log_loss": log_loss,
                            "brier": brier,
                            "cpu_s": time.process_time() - begin,
                            "failure": failure,
                        }
                    )
        if out:
            pd.DataFrame(records).to_csv(out, index=False)
        print(cell, seed, file=sys.stderr, flush=True)
    return pd.DataFrame(records)


def read_scores(path: Path) -> pd.DataFrame:
    return pd.read_csv(path).fillna({"failure": ""})


def compare(ours: pd.DataFrame, theirs: pd.DataFrame) -> dict[str, float]:
    """Return geometric means of ratios on common cells, and how often ours is better."""
    ours, theirs = (
        part.groupby(["cell", "n_cal"])[["log_loss", "brier", "cpu_s"]].mean()
        for part in (ours, theirs)
    )
    theirs = theirs.dropna()
    common = ours.index.intersection(theirs.index)
    ratio = ours.loc[common] / theirs.loc[common]
    if common.empty:
        return {"cells": 0}
    return {
        "cells": len(common),
        "log_loss": np.exp(np.log(ratio["log_loss"]).mean()),
        "brier": np.exp(np.log(ratio["brier"]).mean()),
        "wins log_loss": (ratio["log_loss"] < 1).mean(),
        "wins brier": (ratio["brier"] < 1).mean(),
        "worst log_loss": ratio["log_loss"].max(),
        "worst": " ".join(map(str, ratio["log_loss"].idxmax())),
        "cpu_s": theirs.loc[common, "cpu_s"].mean(),
    }


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Return ratios of each family's default, and of "global", to every rival."""
    rows = []
    for two, part in results.groupby(results["classes"] == 2):
        best = part[(part["family"] == "global") & (part["method"] == "hetcal")]
        for (family, method), theirs in part.groupby(["family", "method"], sort=False):
            ours = part[(part["family"] == family) & (part["method"] == "hetcal")]
            for name, mine in ((family, ours), ("global", best)):
                if (name, "hetcal") != (family, method):
                    rival = {"hetcal": name, "rival": f"{method} {family}"}
                    rows.append({"classes": "2" if two else "3+"} | rival | compare(mine, theirs))
    table = pd.DataFrame(rows)
    return table[table["cells"] > 0].drop_duplicates(["classes", "hetcal", "rival"])


def perfect(draws: int, sizes) -> pd.DataFrame:
    """Return what "global" costs behind a Bayes-optimal model, in percent of its Brier score."""
    shapes = {
        "two: uniform": lambda rng, n: beta_rows(rng, n, 1, 1),
        "two: sharp": lambda rng, n: beta_rows(rng, n, 0.3, 0.3),
        "two: near even": lambda rng, n: beta_rows(rng, n, 5, 5),
        "two: rare": lambda rng, n: beta_rows(rng, n, 1, 9),
        "two: five values": lambda rng, n: five_values(rng, n),
        "four: flat": lambda rng, n: rng.dirichlet(np.ones(4), n),
        "four: sharp": lambda rng, n: rng.dirichlet(np.full(4, 0.3), n),
        "four: uneven": lambda rng, n: rng.dirichlet([2, 1, 0.5, 0.25], n),
    }
    rows = {}
    for place, (name, draw) in enumerate(shapes.items()):
        for n in sizes:
            rng = np.random.default_rng([2026, place, n])
            cost = [one_cost(rng, draw, n) for _ in range(draws)]
            error = np.std(cost) / np.sqrt(draws)
            rows[name, n] = f"{100 * np.mean(cost):.2f} +- {100 * error:.2f}"
            print(name, n, rows[name, n], file=sys.stderr, flush=True)
    return pd.Series(rows).unstack()


def one_cost(rng, draw, n: int) -> float:
    while True:
        P = draw(rng, n).clip(1e-9)
        P /= P.sum(axis=1, keepdims=True)
        y = (P.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, P.shape[1] - 1)
        if np.unique(y).shape[0] > 1:
            break
    new = draw(rng, 4000).clip(1e-9)
    new /= new.sum(axis=1, keepdims=True)
    Q = hetcal("global")(P, y, new)
    return ((Q - new) ** 2).sum(axis=1).mean() / (new * (1 - new)).sum(axis=1).mean()


def beta_rows(rng, n: int, a: float, b: float) -> np.ndarray:
    q = rng.beta(a, b, n)
    return np.column_stack([1 - q, q])


def five_values(rng, n: int) -> np.ndarray:
    q = rng.choice([0.05, 0.2, 0.4, 0.7, 0.95], n)
    return np.column_stack([1 - q, q])


def cost() -> pd.DataFrame:
    """Return processor seconds of every map's fit."""
    rng, rows = np.random.default_rng(0), {}
    for n, K in ((3000, 2), (5000, 10)):
        Z = rng.normal(size=(n, K)) * 3
        truth, P = softmax(Z / 2, axis=1), softmax(Z, axis=1)
        y = (truth.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, K - 1)
        for name in filter(is_global, list_calibrators()):
            begin = time.process_time()
            get_calibrator(name).fit(None, y, y_proba=P)
            rows[name, f"{n} items, {K} classes"] = time.process_time() - begin
    return pd.Series(rows).unstack()


def main() -> None:
    parser = argparse.ArgumentParser(description="Global calibrators against their peers.")
    parts = ["confirm", "develop", "perfect", "cost"]
    parser.add_argument("--part", choices=parts, default="confirm")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--cells", nargs="*", help="only cells whose name contains one of these")
    parser.add_argument("--out", type=Path, help="write every single score to this csv file")
    parser.add_argument("--rivals", type=Path, help="take their scores from such a file")
    parser.add_argument("--show", type=Path, help="summarise such a file and run nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    if options.part == "perfect":
        print(perfect(options.draws, options.sizes or (60, 100, 200)).to_string())
        return
    if options.part == "cost":
        print(cost().round(3).to_string())
        return
    if options.show:
        results = read_scores(options.show)
    else:
        if not os.environ.get("HETCAL_DATA"):
            sys.exit("Set HETCAL_DATA to the folder with the paper's data sets.")
        cells = CONFIRM if options.part == "confirm" else DEVELOP
        if options.cells:
            cells = [c for c in cells if any(part in " ".join(c) for part in options.cells)]
        first = FIRST_TRIAL[options.part]
        trials = range(first, first + options.trials)
        kept = read_scores(options.rivals) if options.rivals else None
        results = measure(cells, options.sizes or SIZES, trials, options.out, kept is not None)
        if kept is not None:
            results = pd.concat([results, kept[kept["method"] != "hetcal"]])
    table = summary(results)
    for classes, part in table.groupby("classes"):
        print(f"\n{classes} classes: ratios of hetcal's scores to the rival's, below 1 is better")
        print(part.drop(columns="classes").round(4).to_string(index=False))
    failed = results[results["failure"] != ""]
    if len(failed):
        print("\nFailures (left out of the means above):")
        print(failed.groupby(["method", "failure"]).size().to_string())


if __name__ == "__main__":
    main()
