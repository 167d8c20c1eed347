"""How often rows are said to belong together: independent rows of the catalogue, and events.

    python benchmarks/dependence.py                       # confirming half, 200, 1000 and 3000 rows
    python benchmarks/dependence.py --half develop --draws 4
    python benchmarks/dependence.py copies --first-seed 1000          # 3 minutes on one core
    python benchmarks/dependence.py levels --draws 40                 # strong effects of values
    python benchmarks/dependence.py tables                            # needs HETCAL_DATA

Every draw is taken as it is, sorted by label, by probability or by the first feature in turn: none
of these makes rows dependent. The panel is what a warning is for: events with one outcome each,
forecast on several days, with the number of the event as a column that is no feature.

``copies`` draws events whose rows are near-copies in random order, with no column that tells which
belong together: how often this is noticed, what the hybrid states as its gain on such rows, what
new events get from it, and what they get where the advice is followed, given the groups that
``group_near_copies`` makes. Beside them independent rows whose features or labels come in lumps.
``levels`` draws independent rows whose categories or counts have strong effects on the label, and
events and persons that a feature tells apart; the halves have other kinds and other seeds.
``tables`` asks real tables, with the class frequencies and with a logistic regression's output.
"""

from __future__ import annotations

import argparse
import os
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression

import hetcal
from hetcal import HybridCalibrator
from hetcal._validation.containers import take_rows
from hetcal.data import CalibrationSet
from hetcal.datasets import list_problems, make_problem
from hetcal.diagnosis import group_near_copies
from hetcal.diagnosis.dependence import find_dependence

ORDERS = ("as drawn", "by label", "by probability", "by the first feature")
FIRST_SEED = {"develop": 0, "confirm": 1000}


