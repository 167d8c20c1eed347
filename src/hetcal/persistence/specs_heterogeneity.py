"""How the hidden heterogeneity inside SWC-HH is stored: what a later prediction needs of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import expect
from hetcal._stored.checks import check_codes, check_weight
from hetcal._stored.fields import (
    instance,
    integers,
    is_array,
    labels,
    number,
    numbers,
    one_of,
    optional,
    probabilities,
    table,
    whole,
)
from hetcal._stored.reader import Spec, plain
from hetcal._validation import FeatureEncoder
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.heterogeneity.cells import Balls
from hetcal.heterogeneity.estimator import _LARGEST
from hetcal.heterogeneity.global_map import CrossFittedMap
from hetcal.heterogeneity.inputs import check_parameters
from hetcal.heterogeneity.local_models import LocalModels
from hetcal.heterogeneity.out_of_bag import Items, NullDraws, NullMeans

_MOST_TREES = 10_000
# Trees times items of one local forest, beyond a thousand trees: some seconds.
_MOST_GROWN = 100_000_000
# Lists of items, their concatenation and its sorting.
_BYTES_PER_MEMBER = 48
_CELLS_AT_ONCE = 64
_UNKNOWN = number(may_miss=True)
_PUBLIC = plain(
    HiddenHeterogeneity,
    {
        "local_model": one_of(None),
        "n_null": whole(0, 1_000_000),
        "classes_": labels,
        "n_features_in_": whole(1, 1_000_000),
        "encoder_": instance(FeatureEncoder),
        "radius_": number(0, 1),
        "cells_": table,
        "covered_": number(0, 1 + 1e-9),
        "hh_mean_": _UNKNOWN,
        "hh_global_mean_": _UNKNOWN,
        "hh_local_mean_": _UNKNOWN,
        "standard_error_": _UNKNOWN,
        "statistic_": _UNKNOWN,
        "p_value_": _UNKNOWN,
        "_seed": whole(0, 2**32 - 1),
        "_n_trees": whole(1, _MOST_TREES),
    },
    may_lack=("cells_", "covered_"),
)
_REBUILT = ("_table", "_X", "_items", "_balls", "_models", "_map", "_draws", "_null_means")
_STORED = ("table", "items", "centres", "fold", "global_map", "terms", "variances", "null_means")


def _pack(hidden: HiddenHeterogeneity) -> dict[str, Any]:
    if hidden.local_model is not None:
        raise TypeError(
            "hetcal.save cannot store HiddenHeterogeneity(local_model=...): a file holds hetcal's "
            "own models only. Fit with local_model=None."
        )
    if not hasattr(hidden, "_items"):  # a setting, not fitted
        return _PUBLIC.pack(hidden)
    if not isinstance(hidden._table, np.ndarray):
        raise TypeError(
            "hetcal.save stores HiddenHeterogeneity as a part of SimilarityCalibrator only."
        )
    public = SimpleNamespace(**{k: v for k, v in vars(hidden).items() if k not in _REBUILT})
    out_of_bag = hidden.estimate == "oob"
    return _PUBLIC.pack(public) | {
        "table": hidden._table,
        "items": hidden._items,
        "centres": None if hidden._balls is None else hidden._balls.centres,
        "fold": hidden._models.fold if out_of_bag else None,
        "global_map": hidden._map.proba if out_of_bag else None,
        "terms": hidden._draws.terms if out_of_bag else None,
        "variances": hidden._draws.variances if out_of_bag else None,
        "null_means": hidden._null_means if out_of_bag else None,
    }


def _unpack(state: dict[str, Any]) -> HiddenHeterogeneity:
    if "items" not in state:
        expect(not set(_STORED) & set(state), HiddenHeterogeneity, "has no items")
        return _PUBLIC.unpack(state)
    stored = {name: state[name] for name in _STORED}
    hidden = _PUBLIC.unpack({k: v for k, v in state.items() if k not in stored})
    check_parameters(hidden)
    expect(hasattr(hidden, "_n_trees"), hidden, "is not fitted")
    items, given = stored["items"], stored["table"]
    expect(isinstance(items, Items), hidden, "has no items")
    n, K = items.P.shape
    grown = hidden._n_trees <= 1000 or hidden._n_trees * n <= _MOST_GROWN
    expect(grown, hidden, "asks for too many trees")
    expect(len(hidden.classes_) == K, hidden, "has other classes")
    width = hidden.encoder_.n_features_in_
    good = is_array(given, "f", (n, width)) and given.dtype == np.float64
    expect(good and not np.isinf(given).any(), hidden, "has other items")
    hidden._items, hidden._table = items, given
    features = np.clip(hidden.encoder_.transform(given), -_LARGEST, _LARGEST)
    hidden._X = np.asarray(features, dtype=np.float32)
    expect(not np.isnan(hidden._X).any(), hidden, "has items with missing values")
    hidden._balls = _balls(hidden, stored["centres"])
    if hidden.estimate == "oob":
        _finish_out_of_bag(hidden, stored)
    return hidden


def _needs(state: dict[str, Any]) -> int:
    """Return what the features in another type take, and the list of items in each cell."""
    if "items" not in state:
        return 0
    items, centres, radius = state["items"], state["centres"], state["radius_"]
    members = 0 if centres is None else _n_members(items.P, centres, radius)
    return 3 * state["table"].nbytes + _BYTES_PER_MEMBER * members


def _n_members(P: NDArray, centres: NDArray, radius: float) -> int:
    """Count the items of all cells, by Hellinger's distance, without listing them."""
    roots, total = np.sqrt(P).T, 0
    for start in range(0, len(centres), _CELLS_AT_ONCE):
        overlap = np.sqrt(centres[start : start + _CELLS_AT_ONCE]) @ roots
        total += int((overlap >= 1 - radius**2 - 1e-9).sum())
    return total


