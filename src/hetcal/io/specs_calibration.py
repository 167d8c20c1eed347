"""How calibrators and their parts are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hetcal._validation import FeatureEncoder
from hetcal.calibration import (
    BetaCalibration,
    BiasCorrectedTemperatureScaling,
    HistogramBinning,
    HybridCalibrator,
    IsotonicCalibration,
    LabelPreserving,
    LocallyCalibratedClassifier,
    PlattScaling,
    PrecomputedProba,
    SimilarityCalibrator,
    TemperatureScaling,
    Uncalibrated,
    VectorScaling,
)
from hetcal.calibration.augment import AUGMENTATIONS, AugmentedSpace
from hetcal.calibration.base import BaseCalibrator, GlobalCalibrator
from hetcal.data import Scores
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.io.featureless import FeaturelessHybridCalibrator, FeaturelessSimilarityCalibrator
from hetcal.io.forests import check_codes, check_weight
from hetcal.io.silent import without_silent
from hetcal.io.spec import Spec, expect, in_range, is_array, is_number, is_whole, plain
from hetcal.io.specs_hybrid import FAMILY_SPECS, check_families
from hetcal.kernels.votes import Voters
from hetcal.similarity import BaseSimilarity

_MOST_FEATURES = 1_000_000
_MOST_LEVELS = 10_000_000
_SCALARS = (str, int, float, bool, type(None), np.generic)


def _check_classes(calibrator: Any) -> None:
    """Check what every calibrator has: classes in order, and what it was fitted with."""
    classes = calibrator.classes_
    expect(isinstance(classes, np.ndarray) and classes.ndim == 1, calibrator, "has no classes")
    expect(len(np.unique(classes)) == len(classes) >= 2, calibrator, "has fewer than two classes")


def _check_base(calibrator: BaseCalibrator) -> None:
    if not hasattr(calibrator, "classes_"):  # a bare map inside the hybrid
        return
    _check_classes(calibrator)
    expect(calibrator.input_kind_ in ("y_proba", "logits"), calibrator, "reads unknown input")
    floor = getattr(calibrator, "zero_floor_", None)
    expect(floor is None or is_number(floor, 0, 1), calibrator, "has a wrong zero_floor_")
    names = getattr(calibrator, "output_names_", None)
    named = isinstance(names, list) and all(isinstance(name, str) for name in names)
    expect(names is None or named, calibrator, "has wrong output names")


def _same_lengths(calibrator: Any, first: str, second: str, more: int) -> None:
    """Check two lists with an array per class, the second longer than the first by ``more``."""
    a, b, K = getattr(calibrator, first), getattr(calibrator, second), len(calibrator.classes_)
    lists = isinstance(a, list) and isinstance(b, list) and len(a) == len(b) == K
    expect(lists, calibrator, f"has not one of {first} and {second} per class")
    for x, y in zip(a, b, strict=True):
        fits = is_array(x, "f", (None,)) and is_array(y, "f", (len(x) + more,)) and len(y) > 0
        expect(fits, calibrator, f"has {first} and {second} that do not match")
        expect((np.diff(x) >= 0).all(), calibrator, f"has {first} out of order")


def _check_isotonic(calibrator: IsotonicCalibration) -> None:
    _check_base(calibrator)
    _check_classes(calibrator)
    _same_lengths(calibrator, "thresholds_", "levels_", 0)


def _check_histogram(calibrator: HistogramBinning) -> None:
    _check_base(calibrator)
    _check_classes(calibrator)
    _same_lengths(calibrator, "edges_", "levels_", 1)


def _check_scores(scores: Scores) -> None:
    shape = scores.proba.shape
    expect(is_array(scores.proba, "f", (None, None)), scores, "are no probabilities")
    expect(is_array(scores.log_proba, "f", shape), scores, "do not match their logarithms")


def _check_voters(voters: Voters) -> None:
    expect(is_whole(voters.n_classes, 1, 1 << 24), voters, "have no classes")
    check_codes(voters, voters.codes, len(voters.codes), voters.n_classes)
    check_weight(voters, voters.weight, len(voters.codes))


def _check_encoder(encoder: FeatureEncoder) -> None:
    n, levels = encoder.n_features_in_, encoder.levels_
    names: Any = encoder.feature_names_in_
    expect(is_whole(n, 1, _MOST_FEATURES), encoder, "has no features, or too many")
    named = is_array(names, "O", (n,)) and all(isinstance(name, str) for name in names)
    expect(names is None or named, encoder, "has wrong names")
    expect(isinstance(levels, dict), encoder, "has wrong levels")
    for column, values in levels.items():
        good = is_whole(column, 0, n - 1) and isinstance(values, list)
        expect(good and all(isinstance(v, _SCALARS) for v in values), encoder, "has wrong levels")
    width = n - len(levels) + sum(map(len, levels.values()))
    expect(width <= _MOST_LEVELS, encoder, "has too many levels")
    expect(encoder.fill_ is None or is_array(encoder.fill_, "f", (width,)), encoder, "fills wrong")


def _check_space(space: AugmentedSpace) -> None:
    expect(isinstance(space.encoder, FeatureEncoder), space, "has no encoder")
    expect(space.augment in AUGMENTATIONS, space, "adds something unknown")
    expect(space.features_ is None, space, "has a transformer")
    expect(is_whole(space.n_proba, 0, 1 << 24), space, "has wrong probabilities")
    for name in ("center_", "spread_"):
        value = getattr(space, name)
        good = is_number(value) or is_array(value, "f", (space.n_proba,))
        expect(good and np.isfinite(value).all(), space, f"has a wrong {name}")


def _check_similarity(calibrator: SimilarityCalibrator) -> None:
    _check_base(calibrator)
    calibrator._check_parameters()
    _check_classes(calibrator)
    K, voters, similarity = len(calibrator.classes_), calibrator.voters_, calibrator.similarity_
    expect(isinstance(voters, Voters) and voters.n_classes == K, calibrator, "has other voters")
    expect(isinstance(similarity, BaseSimilarity), calibrator, "has no similarity")
    expect(isinstance(calibrator.space_, AugmentedSpace), calibrator, "has no space")
    expect(isinstance(calibrator.scores_, Scores), calibrator, "has no scores")
    n = len(voters.codes)
    expect(similarity.n_items_ == n, calibrator, "has voters that are not its items")
    expect(calibrator.scores_.proba.shape == (n, K), calibrator, "has scores of other items")
    groups, honest = calibrator.groups_, calibrator._honest
    if groups is not None:
        check_codes(calibrator, groups, n, n)
    expect(honest is None or is_array(honest, "f", (n, K)), calibrator, "has no honest predictions")
    _check_honest_support(calibrator)
    Z = calibrator._Z_grouped
    expect(Z is None or Z.shape[0] == n, calibrator, "has other items in groups")
    hidden = calibrator.heterogeneity_
    if hidden is not None:
        fitted = isinstance(hidden, HiddenHeterogeneity) and hasattr(hidden, "_items")
        expect(fitted, calibrator, "has no heterogeneity")
        expect(hidden._items.P.shape[1] == K, calibrator, "has a heterogeneity of other classes")
    mass = getattr(similarity, "mass_", None)
    expect(mass is None or mass.n_classes == K, calibrator, "has leaf sums of other classes")


def _check_honest_support(calibrator: Any) -> None:
    stored = getattr(calibrator, "_honest_support", None)
    if stored is None:  # computed when it is asked for, or never
        return
    expect(isinstance(stored, tuple) and len(stored) == 2, calibrator, "has no honest support")
    values, n_trees = stored
    good = is_array(values, "f", (None,)) and np.isfinite(values).all() and (values >= 0).all()
    expect(good and len(values) > 0, calibrator, "has no honest support")
    counted = n_trees is None or is_array(n_trees, "i", (len(values),))
    expect(counted, calibrator, "has honest support by no trees")
    expect(n_trees is None or in_range(n_trees, 0, 1 << 31), calibrator, "has too many trees")


def _check_hybrid(calibrator: HybridCalibrator) -> None:
    _check_base(calibrator)
    _check_honest_support(calibrator)
    _check_classes(calibrator)
    expect(isinstance(calibrator.encoder_, FeatureEncoder), calibrator, "has no encoder")
    check_families(calibrator)
    expect(is_number(calibrator.share_, 0, 1), calibrator, "has a wrong share")
    expect(is_number(calibrator.inverse_temperature_, 0), calibrator, "has a wrong temperature")


def _check_preserving(calibrator: LabelPreserving) -> None:
    _check_base(calibrator)
    inner, K = calibrator.calibrator_, len(calibrator.classes_)
    expect(isinstance(inner, BaseCalibrator), calibrator, "has no calibrator")
    expect(isinstance(calibrator.calibrator, BaseCalibrator), calibrator, "has no calibrator")
    same = np.array_equal(inner.classes_, calibrator.classes_)
    expect(same, calibrator, "has a calibrator of other classes")
    check_codes(calibrator, calibrator.top_, len(calibrator.top_), K)


def _check_precomputed(reader: PrecomputedProba) -> None:
    _check_classes(reader)
    expect(reader.kind in ("proba", "logits"), reader, "reads unknown input")
    expect(is_whole(reader.n_features_in_, 1, _MOST_FEATURES), reader, "has no columns")
    for name in ("columns_", "feature_columns_"):
        places = getattr(reader, name)
        good = isinstance(places, list) and all(is_whole(j) for j in places)
        expect(good, reader, f"has wrong {name}")
        expect(in_range(np.array(places, dtype=np.int64), 0, reader.n_features_in_), reader, name)
    expect(len(reader.columns_) in (1, len(reader.classes_)), reader, "reads too few columns")


def _check_wrapper(classifier: LocallyCalibratedClassifier) -> None:
    _check_classes(classifier)
    inner = classifier.calibrator_
    expect(isinstance(classifier.estimator_, PrecomputedProba), classifier, "has no columns")
    expect(isinstance(inner, BaseCalibrator), classifier, "has no calibrator")
    same = np.array_equal(inner.classes_, classifier.classes_)
    expect(same, classifier, "has a calibrator of other classes")
    expect(classifier.features_ is None, classifier, "has a transformer")


def _wrapper_spec() -> Spec:
    spec = plain(LocallyCalibratedClassifier, check=_check_wrapper)

    def pack(classifier: LocallyCalibratedClassifier) -> dict[str, Any]:
        inner = type(classifier.estimator_).__name__
        if not isinstance(classifier.estimator_, PrecomputedProba) or classifier.features_:
            raise TypeError(
                "hetcal.save stores calibrators, not the classifier inside "
                f"LocallyCalibratedClassifier ({inner}) nor its transformer. Save "
                "classifier.calibrator_ and, after loading, pass it y_proba=model.predict_proba(X) "
                "(or logits=); store the model by its own means, e.g. skops.io.dump."
            )
        return spec.pack(classifier)

    return replace(spec, pack=pack)


def _without_caches(spec: Spec) -> Spec:
    """Take the features of grouped items along only while honest predictions still need them."""

    def pack(calibrator: SimilarityCalibrator) -> dict[str, Any]:
        state = spec.pack(calibrator)
        if state.get("_honest") is not None:
            if state.get("_Z_grouped") is not None:  # this needs them too
                calibrator.out_of_sample_support()
                state["_honest_support"] = calibrator._honest_support
            state["_Z_grouped"] = None
        return state

    return replace(spec, pack=pack)


def _similarity_spec(cls: type) -> Spec:
    spec = plain(
        cls,
        names=("_honest", "_honest_support", "_Z_grouped"),
        may_miss=("_Z_grouped",),
        check=_check_similarity,
    )
    return _without_caches(spec)


def _hybrid_spec(cls: type) -> Spec:
    unknown = ("reliance_on_model_",)
    spec = plain(cls, names=("_honest_support",), may_miss=unknown, check=_check_hybrid)

    def pack(calibrator: HybridCalibrator) -> dict[str, Any]:
        state = spec.pack(calibrator)
        if "families_" not in state:  # a setting, not fitted
            return state
        return state | {"families_": without_silent(calibrator)}

    return replace(spec, pack=pack)


_MAPS: list[type[GlobalCalibrator]] = [
    BetaCalibration,
    BiasCorrectedTemperatureScaling,
    PlattScaling,
    TemperatureScaling,
    Uncalibrated,
    VectorScaling,
]

SPECS = [
    *(plain(cls, check=_check_base) for cls in _MAPS),
    plain(IsotonicCalibration, check=_check_isotonic),
    plain(HistogramBinning, check=_check_histogram),
    _similarity_spec(SimilarityCalibrator),
    _similarity_spec(FeaturelessSimilarityCalibrator),
    _hybrid_spec(HybridCalibrator),
    _hybrid_spec(FeaturelessHybridCalibrator),
    _wrapper_spec(),
    plain(LabelPreserving, may_miss=("price_", "price_error_"), check=_check_preserving),
    plain(PrecomputedProba, names=("_flip",), check=_check_precomputed),
    plain(Scores, check=_check_scores),
    plain(Voters, check=_check_voters),
    plain(FeatureEncoder, check=_check_encoder),
    plain(
        AugmentedSpace,
        names=("encoder", "features_", "n_proba", "center_", "spread_"),
        check=_check_space,
    ),
    *FAMILY_SPECS,
]
