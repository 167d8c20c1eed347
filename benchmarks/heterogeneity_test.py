"""Tests of hidden heterogeneity on the catalogue of problems: one command per table.

Every result is a line of a results file (not kept with the source), so that a run can be
interrupted and goes on where it stopped; tables are made from what is there. Shares of rejections
are kept beside it, in ``results/heterogeneity_HALF.csv``, with those of tests that are not at hand.
Usage::

    python benchmarks/heterogeneity_test.py scale                 # strengths of the alternatives
    python benchmarks/heterogeneity_test.py size --n 100 300 1000 3000
    python benchmarks/heterogeneity_test.py power                 # n = 500, or 1000 for K >= 3
    python benchmarks/heterogeneity_test.py bound --n 2000 10000
    python benchmarks/heterogeneity_test.py losses --half develop --n 2000 --draws 6
    python benchmarks/heterogeneity_test.py oracles --n 2000 10000
    python benchmarks/heterogeneity_test.py seeds
    python benchmarks/heterogeneity_test.py cells
    python benchmarks/heterogeneity_test.py time
    python benchmarks/heterogeneity_test.py peers --peers-python VENV/bin/python

``--half confirm`` (the default) is for reporting, ``--half develop`` for choosing. The seed of draw
i is i in the developing half and 1 000 000 + i in the confirming one. ``--test`` takes several
names (see `heterogeneity_rivals.py`); `old` needs ``--old-source`` (a source tree with its compiled
core), `prototype` the folder of its module. ``--show`` prints the table without running anything.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from functools import cache, partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.stats import norm

from hetcal.datasets import list_problems, make_problem
from hetcal.datasets.problems.alternatives import ALTERNATIVES
from hetcal.datasets.problems.scaling import find_strength
from hetcal.heterogeneity.grouping_loss import least_excess, size_along
from heterogeneity_rivals import TESTS, TWO_CLASSES_ONLY, Apart

LEVEL = 0.05
FIRST_SEED = {"develop": 0, "confirm": 1_000_000}
TIMED = ((3000, 30, 2), (10_000, 40, 3), (100_000, 20, 2))
BAND, MARGIN = (0.6, 0.8), 0.2  # items farther away share no cell of radius 0.1 with the band
KNOWN_FUNCTIONS = (1, 10, 20, 40, 80)
HELD = 0.85  # of the truth: a direction that misses little of it
CASE = ["test", "problem", "n"]
KEYS = [*CASE, "draw", "seed"]


# ---- results: one JSON line per test, problem, n, draw and seed of the test ----


def read(path: Path) -> pd.DataFrame:
    """All results so far; of a line that was written twice the later counts."""
    if not path.exists() or not path.stat().st_size:
        return pd.DataFrame(columns=[*KEYS, "p", "low", "found", "seconds"])
    rows = pd.read_json(path, lines=True, dtype={"p": float})
    return rows.drop_duplicates(KEYS, keep="last")


def measure(options: argparse.Namespace, wanted: list[dict]) -> pd.DataFrame:
    """Run what is not in the results file yet, and return the results of all that is wanted."""
    have = read(options.results)
    if not options.show:
        done = set(have[KEYS].itertuples(index=False, name=None))
        todo = [job for job in wanted if tuple(job[key] for key in KEYS) not in done]
        # Draw by draw over all problems: an interrupted run leaves a table with fewer draws.
        todo.sort(key=lambda job: (job["draw"], job["problem"]))
        where = (options.old_source, options.prototype, options.peers_python)
        run = partial(one, half=options.half, where=where)
        # Forked: a worker starts the tests that run apart once, and keeps them.
        with get_context("fork").Pool(options.jobs) as pool, options.results.open("a") as file:
            for row in pool.imap_unordered(run, todo):
                file.write(json.dumps(row) + "\n")
                file.flush()
        have = read(options.results)
    return have.merge(pd.DataFrame(wanted, columns=KEYS), on=KEYS)


def one(job: dict, half: str, where: tuple) -> dict:
    """One test on one draw; a test that fails has no p-value and says why."""
    data = make_problem(job["problem"], job["n"], FIRST_SEED[half] + job["draw"])
    start = time.process_time()
    try:
        if len(np.unique(data.y)) < 2:
            raise ValueError("one class only")
        call = data.X, data.y, data.y_proba, data.groups, data.sample_weight, job["seed"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = test_of(job["test"], where)(*call)
    except Exception as error:
        answer = {"p": np.nan, "error": f"{type(error).__name__}: {error}"[:200]}
    numbers = {k: round(float(v), 8) for k, v in answer.items() if k in ("p", "low", "found")}
    numbers = {k: v for k, v in numbers.items() if np.isfinite(v)}
    took = {"seconds": round(answer.get("cpu", time.process_time() - start), 3)}
    return job | numbers | took | ({"error": answer["error"]} if "error" in answer else {})


@cache
def test_of(name: str, where: tuple):
    """Return the callable of a test; in a process of its own where it needs another path."""
    old_source, prototype, peers_python = where
    if name in ("old", "old-cells"):
        return Apart(name.replace("old-", ""), sys.executable, needed(old_source, "--old-source"))
    if name in TWO_CLASSES_ONLY:
        return Apart(name, needed(peers_python, "--peers-python"), "")
    if name.startswith("prototype"):
        sys.path.insert(0, needed(prototype, "--prototype"))
    return TESTS[name]


def needed(value: str | None, option: str) -> str:
    if value is None:
        raise SystemExit(f"This test needs {option}.")
    return value


# ---- which draws a table is made of ----


def jobs(options: argparse.Namespace, problems: list[str], seeds=(0,)) -> list[dict]:
    """Every test on every draw of every problem at every n."""
    return [
        {"test": test, "problem": problem, "n": n, "draw": draw, "seed": seed}
        for test in options.test
        for problem in problems
        for n in options.n or [usual_n(problem)]
        for draw in range(options.first_draw, options.first_draw + options.draws)
        for seed in seeds
        if test not in TWO_CLASSES_ONLY or n_classes(problem) == 2
    ]


@cache
def n_classes(problem: str) -> int:
    return make_problem(problem, 20, 0).n_classes


def usual_n(problem: str) -> int:
    """Return the n at which an alternative is scaled; 300 for a null."""
    return ALTERNATIVES[problem].scaled_at if problem in ALTERNATIVES else 300


def chosen(options: argparse.Namespace, *kinds: str) -> list[str]:
    names = [name for kind in kinds for name in list_problems(kind, half=options.half)]
    return names if options.problems is None else [n for n in names if n in options.problems]


# ---- tables ----


def summarise(options: argparse.Namespace) -> pd.DataFrame:
    """Shares of p <= .05 of all results; those kept from earlier count where there are no others.

    A draw without an answer (`failed`) is no rejection.
    """
    path = options.results.with_suffix(".csv")
    rows = read(options.results)
    rows = rows[rows["seed"] == 0].assign(rejects=rows["p"] <= LEVEL, failed=rows["p"].isna())
    now = rows.groupby(CASE, as_index=False).agg(
        draws=("draw", "size"),
        failed=("failed", "sum"),
        rejects=("rejects", "mean"),
        seconds=("seconds", "median"),
    )
    kept = pd.read_csv(path) if path.exists() else now.head(0)
    # The larger number of draws last, which is the one that stays.
    table = pd.concat([kept, now]).sort_values("draws", kind="stable")
    table = table.drop_duplicates(CASE, keep="last").sort_values(CASE)
    table.round(4).to_csv(path, index=False, lineterminator="\n")
    return table


def rejections(options: argparse.Namespace, *kinds: str) -> pd.DataFrame:
    """Run what is wanted; share of rejections by problem and test, and draws by test."""
    problems = chosen(options, *kinds)
    measure(options, jobs(options, problems))
    rows = summarise(options)
    wanted = pd.DataFrame(jobs(options, problems), columns=KEYS)[CASE].drop_duplicates()
    rows = wanted.merge(rows, on=CASE).rename(columns={"rejects": "share of p <= .05"})
    if rows.empty:
        raise SystemExit("There are no results yet; run without --show.")
    shown = rows.pivot(index=["problem", "n"], columns="test")[["share of p <= .05", "draws"]]
    if rows["failed"].any():
        print(rows.loc[rows["failed"] > 0, [*CASE, "failed", "draws"]].to_string(index=False))
    return shown.loc[wanted.set_index(["problem", "n"]).index.unique().intersection(shown.index)]


def size(options):
    """Rejections where nothing is hidden, and the largest and the mean share of each test."""
    table = rejections(options, "null")
    print(table.round(3).to_string())
    print(table["share of p <= .05"].agg(["max", "mean"]).round(3).to_string())


def power(options):
    """Rejections where something is hidden; how the first test compares with the best other."""
    table = rejections(options, "alternative")
    shares = table["share of p <= .05"]
    print(table.round(3).to_string())
    print(shares.agg(["min", "mean"]).round(3).to_string())
    first = options.test[0]
    if first in shares and shares.shape[1] > 1:
        others = shares.drop(columns=first)
        less = shares[first] - others.max(axis=1)
        print(f"{first} less the best other: {less.min():.3f} in {less.idxmin()[0]},")
        print(f"{less.mean():.3f} on average; best mean of another {others.mean().max():.3f}")


def peers(options):
    """Power, size and time of other packages beside the test."""
    options.test = options.test if options.test != ["new"] else ["new", *TWO_CLASSES_ONLY]
    size(options)
    power(options)
    print(summarise(options).groupby("test")["seconds"].median().to_string())


def bound(options):
    """Coverage of the lower bound; how much of the truth it and the found part reach."""
    rows = measure(options, jobs(options, chosen(options, "null", "alternative")))
    rows = rows.dropna(subset=["low"])
    truth = {name: make_problem(name, 20, 0).grouping_loss for name in rows["problem"].unique()}
    rows["truth"] = rows["problem"].map(truth)
    rows["covers"] = rows["low"] <= rows["truth"] + 1e-12
    rows["low_share"] = rows["low"] / rows["truth"].where(rows["truth"] > 0)
    rows["found_share"] = rows["found"] / rows["truth"].where(rows["truth"] > 0)
    table = rows.groupby(["test", "problem", "n"], sort=False).agg(
        draws=("draw", "size"),
        truth=("truth", "first"),
        coverage=("covers", "mean"),
        low_of_truth=("low_share", "median"),
        found_of_truth=("found_share", "median"),
    )
    print(table.round(4).to_string())
    summary = table.groupby(["test", "n"]).agg(
        least_coverage=("coverage", "min"),
        low_of_truth=("low_of_truth", "median"),
        found_of_truth=("found_of_truth", "median"),
    )
    print(summary.round(3).to_string())


def losses(options):
    """Where the bound is lost, as shares of the truth, medians over draws.

    The direction holds `captured` of it (the mean of the found part, given the direction); the
    found part less its error is `bound`, and `stated` where the test rejects. The bound of who
    knows the truth but for its size is `oracle`.
    """
    names = chosen(options, "alternative")
    draws = range(options.first_draw, options.first_draw + options.draws)
    lines = [lost(name, n, options, i) for n in options.n for name in names for i in draws]
    every = pd.DataFrame(lines)
    table = every.groupby(["n", "problem"], sort=False).median()
    print(table.round(3).to_string())
    print(table.groupby("n").median().round(3).to_string())
    # Where the direction holds the truth, coverage is the level; elsewhere its loss is on top.
    held = every.groupby(["n", "problem"])["captured"].transform("median") > HELD
    for name, part in {"held": every[held], "not held": every[~held]}.items():
        print(f"bound covers, {name}: {(part['bound'] <= 1).mean():.3f} of {len(part)}")


def lost(name: str, n: int, options: argparse.Namespace, draw: int) -> dict:
    """Bounds along the direction that the package found, and along the truth."""
    level = options.level
    data = make_problem(name, n, FIRST_SEED[options.half] + draw)
    with patch("hetcal.heterogeneity.learning.size_along", wraps=size_along) as used:
        answer = TESTS["new"](data.X, data.y, data.y_proba, data.groups, data.sample_weight, 0)
    residuals, direction, weight, groups, _ = used.call_args.args
    order = slice(None)
    if data.groups is not None:  # the test sorts items by the names of their groups
        order = np.argsort(data.groups.astype(str), kind="stable")
    truth = (data.true_proba - data.recalibrated_proba)[order][:, -residuals.shape[1] :]
    both = 2 if residuals.shape[1] == 1 else 1
    shares = {
        "captured": both * np.average((truth * direction).sum(axis=1), weights=weight),
        "found": answer["found"],
        "bound": size_along(residuals, direction, weight, groups, level)[0],
        "stated": answer["low"],
        "oracle": size_along(residuals, scaled(truth, residuals, weight), weight, groups, level)[0],
    }
    shares = {key: value / data.grouping_loss for key, value in shares.items()}
    return {"n": n, "problem": name, **shares}


def scaled(truth: np.ndarray, residuals: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the least-squares prediction of the residuals by the truth."""
    return truth * (weight @ (residuals * truth)).sum() / (weight @ truth**2).sum()


