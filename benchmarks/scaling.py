"""Rows per second, memory per worker, growth with every size, and what a billion rows would cost.

python benchmarks/scaling.py              # about half an hour on a quiet machine
python benchmarks/scaling.py --quick      # small sizes: does it run?
python benchmarks/scaling.py --write      # also put the tables into docs/how-to/scaling.md

Growth is measured in processor time, which other programs disturb little. The gain from a second
process is a ratio of two times on the clock, and wants a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from hetcal import get_calibrator
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.kernels import core_name
from hetcal.tables import TableWriter

METHODS = ("temperature", "swc", "swc-hh", "hybrid")
PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "scaling.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
HETCAL = "import sys; from hetcal.cli import main; main(sys.argv[1:])"
# Runs a command and tells its processor time and its peak memory.
MEASURE = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
    "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
    "print(used.ru_utime + used.ru_stime, used.ru_maxrss)"
)
BASE = {"n_test": 20_000, "n_cal": 1000, "d": 10, "K": 2}
GRID = {
    "n_test": (20_000, 40_000, 80_000),
    "n_cal": (1000, 2000, 4000),
    "d": (10, 20, 40),
    "K": (2, 4, 8),
}
QUICK = {"n_test": (500, 1000), "n_cal": (100, 200), "d": (5, 10), "K": (2, 3)}
FIT_ROWS = {"parquet": (200_000, 1_000_000), "csv": (50_000, 250_000)}
FIT_ROWS_QUICK = {"parquet": (20_000, 40_000)}
CORES = 64


def table_of(data) -> pd.DataFrame:
    """Return features, probabilities and labels as a table."""
    table = pd.DataFrame(data.X.round(4), columns=[f"x{j}" for j in range(data.X.shape[1])])
    for k in range(data.y_proba.shape[1]):
        table[f"p_{k}"] = data.y_proba[:, k]
    return table.assign(outcome=data.y)


# -- through the command line: rows per second, memory, two processes


def commands(*lines: str, folder: Path) -> tuple[float, float, float]:
    """Run commands at the same time; return seconds on the clock, processor seconds, largest MB."""
    started = time.perf_counter()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", MEASURE, sys.executable, "-c", HETCAL, *line.split()],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        for line in lines
    ]
    said = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise RuntimeError(f"One of these failed: {lines}")
    used = [tuple(map(float, text.split()[-2:])) for text in said]
    return (
        time.perf_counter() - started,
        sum(cpu for cpu, _ in used),
        max(peak for _, peak in used) / 1e3,
    )


def apply_rates(methods: list[str], n_rows: int, n_cal: int) -> Iterator[dict]:
    """Yield, by method, what ``hetcal apply`` does with a Parquet table of 10 features."""
    data = make_hidden_heterogeneity(
        n_cal, n_features=10, heterogeneity=0.9, miscalibration=1.0, random_state=0
    )
    part = table_of(data.sample(10_000, random_state=1)).drop(columns="outcome")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table_of(data).to_csv(folder / "cal.csv", index=False)
        for stem, size in (("all", n_rows), ("half", n_rows // 2), ("few", n_rows // 10)):
            with TableWriter(folder / f"{stem}.parquet") as table:
                for start in range(0, size, len(part)):
                    piece = part[: min(len(part), size - start)]
                    table.write({column: piece[column].to_numpy() for column in piece})
        for method in methods:
            print(f"apply: {method}", file=sys.stderr, flush=True)
            fit = f"fit cal.csv --label outcome --proba p_* --method {method} -o m.hetcal"
            commands(f"{fit} --overwrite -q", folder=folder)

            def apply(table: str, out: str, more: str = "") -> str:
                line = f"apply m.hetcal {table}.parquet -o {out} --overwrite -q --columns q,support"
                return f"{line} {more}"

            _, few, _ = commands(apply("few", "a.parquet"), folder=folder)
            one, cpu, peak = commands(apply("all", "a.parquet"), folder=folder)
            two, _, _ = commands(
                apply("half", "a.parquet"), apply("half", "b.parquet"), folder=folder
            )
            found = {
                "method": method,
                "n_rows": n_rows,
                # Starting the program and loading the model is the same for few rows and many.
                "cpu_per_row": (cpu - few) / (n_rows - n_rows // 10),
                "start": few - (cpu - few) / 9,
                "peak": peak,
                "one": n_rows / one,
                "two": 2 * (n_rows // 2) / two,
            }
            if find_spec("distributed") is not None:
                try:
                    dask, _, _ = commands(
                        apply("all", "parts", "--engine dask --workers 2"), folder=folder
                    )
                    found["dask"] = n_rows / dask
                except RuntimeError:
                    found["dask"] = np.nan
            yield found


def fit_memory(sizes: dict[str, tuple[int, int]], n_features: int = 30) -> str:
    """Return a table of the peak memory of ``hetcal fit`` for tables of two sizes."""
    data = make_hidden_heterogeneity(10_000, n_features=n_features, random_state=0)
    part = table_of(data)
    lines = ["| table | rows | peak memory | processor time |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for ending, rows in sizes.items():
            for n_rows in rows:
                print(f"fit: {n_rows} rows of {ending}", file=sys.stderr, flush=True)
                with TableWriter(folder / f"log.{ending}", overwrite=True) as table:
                    for start in range(0, n_rows, len(part)):
                        piece = part[: min(len(part), n_rows - start)]
                        table.write({column: piece[column].to_numpy() for column in piece})
                line = f"fit log.{ending} --label outcome --proba p_* --method swc --max-rows 5000"
                _, cpu, peak = commands(f"{line} -o m.hetcal --overwrite -q", folder=folder)
                lines.append(f"| {ending} | {n_rows:,} | {peak:.0f} MB | {cpu:.1f} s |")
    return "\n".join(lines)


def show_rates(rates: list[dict]) -> str:
    """Return a table of rows per second."""
    lines = [
        "| method | processor time per row | rows/s, 1 process | rows/s, 2 processes | gain | "
        "rows/s, `--engine dask --workers 2` | start | memory per process |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in rates:
        dask = r.get("dask", np.nan)
        lines.append(
            f"| `{r['method']}` | {r['cpu_per_row'] * 1e6:.1f} µs | {r['one']:,.0f} | "
            f"{r['two']:,.0f} | {r['two'] / r['one']:.2f} | "
            f"{'not measured' if np.isnan(dask) else f'{dask:,.0f}'} | {r['start']:.1f} s | "
            f"{r['peak']:.0f} MB |"
        )
    return "\n".join(lines)


def show_billion(rates: list[dict]) -> str:
    """Return what a billion rows would cost."""
    lines = [
        f"| method | processor hours | hours on 1 core | hours on {CORES} cores |",
        "|---|---|---|---|",
    ]
    for r in rates:
        hours = 1e9 * r["cpu_per_row"] / 3600
        gain = min(2.0, r["two"] / r["one"]) / 2
        lines.append(
            f"| `{r['method']}` | 10⁹ x {r['cpu_per_row'] * 1e6:.1f} µs = {hours:.1f} h | "
            f"{hours:.1f} | {hours:.1f} / ({CORES} x {gain:.2f}) = {hours / CORES / gain:.2f} |"
        )
    return "\n".join(lines)


# -- in this process: how cost grows


def cost(method: str, *, n_test: int, n_cal: int, d: int, K: int, repeats: int) -> dict[str, float]:
    """Return processor seconds of fit and of predict_proba, the least of some repetitions."""
    cal = make_hidden_heterogeneity(
        n_cal, n_features=d, n_classes=K, heterogeneity=0.9, miscalibration=1.0, random_state=0
    )
    new = cal.sample(n_test, random_state=1)
    taken: dict[str, list[float]] = {"fit": [], "predict": []}
    for repeat in range(repeats):
        calibrator = get_calibrator(method)
        start = time.process_time()
        calibrator.fit(cal.X, cal.y, y_proba=cal.y_proba)
        middle = time.process_time()
        calibrator.predict_proba(new.X, y_proba=new.y_proba)
        taken["predict"].append(time.process_time() - middle)
        taken["fit"].append(middle - start)
        if repeat == 0 and taken["fit"][0] > 20:
            break
    return {what: min(times) for what, times in taken.items()}


def growth(methods: list[str], grid: dict[str, tuple[int, ...]], repeats: int) -> Iterator[dict]:
    """Yield processor times, one size varied at a time from the smallest of each."""
    base = {name: values[0] for name, values in grid.items()}
    for method in methods:
        print(f"growth: {method}", file=sys.stderr, flush=True)
        done = cost(method, **base, repeats=repeats)
        for name, values in grid.items():
            for value in values:
                given = base | {name: value}
                found = done if given == base else cost(method, **given, repeats=repeats)
                yield {"method": method, "size": name, "value": value, **found}


def exponent(values: pd.Series, seconds: pd.Series) -> float:
    """Return b of the power law seconds ~ value^b."""
    return float(np.polyfit(np.log(values), np.log(seconds.clip(lower=1e-6)), 1)[0])


def show_growth(found: pd.DataFrame) -> str:
    """Return the cost at the smallest sizes, and the exponents."""
    lines = []
    for what, sizes in (("predict", list(GRID)), ("fit", ["n_cal", "d", "K"])):
        base = "predict_proba" if what == "predict" else "fit"
        lines += [
            f"| `{base}` | at the base | " + " | ".join(sizes) + " |",
            "|---|---|" + "---|" * len(sizes),
        ]
        for method, rows in found.groupby("method", sort=False):
            powers = [
                f"{exponent(part['value'], part[what]):+.2f}"
                for name in sizes
                for part in [rows[rows["size"] == name]]
            ]
            lines.append(
                f"| `{method}` | {rows[what].iloc[0]:.3f} s | " + " | ".join(powers) + " |"
            )
        lines.append("")
    return "\n".join(lines).strip()


# -- threads that wait

WAITING = """
import time, numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier as Boosting
rng = np.random.default_rng(0)
X = rng.normal(size=(10_000, 30)); y = (X[:, 0] + rng.normal(size=10_000) > 0).astype(int)
Boosting(max_iter=2).fit(X, y)
wall, cpu = time.perf_counter(), time.process_time()
Boosting(max_iter=60, early_stopping=False).fit(X, y)
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def waiting() -> str:
    """Return times of gradient boosting with threads that wait in a loop, and asleep."""
    lines = ["| threads wait | seconds on the clock | processor seconds |", "|---|---|---|"]
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    for words, more in (
        ("in a loop (OpenMP's default)", {}),
        ("asleep (`OMP_WAIT_POLICY=PASSIVE`, as the commands do)", {"OMP_WAIT_POLICY": "PASSIVE"}),
        ("never: one thread (`OMP_NUM_THREADS=1`)", {"OMP_NUM_THREADS": "1"}),
    ):
        said = subprocess.run(
            [sys.executable, "-c", WAITING],
            check=True,
            capture_output=True,
            text=True,
            env=plain | more,
        ).stdout.split()
        lines.append(f"| {words} | {float(said[0]):.2f} | {float(said[1]):.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the page where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    parser.add_argument("--rows", type=int, help="rows for apply")
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by commas")
    options = parser.parse_args()
    methods = options.methods.split(",")
    warnings.simplefilter("ignore")
    grid = QUICK if options.quick else GRID
    n_rows = options.rows or (10_000 if options.quick else 1_000_000)
    n_cal = 100 if options.quick else BASE["n_cal"]
    rates = list(apply_rates(methods, n_rows, n_cal))
    found = pd.DataFrame(growth(methods, grid, repeats=1 if options.quick else 3))
    base = ", ".join(f"{name} = {values[0]:,}" for name, values in grid.items())
    upto = ", ".join(f"{name} to {values[-1]:,}" for name, values in grid.items())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    size = "full sizes"
    if options.quick:
        size = "sizes too small for conclusions (`--quick`: most of the time is the start)"
    text = "\n\n".join(
        [
            f"Measured with {size} on {cores} cores (load {load} at the end), Python "
            f"{platform.python_version()}, {core_name()} core.",
            f"**Rows per second**: `hetcal apply`, Parquet to Parquet, {n_rows:,} rows of 10 "
            f"features, {n_cal:,} calibration items, one thread per process.",
            show_rates(rates),
            "**A billion rows**, by calculation: processor time per row x 10⁹; on many cores "
            "divided by their number and by half the gain of the second process.",
            show_billion(rates),
            f"**How cost grows**: exponents b of cost ~ size^b, one size varied at a time (base: "
            f"{base}; {upto}), processor time of one thread.",
            show_growth(found),
            "**Memory of `hetcal fit --method swc --max-rows 5000`**, 33 columns:",
            fit_memory(FIT_ROWS_QUICK if options.quick else FIT_ROWS),
            "**Threads that wait** (gradient boosting on 10 000 x 30, all cores):",
            waiting(),
        ]
    )
    print(text)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"\n{used.ru_utime:.0f} s of processor time in this process", file=sys.stderr)


if __name__ == "__main__":
    main()
