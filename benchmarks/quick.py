"""Small versions of every topic, within two minutes, each result held to wide limits.

They show that the proof can still be run and that nothing is badly off; what is claimed is
measured by the parts themselves. All seeds are fixed, so that a check that passes does so again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.parts import FOLDER, script
from hetcal import HybridCalibrator, SimilarityCalibrator, SupportMonitor, get_calibrator
from hetcal.datasets import list_problems, make_hidden_heterogeneity
from hetcal.paper.runner import run_trials
from hetcal.paper.settings import PAPER_METHODS, make_trials
from hetcal.paper.store import Store, load_results

STORED = FOLDER.parent / "experiments" / "results"


@dataclass(frozen=True)
class Check:
    """A result and the limits between which it must lie, both included."""

    what: str
    value: float
    low: float
    high: float

    @property
    def passed(self) -> bool:
        """Whether the value lies within the limits; NaN does not."""
        return bool(self.low <= self.value <= self.high)


def repair() -> Iterator[Check]:
    """Compute the paper's moons again; try the hybrid where much is hidden, and nothing."""
    trials = [t for t in make_trials("moons", list(PAPER_METHODS)) if t.seed == 0]
    with tempfile.TemporaryDirectory() as folder:
        run_trials(trials, Store(folder), jobs=1, report=lambda done: None)
        now = load_results(folder).set_index("key")["brier"]
    stored = load_results(STORED, "moons").set_index("key")["brier"]
    common = now.index.intersection(stored.index)
    yield Check("stored moons trials computed again", len(common), 16, 100)
    off = float((now[common] - stored[common]).abs().max())
    yield Check("largest difference of their Brier scores", off, 0, 1e-6)

    drawn = make_hidden_heterogeneity(1000, heterogeneity=0.8, random_state=11)
    new = drawn.sample(4000, random_state=12)
    excess = {}
    for name in ("global", "hybrid"):
        fitted = get_calibrator(name).fit(drawn.X, drawn.y, y_proba=drawn.y_proba)
        Q = fitted.predict_proba(new.X, y_proba=new.y_proba)
        excess[name] = ((Q - new.true_proba) ** 2).sum(axis=1).mean()
    share = excess["hybrid"] / excess["global"]
    yield Check("hidden: excess of the hybrid over that of the best map of p", share, 0, 0.7)

    perfect = HybridCalibrator().fit(drawn.X, drawn.y, y_proba=drawn.true_proba)
    Q = perfect.predict_proba(new.X, y_proba=new.true_proba)
    least = (new.true_proba * (1 - new.true_proba)).sum(axis=1).mean()
    cost = ((Q - new.true_proba) ** 2).sum(axis=1).mean() / least
    yield Check("perfect model: cost of the hybrid, % of the Brier score", 100 * cost, 0, 3)


def maps() -> Iterator[Check]:
    """Measure what the average of maps costs behind a perfect model."""
    maps_script = script("global_calibrators")
    rng = np.random.default_rng(13)
    costs = [
        maps_script.one_cost(rng, lambda r, n: maps_script.beta_rows(r, n, 1, 1), 200)
        for _ in range(10)
    ]
    mean = 100 * float(np.mean(costs))
    yield Check("perfect model: cost of `global`, % of the Brier score", mean, 0, 1.5)


