"""How calibrators and their parts are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hetcal._stored import expect
from hetcal._stored.checks import check_codes, check_weight
from hetcal._stored.fields import (
    LARGEST,
    MOST_CLASSES,
    Field,
    either,
    flag,
    in_range,
    instance,
    integers,
    is_array,
    is_whole,
    labels,
    list_of,
    matrix,
    number,
    numbers,
    one_of,
    optional,
    probabilities,
    rising,
    setting,
    table,
    text,
    whole,
)
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
from hetcal.calibration.base import BaseCalibrator
from hetcal.calibration.featureless import (
    FeaturelessHybridCalibrator,
    FeaturelessSimilarityCalibrator,
)
from hetcal.calibration.hybrid.families import Family
from hetcal.calibration.hybrid.recalibration import Recalibration
from hetcal.calibration.hybrid.zero_weight import without_zero_weight
from hetcal.data import Scores
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.kernels._backend import native
from hetcal.kernels.votes import Voters
from hetcal.persistence.spec import Spec, plain
from hetcal.persistence.specs_hybrid import EXPERTS, FAMILY_SPECS, check_families
from hetcal.persistence.specs_similarity import width_of
from hetcal.similarity import BaseSimilarity

_MOST_FEATURES = 1_000_000
_MOST_LEVELS = 10_000_000
# A table is predicted column by column, and loading a file predicts once.
_MOST_TABLE_COLUMNS = 50_000
_SCALARS = (str, int, float, bool, type(None), np.generic)
_ITEMS = 1 << 40


def _check_base(calibrator: BaseCalibrator) -> None:
    """Check what calibrators know of the classifier's output; a map inside the hybrid, little."""
    names = getattr(calibrator, "output_names_", None)
    named = names is None or len(names) == len(calibrator.classes_)
    expect(named, calibrator, "has names of other output")


def _check_map(*names: str, sets: bool = False) -> Any:
    """Return a check that maps have a coefficient per class (``sets``: one set for two classes)."""

    def check(calibrator: Any) -> None:
        _check_base(calibrator)
        n = len(getattr(calibrator, names[0]))
        if hasattr(calibrator, "classes_"):
            K = len(calibrator.classes_)
            expect(n == (1 if sets and K == 2 else K), calibrator, "has coefficients of others")
        expect(all(len(getattr(calibrator, name)) == n for name in names), calibrator, "is uneven")

    return check


def _check_steps(first: str, more: int) -> Any:
    """Return a check of two arrays per class, the levels longer than the first by ``more``."""

    def check(calibrator: Any) -> None:
        _check_base(calibrator)
        places, levels, K = getattr(calibrator, first), calibrator.levels_, len(calibrator.classes_)
        expect(len(places) == len(levels) == K, calibrator, f"has not one of {first} per class")
        for x, y in zip(places, levels, strict=True):
            expect(len(y) == len(x) + more and len(y) > 0, calibrator, f"has odd {first}")
            expect(rising(x, strictly=True), calibrator, f"has {first} out of order")

    return check


def _check_scores(scores: Scores) -> None:
    expect(scores.proba.shape == scores.log_proba.shape, scores, "do not match their logarithms")


def _check_voters(voters: Voters) -> None:
    check_codes(voters, voters.codes, len(voters.codes), voters.n_classes)
    check_weight(voters, voters.weight, len(voters.codes))


def _check_encoder(encoder: FeatureEncoder) -> None:
    n, levels = encoder.n_features_in_, encoder.levels_
    names: Any = encoder.feature_names_in_
    named = is_array(names, "O", (n,)) and all(isinstance(name, str) for name in names)
    expect(names is None or named, encoder, "has wrong names")
    for column, values in levels.items():
        good = is_whole(column, 0, n - 1) and isinstance(values, list)
        expect(good and all(isinstance(v, _SCALARS) for v in values), encoder, "has wrong levels")
    expect(not levels or n <= _MOST_TABLE_COLUMNS, encoder, "has too many columns")
    width = n - len(levels) + sum(map(len, levels.values()))
    expect(0 < width <= _MOST_LEVELS, encoder, "has too many levels")
    fills = encoder.fill_ is None or len(encoder.fill_) == width
    expect(fills, encoder, "fills wrong")


