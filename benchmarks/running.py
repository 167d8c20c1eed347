"""Run parts, each in a process of its own, and go on where a run was interrupted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from benchmarks.parts import FOLDER, RESULTS, Part
from benchmarks.sources import record

LOGS = RESULTS / "logs"
_PEER = "probmetrics"  # stands for requirements-peers.txt


def why_not(part: Part) -> str:
    """Return what a part lacks here; empty where it can be run."""
    if "data" in part.needs and not os.environ.get("HETCAL_DATA"):
        return "HETCAL_DATA does not name the data folder"
    if "peers" in part.needs and find_spec(_PEER) is None:
        return "the packages of benchmarks/requirements-peers.txt are not installed"
    return ""


def run(part: Part, more: Iterable[str] = (), *, log: Path | None = None) -> int:
    """Run a part; its output goes to the console, or to a log where one is given.

    Returns
    -------
    int
        The exit status of the script. Where it is 0 and the part stores results, their source is
        noted.
    """
    more = list(more)
    command = [sys.executable, str(part.script), *part.arguments, *more]
    if log is None:
        status = subprocess.run(command, cwd=FOLDER.parent, check=False).returncode
    else:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as out:
            status = subprocess.run(
                command, cwd=FOLDER.parent, check=False, stdout=out, stderr=subprocess.STDOUT
            ).returncode
    if status == 0 and part.stores:
        words = ["python", f"benchmarks/{part.script.name}", *part.arguments, *more]
        record(part.stores, " ".join(words))
    return status


def run_all(parts: Iterable[Part], logs: Path = LOGS, *, anew: bool = False) -> int:
    """Run every part that has no log of a finished run; return how many failed.

    A finished run's output is ``logs/TOPIC-NAME.log``; one that was interrupted has ``.part`` in
    its place, and parts that keep single results go on from these.
    """
    failed = 0
    for part in parts:
        log = logs / f"{part.topic}-{part.name}.log"
        title = f"{part.topic} {part.name} (about {part.minutes:g} minutes)"
        lacking = why_not(part)
        if lacking:
            print(f"left out {title}: {lacking}", flush=True)
        elif log.exists() and not anew:
            print(f"finished {title}: {log}", flush=True)
        else:
            print(f"running  {title}", flush=True)
            start, running = time.perf_counter(), log.with_suffix(".part")
            status = run(part, log=running)
            took = (time.perf_counter() - start) / 60
            if status == 0:
                running.replace(log)
            failed += status != 0
            said = "done" if status == 0 else f"FAILED with status {status}, see {running}"
            print(f"         {said} after {took:.1f} minutes", flush=True)
    return failed
