"""Fitting forests: the compiled core where it can, scikit-learn's own fit where it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.utils import check_random_state

from hetcal.kernels._backend import native
from hetcal.kernels.forest_model import Forest, assemble, from_sklearn

_LARGEST = 1e30
_MOST_ITEMS = 2**21 - 1  # the core counts items in 21 bits
_ITEMS_PER_CALL = 1_000_000  # trees x items between two chances to interrupt


def fit_forest(
    Z: Any,
    codes: ArrayLike,
    n_classes: int,
    *,
    n_estimators: int = 100,
    max_features: str | int | float | None = "sqrt",
    bootstrap: bool = True,
    splitter: str = "best",
    min_samples_leaf: int = 1,
    sample_weight: NDArray[np.float64] | None = None,
    random_state: Any = 0,
    n_jobs: int | None = 1,
) -> Forest:
    """Grow a classification forest, tree for tree the one scikit-learn grows.

    Parameters
    ----------
    Z : array-like of shape (n_items, n_features)
        Where the items lie; read as float32. NaN is a missing value.
    codes : array-like of int, shape (n_items,)
        Class of each item, in [0, n_classes).
    n_classes : int
        Number of classes, also of those that no item has.
    splitter : {"best", "random"}
        Best threshold of each feature (random forest), or one random threshold each (extra-trees).
    sample_weight : ndarray of shape (n_items,), optional
        Weights; used by scikit-learn's fit.
    max_features, n_estimators, bootstrap, min_samples_leaf, random_state, n_jobs
        As in :class:`sklearn.ensemble.RandomForestClassifier`.

    Returns
    -------
    Forest

    Notes
    -----
    The compiled core takes finite data without weights, up to 2 097 151 items; scikit-learn fits
    the rest.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> fit_forest(X, y, 2, n_estimators=10).n_trees
    10
    """
    if splitter not in ("best", "random"):
        raise ValueError(f'fit_forest: splitter must be "best" or "random"; got {splitter!r}.')
    Z = np.asarray(Z)
    if Z.dtype != np.float32:
        # Huge values keep their sign, which is all that a split needs; sums over rows stay finite.
        Z = np.clip(Z, -_LARGEST, _LARGEST).astype(np.float32)
    codes = np.ascontiguousarray(codes, dtype=np.int32)
    core = native()
    if core is not None and _core_takes(Z, sample_weight, min_samples_leaf):
        fitter = core.ForestFitter(
            Z,
            codes,
            max(int(n_classes), 1),
            _resolve_max_features(max_features, Z.shape[1]),
            int(min_samples_leaf),
            bool(bootstrap),
            splitter == "random",
        )
        return _grow(fitter, Z.shape, n_estimators, bootstrap, random_state, n_jobs)
    model = RandomForestClassifier if splitter == "best" else ExtraTreesClassifier
    forest = model(
        n_estimators,
        max_features=max_features,
        bootstrap=bootstrap,
        min_samples_leaf=min_samples_leaf,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return from_sklearn(forest.fit(Z, codes, sample_weight=sample_weight))


def _core_takes(Z: NDArray[np.float32], sample_weight: Any, min_samples_leaf: Any) -> bool:
    """Tell whether the compiled core can fit this; the one place that knows its limits."""
    return (
        sample_weight is None
        and isinstance(min_samples_leaf, int | np.integer)
        and Z.ndim == 2
        and 0 < Z.shape[0] <= _MOST_ITEMS
        and Z.shape[1] > 0
        and bool(np.isfinite(Z).all())
    )


def _resolve_max_features(max_features: str | int | float | None, n_features: int) -> int:
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_features)))
    if max_features == "log2":
        return max(1, int(np.log2(n_features)))
    if max_features is None:
        return n_features
    if isinstance(max_features, int | np.integer) and max_features >= 1:
        return int(max_features)
    if isinstance(max_features, float) and 0.0 < max_features <= 1.0:
        return max(1, int(max_features * n_features))
    raise ValueError(
        'fit_forest: max_features must be "sqrt", "log2", None, an integer >= 1 or a fraction '
        f"in (0, 1]; got {max_features!r}."
    )


def _grow(
    fitter: Any,
    shape: tuple[int, ...],
    n_estimators: int,
    bootstrap: bool,
    random_state: Any,
    n_jobs: int | None,
) -> Forest:
    """Grow the trees a few at a time, so that a long fit can be interrupted."""
    n_items, n_features = shape
    generator = check_random_state(random_state)
    largest = np.iinfo(np.int32).max
    seeds = np.array([generator.randint(largest) for _ in range(n_estimators)], dtype=np.uint32)
    in_bag = np.empty((n_estimators if bootstrap else 0, n_items), dtype=np.uint8)
    threads = effective_n_jobs(n_jobs)
    step = max(1, _ITEMS_PER_CALL // (n_items * threads)) * threads
    parts, offset = [], [np.zeros(1, dtype=np.int64)]
    for first in range(0, n_estimators, step):
        *nodes, tree_offset = fitter.grow(
            seeds[first : first + step], in_bag[first : first + step], threads
        )
        before = offset[-1][-1]
        for child in (nodes[2], nodes[3]):
            child[child >= 0] += np.int32(before)
        parts.append(nodes)
        offset.append(tree_offset[1:] + before)
    feature, threshold, left, right, missing_left = (
        np.concatenate(part) for part in zip(*parts, strict=True)
    )
    return assemble(
        feature,
        threshold,
        left,
        right,
        missing_left,
        np.concatenate(offset),
        n_features,
        in_bag if bootstrap else None,
    )