def oracles(options):
    """Median bound of who knows some functions that hold all of the truth, as a share of it.

    Their least-squares prediction is a chi-square with so many degrees of freedom. Its
    non-centrality is that of an alternative which is found in 95 of 100 draws of `scaled_at` items
    by who knows its direction.
    """
    rng, lines = np.random.default_rng(0), []
    for n, scaled_at, functions in product(options.n, (500, 1000), KNOWN_FUNCTIONS):
        truth = (norm.ppf(0.95) - norm.ppf(LEVEL)) ** 2 * n / scaled_at
        seen = rng.noncentral_chisquare(functions, truth, options.draws)
        bound = np.median([least_excess(value, functions, options.level) for value in seen])
        lines.append((n, scaled_at, functions, bound / truth))
    table = pd.DataFrame(lines, columns=["n", "scaled_at", "functions", "bound"])
    print(table.pivot(index=["n", "scaled_at"], columns="functions").round(2).to_string())


def seeds(options):
    """How far p moves with the seed of the test, on draws whose p at seed 0 is near .01."""
    problems = chosen(options, "alternative")
    first = measure(options, jobs(options, problems))
    near = first[first["p"].between(0.004, 0.025)]
    wanted = [
        {key: row[key] for key in KEYS} | {"seed": seed}
        for row in near.head(options.data_sets).to_dict("records")
        for seed in range(10)
    ]
    rows = measure(options, wanted)
    table = rows.groupby(["test", "problem", "n", "draw"])["p"].agg(["min", "max", "size"])
    table["ratio"] = table["max"] / table["min"]
    print(table.to_string())
    print(table.groupby("test")["ratio"].describe().round(2).to_string())


