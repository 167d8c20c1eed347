"""Plain retrained models, cross-validated like the calibrators: an expert will ask for them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from hetcal._compat import threadpool_limits
from hetcal._typing import Matrix, Rows, Vector
from hetcal.calibration.base import BaseCalibrator
from hetcal.data import CalibrationSet, Scores
from hetcal.diagnosis.candidates import BOOSTING, N_TREES, SMALLEST_LEAF, least_in_leaf
from hetcal.kernels import forest as kernel


class BinnedForestClassifier(ClassifierMixin, BaseEstimator):
    """A random forest by hetcal's own engine, with the settings of a diagnosis.

    It takes missing values and costs a fraction. ``n_estimators`` and ``random_state`` as in
    :class:`sklearn.ensemble.RandomForestClassifier`.
    """

    def __init__(self, n_estimators: int = N_TREES, *, random_state: int = 0):
        self.n_estimators = n_estimators
        self.random_state = random_state

    def fit(self, Z: Matrix, codes: Rows, sample_weight: Vector | None = None) -> Self:
        """Grow the trees; items of weight zero have no part in it."""
        Z, codes, weight = _with_weight(Z, codes, sample_weight)
        engine = kernel.BinnedForest(
            self.n_estimators, min_samples_leaf=SMALLEST_LEAF, random_state=self.random_state
        )
        self.classes_, labels = np.unique(codes, return_inverse=True)
        n_classes = self.classes_.shape[0]
        self.forest_ = engine.fit_classes(kernel.bin_features(Z), labels, n_classes, weight=weight)
        per_draw = engine.weight_per_draw(len(Z), weight, None)
        leaves = kernel.apply(self.forest_, Z)
        self.mass_ = kernel.leaf_frequencies(self.forest_, leaves, labels, n_classes, per_draw)
        return self

    def predict_proba(self, Z: Matrix) -> Matrix:
        """Return the mean of the trees' class frequencies."""
        return kernel.vote(self.forest_, Z, self.mass_) / self.forest_.n_trees


class BinnedBoostingClassifier(ClassifierMixin, BaseEstimator):
    """Gradient boosting by hetcal's own engine, with the settings of a diagnosis.

    It draws nothing at random, takes missing values and costs a fraction.
    """

    def fit(self, Z: Matrix, codes: Rows, sample_weight: Vector | None = None) -> Self:
        """Boost trees; items of weight zero have no part in it."""
        Z, codes, weight = _with_weight(Z, codes, sample_weight)
        least = least_in_leaf(codes.shape[0])
        self.trees_ = BOOSTING.fit(kernel.bin_features(Z), codes, least_weight=least, weight=weight)
        self.classes_ = self.trees_.classes_
        return self

    def predict_proba(self, Z: Matrix) -> Matrix:
        """Return probabilities of the classes that were there."""
        return self.trees_.predict_proba(Z)


def _with_weight(
    Z: Matrix, codes: Rows, weight: Vector | None
) -> tuple[Matrix, Rows, Vector | None]:
    """Return the items that have weight, and weights of mean one; None where they are equal."""
    if weight is None:
        return Z, codes, None
    there = weight > 0
    weight = weight[there] / weight[there].mean()
    return Z[there], codes[there], None if np.ptp(weight) == 0 else weight


class RetrainedModel(BaseCalibrator):
    """A classifier trained on the calibration items, called like a calibrator.

    Parameters
    ----------
    estimator : classifier
        Cloned at fit; sees encoded features.
    with_model : bool, default=False
        Whether the black box's probabilities stand beside the features, [X, P].
    classes : array-like, optional
        The classes in the column order of ``y_proba``.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = RetrainedModel(DecisionTreeClassifier())
    >>> model = model.fit([[0.0], [1.0]], ["no", "yes"], y_proba=[0.5, 0.5])
    >>> model.predict_proba([[2.0]], y_proba=[0.5])
    array([[0., 1.]])
    """

    def __init__(self, estimator: Any, *, with_model: bool = False, classes: Any = None):
        self.estimator = estimator
        self.with_model = with_model
        self.classes = classes

    def fit(
        self, X: Any, y: Any, *, y_proba: Any = None, logits: Any = None, sample_weight: Any = None
    ) -> Self:
        """Train on the calibration items."""
        return self.fit_set(
            self._checked(X, y, y_proba=y_proba, logits=logits, sample_weight=sample_weight)
        )

    def fit_set(self, items: CalibrationSet) -> Self:
        """Train on items that were checked already."""
        self._remember(items)
        self.encoder_ = items.encoder()
        Z = self._joined(items.features(), items.scores)
        self.known_ = ~np.isnan(Z).all(axis=0)  # boosting cannot bin a column without any value
        # Small sets gain nothing from threads, and on a busy machine waiting threads cost a lot.
        with threadpool_limits(1, user_api="openmp"):
            self.model_ = clone(self.estimator).fit(
                Z[:, self.known_], items.codes, sample_weight=items.weight
            )
        return self

    def predict_proba(self, X: Any, *, y_proba: Any = None, logits: Any = None) -> Matrix:
        """Return the model's probabilities, zero for classes that it has never seen."""
        check_is_fitted(self, "model_")
        scores = self._new_scores(X, y_proba, logits)
        return self._predicted(self.encoder_.transform(X), scores)

    def predict_set(self, items: CalibrationSet) -> Matrix:
        """Return the model's probabilities for items that were checked already."""
        return self._predicted(items.features(), items.scores)

    def _predicted(self, features: Matrix, scores: Scores) -> Matrix:
        Z = self._joined(features, scores)
        Q = np.zeros((Z.shape[0], self.classes_.shape[0]))
        with threadpool_limits(1, user_api="openmp"):
            Q[:, self.model_.classes_] = self.model_.predict_proba(Z[:, self.known_])
        return Q

    def _joined(self, features: Matrix, scores: Scores) -> Matrix:
        return np.hstack([features, scores.proba]) if self.with_model else features


def plain_baselines(random_state: int = 0) -> dict[str, RetrainedModel]:
    """Return forest and gradient boosting, on the features and on features and probabilities.

    Examples
    --------
    >>> list(plain_baselines())
    ['forest on X', 'forest on [X, P]', 'boosting on X', 'boosting on [X, P]']
    """
    models = {
        "forest": BinnedForestClassifier(random_state=random_state),
        "boosting": BinnedBoostingClassifier(),
    }
    return {
        f"{name} on {'[X, P]' if with_model else 'X'}": RetrainedModel(model, with_model=with_model)
        for name, model in models.items()
        for with_model in (False, True)
    }
