"""How what we use of scikit-learn is stored, since its classes cannot declare it themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from hetcal._stored import expect
from hetcal._stored.fields import (
    LARGEST,
    flag,
    is_array,
    matrix,
    number,
    numbers,
    optional,
    whole,
    within,
)
from hetcal._stored.reader import Spec, plain

_MAX = np.finfo(np.float64).max


def _counts(value: Any) -> bool:
    by_column = is_array(value, "iuf", (None,))
    return within(value, 0, LARGEST) if by_column else number(0)(value)


def _check_scaler(scaler: StandardScaler) -> None:
    n, seen = scaler.n_features_in_, scaler.n_samples_seen_
    by_column = [scaler.mean_, scaler.var_, scaler.scale_]
    by_column += [seen] if isinstance(seen, np.ndarray) else []
    expect(all(x is None or len(x) == n for x in by_column), scaler, "has parts of other columns")


def _pack_neighbours(search: NearestNeighbors) -> dict[str, Any]:
    expected = NearestNeighbors(algorithm="brute")
    if search.get_params() != expected.get_params():
        raise TypeError(
            "hetcal.save stores NearestNeighbors(algorithm='brute') only; got "
            f"{search!r}. Fit without it."
        )
    return {"items": search._fit_X}


def _unpack_neighbours(state: dict[str, Any]) -> NearestNeighbors:
    known = set(state) == {"items"} and matrix(state["items"])
    expect(known, NearestNeighbors, "has no items, or other parts")
    return NearestNeighbors(algorithm="brute").fit(state["items"])


def _matrix_bytes(Z: Any) -> int:
    return Z.data.nbytes if sparse.issparse(Z) else np.asarray(Z).nbytes


SPECS = [
    plain(
        StandardScaler,
        {
            "with_mean": flag,
            "with_std": flag,
            "mean_": optional(numbers(None)),
            # Of no use after the fit; the square of the scale, or less than zero by rounding.
            "var_": optional(numbers(None, low=-_MAX, high=_MAX)),
            "scale_": optional(numbers(None, low=1 / LARGEST)),
            "n_samples_seen_": _counts,
            "n_features_in_": whole(1, 1 << 31),
        },
        derived={"copy": True},
        check=_check_scaler,
    ),
    Spec(
        NearestNeighbors,
        _pack_neighbours,
        _unpack_neighbours,
        lambda state: _matrix_bytes(state["items"]),
    ),
]