def _balls(hidden: HiddenHeterogeneity, centres: Any) -> Balls | None:
    if centres is None:
        expect(hidden.neighbourhoods not in ("net", "overlap"), hidden, "has no cells")
        return None
    n, K = hidden._items.P.shape
    expect(probabilities(None, K)(centres) and 0 < len(centres) <= n, hidden, "has wrong cells")
    cells = getattr(hidden, "cells_", ())
    expect(len(cells) == len(centres), hidden, "has a table of other cells")
    return Balls.around(centres, hidden._items.P, hidden.radius_)


def _finish_out_of_bag(hidden: HiddenHeterogeneity, stored: dict[str, Any]) -> None:
    n, K = hidden._items.P.shape
    fold, p_g, terms = stored["fold"], stored["global_map"], stored["terms"]
    expect(isinstance(stored["null_means"], NullMeans), hidden, "has no null means")
    expect(hasattr(hidden, "cells_"), hidden, "has no table of cells")
    expect(optional(integers(n, low=0, high=n))(fold), hidden, "has wrong folds")
    expect(probabilities(n, K)(p_g), hidden, "has a wrong global map")
    expect(_known(terms, (n, None)), hidden, "has wrong terms")
    expect(_known(stored["variances"], terms.shape), hidden, "has wrong variances")
    expect(stored["null_means"].centres.shape[1] == K, hidden, "has wrong null means")
    hidden._models = LocalModels(
        hidden._X,
        hidden._items.P,
        int(hidden._n_trees),
        None,
        fold,
        int(hidden._seed),
        hidden.n_jobs if hidden.n_jobs is not None else 1,
    )
    # Of the map and the draws only this is needed after the fit.
    hidden._map = object.__new__(CrossFittedMap)
    hidden._map.proba = p_g
    hidden._draws = object.__new__(NullDraws)
    hidden._draws.terms, hidden._draws.variances = terms, stored["variances"]
    hidden._null_means = stored["null_means"]


def _check_items(items: Items) -> None:
    n, K = items.P.shape
    expect(n > 0 and K > 1, items, "are none")
    check_codes(items, items.codes, n, K)
    check_weight(items, items.weight, n)
    if items.groups is not None:
        check_codes(items, items.groups, n, n)


def _check_null_means(means: NullMeans) -> None:
    same = all(
        len(values) == len(means.centres)
        for values in (means.total, means.part_global, means.variance)
    )
    expect(same and len(means.centres) > 0, means, "have wrong centres")


def _known(value: Any, shape: tuple[int | None, ...]) -> bool:
    """Tell whether these are numbers, of which some may be missing."""
    return is_array(value, "f", shape) and not np.isinf(value).any()


def _some(value: Any) -> bool:
    return _known(value, (None,))


_CODES = integers(None, low=0, high=1 << 40)
SPECS = [
    Spec(HiddenHeterogeneity, _pack, _unpack, _needs),
    plain(
        Items,
        {
            "P": probabilities(None, None),
            "codes": _CODES,
            "weight": numbers(None, low=0.0),
            "groups": optional(_CODES),
        },
        check=_check_items,
    ),
    plain(
        NullMeans,
        {
            "centres": probabilities(None, None),
            "total": _some,
            "part_global": _some,
            "variance": _some,
        },
        check=_check_null_means,
    ),
]