def _check_space(space: AugmentedSpace) -> None:
    for name in ("center_", "spread_"):
        value = getattr(space, name)
        same = not isinstance(value, np.ndarray) or len(value) == space.n_proba
        expect(same, space, f"has a wrong {name}")


def _check_similarity(calibrator: SimilarityCalibrator) -> None:
    _check_base(calibrator)
    calibrator._check_parameters()
    K, voters, similarity = len(calibrator.classes_), calibrator.voters_, calibrator.similarity_
    space = calibrator.space_
    expect(voters.n_classes == K, calibrator, "has other voters")
    n = len(voters.codes)
    expect(similarity.n_items_ == n, calibrator, "has voters that are not its items")
    expect(calibrator.scores_.proba.shape == (n, K), calibrator, "has scores of other items")
    added = 0 if space.augment is None else K
    expect(space.n_proba == added, calibrator, "adds other probabilities")
    width = len(space.encoder.feature_names_out_) + added
    expect(width_of(similarity) == width, calibrator, "compares other columns")
    same = calibrator.n_features_in_ == space.encoder.n_features_in_
    expect(same, calibrator, "reads other columns")
    if calibrator.groups_ is not None:
        check_codes(calibrator, calibrator.groups_, n, n)
    honest, Z = calibrator._honest, calibrator._Z_grouped
    expect(honest is None or honest.shape == (n, K), calibrator, "has no honest predictions")
    _check_honest_support(calibrator, n)
    expect(Z is None or Z.shape == (n, width), calibrator, "has other items in groups")
    hidden = calibrator.heterogeneity_
    if hidden is not None:
        expect(hidden._items.P.shape[1] == K, calibrator, "has a heterogeneity of other classes")
    mass = getattr(similarity, "mass_", None)
    expect(mass is None or mass.n_classes == K, calibrator, "has leaf sums of other classes")


def _check_honest_support(calibrator: Any, n_items: int | None = None) -> None:
    stored = getattr(calibrator, "_honest_support", None)
    if stored is not None and n_items is not None:
        expect(len(stored[0]) == n_items, calibrator, "has honest support of other items")


def _honest_support(value: Any) -> bool:
    if not (isinstance(value, tuple) and len(value) == 2):
        return False
    support, n_trees = value
    n = np.size(support)
    counted = n_trees is None or integers(n, low=0, high=1 << 31)(n_trees)
    return n > 0 and numbers(n, low=0.0)(support) and counted


def _check_hybrid(calibrator: HybridCalibrator) -> None:
    _check_base(calibrator)
    _check_honest_support(calibrator, len(calibrator.calibration_rows_))
    check_families(calibrator)
    said, K = calibrator.out_of_sample_proba_, len(calibrator.classes_)
    expect(said.shape[1] == K, calibrator, "has honest predictions of other classes")
    expect(in_range(calibrator.calibration_rows_, 0, len(said)), calibrator, "has odd rows")
    beta = calibrator.recalibration_.beta_
    same = beta is None or len(beta.coef_) == (1 if K == 2 else K)
    expect(same, calibrator, "has a last map of other classes")


def _experts(value: Any) -> bool:
    listed = value if isinstance(value, list | tuple) else [value]
    return all(map(either(text, instance((BaseCalibrator, Family))), listed))


def _check_preserving(calibrator: LabelPreserving) -> None:
    _check_base(calibrator)
    inner = calibrator.calibrator_
    same = np.array_equal(inner.classes_, calibrator.classes_)
    expect(same, calibrator, "has a calibrator of other classes")
    expect(inner.input_kind_ == calibrator.input_kind_, calibrator, "reads other input")
    expect(in_range(calibrator.top_, 0, len(calibrator.classes_)), calibrator, "has odd labels")


def _check_precomputed(reader: PrecomputedProba) -> None:
    for name in ("columns_", "feature_columns_"):
        places = np.array(getattr(reader, name), dtype=np.int64)
        expect(in_range(places, 0, reader.n_features_in_), reader, f"has wrong {name}")
    expect(len(reader.columns_) in (1, len(reader.classes_)), reader, "reads too few columns")


def _check_wrapper(classifier: LocallyCalibratedClassifier) -> None:
    same = np.array_equal(classifier.calibrator_.classes_, classifier.classes_)
    expect(same, classifier, "has a calibrator of other classes")
    same = np.array_equal(classifier.estimator_.classes_, classifier.classes_)
    expect(same, classifier, "reads other classes")
    same = classifier.n_features_in_ == classifier.estimator_.n_features_in_
    expect(same, classifier, "reads other columns")


