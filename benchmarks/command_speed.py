"""How long the commands take, beside a random forest that is fitted to the same table.

    OMP_NUM_THREADS=1 python benchmarks/command_speed.py                # 3000 rows
    OMP_NUM_THREADS=1 python benchmarks/command_speed.py --large        # and larger tables
    OMP_NUM_THREADS=1 python benchmarks/command_speed.py large-fit      # one job of these

Times are processor seconds of one thread, in a process of their own where a command is measured
(start and imports included); each stands beside its ratio to ``RandomForestClassifier(300)``,
fitted in the same run. Tables are those of ``fit_speed.py``: missing values, categories, groups.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

import hetcal
from embeddings import generate
from fit_speed import Table, make_table, seconds

METHODS = ["uncalibrated", "temperature", "swc", "hybrid"]
N_NEW = 20_000
N_WIDE = 6000
GROWTH = (1000, 4000, 16_000, 100_000)  # rows; exponents are those from the first on
# Python keeps what it has compiled, as it does where the package is installed.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "",
}


def command(*arguments: object, environment: Mapping[str, str] = _ENVIRONMENT) -> float:
    """Return processor seconds of one command in a process of its own."""
    line = [sys.executable, "-m", "hetcal", *map(str, arguments), "--quiet"]
    return process(line, environment)


def process(arguments: list[str], environment: Mapping[str, str] = _ENVIRONMENT) -> float:
    """Return processor seconds of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, check=True, capture_output=True, env=os.environ | environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def written(table: Table, folder: Path) -> Path:
    """Write a table for the commands: features, ``group``, label ``y`` and ``p_0``, ``p_1``, ..."""
    columns = {f"p_{k}": table.y_proba[:, k] for k in range(table.y_proba.shape[1])}
    path = folder / f"{len(table.y)}-{table.X.shape[1]}-{table.y_proba.shape[1]}.csv"
    table.X.assign(group=table.groups, y=table.y, **columns).to_csv(path, index=False)
    return path


def forest_seconds(table: Table) -> float:
    """Return what the forest takes that everything is compared with."""
    return seconds(lambda: RandomForestClassifier(300, random_state=0).fit(table.encoded, table.y))


def show(job: str, took: float, forest: float) -> None:
    print(f"{job:58} {took:8.2f} s {took / forest:8.2f} x forest", flush=True)


def measure_start(folder: Path) -> None:
    """Print what ``apply`` takes for one row: the start is all there is."""
    table = make_table(1000, 10, 2)
    path, model = written(table, folder), folder / "model.hetcal"
    roles = ["--label", "y", "--proba", "p_*", "--groups", "group"]
    command("fit", path, *roles, "-o", model)
    one = folder / "one.csv"
    one.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    took = min(command("apply", model, one, "-o", folder / f"out{i}.csv") for i in range(3))
    show("apply, start until the first row", took, forest_seconds(table))
    bare = [sys.executable, "-c", "import sklearn.base, pandas"]
    show("import sklearn.base, pandas", min(process(bare) for i in range(3)), forest_seconds(table))


def measure_command(name: str, folder: Path, table: Table, *, groups: bool) -> None:
    """Print what ``diagnose`` or ``fit`` takes."""
    together = ["--groups", "group"] if groups else ["--drop", "group"]
    roles = ["--label", "y", "--proba", "p_*", *together]
    out = folder / ("report.html" if name == "diagnose" else "model.hetcal")
    took = command(name, written(table, folder), *roles, "-o", out)
    n, d, classes = len(table.y), table.X.shape[1], table.y_proba.shape[1]
    show(f"{name}, {n} x {d}, {classes} classes", took, forest_seconds(table))


def measure_compare(_: Path) -> None:
    """Print what ``compare`` takes with four methods and the baselines."""
    table = make_table(3000, 30, 3)

    def compare() -> None:
        hetcal.compare(table.X, table.y, y_proba=table.y_proba, methods=METHODS, n_jobs=1)

    took = seconds(compare)
    show("compare, four methods and baselines, 3000 x 30, 3 classes", took, forest_seconds(table))


