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
from hetcal._printable import counted
from hetcal.tables.decimal_commas import DecimalCommas
from hetcal.tables.spreadsheets import restored

_DELIMITERS = ",;\t|"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_PARQUET_PIECE = 2**18
_GZIP, _ZIP, _PARQUET, _ARROW = b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"ARROW1"

#: Most characters of a CSV record, and most columns: a few kilobytes of a compressed file may
#: unpack to gigabytes without a line break.
MAX_RECORD, MAX_COLUMNS = 2**24, 100_000
#: A batch of CSV ends at so many characters or cells, even where it might have more rows.
BATCH_CHARACTERS, BATCH_CELLS = 2**26, 2**22


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
        self._raw, self._path = stream, path
        self._size = _size_of(stream)
        start = stream.peek(8)[:8]  # type: ignore[attr-defined]
        _refuse_other_kinds(start, path)
        unpacked: Any = gzip.GzipFile(fileobj=stream) if start[:2] == _GZIP else stream
        if encoding.lower().replace("-", "") == "utf8":
            if start[:2] in _UTF16:
                raise InputError(f"{path} is UTF-16 text. Pass --encoding utf-16 (encoding=).")
            encoding = "utf-8-sig"  # a byte order mark is no part of the first column's name
        self._lines = io.TextIOWrapper(unpacked, encoding=encoding, newline="")
        self._used, self._any_apostrophe = 0, False
        lines = self._bounded_lines()
        first = next(lines, "")
        if not first.strip():
            raise InputError(f"{path} is empty: there is not even a line with the column names.")
        unquoted = re.sub(r'"[^"]*("|$)', "", first)
        self.delimiter = max(_DELIMITERS, key=unquoted.count)
        self._rows = csv.reader(itertools.chain([first], lines), delimiter=self.delimiter)
        self._records = self._read_records()
        self.names = next(self._records)[0]
        if len(self.names) > MAX_COLUMNS:
            raise InputError(
                f"{path} has {len(self.names):,} columns; a CSV file may have {MAX_COLUMNS:,}. "
                "Leave some out, or write the table as Parquet."
            )
        self._commas = DecimalCommas(path, self.names) if decimal == "," else None

    def batches(self, batch_rows: int, columns: list[str] | None = None) -> Iterator[pd.DataFrame]:
        """Yield rows of text."""
        any_yet = False
        while (rows := self._next_rows(batch_rows)) or not any_yet:
            cells: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(self.names)
            if self._commas is not None:
                cells = [self._commas.read(j, column) for j, column in enumerate(cells)]
            yield pd.DataFrame(
                {
                    name: pd.Series(column, dtype=object)
                    for name, column in zip(self.names, cells, strict=True)
                }
            )
            any_yet = True

    def done(self) -> float | None:
        """Return the share that has been read, where that is known."""
        return self._raw.tell() / self._size if self._size else None

    def let_go(self) -> None:
        """Leave the stream to whoever opened it."""
        self._lines.detach()

    def _next_rows(self, most: int) -> list[list[str]]:
        """Return so many rows, or as many as a batch may hold."""
        width = len(self.names)
        most = max(1, min(most, BATCH_CELLS // width))
        rows: list[list[str]] = []
        room = BATCH_CHARACTERS
        for row, size in self._records:
            if len(row) == width:
                rows.append(row)
            elif row:  # an empty line is no row
                raise InputError(
                    f"{self._path}: line {self._rows.line_num} has {counted(len(row), 'field')} "
                    f"where the first line names {counted(width, 'column')}. Correct the line "
                    f"(a value with {self.delimiter!r} in it must be in quotes)."
                )
            room -= size
            if len(rows) == most or (rows and room <= 0):
                break
        return rows

    def _read_records(self) -> Iterator[tuple[list[str], int]]:
        """Yield the cells of each record and its size in characters."""
        try:
            for row in self._rows:
                size, self._used = self._used, 0
                if self._any_apostrophe:
                    row, self._any_apostrophe = [restored(cell) for cell in row], False
                yield row, size
        except csv.Error as error:
            raise InputError(
                f"{self._path}: line {self._rows.line_num} cannot be read: {error}. Is there a "
                "quote that is never closed, or another kind of file?"
            ) from error

    def _bounded_lines(self) -> Iterator[str]:
        """Yield lines, and raise as soon as those of one record are too long together."""
        number = 0
        while line := self._lines.readline(MAX_RECORD - self._used + 1):
            number += 1
            self._used += len(line)
            if self._used > MAX_RECORD:
                raise InputError(
                    f"{self._path}: line {number:,} goes on for more than "
                    f"{MAX_RECORD:,} characters. Is this a table with line ends? Write it again, "
                    "or as Parquet, which has no such limit."
                )
            if "'" in line:
                self._any_apostrophe = True
            yield line


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
            part.validate(full=True)  # pyarrow itself trusts offsets and indices in such a file
            for start in range(0, part.num_rows, batch_rows):
                yield pa.Table.from_batches([part.slice(start, batch_rows)])
                any_yet = True
        if not any_yet:
            yield self._schema.empty_table()

    def done(self) -> float | None:
        """Return the share that has been read, where that is known."""
        return min(1.0, self._raw.tell() / self._size) if self._size else None


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
