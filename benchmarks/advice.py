"""How often `hetcal.advise` is right, by simulation on data whose right answer is known.

    python benchmarks/advice.py --output advice.csv --draws 1            # the catalogue
    python benchmarks/advice.py --output advice.csv --part verdicts      # clear cases
    python benchmarks/advice.py --output advice.csv --part leak shift    # the warnings

Rows are appended as they come, so an interrupted run goes on where it stopped; `--part` picks
catalogue (300 items of every problem of a half of it: the verdict, what was promised, and
what came true by the known P(y | x) of 4000 new ones), verdicts, leak (rows that the model was
trained on, and strong models on other rows) and shift (class balance). ``--half develop`` is for
choosing, ``--half confirm`` (the default) for reporting; the reported seed of the catalogue is
1 000 000.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import expit
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import hetcal
from hetcal.data import CalibrationSet, Folds
from hetcal.datasets import list_problems, make_hidden_heterogeneity, make_problem
from hetcal.diagnosis import (
    COLLECT_MORE,
    GLOBAL_IS_ENOUGH,
    GO_LOCAL,
    LEAVE_IT,
    RETRAIN,
    measure_prior_shift,
)
from hetcal.diagnosis.candidates import best_of, cross_fitted_maps, retrained
from hetcal.diagnosis.checks import check_training_rows
from hetcal.kernels.intervals import wilson_interval
from hetcal.metrics.scores import brier_losses

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


# -- the catalogue: what is promised, and what comes true -----------------------------------------

N_ITEMS, N_NEW, HARM = 300, 4000, 0.01


def one_problem(name: str, seed: int, n: int = N_ITEMS) -> dict:
    problem = make_problem(name, n, random_state=seed)
    new = make_problem(name, N_NEW, random_state=seed + 500_000)
    classes = np.arange(problem.n_classes)
    advice = hetcal.advise(
        readable(problem.X),
        problem.y,
        y_proba=problem.y_proba,
        classes=classes,
        groups=problem.groups,
        sample_weight=problem.sample_weight,
    )
    gain, brier = advice.expected_gain, advice.known_evidence.brier
    stated = (0.0, 0.0, 0.0) if gain is None else (gain.value, gain.low, gain.high)
    came_true = realised_gain(advice, problem, new)
    return {
        "answer": advice.verdict,
        "right": int(came_true >= -HARM),
        "kind": problem.kind,
        "state": str(advice.certainty.state),
        "recommended": advice.recommended,
        "stated": stated[0] / brier,
        "low": stated[1] / brier,
        "high": stated[2] / brier,
        "realised": came_true,
        "hidden": problem.grouping_loss / brier,
        "detectable": advice.certainty.detectable_share,
        "items_to_settle": advice.certainty.items_to_settle,
    }


def readable(X):
    """Return features as the hybrid takes them: dense, and text as levels."""
    if sparse.issparse(X):
        return X.toarray()
    if isinstance(X, pd.DataFrame):
        return X.astype(dict.fromkeys(X.select_dtypes(["object", "string"]), "category"))
    return X


def realised_gain(advice, problem, new) -> float:
    """Return what following the advice gains on new items, as a share of their Brier score."""
    Q, weight = new.y_proba, new.sample_weight
    if advice.recommended == "hybrid":
        Q = advice.evidence.hybrid.predict_proba(readable(new.X), y_proba=new.y_proba)
    elif advice.recommended != "uncalibrated":
        fitted = hetcal.get_calibrator(advice.recommended, classes=np.arange(new.n_classes))
        fitted.fit(None, problem.y, y_proba=problem.y_proba, sample_weight=problem.sample_weight)
        Q = fitted.predict_proba(y_proba=new.y_proba)
    truth = new.true_proba
    noise = (truth * (1 - truth)).sum(axis=1)
    before, after = (
        np.average(((said - truth) ** 2).sum(axis=1) + noise, weights=weight)
        for said in (new.y_proba, Q)
    )
    return float(1 - after / before)


def catalogue_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what was said, promised and realised, in nulls and where something is hidden."""
    numbers = pd.DataFrame(
        [dict(part.split("=") for part in text.split("; ")) for text in rows["numbers"]]
    )
    for name in ("stated", "low", "high", "realised"):
        numbers[name] = 100 * numbers[name].astype(float)
    numbers["answer"] = rows["answer"].to_numpy()
    acted = numbers[numbers["recommended"] != "uncalibrated"]
    inside = (acted["low"] <= acted["realised"]) & (acted["realised"] <= acted["high"])
    by = numbers.groupby("kind")
    table = by.agg(
        draws=("stated", "size"),
        stated=("stated", "mean"),
        realised=("realised", "mean"),
        worst=("realised", "min"),
    ).round(2)
    table["acted"] = acted.groupby("kind").size()
    table["realised inside the interval"] = inside.groupby(acted["kind"]).mean().round(2)
    for column in ("answer", "state"):
        shares = by[column].value_counts().unstack(fill_value=0)
        table = table.join(shares.add_prefix(f"{column}: "))
    return table.T


