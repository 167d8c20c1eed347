"""The space in which experts compare items: features beside the classifier's probabilities."""

from __future__ import annotations

from typing import Self

import numpy as np

from hetcal._stored import expect, stored
from hetcal._stored.fields import LARGEST, flag, numbers
from hetcal._typing import Matrix
from hetcal.data import CalibrationSet, Scores
from hetcal.kernels.binned_features import BinnedFeatures, bin_features

_FARTHEST = 1e100  # squares of distances stay numbers


@stored(
    {
        "logs": flag,
        "with_model": flag,
        "metric": flag,
        "center_": numbers(None),
        "spread_": numbers(None, low=1 / LARGEST),
    }
)
class LogSpace:
    """[X, standardised log p] or [X, p]; with ``metric`` every column standardised and no NaN."""

    def __init__(self, *, logs: bool = True, with_model: bool = True, metric: bool = False):
        self.logs = logs
        self.with_model = with_model
        self.metric = metric

    def fit(self, items: CalibrationSet) -> Self:
        """Learn the scales."""
        features = items.features()
        first = 0 if self.metric else features.shape[1]  # features that trees see stay as they are
        Z = self._joined(features[:, : features.shape[1] - first], items.scores)
        missing = np.isnan(Z)
        known = np.maximum((~missing).sum(axis=0), 1)
        center = np.where(missing, 0.0, Z).sum(axis=0) / known
        apart = Z - center
        apart *= apart
        apart[missing] = 0.0
        squares = apart.sum(axis=0) / known
        self.center_ = np.concatenate([np.zeros(first), center])
        self.spread_ = np.concatenate([np.ones(first), np.where(squares > 0, np.sqrt(squares), 1)])
        return self

    def transform(self, features: Matrix, scores: Scores) -> Matrix:
        """Return items in this space."""
        Z = self._joined(features, scores) - self.center_
        Z /= self.spread_
        return np.nan_to_num(Z, copy=False).clip(-_FARTHEST, _FARTHEST) if self.metric else Z

    def binned(self, items: CalibrationSet) -> BinnedFeatures:
        """Return the fitted items in bins; those of the features are shared by all parts."""
        features = items.binned()
        if not self.with_model:
            return features
        Z = self.transform(items.features(), items.scores)
        return features.beside(bin_features(Z[:, features.n_features :]))

    def _check_restored(self) -> None:
        expect(len(self.spread_) == len(self.center_), self, "has a wrong spread_")

    def _joined(self, features: Matrix, scores: Scores) -> Matrix:
        if self.metric:
            features = features.clip(-_FARTHEST, _FARTHEST)
        if not self.with_model:
            return features
        return np.hstack([features, scores.clipped_logs if self.logs else scores.proba])
