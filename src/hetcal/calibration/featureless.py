"""Calibrators without the features of their calibration items.

What ``hetcal.save(..., forget_features=True)`` writes. The plain vote of a forest needs only the
forest and the class weights in its leaves; who is in which leaf is then forgotten too.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import expect, stored
from hetcal._stored.fields import instance, whole
from hetcal._threads import ThreadSafe
from hetcal.calibration.base import GlobalCalibrator
from hetcal.calibration.forgetting import Aged
from hetcal.calibration.hybrid.calibrator import HybridCalibrator
from hetcal.calibration.hybrid.families import Family, GlobalFamily
from hetcal.calibration.hybrid.forests import ForestVoteFamily, ProximityFamily
from hetcal.calibration.hybrid.retrained import (
    BoostingFamily,
    CalibratorFamily,
    WideBoostingFamily,
)
from hetcal.calibration.hybrid.zero_weight import ZeroWeightExperts, without_zero_weight
from hetcal.calibration.preserving import LabelPreserving
from hetcal.calibration.similarity import SimilarityCalibrator
from hetcal.calibration.wrapper import LocallyCalibratedClassifier
from hetcal.data import CalibrationSet, NewItems
from hetcal.kernels import forest as kernel
from hetcal.kernels.votes import Ballot, Voters, VoteRule
from hetcal.similarity.base import BaseSimilarity
from hetcal.similarity.combined import CombinedSimilarity
from hetcal.similarity.forest import ForestProximity, LeafSimilarity

_KNOWS_NO_FEATURES = (
    GlobalFamily,
    ForestVoteFamily,
    ProximityFamily,
    BoostingFamily,
    WideBoostingFamily,
    ZeroWeightExperts,
)


def _not_available(what: str) -> NoReturn:
    raise ValueError(
        f"{what} is not available: the calibrator was saved with forget_features=True, so the "
        "calibration items are not in the file. Save it without forget_features."
    )


def _unavailable(what: str) -> Any:
    """Return a method that says what is not available."""

    def method(self: Any, *items: Any, **options: Any) -> NoReturn:
        """Raise ``ValueError``: the calibration items are not in the file."""
        _not_available(what)

    return method


@stored(
    {
        "forest_": instance(kernel.Forest),
        "mass_": instance(kernel.LeafMass),
        "n_items_": whole(1, 1 << 40),
    }
)
class LeafSums(BaseSimilarity):
    """A forest with the class weights in its leaves: enough for the vote of everyone."""

    def __init__(self, n_jobs: int | None = None):
        self.n_jobs = n_jobs

    @classmethod
    def of(cls, similarity: LeafSimilarity, voters: Voters) -> LeafSums:
        """Sum up the calibration items of a fitted forest similarity."""
        sums = cls(similarity.n_jobs)
        sums.forest_ = replace(similarity.forest_, in_bag=None)
        sums.mass_ = similarity._leaf_mass(voters)
        sums.n_items_ = similarity.n_items_
        return sums

    forest_: kernel.Forest
    mass_: kernel.LeafMass
    n_items_: int
    accepts_missing = True

    @property
    def n_columns_(self) -> int:
        """Number of columns that are compared."""
        return self.forest_.n_features

    def _check_restored(self) -> None:
        same = self.mass_.n_leaves == self.forest_.n_leaves
        expect(same, self, "has leaf sums of another forest")

    def vote(self, Z: Any, voters: Voters, rule: VoteRule) -> Ballot:
        """Let everyone vote."""
        if not rule.everyone:
            _not_available("A vote among some of the calibration items")
        mass = kernel.vote(self.forest_, Z, self.mass_, self.n_jobs) / self.forest_.n_trees
        return Ballot(mass, mass.sum(axis=1))

    def vote_by_some_trees(
        self,
        Z: Any,
        voters: Voters,
        rule: VoteRule,
        n_trees: NDArray[Any],
        rng: np.random.Generator,
    ) -> Ballot:
        """Let everyone vote, by so many trees per row."""
        if not rule.everyone:
            _not_available("A vote among some of the calibration items")
        mass = kernel.vote_by_some_trees(self.forest_, Z, self.mass_, n_trees, rng, self.n_jobs)
        return Ballot(mass, mass.sum(axis=1))

    # The settings of the forest, and the items themselves, belong to the calibrator.
    fit = _unavailable("A new fit of the similarity alone")
    pairwise = _unavailable("The similarity to single calibration items")
    out_of_sample_pairwise = _unavailable("The similarity between calibration items")
    counted_vote = _unavailable("The effective sample size")
    unbiased_vote = _unavailable("The interval")
    extend = _unavailable("Adding calibration items")


class FeaturesStripped(ThreadSafe):
    """What both kinds share: no word about calibration items, until they are fitted anew."""

    features_forgotten_: bool

    def fit_set(self, items: CalibrationSet) -> Any:
        """Fit to new items, which are known then."""
        self.features_forgotten_ = False
        return super().fit_set(items)  # type: ignore[misc]

    def evidence(self, X: Any, **options: Any) -> Any:
        """List the calibration items behind a prediction, where they are known."""
        if getattr(self, "features_forgotten_", False):
            _not_available("evidence")
        return super().evidence(X, **options)  # type: ignore[misc]


@stored()
class FeaturelessSimilarityCalibrator(FeaturesStripped, SimilarityCalibrator):
    """A :class:`hetcal.SimilarityCalibrator` that was saved with ``forget_features=True``."""

    def extend_items(self, items: NewItems, codes: Any, aged: Aged) -> Any:
        """Add calibration items, where the others are known."""
        if getattr(self, "features_forgotten_", False):
            _not_available("extend")
        return super().extend_items(items, codes, aged)


@stored()
class FeaturelessHybridCalibrator(FeaturesStripped, HybridCalibrator):
    """A :class:`hetcal.HybridCalibrator` that was saved with ``forget_features=True``."""


def forget_features(calibrator: Any) -> Any:
    """Return a copy without features, or say why that calibrator cannot be without.

    The copy shares what it keeps with the original, which stays as it was.
    """
    if isinstance(calibrator, GlobalCalibrator):
        return calibrator
    if isinstance(calibrator, LocallyCalibratedClassifier | LabelPreserving):
        copied = copy.copy(calibrator)
        copied.calibrator_ = forget_features(calibrator.calibrator_)
        return copied
    if isinstance(calibrator, HybridCalibrator):
        return _forget_hybrid(calibrator)
    if isinstance(calibrator, SimilarityCalibrator):
        return _forget_similarity(calibrator)
    raise TypeError(f"hetcal.save cannot tell what {type(calibrator).__name__} knows of features.")


def keeps_leaf_numbers(calibrator: Any) -> bool:
    """Tell whether the file will say in which leaves each calibration item lies."""
    if isinstance(calibrator, LocallyCalibratedClassifier | LabelPreserving):
        return keeps_leaf_numbers(calibrator.calibrator_)
    if isinstance(calibrator, HybridCalibrator):
        families = [*calibrator.families_, *calibrator.auxiliary_families_]
        return any(isinstance(family, ProximityFamily) for family in families)
    if not isinstance(calibrator, SimilarityCalibrator):
        return False
    return isinstance(calibrator.similarity_, LeafSimilarity | CombinedSimilarity)


def _forget_similarity(calibrator: SimilarityCalibrator) -> SimilarityCalibrator:
    if calibrator.heterogeneity_ is not None:
        raise ValueError(
            "forget_features: a calibrator with heterogeneity= (SWC-HH) measures predictions that "
            "are far from all calibration items on the items' features. Save it without "
            "forget_features, or fit it with heterogeneity=None."
        )
    similarity = calibrator.similarity_
    on_features = (
        similarity.on_features_ if isinstance(similarity, CombinedSimilarity) else similarity
    )
    if not isinstance(on_features, LeafSimilarity | LeafSums):
        raise ValueError(
            f"forget_features: {type(on_features).__name__} compares new items with the features "
            "of the calibration items, so they cannot be forgotten. Save it without "
            "forget_features, or fit with similarity='forest'."
        )
    copied = _stripped_copy(FeaturelessSimilarityCalibrator, calibrator)
    copied._out_of_sample = calibrator.out_of_sample_proba_  # cannot be computed any more later
    calibrator.out_of_sample_support()  # nor can this
    copied._out_of_sample_support = calibrator._out_of_sample_support
    copied._Z_grouped = None
    if isinstance(similarity, LeafSimilarity):
        copied.similarity_ = _forget_leaves(similarity, calibrator)
    return copied


def _forget_leaves(similarity: LeafSimilarity, calibrator: SimilarityCalibrator) -> BaseSimilarity:
    if calibrator._rule(None).everyone:
        return LeafSums.of(similarity, calibrator.voters_)
    copied = copy.copy(similarity)
    copied._forget_sums()
    out_of_bag = isinstance(similarity, ForestProximity) and similarity.voters == "out-of-bag"
    if not out_of_bag:  # whose vote counts the trees that have not seen the voter
        copied.forest_ = replace(similarity.forest_, in_bag=None)
    return copied


def _forget_hybrid(calibrator: HybridCalibrator) -> HybridCalibrator:
    copied = _stripped_copy(FeaturelessHybridCalibrator, calibrator)
    copied.families_ = [_forget_family(family) for family in without_zero_weight(calibrator)]
    return copied


def _forget_family(family: Family) -> Family:
    if isinstance(family, CalibratorFamily) and family.fitted_ is not None:
        copied = copy.copy(family)
        copied.fitted_ = forget_features(family.fitted_)
        return copied
    if not isinstance(family, _KNOWS_NO_FEATURES):
        raise ValueError(
            f"forget_features: the expert {', '.join(family.names)} compares new items with the "
            "features of the calibration items, so they cannot be forgotten. Save it without "
            "forget_features, or fit with experts=('proximity', 'forests', 'boosting'); with "
            "hundreds of columns ('proximity', 'wide-boosting')."
        )
    return family


def _stripped_copy(cls: type, value: Any) -> Any:
    copied: Any = object.__new__(cls)
    copied.__dict__.update(value.__dict__)
    copied.features_forgotten_ = True
    return copied
