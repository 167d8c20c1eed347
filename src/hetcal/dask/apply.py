"""Parquet in, Parquet with calibrated columns out, part by part on dask; all or nothing."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hetcal._exceptions import InputError
from hetcal.batches.additions import FLAGS
from hetcal.batches.arrow import BatchCalibrator
from hetcal.dask._needs import need_dask
from hetcal.dask.cluster import connected
from hetcal.tables.parquet_parts import Piece, Plan, plan
from hetcal.tables.sizes import BATCH_ROWS

PART_ROWS = 1_000_000
#: The mark of a folder that is complete, as Spark and others write it.
COMPLETE = "_SUCCESS"
_TRIES = 20


@dataclass(frozen=True)
class Applied:
    """What was written.

    Attributes
    ----------
    n_rows, n_parts : int
        Rows, and files.
    names : list of str
        The new columns.
    shown : list of str
        The same for people, shortened where there are many classes.
    counts : dict
        How many rows have each flag.
    """

    n_rows: int
    n_parts: int
    names: list[str]
    shown: list[str]
    counts: dict[str, int]


@dataclass(frozen=True)
class Job:
    """What all tasks share; one node of the graph."""

    calibrate: BatchCalibrator
    schema: Any
    folder: str
    batch_rows: int

    def write(self, piece: Piece) -> dict[str, Any]:
        """Write one part and return what is in it.

        The rows go to a file of this attempt's own, which takes the part's name when it is
        complete: a second attempt (another worker, after the first died or went silent) replaces
        the same part with the same rows.
        """
        import pyarrow.parquet as pq

        if not Path(self.folder).is_dir() or not Path(piece.path).is_file():
            raise InputError(
                f"A worker does not see {piece.path} or {self.folder}. The table and the output "
                "must lie on a disk that all workers share, under the same path."
            )
        additions = self.calibrate.additions(piece.first_row)
        target = Path(self.folder, part_name(piece.number))
        attempt = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            batches = self.calibrate(piece.batches(self.schema, self.batch_rows), additions)
            with attempt.open("xb") as stream:
                schema = self.calibrate.schema(self.schema)
                with pq.ParquetWriter(stream, schema, write_page_checksum=True) as writer:
                    for batch in batches:
                        writer.write_batch(batch)
                stream.flush()
                os.fsync(stream.fileno())
            attempt.replace(target)
        except InputError as error:
            raise InputError(f"{piece.path}: {error}") from error
        finally:
            attempt.unlink(missing_ok=True)
        return {"number": piece.number, "rows": additions.n_rows, "flags": additions.counts}


def apply_parquet(
    model: str | os.PathLike[str],
    table: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    client: Any = None,
    scheduler: str | None = None,
    workers: int | None = None,
    columns: str = "q,class,support,size,flags",
    prefix: str = "q_",
    only_new: bool = False,
    leave_missing: bool = False,
    batch_rows: int = BATCH_ROWS,
    part_rows: int = PART_ROWS,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Applied:
    """Add calibrated probabilities to partitioned Parquet, with the workers of a dask cluster.

    Every row comes out once, in the order of the table: part by part and within each part. The
    folder ``out`` appears when everything is in it. Workers read and write the files themselves,
    so the table and ``out`` must lie where all of them see it; the model's file need not.

    Parameters
    ----------
    model : str or path
        A file from ``hetcal fit``.
    table : str or path
        A Parquet file, a folder of them (also in folders such as ``year=2024``, which become
        columns), or a pattern. Files come in the natural order of their names.
    out : str or path
        The folder to write, with ``part-00000.parquet`` and so on.
    client : distributed.Client, optional
        Of the cluster.
    scheduler : str, optional
        Instead of a client, the address of a scheduler. Without either, processes of this machine
        do the work.
    workers : int, optional
        How many processes, without client and scheduler; by default one per core.
    columns, prefix, only_new, leave_missing
        See :class:`~hetcal.batches.BatchCalibrator`.
    batch_rows : int, default=50000
        Rows in the memory of a task at a time.
    part_rows : int, default=1000000
        A file with more rows is divided into several parts, where its row groups permit.
    overwrite : bool, default=False
        Whether a folder of parts may be replaced.
    progress : callable, optional
        Called with the rows that are done and all rows.
    """
    need_dask()
    target = Path(out).resolve()  # a link stays a link: what it points to is written
    work = plan(os.fspath(table), part_rows)
    check_folder(target, work, overwrite=overwrite)
    calibrate = BatchCalibrator(
        model, columns=columns, prefix=prefix, only_new=only_new, leave_missing=leave_missing
    )
    calibrate.schema(work.schema)  # names that are there already
    additions = calibrate.additions()
    additions.to(work.schema.empty_table())  # columns that are not
    if client is not None:
        cluster: Any = contextlib.nullcontext(client)
    else:
        cluster = connected(scheduler, workers=workers)
    with cluster as found, _appearing(target, overwrite=overwrite) as folder:
        job = Job(calibrate, work.schema, str(folder), batch_rows)
        done = _computed(job, work, found, progress)
        _check_complete(folder, work, done)
    counts = {flag: sum(part["flags"][flag] for part in done) for flag in FLAGS}
    return Applied(work.n_rows, len(done), additions.names, additions.shown, counts)


def part_name(number: int) -> str:
    """Return the name of a part."""
    return f"part-{number:05d}.parquet"


def check_folder(target: Path, work: Plan, *, overwrite: bool) -> None:
    """Raise where a folder cannot or may not be written."""
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}. Create it first.")
    # A link stays where it lies, so both are asked: its place, and where it leads.
    files = {
        path for piece in work.pieces for path in (Path(piece.path), Path(piece.path).resolve())
    }
    inside = [path for path in files if path.is_relative_to(target)]
    if inside:
        raise InputError(f"{target} holds the table itself. Write to another folder.")
    if target.is_file():
        raise InputError(f"{target} is a file; the dask engine writes a folder. Name another.")
    if target.is_dir() and (held := list(target.iterdir())):
        if not overwrite:
            raise InputError(f"{target} exists already. Pass --overwrite, or choose another name.")
        # Only what was written here before may be removed.
        odd = [path.name for path in held if path.name != COMPLETE and not _is_part(path)]
        if odd:
            raise InputError(
                f"{target} holds other things than parts, such as {odd[0]!r}, and is not replaced. "
                "Choose another name."
            )


def _is_part(path: Path) -> bool:
    return path.is_file() and path.name.startswith("part-") and path.suffix == ".parquet"


@contextlib.contextmanager
def _appearing(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a hidden folder beside the target, which takes its name at the end, or vanishes."""
    token = secrets.token_hex(4)
    folder = target.with_name(f".{target.name}.{token}.tmp")
    folder.mkdir()
    try:
        yield folder
        (folder / COMPLETE).touch()
        old = target.with_name(f".{target.name}.{token}.before")
        if overwrite and target.is_dir():
            target.rename(old)
        try:
            folder.rename(target)
        except OSError as error:
            if old.is_dir():
                old.rename(target)
            raise InputError(
                f"{target} appeared while the rows were calibrated ({error.strerror}). Nothing was "
                "written; choose another name."
            ) from error
        shutil.rmtree(old, ignore_errors=True)
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder into which workers may still be writing."""
    # Under another name first: what they begin from now on fails, and nothing new comes in while
    # the folder is emptied.
    gone = folder.with_suffix(".old")
    with contextlib.suppress(OSError):
        folder.rename(gone)
    for _ in range(_TRIES):  # some file systems keep files that are open
        shutil.rmtree(gone, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        if not gone.exists() and not folder.exists():
            return
        time.sleep(0.1)


def _computed(
    job: Job, work: Plan, client: Any, progress: Callable[[int, int], None] | None
) -> list[dict[str, Any]]:
    from dask.delayed import delayed
    from distributed import as_completed

    token = Path(job.folder).name
    # The job is a node that all tasks depend on: a worker gets the model once, and the scheduler
    # keeps it for workers that come later.
    node = delayed(_same, traverse=False)(job, dask_key_name=f"hetcal-job-{token}")
    write = delayed(_write, pure=False, traverse=False)
    tasks = [
        write(node, piece, dask_key_name=f"hetcal-part-{token}-{piece.number:05d}")
        for piece in work.pieces
    ]
    done: list[dict[str, Any]] = []
    n_rows, rows_done = work.n_rows, 0
    with _words_for_failures(), _large_graph(), client.as_current():
        futures = client.compute(tasks, optimize_graph=False)
        try:
            for future in as_completed(futures):
                done.append(future.result())
                rows_done += done[-1]["rows"]
                if progress is not None:
                    progress(rows_done, n_rows)
        except BaseException:
            with contextlib.suppress(Exception):
                client.cancel(futures)
            raise
    return sorted(done, key=lambda part: part["number"])


def _same(job: Job) -> Job:
    return job


def _write(job: Job, piece: Piece) -> dict[str, Any]:
    return job.write(piece)


def _check_complete(folder: Path, work: Plan, done: list[dict[str, Any]]) -> None:
    for path in folder.iterdir():
        if not _is_part(path):  # what an attempt has left whose worker was killed
            path.unlink()
    expected = [(piece.number, piece.n_rows) for piece in work.pieces]
    written = sorted(path.name for path in folder.iterdir() if _is_part(path))
    good = [(part["number"], part["rows"]) for part in done] == expected
    if not good or written != sorted(part_name(piece.number) for piece in work.pieces):
        raise RuntimeError(
            f"{len(written)} parts were written where {len(expected)} were expected, or their rows "
            "differ from the table's. The table changed while it was read; apply again."
        )


@contextlib.contextmanager
def _words_for_failures() -> Iterator[None]:
    """Say what went wrong in the cluster, and what to do."""
    from concurrent.futures import CancelledError as Cancelled

    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise RuntimeError(
            f"Several workers died while they wrote the same part ({error.task}). If memory ran "
            "out, pass a smaller --batch-rows, or fewer --workers."
        ) from error
    except (Cancelled, CancelledError, CommClosedError) as error:
        raise ConnectionError(
            "The dask scheduler is gone, or has cancelled the work. Nothing was written; apply "
            "again when it is back."
        ) from error


@contextlib.contextmanager
def _large_graph() -> Iterator[None]:
    """Let a model of many megabytes travel in the graph, where it is once."""
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "4 GiB"}):
        yield
