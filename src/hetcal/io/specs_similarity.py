"""How similarities are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from hetcal.io.featureless import LeafSums
from hetcal.io.forests import check_mass, pack_leaves, unpack_leaves
from hetcal.io.spec import Spec, expect, is_array, is_number, is_whole, plain
from hetcal.kernels.forest import Forest
from hetcal.similarity import (
    BaseSimilarity,
    CombinedSimilarity,
    CosineSimilarity,
    EuclideanSimilarity,
    ForestProximity,
    IsolationProximity,
    PrecomputedSimilarity,
    RBFSimilarity,
)

_LEAF_CACHES = {"_index": None, "_unbiased_index": None, "_sums": None}
_SCALER = ("mean_", "var_", "scale_", "n_samples_seen_", "n_features_in_")


def with_packed_leaves(spec: Spec) -> Spec:
    """Let a class with ``forest_`` and ``leaves_`` store the leaves tree by tree."""

    def pack(value: Any) -> dict[str, Any]:
        state = spec.pack(value)
        if "leaves_" not in state:  # a setting, not fitted
            return state
        return state | {"leaves_": pack_leaves(value.forest_, value.leaves_)}

    def unpack(state: dict[str, Any]) -> Any:
        if "leaves_" not in state:
            return spec.unpack(state)
        forest = state["forest_"]
        expect(isinstance(forest, Forest), spec.cls, "has no forest")
        leaves = unpack_leaves(spec.cls, forest, state["leaves_"])
        in_bag = forest.in_bag
        expect(in_bag is None or in_bag.shape[1] == len(leaves), spec.cls, "has a wrong in_bag")
        return spec.unpack(state | {"leaves_": leaves})

    return Spec(spec.cls, pack, unpack)


def _check_proximity(similarity: ForestProximity) -> None:
    known = similarity.voters in ("all", "out-of-bag") and similarity.trees in ("random", "extra")
    expect(known, similarity, "has unknown settings")
    counted = similarity.voters == "all" or similarity.forest_.in_bag is not None
    expect(counted, similarity, "does not know who is out of bag")


def _remember(similarity: Any) -> None:
    _check_matrix(similarity)
    similarity._remember(similarity.Z_)


def _check_matrix(similarity: Any) -> None:
    Z = similarity.Z_
    if sparse.issparse(Z):
        good = bool(np.isfinite(Z.data).all())
    else:
        good = is_array(Z, "f", (None, None)) and len(Z) > 0 and bool(np.isfinite(Z).all())
    expect(good, similarity, "has no finite calibration items")
    scaler = getattr(similarity, "scaler_", None)
    expect(scaler is None or isinstance(scaler, StandardScaler), similarity, "has no scale")


def _check_euclidean(similarity: EuclideanSimilarity) -> None:
    expect(similarity.duplicates in ("floor", "paper"), similarity, "has unknown duplicates")
    expect(is_number(similarity.floor_, 0), similarity, "has a wrong floor")


def _check_rbf(similarity: RBFSimilarity) -> None:
    _check_matrix(similarity)
    expect(is_number(similarity.bandwidth_, 0), similarity, "has a wrong bandwidth")
    expect(similarity.bandwidth_ > 0, similarity, "has a wrong bandwidth")


def _check_square(similarity: PrecomputedSimilarity) -> None:
    _check_matrix(similarity)
    expect(similarity.Z_.shape[0] == similarity.Z_.shape[1], similarity, "is not square")


def _check_combined(similarity: CombinedSimilarity) -> None:
    parts = (similarity.on_features_, similarity.on_proba_)
    expect(all(isinstance(part, BaseSimilarity) for part in parts), similarity, "lacks a part")
    expect(parts[0].n_items_ == parts[1].n_items_, similarity, "has parts of other items")
    expect(is_number(similarity.weight_, 0, 1), similarity, "has a wrong weight")
    expect(is_whole(similarity.n_proba_, 1, 1 << 24), similarity, "has no probabilities")


def _check_sums(sums: LeafSums) -> None:
    expect(isinstance(sums.forest_, Forest), sums, "has no forest")
    check_mass(sums, sums.mass_, sums.forest_.n_leaves, sums.mass_.n_classes)
    expect(is_whole(sums.n_items_, 1, 1 << 40), sums, "has no items")


def _pack_scaler(scaler: StandardScaler) -> dict[str, Any]:
    state = {name: getattr(scaler, name, None) for name in _SCALER}
    return state | {"with_mean": scaler.with_mean, "with_std": scaler.with_std}


def _unpack_scaler(state: dict[str, Any]) -> StandardScaler:
    scaler = StandardScaler(with_mean=bool(state["with_mean"]), with_std=bool(state["with_std"]))
    expect(is_whole(state["n_features_in_"], 1), scaler, "has no features")
    for name in ("mean_", "scale_"):
        good = state[name] is None or is_array(state[name], "f", (state["n_features_in_"],))
        expect(good, scaler, f"has a wrong {name}")
    for name in _SCALER:
        setattr(scaler, name, state[name])
    return scaler


def _pack_neighbours(search: NearestNeighbors) -> dict[str, Any]:
    expected = NearestNeighbors(algorithm="brute")
    if search.get_params() != expected.get_params():
        raise TypeError(
            "hetcal.save stores NearestNeighbors(algorithm='brute') only; got "
            f"{search!r}. Fit without it."
        )
    return {"items": search._fit_X}


def _unpack_neighbours(state: dict[str, Any]) -> NearestNeighbors:
    good = is_array(state["items"], "f", (None, None)) and len(state["items"]) > 0
    expect(good, NearestNeighbors, "has no items")
    return NearestNeighbors(algorithm="brute").fit(state["items"])


SPECS = [
    with_packed_leaves(plain(ForestProximity, derived=_LEAF_CACHES, check=_check_proximity)),
    with_packed_leaves(plain(IsolationProximity, derived=_LEAF_CACHES)),
    plain(EuclideanSimilarity, derived={"index_": None}, finish=_remember, check=_check_euclidean),
    plain(CosineSimilarity, check=_check_matrix),
    plain(RBFSimilarity, check=_check_rbf),
    plain(PrecomputedSimilarity, check=_check_square),
    plain(CombinedSimilarity, check=_check_combined),
    plain(LeafSums, names=("forest_", "mass_", "n_items_"), check=_check_sums),
    Spec(StandardScaler, _pack_scaler, _unpack_scaler),
    Spec(NearestNeighbors, _pack_neighbours, _unpack_neighbours),
]
