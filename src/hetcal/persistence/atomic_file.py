"""Files that are there whole or not at all, whatever happens while they are written.

The bytes go to a hidden file beside the target, ``.NAME.XXXXXXXX.tmp``, reach the disk, and then
take the name in one step: whoever reads sees the old file or the new one, never a part. When
anything goes wrong the hidden file is removed. After a kill it stays, but its lock does not: the
next writer of the same name sees that nobody holds it, and removes it.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from filelock import lock_descriptor

from hetcal._exceptions import InputError
from hetcal.persistence.hidden_names import hidden_beside
from hetcal.persistence.os_errors import translate_os_errors

# Windows neither renames nor removes a file that is open; that is the lock there.
_OPEN_FILES_STAY = os.name == "nt"


class AtomicFile:
    """A stream to write to; at the end its bytes take the name, after an error nothing does.

    Parameters
    ----------
    path : str or path
        A link stays a link: what it points to is replaced. A device or a pipe is written to
        directly.
    overwrite : bool, default=True
        Whether a file of that name is replaced, also one that another process has made meanwhile.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with AtomicFile(f"{folder}/notes.txt") as stream:
    ...         _ = stream.write(b"all of it")
    ...     Path(folder, "notes.txt").read_text()
    'all of it'
    """

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = True):
        self.path = path
        self.overwrite = overwrite
        self._target = Path(os.path.realpath(path))
        self._part: Path | None = None

    def __enter__(self) -> BinaryIO:
        if self._target.exists() and not self._target.is_file():
            self._raw = _Raw(self._target, "w", self.path)
        else:
            remove_leftovers(self._target)
            self._raw = self._new_part()
        self._stream: BinaryIO = io.BufferedWriter(self._raw, 1 << 16)
        return self._stream

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                with translate_os_errors(self.path):
                    self._finish()
        finally:
            # The file below first: what is still in memory then need not be written any more.
            self._raw.close()
            with contextlib.suppress(OSError, ValueError):
                self._stream.close()
            if self._part is not None:
                with contextlib.suppress(OSError):
                    self._part.unlink(missing_ok=True)

    def _new_part(self) -> _Raw:
        while True:
            self._part = hidden_beside(self._target, f".{secrets.token_hex(4)}.tmp")
            raw = _Raw(self._part, "x", self.path)
            try:
                with translate_os_errors(self.path), contextlib.suppress(FileNotFoundError):
                    self._part.chmod(self._target.stat().st_mode & 0o777)
                if _is_held(raw.fileno()):
                    return raw
            except BaseException:
                raw.close()
                self._part.unlink(missing_ok=True)
                raise
            # Somebody took it for a leftover in the moment before it was locked.
            raw.close()

    def _finish(self) -> None:
        self._stream.flush()
        if self._part is None:
            return
        os.fsync(self._stream.fileno())
        if _OPEN_FILES_STAY:
            self._stream.close()
        if self.overwrite:
            self._part.replace(self._target)
        else:
            _take_free_name(self._part, self._target, self.path)
        self._part = None
        _sync_folder(self._target.parent)


def write_atomic(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file, text as UTF-8, so that it is there whole or not at all."""
    with AtomicFile(path) as stream:
        stream.write(content.encode("utf-8") if isinstance(content, str) else content)


def remove_leftovers(target: Path) -> None:
    """Remove what processes that were killed while they wrote this file have left."""
    name = glob.escape(hidden_beside(target, "").name)
    for part in target.parent.glob(f"{name}.????????.tmp"):
        with contextlib.suppress(OSError):  # held, gone, or not ours to remove
            if _OPEN_FILES_STAY:
                part.unlink()
                continue
            with part.open("rb+") as left:
                if lock_descriptor(left.fileno(), blocking=False):
                    part.unlink()


def _is_held(handle: int) -> bool:
    """Lock the new file; False where it was removed before that."""
    if _OPEN_FILES_STAY:
        return True
    with contextlib.suppress(OSError):  # without locks nobody removes it either
        return lock_descriptor(handle, blocking=False) and os.fstat(handle).st_nlink > 0
    return True


def _take_free_name(part: Path, target: Path, shown: object) -> None:
    """Give the file its name unless there is one by now, in one step where the system can."""
    try:
        os.link(part, target)
    except FileExistsError:
        taken = True
    except OSError:  # a file system without links
        taken = target.exists()
        if not taken:
            part.replace(target)
            return
    else:
        taken = False
    if taken:
        raise InputError(f"{shown} exists by now. Pass --overwrite, or choose another name.")
    part.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the new name durable where the system can (not on Windows)."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class _Raw(io.FileIO):
    """A file whose errors say what could not be written and what to do."""

    def __init__(self, file: Path, mode: str, shown: object):
        self._shown = shown
        with translate_os_errors(shown):
            super().__init__(file, mode)

    def write(self, data: Any) -> int:
        with translate_os_errors(self._shown):
            return super().write(data)
