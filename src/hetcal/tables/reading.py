"""Reading tables: CSV (also gzipped), Parquet and Arrow, whole or in batches of bounded memory.

CSV is read with the standard library alone and its cells stay text until it is known what a column
is, so that no batch can be taken for something else than the one before. Parquet and Arrow need
pyarrow (``pip install 'hetcal[io]'``).
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from hetcal._exceptions import InputError
from hetcal._validation.text import closest, infer_column
from hetcal.tables.parquet_parts import ParquetFolder
from hetcal.tables.sizes import BATCH_ROWS
from hetcal.tables.sources import ArrowSource, CsvSource, ParquetSource, Source

FORMATS = ("csv", "parquet", "arrow")
STDIN = "-"

_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
_JSON = {".json", ".jsonl", ".ndjson"}
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


class Reader:
    """An open table: its columns are known, its rows come in batches.

    Attributes
    ----------
    names : list of str
        The columns.
    n_rows : int or None
        How many rows there are; not known of CSV and Arrow.
    delimiter : str or None
        What separates the cells of a CSV file.
    """

    def __init__(self, source: Source, path: str | Path, encoding: str):
        self._source, self._path, self._encoding = source, path, encoding
        self.names, self.n_rows = source.names, source.n_rows
        self.delimiter: str | None = getattr(source, "delimiter", None)

    def batches(
        self, batch_rows: int = BATCH_ROWS, columns: list[str] | None = None
    ) -> Iterator[Any]:
        """Yield tables of at most so many rows; at least one, which may have no row.

        Columns other than ``columns`` need not be there: Parquet does not read them.
        """
        parts = self._source.batches(batch_rows, columns)
        while True:
            with _readable_errors(self._path, self._encoding):
                try:
                    part = next(parts)
                except StopIteration:
                    return
            yield part

    def done(self) -> float | None:
        """Return the share of the table that has been read, where that is known."""
        return self._source.done()


def table_format(path: str | Path, format: str | None = None, *, option: str = "--format") -> str:
    """Return ``"csv"``, ``"parquet"`` or ``"arrow"``: as said, or by the end of the file's name.

    Examples
    --------
    >>> table_format("loans.csv.gz"), table_format("loans.feather"), table_format("-")
    ('csv', 'arrow', 'csv')
    """
    if format is not None:
        if format not in FORMATS:
            raise InputError(f"Unknown format {format!r}. Choose one of {', '.join(FORMATS)}.")
        return format
    if str(path) == STDIN:
        return "csv"
    found = _format_of_name(path)
    if found is None and Path(path).suffix.lower() in _SPREADSHEETS:
        raise InputError(
            f"{path} is a spreadsheet, which is not read. Save the sheet as CSV (UTF-8), or in "
            "Python: pandas.read_excel(...).to_csv('table.csv', index=False)."
        )
    if found is None and Path(path).suffix.lower() in _JSON:
        raise InputError(
            f"{path} is JSON, which is not read. In Python, one object per line: "
            f"pandas.read_json({str(path)!r}, lines=True).to_parquet('table.parquet')."
        )
    if found is None and Path(path).suffix.lower() == ".hetcal":
        raise InputError(
            f"{path} is a file that hetcal has written, no table. Pass the table of rows here."
        )
    if found is None and Path(path).is_dir():
        return "parquet"
    if found is None:
        raise InputError(
            f"{path}: the kind of table is not clear from the name. Rename it (.csv, .csv.gz, "
            f".parquet, .arrow, .feather), or pass {option} csv, parquet or arrow."
        )
    return found


def named_like_table(path: str | Path) -> bool:
    """Return whether the name of a file ends as that of a table does."""
    return _format_of_name(path) is not None


def _format_of_name(path: str | Path) -> str | None:
    name = Path(path).name.lower().removesuffix(".gz")
    return _SUFFIXES.get(Path(name).suffix)


def read_table(
    path: str | Path,
    *,
    format: str | None = None,
    encoding: str = "utf-8",
    decimal: str = ".",
) -> Any:
    """Read a whole table.

    Parameters
    ----------
    path : str or Path
        The file, or a folder of Parquet files; ``"-"`` is standard input.
    format : {"csv", "parquet", "arrow"}, optional
        By default known by the name of the file.
    encoding : str, default="utf-8"
        Of a CSV file.
    decimal : {".", ","}, default="."
        The decimal sign of a CSV file. With ``","``, points stand between thousands; a column
        that does not show whether they do (1.484) is an error, one with 0.484 is left as it is.

    Returns
    -------
    table : pandas.DataFrame or pyarrow.Table
        A CSV file as a pandas table, anything else as an Arrow table.
    """
    with open_table(path, format=format, encoding=encoding, decimal=decimal) as reader:
        return whole_table(list(reader.batches(BATCH_ROWS)))


def whole_table(batches: list[Any]) -> Any:
    """Return batches as one table; the columns of a CSV file, text so far, as what they hold."""
    if isinstance(batches[0], pd.DataFrame):
        text = pd.concat(batches, ignore_index=True) if len(batches) > 1 else batches[0]
        return pd.DataFrame({name: infer_column(text[name].tolist()) for name in text.columns})
    import pyarrow as pa

    return pa.concat_tables(batches)


def read_batches(
    path: str | Path,
    batch_rows: int = BATCH_ROWS,
    *,
    format: str | None = None,
    encoding: str = "utf-8",
    decimal: str = ".",
) -> Iterator[Any]:
    """Yield a table in batches of at most ``batch_rows`` rows, at least one batch.

    Returns
    -------
    batches : iterator of pandas.DataFrame or pyarrow.Table
        The cells of a CSV file are text; :meth:`hetcal.tables.TableRoles.items` reads them as
        what the columns were at fit.
    """
    with open_table(path, format=format, encoding=encoding, decimal=decimal) as reader:
        yield from reader.batches(batch_rows)


@contextlib.contextmanager
def open_table(
    path: str | Path,
    *,
    format: str | None = None,
    encoding: str = "utf-8",
    decimal: str = ".",
) -> Iterator[Reader]:
    """Open a table for reading; see :func:`read_table` for the parameters."""
    kind = table_format(path, format)
    if Path(path).is_dir():
        if kind != "parquet":
            raise InputError(f"{path} is a folder. Pass one table, or a folder of Parquet files.")
        need_pyarrow(f"{path} is a folder of Parquet files")
        yield Reader(ParquetFolder(str(path)), path, encoding)
        return
    with contextlib.ExitStack() as closing:
        stream = _open_binary(path, closing)
        with _readable_errors(path, encoding):
            source: CsvSource | ParquetSource | ArrowSource
            if kind == "csv":
                source = CsvSource(stream, str(path), encoding, decimal)
                closing.callback(source.let_go)
            else:
                need_pyarrow(f"{path} is a {kind} table")
                stream = _seekable(stream, closing)
                source = ParquetSource(stream) if kind == "parquet" else ArrowSource(stream)
        _check_names(source.names, path)
        yield Reader(source, path, encoding)


def need_pyarrow(why: str) -> None:
    """Raise where pyarrow is not installed, and say how to get it."""
    if find_spec("pyarrow") is None:
        raise ImportError(
            f"{why}, which needs pyarrow. Install it with: pip install 'hetcal[io]', or use CSV."
        )


def _open_binary(path: str | Path, closing: contextlib.ExitStack) -> BinaryIO:
    if str(path) == STDIN:
        return sys.stdin.buffer
    try:
        return closing.enter_context(Path(path).open("rb"))
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.{_close_files(Path(path))}") from None


def _close_files(path: Path) -> str:
    if not path.parent.is_dir():
        return f" There is no folder {path.parent} either."
    near = closest(path.name, [file.name for file in path.parent.iterdir()], n=3)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def _seekable(stream: BinaryIO, closing: contextlib.ExitStack) -> BinaryIO:
    """Return a stream that can be read from any place; what comes by a pipe goes to disk first."""
    if stream.seekable():
        return stream
    spooled = closing.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    shutil.copyfileobj(stream, spooled)
    spooled.seek(0)
    return spooled


def _check_names(names: list[str], path: str | Path) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(
                f"{path} has two columns named {name!r}. Rename one of them, so that it is clear "
                "which is meant."
            )
        seen.add(name)


@contextlib.contextmanager
def _readable_errors(path: str | Path, encoding: str) -> Iterator[None]:
    """Turn what libraries say about a broken file into one line with the remedy."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not {encoding} text (byte {error.object[error.start]:#04x}). Save it as "
            "UTF-8, or pass its --encoding, for example latin-1."
        ) from error
    except LookupError as error:
        if "encoding" not in str(error):
            raise
        raise InputError(f"Unknown encoding {encoding!r}. Try utf-8 or latin-1.") from error
    except (csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}. Fetch or write it again.") from error
    except Exception as error:
        # A wrong checksum of a Parquet page is an OSError too, but none that the system has raised.
        damaged = isinstance(error, OSError) and error.errno is None
        if not damaged and type(error).__module__.split(".")[0] != "pyarrow":
            raise
        raise InputError(
            f"{path} cannot be read: {error}. Fetch or write it again, or say what it is with "
            "--format."
        ) from error