def measure_prediction(_: Path) -> None:
    """Print what a prediction of the hybrid takes."""
    new = make_table(N_NEW, 10, 2, seed=1)
    for n in (1000, 4000):
        table = make_table(n, 10, 2)
        hybrid = hetcal.HybridCalibrator(n_jobs=1).fit(table.X, table.y, y_proba=table.y_proba)
        took = seconds(lambda hybrid=hybrid: hybrid.predict_proba(new.X, y_proba=new.y_proba))
        job = f"hybrid, prediction, {n} items: {1e6 * took / N_NEW:.0f} us a row"
        show(job, took, forest_seconds(table))


def measure_diagnose(folder: Path) -> None:
    measure_command("diagnose", folder, make_table(3000, 30, 2), groups=False)


def measure_large_fit(folder: Path) -> None:
    measure_command("fit", folder, make_table(10_000, 40, 3), groups=True)


def measure_large_diagnose(folder: Path) -> None:
    measure_command("diagnose", folder, make_table(10_000, 40, 3), groups=True)


def measure_growth(_: Path) -> None:
    """Print how the time of ``HiddenHeterogeneity()`` grows with the rows: exponents."""
    before: tuple[int, float] | None = None
    hidden = hetcal.HiddenHeterogeneity(n_jobs=1)
    small = make_table(200, 20, 2)
    hidden.fit(small.X, small.y, y_proba=small.y_proba)  # loads what is loaded when it is needed
    for n in GROWTH:
        table = make_table(n, 20, 2)
        took = seconds(lambda table=table: hidden.fit(table.X, table.y, y_proba=table.y_proba))
        rose = "" if before is None else f"exponent {math.log(took / before[1], n / before[0]):.2f}"
        print(f"{f'HiddenHeterogeneity, {n} x 20, 2 classes':58} {took:8.2f} s {rose}", flush=True)
        before = before or (n, took)


def measure_threads(folder: Path) -> None:
    """Print what threads of BLAS cost and bring: a narrow table and a wide one."""
    roles = ["--label", "y", "--proba", "p_*"]
    X, y, y_proba = generate(N_WIDE, 768, 1)
    wide = folder / "wide.parquet"
    columns = {f"p_{k}": y_proba[:, k] for k in range(2)}
    pd.DataFrame(X).add_prefix("x").assign(y=y, **columns).to_parquet(wide)
    jobs = {
        "diagnose, 3000 x 30": (
            *("diagnose", written(make_table(3000, 30, 2), folder), *roles, "--drop", "group"),
            *("-o", folder / "report.html"),
        ),
        f"fit, {N_WIDE} x 768": ("fit", wide, *roles, "--overwrite", "-o", folder / "w.hetcal"),
    }
    for job, words in jobs.items():
        for n_threads in (1, os.cpu_count()):
            environment = _ENVIRONMENT | {"OMP_NUM_THREADS": str(n_threads)}
            environment["OPENBLAS_NUM_THREADS"] = str(n_threads)
            start = time.perf_counter()
            took = command(*words, environment=environment)
            clock = time.perf_counter() - start
            print(f"{job}, {n_threads} threads: {clock:.1f} s, processor {took:.1f} s", flush=True)


SMALL = {
    "start": measure_start,
    "prediction": measure_prediction,
    "diagnose": measure_diagnose,
    "compare": measure_compare,
}
LARGE = {
    "large-fit": measure_large_fit,
    "large-diagnose": measure_large_diagnose,
    "growth": measure_growth,
    "threads": measure_threads,
}


def main() -> None:
    """Measure one job after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", help=f"some of {', '.join(SMALL | LARGE)}")
    parser.add_argument("--large", action="store_true", help="also larger tables")
    arguments = parser.parse_args()
    jobs = arguments.jobs or [*SMALL, *(LARGE if arguments.large else [])]
    warnings.simplefilter("ignore")
    with threadpool_limits(1), tempfile.TemporaryDirectory() as name:
        for job in jobs:
            (SMALL | LARGE)[job](Path(name))


if __name__ == "__main__":
    main()
