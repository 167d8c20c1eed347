"""The reference items of a monitor: their scores, among which new items are ranked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import expect, stored
from hetcal._stored.fields import (
    MOST_CLASSES,
    column_names,
    integers,
    list_of,
    numbers,
    optional,
)
from hetcal._typing import Matrix, Rows, Vector
from hetcal.monitor import conformal

LEAST_ITEMS = 20


@stored(
    {
        "scores": numbers(None, None),
        "n_trees": list_of(optional(integers(None, low=1, high=1 << 31))),
        "top": optional(integers(None, low=0, high=MOST_CLASSES)),
        "by": optional(column_names),
        "rows": optional(integers(None, low=0, high=1 << 48)),
    }
)
@dataclass(frozen=True, eq=False)
class Reference:
    """Reference items.

    Attributes
    ----------
    scores : ndarray of shape (n_scores, n)
        Support first, then the distance score where there is one; low is atypical.
    n_trees : list of (ndarray of shape (n,) or None)
        By how many trees each score was counted; None: not by trees, or by all.
    top : ndarray of int of shape (n,) or None
        The class that the classifier thinks most probable.
    by : ndarray of str of shape (n,) or None
        Names of sub-populations.
    rows : ndarray of int of shape (n,) or None
        Which of the calibration items these are; None: all.
    """

    scores: Matrix
    n_trees: list[Any]
    top: Rows | None = None
    by: NDArray | None = None
    rows: Rows | None = None

    @cached_property
    def ordered(self) -> list[Vector]:
        """Each score, sorted."""
        return [np.sort(row) for row in self.scores]

    @cached_property
    def ordered_pairs(self) -> Vector:
        """The smallest rank of each item, sorted."""
        return np.sort(conformal.pair_scores(self.ordered, list(self.scores), inside=True))

    def p_values(self, scores: Matrix, rng: np.random.Generator) -> tuple[Matrix, Vector]:
        """Return one p-value per score, shape (n_scores, m), and one for all scores together.

        The latter ranks each item by the smaller of its ranks, among the smaller ranks of the
        reference: the level is split between the scores, and uniform all the same.
        """
        uniform = rng.random((len(scores) + 1, scores.shape[1]))
        triples = zip(self.ordered, scores, uniform[:-1], strict=True)
        each = np.stack([conformal.p_values(*triple) for triple in triples])
        if len(each) == 1:
            return each, each[0]
        together = conformal.pair_scores(self.ordered, list(scores), inside=False)
        return each, conformal.p_values(self.ordered_pairs, together, uniform[-1])

    def calibration_rows(self) -> Rows:
        """Return which of the calibration items these are."""
        return np.arange(self.scores.shape[1]) if self.rows is None else self.rows

    def _check_restored(self) -> None:
        n_scores, n = self.scores.shape
        expect(n_scores in (1, 2) and n >= LEAST_ITEMS, self, "has no scores")
        expect((self.scores[0] >= 0).all(), self, "has negative support")
        expect(len(self.n_trees) == n_scores, self, "counts other trees")
        per_item = [*self.n_trees, self.top, self.by, self.rows]
        same = all(values is None or len(values) == n for values in per_item)
        expect(same, self, "knows other items")

    def usable(self) -> Reference:
        """Leave out items in whose score no tree could take part, or that have no score."""
        usable: NDArray[np.bool_] = np.asarray(np.isfinite(self.scores).all(axis=0))
        for counted in self.n_trees:
            if counted is not None:
                usable &= counted > 0
        if usable.sum() < LEAST_ITEMS:
            raise ValueError(
                f"SupportMonitor has {int(usable.sum())} reference items; it needs at least "
                f"{LEAST_ITEMS}. Calibrate with more items, or with more trees."
            )
        if usable.all():
            return self
        return Reference(
            self.scores[:, usable],
            [_some(counted, usable) for counted in self.n_trees],
            _some(self.top, usable),
            _some(self.by, usable),
            self.calibration_rows()[usable],
        )


def _some(values: Any, chosen: NDArray[np.bool_]) -> Any:
    return None if values is None else values[chosen]
