"""How the hybrid's experts are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.neighbors import NearestNeighbors

from hetcal._stored import expect
from hetcal._stored.checks import check_codes, check_weight
from hetcal._stored.fields import (
    LARGEST,
    MOST_CLASSES,
    flag,
    in_range,
    instance,
    integers,
    is_array,
    is_number,
    is_whole,
    number,
    numbers,
    one_of,
    optional,
    probabilities,
    text,
    whole,
)
from hetcal.calibration.base import BaseCalibrator, GlobalCalibrator
from hetcal.calibration.beta import BetaCalibration
from hetcal.calibration.hybrid.boosted_trees import BoostedTrees
from hetcal.calibration.hybrid.calibrator import HybridCalibrator
from hetcal.calibration.hybrid.families import Family, GlobalFamily
from hetcal.calibration.hybrid.forests import ForestVoteFamily, ProximityFamily
from hetcal.calibration.hybrid.kernel_machine import KernelFamily
from hetcal.calibration.hybrid.nearest import NeighbourFamily
from hetcal.calibration.hybrid.recalibration import Recalibration
from hetcal.calibration.hybrid.retrained import (
    BoostingFamily,
    CalibratorFamily,
    WideBoostingFamily,
)
from hetcal.calibration.hybrid.space import LogSpace
from hetcal.calibration.hybrid.zero_weight import ZeroWeightExperts
from hetcal.kernels.boosting import AdditiveTrees
from hetcal.kernels.forest import Forest, LeafMass, build_index
from hetcal.persistence.forests import check_mass
from hetcal.persistence.spec import Spec, plain
from hetcal.persistence.specs_similarity import leaves, with_packed_leaves


def check_families(calibrator: HybridCalibrator) -> None:
    """Check the experts of a hybrid against its classes and its columns."""
    families, K = calibrator.families_, len(calibrator.classes_)
    every = [*families, *getattr(calibrator, "bystanders_", [])]
    width = len(calibrator.encoder_.feature_names_out_)
    for family in every:
        expect(_n_classes(family) == K, calibrator, "has an expert for other classes")
        space = getattr(family, "space_", None)
        same = space is None or len(space.center_) == width + K * space.with_model
        expect(same, calibrator, "has an expert for other columns")
    base = calibrator.in_base_
    expect(len(base) == len(families) and any(base), calibrator, "has no global maps")
    mute = any(
        part and isinstance(f, ZeroWeightExperts) for part, f in zip(base, families, strict=True)
    )
    expect(not mute, calibrator, "has a global map that says nothing")
    voters = [f.codes_ for f in every if isinstance(f, ProximityFamily)]
    rows = calibrator.calibration_rows_
    expect(all(len(rows) == len(codes) for codes in voters), calibrator, "does not know its items")
    n_experts = sum(len(family.names) for family in families)
    expect(len(calibrator.weights_) == 1 + n_experts, calibrator, "has no weight per expert")


def _n_classes(family: Any) -> int:
    if isinstance(family, GlobalFamily):
        return len(family.map_.classes_)
    if isinstance(family, ForestVoteFamily):
        return family.mass_.n_classes
    if isinstance(family, NeighbourFamily):
        return family.onehot_.shape[1]
    if isinstance(family, KernelFamily):
        return family.coef_.shape[1]
    if isinstance(family, ZeroWeightExperts):
        return family.n_classes
    return family.n_classes_


def _check_forest(family: Any) -> None:
    same = family.forest_.n_features == len(family.space_.center_)
    expect(same, family, "has a forest of other columns")


def _check_votes(family: ForestVoteFamily) -> None:
    _check_forest(family)
    check_mass(family, family.mass_, family.forest_.n_leaves, family.mass_.n_classes)
    frequencies = probabilities(*family.mass_.values.shape)(family.mass_.values)
    expect(frequencies, family, "has leaves with no frequencies")


def _check_proximity(family: ProximityFamily) -> None:
    _check_forest(family)
    n = len(family.leaves_)
    check_codes(family, family.codes_, n, family.n_classes_)
    check_weight(family, family.weight_, n)


def _check_neighbours(family: NeighbourFamily) -> None:
    n, width = family.index_._fit_X.shape
    expect(len(family.onehot_) == n, family, "does not have one label per item")
    expect(width == len(family.space_.center_), family, "has items of other columns")


def _check_boosting(family: BoostingFamily) -> None:
    trees = family.fitted_
    if trees is None:  # all items were of one class
        return
    expect(in_range(trees.classes_, 0, family.n_classes_), family, "has odd classes")
    known: Any = getattr(family, "known_", None)
    expect(hasattr(family, "space_"), family, "has no space")
    expect(is_array(known, "b", (len(family.space_.center_),)), family, "does not know its columns")
    expect(int(known.sum()) == trees.n_features, family, "has trees of other columns")


def _check_wide_boosting(family: WideBoostingFamily) -> None:
    trees = family.fitted_
    if trees is None:  # all items were of one class
        return
    expect(hasattr(family, "space_"), family, "has no space")
    expect(in_range(trees.classes_, 0, family.n_classes_), family, "has odd classes")
    expect(in_range(trees.column, 0, len(family.space_.center_)), family, "has other columns")


def _check_calibrator(family: CalibratorFamily) -> None:
    inner = family.fitted_
    if inner is not None:
        expect(len(inner.classes_) == family.n_classes_, family, "has other classes")
        expect(inner.input_kind_ == family.kind, family, "has a calibrator of other input")


def _check_kernel(family: KernelFamily) -> None:
    landmarks = family.landmarks_
    expect(landmarks.shape[1] == len(family.space_.center_), family, "has items of other columns")
    expect(len(family.coef_) == len(landmarks), family, "has wrong coefficients")
    K = family.coef_.shape[1]
    if family.with_model:
        start = hasattr(family, "map_") and len(family.map_.map_.classes_) == K
    else:
        start = hasattr(family, "frequencies_") and len(family.frequencies_) == K
    expect(start, family, "does not know where to start")


def _check_log_space(space: LogSpace) -> None:
    expect(len(space.spread_) == len(space.center_), space, "has a wrong spread_")


def _index(family: ProximityFamily) -> None:
    family.index_ = build_index(family.forest_.n_leaves, family.leaves_)


def _without_bags(spec: Spec) -> Spec:
    """Leave out which tree has seen which item: only the fit asks for it."""

    def pack(family: Any) -> dict[str, Any]:
        return spec.pack(family) | {"forest_": replace(family.forest_, in_bag=None)}

    return replace(spec, pack=pack)


def _powers(value: Any) -> bool:
    good = isinstance(value, tuple | list) and 0 < len(value) <= 64
    return good and all(is_number(power, 0, 1000) for power in value)


def _votes(value: Any) -> bool:
    good = isinstance(value, tuple | list) and 0 < len(value) <= 64
    return good and all(
        isinstance(vote, tuple | list)
        and len(vote) == 2
        and is_whole(vote[0], 1)
        and is_number(vote[1], 0, 1000)
        for vote in value
    )


def _histogram_bytes(state: dict[str, Any]) -> int:
    """Return what counting the shared leaves by class takes."""
    forest = state.get("forest_")
    trees = forest.n_trees if isinstance(forest, Forest) else 0
    return 8 * (trees + 1) * int(state.get("n_classes_", 0))


#: What a hybrid may hold as experts.
EXPERTS = instance(Family)
_SPACE = instance(LogSpace, "center_")
_CLASSES = whole(2, MOST_CLASSES)
_FOREST = {"with_model": flag, "space_": _SPACE, "forest_": instance(Forest)}
_PROXIMITY = plain(
    ProximityFamily,
    _FOREST
    | {
        "powers": _powers,
        "leaves_": leaves,
        "codes_": integers(None, low=0, high=MOST_CLASSES),
        "weight_": numbers(None, low=0.0),
        "n_classes_": _CLASSES,
    },
    derived={"index_": None},
    finish=_index,
    check=_check_proximity,
    needs=_histogram_bytes,
)
_VOTES = plain(
    ForestVoteFamily,
    _FOREST | {"mass_": instance(LeafMass)},
    derived={"leaves_": None},
    check=_check_votes,
)
_RETRAINED = {"n_classes_": _CLASSES, "space_": _SPACE}

FAMILY_SPECS = [
    plain(
        GlobalFamily,
        {
            "name": text,
            "calibrator": instance(GlobalCalibrator),
            "in_base": flag,
            "may_join_base": flag,
            "map_": instance(GlobalCalibrator, "classes_", "input_kind_"),
        },
    ),
    _without_bags(with_packed_leaves(_PROXIMITY)),
    _without_bags(_VOTES),
    plain(
        NeighbourFamily,
        {
            "votes": _votes,
            "logs": flag,
            "space_": _SPACE,
            "index_": instance(NearestNeighbors),
            "onehot_": numbers(None, None, low=0.0),
        },
        check=_check_neighbours,
    ),
    plain(
        BoostingFamily,
        _RETRAINED
        | {
            "fitted_": optional(instance(BoostedTrees)),
            "name": text,
            "known_": lambda value: is_array(value, "b", (None,)),
        },
        may_lack=("space_", "known_"),
        check=_check_boosting,
    ),
    plain(
        WideBoostingFamily,
        _RETRAINED | {"with_model": flag, "fitted_": optional(instance(AdditiveTrees))},
        may_lack=("space_",),
        check=_check_wide_boosting,
    ),
    plain(
        KernelFamily,
        {
            "with_model": flag,
            "space_": _SPACE,
            "width_": number(0, LARGEST),
            "landmarks_": numbers(None, None),
            "coef_": numbers(None, None),
            "map_": instance(GlobalFamily, "map_"),
            "frequencies_": probabilities(None),
        },
        may_lack=("map_", "frequencies_"),
        derived={"left_out_": None},
        check=_check_kernel,
    ),
    plain(
        CalibratorFamily,
        {
            "name": text,
            "calibrator": instance(BaseCalibrator),
            "kind": one_of("y_proba", "logits"),
            "n_classes_": _CLASSES,
            "fitted_": optional(instance(BaseCalibrator, "classes_")),
        },
        check=_check_calibrator,
    ),
    plain(
        Recalibration,
        {
            "inverse_temperature_": number(0, LARGEST),
            "beta_": optional(instance(BetaCalibration, "coef_", "intercept_")),
        },
    ),
    plain(
        LogSpace,
        {
            "logs": flag,
            "with_model": flag,
            "metric": flag,
            "center_": numbers(None),
            "spread_": numbers(None, low=1 / LARGEST),
        },
        check=_check_log_space,
    ),
]