def main() -> None:
    """Print the share of alarms."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "part", nargs="?", choices=("alarms", "copies", "levels", "tables"), default="alarms"
    )
    parser.add_argument("--half", choices=tuple(FIRST_SEED), default="confirm")
    parser.add_argument("--draws", type=int, help="4; of copies 20")
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000, 3000])
    parser.add_argument("--first-seed", type=int, help="0; of the confirming half 1000")
    parser.add_argument("--followed", type=int, default=3, help="draws of copies with advice")
    options = parser.parse_args()
    if options.part == "copies":
        print_copies(options.draws or 20, options.first_seed or 0, options.followed)
    elif options.part == "levels":
        first = FIRST_SEED[options.half] if options.first_seed is None else options.first_seed
        print_levels(options.half, options.draws or 4, options.rows, first)
    elif options.part == "tables":
        print_tables(options.rows)
    else:
        first = FIRST_SEED[options.half] if options.first_seed is None else options.first_seed
        print_alarms(options.half, options.draws or 4, options.rows, first)


def print_alarms(half: str, draws: int, rows: list[int], first: int) -> None:
    """Print the alarms on the catalogue, and how often panels are named."""
    for n in rows:
        alarms = [
            (name, ORDERS[draw % 4])
            for name in list_problems(half=half)
            for draw in range(draws)
            if alarmed(name, n, first + draw, ORDERS[draw % 4])
        ]
        total = len(list_problems(half=half)) * draws
        print(f"{n} independent rows: {len(alarms)} alarms in {total} draws {alarms or ''}")
    for n_events in (30, 60, 200):
        found = [panel_is_found(n_events, seed) for seed in range(10 * draws)]
        print(f"panel of {n_events} events on 10 days: named in {np.mean(found):.0%} of draws")


def alarmed(name: str, n: int, seed: int, order: str) -> bool:
    """Tell whether independent rows of a problem, in some order, raise an alarm."""
    problem = make_problem(name, n, random_state=seed)
    if len(np.unique(problem.y)) < 2:
        return False
    rows = order_of(problem, order)
    parts = (problem.sample_weight, problem.groups)
    weight, groups = (None if part is None else part[rows] for part in parts)
    items = CalibrationSet.check(
        take_rows(problem.X, rows),
        problem.y[rows],
        y_proba=problem.y_proba[rows],
        sample_weight=weight,
        groups=groups,
        classes=np.arange(problem.n_classes),
        caller="dependence",
    )
    return find_dependence(items.with_positive_weight()) is not None


def order_of(problem, order: str) -> np.ndarray:
    """Return the rows of a problem in some order."""
    if order == "by label":
        return np.argsort(problem.y, kind="stable")
    if order == "by probability":
        return np.argsort(problem.y_proba[:, -1], kind="stable")
    if order == "by the first feature" and isinstance(problem.X, np.ndarray | pd.DataFrame):
        first = pd.DataFrame(problem.X).iloc[:, 0].reset_index(drop=True)
        return first.sort_values(kind="stable").index.to_numpy()
    return np.arange(len(problem.y))


def panel_is_found(n_events: int, seed: int, n_days: int = 10) -> bool:
    """Tell whether the number of the event is named as what the rows belong together by."""
    rng = np.random.default_rng([seed, n_events])
    strength = rng.normal(size=n_events)
    outcome = (rng.random(n_events) < 1 / (1 + np.exp(-strength))).astype(int)
    event = rng.permutation(np.repeat(np.arange(n_events), n_days))
    noise = rng.normal(size=(2, len(event)))
    X = np.column_stack([strength[event] + 0.05 * noise[0], rng.normal(size=len(event))])
    p = 1 / (1 + np.exp(-strength[event] - 0.1 * noise[1]))
    items = CalibrationSet.check(X, outcome[event], y_proba=p, caller="dependence")
    found = find_dependence(items, {"event": event})
    return found is not None and found.columns == ("event",)


# -- near-copies -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Events:
    """Events whose rows are near-copies: how many rows, how much noise, how many columns."""

    sizes: tuple[int, ...] = (6,) * 40
    noise: float = 0.02
    d: int = 5
    changing: int = 0  # columns that are drawn anew for every row
    n_categories: int = 0
    n_classes: int = 2

    def draw(self, seed: int) -> tuple[Problem, Problem]:
        """Return rows to calibrate with, in random order, and one row each of 4000 new events."""
        rng = np.random.default_rng([seed, 17])
        slopes = rng.normal(size=(self.d, self.n_classes)) * 1.5 / np.sqrt(self.d)
        return self._rows(self.sizes, slopes, rng), self._rows((1,) * 4000, slopes, rng)

    def _rows(self, sizes: tuple[int, ...], slopes: np.ndarray, rng) -> Problem:
        event = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
        values = rng.normal(size=(len(sizes), self.d))
        shared = values[event] + self.noise * rng.normal(size=(len(event), self.d))
        below = softmax(values @ slopes, axis=1).cumsum(axis=1)[:, :-1]
        outcome = (rng.random((len(sizes), 1)) > below).sum(axis=1)
        X = np.hstack([shared, rng.normal(size=(len(event), self.changing))])
        kinds = rng.choice(list("abcd"), (len(sizes), self.n_categories))[event]
        if self.n_categories:
            X = pd.concat([pd.DataFrame(X), pd.DataFrame(kinds)], axis=1, ignore_index=True)
            X = X.rename(columns=lambda j: f"x{j}")
        return Problem(X, outcome[event], softmax(shared @ slopes, axis=1))


@dataclass(frozen=True)
class Problem:
    """Features, labels and probabilities."""

    X: Any
    y: np.ndarray
    P: np.ndarray

    def items(self) -> CalibrationSet:
        """Return them as a calibration set."""
        classes = np.arange(self.P.shape[1])
        return CalibrationSet.check(
            self.X, self.y, y_proba=self.P, classes=classes, caller="dependence"
        )

    def brier(self, Q: np.ndarray) -> float:
        """Return the Brier score of some probabilities."""
        return float(np.mean(((Q - np.eye(Q.shape[1])[self.y]) ** 2).sum(axis=1)))


COPIES = {
    "40 events of 6 rows, noise 0.02": Events(),
    "noise 0.005": Events(noise=0.005),
    "noise 0.1": Events(noise=0.1),
    "120 events of 2 rows": Events((2,) * 120),
    "50 events of 1 to 10 rows": Events(tuple(range(1, 11)) * 5),
    "40 events of 15 rows": Events((15,) * 40),
    "40 % of the rows: 40 events of 6, 360 single rows": Events((6,) * 40 + (1,) * 360),
    "3 of 8 columns change from row to row": Events(changing=3),
    "3 categories beside": Events(n_categories=3),
    "six classes": Events(n_classes=6),
    "2 columns": Events(d=2),
    "100 columns, 40 of them change": Events(d=60, changing=40),
    "500 events of 4 rows": Events((4,) * 500),
}


def lumps_of(name: str, n: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Return features in lumps, and chances of the label that follow them closely."""
    if name == "rounded moons":
        X, side = make_moons(n, noise=0.1, random_state=int(rng.integers(1 << 30)))
        return X.round(1), np.where(side, 0.98, 0.02)
    if name == "six clusters":
        which = rng.integers(0, 6, n)
        X = 5 * rng.normal(size=(6, 4))[which] + 0.1 * rng.normal(size=(n, 4))
        return X, rng.choice([0.02, 0.98], 6)[which]
    if name == "cells of three categories":
        cells = rng.integers(0, 8, (3, n))
        X = np.column_stack([*(np.eye(8)[c] for c in cells), rng.normal(size=(n, 2))])
        return X, expit(4 * rng.normal(size=(8, 8, 8)))[tuple(cells)]
    if name == "curve":
        t = rng.uniform(0, 6, n)
        X = np.column_stack([np.sin(k * t) for k in range(1, 7)])
        return X, expit(20 * np.sin(15 * t))
    if name == "checkerboard":
        X = rng.uniform(size=(n, 2))
        return X, np.where((12 * X).astype(int).sum(axis=1) % 2, 0.98, 0.02)
    X = rng.poisson(np.exp(rng.normal(size=(n, 1)) - 1), (n, 12)).astype(float)  # counts
    return np.column_stack([X, rng.exponential(size=n)]), expit(5 * (X[:, 0] - X[:, 1]))


