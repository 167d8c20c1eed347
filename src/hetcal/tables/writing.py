"""Writing tables batch by batch, all or nothing.

A file takes its name only when it is complete (:mod:`hetcal.persistence.atomic_file`).
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self

import numpy as np

from hetcal._exceptions import InputError
from hetcal._printable import printable
from hetcal._validation.text import is_missing
from hetcal.persistence.atomic_file import AtomicFile
from hetcal.tables.reading import STDIN, named_like_table, need_pyarrow, table_format
from hetcal.tables.spreadsheets import defused_cells

Columns = Mapping[str, Any]
_PAGE = b'name="generator" content="hetcal"'


class TableWriter:
    """Write a table in batches to a file, or to standard output.

    Parameters
    ----------
    path : str or Path
        The file; ``"-"`` is standard output.
    format : {"csv", "parquet", "arrow"}, optional
        By default known by the name of the file.
    overwrite : bool, default=False
        Whether a file of that name may be replaced.
    delimiter : str, optional
        Between the cells of a CSV file; by default a comma, a tab for ``.tsv``.
    verbatim : bool, default=False
        In a CSV file, text that a spreadsheet would run as a formula (``=1+1``) gets an apostrophe
        before it (``'=1+1``), which is taken away when the file is read here. True leaves it as
        it is, for programs that read the file otherwise. Other formats are not changed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TableWriter(f"{folder}/new.csv") as table:
    ...         table.write({"name": ["a", "b"], "q": np.array([0.25, 0.75])})
    ...     Path(folder, "new.csv").read_text().split()
    ['name,q', 'a,0.25', 'b,0.75']
    """

    def __init__(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        overwrite: bool = False,
        delimiter: str | None = None,
        verbatim: bool = False,
    ):
        self.path = path
        self.format = table_format(path, format, option="--out-format")
        if self.format != "csv":
            need_pyarrow(f"{path} is to be a {self.format} table")
        self._delimiter, self._verbatim = delimiter, verbatim
        self._body: _Body | None = None
        self._to_file = str(path) != STDIN
        self._for_eyes = not self._to_file and sys.stdout.isatty()
        self._file: Any
        if self._to_file:
            check_target(path, overwrite=overwrite)
            self._file = AtomicFile(path, overwrite=overwrite)
        else:
            if self._for_eyes and self.format != "csv":
                raise InputError(
                    f"Standard output is a terminal, and a {self.format} table is no text. Name a "
                    "file with -o, or pipe the output into another program."
                )
            self._file = contextlib.nullcontext(sys.stdout.buffer)

    def write(self, columns: Columns) -> None:
        """Write one batch; the first fixes the columns and, for Parquet and Arrow, their types."""
        if self._body is None:
            self._body = self._start(columns)
        self._body.write(columns)

    def __enter__(self) -> Self:
        self._stream: BinaryIO = self._file.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            try:
                self._close_body()
            except BaseException as failure:
                self._file.__exit__(type(failure), failure, failure.__traceback__)
                raise
        self._file.__exit__(kind, error, trace)
        if kind is not None:
            # The body lets go of the stream as well, as far as it still can.
            with contextlib.suppress(Exception):
                self._close_body()

    def _close_body(self) -> None:
        if self._body is not None:
            self._body.close()
            self._stream.flush()

    def _start(self, columns: Columns) -> _Body:
        if self.format == "csv":
            name = str(self.path).lower()
            default = "\t" if name.removesuffix(".gz").endswith((".tsv", ".tab")) else ","
            delimiter = self._delimiter or default
            return _CsvBody(
                self._stream,
                list(columns),
                delimiter,
                packed=name.endswith(".gz"),
                verbatim=self._verbatim,
                for_eyes=self._for_eyes,
            )
        parquet = self.format == "parquet"
        return _ArrowBody(self._stream, columns, parquet=parquet, as_file=self._to_file)


def check_target(path: str | Path, *, overwrite: bool, model: Path | None = None) -> None:
    """Raise where a file cannot or may not be written, before any work is done.

    What is read from ``model`` never takes its place.
    """
    target = Path(path)
    if model is not None and target.exists() and model.exists() and target.samefile(model):
        raise InputError(f"{path} is the calibrator itself, which would be lost. Name another.")
    if str(target) == STDIN:
        raise InputError("'-' is standard output, where this cannot be written. Name a file.")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}. Create it first.")
    if target.is_dir():
        raise InputError(f"{path} is a folder. Name the file to write.")
    if not target.exists() or target.is_file():  # what a link points to is replaced
        folder = Path(os.path.realpath(target)).parent
        if not os.access(folder, os.W_OK):
            raise InputError(
                f"{path}: nothing can be written in the folder {folder}. Choose a folder that you "
                "may write to."
            )
    if target.is_file() and not overwrite:
        raise InputError(f"{path} exists already. Pass --overwrite, or choose another name.")


def check_model_target(path: str | Path, *, overwrite: bool) -> None:
    """Raise where a calibrator or a monitor cannot be written, or its name is that of a table."""
    if named_like_table(path):
        start = Path(path).name.split(".", 1)[0]
        raise InputError(
            f"{path} is the name of a table, but a calibrator or a monitor is what would be written"
            f". Choose another name, e.g. {Path(path).with_name(start)}.hetcal."
        )
    check_target(path, overwrite=overwrite)


def check_other_file(path: str | Path, given: str | Path) -> None:
    """Raise where a file cannot be written, or is the one that is read."""
    check_target(path, overwrite=True)
    if os.path.realpath(path) == os.path.realpath(given):
        raise InputError(f"{path} is the table that is read. Choose another name.")


def check_page_target(path: str | Path) -> None:
    """Raise where a page cannot be written; only an earlier page of hetcal is replaced."""
    check_target(path, overwrite=True)
    start = _start(path)
    if start and _PAGE not in start:
        raise InputError(f"{path} is there and is not a report of hetcal. Choose another name.")


def _start(path: str | Path) -> bytes:
    """Return the first bytes of a file, none where there is none."""
    if not Path(path).is_file():
        return b""
    with Path(path).open("rb") as file:
        return file.read(4096)


class _Body(Protocol):
    def write(self, columns: Columns) -> None: ...

    def close(self) -> None: ...


class _CsvBody:
    def __init__(
        self,
        stream: BinaryIO,
        names: list[str],
        delimiter: str,
        *,
        packed: bool,
        verbatim: bool,
        for_eyes: bool,
    ):
        self._delimiter, self._verbatim, self._for_eyes = delimiter, verbatim, for_eyes
        self._packed = gzip.GzipFile(fileobj=stream, mode="wb", filename="") if packed else None
        below: Any = self._packed or stream
        self._lines = io.TextIOWrapper(below, encoding="utf-8", newline="", write_through=True)
        self._write([self._safe([name]) for name in names])

    def write(self, columns: Columns) -> None:
        self._write([self._safe(_as_cells(values)) for values in columns.values()])

    def close(self) -> None:
        self._lines.flush()
        self._lines.detach()  # the stream below is closed by its owner
        if self._packed is not None:
            self._packed.close()

    def _safe(self, cells: list[Any]) -> list[Any]:
        return cells if self._verbatim else defused_cells(cells)

    def _write(self, columns: list[list[Any]]) -> None:
        text = _csv_text(columns, self._delimiter)
        self._lines.write(printable(text, keep="\n\t") if self._for_eyes else text)


def _csv_text(columns: list[list[Any]], delimiter: str) -> str:
    text = io.StringIO(newline="")
    rows = zip(*columns, strict=True)
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    if "\r" not in text.getvalue():
        return text.getvalue()
    # A bare \r ends a line for many readers, but is put in quotes only where lines end with it.
    lines, rows = _Lines(), zip(*columns, strict=True)
    csv.writer(lines, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


class _Lines(list[str]):
    """What ``csv.writer`` writes to, one line after the other."""

    write = list.append


class _ArrowBody:
    """Parquet, the Arrow file format, or (to standard output) the Arrow stream format."""

    def __init__(self, stream: BinaryIO, columns: Columns, *, parquet: bool, as_file: bool):
        import pyarrow as pa
        import pyarrow.parquet as pq

        arrays = {name: _as_arrow(values) for name, values in columns.items()}
        # An Arrow file has one dictionary per column, but batches may bring different ones.
        types = {
            name: array.type.value_type
            if not parquet and pa.types.is_dictionary(array.type)
            else array.type
            for name, array in arrays.items()
        }
        self._schema = pa.schema([(name, types[name]) for name in arrays])
        if parquet:
            self._writer: Any = pq.ParquetWriter(stream, self._schema, write_page_checksum=True)
        else:
            start = pa.ipc.new_file if as_file else pa.ipc.new_stream
            self._writer = start(stream, self._schema)

    def write(self, columns: Columns) -> None:
        import pyarrow as pa

        arrays = [
            _as_arrow(columns[field.name], field.type).cast(field.type) for field in self._schema
        ]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _as_cells(values: Any) -> list[Any]:
    """Return a column as what ``csv`` writes: text and numbers; nothing is an empty cell."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return ["" if value != value else value for value in values.tolist()]
    if hasattr(values, "to_pylist"):
        values = values.to_pylist()
    elif hasattr(values, "tolist"):
        values = values.tolist()
    # A word such as "NA" is the cell's own text and stays.
    return ["" if not isinstance(v, str) and is_missing(v) else v for v in values]


def _as_arrow(values: Any, kind: Any = None) -> Any:
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return pa.array(values, from_pandas=True)
    if hasattr(values, "__arrow_array__"):
        return pa.array(values)
    cells = [None if is_missing(v) and not isinstance(v, str) else v for v in list(values)]
    if kind is None and all(cell is None or isinstance(cell, str) for cell in cells):
        kind = pa.string()
    return pa.array(cells, type=kind)
