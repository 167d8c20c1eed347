r"""The file itself: a fixed header, a JSON manifest, and arrays one after the other.

::

    offset  bytes  what
    0       8      the magic bytes 89 48 45 54 43 41 4C 0A ("\x89HETCAL\n")
    8       4      format version, little endian
    12      4      zero, for later use
    16      8      length of the manifest in bytes, little endian
    24      32     SHA-256 of the manifest
    56             the manifest, JSON in UTF-8
                   the arrays, in the order of the manifest's table, without gaps, up to the end

The manifest's table says of each array its dtype, shape, memory order, encoding ("raw" or "zlib"),
stored bytes and their SHA-256. Places are not written down but follow from the sizes, so arrays
cannot overlap or lie outside. Everything is checked before memory is allocated for it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hetcal._exceptions import FileFormatError
from hetcal.persistence.atomic_file import AtomicFile
from hetcal.persistence.budget import Budget

MAGIC = b"\x89HETCAL\n"
VERSION = 1
HEADER = struct.Struct("<8sIIQ32s")

DTYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
MOST_MANIFEST_BYTES = 1 << 23
MOST_ARRAYS = 4096
MOST_DIMENSIONS = 4
#: An array may be this much larger than its stored bytes, or have this many bytes in all.
MOST_EXPANSION, SMALL_ARRAY = 64, 4096
#: A JSON value and what becomes of it take at most so many bytes, beside its text.
BYTES_PER_VALUE = 200
DEEPEST = 100

_PIECE = 1 << 20
_REPLACED = "The file is damaged or was changed; fetch or save it again."


def write(path: Path, manifest: dict[str, Any], arrays: list[NDArray]) -> None:
    """Write a file in one step: whoever reads sees the old one or the new one, never a part.

    Where that fails (a full disk) the old file stays as it was.
    """
    if len(arrays) > MOST_ARRAYS:
        raise ValueError(f"A file holds at most {MOST_ARRAYS} arrays; there are {len(arrays)}.")
    blocks, table = [], []
    for array in arrays:
        entry, block = _encoded(array)
        table.append(entry)
        blocks.append(block)
    text = _json_bytes(manifest | {"arrays": table})
    if len(text) > MOST_MANIFEST_BYTES:
        raise ValueError(
            f"Everything but the arrays takes {len(text)} bytes of JSON, more than the "
            f"{MOST_MANIFEST_BYTES} that a file may have. Shorten the metadata."
        )
    header = HEADER.pack(MAGIC, VERSION, 0, len(text), hashlib.sha256(text).digest())
    with AtomicFile(path) as file:
        for part in (header, text, *blocks):
            file.write(part)


def read(path: Path, budget: Budget | None = None) -> tuple[dict[str, Any], list[NDArray]]:
    """Return the manifest and the arrays of a file, or raise :class:`FileFormatError`."""
    budget = Budget() if budget is None else budget
    with path.open("rb") as file:
        manifest, size, _ = _read_manifest(file, budget)
        left = size - file.tell()
        entries = _checked_table(manifest, left, budget)
        return manifest, [_read_array(file, i, entry) for i, entry in enumerate(entries)]


def read_manifest(path: Path) -> tuple[dict[str, Any], int, int]:
    """Return manifest, size of the file and format version, without reading the arrays."""
    with path.open("rb") as file:
        return _read_manifest(file, Budget())


def json_copy(value: Any) -> Any:
    """Return a value as JSON would bring it back; raises ValueError where it is no JSON."""
    try:
        copied = json.loads(json.dumps(value, allow_nan=False))
    except RecursionError:
        copied = None
    if copied is None or _is_deep(copied, DEEPEST - 1):
        raise ValueError(f"it is nested more than {DEEPEST - 1} levels deep")
    return copied


def _json_bytes(manifest: dict[str, Any]) -> bytes:
    return json.dumps(
        manifest, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
    ).encode("utf-8", "backslashreplace")  # half a pair of UTF-16, which JSON writes as \ud800


def _encoded(array: NDArray) -> tuple[dict[str, Any], bytes]:
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    array = np.asarray(array, dtype=array.dtype.newbyteorder("<"))
    raw = array.tobytes(order="F" if fortran else "C")
    packed = zlib.compress(raw, 6)
    worth = len(packed) < len(raw)
    if not worth or (len(raw) > SMALL_ARRAY and len(raw) > MOST_EXPANSION * len(packed)):
        packed, worth = raw, False
    entry = {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "order": "F" if fortran else "C",
        "encoding": "zlib" if worth else "raw",
        "bytes": len(packed),
        "sha256": hashlib.sha256(packed).hexdigest(),
    }
    return entry, packed


def _read_manifest(file: BinaryIO, budget: Budget) -> tuple[dict[str, Any], int, int]:
    size = os.fstat(file.fileno()).st_size
    head = file.read(HEADER.size)
    if head[: len(MAGIC)] != MAGIC:
        raise FileFormatError(_not_ours(head))
    if len(head) < HEADER.size:
        raise FileFormatError(f"The file ends after {len(head)} bytes. {_REPLACED}")
    _, version, reserved, length, digest = HEADER.unpack(head)
    if not 1 <= version <= VERSION:
        raise FileFormatError(
            f"The file has format version {version}; this hetcal reads up to {VERSION}. "
            "Install the hetcal that wrote it, or a newer one."
        )
    if reserved != 0:
        raise FileFormatError(f"The file's header holds {reserved} where 0 must be. {_REPLACED}")
    if length > MOST_MANIFEST_BYTES or length > size - HEADER.size:
        raise FileFormatError(
            f"The file says that its manifest takes {length} bytes, but it has {size} bytes and "
            f"the limit is {MOST_MANIFEST_BYTES}. {_REPLACED}"
        )
    text = file.read(length)
    if hashlib.sha256(text).digest() != digest:
        raise FileFormatError(f"The checksum of the file's manifest is wrong. {_REPLACED}")
    # Before it is parsed: every value but the first follows a bracket or a comma.
    n_values = 1 + sum(text.count(sign) for sign in (b",", b"[", b"{"))
    budget.take(2 * len(text) + BYTES_PER_VALUE * n_values)
    return _parsed(text), size, version


def _not_ours(head: bytes) -> str:
    kinds = {b"PK\x03\x04": "a zip archive", b"\x80\x04": "a pickle", b"\x80\x05": "a pickle"}
    kind = next((name for start, name in kinds.items() if head.startswith(start)), None)
    what = "is empty" if not head else f"is {kind}" if kind else "does not begin as one"
    return f"This is no hetcal file: it {what}. Pass a file that hetcal.save wrote."


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(
            text.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_unique
        )
    except FileFormatError:
        raise
    except RecursionError as error:  # words of Python, which differ between versions
        raise FileFormatError("The file's manifest is nested too deep to be read.") from error
    except ValueError as error:
        raise FileFormatError(f"The file's manifest is no valid JSON ({error}).") from error
    if not isinstance(manifest, dict):
        raise FileFormatError("The file's manifest is not a JSON object.")
    if _is_deep(manifest, DEEPEST):
        raise FileFormatError(f"The file's manifest is nested more than {DEEPEST} levels deep.")
    return manifest


def _is_deep(value: Any, deepest: int) -> bool:
    """Tell whether lists and dicts lie within each other more often than that."""
    level = [value]
    for _ in range(deepest):
        inside = [
            v for outer in level for v in (outer if isinstance(outer, list) else outer.values())
        ]
        level = [v for v in inside if isinstance(v, dict | list)]
        if not level:
            return False
    return True


def _refuse_constant(name: str) -> None:
    raise FileFormatError(f"The file's manifest holds {name}, which JSON does not have.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise FileFormatError("The file's manifest names something twice.")
    return found


def _checked_table(manifest: dict[str, Any], left: int, budget: Budget) -> list[dict[str, Any]]:
    """Return the table of arrays after checking that it fits the file and the memory."""
    table = manifest.get("arrays")
    if not isinstance(table, list) or len(table) > MOST_ARRAYS:
        raise FileFormatError(f"The file's table of arrays is missing or too long. {_REPLACED}")
    needed = stored = 0
    for number, entry in enumerate(table):
        raw = raw_bytes(entry, number)
        needed += raw
        stored += entry["bytes"]
    if stored != left:
        raise FileFormatError(
            f"The file's arrays take {stored} bytes by its table, but {left} bytes follow. "
            f"{_REPLACED}"
        )
    budget.take(needed)
    return table


def raw_bytes(entry: Any, number: int) -> int:
    """Return how many bytes an array takes in memory, by its entry."""
    wanted = {"dtype", "shape", "order", "encoding", "bytes", "sha256"}
    if not isinstance(entry, dict) or set(entry) != wanted:
        raise FileFormatError(f"Array {number} of the file is not described as it should be.")
    shape = entry["shape"]
    fits = (
        entry["dtype"] in DTYPES
        and entry["order"] in ("C", "F")
        and entry["encoding"] in ("raw", "zlib")
        and isinstance(entry["sha256"], str)
        and _is_count(entry["bytes"])
        and isinstance(shape, list)
        and 1 <= len(shape) <= MOST_DIMENSIONS
        and all(_is_count(n) for n in shape)
    )
    if not fits:
        raise FileFormatError(f"Array {number} of the file is not described as it should be.")
    raw = math.prod(shape) * np.dtype(entry["dtype"]).itemsize
    stored = entry["bytes"]
    if entry["encoding"] == "raw":
        possible = raw == stored
    else:
        possible = raw <= max(SMALL_ARRAY, MOST_EXPANSION * stored)
    if not possible:
        raise FileFormatError(
            f"Array {number} of the file has shape {shape}, which {stored} stored bytes cannot "
            f"fill. {_REPLACED}"
        )
    return raw


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48


def _read_array(file: BinaryIO, number: int, entry: dict[str, Any]) -> NDArray:
    dtype = np.dtype(entry["dtype"])
    raw = math.prod(entry["shape"]) * dtype.itemsize
    data, digest = bytearray(raw), hashlib.sha256()
    pieces = _pieces(file, entry["bytes"], digest)
    try:
        filled = _filled(data, _unpacked(pieces) if entry["encoding"] == "zlib" else pieces)
    except zlib.error as error:
        raise FileFormatError(f"Array {number} of the file cannot be unpacked ({error}).") from None
    if not filled:
        raise FileFormatError(
            f"Array {number} of the file does not unpack to the {raw} bytes that it should. "
            f"{_REPLACED}"
        )
    if digest.hexdigest() != entry["sha256"]:
        raise FileFormatError(f"The checksum of array {number} of the file is wrong. {_REPLACED}")
    flat = np.frombuffer(data, dtype=dtype)
    if dtype == np.bool_ and flat.size and flat.view(np.uint8).max() > 1:
        raise FileFormatError(f"Array {number} of the file holds neither true nor false.")
    return flat.reshape(entry["shape"], order=entry["order"])


def _pieces(file: BinaryIO, n_bytes: int, digest: Any) -> Iterator[bytes]:
    """Yield what is stored of an array, a little at a time: it is never in memory twice."""
    while n_bytes > 0:
        piece = file.read(min(n_bytes, _PIECE))
        if not piece:
            return
        digest.update(piece)
        n_bytes -= len(piece)
        yield piece


def _unpacked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what pieces unpack to, in pieces again; raise where they are no whole zlib stream."""
    unpacker = zlib.decompressobj()
    for piece in pieces:
        if unpacker.eof:
            raise zlib.error("more follows")
        yield unpacker.decompress(piece, _PIECE)
        while unpacker.unconsumed_tail:
            yield unpacker.decompress(unpacker.unconsumed_tail, _PIECE)
    while part := unpacker.decompress(b"", _PIECE):  # what it has read and still holds back
        yield part
    if not unpacker.eof or unpacker.unused_data:
        raise zlib.error("its end is not where it should be")


def _filled(data: bytearray, pieces: Iterator[bytes]) -> bool:
    """Copy pieces into ``data``; return whether they fill it exactly, and go no further if not."""
    done = 0
    for piece in pieces:
        if done + len(piece) > len(data):
            return False
        data[done : done + len(piece)] = piece
        done += len(piece)
    return done == len(data)
