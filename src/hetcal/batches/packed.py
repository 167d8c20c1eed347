"""A calibrator on its way to other processes: bytes that travel, and are read once in each."""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hetcal._exceptions import FileFormatError, InputError

_MOST_KEPT = 4
_kept: OrderedDict[tuple[str, str], Any] = OrderedDict()
_lock = threading.RLock()
_counts = {"unpacked": 0}


@dataclass(frozen=True)
class Packed:
    """What a process needs to have a calibrator; made by :func:`pack` or :func:`pack_file`.

    The content is a copy: a calibrator that is extended, or a file that is replaced while the work
    goes on, does not change what the other processes compute.
    """

    kind: str
    content: bytes = field(repr=False)
    digest: str
    name: str = "model.hetcal"  # what the user calls the file, for errors

    def unpack(self) -> Any:
        """Return what was packed; read at the first call in a process, then kept."""
        key = (self.kind, self.digest)
        with _lock:  # threads of one worker wait for the first, instead of all reading
            if key not in _kept:
                _kept[key] = _READERS[self.kind](self.content, self.name)
                _counts["unpacked"] += 1
                if len(_kept) > _MOST_KEPT:
                    _kept.popitem(last=False)
            _kept.move_to_end(key)
            return _kept[key]


def pack(thing: Any) -> Packed:
    """Pack a calibrator or a monitor that is in memory."""
    content = pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL)
    return Packed("object", content, hashlib.sha256(content).hexdigest())


def pack_file(path: str | os.PathLike[str], *, with_table: bool) -> Packed:
    """Pack a file of :func:`hetcal.save`.

    Parameters
    ----------
    path : str or path
    with_table : bool
        Whether :meth:`Packed.unpack` gives a :class:`~hetcal.batches.LoadedModel`, for which the
        file must come from ``hetcal fit``, or what :func:`hetcal.load` returns.
    """
    content = Path(path).read_bytes()
    kind = "table file" if with_table else "file"
    return Packed(kind, content, hashlib.sha256(content).hexdigest(), os.fspath(path))


def times_unpacked() -> int:
    """Return how often this process has read a calibrator."""
    return _counts["unpacked"]


def _read_object(content: bytes, name: str) -> Any:
    return pickle.loads(content)


def _read_file(content: bytes, name: str) -> Any:
    from hetcal.persistence import load

    return _from_disk(content, name, load)


def _read_table_file(content: bytes, name: str) -> Any:
    from hetcal.batches.model import load_model

    return _from_disk(content, name, load_model)


def _from_disk(content: bytes, name: str, read: Callable[[Path], Any]) -> Any:
    with tempfile.TemporaryDirectory(prefix="hetcal-") as folder:
        path = Path(folder) / (Path(name).name or "model.hetcal")
        path.write_bytes(content)
        try:
            return read(path)
        except (InputError, FileFormatError) as error:
            # The user has never seen the temporary folder.
            kind = FileFormatError if isinstance(error, FileFormatError) else InputError
            raise kind(str(error).replace(str(path), name)) from None


_READERS: dict[str, Callable[[bytes, str], Any]] = {
    "object": _read_object,
    "file": _read_file,
    "table file": _read_table_file,
}
