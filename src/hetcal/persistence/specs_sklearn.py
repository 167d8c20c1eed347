"""How what we use of scikit-learn is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from hetcal._stored import exactly, expect
from hetcal._stored.fields import (
    LARGEST,
    flag,
    is_whole,
    matrix,
    number,
    numbers,
    optional,
    within,
)
from hetcal.persistence.spec import Spec

_SCALER = ("mean_", "var_", "scale_", "n_samples_seen_", "n_features_in_")
_SETTINGS = ("with_mean", "with_std")
_MAX = np.finfo(np.float64).max


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


SPECS = [
    Spec(StandardScaler, _pack_scaler, _unpack_scaler),
    Spec(
        NearestNeighbors,
        _pack_neighbours,
        _unpack_neighbours,
        lambda state: _matrix_bytes(state["items"]),
    ),
]
