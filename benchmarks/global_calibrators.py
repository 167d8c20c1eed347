"""Global calibrators against their peers: mean log loss and Brier score on the paper's splits.

Run ``python benchmarks/global_calibrators.py`` with ``HETCAL_DATA`` naming the data folder. Rivals
that are not installed are left out (``pip install netcal torch probmetrics numba betacal``).
``--part develop`` runs the cells on which settings were chosen, ``--part confirm`` (the default)
the others. Each line of the table is one contestant beside hetcal's default of the same family, on
the cells that both could do; "worst" is the largest ratio of the default's score to the other's.

Which cells developed a setting, and which only confirm
--------------------------------------------------------
Chosen on mnist-3v5 {NB, DT, RF, SVM}, mnist-1v7 {RF, fully grown tree}, letter DT, mnist10 {NB, RF,
fully grown tree}, cifar10-resnet20 and cifar100-resnet20 at 50 to 3000 calibration items: the
ridges of the bias-corrected and vector maps (2; 2 and 5), the common prior of Platt and beta (1
item), the smoothed targets, isotonic's pseudo-error (0.5), the histogram's bins (4 times the cube
root) and prior (0.5), and the largest floor for hard zeros (0.01). The confirming cells were not
looked at, beyond the paper preset's parity, before these were fixed.

How the scores are computed
---------------------------
All calibrators of a cell see the same calibration items; test items are the split's own and the
unused rest of the pool. Log loss cuts probabilities at 1e-15 (a method that says "impossible" pays
34.5 nats for each such item). Network outputs reach every calibrator as float64 probabilities.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
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
from sklearn.tree import DecisionTreeClassifier

from hetcal.calibration import get_calibrator
from hetcal.datasets import paper_classifier, paper_split

CONFIRM = [
    ("mnist-4v9", "NB"),
    ("mnist-4v9", "DT"),
    ("mnist-4v9", "RF"),
    ("mnist-4v9", "SVM"),
    ("fashion-mnist", "NB"),
    ("fashion-mnist", "RF"),
    ("letter", "NB"),
    ("letter", "RF"),
    ("cifar10-resnet56", ""),
    ("cifar100-resnet56", ""),
]
DEVELOP = [
    ("mnist-3v5", "NB"),
    ("mnist-3v5", "DT"),
    ("mnist-3v5", "RF"),
    ("mnist-3v5", "SVM"),
    ("mnist-1v7", "RF"),
    ("mnist-1v7", "DT1"),
    ("letter", "DT"),
    ("mnist10", "NB"),
    ("mnist10", "RF"),
    ("mnist10", "DT1"),
    ("cifar10-resnet20", ""),
    ("cifar100-resnet20", ""),
]
SIZES = (200, 1000, 3000)
POOL_START = 3000

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


def probmetrics(name: str) -> Calibrate:
    def run(P, y, P_new):
        from probmetrics.calibrators import get_calibrator as make

        return np.asarray(make(name).fit(P, y).predict_proba(P_new), dtype=float)

    return run


def families() -> dict[str, dict[str, Calibrate]]:
    """Return the contestants; the first of each family is hetcal's default."""
    table: dict[str, dict[str, Calibrate]] = {
        "uncalibrated": {"hetcal": hetcal("uncalibrated")},
        "platt": {
            "hetcal": hetcal("platt"),
            "paper": hetcal("platt", "paper"),
            "sklearn sigmoid": scikit_learn("sigmoid"),
            "sklearn sigmoid on log p": scikit_learn("sigmoid", ReadsLogProba),
        },
        "temperature": {
            "hetcal": hetcal("temperature"),
            "paper": hetcal("temperature", "paper"),
            "sklearn temperature": scikit_learn("temperature"),
        },
        "bcts": {"hetcal": hetcal("bcts")},
        "vector": {"hetcal": hetcal("vector")},
        "beta": {"hetcal": hetcal("beta")},
        "isotonic": {
            "hetcal": hetcal("isotonic"),
            "paper": hetcal("isotonic", "paper"),
            "sklearn isotonic": scikit_learn("isotonic"),
        },
        "histogram": {"hetcal": hetcal("histogram"), "paper": hetcal("histogram", "paper")},
    }
    if installed("netcal"):
        table["platt"]["netcal logistic (2 classes)"] = binary_only(
            netcal("scaling", "LogisticCalibration")
        )
        table["temperature"]["netcal"] = netcal("scaling", "TemperatureScaling")
        # Minutes per fit beyond ten classes.
        few = up_to_ten(netcal("scaling", "LogisticCalibration"))
        table["vector"]["netcal logistic (2-10 classes)"] = few
        table["bcts"]["netcal logistic (2-10 classes)"] = few
        table["beta"]["netcal (2 classes)"] = binary_only(netcal("scaling", "BetaCalibration"))
        table["isotonic"]["netcal"] = netcal("binning", "IsotonicRegression")
        table["histogram"]["netcal 10 bins"] = netcal("binning", "HistogramBinning", bins=10)
    if installed("probmetrics") and installed("numba"):
        affine = binary_only(probmetrics("affine-scaling"))
        table["platt"]["probmetrics affine (2 classes)"] = affine
        table["temperature"]["probmetrics"] = probmetrics("temp-scaling")
        table["temperature"]["probmetrics ts-mix"] = probmetrics("ts-mix")
        table["vector"]["probmetrics svs (3+ classes)"] = many_only(probmetrics("svs"))
        table["vector"]["probmetrics sms (3+ classes)"] = many_only(probmetrics("sms"))
        table["bcts"]["probmetrics svs (3+ classes)"] = many_only(probmetrics("svs"))
        table["isotonic"]["probmetrics ivap"] = probmetrics("ivap-ovr")
        if installed("betacal"):
            table["beta"]["probmetrics (2 classes)"] = binary_only(probmetrics("beta"))
    return table


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def binary_only(run: Calibrate) -> Calibrate:
    return lambda P, y, P_new: run(P, y, P_new) if P.shape[1] == 2 else None


