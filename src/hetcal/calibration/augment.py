"""The augmented space in which items are compared: features beside probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from hetcal._stored import expect, stored
from hetcal._stored.fields import (
    LARGEST,
    MOST_CLASSES,
    either,
    instance,
    number,
    numbers,
    one_of,
    optional,
    whole,
)
from hetcal._typing import Matrix
from hetcal._validation import FeatureEncoder
from hetcal._validation.vectors import spread_vectors
from hetcal.calibration.chosen_columns import ChosenColumns, as_transformer
from hetcal.data import CalibrationSet, Scores

AUGMENTATIONS = ("log-proba-scaled", "proba-scaled", "log-proba", "proba", None)


@stored(
    {
        "features": optional(instance(ChosenColumns)),
        "features_": optional(instance(ChosenColumns)),
        "augment": one_of(*AUGMENTATIONS),
        "encoder": instance(FeatureEncoder),
        "n_proba": whole(0, MOST_CLASSES),
        "center_": either(number(), numbers(None)),
        "spread_": either(number(1 / LARGEST), numbers(None, low=1 / LARGEST)),
    }
)
class AugmentedSpace:
    """Fitted map from raw features and scores to the matrix Z = [X, P] that similarities compare.

    Parameters
    ----------
    features : transformer, list of columns, or None
        Applied to X first (a PCA, a network's latent layer), or the columns to use. It is fitted
        without labels, so that predictions of the items stay out of sample; frozen ones are not
        refitted.
    augment : {"log-proba-scaled", "proba-scaled", "log-proba", "proba", None}
        What stands beside the features: probabilities or their logarithms, standardised on the
        calibration items or raw, or nothing.
    accepts_missing, accepts_sparse : bool
        What the similarity can use as it is.
    """

    def __init__(
        self,
        features: Any = None,
        augment: str | None = "log-proba-scaled",
        *,
        accepts_missing: bool = True,
        accepts_sparse: bool = False,
    ):
        if augment not in AUGMENTATIONS:
            raise ValueError(f"augment must be one of {AUGMENTATIONS}; got {augment!r}.")
        self.features = (
            None if features is None else as_transformer(features, "SimilarityCalibrator")
        )
        self.augment = augment
        self.encoder = FeatureEncoder(
            missing="keep" if accepts_missing else "impute", allow_sparse=accepts_sparse
        )

    def _check_restored(self) -> None:
        for name in ("center_", "spread_"):
            value = getattr(self, name)
            same = not isinstance(value, np.ndarray) or len(value) == self.n_proba
            expect(same, self, f"has a wrong {name}")

    def fit_transform(self, items: CalibrationSet) -> Any:
        """Learn the map from the calibration items and return them in the augmented space."""
        self.features_ = None
        if self.features is None:
            kind: Any = {"missing": self.encoder.missing, "allow_sparse": self.encoder.allow_sparse}
            self.encoder, encoded = items.encoder(**kind), items.features(**kind)
        else:
            self.features_ = self._fitted_features(items.X)
            encoded = self.encoder.fit_transform(self._represented(items.X))
        columns = self._probability_columns(items.scores)
        weight = items.weight
        self.n_proba = 0 if columns is None else columns.shape[1]
        self.center_: Matrix | float = 0.0
        self.spread_: Matrix | float = 1.0
        if columns is not None and str(self.augment).endswith("scaled"):
            self.center_ = np.average(columns, axis=0, weights=weight)
            spread = np.sqrt(np.average((columns - self.center_) ** 2, axis=0, weights=weight))
            self.spread_ = np.where(spread > 0, spread, 1.0)
        return self.join(encoded, items.scores)

    def transform(self, X: Any, scores: Scores) -> Any:
        """Return new items in the augmented space."""
        return self.join(self.encode(X), scores)

    def encode(self, X: Any) -> Any:
        """Return the features alone as a checked matrix."""
        return self.encoder.transform(self._represented(X))

    def join(self, features: Any, scores: Scores) -> Any:
        """Put the columns of probabilities beside encoded features."""
        columns = self._probability_columns(scores)
        if columns is None:
            return features
        columns = (columns - self.center_) / self.spread_
        if sparse.issparse(features):
            return sparse.csr_array(sparse.hstack([features, sparse.csr_array(columns)]))
        return np.hstack([features, columns])

    def _fitted_features(self, X: Any) -> Any:
        features = self.features
        frozen = isinstance(features, FrozenEstimator)
        if not frozen and get_tags(features).target_tags.required:
            raise ValueError(
                f"features={features!r} learns from labels; fitted on the calibration labels "
                "it would spoil the out-of-sample predictions. Fit it on other data and pass "
                "FrozenEstimator(fitted transformer)."
            )
        return clone(features).fit(X, None)

    def _represented(self, X: Any) -> Any:
        if self.features_ is None:
            return X
        known = getattr(self.features_, "feature_names_in_", None)
        return self.features_.transform(spread_vectors(X, known))  # as the calibration items were

    def _probability_columns(self, scores: Scores) -> Matrix | None:
        if self.augment is None:
            return None
        return scores.log_proba if self.augment.startswith("log") else scores.proba
