"""Every command that writes, and what must be true of the file that it writes."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pandas as pd

import hetcal
from hetcal.paper.settings import Trial

TRIAL = Trial("moons", "NB", 300, 0, "Platt")


def commands(made, out):
    """Return what every command that writes is called with, and the file that it writes."""
    roles = ["--label", "outcome", "--proba", "p_*", "-q"]
    loans, new = made / "loans.csv", made / "new.csv"
    rows = ["--batch-rows", "20", "--overwrite", "-q"]
    applied = {
        f"apply-{kind}": (
            ["apply", made / "global.hetcal", new, "-o", out / f"out.{kind}", *rows],
            f"out.{kind}",
        )
        for kind in ("csv", "csv.gz", "parquet", "arrow")
    }
    fit = ["fit", loans, *roles, "--method", "platt", "--overwrite"]
    compare = ["compare", loans, *roles, "--methods", "platt", "--no-baselines", "--jobs", "1"]
    diagnose = ["diagnose", loans, *roles, "--jobs", "1"]
    monitor = ["monitor", made / "swc.hetcal", new, "-q", "--history"]
    trial = ["paper", "table", "moons", "--n-cal", "300", "--jobs", "1", "--trials", "1"]
    trial += ["--classifiers", "NB", "--methods", "Platt", "--quiet", "--results", out]
    return applied | {
        "fit": ([*fit, "-o", out / "new.hetcal"], "new.hetcal"),
        "compare-csv": ([*compare, "-o", out / "c.csv"], "c.csv"),
        "compare-json": ([*compare, "--json", out / "c.json"], "c.json"),
        "monitor": ([*monitor, out / "watch.hetcal"], "watch.hetcal"),
        "paper-export": (["paper", "export", out, "--results", made / "store"], "moons.csv"),
        "paper-table": (trial, f"trials/moons/{TRIAL.key}.json"),
        "diagnose": ([*diagnose, "-o", out / "r.html"], "r.html"),
        "diagnose-json": (
            [*diagnose, "-o", os.devnull, "--json", out / "r.json"],
            "r.json",
        ),
        "demo": (["demo", "-q", "--out", out / "demo.png"], "demo.png"),
    }


def mounted(place, options: str) -> bool:
    """Mount an empty file system in memory."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def litter(folder) -> list[str]:
    """Return hidden files, but for locks, which stay."""
    return [p.name for p in folder.rglob(".*") if not p.name.endswith(".lock")]


def whole(path) -> int:
    """Read a file that a command wrote, and return how many rows or bytes it has."""
    name = path.name
    if name.endswith(".parquet"):
        return len(pd.read_parquet(path))
    if name.endswith(".arrow"):
        return len(pd.read_feather(path))
    if name.endswith(".hetcal"):
        hetcal.load(path)
    elif name.endswith((".csv", ".csv.gz")):
        return len(pd.read_csv(path))
    elif name.endswith(".json"):
        json.loads(path.read_text(encoding="utf-8"))
    elif name.endswith(".npz"):
        np.load(path).close()
    elif name.endswith(".html"):
        assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    return path.stat().st_size
