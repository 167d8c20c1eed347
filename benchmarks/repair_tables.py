"""Repair on tables and on stated forecasts, from 50 to 10 000 items, beside other packages.

    HETCAL_DATA=folder OMP_NUM_THREADS=1 PEERS/bin/python benchmarks/repair_tables.py
    HETCAL_DATA=folder python benchmarks/repair_tables.py --tables forecasts-doctors --sizes 200

PEERS is an environment with ``benchmarks/requirements-peers.txt``; packages that are not installed
are left out. Every score is a row of ``--out`` as soon as it is there, with the version of its
package; a run that is started again goes on where it stopped. What counts, and which tables
developed what, stands in ``benchmarks/protocol.md``, which is older than the results.

All methods of a cell see the same items and the same matrix of features (categories as indicators,
numbers standardised, gaps as the mean), with their documented defaults. Times are processor seconds
of fit and prediction; imports are not counted.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from global_calibrators import betacal, installed, netcal, probmetrics, scikit_learn, venn_abers
from hetcal import get_calibrator
from hetcal.datasets import load_dataset
from hetcal.metrics import smooth_calibration_error
from hetcal.paper.data import black_box, table_encoder
from hetcal.paper.methods import scores_of

OUT = Path(__file__).parent / "results" / "repair_tables.csv"
SIZES = (50, 200, 1000, 3000, 10_000)
N_TRAIN, MOST_TESTED = 2000, 8000
SMALLEST = 0.02  # of the test rows; smaller groups are worst by chance
CASE = ["table", "model", "n_cal", "seed"]

# The columns by which a person would ask whether the probabilities are right.
BLACK_BOXES = {
    "adult": ["sex", "race", "relationship", "workclass", "age"],
    "bank-marketing": ["job", "marital", "education", "housing", "loan", "age"],
    "credit-default": ["SEX", "EDUCATION", "MARRIAGE", "AGE"],
}
CLASSIFIERS = ("LR", "NB", "GBT")


@dataclass(frozen=True)
class Forecasts:
    """Columns of a table of stated probabilities."""

    label: str
    stated: str
    groups: list[str]
    left_out: tuple[str, ...] = ()
    events: str | None = None


FORECASTS = {
    "forecasts-doctors": Forecasts(
        "y_dead_180d", "p_physician_180d", ["sex", "race", "income", "dzgroup", "age"], ("sps",)
    ),
    "forecasts-games": Forecasts("y_team1", "p_team1", ["league", "season", "weekday"], ("date",)),
    "forecasts-governors": Forecasts(
        *("y_win", "p_win", ["party", "forecast_type", "year"]), ("candidate", "race"), "race"
    ),
}


@dataclass(frozen=True)
class Items:
    """Rows with features, labels, stated probabilities, named groups and events."""

    X: np.ndarray
    y: np.ndarray
    P: np.ndarray
    named: pd.DataFrame
    events: np.ndarray | None = None


Method = Callable[[Items, Items], np.ndarray]


# ---- the methods ----


def of_hetcal(name: str, preset: str | None = None) -> Method:
    def run(cal: Items, new: Items) -> np.ndarray:
        calibrator = get_calibrator(name, preset=preset, classes=np.arange(2))
        groups = {"groups": cal.events} if name == "hybrid" and cal.events is not None else {}
        calibrator.fit(cal.X, cal.y, y_proba=cal.P, **groups)
        return calibrator.predict_proba(new.X, y_proba=new.P)

    return run


def of_p(calibrate: Callable[..., np.ndarray]) -> Method:
    """Return a map of p, as `global_calibrators.py` runs it."""
    return lambda cal, new: calibrate(cal.P, cal.y, new.P)


def retrained(make: Callable[[], Any], *, with_p: bool) -> Method:
    def run(cal: Items, new: Items) -> np.ndarray:
        Z, Z_new = ((x.X, np.hstack([x.X, x.P]))[with_p] for x in (cal, new))
        model = make().fit(Z, cal.y)
        Q = np.zeros_like(new.P)
        Q[:, model.classes_] = model.predict_proba(Z_new)
        return Q

    return run


def mcgrad(cal: Items, new: Items) -> np.ndarray:
    from mcgrad.methods import MCGrad

    names = [f"x{j}" for j in range(cal.X.shape[1])]
    columns = {
        "prediction_column_name": "prediction",
        "categorical_feature_column_names": [],
        "numerical_feature_column_names": names,
    }
    frames = [pd.DataFrame(x.X, columns=names).assign(prediction=x.P[:, 1]) for x in (cal, new)]
    model = MCGrad()
    model.fit(df_train=frames[0].assign(label=cal.y), label_column_name="label", **columns)
    return two_columns(model.predict(df=frames[1], **columns))


def multicalibration(cal: Items, new: Items) -> np.ndarray:
    """HKRR over the named groups, with the parameters of the package's own example."""
    from multicalibration import MulticalibrationPredictor

    levels = [(c, v) for c in cal.named for v in np.unique(cal.named[c])]
    members = [[np.flatnonzero(x.named[c] == v) for c, v in levels] for x in (cal, new)]
    settings = {"alpha": 0.1, "lambda": 0.01, "max_iter": 100}
    settings |= {"randomized": True, "use_oracle": False}
    np.random.seed(0)  # noqa: NPY002  (the package draws from the global generator)
    model = MulticalibrationPredictor("HKRR")
    model.fit(cal.P[:, 1].copy(), cal.y, members[0], settings)
    return two_columns(model.predict(new.P[:, 1].copy(), members[1]))


