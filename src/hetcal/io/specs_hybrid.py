"""How the hybrid's experts are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hetcal.calibration.base import BaseCalibrator, GlobalCalibrator
from hetcal.calibration.beta import BetaCalibration
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
from hetcal.io.boosting import BoostedTrees
from hetcal.io.forests import check_codes, check_mass, check_weight
from hetcal.io.silent import SilentFamily
from hetcal.io.spec import Spec, expect, in_range, is_array, is_number, is_whole, plain
from hetcal.io.specs_similarity import with_packed_leaves
from hetcal.kernels.boosting import AdditiveTrees
from hetcal.kernels.forest import Forest, build_index


def check_families(calibrator: HybridCalibrator) -> None:
    """Check the experts of a hybrid against its classes."""
    families, K = calibrator.families_, len(calibrator.classes_)
    bystanders = getattr(calibrator, "bystanders_", [])
    expect(
        isinstance(families, list) and isinstance(bystanders, list), calibrator, "has no experts"
    )
    for family in families + bystanders:
        expect(isinstance(family, Family), calibrator, "has an expert that is none")
        expect(_n_classes(family) == K, calibrator, "has an expert for other classes")
    base = calibrator.in_base_
    good = isinstance(base, list) and len(base) == len(families) and any(base)
    expect(good, calibrator, "has no global maps")
    mute = any(part and isinstance(f, SilentFamily) for part, f in zip(base, families, strict=True))
    expect(not mute, calibrator, "has a global map that says nothing")
    rows = calibrator.calibration_rows_
    voters = [f.codes_ for f in families + bystanders if isinstance(f, ProximityFamily)]
    good = is_array(rows, "i", (None,)) and all(len(rows) == len(codes) for codes in voters)
    expect(good, calibrator, "does not know its items")
    weights = calibrator.weights_
    expect(is_array(weights, "f", (None,)), calibrator, "has no weights")
    expect((weights >= 0).all() and (weights <= 1 + 1e-9).all(), calibrator, "has wrong weights")


def _n_classes(family: Any) -> int:
    if isinstance(family, GlobalFamily):
        return len(family.map_.classes_)
    if isinstance(family, ForestVoteFamily):
        return family.mass_.n_classes
    if isinstance(family, NeighbourFamily):
        return family.onehot_.shape[1]
    if isinstance(family, KernelFamily):
        return family.coef_.shape[1]
    if isinstance(family, SilentFamily):
        return family.n_classes
    return family.n_classes_


def _check_global(family: GlobalFamily) -> None:
    expect(isinstance(family.map_, GlobalCalibrator), family, "has no map")
    expect(isinstance(family.name, str), family, "has no name")


def _check_forest(family: Any) -> None:
    expect(isinstance(family.forest_, Forest), family, "has no forest")
    expect(isinstance(family.space_, LogSpace), family, "has no space")


def _check_votes(family: ForestVoteFamily) -> None:
    _check_forest(family)
    check_mass(family, family.mass_, family.forest_.n_leaves, family.mass_.n_classes)


def _check_proximity(family: ProximityFamily) -> None:
    _check_forest(family)
    n = len(family.leaves_)
    expect(is_whole(family.n_classes_, 1, 1 << 24), family, "has no classes")
    check_codes(family, family.codes_, n, family.n_classes_)
    expect(family.weight_ is not None, family, "has no weights")
    check_weight(family, family.weight_, n)
    powers = family.powers
    good = isinstance(powers, tuple | list) and 0 < len(powers) <= 64
    expect(good and all(is_number(p, 0, 1000) for p in powers), family, "has wrong powers")


def _check_neighbours(family: NeighbourFamily) -> None:
    expect(isinstance(family.space_, LogSpace), family, "has no space")
    votes = family.votes
    good = isinstance(votes, tuple | list) and 0 < len(votes) <= 64
    expect(good, family, "has no neighbours")
    for k, power in votes:
        expect(is_whole(k, 1) and is_number(power, 0, 1000), family, "has wrong neighbours")
    n = family.index_.n_samples_fit_
    expect(is_array(family.onehot_, "f", (n, None)), family, "does not have one label per item")


def _check_boosting(family: BoostingFamily) -> None:
    trees = family.fitted_
    expect(is_whole(family.n_classes_, 2, 1 << 24), family, "has no classes")
    if trees is None:  # all items were of one class
        return
    expect(isinstance(family.space_, LogSpace), family, "has no space")
    expect(isinstance(trees, BoostedTrees), family, "has no trees")
    expect(in_range(trees.classes_, 0, family.n_classes_), family, "has odd classes")
    known = family.known_
    expect(is_array(known, "b", (None,)), family, "does not know its columns")
    expect(int(known.sum()) == trees.n_features, family, "has trees of other columns")


def _check_wide_boosting(family: WideBoostingFamily) -> None:
    expect(is_whole(family.n_classes_, 2, 1 << 24), family, "has no classes")
    trees = family.fitted_
    if trees is None:  # all items were of one class
        return
    expect(isinstance(family.space_, LogSpace), family, "has no space")
    expect(isinstance(trees, AdditiveTrees), family, "has no trees")
    expect(in_range(trees.classes_, 0, family.n_classes_), family, "has odd classes")
    expect(in_range(trees.column, 0, len(family.space_.center_)), family, "has other columns")


def _check_calibrator(family: CalibratorFamily) -> None:
    expect(family.kind in ("y_proba", "logits"), family, "reads unknown input")
    expect(is_whole(family.n_classes_, 2, 1 << 24), family, "has no classes")
    inner = family.fitted_
    if inner is not None:
        expect(isinstance(inner, BaseCalibrator), family, "has no calibrator")
        expect(len(inner.classes_) == family.n_classes_, family, "has other classes")


def _check_kernel(family: KernelFamily) -> None:
    expect(isinstance(family.space_, LogSpace), family, "has no space")
    expect(is_number(family.width_, 0), family, "has a wrong width")
    landmarks = family.landmarks_
    expect(is_array(landmarks, "f", (None, len(family.space_.center_))), family, "has no items")
    expect(is_array(family.coef_, "f", (len(landmarks), None)), family, "has wrong coefficients")
    K = family.coef_.shape[1]
    if family.with_model:
        start = isinstance(family.map_, GlobalFamily) and len(family.map_.map_.classes_) == K
    else:
        start = is_array(family.frequencies_, "f", (K,))
    expect(start, family, "does not know where to start")


def _check_log_space(space: LogSpace) -> None:
    for name in ("center_", "spread_"):
        value = getattr(space, name)
        good = is_array(value, "f", (len(space.center_),)) and np.isfinite(value).all()
        expect(good, space, f"has a wrong {name}")


def _check_recalibration(last: Recalibration) -> None:
    expect(is_number(last.inverse_temperature_, 0), last, "has a wrong temperature")
    expect(last.beta_ is None or isinstance(last.beta_, BetaCalibration), last, "has no beta map")


def _index(family: ProximityFamily) -> None:
    family.index_ = build_index(family.forest_.n_leaves, family.leaves_)


def _without_bags(spec: Spec) -> Spec:
    """Leave out which tree has seen which item: only the fit asks for it."""

    def pack(family: Any) -> dict[str, Any]:
        return spec.pack(family) | {"forest_": replace(family.forest_, in_bag=None)}

    return replace(spec, pack=pack)


_PROXIMITY = plain(ProximityFamily, derived={"index_": None}, finish=_index, check=_check_proximity)
_VOTES = plain(ForestVoteFamily, derived={"leaves_": None}, check=_check_votes)

FAMILY_SPECS = [
    plain(GlobalFamily, check=_check_global),
    _without_bags(with_packed_leaves(_PROXIMITY)),
    _without_bags(_VOTES),
    plain(NeighbourFamily, check=_check_neighbours),
    plain(BoostingFamily, check=_check_boosting),
    plain(WideBoostingFamily, check=_check_wide_boosting),
    plain(KernelFamily, derived={"left_out_": None}, check=_check_kernel),
    plain(CalibratorFamily, check=_check_calibrator),
    plain(Recalibration, check=_check_recalibration),
    plain(LogSpace, names=("center_", "spread_"), check=_check_log_space),
]
