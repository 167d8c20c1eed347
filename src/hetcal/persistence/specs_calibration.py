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
    column_names,
    either,
    flag,
    in_range,
    instance,
    integers,
    is_array,
    is_whole,
    list_of,
    matrix,
    number,
    numbers,
    one_of,
    optional,
    probabilities,
    table,
    text,
    whole,
)
from hetcal._validation import FeatureEncoder
from hetcal.calibration import (
    HybridCalibrator,
    SimilarityCalibrator,
)
from hetcal.calibration.augment import AugmentedSpace
from hetcal.calibration.base import STORED, BaseCalibrator
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


def _check_similarity(calibrator: SimilarityCalibrator) -> None:
    BaseCalibrator._check_restored(calibrator)
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
    BaseCalibrator._check_restored(calibrator)
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


_COLUMNS = {"n_features_in_": whole(1, _MOST_FEATURES)}


def _calibrator(cls: type, fields: dict[str, Field], **options: Any) -> Spec:
    lacking = ("zero_floor_", *options.pop("may_lack", ()))
    return plain(cls, STORED | fields, may_lack=lacking, **options)


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
            "feature_names_in_": column_names,
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
    _similarity_spec(SimilarityCalibrator),
    _similarity_spec(FeaturelessSimilarityCalibrator),
    _hybrid_spec(HybridCalibrator),
    _hybrid_spec(FeaturelessHybridCalibrator),
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
            "feature_names_in_": optional(column_names),
            "levels_": instance(dict),
            "fill_": optional(numbers(None)),
        },
        check=_check_encoder,
    ),
    *FAMILY_SPECS,
]