def platt_binner(cal: Items, new: Items) -> np.ndarray:
    from calibration import PlattBinnerMarginalCalibrator

    model = PlattBinnerMarginalCalibrator(num_calibration=len(cal.y), num_bins=10)
    model.train_calibration(cal.P, cal.y)
    return np.asarray(model.calibrate(new.P), dtype=float)


def two_columns(q: Any) -> np.ndarray:
    q = np.clip(np.asarray(q, dtype=float), 0, 1)
    return np.column_stack([1 - q, q])


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(300, random_state=0)


def boosting() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(random_state=0)


# Name: (package, its module, the method).
METHODS: dict[str, tuple[str, str, Method]] = {
    "uncalibrated": ("hetcal", "hetcal", lambda cal, new: new.P),
    "hetcal hybrid": ("hetcal", "hetcal", of_hetcal("hybrid")),
    "hetcal global": ("hetcal", "hetcal", of_hetcal("global")),
    "paper SWC": ("hetcal", "hetcal", of_hetcal("swc", "paper")),
    "paper SBAW-10": ("hetcal", "hetcal", of_hetcal("sbaw", "paper")),
    "sklearn sigmoid": ("scikit-learn", "sklearn", of_p(scikit_learn("sigmoid"))),
    "sklearn isotonic": ("scikit-learn", "sklearn", of_p(scikit_learn("isotonic"))),
    "sklearn temperature": ("scikit-learn", "sklearn", of_p(scikit_learn("temperature"))),
    "netcal logistic": ("netcal", "netcal", of_p(netcal("scaling", "LogisticCalibration"))),
    "netcal histogram": ("netcal", "netcal", of_p(netcal("binning", "HistogramBinning", bins=10))),
    "betacal": ("betacal", "betacal", of_p(betacal)),
    "venn-abers": ("venn-abers", "venn_abers", of_p(venn_abers)),
    "probmetrics logistic": ("probmetrics", "probmetrics", of_p(probmetrics("logistic"))),
    "Platt binner": ("uncertainty-calibration", "calibration", platt_binner),
    "MCGrad": ("mcgrad", "mcgrad", mcgrad),
    "multicalibration HKRR": ("multicalibration", "multicalibration", multicalibration),
    "forest on X": ("scikit-learn", "sklearn", retrained(forest, with_p=False)),
    "forest on [X, P]": ("scikit-learn", "sklearn", retrained(forest, with_p=True)),
    "boosting on X": ("scikit-learn", "sklearn", retrained(boosting, with_p=False)),
    "boosting on [X, P]": ("scikit-learn", "sklearn", retrained(boosting, with_p=True)),
}


# ---- the tables ----


def encoded(X: pd.DataFrame, rows: list[np.ndarray]) -> list[np.ndarray]:
    """Return the features of parts of a table as numbers, by what the first part shows."""
    encoder = table_encoder().fit(X.iloc[rows[0]])
    return [np.nan_to_num(np.asarray(encoder.transform(X.iloc[r]), dtype=float)) for r in rows]


