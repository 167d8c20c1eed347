"""ONNX nodes behind the operations of :mod:`hetcal.export.values`; all arithmetic in double."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetcal._typing import Matrix, Vector

_COLUMNS = np.array([1], dtype=np.int64)


class Graph:
    """Nodes and constants, in the order in which they were added."""

    def __init__(self) -> None:
        from onnx import helper, numpy_helper

        self._helper, self._numpy_helper = helper, numpy_helper
        self.nodes: list[Any] = []
        self.constants: dict[tuple[Any, ...], Any] = {}

    def add(self, operation: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add a node and return the name of its result."""
        name = name or f"t{len(self.nodes)}"
        # Named: ONNX Runtime 1.18 gives all its replacements of unnamed nodes the same name.
        node = self._helper.make_node(operation, list(inputs), [name], name=name, **attributes)
        self.nodes.append(node)
        return name

    def constant(self, values: Any) -> str:
        """Return the name of a constant, stored once."""
        array = np.array(values, order="C")
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            name = f"c{len(self.constants)}"
            self.constants[key] = self._numpy_helper.from_array(array, name)
        return self.constants[key].name


class Tensor:
    """A value of shape (n, width) in a graph."""

    def __init__(self, graph: Graph, name: str, width: int):
        self.graph, self.name, self.width = graph, name, width

    def _new(
        self, operation: str, *inputs: str, width: int | None = None, **attributes: Any
    ) -> Any:
        name = self.graph.add(operation, *inputs, **attributes)
        return Tensor(self.graph, name, self.width if width is None else width)

    def _double(self, value: Any) -> str:
        return self.graph.constant(np.asarray(value, dtype=np.float64))

    def _with(self, operation: str, other: Any) -> Tensor:
        if isinstance(other, Tensor):
            width = max(self.width, other.width)
            return self._new(operation, self.name, other.name, width=width)
        return self._new(operation, self.name, self._double(other))

    def __add__(self, other: Any) -> Tensor:
        return self._with("Add", other)

    def __sub__(self, other: Any) -> Tensor:
        return self._with("Sub", other)

    def __mul__(self, other: Any) -> Tensor:
        return self._with("Mul", other)

    def __truediv__(self, other: Any) -> Tensor:
        return self._with("Div", other)

    def __neg__(self) -> Tensor:
        return self._new("Neg", self.name)

    def log(self) -> Tensor:
        return self._new("Log", self.name)

    def exp(self) -> Tensor:
        return self._new("Exp", self.name)

    def sigmoid(self) -> Tensor:
        small = (-self.absolute()).exp()
        numerator = self.if_at_most(0.0, small, small * 0.0 + 1.0)
        return numerator / (small + 1.0)

    def log_sigmoid(self) -> Tensor:
        return self.clip(None, 0.0) - ((-self.absolute()).exp() + 1.0).log()

    def softmax(self) -> Tensor:
        return self._new("Softmax", self.name, axis=1)

    def log_softmax(self) -> Tensor:
        return self._new("LogSoftmax", self.name, axis=1)

    def log_rest(self) -> Tensor:
        if self.width == 2:
            first, second = self.columns()
            return self.join([second, first])
        top = self._new("ArgMax", self.name, axis=1, keepdims=1)
        each = self.graph.constant(np.arange(self.width)[None])
        is_top = self._new("Equal", each, top.name).name
        largest = self._reduced("ReduceMax")
        zero, never = self._double(0.0), self._double(-np.inf)
        mass = self._new("Where", is_top, zero, (self - largest).exp().name)
        rest = largest + (mass.sum() - mass + 1.0).log()
        others = self._new("Where", is_top, never, self.name)
        second = others._reduced("ReduceMax")
        rest_of_top = second + (others - second).exp().sum().log()
        return self._new("Where", is_top, rest_of_top.name, rest.name)

    def sum(self) -> Tensor:
        return self._reduced("ReduceSum")

    def columns(self) -> list[Tensor]:
        return [
            self._new("Gather", self.name, self.graph.constant(np.array([k])), axis=1, width=1)
            for k in range(self.width)
        ]

    def join(self, columns: Sequence[Tensor]) -> Tensor:
        names = [column.name for column in columns]
        return self._new("Concat", *names, axis=1, width=len(names))

    def matmul(self, matrix: Matrix) -> Tensor:
        return self._new("MatMul", self.name, self._double(matrix.T), width=matrix.shape[0])

    def clip(self, low: float | None, high: float | None) -> Tensor:
        value = self
        if low is not None:
            value = value._with("Max", low)
        return value if high is None else value._with("Min", high)

    def if_at_most(self, limit: float, then: Tensor, otherwise: Tensor) -> Tensor:
        small = self.graph.add("LessOrEqual", self.name, self._double(limit))
        width = max(self.width, then.width, otherwise.width)
        return self._new("Where", small, then.name, otherwise.name, width=width)

    def steps(self, edges: Vector, levels: Matrix) -> Tensor:
        return self._looked_up(self._place(edges), levels)

    def interpolate(self, places: Vector, levels: Vector) -> Tensor:
        if places.shape[0] == 1:
            return self * 0.0 + float(levels[0])
        interval = self._place(places[1:-1])
        low, width = (self._looked_up(interval, v) for v in (places[:-1], np.diff(places)))
        start, rise = (self._looked_up(interval, v) for v in (levels[:-1], np.diff(levels)))
        return start + ((self - low) / width).clip(0.0, 1.0) * rise

    def all_between(self, low: float, high: float) -> str:
        """Return the name of a truth value per row, false where a column is missing."""
        least = self.graph.add("GreaterOrEqual", self.name, self._double(low))
        most = self.graph.add("LessOrEqual", self.name, self._double(high))
        both = self.graph.add("And", least, most)
        counted = self.graph.add("Cast", both, to=self._int64)
        least_of_row = self.graph.add("ReduceMin", counted, self.graph.constant(_COLUMNS))
        return self.graph.add("Cast", least_of_row, to=self._bool)

    @property
    def _int64(self) -> int:
        from onnx import TensorProto

        return TensorProto.INT64

    @property
    def _bool(self) -> int:
        from onnx import TensorProto

        return TensorProto.BOOL

    def absolute(self) -> Tensor:
        return self._new("Abs", self.name)

    def _reduced(self, operation: str) -> Tensor:
        return self._new(operation, self.name, self.graph.constant(_COLUMNS), keepdims=1, width=1)

    def _place(self, edges: Vector) -> str:
        """Return the name of the number of edges that lie below each item, shape (n,)."""
        if edges.shape[0] == 0:
            zero = self._new("Cast", (self * 0.0).name, to=self._int64)
            return self.graph.add("Squeeze", zero.name, self.graph.constant(_COLUMNS))
        beyond = self.graph.add("Greater", self.name, self._double(edges[None]))
        counted = self.graph.add("Cast", beyond, to=self._int64)
        return self.graph.add("ReduceSum", counted, self.graph.constant(_COLUMNS), keepdims=0)

    def _looked_up(self, place: str, table: Matrix) -> Tensor:
        rows = table.reshape(table.shape[0], -1)
        return self._new("Gather", self._double(rows), place, axis=0, width=rows.shape[1])
