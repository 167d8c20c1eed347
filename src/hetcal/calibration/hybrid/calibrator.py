"""The calibrator to take when nothing is known: it finds out which experts to trust."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Real
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
from hetcal.calibration.honest_support import HonestSupport, Reference
from hetcal.calibration.hybrid.forests import ProximityFamily
from hetcal.calibration.hybrid.library import Library
from hetcal.calibration.hybrid.problem import Problem, make_folds, rows_of
from hetcal.calibration.hybrid.recalibration import Recalibration
from hetcal.calibration.hybrid.stacking import (
    cautious_share,
    cross_fitted_blend,
    filled,
    learned_weights,
    reliance,
)
from hetcal.metrics.standard_errors import mean_and_error

_BASE = "mean-of-maps"
_N_FOLDS = 5
_BLOCK_ROWS = 1 << 14
# What counts as hardly any use of the classifier, what it must not exceed even by chance, and how
# local the hybrid must be for that to be a matter of its calibration items.
_LITTLE_RELIANCE, _LITTLE_RELIANCE_AT_MOST, _LOCAL = 0.01, 0.05, 0.5


class HybridCalibrator(HonestSupport, BaseCalibrator):
    """Blend global maps, votes of similar items and retrained models by their honest predictions.

    Every expert predicts each calibration item without having used its label. Convex weights then
    minimise the Brier score of the blend, with a pull towards equal weights that counts as much as
    five items. The blend replaces the plain mean of a few global maps only as far as its gain
    exceeds what noise, and one imagined mistake, could have made. A last temperature corrects what
    blending leaves under-confident.

    Parameters
    ----------
    experts : "auto" or sequence, default="auto"
        Which local experts join the global maps. Each is the name of a family: ``"proximity"``
        (votes of similar items), ``"forests"``, ``"boosting"`` and ``"wide-boosting"`` (retrained
        on features and probabilities, the last on features alone with more than two classes),
        ``"neighbours"``, ``"kernel"`` (smooth functions of the features); or the name of a
        calibrator (:func:`hetcal.list_calibrators`); or a calibrator; or a scikit-learn classifier
        with ``predict_proba``, which is trained on the standardised features and
        log-probabilities. ``"auto"``: all families, ``"forests"`` and ``"boosting"`` up to 300
        features and ``"wide-boosting"`` beyond, boosting only where it takes seconds.
    caution : float, default=1.0
        Standard errors that the gain over the mean of global maps must exceed. 0 trusts the blend
        fully; large values keep the global maps.
    n_estimators : int, default=300
        Trees of each forest.
    classes : array-like, optional
        The classes in the column order of ``y_proba``.
    random_state : int, default=0
        Seed of forests, boosting and folds.
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
    weights_ : ndarray
        Weights inside the blend: of the mean of the global maps, then of each expert.
    inverse_temperature_ : float
        One over the last temperature; above 1 it sharpens.
    reliance_on_model_ : float
        Share of the gain over class frequencies that would be lost without the classifier's
        probabilities, in [0, 1]; NaN where there is no gain that can be told from none. Surely
        near zero, in a hybrid that is mostly local, the calibration set has become a training
        set, and a warning says so.
    out_of_sample_proba_ : ndarray of shape (n, K)
        An honest prediction for every calibration item.
    calibration_rows_ : ndarray of shape (m,)
        The rows that were learned from: those with a positive weight.

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
        _check_caution(self.caution)
        scores, codes = self._fit_scores(X, y, y_proba, logits)
        weight = check_sample_weight(sample_weight, codes.shape[0])
        check_two_classes(codes, self.classes_, weight)
        group_codes = check_groups(groups, codes.shape[0])
        self.encoder_ = FeatureEncoder(missing="keep").fit(X)
        features = self.encoder_.transform(X)
        rows = self.calibration_rows_ = np.flatnonzero(weight > 0)
        if group_codes is not None:
            group_codes = np.unique(group_codes[rows], return_inverse=True)[1]
        problem = Problem(
            features[rows],
            rows_of(scores, rows),
            codes[rows],
            self.classes_.shape[0],
            weights_as_counts(weight[rows]),
            make_folds(codes[rows], group_codes, _N_FOLDS, self.random_state),
            groups=group_codes,
        )
        self.n_features_in_ = self.encoder_.n_features_in_
        library = Library(
            problem, self.n_estimators, self.random_state, self.n_jobs, self.input_kind_
        )
        families = [*library.global_maps(), *library.wanted(self.experts)]
        self.bystanders_ = library.bystanders(families)
        for family in (*families, *self.bystanders_):
            family.fit(problem)
        said = [family.honest(problem) for family in families]
        self.families_ = families
        honest = self._weigh(said, problem)
        self._compare_without_model(said, honest, problem)
        self._predict_the_rest(features, scores)
        # At once: a file does not keep which tree has seen which item.
        support, n_trees = self._proximity().honest_support(problem)
        self._honest_support = (support, n_trees)
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
        Q = np.empty((scores.proba.shape[0], self.classes_.shape[0]))
        for rows in _blocks(Q.shape[0]):
            Q[rows] = self._blend(features[rows], rows_of(scores, rows))
        return (Q, self._support(features, scores)) if return_support else Q

    def support(
        self,
        X: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        n_trees: Any = None,
        random_state: Any = None,
    ) -> Matrix:
        """Return the calibration support of each item: its sum of similarities.

        ``n_trees`` and ``random_state`` as in :meth:`hetcal.SimilarityCalibrator.support`.
        """
        features, scores = self._new_items(X, y_proba, logits)
        return self._support(features, scores, n_trees, np.random.default_rng(random_state))

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
                "calibration_item": self.calibration_rows_[voter],
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

    def _support(
        self,
        features: Matrix,
        scores: Scores,
        n_trees: Any = None,
        rng: np.random.Generator | None = None,
    ) -> Matrix:
        family = self._proximity()
        support = np.empty(scores.proba.shape[0])
        for rows in _blocks(support.shape[0]):
            some = None if n_trees is None else np.asarray(n_trees)[rows]
            support[rows] = family.support(features[rows], rows_of(scores, rows), some, rng)
        return support

    def _calibration_codes(self) -> NDArray[np.int64]:
        return self._proximity().codes_

    def _compute_honest_support(self) -> Reference:
        raise ValueError(
            "honest_support is not available: the calibrator comes from a file that was written "
            "without it. Fit it anew."
        )

    def _weigh(self, said: list[list[Matrix]], problem: Problem) -> Matrix:
        """Learn weights, share and temperature; return the honest blend before the last step."""
        truth, weight, folds = problem.onehot, problem.weight, problem.folds
        base = self._choose_base(said, problem)
        every = np.stack([base, *(filled(Q, base) for part in said for Q in part)])
        self.weights_ = learned_weights(every, truth, weight)
        blend = cross_fitted_blend(every, truth, weight, folds)
        self.share_ = cautious_share(blend, base, truth, weight, self.caution, problem.groups)
        honest = (1 - self.share_) * base + self.share_ * blend
        self.recalibration_ = Recalibration().fit(honest, problem, self.caution)
        self.inverse_temperature_ = self.recalibration_.inverse_temperature_
        self.out_of_sample_proba_ = self.recalibration_.apply(honest)
        self.experts_ = self._table(every, problem)
        return honest

    def _predict_the_rest(self, features: Matrix, scores: Scores) -> None:
        """Give items of weight 0, from which nothing was learned, an honest prediction too."""
        learned = self.out_of_sample_proba_
        if learned.shape[0] == features.shape[0]:
            return
        rest = np.setdiff1d(np.arange(features.shape[0]), self.calibration_rows_)
        self.out_of_sample_proba_ = np.empty((features.shape[0], learned.shape[1]))
        self.out_of_sample_proba_[self.calibration_rows_] = learned
        self.out_of_sample_proba_[rest] = self._blend(features[rest], rows_of(scores, rest))

    def _compare_without_model(
        self, said: list[list[Matrix]], honest: Matrix, problem: Problem
    ) -> None:
        """Find out what the calibration items could do without the classifier, and say so."""
        alone = [
            Q
            for family, part in zip(self.families_, said, strict=True)
            for Q in part
            if not family.uses_model
        ]
        alone += [Q for family in self.bystanders_ for Q in family.honest(problem)]
        lost, error = reliance(alone, honest, problem, self.caution)
        self.reliance_on_model_ = lost
        sure = lost + 2 * error < _LITTLE_RELIANCE_AT_MOST
        if lost < _LITTLE_RELIANCE and sure and self.share_ >= _LOCAL:
            warnings.warn(
                "The calibration set has become a training set: without the classifier's "
                "probabilities its items predict almost as well "
                f"(reliance_on_model_ = {self.reliance_on_model_:.2f}). Consider retraining the "
                "classifier on data that includes them.",
                HetcalWarning,
                stacklevel=3,
            )

    def _table(self, said: Matrix, problem: Problem) -> pd.DataFrame:
        loss = ((said - problem.onehot) ** 2).sum(axis=2)
        mean, error = mean_and_error(loss, problem.weight, problem.groups)
        names = [_BASE] + [name for family in self.families_ for name in family.names]
        uses = [True] + [family.uses_model for family in self.families_ for _ in family.names]
        return pd.DataFrame(
            {
                "brier": mean,
                "standard_error": error,
                "weight": self.weights_ * self.share_
                + (np.arange(len(names)) == 0) * (1 - self.share_),
                "uses_model": uses,
            },
            index=pd.Index(names, name="expert"),
        )

    def _blend(self, features: Matrix, scores: Scores) -> Matrix:
        """Ask the experts that have a say, and nobody else."""
        weight = iter(self.weights_[1:] * self.share_)
        shares = [[next(weight) for _ in family.names] for family in self.families_]
        said = [
            family.predict(features, scores) if in_base or any(part) else []
            for family, in_base, part in zip(self.families_, self.in_base_, shares, strict=True)
        ]
        base = self._base(said)
        blend = (1 - self.share_ + self.share_ * self.weights_[0]) * base
        for part, experts in zip(shares, said, strict=True):
            for w, Q in zip(part, experts, strict=bool(experts)):
                if w > 0:
                    blend += w * filled(Q, base)
        return self.recalibration_.apply(blend)

    def _choose_base(self, said: list[list[Matrix]], problem: Problem) -> Matrix:
        """Let who may join the base do so if it is no worse, and return the honest base."""
        self.in_base_ = [family.in_base for family in self.families_]
        loss = problem.weight @ ((self._base(said) - problem.onehot) ** 2).sum(axis=1)
        self.in_base_ = [
            family.in_base
            or (
                family.may_join_base
                and problem.weight @ ((part[0] - problem.onehot) ** 2).sum(axis=1) <= loss
            )
            for family, part in zip(self.families_, said, strict=True)
        ]
        return self._base(said)

    def _base(self, said: list[list[Matrix]]) -> Matrix:
        """Return the mean of the global maps of the base."""
        parts = zip(self.in_base_, said, strict=True)
        return np.mean([Q for in_base, part in parts if in_base for Q in part], axis=0)

    def _proximity(self) -> ProximityFamily:
        """Return the first proximity: with the classifier's probabilities where that was wanted."""
        return next(
            family
            for family in (*self.families_, *self.bystanders_)
            if isinstance(family, ProximityFamily)
        )


def _blocks(n_rows: int) -> Iterator[slice]:
    """Cut many rows into blocks, so that memory does not grow with them."""
    for start in range(0, n_rows, _BLOCK_ROWS):
        yield slice(start, min(start + _BLOCK_ROWS, n_rows))


def _check_caution(caution: Any) -> None:
    if not (isinstance(caution, Real) and float(caution) >= 0):
        raise ValueError(
            f"HybridCalibrator: caution must be a number of standard errors, 0 or more; got "
            f"{caution!r}."
        )
