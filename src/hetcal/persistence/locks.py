"""One process at a time: locks that the system takes back when their holder dies.

By filelock: ``flock`` on Unix (over NFS the client asks the server), ``LockFileEx`` on Windows. A
lock belongs to an open file, so a killed process never leaves one behind and nobody has to guess
whether it is stale. The file is opened here and not by ``filelock.FileLock``, which would make a
folder that is missing.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import lock_descriptor

from hetcal._exceptions import FileWriteError, InputError
from hetcal.persistence.hidden_names import hidden_beside
from hetcal.persistence.os_errors import translate_os_errors

_PAUSE = 0.02


@contextlib.contextmanager
def locked(
    path: str | os.PathLike[str],
    *,
    wait: float = 600.0,
    waiting: Callable[[], object] | None = None,
) -> Iterator[None]:
    """Keep other processes that call this for the same file out, and wait for those inside.

    For a file that is read, changed and written back: without it, what one process has added is
    lost where another one read the file before and writes it after.

    Parameters
    ----------
    path : str or path
        The file to be changed; it need not exist. The lock itself is an empty hidden file beside
        it, ``.NAME.lock``, which stays: on network file systems a lock file that is removed and
        made again would let two processes in.
    wait : float, default=600
        Seconds to wait for others.
    waiting : callable, optional
        Called once where there is somebody to wait for.

    Raises
    ------
    InputError
        Where others have not finished in time.
    FileWriteError
        Where the file system has no locks, or the folder cannot be written to.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(f"{folder}/watch.hetcal"):
    ...     pass  # load, update, save
    """
    target = Path(os.path.realpath(path))
    lock = hidden_beside(target, ".lock")
    with translate_os_errors(path):
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _wait_for(handle, path, wait, waiting)
        yield
    finally:
        os.close(handle)


def _wait_for(handle: int, path: object, wait: float, waiting: Callable[[], object] | None) -> None:
    deadline, told = time.monotonic() + wait, False
    while not _try(handle, path):
        if time.monotonic() >= deadline:
            raise InputError(
                f"{path}: another process has been writing it for {wait:g} seconds. Wait for it to "
                "finish, or end it, and try again."
            )
        if waiting is not None and not told:
            waiting()
        told = True
        # Not a blocking call: it could be neither interrupted nor limited everywhere.
        time.sleep(_PAUSE)


def _try(handle: int, path: object) -> bool:
    try:
        return lock_descriptor(handle, blocking=False)
    except OSError as error:
        raise FileWriteError(
            error.errno or 0,
            f"{path}: its file system has no locks ({error.strerror}), so updates could be lost. "
            "Keep the file on a local disk.",
        ) from error
