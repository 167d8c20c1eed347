"""What runs in other processes: a command that stops at a chosen moment, and one among many."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import warnings
from pathlib import Path

from tests.patience import PATIENCE

from hetcal.cli import main
from hetcal.persistence import atomic_file

# All that the commands need: a process that is copied from one that has it need not import it.
MODULES = (
    *("hetcal.cli._app", "hetcal.diagnosis", "hetcal.paper.runner", "hetcal.tables.columns"),
    *("hetcal.persistence.file", "hetcal.batches", "hetcal.calibration.registry"),
    *("pyarrow.parquet", "rich.table", "sklearn.naive_bayes", "tests.faults.processes"),
)
MOMENTS = ("first bytes", "before the name", "after the name")


def nothing() -> None:
    """Start and end."""


def run(arguments: list[str]) -> None:
    """Run a command; what it prints goes nowhere, how it ends is the exit code."""
    warnings.simplefilter("ignore")
    with Path(os.devnull).open("w") as nowhere:
        sys.stdout = sys.stderr = nowhere
        main(arguments)


def run_until(moment: str, flag: str, arguments: list[str]) -> None:
    """Run a command up to a moment of its writing; then raise a flag and wait for what comes."""

    def wait() -> None:
        Path(flag).touch()
        time.sleep(PATIENCE)

    write, replace, link = atomic_file._Raw.write, Path.replace, os.link

    def writing(self, data):
        if not str(self.name).endswith(".tmp"):
            return write(self, data)
        atomic_file._Raw.write = write  # who is asked to end may clean up
        done = write(self, bytes(data)[: max(1, len(data) // 2)])
        wait()
        return done

    def renaming(self, target):
        if moment == "before the name":
            wait()
        replace(self, target)
        wait()

    def linking(source, target):
        if moment == "before the name":
            wait()
        link(source, target)
        wait()

    # The server of these processes may have been started where Ctrl-C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if moment == "first bytes":
        atomic_file._Raw.write = writing
    else:
        Path.replace, os.link = renaming, linking
    run(arguments)


def run_and_die(n_trials: int, arguments: list[str]) -> None:
    """Run a command of the paper until it has written so many trials; then kill it."""
    from hetcal.paper.store import Store

    write, written = Store.write, []

    def writing(self, *trial):
        write(self, *trial)
        written.append(trial)
        if len(written) == n_trials:
            os.kill(os.getpid(), signal.SIGKILL)

    Store.write = writing
    run(arguments)


def monitor_often(model: str, table: str, history: str, times: int) -> None:
    """Update a history several times in a row."""
    for _ in range(times):
        with contextlib.suppress(SystemExit):
            run(["monitor", model, table, "--history", history, "-q"])


def hold(path: str, flag: str) -> None:
    """Take the lock of a file and keep it."""
    from hetcal.persistence.locks import locked

    with locked(path):
        Path(flag).touch()
        time.sleep(PATIENCE)
