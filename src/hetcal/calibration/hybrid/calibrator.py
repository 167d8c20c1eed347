"""The calibrator to take when nothing is known: it finds out which experts to trust."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._blas import with_one_blas_thread
from hetcal._exceptions import SupportWarning, TrainingSetWarning, levels_to_caller
from hetcal._progress import progressed
from hetcal._stored import expect, stored
from hetcal._stored.fields import (
    LARGEST,
    MOST_FEATURES,
    MOST_ITEMS,
    either,
    flag,
    in_range,
    instance,
    integers,
    list_of,
    number,
    optional,
    probabilities,
    table,
    text,
    whole,
)
from hetcal._typing import Matrix
from hetcal._validation import FeatureEncoder, propose_projection, warn_of_scales
from hetcal.calibration.base import STORED, BaseCalibrator, GroupAwareCalibrator
from hetcal.calibration.hybrid.families import Family
from hetcal.calibration.hybrid.forests import ProximityFamily
from hetcal.calibration.hybrid.interval import (
    check_level,
    probability_interval,
    share_of_vote,
    undiscovered,
    venn_abers_pair,
)
from hetcal.calibration.hybrid.library import Library
from hetcal.calibration.hybrid.recalibration import Recalibration
from hetcal.calibration.hybrid.recipe import Recipe, predicted_without_fold
from hetcal.calibration.hybrid.stacking import filled, reliance
from hetcal.calibration.hybrid.zero_weight import ZeroWeightExperts, without_zero_weight
from hetcal.calibration.out_of_sample_support import (
    OutOfSampleSupport,
    Reference,
    stored_support,
)
from hetcal.data import CalibrationSet, Folds, NewItems, Scores
from hetcal.metrics.scores import brier_losses
from hetcal.metrics.standard_errors import kish_number, mean_and_error

_BASE = "base"
_BLOCK_ROWS = 1 << 14
_CLOSEST = 1e-37  # that float32 tells apart
_FEWEST_ITEMS = 3  # one is left out, and of the rest one more
# What counts as hardly any use of the classifier, what it must not exceed even by chance, and how
# local the hybrid must be for that to be a matter of its calibration items.
# Of so many independent items what nobody has found may be worth as much as a coin's variance.
_FEWEST_UNITS = 10
_LITTLE_RELIANCE, _LITTLE_RELIANCE_AT_MOST, _LOCAL = 0.01, 0.05, 0.5


def _is_experts(value: Any) -> bool:
    listed = value if isinstance(value, list | tuple) else [value]
    return all(map(either(text, instance((BaseCalibrator, Family))), listed))


@stored(
    STORED
    | {
        "n_features_in_": whole(1, MOST_FEATURES),
        "experts": _is_experts,
        "encoder_": instance(FeatureEncoder),
        "families_": list_of(instance(Family), 1000),
        "auxiliary_families_": list_of(instance(Family), 1000),
        "in_base_": list_of(flag),
        "calibration_rows_": integers(None, low=0, high=MOST_ITEMS),
        "experts_": table,
        "weights_": probabilities(None),
        "share_": number(0, 1),
        "inverse_temperature_": number(0, LARGEST),
        "recalibration_": instance(Recalibration, "beta_"),
        "trust_": number(0, 1),
        "n_independent_": whole(1, MOST_ITEMS),
        "reliance_on_model_": number(may_miss=True),
        "out_of_sample_proba_": probabilities(None, None),
        "features_forgotten_": flag,
        "_out_of_sample_support": optional(stored_support),
    },
    may_lack=(
        "zero_floor_",
        "trust_",
        "n_independent_",
        "auxiliary_families_",
        "features_forgotten_",
        "_out_of_sample_support",
    ),
)
class HybridCalibrator(OutOfSampleSupport, GroupAwareCalibrator):
    """Blend global maps, votes of similar items and retrained models by how they do out of sample.

    Every expert predicts each calibration item without having used its label. Convex weights then
    minimise the Brier score of the blend, with a pull that counts as much as five items towards a
    third for the base and equal parts of the rest for the others. The blend replaces the base, the
    average of global maps (:class:`~hetcal.calibration.blend.GlobalBlend`), only as far as its gain
    exceeds what noise, and one imagined mistake, could have made. A last temperature corrects what
    blending leaves under-confident. Of all this as much is believed as labels that it has not seen
    support: a few dozen items leave the classifier's own probabilities nearly alone.

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
        Standard errors that the gain over the average of global maps must exceed, and the logarithm
        of odds against changing anything. 0 trusts the blend fully; large values leave everything
        as it is.
    n_estimators : int, default=300
        Trees of each forest that finds similar items; those that vote themselves have half of it.
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
        One row per expert: out-of-sample Brier score, its standard error, weight in the blend, and
        whether it uses the classifier's probabilities at all.
    share_ : float
        How far the blend replaces the average of global maps, in [0, 1].
    weights_ : ndarray
        Weights inside the blend: of the base, then of each expert.
    inverse_temperature_ : float
        One over the last temperature; above 1 it sharpens.
    trust_ : float
        How far the result replaces the classifier's own probabilities, in [0, 1]: the probability
        that it and not they are right, by out-of-sample likelihoods and Brier scores (the mean
        evidence) and odds beforehand of ``exp(caution (1 + 30 / n)) - 1`` to one for the
        classifier.
    reliance_on_model_ : float
        Share of the gain over class frequencies that would be lost without the classifier's
        probabilities, in [0, 1]; NaN where there is no gain that can be told from none. Surely
        near zero, in a hybrid that is mostly local, the calibration set has become a training
        set, and a warning says so.
    out_of_sample_proba_ : ndarray of shape (n, K)
        An out-of-sample prediction for every calibration item: experts that have not seen its label
        (or its group), blended by weights, share and last step learned without its fold.
    calibration_rows_ : ndarray of shape (m,)
        The rows that were learned from: those with a positive weight.
    n_independent_ : int
        How many items these are worth, or how many groups: Kish's number, fewer where weights (or
        sizes of groups) are unequal.

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

    @property
    def feature_names_in_(self) -> NDArray:
        """Names of the columns at fit, where X was a table whose columns have names of text."""
        names = self.encoder_.feature_names_in_
        if names is None:
            raise AttributeError("HybridCalibrator was fitted to features without names.")
        return names

    @with_one_blas_thread(items=1)
    def fit_set(self, items: CalibrationSet) -> Self:
        """Fit to items that were checked already."""
        _check_caution(self.caution)
        items = items.with_relative_weights()  # what is known is judged by rows
        self._remember(items)
        self.encoder_ = items.encoder()
        propose_projection(items.features(), "HybridCalibrator")
        warn_of_scales(items.features(), "HybridCalibrator", _CLOSEST)
        self.n_features_in_ = self.encoder_.n_features_in_
        self.calibration_rows_ = np.flatnonzero(items.weights > 0)
        learned = items.take(self.calibration_rows_)
        if learned.n_items < _FEWEST_ITEMS:
            raise ValueError(
                f"HybridCalibrator: {learned.n_items} items are too few to weigh experts on items "
                f"left out; {_FEWEST_ITEMS} is the least, and some dozens are of use. Collect more."
            )
        if learned.groups is not None and np.bincount(learned.groups).max() == learned.n_items - 1:
            raise ValueError(
                "HybridCalibrator: one group holds all items but one, from which alone nothing can "
                "be learned while the group is left out. Collect items of other groups, or leave "
                "groups out if the items are independent."
            )
        self.n_independent_ = max(1, round(kish_number(learned.weights, learned.groups)))
        folds = Folds.make(learned.n_items, seed=self.random_state, groups=learned.groups)
        library = Library(learned, self.n_estimators, self.random_state, self.n_jobs)
        families = [*library.global_maps(), *library.wanted(self.experts)]
        self.auxiliary_families_ = library.auxiliary(families)
        predictions = self._fit_families(families, learned, folds)
        self.families_ = families
        blend = self._weigh(predictions, learned, folds)
        self._compare_without_model(predictions, blend, learned, folds)
        self._predict_the_rest(items)
        # At once: a file does not keep which tree has seen which item.
        support, n_trees = self._proximity().out_of_sample_support(learned)
        self._out_of_sample_support = (support, n_trees)
        return self

    def _fit_families(
        self, families: list[Family], items: CalibrationSet, folds: Folds
    ) -> list[list[Matrix]]:
        """Fit every family and return what its experts say out of sample."""
        for family in self.auxiliary_families_:
            family.fit(items)
        predictions = []
        for place, family in enumerate(families, start=1):
            predictions.append(family.fit(items).out_of_sample(items, folds))
            progressed(place, len(families), family.names[0])
        return predictions

    def predict_proba(
        self,
        X: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        return_support: bool = False,
    ) -> Any:
        """Return calibrated probabilities, and on request the calibration support behind them."""
        items = self.new_items(X, y_proba=y_proba, logits=logits)
        Q = self.predict_items(items)
        return (Q, self.support_items(items)) if return_support else Q

    def predict_items(self, items: NewItems) -> Matrix:
        """Return calibrated probabilities of new items that were checked already."""
        return self._blend_in_blocks(items.features, items.scores)

    def predict_set(self, items: CalibrationSet) -> Matrix:
        """Return calibrated probabilities of items that were checked already."""
        return self._blend_in_blocks(items.features(), items.scores)

    def predict_interval(
        self, X: Any, *, y_proba: Any = None, logits: Any = None, level: float = 0.9
    ) -> tuple[Matrix, Matrix]:
        """Return an interval of P(y = k | x) for each item and class.

        Its width is what hidden differences between items may be worth that nobody has found, 2 %
        of the Brier score (more with fewer than 500 items, less where local experts have found
        something), the disagreement of the experts, how far few items changed the classifier's
        probabilities, and, where similar items have a say, how few they are. It reaches further
        to the side on which the vote of similar items lies, whether they have a say or not.
        Assumed is that nothing larger is hidden: a difference that the items cannot show is
        covered up to this size and no further. The user guide shows the measured coverage.
        Where the classifier is right already, intervals are wider than they would have to be,
        because nobody can know it.

        Parameters
        ----------
        X, y_proba, logits
            New items as in :meth:`predict_proba`.
        level : float, default=0.9
            Nominal coverage: the share of new items whose P(y | x) lies inside.

        Returns
        -------
        low, high : ndarray of shape (m, K)
            The prediction lies inside; [0, 1] where similar items have a say and there are none.
        """
        level = check_level(level)
        items = self.new_items(X, y_proba=y_proba, logits=logits)
        self._warn_of_few_units()
        low, high = np.empty((2, *items.scores.proba.shape))
        for rows in _blocks(items.n_items):
            part = items.take(rows)
            low[rows], high[rows] = self._interval(part.features, part.scores, level)
        return low, high

    def _warn_of_few_units(self) -> None:
        """Warn where so few groups were learned from that an interval says nothing."""
        units = getattr(self, "n_independent_", len(self.calibration_rows_))
        if units < _FEWEST_UNITS:
            warnings.warn(
                f"HybridCalibrator.predict_interval: the calibration items are worth {units} "
                f"independent groups (items, where fit had no groups), and {_FEWEST_UNITS} are the "
                "least that say anything about P(y | x): intervals reach from about 0 to about 1. "
                "Fit to items of more groups; where rows of a group are independent of each "
                "other, fit without groups=.",
                SupportWarning,
                stacklevel=levels_to_caller(),
            )

    def predict_venn_abers_pair(
        self, X: Any, *, y_proba: Any = None, logits: Any = None
    ) -> tuple[Matrix, Matrix]:
        """Return what Venn-Abers predictors say of E[y = k | q], the new item labelled either way.

        They are isotonic fits of the labels to the out-of-sample predictions q of the calibration
        items (of groups, a group counts as one item) and the new item: as not of class k, and as
        of class k. One of the two is calibrated, whichever label comes; their distance is what
        one label can move, not a confidence interval. They say nothing about differences between
        items with the same prediction, which :meth:`predict_interval` is about. The guarantee is
        for exchangeable items; here the calibration items were predicted by fits that lack them,
        new ones by the fit to all.

        Parameters
        ----------
        X, y_proba, logits
            New items as in :meth:`predict_proba`.

        Returns
        -------
        low, high : ndarray of shape (m, K)
        """
        Q = self.predict_proba(X, y_proba=y_proba, logits=logits)
        family = self._proximity()
        known = self.out_of_sample_proba_[self.calibration_rows_]
        units = getattr(self, "n_independent_", len(known)) / float(family.weight_.sum())
        return venn_abers_pair(known, family.codes_, family.weight_ * units, Q)

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
        items = self.new_items(X, y_proba=y_proba, logits=logits)
        return self.support_items(items, n_trees, random_state)

    def support_items(
        self, items: NewItems, n_trees: Any = None, random_state: Any = None
    ) -> Matrix:
        """Return :meth:`support` of new items that were checked already."""
        family, rng = self._proximity(), np.random.default_rng(random_state)
        support = np.empty(items.n_items)
        for rows in _blocks(items.n_items):
            some = None if n_trees is None else np.asarray(n_trees)[rows]
            part = items.take(rows)
            support[rows] = family.support(part.features, part.scores, some, rng)
        return support

    def evidence(
        self, X: Any, *, y_proba: Any = None, logits: Any = None, top: int = 10
    ) -> pd.DataFrame:
        """List the most similar calibration items of each new item, the most similar first.

        Returns
        -------
        pandas.DataFrame
            Columns: ``item`` (row of X), ``rank``, ``calibration_item``, ``similarity``, ``label``.
        """
        family, items = self._proximity(), self.new_items(X, y_proba=y_proba, logits=logits)
        index, similarity = family.nearest(items.features, items.scores, top)
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

    def _encode(self, X: Any) -> Matrix:
        return self.encoder_.transform(X)

    def _calibration_codes(self) -> NDArray[np.int64]:
        return self._proximity().codes_

    def _compute_out_of_sample_support(self) -> Reference:
        raise ValueError(
            "out_of_sample_support is not available: the calibrator comes from a file that was "
            "written without it. Fit it anew."
        )

    def _weigh(
        self, predictions: list[list[Matrix]], items: CalibrationSet, folds: Folds
    ) -> Matrix:
        """Learn weights, share and temperature; return the blend before the last step."""
        self.in_base_ = [family.in_base for family in self.families_]
        base = self._base(predictions)
        every = np.stack([base, *(filled(Q, base) for part in predictions for Q in part)])
        recipe = Recipe.learn(every, items, folds, self.caution)
        self.weights_, self.share_ = recipe.weights, recipe.share
        self.recalibration_, self.trust_ = recipe.recalibration, recipe.trust
        self.inverse_temperature_ = self.recalibration_.inverse_temperature_
        blend, self.out_of_sample_proba_ = predicted_without_fold(
            every, items, folds, self.caution, self.random_state
        )
        self.experts_ = self._table(every, items)
        return blend

    def _predict_the_rest(self, items: CalibrationSet) -> None:
        """Predict items of weight 0, from which nothing was learned, as new ones."""
        learned = self.out_of_sample_proba_
        if learned.shape[0] == items.n_items:
            return
        rest = np.setdiff1d(np.arange(items.n_items), self.calibration_rows_)
        Q = np.empty((items.n_items, learned.shape[1]))
        Q[self.calibration_rows_] = learned
        Q[rest] = self._blend(items.features()[rest], items.scores.take(rest))
        self.out_of_sample_proba_ = Q

    def _compare_without_model(
        self, predictions: list[list[Matrix]], blend: Matrix, items: CalibrationSet, folds: Folds
    ) -> None:
        """Find out what the calibration items could do without the classifier, and say so."""
        alone = [
            Q
            for family, part in zip(self.families_, predictions, strict=True)
            for Q in part
            if not family.uses_model
        ]
        alone += [
            Q for family in self.auxiliary_families_ for Q in family.out_of_sample(items, folds)
        ]
        lost, error = reliance(alone, blend, items, folds, self.caution)
        self.reliance_on_model_ = lost
        sure = lost + 2 * error < _LITTLE_RELIANCE_AT_MOST
        if lost < _LITTLE_RELIANCE and sure and self.share_ >= _LOCAL:
            warnings.warn(
                "The calibration set has become a training set: without the classifier's "
                "probabilities its items predict almost as well "
                f"(reliance_on_model_ = {self.reliance_on_model_:.2f}). The hybrid may be used "
                "as it is; to do without the classifier, consider retraining it on data that "
                "includes them.",
                TrainingSetWarning,
                stacklevel=levels_to_caller(),
            )

    def _table(self, predictions: Matrix, items: CalibrationSet) -> pd.DataFrame:
        losses = brier_losses(predictions, items.codes)
        mean, error = mean_and_error(losses, items.counts, items.groups)
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

    def _blend_in_blocks(self, features: Matrix, scores: Scores) -> Matrix:
        Q = np.empty((scores.proba.shape[0], self.classes_.shape[0]))
        for rows in _blocks(Q.shape[0]):
            Q[rows] = self._blend(features[rows], scores.take(rows))
        return Q

    def _blend(self, features: Matrix, scores: Scores) -> Matrix:
        return self._final(self._mix(features, scores)[0], scores)

    def _interval(self, features: Matrix, scores: Scores, level: float) -> tuple[Matrix, Matrix]:
        blend, squares = self._mix(features, scores)
        Q = self._final(blend, scores)
        disagreement = self._trust() * np.maximum(squares - blend**2, 0.0)
        n_items = float(getattr(self, "n_independent_", len(self.calibration_rows_)))
        hidden = undiscovered(Q.shape[1], n_items, self._trust() * self.share_)
        proximity = self._proximity()
        vote, size = proximity.smooth_vote(features, scores)
        if self.share_ > 0:  # few similar items matter where they have a say
            # The size counts weights already, but not groups.
            relative = hidden + share_of_vote(size * n_items / kish_number(proximity.weight_))
        else:
            relative = np.full(len(Q), hidden)
        return probability_interval(Q, scores.proba, vote, relative, disagreement, n_items, level)

    def _mix(self, features: Matrix, scores: Scores) -> tuple[Matrix, Matrix]:
        """Blend the experts whose weight is not zero; also their squares. Others are not asked."""
        weight = iter(self.weights_[1:] * self.share_)
        shares = [[next(weight) for _ in family.names] for family in self.families_]
        predictions = [
            family.predict(features, scores) if in_base or any(part) else []
            for family, in_base, part in zip(self.families_, self.in_base_, shares, strict=True)
        ]
        base = self._base(predictions)
        blend = (1 - self.share_ + self.share_ * self.weights_[0]) * base
        squares = blend * base
        for part, experts in zip(shares, predictions, strict=True):
            for w, Q in zip(part, experts, strict=bool(experts)):
                if w > 0:
                    said = filled(Q, base)
                    blend += w * said
                    squares += w * said**2
        return blend, squares

    def _final(self, blend: Matrix, scores: Scores) -> Matrix:
        trust = self._trust()
        return (1 - trust) * scores.proba + trust * self.recalibration_.apply(blend)

    def _trust(self) -> float:
        return getattr(self, "trust_", 1.0)  # files did not always have it

    def _base(self, predictions: list[list[Matrix]]) -> Matrix:
        """Return the mean of the global maps of the base."""
        parts = zip(self.in_base_, predictions, strict=True)
        return np.mean([Q for in_base, part in parts if in_base for Q in part], axis=0)

    def _proximity(self) -> ProximityFamily:
        """Return the first proximity: with the classifier's probabilities where that was wanted."""
        return next(
            family
            for family in (*self.families_, *self.auxiliary_families_)
            if isinstance(family, ProximityFamily)
        )

    def _to_stored(self, state: dict[str, Any]) -> dict[str, Any]:
        return state | {"families_": without_zero_weight(self)}

    def _check_restored(self) -> None:
        super()._check_restored()
        K, predicted = len(self.classes_), self.out_of_sample_proba_
        self._check_stored_support(len(self.calibration_rows_))
        self._check_restored_families()
        same = predicted.shape[1] == K
        expect(same, self, "has out-of-sample predictions of other classes")
        expect(in_range(self.calibration_rows_, 0, len(predicted)), self, "has odd rows")
        most = len(self.calibration_rows_)
        expect(getattr(self, "n_independent_", 0) <= most, self, "has more groups than items")
        beta = self.recalibration_.beta_
        same = beta is None or len(beta.coef_) == (1 if K == 2 else K)
        expect(same, self, "has a last map of other classes")

    def _check_restored_families(self) -> None:
        """Check the experts against the classes and the columns."""
        families, base, K = self.families_, self.in_base_, len(self.classes_)
        every = [*families, *getattr(self, "auxiliary_families_", [])]
        width = len(self.encoder_.feature_names_out_)
        for family in every:
            expect(family.classes_known == K, self, "has an expert for other classes")
            space = getattr(family, "space_", None)
            same = space is None or len(space.center_) == width + K * space.with_model
            expect(same, self, "has an expert for other columns")
        expect(len(base) == len(families) and any(base), self, "has no global maps")
        basic = [family for family, part in zip(families, base, strict=True) if part]
        empty = any(isinstance(family, ZeroWeightExperts) for family in basic)
        expect(not empty, self, "has a global map that says nothing")
        voters = [family.codes_ for family in every if isinstance(family, ProximityFamily)]
        same = all(len(self.calibration_rows_) == len(codes) for codes in voters)
        expect(same, self, "does not know its items")
        n_experts = sum(len(family.names) for family in families)
        expect(len(self.weights_) == 1 + n_experts, self, "has no weight per expert")


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
