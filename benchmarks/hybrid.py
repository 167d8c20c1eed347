"""The hybrid calibrator beside the paper's methods and retrained models.

    HETCAL_DATA=folder python benchmarks/hybrid.py --cells develop --seeds 3
    HETCAL_DATA=folder python benchmarks/hybrid.py --cells confirm --seeds 3

Settings were chosen on the cells of ``DEVELOP`` only; ``CONFIRM`` was never looked at while
choosing. Every result is written to ``--out`` as soon as it is there, and a run that is started
again goes on where it stopped. "best" is the best other method of a cell in hindsight: the paper's
methods without SWC-HH, and a forest and a boosted model on features and probabilities.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from hetcal import HybridCalibrator, get_calibrator
from hetcal.datasets import load_dataset, paper_classifier, paper_split
from hetcal.metrics import brier_score, expected_calibration_error, log_loss

TABLES = {"adult", "bank-marketing", "credit-default"}
DEVELOP = [
    ("mnist-1v7", "RF", 200),
    ("mnist-1v7", "SVM", 200),
    ("mnist-4v9", "RF", 50),
    ("mnist-4v9", "RF", 200),
    ("mnist-4v9", "RF", 1000),
    ("mnist-4v9", "SVM", 50),
    ("mnist-4v9", "SVM", 1000),
    ("fashion-mnist", "RF", 200),
    ("letter", "NB", 1000),
    ("adult", "NB", 300),
    ("adult", "LR", 3000),
    ("credit-default", "LR", 300),
]
CONFIRM = [
    ("mnist-3v8", "DT", 200),
    ("mnist-3v8", "DT", 1000),
    ("mnist-3v5", "NB", 200),
    ("mnist-3v5", "SVM", 50),
    ("mnist10", "NB", 1000),
    ("fashion-mnist", "DT", 1000),
    ("letter", "RF", 1000),
    ("bank-marketing", "NB", 300),
    ("bank-marketing", "LR", 3000),
    ("credit-default", "NB", 3000),
]
N_TRAIN, N_TEST = 2000, 8000


def paper_cell(name: str, classifier: str, n: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return X, y, P of calibration and test items of one of the paper's data sets."""
    data = paper_split(name, seed, n)
    model = paper_classifier(classifier).fit(data.X_train, data.y_train)
    return (
        data.X_cal,
        data.y_cal,
        model.predict_proba(data.X_cal),
        data.X_test,
        data.y_test,
        model.predict_proba(data.X_test),
    )


def table_cell(name: str, classifier: str, n: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return the same for a table of mixed columns, one-hot encoded on the training rows."""
    data = load_dataset(name)
    y = pd.factorize(data.y, sort=True)[0]
    order = np.random.default_rng(seed).permutation(len(y))
    train, cal, test = order[:N_TRAIN], order[N_TRAIN : N_TRAIN + n], order[-N_TEST:]
    words = make_column_selector(dtype_include=["object", "category", "string"])
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False, min_frequency=5)
    encoder = make_column_transformer((levels, words), remainder=StandardScaler())
    Z = np.nan_to_num(np.asarray(encoder.fit(data.X.iloc[train]).transform(data.X), dtype=float))
    models = {"NB": GaussianNB(), "LR": LogisticRegression(max_iter=2000)}
    model = models[classifier].fit(Z[train], y[train])
    P = model.predict_proba(Z)
    return Z[cal], y[cal], P[cal], Z[test], y[test], P[test]


def retrained(model: Any, cal: tuple, test: tuple, K: int) -> np.ndarray:
    """Return what a model trained on features and probabilities of the calibration items says."""
    model.fit(np.hstack([cal[0], cal[2]]), cal[1])
    Q = np.zeros((len(test[0]), K))
    Q[:, model.classes_] = model.predict_proba(np.hstack([test[0], test[2]]))
    return Q


def run(cell: tuple[str, str, int], seed: int) -> list[dict[str, Any]]:
    """Return one row per method."""
    name, classifier, n = cell
    *cal, X, y, P = (table_cell if name in TABLES else paper_cell)(name, classifier, n, seed)
    K = P.shape[1]
    classes = np.arange(K)
    said, seconds = {}, {}
    for method in ("uncalibrated", "platt" if K == 2 else "temperature", "isotonic", "histogram"):
        said[method] = get_calibrator(method, preset="paper", classes=classes)
    for method in ("sba", "sbaw", "swc"):
        said[method] = get_calibrator(method, preset="paper", classes=classes)
    said["hybrid"] = HybridCalibrator(classes=classes)
    for method, calibrator in list(said.items()):
        start = time.process_time()
        calibrator.fit(cal[0], cal[1], y_proba=cal[2])
        said[method] = calibrator.predict_proba(X, y_proba=P)
        seconds[method] = time.process_time() - start
    said["forest [X, P]"] = retrained(
        RandomForestClassifier(200, random_state=0), tuple(cal), (X, y, P), K
    )
    if X.shape[1] <= 200:
        boosted = HistGradientBoostingClassifier(random_state=0)
        said["boosting [X, P]"] = retrained(boosted, tuple(cal), (X, y, P), K)
    options: dict[str, Any] = {"classes": classes, "normalized": False}
    return [
        {
            "data": name,
            "classifier": classifier,
            "n_cal": n,
            "seed": seed,
            "method": method,
            "brier": brier_score(y, Q, **options),
            "log_loss": log_loss(y, Q, **options) if method != "histogram" else np.nan,
            "ece": expected_calibration_error(y, Q, **options) if method != "histogram" else np.nan,
            "seconds": seconds.get(method, np.nan),
        }
        for method, Q in said.items()
    ]


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell: the hybrid beside the best other method in hindsight."""
    keys = ["data", "classifier", "n_cal"]
    means = results.groupby([*keys, "method"])[["brier", "log_loss", "ece"]].mean().unstack()
    rows = []
    for cell, row in means.iterrows():
        line: dict[str, Any] = dict(zip(keys, cell, strict=True))
        for metric in ("brier", "log_loss", "ece"):
            others = row[metric].drop("hybrid").dropna()
            line[f"{metric}"] = row[metric]["hybrid"]
            line[f"best_{metric}"] = f"{others.min():.4f} {others.idxmin()}"
            line[f"{metric}_ratio"] = row[metric]["hybrid"] / others.min()
        rows.append(line)
    return pd.DataFrame(rows)


def main() -> None:
    """Run what is missing and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", choices=["develop", "confirm"], default="develop")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("hybrid_results.csv"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = DEVELOP if arguments.cells == "develop" else CONFIRM
    done = pd.read_csv(arguments.out) if arguments.out.exists() else pd.DataFrame()
    for cell in cells:
        for seed in range(arguments.seeds):
            there = (
                len(done) > 0
                and (
                    (done["data"] == cell[0])
                    & (done["classifier"] == cell[1])
                    & (done["n_cal"] == cell[2])
                    & (done["seed"] == seed)
                ).any()
            )
            if not there:
                done = pd.concat([done, pd.DataFrame(run(cell, seed))])
                done.to_csv(arguments.out, index=False)
    wanted = done.set_index(["data", "classifier", "n_cal"]).loc[cells].reset_index()
    table = summary(wanted)
    print(table.round(4).to_string(index=False))
    for metric in ("brier", "log_loss", "ece"):
        ratio = table[f"{metric}_ratio"]
        print(
            f"{metric}: geometric mean {np.exp(np.log(ratio).mean()):.3f}, worst {ratio.max():.3f}"
        )


if __name__ == "__main__":
    main()
