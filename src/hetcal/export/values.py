"""What a map is written in: columns of numbers that an ONNX graph or an expression computes.

:mod:`hetcal.export.formulas` states every map once, in these operations. A value has K columns, or
a single one that counts for all K where the two meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from hetcal._typing import Matrix, Vector

# Logarithms of other libraries differ in the last digit: scores this close to a step are on it.
_TIE = 1e-10


class Value(Protocol):
    """One number or K numbers per item."""

    def __add__(self, other: Any) -> Self: ...
    def __sub__(self, other: Any) -> Self: ...
    def __mul__(self, other: Any) -> Self: ...
    def __truediv__(self, other: Any) -> Self: ...
    def __neg__(self) -> Self: ...

    def log(self) -> Self:
        """Return natural logarithms."""

    def sigmoid(self) -> Self:
        """Return ``1 / (1 + exp(-z))``, safe for large ``z``."""

    def log_sigmoid(self) -> Self:
        """Return the logarithm of :meth:`sigmoid`."""

    def softmax(self) -> Self:
        """Return probabilities that sum to one over the columns."""

    def log_softmax(self) -> Self:
        """Return the logarithm of :meth:`softmax`."""

    def log_rest(self) -> Self:
        """Return, of log-probabilities, the logarithm of what the other columns hold together."""

    def sum(self) -> Self:
        """Return the sum over the columns, a single column."""

    def columns(self) -> list[Self]:
        """Return the columns one by one."""

    def join(self, columns: Sequence[Self]) -> Self:
        """Return single columns side by side."""

    def matmul(self, matrix: Matrix) -> Self:
        """Return the product of every row with a constant matrix."""

    def clip(self, low: float | None, high: float | None) -> Self:
        """Return values cut at two ends."""

    def if_at_most(self, limit: float, then: Self, otherwise: Self) -> Self:
        """Return ``then`` where the value is at most ``limit``, else ``otherwise``."""

    def steps(self, edges: Vector, levels: Matrix) -> Self:
        """Return the level of the interval that a single column lies in, ends to the left.

        ``levels`` has one row per interval and a column per column of the result.
        """

    def interpolate(self, places: Vector, levels: Vector) -> Self:
        """Return a broken line of a single column, constant outside."""


@dataclass(frozen=True)
class Output:
    """A classifier's output as maps read it: as in ``hetcal.data.Scores``, and log-odds."""

    proba: Any
    log_proba: Any
    log_odds: Any
    n_classes: int


def tolerant_edges(edges: Vector, *, upwards: bool, least: float) -> Vector:
    """Return edges moved by less than the digits of a logarithm, so that ties stay ties.

    Parameters
    ----------
    edges : ndarray of shape (M,)
        Increasing.
    upwards : bool
        True where a score on the edge belongs to the left of it.
    least : float
        Distances count relative to the edge, or to ``least`` where that is more.
    """
    room = np.full(edges.shape, np.inf)
    gaps = np.diff(edges) / 4
    room[:-1] = np.minimum(room[:-1], gaps)
    room[1:] = np.minimum(room[1:], gaps)
    move = np.minimum(_TIE * np.maximum(np.abs(edges), least), room)
    if upwards:
        return edges + move
    return np.minimum(edges - move, np.nextafter(edges, -np.inf))


def merged_steps(edges: Vector, levels: Matrix) -> tuple[Vector, Matrix]:
    """Return the same step function without steps between equal levels."""
    changes = (levels[1:] != levels[:-1]).any(axis=tuple(range(1, levels.ndim)))
    return edges[changes], levels[np.append(True, changes)]