def up_to_ten(run: Calibrate) -> Calibrate:
    return lambda P, y, P_new: run(P, y, P_new) if P.shape[1] <= 10 else None


def many_only(run: Calibrate) -> Calibrate:
    return lambda P, y, P_new: run(P, y, P_new) if P.shape[1] > 2 else None


def pools(cells, trials: int) -> Iterator[tuple[str, int, tuple]]:
    """Yield each cell's probabilities and labels: calibration pool, test set."""
    for dataset, classifier in cells:
        for seed in range(trials):
            if dataset.startswith("cifar"):
                split = paper_split(dataset, seed, 5000)
                P = softmax(split.logits_cal.astype(float), axis=1)
                P_test = softmax(split.logits_test.astype(float), axis=1)
            else:
                split = paper_split(dataset, seed, 6000)
                model = (
                    DecisionTreeClassifier(random_state=0)
                    if classifier == "DT1"
                    else paper_classifier(classifier)
                ).fit(split.X_train, split.y_train)
                P, P_test = model.predict_proba(split.X_cal), model.predict_proba(split.X_test)
            P_test = np.vstack([P_test, P[POOL_START:]])
            y_test = np.append(split.y_test, split.y_cal[POOL_START:])
            yield f"{dataset} {classifier}".strip(), seed, (P, split.y_cal, P_test, y_test)


def scores(Q: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    rows = np.arange(y.shape[0])
    error = Q.copy()
    error[rows, y] -= 1
    return -np.log(np.clip(Q[rows, y], 1e-15, 1)).mean(), (error**2).sum(axis=1).mean()


def measure(cells, sizes, trials: int) -> pd.DataFrame:
    """Return one row per cell, size, trial, family and contestant."""
    records = []
    for cell, seed, (P, y, P_test, y_test) in pools(cells, trials):
        for n in sizes:
            for family, contestants in families().items():
                for name, run in contestants.items():
                    begin = time.process_time()
                    try:
                        Q = run(P[:n], y[:n], P_test)
                    except Exception as error:
                        Q, failure = None, f"{type(error).__name__}: {error}"[:80]
                    else:
                        failure = ""
                    if Q is None and not failure:
                        continue
                    broken = Q is None or not np.isfinite(Q).all()
                    log_loss, brier = (np.nan, np.nan) if broken else scores(Q, y_test)
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
                            "failure": failure or ("not finite" if broken else ""),
                        }
                    )
    return pd.DataFrame(records)


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Return each contestant's scores beside the default's of its family, on common cells."""
    rows = []
    means = results.groupby(["family", "method", "cell", "n_cal"], sort=False)[
        ["log_loss", "brier", "cpu_s"]
    ].mean()
    for family, part in means.groupby("family", sort=False):
        ours = part.loc[(family, "hetcal")]
        for method in part.index.get_level_values("method").unique():
            theirs = part.loc[(family, method)].dropna()
            common = ours.index.intersection(theirs.index)
            if common.empty:
                continue
            ratio = ours.loc[common] / theirs.loc[common]
            worst = ratio["log_loss"].idxmax()
            worst_brier = ratio["brier"].idxmax()
            rows.append(
                {
                    "family": family,
                    "method": method,
                    "cells": len(common),
                    "log_loss": theirs.loc[common, "log_loss"].mean(),
                    "hetcal log_loss": ours.loc[common, "log_loss"].mean(),
                    "brier": theirs.loc[common, "brier"].mean(),
                    "hetcal brier": ours.loc[common, "brier"].mean(),
                    "worst log_loss": f"{ratio['log_loss'].max():.3f} {worst[0]} {worst[1]}",
                    "worst brier": f"{ratio['brier'].max():.3f} {worst_brier[0]} {worst_brier[1]}",
                    "cpu_s": theirs.loc[common, "cpu_s"].mean(),
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Global calibrators against their peers.")
    parser.add_argument("--part", choices=["confirm", "develop"], default="confirm")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--cells", nargs="*", help="only cells whose name contains one of these")
    parser.add_argument("--out", type=Path, help="write every single score to this csv file")
    options = parser.parse_args()
    if not os.environ.get("HETCAL_DATA"):
        sys.exit("Set HETCAL_DATA to the folder with the paper's data sets.")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    cells = CONFIRM if options.part == "confirm" else DEVELOP
    if options.cells:
        cells = [c for c in cells if any(part in " ".join(c) for part in options.cells)]
    results = measure(cells, options.sizes, options.trials)
    if options.out:
        results.to_csv(options.out, index=False)
    print(summary(results).round(4).to_string(index=False))
    failed = results[results["failure"] != ""]
    if len(failed):
        print("\nFailures (left out of the means above):")
        print(failed.groupby(["method", "failure"]).size().to_string())


if __name__ == "__main__":
    main()
