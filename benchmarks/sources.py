"""Where stored results come from: command, commit, day and versions, one row per file."""

from __future__ import annotations

import datetime
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd

from benchmarks.parts import FOLDER, RESULTS

SOURCES = RESULTS / "sources.csv"
COLUMNS = ["file", "command", "commit", "day", "versions", "note"]
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


def stored_sources(path: Path = SOURCES) -> pd.DataFrame:
    """Return what is known about every stored file."""
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    return pd.read_csv(path, keep_default_na=False, dtype=str)


def record(file: str, command: str, path: Path = SOURCES) -> None:
    """Note that a file was written by a command, just now, with the versions that are installed."""
    row = dict.fromkeys(COLUMNS, "")
    row |= {"file": file, "command": command, "commit": commit(), "versions": versions()}
    row["day"] = datetime.date.today().isoformat()
    known = stored_sources(path)
    known = pd.concat([known[known["file"] != file], pd.DataFrame([row])])
    known.sort_values("file")[COLUMNS].to_csv(path, index=False, lineterminator="\n")


def commit() -> str:
    """Return the commit of the source, with "+" where it was changed since."""
    try:
        name = _git("rev-parse", "--short", "HEAD")
        return name + ("+" if _git("status", "--porcelain", "--", "src", "benchmarks/*.py") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def versions() -> str:
    """Return the versions of Python and of what every method builds on."""
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=FOLDER.parent, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
