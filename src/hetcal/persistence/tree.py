"""Values as a tree of JSON: scalars and lists as they are, everything else with a tag.

A JSON object always has the key ``"$"``, which says what it stands for:

=============  ====================================================================================
``float``      ``nan``, ``inf`` or ``-inf``, which JSON lacks
``scalar``     a NumPy number: ``dtype`` and ``value``
``tuple``      ``items``
``dict``       ``items``: pairs of key and value
``array``      ``index`` into the file's arrays
``strings``    an array of text: ``width`` (characters), ``values``
``objects``    an array of scalars of mixed types: ``values``
``sparse``     a matrix by rows: ``shape``, ``data``, ``indices``, ``indptr``
``table``      a pandas table: ``columns`` (pairs of name and values), ``index``, ``index_name``
``object``     ``class``, a name in :mod:`hetcal.persistence.registry`, and ``state``
=============  ====================================================================================
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from hetcal._exceptions import FileFormatError
from hetcal._stored.fields import in_range, is_array, is_whole, rising
from hetcal._validation.frames import columns_of, from_columns
from hetcal.persistence.budget import Budget
from hetcal.persistence.container import DTYPES
from hetcal.persistence.registry import part_named, spec_named, spec_of

_DEEPEST = 24
_MOST_CHARACTERS = 1 << 24
_MOST_OBJECTS = 20_000
#: An empty table of pandas takes about as much.
_BYTES_PER_OBJECT = 4096
_LARGEST_INTEGER = 1 << 64
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_SCALARS = (bool, int, float, str, type(None))


class Encoder:
    """Turns values into a tree; the arrays are collected aside in :attr:`arrays`."""

    def __init__(self) -> None:
        self.arrays: list[NDArray] = []
        self._places: dict[int, int] = {}
        self._originals: list[NDArray] = []  # kept alive, so that no other takes their id

    def encode(self, value: Any, where: str) -> Any:
        """Return the tree of a value; ``where`` names it in error messages."""
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if isinstance(value, int):
            if abs(value) >= _LARGEST_INTEGER:
                raise TypeError(f"{where} is an integer of more than 64 bits.")
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
        if isinstance(value, list):
            return [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]
        if type(value) is tuple:
            return {"$": "tuple", "items": self.encode(list(value), where)}
        if isinstance(value, dict):
            return {"$": "dict", "items": self._pairs(value, where)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if sparse.issparse(value):
            return self._sparse(value, where)
        if isinstance(value, pd.DataFrame):
            return self._table(value, where)
        return self._object(value, where)

    def _scalar(self, value: np.generic, where: str) -> Any:
        if isinstance(value, np.str_):
            return str(value)
        dtype = value.dtype.newbyteorder("<").str
        if dtype not in DTYPES:
            raise TypeError(f"{where} is a {type(value).__name__}, which has no place in a file.")
        return {"$": "scalar", "dtype": dtype, "value": self.encode(value.item(), where)}

    def _pairs(self, value: dict, where: str) -> list:
        return [
            [self.encode(key, f"a key of {where}"), self.encode(item, f"{where}[{key!r}]")]
            for key, item in value.items()
        ]

    def _array(self, value: NDArray, where: str) -> dict[str, Any]:
        if value.dtype.kind in "UO" and value.ndim == 1:
            values = self.encode(value.tolist(), where)
            if value.dtype.kind == "O":
                return {"$": "objects", "values": values}
            return {"$": "strings", "width": value.dtype.itemsize // 4, "values": values}
        if value.dtype.newbyteorder("<").str not in DTYPES or value.ndim == 0:
            raise TypeError(
                f"{where} is an array of {value.dtype} with {value.ndim} dimensions, which has no "
                "place in a file."
            )
        if id(value) not in self._places:
            self._places[id(value)] = len(self.arrays)
            self.arrays.append(np.asarray(value))
            self._originals.append(value)
        return {"$": "array", "index": self._places[id(value)]}

    def _sparse(self, value: Any, where: str) -> dict[str, Any]:
        matrix = sparse.csr_array(value)
        return {
            "$": "sparse",
            "shape": [int(n) for n in matrix.shape],
            "data": self.encode(matrix.data, where),
            "indices": self.encode(matrix.indices, where),
            "indptr": self.encode(matrix.indptr, where),
        }

    def _table(self, value: pd.DataFrame, where: str) -> dict[str, Any]:
        parts = columns_of(value)
        return {
            "$": "table",
            "columns": [
                [name, self.encode(column, f"{where}.{name}")]
                for name, column in parts["columns"].items()
            ],
            "index": self.encode(parts["index"], f"the index of {where}"),
            "index_name": parts["index_name"],
        }

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        spec = spec_of(value, where)
        state = spec.pack(value)
        return {
            "$": "object",
            "class": spec.name,
            "state": {name: self.encode(part, f"{where}.{name}") for name, part in state.items()},
        }


class Decoder:
    """Turns a tree back into values; anything that does not fit is a :class:`FileFormatError`.

    Parameters
    ----------
    arrays : list of ndarray
        The arrays of the file.
    budget : Budget
        Pays for what is made beyond the tree and the arrays, before it is made.
    """

    def __init__(self, arrays: list[NDArray], budget: Budget) -> None:
        self._arrays = arrays
        self._budget = budget
        self._used: set[int] = set()
        self._n_objects = 0

    def decode(self, node: Any, depth: int = 0) -> Any:
        """Return the value that a tree stands for."""
        if depth > _DEEPEST:
            raise FileFormatError(f"The file is nested more than {_DEEPEST} levels deep.")
        if isinstance(node, list):
            return [self.decode(item, depth + 1) for item in node]
        if not isinstance(node, dict):
            if isinstance(node, int) and abs(node) >= _LARGEST_INTEGER:
                raise FileFormatError("The file holds an integer of more than 64 bits.")
            return node
        tag = node.get("$")
        read = _READERS.get(tag) if isinstance(tag, str) else None
        if read is None:
            raise FileFormatError(f"The file holds a value of unknown kind {str(tag)[:40]!r}.")
        return read(self, node, depth + 1)

    def _float(self, node: dict, depth: int) -> float:
        return _SPECIAL[node["value"]]

    def _scalar(self, node: dict, depth: int) -> Any:
        value = self.decode(node["value"], depth)
        if node["dtype"] not in DTYPES or not isinstance(value, bool | int | float):
            raise FileFormatError("The file holds a number of unknown type.")
        return np.array([value], dtype=node["dtype"])[0]

    def _tuple(self, node: dict, depth: int) -> tuple:
        return tuple(self.decode(_listed(node["items"]), depth))

    def _dict(self, node: dict, depth: int) -> dict:
        found = {}
        for pair in _listed(node["items"]):
            key, value = _listed(pair)
            (name,) = self._scalars([key], depth)
            found[name] = self.decode(value, depth)
        if len(found) < len(node["items"]):
            raise FileFormatError("The file names something twice.")
        return found

    def _array(self, node: dict, depth: int) -> NDArray:
        index = node["index"]
        if type(index) is not int or not 0 <= index < len(self._arrays):
            raise FileFormatError(
                f"The file refers to array {str(index)[:20]}, which is not there."
            )
        if index in self._used:  # paid for once; what is made from it may be made again
            self._budget.take(self._arrays[index].nbytes)
        self._used.add(index)
        return self._arrays[index]

    def _strings(self, node: dict, depth: int) -> NDArray:
        values, width = _listed(node["values"]), node["width"]
        if not all(isinstance(value, str) for value in values) or type(width) is not int:
            raise FileFormatError("The file holds an array of text with something else in it.")
        longest = max((len(value) for value in values), default=0)
        if not longest <= width <= _MOST_CHARACTERS:
            raise FileFormatError("The file holds an array of text of impossible width.")
        self._budget.take(4 * width * max(len(values), 1))
        return np.array(values, dtype=f"<U{width}")

    def _objects(self, node: dict, depth: int) -> NDArray:
        values = self._scalars(node["values"], depth)
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array

    def _sparse(self, node: dict, depth: int) -> sparse.csr_array:
        rows, columns = node["shape"]
        data, indices, indptr = (
            self.decode(node[name], depth) for name in ("data", "indices", "indptr")
        )
        # All of it before SciPy sees anything: its own checks take differences, which wrap around.
        good = (
            is_whole(rows, 0)
            and is_whole(columns, 0, (1 << 31) - 1)
            and is_array(data, "f", (None,))
            and is_array(indices, "i", data.shape)
            and is_array(indptr, "i", (rows + 1,))
            and indptr[0] == 0
            and indptr[-1] == len(data)
            and rising(indptr, strictly=False)
            and in_range(indices, 0, columns)
        )
        if not good:
            raise FileFormatError("The file holds a sparse matrix whose parts do not fit together.")
        self._count_object()
        self._budget.take(indices.nbytes + indptr.nbytes)  # SciPy may want another type
        return sparse.csr_array((data, indices, indptr), shape=(rows, columns))

    def _table(self, node: dict, depth: int) -> pd.DataFrame:
        self._count_object()
        columns = {}
        for name, values in _listed(node["columns"]):
            if not isinstance(name, str):
                raise FileFormatError("The file holds a table with a column without a name.")
            columns[name] = self._column(values, depth)
        index = None if node["index"] is None else self._scalars(node["index"], depth)
        lengths = {len(values) for values in columns.values()}
        if len(lengths | ({len(index)} if index is not None else set())) > 1:
            raise FileFormatError("The file holds a table with columns of different lengths.")
        name = node["index_name"]
        if name is not None and not isinstance(name, str):
            raise FileFormatError("The file holds a table whose index has no proper name.")
        return from_columns({"columns": columns, "index": index, "index_name": name})

    def _column(self, values: Any, depth: int) -> Any:
        if isinstance(values, list):
            return self._scalars(values, depth)
        column = self.decode(values, depth)
        if not is_array(column, "biuf", (None,)):
            raise FileFormatError("The file holds a table with a column that is none.")
        self._budget.take(column.nbytes)
        return column

    def _object(self, node: dict, depth: int) -> Any:
        self._count_object()
        state = node["state"]
        spec = spec_named(node["class"])
        if not isinstance(state, dict):
            raise FileFormatError(f"The file holds a {spec.name} without its parts.")
        parts = {part_named(name): self.decode(part, depth) for name, part in state.items()}
        if len(parts) < len(state):
            raise FileFormatError(f"The file holds a {spec.name} with a part under two names.")
        self._budget.take(spec.needs(parts))
        return spec.unpack(parts)

    def _scalars(self, values: Any, depth: int) -> list:
        decoded = self.decode(_listed(values), depth)
        if not all(isinstance(value, (*_SCALARS, np.generic)) for value in decoded):
            raise FileFormatError("The file holds a nested value where a single one must be.")
        return decoded

    def _count_object(self) -> None:
        self._n_objects += 1
        if self._n_objects > _MOST_OBJECTS:
            raise FileFormatError(f"The file holds more than {_MOST_OBJECTS} objects.")
        self._budget.take(_BYTES_PER_OBJECT)


_READERS = {
    "float": Decoder._float,
    "scalar": Decoder._scalar,
    "tuple": Decoder._tuple,
    "dict": Decoder._dict,
    "array": Decoder._array,
    "strings": Decoder._strings,
    "objects": Decoder._objects,
    "sparse": Decoder._sparse,
    "table": Decoder._table,
    "object": Decoder._object,
}


def _listed(value: Any) -> list:
    if not isinstance(value, list):
        raise FileFormatError("The file holds something else where a list must be.")
    return value
