"""How a measurement of heterogeneity is stored in a file, and proven when it is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._stored import expect
from hetcal._typing import Matrix, Vector
from hetcal._validation import FeatureEncoder
from hetcal.heterogeneity.cells import Balls
from hetcal.heterogeneity.inputs import check_parameters
from hetcal.heterogeneity.neighborhood_means import MeasuredItems

OF_REGION = ["hh_local_low", "p_value", "q_value"]
_LARGEST = 1e30
_MOST_GROWN = 100_000_000  # trees times items of one local forest: some seconds
_BYTES_PER_MEMBER = 48  # lists of items, their concatenation and its sorting
_CELLS_AT_ONCE = 64


class StoredMeasurement:
    """What a file keeps of :class:`hetcal.heterogeneity.HiddenHeterogeneity`."""

    estimate: str
    neighborhoods: str | None
    radius_: float
    classes_: NDArray
    regions_: pd.DataFrame | None
    encoder_: FeatureEncoder
    _n_trees: int
    _table: Any
    _X: Any
    _items: MeasuredItems
    _balls: Balls | None
    _centres: Matrix | None
    _edges: Vector | None

    def _to_stored(self, state: dict[str, Any]) -> dict[str, Any]:
        """Leave the features out where no later prediction looks at them."""
        if self.estimate != "paper":
            return state | {"_table": None}
        if not isinstance(self._table, np.ndarray):
            raise TypeError(
                "hetcal.save stores HiddenHeterogeneity as a part of SimilarityCalibrator only."
            )
        return state

    @staticmethod
    def _bytes_needed(state: dict[str, Any]) -> int:
        """Return what the features in another type take, and the list of items in each cell."""
        items, centres = state.get("_items"), state.get("_centres")
        given = state.get("_table")
        members = 0
        if isinstance(items, MeasuredItems) and isinstance(centres, np.ndarray):
            members = _n_members(items.P, centres, state["radius_"])
        return 3 * getattr(given, "nbytes", 0) + _BYTES_PER_MEMBER * members

    def _restore(self) -> None:
        check_parameters(self)
        n, K = self._items.P.shape
        centres = self._centres
        if centres is None:
            expect(self.neighborhoods not in ("net", "overlap"), self, "has no cells")
        else:
            expect(centres.shape[1] == K and 0 < len(centres) <= n, self, "has wrong cells")
            expect(len(getattr(self, "cells_", ())) == len(centres), self, "has other cells")
            self._balls = Balls.around(centres, self._items.P, self.radius_)
        if self.estimate == "paper":
            self._restore_features(n)

    def _restore_features(self, n: int) -> None:
        grown = self._n_trees <= 1000 or self._n_trees * n <= _MOST_GROWN
        expect(grown, self, "asks for too many trees")
        width = self.encoder_.n_features_in_
        expect(self._table is not None and self._table.shape == (n, width), self, "has other items")
        self._X = as_forests_see(self.encoder_.transform(self._table))
        expect(not np.isnan(self._X).any(), self, "has items with missing values")

    def _check_restored(self) -> None:
        expect(len(self.classes_) == self._items.P.shape[1], self, "has other classes")
        edges, regions = self._edges, self.regions_
        expect((edges is None) == (regions is None), self, "has regions without borders")
        if regions is not None and edges is not None:
            rows = len(regions) == len(edges) + 1 and {*OF_REGION} <= {*regions.columns}
            expect(rows, self, "has other regions")


def as_forests_see(features: Matrix) -> NDArray[np.float32]:
    """Return features in single precision; huge values keep their sign, all that a split needs."""
    return np.clip(features, -_LARGEST, _LARGEST).astype(np.float32)


def _n_members(P: Matrix, centres: Matrix, radius: float) -> int:
    """Count the items of all cells, by Hellinger's distance, without listing them."""
    roots, total = np.sqrt(P).T, 0
    for start in range(0, len(centres), _CELLS_AT_ONCE):
        overlap = np.sqrt(centres[start : start + _CELLS_AT_ONCE]) @ roots
        total += int((overlap >= 1 - radius**2 - 1e-9).sum())
    return total
