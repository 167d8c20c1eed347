"""Partitioned Parquet as pieces of work: which files, which rows of them, which columns."""

from __future__ import annotations

import contextlib
import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hetcal._exceptions import InputError
from hetcal.tables.selection import listed

_ENDINGS = (".parquet", ".pq")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of one file: the work of one task.

    Attributes
    ----------
    number : int
        Its place among all pieces, which is that of its output.
    path : str
        The file.
    row_groups : tuple of int
        Which parts of the file.
    first_row : int
        The number of its first row in the file, from 1.
    n_rows : int
        How many rows it has.
    values : dict
        Columns that are told by the names of folders (``year=2024``), and their values.
    """

    number: int
    path: str
    row_groups: tuple[int, ...]
    first_row: int
    n_rows: int
    values: dict[str, str | None]

    def batches(self, schema: Any, batch_rows: int) -> Iterator[Any]:
        """Yield the rows as Arrow record batches of this schema; at least one."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with (
            _readable(self.path),
            pq.ParquetFile(self.path, page_checksum_verification=True) as file,
        ):
            any_yet = False
            columns = [name for name in schema.names if name not in self.values]
            rows = {"row_groups": list(self.row_groups), "columns": columns}
            for batch in file.iter_batches(batch_rows, **rows):
                any_yet = True
                yield self._fitted(batch, schema)
            if not any_yet:
                empty = pa.RecordBatch.from_pylist([], schema=file.schema_arrow)
                yield self._fitted(empty, schema)

    def _fitted(self, batch: Any, schema: Any) -> Any:
        import pyarrow as pa

        arrays = []
        for field in schema:
            if field.name in self.values:
                value = self.values[field.name]
                column = pa.repeat(pa.scalar(value, pa.string()), batch.num_rows)
            else:
                column = batch.column(field.name)
            arrays.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(frozen=True)
class Plan:
    """All pieces of a table, in order, and the schema that their rows share."""

    pieces: list[Piece]
    schema: Any

    @property
    def n_rows(self) -> int:
        """Rows of all pieces."""
        return sum(piece.n_rows for piece in self.pieces)


class ParquetFolder:
    """A folder of Parquet files as one table."""

    def __init__(self, path: str):
        self._plan = plan(path)
        self.names = list(self._plan.schema.names)
        self.n_rows: int | None = self._plan.n_rows
        self._read = 0

    def batches(self, batch_rows: int, columns: list[str] | None = None) -> Iterator[Any]:
        """Yield Arrow tables."""
        import pyarrow as pa

        wanted = self.names if columns is None else columns
        schema = pa.schema([self._plan.schema.field(name) for name in wanted])
        for piece in self._plan.pieces:
            for batch in piece.batches(schema, batch_rows):
                self._read += batch.num_rows
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])
        if not self._read:
            yield schema.empty_table()

    def done(self) -> float | None:
        """Return the share that has been read, where that is known."""
        return self._read / self.n_rows if self.n_rows else None


def plan(table: str, part_rows: int | None = None) -> Plan:
    """Look at the footers of a file, of a folder's files or of those that a pattern names.

    Files come in the natural order of their names (part.2 before part.10). A file of more than
    ``part_rows`` rows is divided where its row groups permit; None: no file is.
    """
    import pyarrow.parquet as pq

    files, root = find_files(table)
    pieces: list[Piece] = []
    schemas: list[tuple[str, Any]] = []
    told = [_folder_values(path, root) for path in files]
    for path, values in zip(files, told, strict=True):
        with _readable(path), pq.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
        _check_names(schema.names, path)
        schemas.append((str(path), schema.remove_metadata()))
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        own = {name: value for name, value in values.items() if name not in schema.names}
        most = sum(sizes) if part_rows is None else part_rows
        pieces += _divided(str(path), sizes, most, own, len(pieces))
    return Plan(pieces, _with_folders(_one_schema(schemas), told, files))