LUMPS = (
    *("rounded moons", "six clusters", "cells of three categories", "curve", "checkerboard"),
    "counts",
)


def print_copies(draws: int, first: int, followed: int) -> None:
    """Print how often near-copies are noticed, and what following the advice brings."""
    print("| rows | noticed | gain, stated | on new events | where the advice is followed |")
    print("|---|---|---|---|---|")
    for kind, events in COPIES.items():
        seeds = range(first, first + draws)
        noticed = [find_dependence(events.draw(seed)[0].items()) is not None for seed in seeds]
        gains = np.mean([gains_of(*events.draw(seed)) for seed in seeds[:followed]], axis=0)
        shown = " | ".join(f"{gain:+.3f}" for gain in gains)
        print(f"| {kind} | {np.mean(noticed):.0%} | {shown} |", flush=True)
    for name in LUMPS:
        for n in (300, 1500):
            found = [lumps_alarm(name, n, seed) for seed in range(first, first + draws)]
            print(f"{n} independent rows, {name}: {sum(found)} of {draws} noticed as copies")


def gains_of(known: Problem, new: Problem) -> tuple[float, float, float]:
    """Return the hybrid's gain as stated without groups, as realised, and that of the advice."""
    blind = fitted(known, None)
    stated = known.brier(known.P) - known.brier(blind.out_of_sample_proba_)
    groups = group_near_copies(known.X)
    advice = hetcal.advise(known.X, known.y, y_proba=known.P, groups=groups)
    Q = new.P
    if advice.recommended == "hybrid":
        Q = fitted(known, groups).predict_proba(new.X, y_proba=new.P)
    elif advice.recommended != "uncalibrated":
        found = hetcal.get_calibrator(advice.recommended).fit(
            known.X, known.y, y_proba=known.P, groups=groups
        )
        Q = found.predict_proba(new.X, y_proba=new.P)
    before = new.brier(new.P)
    realised = before - new.brier(blind.predict_proba(new.X, y_proba=new.P))
    return stated, realised, before - new.brier(Q)