def diagnosis() -> Iterator[Check]:
    """Count rejections of the heterogeneity test on problems of the developing half."""
    runner = script("heterogeneity_test")

    def rejections(problems: list[str], n: int, draws: int) -> tuple[int, int]:
        found = [
            runner.one(
                {"test": "new", "problem": problem, "n": n, "seed": 0, "draw": 500 + draw},
                *("develop", (None, None, None)),
            )
            for problem in problems
            for draw in range(draws)
        ]
        return sum(row["p"] <= 0.05 for row in found), len(found)

    wrong, nulls = rejections(list_problems("null", half="develop")[:6], 300, 3)
    yield Check(f"nothing hidden: rejections at 5 %, of {nulls}", wrong, 0, 4)
    # At four times the items for which an oracle finds them in 95 of 100 draws.
    right, plain = rejections(["linear", "slope", "missing-as-signal"], 2000, 2)
    yield Check(f"something hidden: rejections, of {plain}", right, plain // 2, plain)


def coverage() -> Iterator[Check]:
    """Count intervals of gains and levels of support and of the monitor that hold."""
    levels = script("coverage_of_levels")
    for name, n, draws, low in (("gains", 200, 2, 0.8), ("support", 300, 2, 0.85)):
        study = levels.STUDIES[name]
        study = replace(study, problems=study.problems[:3], draws={n: draws})
        *_, found = levels.run(study, 1.0)
        total, held = found["draws"].sum(), found["held"].sum()
        yield Check(f"{name}: share of {total} claims that hold", held / total, low, 1)


def forecasts() -> Iterator[Check]:
    """Repair doctors' forecasts; leave forecasts of games about as they are."""
    if not os.environ.get("HETCAL_DATA"):
        print("forecasts: left out, HETCAL_DATA does not name the data folder")
        return
    tables = script("repair_tables")
    for table, whose, high in (
        ("forecasts-doctors", "physician_180d", 1.0),
        ("forecasts-games", "team1", 1.01),
    ):
        cal, new = tables.make_case(table, whose, 500, 0)
        before, after = (
            tables.measure(name, cal, new)["brier"] for name in ("uncalibrated", "hetcal hybrid")
        )
        yield Check(f"{table}: Brier score of the hybrid over the stated", after / before, 0, high)


def cost() -> Iterator[Check]:
    """Time the hybrid's fit beside a random forest's on the same table."""
    speed = script("fit_speed")
    table = speed.make_table(1000, 15, 2)
    forest = speed.RandomForestClassifier(300, random_state=0)
    X, y = table.encoded, table.y
    yard = speed.seconds(lambda: forest.fit(X, y))
    hybrid = HybridCalibrator(n_jobs=1)
    took = speed.seconds(lambda: hybrid.fit(table.X, y, y_proba=table.y_proba))
    yield Check("fit of the hybrid, times RandomForestClassifier(300)", took / yard, 0, 12)


def monitor() -> Iterator[Check]:
    """Watch a stream of the same law, and one that has moved."""
    drawn = make_hidden_heterogeneity(500, random_state=14)
    new = drawn.sample(1000, random_state=15)
    swc = SimilarityCalibrator().fit(drawn.X, drawn.y, y_proba=drawn.y_proba)
    for what, moved, alarm in (("same law", 0.0, 0), ("moved by three", 3.0, 1)):
        watching = SupportMonitor(swc).fit(drawn.X, y_proba=drawn.y_proba)
        watching.update(new.X + moved, y_proba=new.y_proba)
        found = float(watching.alarm_ is not None)
        yield Check(f"1000 items, {what}: alarms of support", found, alarm, alarm)


def security() -> Iterator[Check]:
    """Load damaged files, starting from those of the tests."""
    golden = FOLDER.parent / "tests" / "data" / "golden" / "v1"
    with tempfile.TemporaryDirectory() as folder:
        for path in golden.glob("*.hetcal"):
            if "swc-hh" not in path.name:  # their predictions grow forests
                (Path(folder) / path.name).write_bytes(path.read_bytes())
        command = [sys.executable, str(FOLDER / "fuzz_load.py"), "--samples", folder]
        command += ["--mutations", "60", "--first", "2000000"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout + done.stderr)
    yield Check("60 damaged files: exit status", done.returncode, 0, 0)


TOPICS: dict[str, Callable[[], Iterator[Check]]] = {
    "repair": repair,
    "maps": maps,
    "diagnosis": diagnosis,
    "coverage": coverage,
    "forecasts": forecasts,
    "cost": cost,
    "monitor": monitor,
    "security": security,
}


def run_checks(only: list[str] | None = None) -> int:
    """Run the checks of the topics, print each, and return 1 where one is out of its limits."""
    unknown = set(only or ()) - set(TOPICS)
    if unknown:
        print(f"quick knows {', '.join(TOPICS)}, not {', '.join(sorted(unknown))}.")
        return 2
    failed, began = 0, time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for topic in only or TOPICS:
            start = time.process_time()
            for check in TOPICS[topic]():
                failed += not check.passed
                print(
                    f"{'passed' if check.passed else 'FAILED'}  {topic:10} {check.what}: "
                    f"{check.value:.4g} (limits {check.low:g} to {check.high:g})",
                    flush=True,
                )
            print(f"{'':7} {topic:10} {time.process_time() - start:.1f} s of processor time")
    print(f"{failed} out of limits; {time.perf_counter() - began:.0f} s on the clock")
    return int(failed > 0)
