"""A batch of new items: checked once, by whoever a user calls, then handed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hetcal._typing import Rows
from hetcal._validation.containers import number_of_rows, take_rows
from hetcal.data import NewItems
from hetcal.monitor.checks import names_of


@dataclass(frozen=True, eq=False)
class Batch:
    """New items in their order.

    Attributes
    ----------
    X : table or array with m rows
        Features as given; the distance score has an encoder of its own.
    items : NewItems
        Checked and encoded by the calibrator that is watched.
    names : ndarray of shape (m,) or None
        The sub-population of each item.
    """

    X: Any
    items: NewItems
    names: NDArray | None = None

    @classmethod
    def check(cls, calibrator: Any, X: Any, output: dict[str, Any], by: Any = None) -> Batch:
        """Return a checked batch, or say what is wrong with it."""
        names = None if by is None else names_of(by, number_of_rows(X, "X"))
        return cls(X, calibrator.new_items(X, **output), names)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.items.n_items

    @property
    def top(self) -> Rows:
        """The most probable class of each item by the classifier's output."""
        return self.items.top

    def take(self, rows: Rows) -> Batch:
        """Return some of the items."""
        names = None if self.names is None else self.names[rows]
        return Batch(take_rows(self.X, rows), self.items.take(rows), names)