@dataclass(frozen=True)
class Case:
    """A way to draw data sets, and the right answer."""

    right: str
    draw: Callable[[int], Arrays]


def synthetic(n: int, **dials) -> Callable[[int], Arrays]:
    def draw(seed: int) -> Arrays:
        data = make_hidden_heterogeneity(n, random_state=seed, **dials)
        return data.X, data.y, data.y_proba

    return draw


def useless_model(n: int) -> Callable[[int], Arrays]:
    """Draw features that say much and probabilities that say nothing."""

    def draw(seed: int) -> Arrays:
        data = make_hidden_heterogeneity(n, heterogeneity=0.0, random_state=seed)
        noise = np.random.default_rng([seed, 1]).standard_normal(n)
        return data.X, data.y, two_columns(expit(0.3 * noise))

    return draw


def weak_model(n: int) -> Callable[[int], Arrays]:
    """Let the model look at one feature of several."""

    def draw(seed: int) -> Arrays:
        data = make_hidden_heterogeneity(n, heterogeneity=0.0, n_features=7, random_state=seed)
        return data.X, data.y, two_columns(expit(0.5 * data.X[:, 3]))

    return draw


def two_columns(p: np.ndarray) -> np.ndarray:
    return np.column_stack([1 - p, p])


CASES = {
    "calibrated": Case(LEAVE_IT, synthetic(3000, heterogeneity=0.0)),
    "over-confident": Case(
        GLOBAL_IS_ENOUGH, synthetic(1200, heterogeneity=0.0, miscalibration=2.0)
    ),
    "hidden": Case(GO_LOCAL, synthetic(600, heterogeneity=1.0)),
    "hidden and over-confident": Case(
        GO_LOCAL, synthetic(600, heterogeneity=1.0, miscalibration=2.0)
    ),
    "calibrated, 200 items": Case(COLLECT_MORE, synthetic(200, heterogeneity=0.0)),
    "useless model": Case(RETRAIN, useless_model(600)),
    "weak model": Case(RETRAIN, weak_model(600)),
}


def one_verdict(name: str, seed: int) -> dict:
    X, y, P = CASES[name].draw(seed)
    advice = hetcal.advise(X, y, y_proba=P)
    return {
        "answer": advice.verdict,
        "right": int(advice.verdict == CASES[name].right),
        "state": str(advice.certainty.state),
        "recommended": advice.recommended,
        "p_value": advice.certainty.p_value,
        "detectable": advice.certainty.detectable_share,
    }


# -- rows that the model was trained on ----------------------------------------------------------


def noisy_classes(n: int, seed: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        n, n_features=10, n_informative=5, flip_y=noise, class_sep=1.0, random_state=seed
    )


MODELS = {
    "forest": lambda seed: RandomForestClassifier(100, random_state=seed),
    "tree": lambda seed: DecisionTreeClassifier(random_state=seed),
    "1-nn": lambda seed: KNeighborsClassifier(1),
    "boosting": lambda seed: GradientBoostingClassifier(
        n_estimators=300, max_depth=6, random_state=seed
    ),
    "logistic": lambda seed: LogisticRegression(max_iter=5000),
    "svm": lambda seed: SVC(random_state=seed),
}
MEMORISING = ("forest", "tree", "1-nn", "boosting")


def leak_draws(model: str, source: str, own_rows: bool, seed: int) -> Arrays:
    """Draw 500 rows that the model was trained on, or rows it has not seen (trained on many)."""
    rng = np.random.default_rng(seed)
    if source == "digits":
        X, y = load_digits(return_X_y=True)
        order = rng.permutation(y.shape[0])
        X, y = X[order] / 16.0, y[order]
    else:
        X, y = noisy_classes(8500, seed, float(source))
    test = slice(0, 500)
    train = test if own_rows else slice(500, None)
    fitted = MODELS[model](seed).fit(X[train], y[train])
    if hasattr(fitted, "predict_proba"):
        P = fitted.predict_proba(X[test])
    else:
        scores = fitted.decision_function(X[test])
        scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else 2 * scores
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
    return X[test], y[test], P


LEAKS = {
    f"{model} {source} {'own rows' if own else 'other rows'}": (model, source, own)
    for source in ("digits", "0.02", "0.2")
    for model in MODELS
    for own in ((True, False) if model in MEMORISING else (False,))
    # Boosting ten digits 300 times over takes minutes.
    if not (model == "boosting" and source == "digits")
}


