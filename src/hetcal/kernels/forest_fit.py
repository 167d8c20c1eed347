"""Fitting forests: the compiled core where it can, scikit-learn's own fit where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from hetcal.kernels._backend import native
from hetcal.kernels._checks import aligned, check_indices, check_length, expect
from hetcal.kernels.forest_model import MOST_NODES, Forest, assemble, from_sklearn
from hetcal.kernels.parallel import n_threads, n_workers, pieces, spread

_LARGEST = 1e30
_MOST_ITEMS = 2**21 - 1  # the core counts items in 21 bits
_ITEMS_PER_CALL = 1_000_000  # trees x items between two chances to interrupt
_WORTH_SPREADING = 2_000_000  # trees x items: a second of work, far more than it takes to send it


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
    codes = np.require(codes, np.int32, ["C", "A"])
    check_length("fit_forest", "codes", codes, len(Z))
    check_indices("fit_forest", "codes", codes, n_classes)
    (Z,) = aligned(Z)
    core = native()
    if core is not None and _core_takes(Z, sample_weight, min_samples_leaf):
        settings = (
            max(int(n_classes), 1),
            resolve_max_features(max_features, Z.shape[1]),
            int(min_samples_leaf),
            bool(bootstrap),
            splitter == "random",
        )
        return _grow(Z, codes, settings, n_estimators, bootstrap, random_state, n_jobs)
    ensemble = sklearn.ensemble  # loaded on first use: it takes a tenth of the start of a command
    best = splitter == "best"
    model = ensemble.RandomForestClassifier if best else ensemble.ExtraTreesClassifier
    forest = model(
        n_estimators,
        max_features=max_features,
        bootstrap=bootstrap,
        min_samples_leaf=min_samples_leaf,
        random_state=random_state,
        n_jobs=n_threads(n_jobs),
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


def resolve_max_features(max_features: str | int | float | None, n_features: int) -> int:
    """Return how many features a node looks at."""
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
    Z: NDArray[np.float32],
    codes: NDArray[np.int32],
    settings: tuple[Any, ...],
    n_estimators: int,
    bootstrap: bool,
    random_state: Any,
    n_jobs: int | None,
) -> Forest:
    """Grow the trees, here or by the workers that the user named."""
    generator = check_random_state(random_state)
    largest = np.iinfo(np.int32).max
    seeds = np.array([generator.randint(largest) for _ in range(n_estimators)], dtype=np.uint32)
    workers = n_workers(n_jobs) if n_estimators * len(Z) >= _WORTH_SPREADING else 1
    if workers > 1:
        cuts = pieces(np.ones(n_estimators), workers)
        grown = spread(_grow_some, ((Z, codes, settings, seeds[cut], 1) for cut in cuts), n_jobs)
    else:
        grown = iter([_grow_some(Z, codes, settings, seeds, n_threads(n_jobs))])
    parts = list(grown)
    nodes, offset = join_trees([(some, place) for some, _, place in parts])
    in_bag = parts[0][1] if len(parts) == 1 else np.concatenate([drawn for _, drawn, _ in parts])
    feature, threshold, left, right, missing_left = nodes
    return assemble(
        feature,
        threshold,
        left,
        right,
        missing_left,
        offset,
        Z.shape[1],
        in_bag if bootstrap else None,
    )


def _grow_some(
    Z: NDArray[np.float32],
    codes: NDArray[np.int32],
    settings: tuple[Any, ...],
    seeds: NDArray[np.uint32],
    threads: int,
) -> tuple[list[NDArray], NDArray[np.uint8], NDArray[np.int64]]:
    """Grow trees a few at a time, so that a long fit can be interrupted.

    Returns the arrays of their nodes, how often each tree drew each item, and where each tree's
    nodes begin.
    """
    core = native()
    if core is None:
        raise RuntimeError("This needs the compiled core.")
    fitter = core.ForestFitter(Z, codes, *settings)
    n_items, bootstrap = len(Z), settings[3]
    in_bag = np.empty((len(seeds) if bootstrap else 0, n_items), dtype=np.uint8)
    step = max(1, _ITEMS_PER_CALL // (n_items * threads)) * threads
    grown = [
        (*fitter.grow(seeds[first : first + step], in_bag[first : first + step], threads),)
        for first in range(0, len(seeds), step)
    ]
    nodes, offset = join_trees([(part[:-1], part[-1]) for part in grown])
    return nodes, in_bag, offset


def join_trees(
    parts: list[tuple[Sequence[NDArray], NDArray[np.int64]]],
) -> tuple[list[NDArray], NDArray[np.int64]]:
    """Put the nodes of several lists of trees into one; children are places in it."""
    n_nodes = sum(int(offset[-1]) for _, offset in parts)
    expect(n_nodes <= MOST_NODES, "fit_forest", f"trees may have {MOST_NODES} nodes", n_nodes)
    columns: list[list[NDArray]] = []
    offset = [np.zeros(1, dtype=np.int64)]
    for (feature, threshold, left, right, missing_left), tree_offset in parts:
        before = offset[-1][-1]
        left, right = (
            np.where(child >= 0, child + np.int32(before), child) for child in (left, right)
        )
        columns.append([feature, threshold, left, right, missing_left])
        offset.append(tree_offset[1:] + before)
    nodes = [np.concatenate(column) for column in zip(*columns, strict=True)]
    return nodes, np.concatenate(offset)
