"""Expressions of one number, for the maps of two classes; Python and SQL are written from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add, mul, sub, truediv
from typing import Any

import numpy as np

from hetcal._typing import Matrix, Vector
from hetcal.calibration.base import GlobalCalibrator
from hetcal.export.formulas import formula
from hetcal.export.values import Output

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
}


@dataclass(frozen=True, eq=False)
class Expression:
    """An operation on other expressions.

    Attributes
    ----------
    operation : str
        ``"number"``, ``"input"``, one of ``+ - * /``, or the name of a method of
        :class:`hetcal.export.values.Value`.
    arguments : tuple of Expression
    constants : tuple
        Numbers, or tuples of numbers, that belong to the operation.
    """

    operation: str
    arguments: tuple[Expression, ...] = ()
    constants: tuple[Any, ...] = ()


def second_class(map_: GlobalCalibrator) -> Expression:
    """Return the calibrated probability of the second of two classes.

    Of the input: the classifier's probability of that class, or its log-odds.
    """
    given = Columns([Expression("input")])
    if map_.input_kind_ == "logits":
        odds = given.join([-given, given])
        output = Output(odds.sigmoid(), odds.log_sigmoid(), odds, 2)
    else:
        P = given.join([-given + 1.0, given])
        L = P.clip(map_.zero_floor_, None).log()
        output = Output(P, L, L - L.log_rest(), 2)
    return formula(map_, output).parts[1]


class Columns:
    """One or two expressions side by side: :class:`hetcal.export.values.Value` for two classes."""

    def __init__(self, parts: Sequence[Expression]):
        self.parts = list(parts)

    def _with(self, operation: str, other: Any) -> Columns:
        others = other.parts if isinstance(other, Columns) else _numbers(other)
        return Columns([_joined(operation, a, b) for a, b in _paired(self.parts, others)])

    def _each(self, operation: str, *constants: Any) -> Columns:
        return Columns([Expression(operation, (part,), constants) for part in self.parts])

    def __add__(self, other: Any) -> Columns:
        return self._with("+", other)

    def __sub__(self, other: Any) -> Columns:
        return self._with("-", other)

    def __mul__(self, other: Any) -> Columns:
        return self._with("*", other)

    def __truediv__(self, other: Any) -> Columns:
        return self._with("/", other)

    def __neg__(self) -> Columns:
        return Columns([_joined("-", _number(0.0), part) for part in self.parts])

    def log(self) -> Columns:
        return self._each("log")

    def sigmoid(self) -> Columns:
        return self._each("sigmoid")

    def log_sigmoid(self) -> Columns:
        return self._each("log_sigmoid")

    def softmax(self) -> Columns:
        return self._against_other().sigmoid()

    def log_softmax(self) -> Columns:
        return self._against_other().log_sigmoid()

    def log_rest(self) -> Columns:
        return Columns(self.parts[::-1])

    def sum(self) -> Columns:
        first, second = self.parts
        return Columns([_joined("+", first, second)])

    def columns(self) -> list[Columns]:
        return [Columns([part]) for part in self.parts]

    def join(self, columns: Sequence[Columns]) -> Columns:
        return Columns([column.parts[0] for column in columns])

    def matmul(self, matrix: Matrix) -> Columns:
        return Columns([(self * row).sum().parts[0] for row in matrix])

    def clip(self, low: float | None, high: float | None) -> Columns:
        return self._each("clip", low, high)

    def if_at_most(self, limit: float, then: Columns, otherwise: Columns) -> Columns:
        pairs = _paired(then.parts, otherwise.parts)
        tested = self.parts if len(self.parts) == len(pairs) else self.parts * len(pairs)
        rows = zip(tested, pairs, strict=True)
        return Columns([Expression("if_at_most", (x, *pair), (limit,)) for x, pair in rows])

    def steps(self, edges: Vector, levels: Matrix) -> Columns:
        (x,) = self.parts
        if edges.shape[0] == 0:
            return Columns([_number(level) for level in levels[0]])
        places = tuple(edges.tolist())
        tables = (tuple(column.tolist()) for column in levels.T)
        return Columns([Expression("steps", (x,), (places, table)) for table in tables])

    def interpolate(self, places: Vector, levels: Vector) -> Columns:
        if places.shape[0] == 1:
            return Columns([_number(levels[0])])
        return self._each("interpolate", tuple(places.tolist()), tuple(levels.tolist()))

    def _against_other(self) -> Columns:
        first, second = self.parts
        return Columns([_joined("-", first, second), _joined("-", second, first)])


def _number(value: float) -> Expression:
    return Expression("number", (), (float(value),))


def _numbers(value: Any) -> list[Expression]:
    return [_number(each) for each in np.atleast_1d(value)]


def _paired(a: list[Expression], b: list[Expression]) -> list[tuple[Expression, Expression]]:
    if len(a) < len(b):
        a = a * len(b)
    return list(zip(a, b * len(a) if len(b) < len(a) else b, strict=True))


def _joined(operation: str, a: Expression, b: Expression) -> Expression:
    """Return the operation, without what adds zero or multiplies by one."""
    left, right = (e.constants[0] if e.operation == "number" else None for e in (a, b))
    if left is not None and right is not None:
        return _number(_ARITHMETIC[operation](left, right))
    if operation == "*" and 0.0 in (left, right):
        return _number(0.0)
    if right == {"+": 0.0, "-": 0.0, "*": 1.0, "/": 1.0}[operation]:
        return a
    if left == {"+": 0.0, "*": 1.0}.get(operation, np.nan):
        return b
    return Expression(operation, (a, b))
