"""New items: checked and encoded once, then handed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hetcal._typing import Rows
from hetcal.data.scores import Scores


@dataclass(frozen=True, eq=False)
class NewItems:
    """Items to predict, as the calibrator that checked them reads them.

    Attributes
    ----------
    features : ndarray or sparse matrix of shape (m, d)
        Encoded as that calibrator needs them.
    scores : Scores
        The classifier's output.
    """

    features: Any
    scores: Scores

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.scores.proba.shape[0]

    @property
    def top(self) -> Rows:
        """The most probable class of each item by the classifier's output."""
        return self.scores.proba.argmax(axis=1)

    def take(self, rows: Any) -> NewItems:
        """Return some of the items."""
        return NewItems(self.features[rows], self.scores.take(rows))