def one_leak(name: str, seed: int) -> dict:
    model, source, own = LEAKS[name]
    X, y, P = leak_draws(model, source, own, seed)
    items = CalibrationSet.check(X, y, y_proba=P, caller="test")
    folds = Folds.make(items.n_items, 5, seed=seed)
    _, mapped = best_of(cross_fitted_maps(items, folds), items, folds)
    brier = float(brier_losses(mapped, items.codes).mean())
    alone = retrained(items, folds, with_boosting=True, seed=0, n_jobs=1)
    _, best = best_of(alone, items, folds)
    alarm = check_training_rows(items, brier, best) is not None
    return {"answer": "alarm" if alarm else "quiet", "right": int(alarm == own)}


# -- class balance -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shift:
    """How much of class 1 is left in the new data, and what is known of it."""

    kept: float
    useless_model: bool = False
    with_features: bool = True

    @property
    def visible(self) -> bool:
        """Whether there is a shift, and something that could show it."""
        return self.kept < 1 and (self.with_features or not self.useless_model)


SHIFTS = {
    "same balance": Shift(1.0),
    "class 1 twice as rare": Shift(0.5),
    "same balance, useless model": Shift(1.0, useless_model=True),
    "class 1 twice as rare, useless model": Shift(0.5, useless_model=True),
    "the same without features: cannot be seen": Shift(0.5, True, with_features=False),
}


def one_shift(name: str, seed: int) -> dict:
    """Draw 500 calibration items, and 1000 new ones of which class 1 may be thinned out."""
    case = SHIFTS[name]
    hidden = 0.0 if case.useless_model else 0.3
    data = make_hidden_heterogeneity(
        500, heterogeneity=hidden, miscalibration=0.5, random_state=seed
    )
    new = data.sample(1500, random_state=seed + 500_000)
    rng = np.random.default_rng([seed, 2])
    kept = np.flatnonzero(rng.uniform(size=1500) < np.where(new.y == 1, case.kept, 1.0))[:1000]
    P, P_new = data.y_proba, new.y_proba
    if case.useless_model:
        P, P_new = (two_columns(expit(0.3 * rng.standard_normal(n))) for n in (500, 1500))
    items = CalibrationSet.check(data.X, data.y, y_proba=P, caller="test")
    X_new = new.X[kept] if case.with_features else None
    shift = measure_prior_shift(items, P_new[kept], X_new=X_new, random_state=seed)
    alarm = bool(shift.shifted.any())
    truth = float(new.y[kept].mean())
    return {
        "answer": "alarm" if alarm else "quiet",
        "right": int(alarm == case.visible),
        "estimate": float(shift.new[1]),
        "truth": truth,
        "covered": int(shift.low[1] <= truth - data.y.mean() <= shift.high[1]),
        "half_width": shift.half_width,
        "seen_in": shift.seen_in,
    }


PARTS = {
    "catalogue": ({}, one_problem),
    "verdicts": (CASES, one_verdict),
    "leak": (LEAKS, one_leak),
    "shift": (SHIFTS, one_shift),
}


def todo(args, done: set[tuple[str, str, int]]) -> Iterator[tuple[str, str, int]]:
    """Yield draws seed by seed, so that an unfinished run has something about every case."""
    for seed in range(args.first_seed, args.first_seed + args.draws):
        for part in args.part:
            for name in PARTS[part][0] or list_problems(half=args.half):
                wanted = not args.case or name in args.case
                if wanted and (part, name, seed) not in done:
                    yield part, name, seed


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    table = rows.groupby(["part", "case"], sort=False).agg(
        draws=("right", "size"), right=("right", "mean")
    )
    low, high = wilson_interval(table["right"].to_numpy(), table["draws"].to_numpy())
    table["low"], table["high"] = low, high
    table["go_local"] = rows["answer"].eq(GO_LOCAL).groupby([rows["part"], rows["case"]]).mean()
    return table.round(3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("advice.csv"))
    parser.add_argument("--part", nargs="*", default=["catalogue"], choices=list(PARTS))
    parser.add_argument("--half", default="confirm", choices=["develop", "confirm"])
    parser.add_argument("--case", nargs="*", help="only these cases")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=5000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    done = set()
    if args.output.exists():
        before = pd.read_csv(args.output)
        done = set(zip(before["part"], before["case"], before["seed"], strict=True))
    columns = ["part", "case", "seed", "answer", "right", "numbers"]
    with args.output.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns)
        if not done:
            writer.writeheader()
        for part, name, seed in todo(args, done):
            row = PARTS[part][1](name, seed)
            shown = {key: row.pop(key) for key in ("answer", "right")}
            numbers = "; ".join(f"{key}={value}" for key, value in row.items())
            writer.writerow({"part": part, "case": name, "seed": seed, **shown, "numbers": numbers})
            file.flush()
    rows = pd.read_csv(args.output)
    print(summary(rows).to_string())
    problems = rows[rows["part"] == "catalogue"]
    if len(problems):
        print(catalogue_summary(problems).to_string())


if __name__ == "__main__":
    main()
