"""What was read from a table with labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal.tables.roles import TableRoles

if TYPE_CHECKING:
    from hetcal.data import CalibrationSet


@dataclass
class LabelledTable:
    """Calibration items from a table: as they stand in it, and checked (``items``).

    Attributes
    ----------
    X : pandas.DataFrame or None
        The features; None where no column is left for them.
    y : ndarray of shape (n,)
        The labels: whole numbers, truth values or text.
    output : ndarray of shape (n, K)
        The classifier's probabilities or logits, one column per class.
    classes : ndarray of shape (K,)
        The classes in this order.
    roles : TableRoles
        What each column is for; reads later tables in the same way.
    groups : ndarray of shape (n,) or None
        The group of each item.
    weight : ndarray of shape (n,) or None
        The weight of each item.
    by : dict
        Columns to report by, from their name to their values as text.
    time : ndarray of shape (n,) or None
        Values of the column of time, as they stand.
    rows : ndarray of shape (n,)
        The place of each item in the table, counted from 0.
    n_read : int
        Rows of the table.
    left_out : dict
        Columns that are no features, with the reason.
    other_columns : dict
        Values of the columns without a role, as text.
    notes : list of str
        What was assumed, dropped or left out, in words.
    drawn : dict or None
        Where the items are a sample of a larger table: ``from_rows``, ``usable_rows``, ``items``,
        ``max_rows``, ``seed``, and ``overall``, the model's scores over all usable rows.
    """

    X: pd.DataFrame | None
    y: NDArray
    output: NDArray[np.float64]
    classes: NDArray
    roles: TableRoles
    groups: NDArray | None = None
    weight: NDArray[np.float64] | None = None
    by: dict[str, NDArray] = field(default_factory=dict)
    time: NDArray | None = None
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n_read: int = 0
    left_out: dict[str, str] = field(default_factory=dict)
    other_columns: dict[str, NDArray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    drawn: dict[str, Any] | None = None

    @property
    def n_items(self) -> int:
        """Number of calibration items."""
        return self.y.shape[0]

    @property
    def proba(self) -> NDArray[np.float64]:
        """The classifier's probabilities, also where logits were given."""
        if self.roles.output_kind == "y_proba":
            return self.output
        from scipy.special import softmax

        return softmax(self.output, axis=1)

    @cached_property
    def items(self) -> CalibrationSet:
        """The items as a checked calibration set."""
        # Late: a mistyped column is told without waiting for scikit-learn.
        from hetcal.data import CalibrationSet

        # The order of the columns was looked at when the table was read.
        output: dict[str, Any] = {self.roles.output_kind: self.output}
        return CalibrationSet.check(
            self.X,
            self.y,
            classes=self.classes,
            sample_weight=self.weight,
            groups=self.groups,
            caller="hetcal",
            order_is_known=True,
            **output,
        )