def cells(options):
    """One fifth of the items by p hides something: found there, and found elsewhere.

    The effect is `--strength` logits per unit of a normal feature (linear), or 1.25 times that by
    the sign of a product (xor). Found: an item with q <= .10. False: found, and its p is farther
    from the fifth than the diameter of a cell.
    """
    lines = []
    where = (options.old_source, options.prototype, options.peers_python)
    for test in options.test:
        name = "old-cells" if test == "old" else "cells"
        for shape in ("linear", "xor", "none"):
            draws = [
                one_of_five(shape, options, draw, test_of(name, where))
                for draw in range(options.draws)
            ]
            lines.append({"test": test, "shape": shape, **pd.DataFrame(draws).mean()})
    print(pd.DataFrame(lines).round(3).to_string())


def one_of_five(shape: str, options: argparse.Namespace, draw: int, test) -> dict:
    rng = np.random.default_rng([FIRST_SEED[options.half], draw])
    n = (options.n or [1000])[0]
    X = rng.normal(size=(n, 10))
    z = 1.2 * X[:, 0]
    low, high = (1.2 * np.quantile(np.random.default_rng(0).normal(size=10**6), q) for q in BAND)
    effect = {"linear": X[:, 1], "xor": 1.25 * np.sign(X[:, 1] * X[:, 2]), "none": 0 * z}[shape]
    inside = (z > low) & (z < high)
    y = rng.random(n) < 1 / (1 + np.exp(-z - options.strength * effect * inside))
    p = 1 / (1 + np.exp(-z))
    q = test(X, y.astype(int), np.column_stack([1 - p, p]), None, None, draw)["q"]
    edges = 1 / (1 + np.exp(-np.array([low, high])))
    far = (p < edges[0] - MARGIN) | (p > edges[1] + MARGIN) | (shape == "none")
    found = np.nan_to_num(q, nan=1.0) <= 0.1
    return {"power": (found & inside).any(), "false": (found & far).sum() / max(found.sum(), 1)}


