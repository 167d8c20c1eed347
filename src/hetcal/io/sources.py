"""The kinds of tables, each as a stream of batches."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol

import pandas as pd

from hetcal._exceptions import InputError

_DELIMITERS = ",;\t|"
# Numbers with a decimal comma, and dots between thousands: 0,25  1.234,5  1.234  2,5e-3  40,5 %
_COMMA_NUMBER = re.compile(
    r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)?(,\d+)?(e[+-]?\d+)?\s*%?\s*", re.IGNORECASE
)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_PARQUET_PIECE = 2**18
_GZIP, _ZIP, _PARQUET, _ARROW = b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"ARROW1"


class Source(Protocol):
    """What each format provides: column names, and rows in batches."""

    names: list[str]
    n_rows: int | None

    def batches(self, batch_rows: int, columns: list[str] | None = None) -> Iterator[Any]:
        """Yield tables of at most so many rows; at least one. Other columns may be left out."""

    def done(self) -> float | None:
        """Return the share that has been read, where that is known."""


class CsvSource:
    """Rows of text; ``n_rows`` is not known before the end."""

    n_rows: int | None = None

    def __init__(self, stream: BinaryIO, path: str, encoding: str, decimal: str = "."):
        if decimal not in (".", ","):
            raise InputError(f"Unknown decimal sign {decimal!r}. Choose '.' or ','.")
        self._raw, self._path, self._decimal = stream, path, decimal
        self._size = _size_of(stream)
        start = stream.peek(8)[:8]  # type: ignore[attr-defined]
        _refuse_other_kinds(start, path)
        unpacked: Any = gzip.GzipFile(fileobj=stream) if start[:2] == _GZIP else stream
        if encoding.lower().replace("-", "") == "utf8":
            if start[:2] in _UTF16:
                raise InputError(f"{path} is UTF-16 text. Pass --encoding utf-16 (encoding=).")
            encoding = "utf-8-sig"  # a byte order mark is no part of the first column's name
        lines = io.TextIOWrapper(unpacked, encoding=encoding, newline="")
        self._lines = lines
        first = lines.readline()
        if not first.strip():
            raise InputError(f"{path} is empty: there is not even a line with the column names.")
        self.delimiter = max(_DELIMITERS, key=first.count)
        self._rows = csv.reader(itertools.chain([first], lines), delimiter=self.delimiter)
        self.names = next(self._rows)

    def batches(self, batch_rows: int, columns: list[str] | None = None) -> Iterator[pd.DataFrame]:
        """Yield rows of text."""
        width, any_yet = len(self.names), False
        while True:
            rows = list(itertools.islice(self._filled_rows(width), batch_rows))
            if not rows and any_yet:
                return
            cells = list(zip(*rows, strict=True)) if rows else [()] * width
            yield pd.DataFrame(
                {
                    name: pd.Series(column, dtype=object)
                    for name, column in zip(self.names, cells, strict=True)
                }
            )
            any_yet = True
            if len(rows) < batch_rows:
                return

    def done(self) -> float | None:
        """Return the share that has been read, where that is known."""
        return self._raw.tell() / self._size if self._size else None

    def let_go(self) -> None:
        """Leave the stream to whoever opened it."""
        self._lines.detach()

    def _filled_rows(self, width: int) -> Iterator[list[str]]:
        for row in self._rows:
            if len(row) == width:
                yield row if self._decimal == "." else [_with_point(cell) for cell in row]
            elif row:  # an empty line is no row
                raise InputError(
                    f"{self._path}: line {self._rows.line_num} has {len(row)} fields where the "
                    f"first line names {width} columns. Correct the line (a value with "
                    f"{self.delimiter!r} in it must be in quotes)."
                )


class ParquetSource:
    """Parquet, row group by row group."""

    def __init__(self, stream: BinaryIO):
        import pyarrow.parquet as pq

        # Not buffered ahead: what was read ahead stays in memory, in the end the whole file. In
        # pieces: else a column of a whole row group is read at once.
        self._file = pq.ParquetFile(
            stream,
            pre_buffer=False,
            buffer_size=_PARQUET_PIECE,
            page_checksum_verification=True,  # where the writer has left any
        )
        self._schema = self._file.schema_arrow
        self.names = list(self._schema.names)
        self.n_rows: int | None = self._file.metadata.num_rows
        self._read = 0

    def batches(self, batch_rows: int, columns: list[str] | None = None) -> Iterator[Any]:
        """Yield Arrow tables."""
        import pyarrow as pa

        if not self.n_rows:
            yield self._schema.empty_table()
            return
        for batch in self._file.iter_batches(batch_size=batch_rows, columns=columns):
            self._read += batch.num_rows
            yield pa.Table.from_batches([batch])

    def done(self) -> float | None:
        """Return the share that has been read, where that is known."""
        return self._read / self.n_rows if self.n_rows else None


class ArrowSource:
    """The file format (also Feather 2) and the stream format, told apart by their first bytes."""

    n_rows: int | None = None

    def __init__(self, stream: BinaryIO):
        import pyarrow as pa

        start = stream.read(6)
        stream.seek(0)
        self._raw, self._size = stream, _size_of(stream)
        if start == _ARROW:
            self._file = pa.ipc.open_file(stream)
            self._parts = map(self._file.get_batch, range(self._file.num_record_batches))
            self._schema = self._file.schema
        else:
            self._parts = iter(opened := pa.ipc.open_stream(stream))
            self._schema = opened.schema
        self.names = list(self._schema.names)

    def batches(self, batch_rows: int, columns: list[str] | None = None) -> Iterator[Any]:
        """Yield Arrow tables."""
        import pyarrow as pa

        any_yet = False
        for part in self._parts:
            for start in range(0, part.num_rows, batch_rows):
                yield pa.Table.from_batches([part.slice(start, batch_rows)])
                any_yet = True
        if not any_yet:
            yield self._schema.empty_table()

    def done(self) -> float | None:
        """Return the share that has been read, where that is known."""
        return min(1.0, self._raw.tell() / self._size) if self._size else None


def _with_point(cell: str) -> str:
    """Return a number with a decimal comma as Python writes it; other text as it is.

    Examples
    --------
    >>> [_with_point(cell) for cell in ("0,25", "1.234,5", "1.234", "01.02.2024", "a,b", "")]
    ['0.25', '1234.5', '1234', '01.02.2024', 'a,b', '']
    """
    if not _COMMA_NUMBER.fullmatch(cell):
        return cell
    return cell.replace(".", "").replace(",", ".")


def _size_of(stream: BinaryIO) -> int | None:
    if not stream.seekable():
        return None
    place = stream.tell()
    size = stream.seek(0, io.SEEK_END)
    stream.seek(place)
    return size


def _refuse_other_kinds(start: bytes, path: str) -> None:
    for magic, kind in ((_PARQUET, "parquet"), (_ARROW, "arrow")):
        if start.startswith(magic):
            raise InputError(f"{path} is not CSV but {kind}. Pass --format {kind}, or rename it.")
    if start.startswith(_ZIP):
        raise InputError(f"{path} is a zip archive or an Excel file. Save the table as CSV.")
