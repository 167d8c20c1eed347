"""The calibrator to take when nothing is known: it finds out which experts to trust."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hetcal._exceptions import HetcalWarning
from hetcal._validation import (
    FeatureEncoder,
    check_groups,
    check_sample_weight,
    check_two_classes,
    weights_as_counts,
)
from hetcal.calibration.base import BaseCalibrator, Matrix, Scores
from hetcal.calibration.beta import BetaCalibration
from hetcal.calibration.hybrid.families import (
    BoostingFamily,
    Family,
    ForestVoteFamily,
    GlobalFamily,
    NeighbourFamily,
    ProximityFamily,
)
from hetcal.calibration.hybrid.problem import Problem, make_folds, rows_of
from hetcal.calibration.hybrid.stacking import (
    cautious_share,
    convex_weights,
    cross_fitted_blend,
)
from hetcal.calibration.isotonic import IsotonicCalibration
from hetcal.calibration.platt import PlattScaling
from hetcal.calibration.temperature import BiasCorrectedTemperatureScaling, TemperatureScaling
from hetcal.calibration.uncalibrated import Uncalibrated
from hetcal.kernels.scaling import apply_softmax_map, fit_temperature, smoothed_targets
from hetcal.kernels.simplex import log_probabilities

_BASE = "mean-of-maps"
_N_FOLDS = 5
_ISOTONIC_ITEMS = 200
# Boosting is admitted while items x features x classes stays below this (a few seconds per fold).
_BOOSTING_COST = 1_500_000
_BOOSTING_FEATURES = 300
_EXPERTS = ("proximity", "forests", "neighbours", "boosting")
_BLOCK_ROWS = 1 << 14
_FLOOR = 1e-9
_LITTLE_RELIANCE = 0.05


class HybridCalibrator(BaseCalibrator):
    """Blend global maps, votes of similar items and retrained models by their honest predictions.

    Every expert predicts each calibration item without having used its label. Convex weights then
    minimise the Brier score of the blend; the blend replaces the plain mean of a few global maps
    only as far as its gain exceeds what noise could have made (one standard error); a last
    temperature corrects what blending leaves under-confident.

    Parameters
    ----------
    experts : "auto" or sequence of str, default="auto"
        Which local experts join the global maps: ``"proximity"`` (votes of similar items),
        ``"forests"`` and ``"boosting"`` (retrained on features and probabilities),
        ``"neighbours"``. ``"auto"``: all of them, boosting only where it takes seconds.
    caution : float, default=1.0
        Standard errors that the gain over the mean of global maps must exceed. 0 trusts the blend
        fully; large values keep the global maps.
    n_estimators : int, default=300
        Trees of each forest.
    classes : array-like, optional
        The classes in the column order of ``y_proba``.
    random_state : int, default=0
        Seed of forests and folds.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    experts_ : DataFrame
        One row per expert: honest Brier score, its standard error, weight in the blend, and whether
        it uses the classifier's probabilities at all.
    share_ : float
        How far the blend replaces the mean of the global maps, in [0, 1].
    temperature_ : float
        The last temperature.
    reliance_on_model_ : float
        Share of the gain over class frequencies that would be lost without the classifier's
        probabilities, in [0, 1]. Near zero the calibration set has become a training set, and a
        warning says so.
    out_of_sample_proba_ : ndarray of shape (n, K)
        An honest prediction for every calibration item.

    Examples
    --------
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(500, heterogeneity=1.0, random_state=0)
    >>> hybrid = HybridCalibrator(n_estimators=50).fit(data.X, data.y, y_proba=data.y_proba)
    >>> new = data.sample(3, random_state=1)
    >>> hybrid.predict_proba(new.X, y_proba=new.y_proba).shape
    (3, 2)
    """

    def __init__(
        self,
        experts: Any = "auto",
        *,
        caution: float = 1.0,
        n_estimators: int = 300,
        classes: Any = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ):
        self.experts = experts
        self.caution = caution
        self.n_estimators = n_estimators
        self.classes = classes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit every expert and weigh them.

        Parameters
        ----------
        X, y, y_proba, logits, sample_weight, groups
            As in :meth:`hetcal.SimilarityCalibrator.fit`.
        """
        self._require_features(X)
        scores, codes = self._fit_scores(X, y, y_proba, logits)
        weight = check_sample_weight(sample_weight, codes.shape[0])
        check_two_classes(codes, self.classes_, weight)
        group_codes = check_groups(groups, codes.shape[0])
        self.encoder_ = FeatureEncoder(missing="keep").fit(X)
        problem = Problem(
            self.encoder_.transform(X),
            scores,
            codes,
            self.classes_.shape[0],
            weights_as_counts(weight),
            make_folds(codes, group_codes, _N_FOLDS, self.random_state),
            grouped=group_codes is not None,
        )
        self.n_features_in_ = self.encoder_.n_features_in_
        self.families_ = [family.fit(problem) for family in self._families(problem)]
        said = [family.honest(problem) for family in self.families_]
        self._weigh(self._with_base(said), problem)
        return self

    def predict_proba(
        self,
        X: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        return_support: bool = False,
    ) -> Any:
        """Return calibrated probabilities, and on request the calibration support behind them."""
        features, scores = self._new_items(X, y_proba, logits)
        m = scores.proba.shape[0]
        Q = np.empty((m, self.classes_.shape[0]))
        for start in range(0, m, _BLOCK_ROWS):
            rows = slice(start, min(start + _BLOCK_ROWS, m))
            Q[rows] = self._blend(features[rows], rows_of(scores, rows))
        if return_support:
            return Q, self._proximity().support(features, scores)
        return Q

    def support(self, X: Any, *, y_proba: Any = None, logits: Any = None) -> Matrix:
        """Return the calibration support of each item: its sum of similarities."""
        return self._proximity().support(*self._new_items(X, y_proba, logits))

    def evidence(
        self, X: Any, *, y_proba: Any = None, logits: Any = None, top: int = 10
    ) -> pd.DataFrame:
        """List the most similar calibration items of each new item, the most similar first.

        Returns
        -------
        pandas.DataFrame
            Columns: ``item`` (row of X), ``rank``, ``calibration_item``, ``similarity``, ``label``.
        """
        family = self._proximity()
        index, similarity = family.nearest(*self._new_items(X, y_proba, logits), top)
        item, place = np.nonzero(index >= 0)
        voter = index[item, place]
        return pd.DataFrame(
            {
                "item": item,
                "rank": place + 1,
                "calibration_item": voter,
                "similarity": similarity[item, place],
                "label": self.classes_[family.codes_[voter]],
            }
        )

    def predict(self, X: Any, *, y_proba: Any = None, logits: Any = None) -> NDArray:
        """Return the most probable class of each item after calibration."""
        return self.classes_[self.predict_proba(X, y_proba=y_proba, logits=logits).argmax(axis=1)]

    def _new_items(self, X: Any, y_proba: Any, logits: Any) -> tuple[Matrix, Scores]:
        check_is_fitted(self, "weights_")
        self._require_features(X)
        scores = self._new_scores(X, y_proba, logits)
        return self.encoder_.transform(X), scores

    def _families(self, problem: Problem) -> list[Family]:
        wanted = self._wanted(problem)
        forest: dict[str, Any] = {
            "n_estimators": self.n_estimators,
            "seed": self.random_state,
            "n_jobs": self.n_jobs,
        }
        families = _global_maps(problem)
        if "proximity" in wanted:
            families.append(ProximityFamily((2.0, 8.0), **forest))
        if "forests" in wanted:
            leaves = [leaf for leaf in (1, 3, 10) if problem.n_items >= 10 * leaf]
            families += [ForestVoteFamily(leaf, **forest) for leaf in leaves]
        if "neighbours" in wanted:
            families += [NeighbourFamily(5, 3.0, logs=logs) for logs in (True, False)]
            families.append(NeighbourFamily(10, 1.0, logs=False))
        if "boosting" in wanted:
            families.append(BoostingFamily(seed=self.random_state))
        # Twins that never see p: what the calibration set could do without the classifier.
        families.append(ProximityFamily((8.0,), with_model=False, **forest))
        families.append(ForestVoteFamily(1, with_model=False, **forest))
        return families

    def _wanted(self, problem: Problem) -> tuple[str, ...]:
        if isinstance(self.experts, str) and self.experts == "auto":
            n, d, K = problem.n_items, problem.features.shape[1], problem.n_classes
            cheap = d <= _BOOSTING_FEATURES and n * d * (K if K > 2 else 1) <= _BOOSTING_COST
            return _EXPERTS if cheap else tuple(name for name in _EXPERTS if name != "boosting")
        wanted = tuple(self.experts) if not isinstance(self.experts, str) else (self.experts,)
        unknown = [name for name in wanted if name not in _EXPERTS]
        if unknown:
            raise ValueError(
                f"experts names {unknown!r}, which hetcal does not know. Pass 'auto' or some of "
                f"{', '.join(_EXPERTS)}."
            )
        return wanted

    def _weigh(self, said: Matrix, problem: Problem) -> None:
        truth, weight, folds = problem.onehot, problem.weight, problem.folds
        base = said[0]
        self.weights_ = convex_weights(said, truth, weight)
        blend = cross_fitted_blend(said, truth, weight, folds)
        self.share_ = cautious_share(blend, base, truth, weight, self.caution)
        honest = (1 - self.share_) * base + self.share_ * blend
        targets = smoothed_targets(problem.codes, problem.n_classes, weight)
        fitted = fit_temperature(log_probabilities(honest, _FLOOR), targets, weight)
        self.inverse_temperature_ = float(fitted.scale[0])
        self.out_of_sample_proba_ = self._sharpened(honest)
        self.experts_ = self._table(said, problem)
        self.reliance_on_model_ = self._reliance(said, problem)
        if self.reliance_on_model_ < _LITTLE_RELIANCE:
            warnings.warn(
                "The calibration set has become a training set: without the classifier's "
                "probabilities its items predict almost as well "
                f"(reliance_on_model_ = {self.reliance_on_model_:.2f}). Consider retraining the "
                "classifier on data that includes them.",
                HetcalWarning,
                stacklevel=3,
            )

    def _reliance(self, said: Matrix, problem: Problem) -> float:
        """Return the share of the blend's gain over class frequencies that is lost without p."""
        truth, weight = problem.onehot, problem.weight
        alone = said[~self.experts_["uses_model"].to_numpy()]
        without = cross_fitted_blend(alone, truth, weight, problem.folds)
        known = weight @ truth / weight.sum()

        def brier(Q: Matrix) -> float:
            return float(weight @ ((Q - truth) ** 2).sum(axis=1) / weight.sum())

        full = brier(self.out_of_sample_proba_)
        gain = brier(np.broadcast_to(known, truth.shape)) - full
        return float(np.clip((brier(without) - full) / gain, 0.0, 1.0)) if gain > 0 else 1.0

    def _table(self, said: Matrix, problem: Problem) -> pd.DataFrame:
        loss = ((said - problem.onehot) ** 2).sum(axis=2)
        w = problem.weight / problem.weight.sum()
        mean = loss @ w
        spread = np.sqrt(((loss - mean[:, None]) ** 2) @ w**2)
        names = [_BASE] + [name for family in self.families_ for name in family.names]
        uses = [True] + [family.uses_model for family in self.families_ for _ in family.names]
        return pd.DataFrame(
            {
                "brier": mean,
                "standard_error": spread,
                "weight": self.weights_ * self.share_
                + (np.arange(len(names)) == 0) * (1 - self.share_),
                "uses_model": uses,
            },
            index=pd.Index(names, name="expert"),
        )

    def _blend(self, features: Matrix, scores: Scores) -> Matrix:
        said = self._with_base([family.predict(features, scores) for family in self.families_])
        blend = np.tensordot(self.weights_, said, axes=1)
        return self._sharpened((1 - self.share_) * said[0] + self.share_ * blend)

    def _sharpened(self, Q: Matrix) -> Matrix:
        K = Q.shape[1]
        return apply_softmax_map(
            log_probabilities(Q, _FLOOR), np.full(K, self.inverse_temperature_), np.zeros(K)
        )

    def _with_base(self, said: list[list[Matrix]]) -> Matrix:
        """Put the mean of the global maps first; whoever has nothing to say repeats it."""
        in_base = [
            Q
            for family, part in zip(self.families_, said, strict=True)
            for Q in part
            if family.in_base
        ]
        base = np.mean(in_base, axis=0)
        rows = [base] + [np.where(np.isnan(Q), base, Q) for part in said for Q in part]
        return np.stack(rows)

    def _proximity(self) -> ProximityFamily:
        """Return the first proximity: with the classifier's probabilities where that was wanted."""
        return next(f for f in self.families_ if isinstance(f, ProximityFamily))


def _global_maps(problem: Problem) -> list[Family]:
    """Return the global maps; those of the base are averaged into what a blend must beat."""
    maps: list[Family] = [
        GlobalFamily("temperature", TemperatureScaling(), in_base=True),
        GlobalFamily("beta", BetaCalibration(), in_base=True),
        GlobalFamily("uncalibrated", Uncalibrated()),
        GlobalFamily("bcts", BiasCorrectedTemperatureScaling()),
    ]
    if problem.n_classes == 2:
        platt = PlattScaling(score="proba", targets="platt")
        maps.append(GlobalFamily("platt-p", platt, in_base=True))
    if problem.n_items >= _ISOTONIC_ITEMS:
        maps.append(GlobalFamily("isotonic", IsotonicCalibration(), in_base=True))
    return maps
