"""How often rows are said to belong together: independent rows of the catalogue, and a panel.

    python benchmarks/dependence.py                       # confirming half, 200, 1000 and 3000 rows
    python benchmarks/dependence.py --half develop --draws 4

Every draw is taken as it is, sorted by label, by probability or by the first feature in turn: none
of these makes rows dependent. The panel is what a warning is for: events with one outcome each,
forecast on several days, with the number of the event as a column that is no feature.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from hetcal._validation.containers import take_rows
from hetcal.data import CalibrationSet
from hetcal.datasets import list_problems, make_problem
from hetcal.diagnosis.dependence import find_dependence

ORDERS = ("as drawn", "by label", "by probability", "by the first feature")
FIRST_SEED = {"develop": 0, "confirm": 1000}


def main() -> None:
    """Print the share of alarms."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=tuple(FIRST_SEED), default="confirm")
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000, 3000])
    options = parser.parse_args()
    for n in options.rows:
        alarms = [
            (name, ORDERS[draw % 4])
            for name in list_problems(half=options.half)
            for draw in range(options.draws)
            if alarmed(name, n, FIRST_SEED[options.half] + draw, ORDERS[draw % 4])
        ]
        total = len(list_problems(half=options.half)) * options.draws
        print(f"{n} independent rows: {len(alarms)} alarms in {total} draws {alarms or ''}")
    for n_events in (30, 60, 200):
        found = [panel_is_found(n_events, seed) for seed in range(10 * options.draws)]
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


if __name__ == "__main__":
    main()
