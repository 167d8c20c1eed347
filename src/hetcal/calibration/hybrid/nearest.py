"""Experts that ask the nearest calibration items."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import expect, stored
from hetcal._stored.fields import flag, instance, instance_of, is_number, is_whole, numbers
from hetcal._typing import Matrix
from hetcal.calibration.hybrid.families import Family, shares
from hetcal.calibration.hybrid.space import LogSpace
from hetcal.data import CalibrationSet, Folds, Scores
from hetcal.kernels.nearest import nearest_items


def _is_votes(value: Any) -> bool:
    good = isinstance(value, tuple | list) and 0 < len(value) <= 64
    return good and all(
        isinstance(vote, tuple | list)
        and len(vote) == 2
        and is_whole(vote[0], 1)
        and is_number(vote[1], 0, 1000)
        for vote in value
    )


@stored(
    {
        "votes": _is_votes,
        "logs": flag,
        "space_": instance(LogSpace, "center_"),
        "items_": numbers(None, None),
        "onehot_": numbers(None, None, low=0.0),
    }
)
class NeighbourFamily(Family):
    """The nearest items in standardised [X, p] or [X, log p], weighted by distance.

    ``votes`` holds a number of neighbours and a power of the inverse distance per expert; all of
    them share one search.
    """

    def __init__(self, votes: tuple[tuple[int, float], ...] = ((5, 3.0),), *, logs: bool = True):
        self.votes = votes
        self.logs = logs

    @property
    def names(self) -> tuple[str, ...]:
        """How many neighbours, and in which space."""
        return tuple(f"{k}-nearest-{'log' if self.logs else 'p'}" for k, _ in self.votes)

    def fit(self, items: CalibrationSet) -> Self:
        """Keep the items."""
        self.space_ = LogSpace(logs=self.logs, metric=True).fit(items)
        Z = self.space_.transform(items.features(), items.scores)
        self.items_ = Z
        self.onehot_ = items.onehot * items.counts[:, None]
        return self

    def predict(self, features: Matrix, scores: Scores) -> list[Matrix]:
        """Vote among the nearest items of each new item."""
        Z = self.space_.transform(features, scores)
        return self._votes(*nearest_items(self.items_, Z, self._most(0)))

    def out_of_sample(self, items: CalibrationSet, folds: Folds) -> list[Matrix]:
        """Vote among the nearest other items."""
        if items.groups is not None:
            return self.cross_fitted(items, folds)
        return self._votes(*nearest_items(self.items_, None, self._most(1)))

    @property
    def classes_known(self) -> int:
        """Number of classes."""
        return self.onehot_.shape[1]

    @classmethod
    def _from_stored(cls, state: dict[str, Any]) -> dict[str, Any]:
        if "index_" not in state:
            return state
        # Files before this version hold scikit-learn's search, which holds the items.
        search = state["index_"]
        good = instance_of("sklearn.neighbors", "NearestNeighbors")(search)
        expect(good, cls, "has a wrong index_")
        kept = {name: part for name, part in state.items() if name != "index_"}
        return kept | {"items_": np.asarray(search._fit_X)}

    def _check_restored(self) -> None:
        n, width = self.items_.shape
        expect(len(self.onehot_) == n, self, "does not have one label per item")
        expect(width == len(self.space_.center_), self, "has items of other columns")

    def _most(self, left_out: int) -> int:
        return min(max(k for k, _ in self.votes), self.onehot_.shape[0] - left_out)

    def _votes(self, distance: Matrix, index: NDArray[np.int64]) -> list[Matrix]:
        closeness = np.maximum(distance[:, :1], 1e-9) / np.maximum(distance, 1e-9)
        said = self.onehot_[index]
        return [
            shares(np.einsum("mk,mkc->mc", closeness[:, :k] ** power, said[:, :k]))
            for k, power in self.votes
        ]
