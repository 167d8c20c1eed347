"""Workers that die, a scheduler that dies: time is lost, rows are not, and nothing is doubled."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.patience import PATIENCE, wait_until

import hetcal
from hetcal.dask import apply as dask_apply
from hetcal.dask import apply_parquet
from hetcal.dask.cluster import check_workers, connected


def written(folder):
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])


def assert_all_rows_once(folder, place):
    table = written(folder)
    assert table.num_rows == 6000
    assert len(set(table["loan_id"].to_pylist())) == 6000
    assert table.equals(place.expected)
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.processes
def test_a_worker_killed_while_it_writes_a_part(client, place, tmp_path, monkeypatch):
    """Workers are killed with half of a part on disk."""
    marks = tmp_path / "marks"
    marks.mkdir()

    # Defined here, so that it travels by value to the workers.
    class Dying(dask_apply.BatchCalibrator):
        def __call__(self, batches, additions):
            for number, batch in enumerate(super().__call__(batches, additions)):
                yield batch
                mark = marks / str(batch["loan_id"][0])
                if number == 1 and len(list(marks.iterdir())) < 2 and not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(dask_apply, "BatchCalibrator", Dying)
    out = tmp_path / "out"
    done = apply_parquet(place.model, place.table, out, client=client, batch_rows=100)
    assert len(list(marks.iterdir())) >= 2
    assert done.n_rows == 6000
    assert_all_rows_once(out, place)


@pytest.mark.processes
def test_all_workers_killed_at_once(client, place, tmp_path):
    """Nobody has the model any more but the scheduler."""
    victims = []

    def kill(done, rows):
        if not victims:
            victims.extend(client.run(os.getpid).values())
            for victim in victims:
                os.kill(victim, signal.SIGKILL)

    out = tmp_path / "out"
    apply_parquet(place.model, place.table, out, client=client, part_rows=100, progress=kill)
    assert len(victims) == 2
    assert_all_rows_once(out, place)


def test_two_attempts_at_one_part_leave_one(place, tmp_path):
    """A worker that went silent and wakes up again replaces its part with the same rows."""
    from hetcal.batches import BatchCalibrator
    from hetcal.tables.parquet_parts import plan

    work = plan(str(place.table), 1000)
    job = dask_apply.Job(BatchCalibrator(place.model), work.schema, str(tmp_path), 50)
    first = job.write(work.pieces[3])
    content = (tmp_path / "part-00003.parquet").read_bytes()
    assert job.write(work.pieces[3]) == first
    assert [path.name for path in tmp_path.iterdir()] == ["part-00003.parquet"]
    assert (tmp_path / "part-00003.parquet").read_bytes() == content


def test_a_damaged_page_names_its_file(place, tmp_path):
    from hetcal.batches import BatchCalibrator
    from hetcal.tables.parquet_parts import plan

    table = tmp_path / "damaged.parquet"
    columns = pq.read_table(plan(str(place.table), 1000).pieces[0].path)
    pq.write_table(columns, table, write_page_checksum=True, compression="none")
    content = bytearray(table.read_bytes())
    content[len(content) // 3] ^= 0x10
    table.write_bytes(bytes(content))
    work = plan(str(table), 1000)
    job = dask_apply.Job(BatchCalibrator(place.model), work.schema, str(tmp_path), 50)
    with pytest.raises(ValueError, match=r"damaged.parquet cannot be read as Parquet: .*checksum"):
        job.write(work.pieces[0])
    assert [path.name for path in tmp_path.iterdir()] == ["damaged.parquet"]


def test_a_late_worker_cannot_write_into_a_finished_folder(place, tmp_path):
    from hetcal.batches import BatchCalibrator
    from hetcal.tables.parquet_parts import plan

    work = plan(str(place.table), 1000)
    job = dask_apply.Job(BatchCalibrator(place.model), work.schema, str(tmp_path / "gone"), 50)
    with pytest.raises(ValueError, match="on a disk that all workers share"):
        job.write(work.pieces[0])
    assert not (tmp_path / "gone").exists()


@pytest.fixture
def far_cluster(tmp_path):
    """Start a scheduler and a worker as processes of their own; return address and scheduler."""
    file = tmp_path / "scheduler.json"
    python = [sys.executable, "-W", "ignore", "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [*python, "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard",
         "--host", "127.0.0.1", "--scheduler-file", str(file)], **quiet,
    )  # fmt: skip
    worker = subprocess.Popen(
        [*python, "distributed.cli.dask_worker", "--scheduler-file", str(file), "--no-nanny",
         "--no-dashboard", "--nthreads", "1", "--local-directory", str(tmp_path)], **quiet,
    )  # fmt: skip
    try:
        wait_until(lambda: file.exists() and file.read_text().strip(), "the scheduler's address")
        yield json.loads(file.read_text())["address"], scheduler
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait(timeout=PATIENCE)


@pytest.mark.processes
def test_a_scheduler_that_dies(far_cluster, place, tmp_path, monkeypatch):
    address, scheduler = far_cluster
    parts, first, dead = tmp_path / "parts", tmp_path / "first", tmp_path / "dead"
    parts.mkdir()
    seen = []

    # Defined here, so that it travels by value to the worker.
    class WaitsAfterTheFirst(dask_apply.BatchCalibrator):
        def __call__(self, batches, additions):
            while first.exists() and not dead.exists():
                time.sleep(0.01)
            first.touch()
            yield from super().__call__(batches, additions)

    def kill(done, rows):
        seen.append(done)
        scheduler.kill()
        dead.touch()

    monkeypatch.setattr(dask_apply, "BatchCalibrator", WaitsAfterTheFirst)
    with (
        connected(address, patience=PATIENCE) as client,
        pytest.raises(ConnectionError, match="scheduler is gone.*Nothing was written"),
    ):
        apply_parquet(
            place.model, place.table, parts / "out", client=client, part_rows=100, progress=kill
        )
    assert seen
    assert list(parts.iterdir()) == []


def test_a_scheduler_that_is_not_there(place, tmp_path):
    with (
        pytest.raises(ConnectionError, match="No dask scheduler answers at tcp://127.0.0.1:9"),
        connected("tcp://127.0.0.1:9", patience=1.0),
    ):
        pass


def test_a_worker_without_hetcal_or_with_another_one(client):
    # Defined here, so that they travel by value to the workers.
    def hide():
        sys.hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if "hetcal" in name}
        sys.modules["hetcal"] = None

    def show():
        del sys.modules["hetcal"]
        sys.modules.update(sys.hidden)

    def rename(version):
        import hetcal

        hetcal.__version__, before = version, hetcal.__version__
        return before

    check_workers(client)
    one = [next(iter(client.scheduler_info()["workers"]))]
    client.run(hide, workers=one)
    try:
        with pytest.raises(RuntimeError, match=f"not installed on the worker {one[0]}"):
            check_workers(client)
    finally:
        client.run(show, workers=one)
    client.run(rename, "0.0.1", workers=one)
    try:
        with pytest.raises(RuntimeError, match="has hetcal 0.0.1, this is"):
            check_workers(client)
    finally:
        client.run(rename, hetcal.__version__, workers=one)
    check_workers(client)


def test_nothing_is_left_when_one_part_fails_while_another_is_written(
    client, place, tmp_path, monkeypatch
):
    """One worker fails at once; the other has a file open and goes on to make more."""
    marks, parts = tmp_path / "marks", tmp_path / "parts"
    marks.mkdir()
    parts.mkdir()

    # Defined here, so that it travels by value to the workers.
    class OneFails(dask_apply.BatchCalibrator):
        def __call__(self, batches, additions):
            for batch in super().__call__(batches, additions):
                if batch["loan_id"][0].as_py() == 1000:
                    while not (marks / "other").exists():
                        time.sleep(0.01)
                    raise hetcal.FileFormatError("a defect in this part")
                yield batch
                (marks / "other").touch()
                folder = next(parts.glob(".*.tmp"), None)
                until = time.monotonic() + 0.5
                while folder is not None and folder.exists() and time.monotonic() < until:
                    with contextlib.suppress(OSError):
                        (folder / f"more-{time.monotonic_ns()}").touch()
                (marks / "late").touch()

    monkeypatch.setattr(dask_apply, "BatchCalibrator", OneFails)
    with pytest.raises(ValueError, match="a defect in this part"):
        apply_parquet(place.model, place.table, parts / "out", client=client)
    wait_until((marks / "late").exists, "the end of the other part")
    time.sleep(0.2)
    assert list(parts.iterdir()) == []
    monkeypatch.undo()
    apply_parquet(place.model, place.table, parts / "out", client=client)
    assert_all_rows_once(parts / "out", place)
    assert [path.name for path in parts.iterdir()] == ["out"]
