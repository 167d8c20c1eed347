"""A full disk and a read-only folder: one clear line, the old file as it was, no litter."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.faults.commands import commands, litter, mounted

import hetcal
from hetcal._exceptions import FileWriteError, InputError
from hetcal.cli import main
from hetcal.persistence.atomic_file import AtomicFile, write_atomic

resource = pytest.importorskip("resource", reason="limits of file sizes are Unix's")

# What computes for long before it writes is tested by the object that does its writing.
QUICK = (
    *("apply-csv", "apply-csv.gz", "apply-parquet", "apply-arrow", "fit", "monitor"),
    *("compare-csv", "compare-json", "paper-export", "paper-table"),
)
OLD = b"what was there before"


@contextlib.contextmanager
def files_of_at_most(n_bytes: int):
    """Let every write that makes a file longer fail, as on a full disk."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)


def ended(arguments, capsys) -> tuple[int, str]:
    """Run a command and return its exit code and what it says on stderr."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return end.value.code or 0, capsys.readouterr().err


def old_file(folder, name):
    """Put an old file where the command will write, unless it would read it."""
    path = folder / name
    if name not in ("watch.hetcal", "moons.csv") and not name.startswith("trials"):
        path.write_bytes(OLD)
        return path, OLD
    return path, None


def content(path):
    return path.read_bytes() if path.exists() else None


def check_told(code, said, *, words):
    lines = said.strip().splitlines()
    assert code in (1, 2)
    assert len(lines) == 1, said
    assert lines[0].startswith("error: ")
    assert any(word in lines[0] for word in words), said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", QUICK)
def test_a_limit_of_file_sizes(name, made, tmp_path, capsys):
    arguments, file = commands(made, tmp_path)[name]
    path, before = old_file(tmp_path, file)
    with files_of_at_most(64):
        code, said = ended(arguments, capsys)
    check_told(code, said, words=["File too large. Raise the limit"])
    assert content(path) == before
    assert litter(tmp_path) == []


@pytest.mark.parametrize("name", QUICK)
def test_a_full_disk(name, made, tmp_path, capsys, can_mount):
    if not can_mount:
        pytest.skip("mounting a small disk is not permitted here")
    arguments, file = commands(made, tmp_path)[name]
    assert mounted(tmp_path, "size=64k")
    try:
        path, before = old_file(tmp_path, file)
        with contextlib.suppress(OSError), (tmp_path / "filler").open("wb", 0) as filler:
            while True:
                filler.write(b"x" * 512)
        code, said = ended(arguments, capsys)
        check_told(code, said, words=["No space left on device. Free some space"])
        assert content(path) == before
        assert litter(tmp_path) == []
        (tmp_path / "filler").unlink()
        if name != "monitor" and "fit" not in name:  # larger than this disk
            assert ended(arguments, capsys)[0] == 0
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@pytest.fixture
def read_only(tmp_path, can_mount):
    """Return a function that makes a folder read-only, also for root."""
    undo = []

    def make(folder):
        if can_mount:
            keep = {p.name: p.read_bytes() for p in folder.iterdir()}
            assert mounted(folder, "size=1m")
            undo.append(["umount", "-l", str(folder)])
            for name, data in keep.items():
                (folder / name).write_bytes(data)
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        else:
            folder.chmod(0o555)
            undo.append(["chmod", "755", str(folder)])
            if os.access(folder, os.W_OK):
                pytest.skip("root may write everywhere, and mounting is not permitted here")

    yield make
    for command in undo:
        subprocess.run(command, check=True)


@pytest.mark.parametrize("name", [*QUICK, "diagnose", "diagnose-json", "demo"])
def test_a_read_only_folder(name, made, tmp_path, capsys, read_only):
    arguments, file = commands(made, tmp_path)[name]
    path, before = old_file(tmp_path, file)
    read_only(tmp_path)
    code, said = ended(arguments, capsys)
    check_told(code, said, words=["nothing can be written in", "Choose a folder that you may"])
    assert content(path) == before
    assert litter(tmp_path) == []


@pytest.mark.parametrize("name", ["apply-csv", "fit", "monitor", "compare-csv", "diagnose", "demo"])
def test_a_file_where_a_folder_should_be(name, made, tmp_path, capsys):
    (tmp_path / "file").write_bytes(OLD)
    code, said = ended(commands(made, tmp_path / "file")[name][0], capsys)
    check_told(code, said, words=["there is no folder"])
    assert (tmp_path / "file").read_bytes() == OLD


@pytest.mark.parametrize("kind", ["html", "json", "png"])
def test_reports_and_pictures_are_written_whole(kind, tmp_path):
    # What diagnose, demo and paper figure write with, on a disk that takes 64 bytes.
    path = tmp_path / f"out.{kind}"
    path.write_bytes(OLD)
    with (
        files_of_at_most(64),
        pytest.raises(FileWriteError, match=r"out\.\w+ could not be written: File too large"),
    ):
        write_atomic(path, "x" * 65)
    assert path.read_bytes() == OLD
    assert litter(tmp_path) == []


def test_saving_says_what_to_do(calibrators, tmp_path):
    path = tmp_path / "c.hetcal"
    hetcal.save(calibrators["platt"], path)
    before = path.read_bytes()
    with files_of_at_most(64), pytest.raises(FileWriteError, match="What was there before") as said:
        hetcal.save(calibrators["platt"], path)
    assert said.value.errno  # who catches OSError can still tell the reasons apart
    assert path.read_bytes() == before
    assert litter(tmp_path) == []


def test_an_error_of_the_caller_is_not_one_of_writing(tmp_path):
    def write():
        with AtomicFile(tmp_path / "x") as stream:
            stream.write(b"some")
            raise OSError("the input is gone")

    with pytest.raises(OSError, match="the input is gone") as said:
        write()
    assert not isinstance(said.value, FileWriteError)
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_written_to_and_stays_a_pipe(calibrators, tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    hetcal.save(calibrators["platt"], path)
    reader.join()
    assert stat.S_ISFIFO(path.stat().st_mode)
    (tmp_path / "copy.hetcal").write_bytes(read[0])
    hetcal.load(tmp_path / "copy.hetcal")


@pytest.mark.processes
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("what", ["rows", "facts"])
def test_standard_output_that_is_full(what, made):
    model = str(made / "global.hetcal")
    arguments = ["apply", model, str(made / "new.csv"), "-o", "-"] if what == "rows" else []
    arguments = arguments or ["inspect", model]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hetcal", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    check_told(done.returncode, done.stderr, words=["No space left on device"])


def test_a_file_that_came_meanwhile_is_not_replaced_unasked(tmp_path):
    path = tmp_path / "out.csv"

    def write():
        with AtomicFile(path, overwrite=False) as stream:
            stream.write(b"mine")
            path.write_bytes(OLD)

    with pytest.raises(InputError, match="exists by now"):
        write()
    assert path.read_bytes() == OLD
    assert litter(tmp_path) == []