def time_(options):
    """CPU seconds of one test by items, features and classes; run with OMP_NUM_THREADS=1."""
    lines = []
    where = (options.old_source, options.prototype, options.peers_python)
    for test in options.test:
        for n, d, K in TIMED:
            rng = np.random.default_rng(0)
            X = rng.normal(size=(n, d))
            Z = X[:, :3] @ rng.normal(size=(3, K))
            P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
            y = (rng.random((n, 1)) >= np.cumsum(P, axis=1)[:, :-1]).sum(axis=1)
            run, start = test_of(test, where), time.process_time()
            answer = run(X, y, P, None, None, 0)
            cpu = answer.get("cpu", time.process_time() - start)
            lines.append({"test": test, "n": n, "d": d, "K": K, "cpu_seconds": cpu})
            print(pd.DataFrame(lines[-1:]).round(2).to_string(header=len(lines) == 1), flush=True)


def scale(options):
    """Print the strength of every alternative, as stored in `datasets/problems/strengths.py`."""
    for name in options.problems or list_problems("alternative"):
        print(f'    "{name}": {find_strength(name)},', flush=True)


COMMANDS = {
    "scale": scale,
    "size": size,
    "power": power,
    "bound": bound,
    "losses": losses,
    "oracles": oracles,
    "seeds": seeds,
    "cells": cells,
    "time": time_,
    "peers": peers,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--half", choices=FIRST_SEED, default="confirm")
    parser.add_argument("--test", nargs="+", default=["new"], choices=TESTS)
    parser.add_argument("--problems", nargs="+", help="only these")
    parser.add_argument("--n", nargs="+", type=int, help="items; default: see the table")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first-draw", type=int, default=0, help="e.g. 1000 for fresh draws")
    parser.add_argument("--data-sets", type=int, default=20, help="of the table of seeds")
    parser.add_argument("--strength", type=float, default=2.0, help="of the table of cells")
    parser.add_argument("--level", type=float, default=LEVEL, help="of the bound in losses")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print from the results there are")
    parser.add_argument("--old-source", help="source tree of the test called old")
    parser.add_argument("--prototype", help="folder that holds recipe.py")
    parser.add_argument("--peers-python", help="interpreter with glest and mcgrad")
    parser.add_argument("--results", type=Path, help="default: results/heterogeneity_HALF.jsonl")
    options = parser.parse_args()
    if options.results is None:
        folder = Path(__file__).parent / "results"
        options.results = folder / f"heterogeneity_{options.half}.jsonl"
    options.results.parent.mkdir(exist_ok=True)
    COMMANDS[options.command](options)


if __name__ == "__main__":
    main()