@contextlib.contextmanager
def _readable(path: object) -> Iterator[None]:
    """Turn what Arrow says about a broken file into one sentence; its checksums give OSError."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}. Write it again.") from error


def find_files(table: str) -> tuple[list[Path], Path]:
    """Return the Parquet files in order, and the folder that they lie in."""
    path = Path(table)
    if path.is_dir():
        files = [file for file in path.rglob("*") if _is_part(file, path)]
        _refuse_links(path)
        nothing = f"The folder {table} holds no Parquet file. Pass a file, or a folder of them."
        root = path
    elif path.exists():
        files, root, nothing = [path], path.parent, ""
    else:
        found = glob.glob(table, recursive=True)  # noqa: PTH207 - Path.glob takes no absolute one
        files = [Path(name) for name in found if Path(name).is_file()]
        root = _before_pattern(table)
        nothing = (
            f"There is no file or folder {table}. Pass a Parquet file, a folder of them, or a "
            "pattern."
        )
    if not files:
        raise InputError(nothing)
    others = [file.name for file in files if file.suffix.lower() not in _ENDINGS]
    if others and path.is_dir():
        raise InputError(
            f"{listed(others, 3)}: a folder is read as Parquet only (.parquet, .pq). Move other "
            "files elsewhere, or pass one file."
        )
    if others:
        raise InputError(
            f"{listed(others, 3)}: a pattern or the dask engine reads Parquet only "
            "(.parquet, .pq). Write the table as Parquet, or pass one file without --engine dask."
        )
    # Absolute, since workers are elsewhere, but not resolved: a linked file is a part of the folder
    # that the link lies in.
    return sorted((file.absolute() for file in files), key=_natural), root.absolute()


def _is_part(file: Path, root: Path) -> bool:
    """Tell parts from what writers leave beside them (_SUCCESS, _metadata, .crc, unfinished)."""
    hidden = any(name.startswith((".", "_")) for name in file.relative_to(root).parts)
    return not hidden and file.is_file()


def _refuse_links(root: Path) -> None:
    """Raise for a link whose rows would be missing: to nothing, or to a folder."""
    for path in root.rglob("*"):
        if path.is_symlink() and not path.is_file() and not path.name.startswith((".", "_")):
            leads = "a folder, which is not looked into" if path.is_dir() else "nothing"
            raise InputError(
                f"{path} is a link to {leads}. Remove it, or put the Parquet files themselves (or "
                "links to them) in its place."
            )


def _before_pattern(pattern: str) -> Path:
    fixed = Path(pattern).parts
    for place, part in enumerate(fixed):
        if glob.has_magic(part):
            return Path(*fixed[:place])
    return Path(pattern).parent


def _natural(path: Path) -> list[tuple[int, int, str]]:
    pieces = re.split(r"(\d+)", str(path))
    return [(1, int(text), "") if text.isdigit() else (0, 0, text) for text in pieces]


def _folder_values(path: Path, root: Path) -> dict[str, str | None]:
    """Return what folders such as ``year=2024`` say of the rows below them."""
    found = {}
    for folder in path.relative_to(root).parts[:-1]:
        name, sign, value = folder.partition("=")
        if sign and name:
            found[unquote(name)] = None if value == _NO_VALUE else unquote(value)
    return found


def _with_folders(schema: Any, told: Sequence[dict[str, str | None]], files: Sequence[Path]) -> Any:
    import pyarrow as pa

    for place, values in enumerate(told):
        if set(values) != set(told[0]):
            raise InputError(
                f"{files[place]} lies in folders that name {listed(list(values)) or 'no column'}; "
                f"{files[0]} in folders that name {listed(list(told[0])) or 'none'}."
            )
    for name in told[0]:
        if name not in schema.names:
            texts = {values[name] for values in told} - {None}
            whole = all(re.fullmatch(r"-?\d{1,18}", str(text)) for text in texts)
            schema = schema.append(pa.field(name, pa.int64() if whole else pa.string()))
    return schema


def _one_schema(schemas: list[tuple[str, Any]]) -> Any:
    """Return the schema of all files; a column without any value takes the type of the others."""
    import pyarrow as pa

    path, joined = schemas[0]
    for other, schema in schemas[1:]:
        more, less = set(schema.names) - set(joined.names), set(joined.names) - set(schema.names)
        if more or less:
            raise InputError(
                f"{other} has other columns than {path}: "
                f"{listed(sorted(more or less), 3)} {'more' if more else 'is missing'}. Parts of "
                "one table must have the same columns."
            )
        try:
            joined = pa.unify_schemas([joined, schema])
        except pa.ArrowException as error:
            raise InputError(
                f"{other} has other types than {path}: {error}. Write all parts with the same ones."
            ) from error
    return pa.schema([(field.name, field.type) for field in joined])


def _check_names(names: list[str], path: Path) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{path} has two columns named {twice[0]!r}. Rename one of them.")


def _divided(
    path: str, sizes: list[int], part_rows: int, values: dict[str, str | None], before: int
) -> list[Piece]:
    """Return a file as pieces of whole row groups, each of about so many rows at most."""
    groups: list[list[int]] = [[]]
    rows = [0]
    for group, size in enumerate(sizes):
        if groups[-1] and rows[-1] + size > part_rows:
            groups.append([])
            rows.append(0)
        groups[-1].append(group)
        rows[-1] += size
    starts = [1 + sum(rows[:place]) for place in range(len(rows))]
    return [
        Piece(before + place, path, tuple(own), starts[place], rows[place], values)
        for place, own in enumerate(groups)
    ]
