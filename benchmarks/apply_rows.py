"""Two million rows of ten columns through ``hetcal apply``: time and peak memory, by format.

Run: ``python benchmarks/apply_rows.py [rows] [method]``. Files go to a temporary folder (about
1 GB) and are removed afterwards.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from hetcal.datasets import make_hidden_heterogeneity
from hetcal.tables import TableWriter, open_table

HETCAL = [sys.executable, "-c", "import sys; from hetcal.cli import main; main(sys.argv[1:])"]
PART = 100_000


def table_of(data) -> pd.DataFrame:
    """Return ten columns: six features of numbers, one of text, two probabilities, the label."""
    table = pd.DataFrame(data.X.round(4), columns=[f"x{j}" for j in range(data.X.shape[1])])
    table["region"] = np.random.default_rng(0).choice(["north", "south", "east"], len(table))
    table["p_0"], table["p_1"] = data.y_proba.T
    return table.assign(outcome=data.y)


def main(n_rows: int = 2_000_000, method: str = "swc") -> None:
    """Print one line per format."""
    data = make_hidden_heterogeneity(1000, heterogeneity=0.9, random_state=0)
    part = table_of(data.sample(PART, random_state=1))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table_of(data).to_csv(folder / "cal.csv", index=False)
        fit = f"fit cal.csv --label outcome --proba p_* --method {method} -o m.hetcal -q"
        subprocess.run([*HETCAL, *fit.split()], check=True, cwd=folder)
        for kind in ("parquet", "csv"):
            with TableWriter(folder / f"new.{kind}") as table:
                for _ in range(n_rows // PART):
                    table.write({column: part[column].to_numpy() for column in part})
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            apply = f"apply m.hetcal new.{kind} -o out.{kind} -q"
            peak = run_and_measure([*HETCAL, *apply.split()], folder)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            with open_table(folder / f"out.{kind}") as reader:
                written = sum(len(batch) for batch in reader.batches())
            seconds = after.ru_utime - before.ru_utime
            print(f"{kind:<8} {written:>10,} rows  {seconds:6.1f} s CPU  {peak / 1e3:6.0f} MB peak")


def run_and_measure(command: list[str], folder: Path) -> int:
    """Run a command and return its peak memory in kilobytes."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        check=True,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return int(done.stdout.split()[-1])


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((int, str), sys.argv[1:], strict=False)))