def fitted(known: Problem, groups: np.ndarray | None) -> HybridCalibrator:
    """Return a hybrid; what it warns of is asked elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HybridCalibrator(random_state=0).fit(
            known.X, known.y, y_proba=known.P, groups=groups
        )


def lumps_alarm(name: str, n: int, seed: int) -> bool:
    """Tell whether independent rows in lumps are taken for copies."""
    rng = np.random.default_rng([seed, 18])
    X, chance = lumps_of(name, n, rng)
    y = (rng.random(n) < chance).astype(int)
    found = find_dependence(Problem(X, y, np.full((n, 2), 0.5)).items())
    return found is not None and found.near_copies


# -- values with strong effects --------------------------------------------------------------------


def category(n, rng, levels=60, sd=2.0, *, seen=True, whole=False, rare=False):
    """Draw rows with a category of many levels, each with an effect of its own."""
    often = 1 / np.arange(1, levels + 1) if rare else np.ones(levels)
    level, X = rng.choice(levels, n, p=often / often.sum()), rng.normal(size=(n, 2))
    y = rng.random(n) < expit(sd * rng.normal(size=levels)[level] + X[:, 0])
    names = level if whole else pd.Categorical(level)
    p = expit(X[:, 0]) if seen else np.full(n, y.mean())
    return pd.DataFrame({"level": names, "x0": X[:, 0], "x1": X[:, 1]}), y, p


def counts(n, rng, slope=4.0):
    """Draw counts of which two have steep effects."""
    X = rng.poisson(np.exp(rng.normal(size=(n, 1)) / 2), (n, 4))
    y = rng.random(n) < expit(slope * (X[:, 0] - X[:, 1]))
    return pd.DataFrame(X, columns=[*"abcd"]), y, np.full(n, y.mean())


def ratings(n, rng):
    """Draw five ratings of 1 to 5."""
    X = rng.integers(1, 6, (n, 5))
    y = rng.random(n) < expit(4 * (X[:, 0] + X[:, 1] - X[:, 2] - 3))
    return pd.DataFrame(X, columns=[*"abcde"]), y, expit(0.3 * (X[:, 0] - 3))


def ages(n, rng):
    """Draw ages, of which the young and the old are alike, and a steep count."""
    age, count = rng.integers(18, 80, n), rng.binomial(10, 0.4, n)
    y = rng.random(n) < expit(((age - 45) / 8) ** 2 - 4 + 2 * (count - 4))
    return pd.DataFrame({"age": age, "count": count}), y, np.full(n, y.mean())


def rounded(n, rng):
    """Draw numbers with one decimal."""
    X = rng.normal(size=(n, 3)).round(1)
    y = rng.random(n) < expit(8 * X[:, 0] + 4 * X[:, 1])
    return pd.DataFrame(X, columns=[*"abc"]), y, expit(0.5 * X[:, 2])


def two_categories(n, rng):
    """Draw two categories with effects of their own and together."""
    a, b, x = rng.integers(0, 25, n), rng.integers(0, 12, n), rng.normal(size=n)
    effect = (
        2 * rng.normal(size=25)[a] + 2 * rng.normal(size=12)[b] + rng.normal(size=(25, 12))[a, b]
    )
    y = rng.random(n) < expit(effect + x)
    return pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "x": x}), y, expit(x)


def category_and_count(n, rng):
    """Draw a category and a count, both with strong effects."""
    level, count = rng.integers(0, 60, n), rng.poisson(2, n)
    y = rng.random(n) < expit(3 * rng.normal(size=60)[level] + 4 * (count - 2))
    return pd.DataFrame({"level": level.astype(str), "count": count}), y, np.full(n, y.mean())


def events(n, rng, days=10, kind="whole"):
    """Draw events with one outcome each, which a feature or two tell apart."""
    event = rng.permutation(np.repeat(np.arange(n // days), days))
    strength = rng.normal(size=n // days)
    y, noise = (rng.random(n // days) < expit(strength))[event], rng.normal(size=(3, len(event)))
    X = pd.DataFrame({"strength": strength[event] + 0.05 * noise[0], "x": noise[1]})
    if kind == "two":
        X["region"], X["office"] = event // 3, event % 3
    else:
        X["event"] = {
            "whole": event,
            "text": pd.Categorical(event),
            "fraction": strength[event] / 7,
        }[kind]
    return X, y, expit(strength[event] + 0.1 * noise[2])


def persons(n, rng, rows=5, sd=2.0, *, whole=False):
    """Draw persons with an effect each, which a number tells apart."""
    person = rng.permutation(np.repeat(np.arange(n // rows), rows))
    x, effect = rng.normal(size=len(person)), sd * rng.normal(size=n // rows)
    told = person if whole else rng.normal(size=n // rows)[person]
    y = rng.random(len(x)) < expit(effect[person] + x)
    return pd.DataFrame({"x": x, "told": told}), y, expit(x)


INDEPENDENT: dict[str, dict[str, Any]] = {
    "develop": {"60 levels": category, "counts, slope 4": counts},
    "confirm": {
        "150 whole numbers, rare ones too": partial(
            category, levels=150, sd=3.0, whole=True, rare=True
        ),
        "200 levels, not in p": partial(category, levels=200, seen=False),
        "40 levels, effects of 6": partial(category, levels=40, sd=6.0),
        "ratings": ratings,
        "ages": ages,
        "one decimal": rounded,
        "two categories": two_categories,
        "category and count": category_and_count,
    },
}
DEPENDENT: dict[str, dict[str, Any]] = {
    "develop": {"events": events, "persons, a fraction": persons},
    "confirm": {
        "events of 6, text": partial(events, days=6, kind="text"),
        "events of 15, two columns": partial(events, days=15, kind="two"),
        "events of 4, a fraction": partial(events, days=4, kind="fraction"),
        "persons of 10, a fraction": partial(persons, rows=10, sd=1.5),
        "persons of 5, a whole number": partial(persons, whole=True),
    },
}


def print_levels(half: str, draws: int, rows: list[int], first: int) -> None:
    """Print alarms on independent rows with strong effects, and on rows that belong together."""
    for what, kinds in (("independent", INDEPENDENT[half]), ("dependent", DEPENDENT[half])):
        total = 0
        for name, draw in kinds.items():
            found = [
                level_alarm(draw, n, seed) for n in rows for seed in range(first, first + draws)
            ]
            total += sum(found)
            print(f"{what}, {name}: {sum(found)} of {len(found)}", flush=True)
        print(f"{what}: {total} of {len(kinds) * len(rows) * draws}")


def level_alarm(draw: Any, n: int, seed: int) -> bool:
    """Tell whether rows are said to belong together."""
    X, y, p = draw(n, np.random.default_rng([seed, n, 77]))
    return (
        find_dependence(Problem(X, y.astype(int), np.column_stack([1 - p, p])).items()) is not None
    )


def print_tables(rows: list[int]) -> None:
    """Print what is found in real tables, in rows drawn at random."""
    folder = Path(os.environ["HETCAL_DATA"])
    for name, label in (
        ("adult", "income"),
        ("bank-marketing", "y"),
        ("credit-default", "default"),
    ):
        file = folder / f"{name}.csv.gz"
        table = pd.read_csv(file, keep_default_na=False, na_values=[""])
        for n in rows:
            part = table.sample(2 * n, random_state=n).drop(columns="split", errors="ignore")
            y = pd.factorize(part.pop(label), sort=True)[0]
            numbers = part.select_dtypes("number").fillna(0)
            Z = (numbers - numbers.mean()) / (numbers.std() + 1e-9)
            model = LogisticRegression(max_iter=1000).fit(Z[:n], y[:n])
            stated = model.predict_proba(Z[n:])
            for output, P in (
                ("frequencies", np.tile(stated.mean(axis=0), (n, 1))),
                ("LR", stated),
            ):
                found = find_dependence(Problem(part[n:].reset_index(drop=True), y[n:], P).items())
                print(f"{name}, {n} rows, {output}: {found}", flush=True)


if __name__ == "__main__":
    main()