def _column_names(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object and all(map(text, value))


def _vote_bytes(state: dict[str, Any]) -> int:
    """Return what a first vote takes: labels as a matrix, leaf sums, shared leaves by class."""
    voters, similarity = state.get("voters_"), state.get("similarity_")
    if not isinstance(voters, Voters):
        return 0
    n, K = len(voters.codes), voters.n_classes
    forest = getattr(similarity, "forest_", None)
    if forest is None:
        return 8 * n * K
    sums = 0 if K <= 4 else 28 * min(n * forest.n_trees, forest.n_leaves * K)
    return 8 * K * (forest.n_trees + 1) + sums + (8 * n * K if native() is None else 0)


_PLACES = list_of(lambda value: is_whole(value, 0, _MOST_FEATURES))
_NAMES = optional(list_of(text))
_COLUMNS = {"n_features_in_": whole(1, _MOST_FEATURES)}
_BASE: dict[str, Field] = {
    "classes_": labels,
    "input_kind_": one_of("y_proba", "logits"),
    "output_names_": _NAMES,
    "zero_floor_": number(1e-300, 1),
}
_STEPS = {"levels_": list_of(probabilities(None))}
_COEFFICIENTS = numbers(None)
_CALIBRATOR = instance(BaseCalibrator, "classes_", "input_kind_")


def _map(cls: type, fields: dict[str, Field], check: Any) -> Spec:
    return plain(cls, _BASE | fields, may_lack=tuple(_BASE), check=check)


def _calibrator(cls: type, fields: dict[str, Field], **options: Any) -> Spec:
    lacking = ("zero_floor_", *options.pop("may_lack", ()))
    return plain(cls, _BASE | fields, may_lack=lacking, **options)


def _wrapper_spec() -> Spec:
    spec = plain(
        LocallyCalibratedClassifier,
        _COLUMNS
        | {
            "estimator": either(setting, instance(PrecomputedProba)),
            "calibrator": either(setting, instance(BaseCalibrator)),
            "features": one_of(None),
            "features_": one_of(None),
            "classes_": labels,
            "estimator_": instance(PrecomputedProba, "classes_"),
            "calibrator_": _CALIBRATOR,
            "calibration_rows_": integers(None, low=0, high=_ITEMS),
            "out_of_fold_output_": numbers(None, None),
            "output_kind_": one_of("y_proba", "logits"),
            "feature_names_in_": _column_names,
        },
        may_lack=("feature_names_in_",),
        check=_check_wrapper,
    )

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
    spec = _calibrator(
        cls,
        _COLUMNS
        | {
            "similarity": either(text, instance(BaseSimilarity)),
            "heterogeneity": optional(instance(HiddenHeterogeneity)),
            "features": one_of(None),
            "similarity_": instance(BaseSimilarity),
            "heterogeneity_": optional(instance(HiddenHeterogeneity, "_items")),
            "space_": instance(AugmentedSpace, "n_proba"),
            "voters_": instance(Voters),
            "scores_": instance(Scores),
            "groups_": optional(integers(None, low=0, high=_ITEMS)),
            "feature_names_in_": _column_names,
            "features_forgotten_": flag,
            "_honest": optional(probabilities(None, None)),
            "_honest_support": optional(_honest_support),
            "_Z_grouped": optional(either(matrix, instance(np.ndarray))),
        },
        may_lack=("feature_names_in_", "features_forgotten_", "_honest_support"),
        check=_check_similarity,
        needs=_vote_bytes,
    )
    return _without_caches(spec)


def _hybrid_spec(cls: type) -> Spec:
    spec = _calibrator(
        cls,
        _COLUMNS
        | {
            "experts": _experts,
            "encoder_": instance(FeatureEncoder),
            "families_": list_of(EXPERTS, 1000),
            "bystanders_": list_of(EXPERTS, 1000),
            "in_base_": list_of(flag),
            "calibration_rows_": integers(None, low=0, high=_ITEMS),
            "experts_": table,
            "weights_": probabilities(None),
            "share_": number(0, 1),
            "inverse_temperature_": number(0, LARGEST),
            "recalibration_": instance(Recalibration, "beta_"),
            "reliance_on_model_": number(may_miss=True),
            "out_of_sample_proba_": probabilities(None, None),
            "features_forgotten_": flag,
            "_honest_support": optional(_honest_support),
        },
        may_lack=("bystanders_", "features_forgotten_", "_honest_support"),
        check=_check_hybrid,
    )

    def pack(calibrator: HybridCalibrator) -> dict[str, Any]:
        state = spec.pack(calibrator)
        if "families_" not in state:  # a setting, not fitted
            return state
        return state | {"families_": without_zero_weight(calibrator)}

    return replace(spec, pack=pack)


SPECS = [
    _map(Uncalibrated, {}, _check_base),
    _map(TemperatureScaling, {"inverse_temperature_": number(0, LARGEST)}, _check_base),
    _map(
        BiasCorrectedTemperatureScaling,
        {"scale_": number(), "bias_": _COEFFICIENTS},
        _check_map("bias_"),
    ),
    _map(
        VectorScaling,
        {"scale_": _COEFFICIENTS, "bias_": _COEFFICIENTS},
        _check_map("scale_", "bias_"),
    ),
    _map(
        PlattScaling,
        {"slope_": _COEFFICIENTS, "intercept_": _COEFFICIENTS},
        _check_map("slope_", "intercept_", sets=True),
    ),
    _map(
        BetaCalibration,
        {"coef_": numbers(None, 2), "intercept_": _COEFFICIENTS},
        _check_map("coef_", "intercept_", sets=True),
    ),
    _map(
        IsotonicCalibration,
        _STEPS | {"thresholds_": list_of(_COEFFICIENTS)},
        _check_steps("thresholds_", 0),
    ),
    _map(
        HistogramBinning,
        _STEPS | {"edges_": list_of(_COEFFICIENTS), "normalize": flag},
        _check_steps("edges_", 1),
    ),
    _similarity_spec(SimilarityCalibrator),
    _similarity_spec(FeaturelessSimilarityCalibrator),
    _hybrid_spec(HybridCalibrator),
    _hybrid_spec(FeaturelessHybridCalibrator),
    _wrapper_spec(),
    _calibrator(
        LabelPreserving,
        {
            "calibrator": instance(BaseCalibrator),
            "calibrator_": _CALIBRATOR,
            "top_": integers(None, low=0, high=MOST_CLASSES),
            "changed_": number(0, 1 + 1e-9),
            "price_": number(may_miss=True),
            "price_error_": number(may_miss=True),
        },
        check=_check_preserving,
    ),
    plain(
        PrecomputedProba,
        _COLUMNS
        | {
            "kind": one_of("proba", "logits"),
            "classes_": labels,
            "columns_": _PLACES,
            "feature_columns_": _PLACES,
            "feature_names_in_": _column_names,
            "_flip": flag,
        },
        may_lack=("feature_names_in_",),
        check=_check_precomputed,
    ),
    plain(
        Scores,
        {
            "proba": probabilities(None, None),
            "log_proba": numbers(None, None, low=-np.finfo(float).max, high=1e-6),
        },
        check=_check_scores,
    ),
    plain(
        Voters,
        {
            "codes": integers(None, low=0, high=MOST_CLASSES),
            "n_classes": whole(2, MOST_CLASSES),
            "weight": optional(numbers(None, low=0.0)),
        },
        check=_check_voters,
    ),
    plain(
        FeatureEncoder,
        _COLUMNS
        | {
            "missing": one_of("keep", "impute"),
            "allow_sparse": flag,
            "max_levels": whole(0, 1 << 62),
            "feature_names_in_": optional(_column_names),
            "levels_": instance(dict),
            "fill_": optional(numbers(None)),
        },
        check=_check_encoder,
    ),
    plain(
        AugmentedSpace,
        {
            "features": one_of(None),
            "features_": one_of(None),
            "augment": one_of(*AUGMENTATIONS),
            "encoder": instance(FeatureEncoder),
            "n_proba": whole(0, MOST_CLASSES),
            "center_": either(number(), numbers(None)),
            "spread_": either(number(1 / LARGEST), numbers(None, low=1 / LARGEST)),
        },
        check=_check_space,
    ),
    *FAMILY_SPECS,
]
