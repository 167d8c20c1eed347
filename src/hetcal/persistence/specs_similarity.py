"""How similarities are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from hetcal._stored import exactly, expect
from hetcal._stored.fields import (
    LARGEST,
    MOST_CLASSES,
    flag,
    instance,
    is_whole,
    matrix,
    number,
    numbers,
    one_of,
    optional,
    whole,
    within,
)
from hetcal.kernels.forest import Forest
from hetcal.persistence.forests import leaf_bytes, pack_leaves, unpack_leaves
from hetcal.persistence.spec import Spec, plain
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
_SETTINGS = ("with_mean", "with_std")
# Squares of these, and one over them, are still numbers.
_LEAST_WIDTH, _LARGEST_WIDTH = 1e-150, 1e150
_MAX = np.finfo(np.float64).max


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
        forest: Any = state.get("forest_")
        expect(isinstance(forest, Forest), spec.cls, "has no forest")
        leaves = unpack_leaves(spec.cls, forest, state["leaves_"])
        in_bag = forest.in_bag
        expect(in_bag is None or in_bag.shape[1] == len(leaves), spec.cls, "has a wrong in_bag")
        return spec.unpack(state | {"leaves_": leaves})

    def needs(state: dict[str, Any]) -> int:
        # Voters that are out of bag have leaves and an index of their own.
        kinds = 2 if state.get("voters") == "out-of-bag" else 1
        return kinds * leaf_bytes(state.get("leaves_", ())) + spec.needs(state)

    return Spec(spec.cls, pack, unpack, needs)


def leaves(value: Any) -> bool:
    """Take leaves that :func:`hetcal.persistence.forests.unpack_leaves` has made."""
    return isinstance(value, np.ndarray) and value.dtype == np.int32


def width_of(similarity: Any) -> int | None:
    """Return how many columns a fitted similarity compares; None where it cannot tell."""
    if isinstance(similarity, CombinedSimilarity):
        features = width_of(similarity.on_features_)
        return None if features is None else features + similarity.n_proba_
    forest = getattr(similarity, "forest_", None)
    return similarity.Z_.shape[1] if forest is None else forest.n_features


def _check_proximity(similarity: ForestProximity) -> None:
    counted = similarity.voters == "all" or similarity.forest_.in_bag is not None
    expect(counted, similarity, "does not know who is out of bag")


def _remember(similarity: Any) -> None:
    similarity._remember(similarity.Z_)


def _check_scale(similarity: Any) -> None:
    scaler = similarity.scaler_
    same = scaler is None or scaler.n_features_in_ == similarity.Z_.shape[1]
    expect(same, similarity, "has a scale of other columns")
    centred = scaler is not None and scaler.with_mean
    expect(not (centred and sparse.issparse(similarity.Z_)), similarity, "has a wrong scale")


def _check_square(similarity: PrecomputedSimilarity) -> None:
    expect(similarity.Z_.shape[0] == similarity.Z_.shape[1], similarity, "is not square")


def _check_combined(similarity: CombinedSimilarity) -> None:
    parts = (similarity.on_features_, similarity.on_proba_)
    expect(parts[0].n_items_ == parts[1].n_items_, similarity, "has parts of other items")
    same = width_of(parts[1]) == similarity.n_proba_
    expect(same, similarity, "compares other probabilities")


def _candidates(value: Any) -> bool:
    good = isinstance(value, dict) and len(value) <= 1000
    return good and all(map(number(), [*value, *value.values()]))


def _pack_scaler(scaler: StandardScaler) -> dict[str, Any]:
    return {name: getattr(scaler, name, None) for name in (*_SCALER, *_SETTINGS)}


def _unpack_scaler(state: dict[str, Any]) -> StandardScaler:
    exactly(state, (*_SCALER, *_SETTINGS), StandardScaler)
    expect(flag(state["with_mean"]) and flag(state["with_std"]), StandardScaler, "is no scale")
    scaler = StandardScaler(with_mean=bool(state["with_mean"]), with_std=bool(state["with_std"]))
    n = state["n_features_in_"]
    expect(is_whole(n, 1), scaler, "has no features")
    for name, low in {"mean_": -LARGEST, "scale_": 1 / LARGEST}.items():
        expect(optional(numbers(n, low=low))(state[name]), scaler, f"has a wrong {name}")
    # Of no use after the fit; the square of the scale, or less than zero by rounding.
    expect(optional(numbers(n, low=-_MAX, high=_MAX))(state["var_"]), scaler, "has a wrong var_")
    seen: Any = state["n_samples_seen_"]
    counted = number(0)(seen) or (
        isinstance(seen, np.ndarray) and seen.shape == (n,) and within(seen, 0, LARGEST)
    )
    expect(counted, scaler, "has a wrong n_samples_seen_")
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
    exactly(state, ("items",), NearestNeighbors)
    expect(matrix(state["items"]), NearestNeighbors, "has no items")
    return NearestNeighbors(algorithm="brute").fit(state["items"])


def _matrix_bytes(Z: Any) -> int:
    return Z.data.nbytes if sparse.issparse(Z) else np.asarray(Z).nbytes


_LEAVES = {"forest_": instance(Forest), "leaves_": leaves}
_METRIC = {
    "scale": flag,
    "Z_": matrix,
    "scaler_": optional(instance(StandardScaler)),
}
_WIDTH = number(_LEAST_WIDTH, _LARGEST_WIDTH)

SPECS = [
    with_packed_leaves(
        plain(
            ForestProximity,
            _LEAVES | {"voters": one_of("all", "out-of-bag"), "trees": one_of("random", "extra")},
            derived=_LEAF_CACHES,
            check=_check_proximity,
        )
    ),
    with_packed_leaves(plain(IsolationProximity, _LEAVES, derived=_LEAF_CACHES)),
    plain(
        EuclideanSimilarity,
        _METRIC | {"duplicates": one_of("floor", "paper"), "floor_": _WIDTH},
        derived={"index_": None},
        finish=_remember,
        check=_check_scale,
        needs=lambda state: _matrix_bytes(state.get("Z_", ())),
    ),
    plain(CosineSimilarity, _METRIC, check=_check_scale),
    plain(RBFSimilarity, _METRIC | {"bandwidth_": _WIDTH}, check=_check_scale),
    plain(
        PrecomputedSimilarity,
        {"Z_": numbers(None, None, low=0.0)},
        check=_check_square,
    ),
    plain(
        CombinedSimilarity,
        {
            "on_features": instance(BaseSimilarity),
            "on_proba": instance(BaseSimilarity),
            "on_features_": instance(BaseSimilarity),
            "on_proba_": instance(BaseSimilarity),
            "weight_": number(0, 1),
            "scores_": _candidates,
            "n_proba_": whole(1, MOST_CLASSES),
        },
        check=_check_combined,
    ),
    Spec(StandardScaler, _pack_scaler, _unpack_scaler),
    Spec(
        NearestNeighbors,
        _pack_neighbours,
        _unpack_neighbours,
        lambda state: _matrix_bytes(state["items"]),
    ),
]
