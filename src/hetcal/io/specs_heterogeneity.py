"""How the hidden heterogeneity inside SWC-HH is stored: what a later prediction needs of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from hetcal._validation import FeatureEncoder
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.heterogeneity.cells import Balls
from hetcal.heterogeneity.estimator import _LARGEST
from hetcal.heterogeneity.global_map import CrossFittedMap
from hetcal.heterogeneity.honest import Items, NullDraws, NullMeans
from hetcal.heterogeneity.inputs import check_parameters
from hetcal.heterogeneity.local_models import LocalModels
from hetcal.io.forests import check_codes, check_weight
from hetcal.io.spec import Spec, expect, is_array, is_number, is_whole, plain

_MOST_TREES = 10_000
_MOST_CELL_PAIRS = 1 << 34
_PUBLIC = plain(
    HiddenHeterogeneity,
    names=("_seed", "_n_trees"),
    derived={"progress": None},
    may_miss=(
        "hh_mean_",
        "hh_global_mean_",
        "hh_local_mean_",
        "standard_error_",
        "statistic_",
        "p_value_",
    ),
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
    honest = hidden.estimate == "oob"
    return _PUBLIC.pack(public) | {
        "table": hidden._table,
        "items": hidden._items,
        "centres": None if hidden._balls is None else hidden._balls.centres,
        "fold": hidden._models.fold if honest else None,
        "global_map": hidden._map.proba if honest else None,
        "terms": hidden._draws.terms if honest else None,
        "variances": hidden._draws.variances if honest else None,
        "null_means": hidden._null_means if honest else None,
    }


def _unpack(state: dict[str, Any]) -> HiddenHeterogeneity:
    if "items" not in state:
        return _PUBLIC.unpack(state)
    stored = {name: state[name] for name in _STORED}
    hidden = _PUBLIC.unpack({k: v for k, v in state.items() if k not in stored})
    expect(hidden.local_model is None, hidden, "has a local model")
    check_parameters(hidden)
    expect(is_number(hidden.radius_, 0, 1), hidden, "has a wrong radius")
    expect(is_whole(hidden._seed, 0, 2**32 - 1), hidden, "has a wrong seed")
    expect(is_whole(hidden._n_trees, 1, _MOST_TREES), hidden, "asks for too many trees")
    items, table = stored["items"], stored["table"]
    expect(isinstance(items, Items), hidden, "has no items")
    n, K = items.P.shape
    expect(len(hidden.classes_) == K, hidden, "has other classes")
    expect(is_array(table, "f", (n, None)), hidden, "has other items")
    expect(isinstance(hidden.encoder_, FeatureEncoder), hidden, "has no encoder")
    hidden._items, hidden._table = items, table
    features = np.clip(hidden.encoder_.transform(table), -_LARGEST, _LARGEST)
    hidden._X = np.asarray(features, dtype=np.float32)
    hidden._balls = _balls(hidden, stored["centres"])
    if hidden.estimate == "oob":
        _finish_honest(hidden, stored)
    return hidden


def _balls(hidden: HiddenHeterogeneity, centres: Any) -> Balls | None:
    if centres is None:
        expect(hidden.neighbourhoods not in ("net", "overlap"), hidden, "has no cells")
        return None
    n, K = hidden._items.P.shape
    good = is_array(centres, "f", (None, K)) and len(centres) > 0 and (centres >= 0).all()
    expect(good and len(centres) <= n, hidden, "has wrong cells")
    expect(len(centres) * n <= _MOST_CELL_PAIRS, hidden, "has too many cells")
    expect(isinstance(hidden.cells_, pd.DataFrame), hidden, "has no table of cells")
    expect(len(hidden.cells_) == len(centres), hidden, "has a table of other cells")
    return Balls.around(centres, hidden._items.P, hidden.radius_)


def _finish_honest(hidden: HiddenHeterogeneity, stored: dict[str, Any]) -> None:
    n, K = hidden._items.P.shape
    fold, p_g, terms = stored["fold"], stored["global_map"], stored["terms"]
    expect(isinstance(stored["null_means"], NullMeans), hidden, "has no null means")
    expect(isinstance(hidden.cells_, pd.DataFrame), hidden, "has no table of cells")
    expect(fold is None or is_array(fold, "i", (n,)), hidden, "has wrong folds")
    expect(is_array(p_g, "f", (n, K)), hidden, "has a wrong global map")
    expect(is_array(terms, "f", (n, None)), hidden, "has wrong terms")
    expect(is_array(stored["variances"], "f", terms.shape), hidden, "has wrong variances")
    expect(stored["null_means"].centres.shape[1] == K, hidden, "has wrong null means")
    hidden._models = LocalModels(
        hidden._X,
        hidden._items.P,
        int(hidden._n_trees),
        None,
        fold,
        int(hidden._seed),
        hidden.n_jobs if hidden.n_jobs is not None else 1,
        None,
    )
    # Of the map and the draws only this is needed after the fit.
    hidden._map = object.__new__(CrossFittedMap)
    hidden._map.proba = p_g
    hidden._draws = object.__new__(NullDraws)
    hidden._draws.terms, hidden._draws.variances = terms, stored["variances"]
    hidden._null_means = stored["null_means"]


def _check_items(items: Items) -> None:
    good = is_array(items.P, "f", (None, None)) and 0 not in items.P.shape
    expect(good and (items.P >= 0).all() and (items.P <= 1).all(), items, "have no probabilities")
    check_codes(items, items.codes, len(items.P), items.P.shape[1])
    check_weight(items, items.weight, len(items.P))
    expect(items.weight is not None, items, "have no weights")
    if items.groups is not None:
        check_codes(items, items.groups, len(items.P), len(items.P))


def _check_null_means(means: NullMeans) -> None:
    m = len(means.total)
    expect(is_array(means.centres, "f", (m, None)), means, "have wrong centres")
    expect((means.centres >= 0).all(), means, "have wrong centres")
    for name in ("total", "part_global", "variance"):
        expect(is_array(getattr(means, name), "f", (m,)), means, f"have a wrong {name}")


SPECS = [
    Spec(HiddenHeterogeneity, _pack, _unpack),
    plain(Items, check=_check_items),
    plain(
        NullMeans,
        may_miss=("total", "part_global", "variance"),
        check=_check_null_means,
    ),
]