def named_groups(X: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return the columns by which groups are compared; ages in four ranges."""
    named = X[columns].copy()
    for name in columns:
        if name.lower() == "age":
            named[name] = pd.cut(named[name].astype(float), [0, 30, 40, 50, 120])
    return named.astype(object).fillna("missing").astype(str)


def black_box_case(table: str, model: str, n: int, seed: int) -> tuple[Items, Items] | None:
    """Split as ``hetcal paper`` does: 2000 rows train, the next n calibrate, the last 8000 test."""
    data = load_dataset(table)
    X, y = pd.DataFrame(data.X), np.searchsorted(data.classes, data.y)
    if N_TRAIN + n + MOST_TESTED > len(y):
        return None
    order = np.random.default_rng(seed).permutation(len(y))
    rows = [order[:N_TRAIN], order[N_TRAIN : N_TRAIN + n], order[-MOST_TESTED:]]
    Z = encoded(X, rows)
    fitted = black_box(model).fit(Z[0], y[rows[0]])
    named = named_groups(X, BLACK_BOXES[table])
    cal, new = (
        Items(Z[i], y[rows[i]], fitted.predict_proba(Z[i]), named.iloc[rows[i]]) for i in (1, 2)
    )
    return cal, new


def forecast_case(table: str, n: int, seed: int) -> tuple[Items, Items] | None:
    """Draw n rows at random and test on others; with events, on other events."""
    what = FORECASTS[table]
    data = pd.read_csv(Path(os.environ["HETCAL_DATA"]) / f"{table}.csv.gz")
    need = [what.label, what.stated, *([what.events] if what.events else [])]
    data = data.dropna(subset=need).reset_index(drop=True)
    left_out = [c for c in data if c.startswith(("y_", "p_")) or c in what.left_out]
    order = np.random.default_rng(seed).permutation(len(data))
    cal, new = order[:n], order[n : n + MOST_TESTED]
    events = [None, None]
    if what.events:
        codes = pd.factorize(data[what.events])[0]
        known = np.random.default_rng(seed).permutation(codes.max() + 1)[: (codes.max() + 1) // 2]
        known = np.isin(codes[order], known)
        cal, new = order[known][:n], order[~known][:MOST_TESTED]
        events = [codes[cal], codes[new]]
    if len(cal) < n or len(new) < min(n, 1000):
        return None
    X = data.drop(columns=left_out)
    Z, p = encoded(X, [cal, new]), data[what.stated].to_numpy(dtype=float)
    named, y = named_groups(data, what.groups), data[what.label].to_numpy()
    first, second = (
        Items(Z[i], y[r], two_columns(p[r]), named.iloc[r], events[i])
        for i, r in enumerate((cal, new))
    )
    return first, second


def cells(sizes: tuple[int, ...], seeds: range) -> Iterator[tuple[str, str, int, int]]:
    """Yield what is run, in an order that leaves whole tables when a run is cut short."""
    for seed in seeds:
        for n in sizes:
            yield from ((t, m, n, seed) for m in CLASSIFIERS for t in BLACK_BOXES)
            for table, what in FORECASTS.items():
                if not what.events or n in (1000, 3000):  # few events, however many rows
                    yield table, what.stated.removeprefix("p_"), n, seed


def make_case(table: str, model: str, n: int, seed: int) -> tuple[Items, Items] | None:
    if table in FORECASTS:
        return forecast_case(table, n, seed)
    return black_box_case(table, model, n, seed)


# ---- scores ----


def worst_group(new: Items, Q: np.ndarray) -> float:
    """Return the largest smooth calibration error of a group with at least 2 % of the rows."""
    found = []
    for column in new.named:
        for _, rows in new.named.reset_index(drop=True).groupby(column).groups.items():
            rows = np.asarray(rows)
            if len(rows) >= SMALLEST * len(new.y):
                y = new.y[rows]
                error = smooth_calibration_error(y, Q[rows], classes=[0, 1], kind="binary")
                found.append(error)
    return max(found)


def measure(name: str, cal: Items, new: Items) -> dict[str, Any]:
    """Return scores and time of one method; where it fails, why."""
    package, _, method = METHODS[name]
    start = time.process_time()
    try:
        Q = np.asarray(method(cal, new), dtype=float)
        if Q.shape != new.P.shape or not np.isfinite(Q).all() or Q.min() < 0:
            raise ValueError("no probabilities: negative, not finite, or of another shape")
    except Exception as error:
        return {"package": package, "failure": f"{type(error).__name__}: {error}"[:120]}
    took = time.process_time() - start
    Q /= Q.sum(axis=1, keepdims=True)  # maps of one class against the rest need not sum to one
    scores = scores_of(new.y, Q)
    return {
        "package": f"{package} {version(package) if package != 'hetcal' else own_version()}",
        **{key: round(float(scores[key]), 6) for key in ("brier", "log_loss", "ece")},
        "worst_group": round(worst_group(new, Q), 6),
        "seconds": round(took, 4),
        "failure": "",
    }


def own_version() -> str:
    import hetcal

    return hetcal.__version__


def warm_up(names: list[str]) -> None:
    """Run every method once on a few items, so that imports and compilations are not timed."""
    rng = np.random.default_rng(0)
    q = rng.uniform(size=60)
    named = pd.DataFrame({"g": np.repeat(["a", "b"], 30)})
    items = Items(rng.normal(size=(60, 3)), (rng.random(60) < q).astype(int), two_columns(q), named)
    for name in names:
        measure(name, items, items)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=[*BLACK_BOXES, *FORECASTS])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if not os.environ.get("HETCAL_DATA"):
        sys.exit("Set HETCAL_DATA to the data folder: the tables are read from there.")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    names = [name for name in options.methods if installed(METHODS[name][1])]
    done = set()
    if options.out.exists():
        done = set(pd.read_csv(options.out)[[*CASE, "method"]].itertuples(index=False, name=None))
    warm_up(names)
    for cell in cells(tuple(options.sizes), range(options.trials)):
        todo = [name for name in names if (*cell, name) not in done]
        case = make_case(*cell) if todo and cell[0] in options.tables else None
        if case is None:
            continue
        rows = [
            dict(zip(CASE, cell, strict=True)) | {"method": name} | measure(name, *case)
            for name in todo
        ]
        columns = [*CASE, "method", "package", "brier", "log_loss", "ece", "worst_group"]
        table = pd.DataFrame(rows, columns=[*columns, "seconds", "failure"])
        new_file = not options.out.exists()
        table.to_csv(options.out, mode="a", header=new_file, index=False, lineterminator="\n")
        print(*cell, round(table["seconds"].sum(), 1), "s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
