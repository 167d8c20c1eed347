"""A kill, a request to end and Ctrl-C in the middle of every command that writes.

A command runs in a process of its own up to a moment of its writing: the first bytes, before the
new file takes its name, after that. Then the signal comes.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.faults import processes
from tests.faults.commands import commands, litter, whole
from tests.patience import PATIENCE, wait_until

import hetcal
from hetcal.persistence.atomic_file import AtomicFile, remove_leftovers

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Unix signals")

KILL, TERM, INT = "SIGKILL", "SIGTERM", "SIGINT"
ENDED_BY = {KILL: -9, TERM: 143, INT: 130}
COMMANDS = ("fit", "apply-csv", "apply-parquet", "compare-csv", "monitor", "paper-table")
CASES = {
    *((name, KILL, moment) for name in COMMANDS for moment in processes.MOMENTS),
    *((name, TERM, "before the name") for name in COMMANDS),
    *((name, INT, "first bytes") for name in COMMANDS),
    ("paper-export", KILL, "first bytes"),
}


def wait_for(path: Path, process) -> None:
    wait_until(lambda: path.exists() or not process.is_alive(), "the command that writes")
    assert path.exists(), f"the command ended by itself: {process.exitcode}"


def old_file(made, path: Path) -> bytes | None:
    """Put an old file where the command will write; a history is one that it can continue."""
    if path.name == "watch.hetcal":
        path.write_bytes((made / "watch.hetcal").read_bytes())
    elif path.parent.is_dir() and path.name != "moons.csv":  # which is continued too
        path.write_bytes(b"what was there before")
    return content(path)


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


@pytest.mark.processes
@pytest.mark.parametrize(("name", "sign", "moment"), sorted(CASES))
def test_nothing_half_written(name, sign, moment, made, tmp_path, started):
    out = tmp_path / "out"
    out.mkdir()
    arguments, file = commands(made, out)[name]
    arguments = [str(argument) for argument in arguments]
    before = old_file(made, out / file)
    flag = tmp_path / "now"
    process = started(processes.run_until, moment, str(flag), arguments)
    wait_for(flag, process)
    os.kill(process.pid, getattr(signal, sign))
    process.join(PATIENCE)
    assert process.exitcode == ENDED_BY[sign]
    if moment != "after the name":
        assert content(out / file) == before
    for path in out.rglob("[!.]*"):  # a command may write other files first
        if path.is_file() and path.read_bytes() != before:
            whole(path)
    if sign != KILL:
        assert litter(out) == []

    again = started(processes.run, arguments)
    again.join()
    assert again.exitcode == 0
    whole(out / file)
    assert litter(out) == []
    if name == "monitor":  # a table counts where its history was written, and only there
        seen = hetcal.load(out / file).n_seen_
        assert seen == (180 if moment == "after the name" else 120)


def test_a_writer_at_work_is_no_leftover(tmp_path):
    path = tmp_path / "x"
    with AtomicFile(path) as stream:
        stream.write(b"mine")
        remove_leftovers(path)
    assert path.read_bytes() == b"mine"


def test_only_leftovers_of_the_same_name_are_removed(tmp_path):
    for name in (".x.0123abcd.tmp", ".y.0123abcd.tmp", ".x.notes.tmp", "x.0123abcd.tmp"):
        (tmp_path / name).touch()
    with AtomicFile(tmp_path / "x"):
        pass
    left = {p.name for p in tmp_path.iterdir()}
    assert left == {"x", ".y.0123abcd.tmp", ".x.notes.tmp", "x.0123abcd.tmp"}
