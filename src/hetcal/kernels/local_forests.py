r"""The local models of hidden heterogeneity: one bagged, pruned forest per neighbourhood.

For each neighbourhood :math:`U` of calibration items a forest :math:`g` of decision trees is grown
on bootstrap samples of :math:`U`, all features considered at every split, and pruned at the
complexity :math:`\alpha` that does best out of bag. The published value is the improvement in Brier
score on the very items that :math:`g` was grown on,

.. math:: HH(U) = \max\bigl(0,\; \mathrm{Brier}_U(f) - \mathrm{Brier}_U(g)\bigr),

and the predictions of :math:`g` out of bag, returned beside it, are what out-of-sample estimates
start from.

The forests for all :math:`\alpha` are nested in one unpruned forest, so a single forest is grown.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from hetcal.kernels._backend import native
from hetcal.kernels._checks import aligned, check_starts, expect
from hetcal.kernels.neighbourhoods import take_neighbourhoods
from hetcal.kernels.parallel import n_threads, n_workers, pieces, spread

Progress = Callable[[int, int], object]

#: Values of ``LocalForestScores.status``.
OK, NO_NEIGHBOURS, ONE_CLASS, NO_SCORE = range(4)
STATUS_NAMES = ("ok", "no neighbours", "one class", "no out-of-bag score")

PAPER_ALPHAS = np.linspace(0, 0.03, 7)
PAPER_ALPHAS.flags.writeable = False

_MOST_ITEMS = 65_535  # the compiled core counts items and codes in 16 bits
_MOST_CLASSES = 1024
_MOST_CELLS = 2**32 - 1  # and the values of a neighbourhood in 32


@dataclass(frozen=True)
class LocalForestScores:
    """What the local forests found, one entry per neighbourhood.

    Every array has shape (n_neighbourhoods,), or (n_draws, n_neighbourhoods) when several label
    vectors were given.

    Attributes
    ----------
    hh : ndarray of float
        Improvement in Brier score on the forest's own items, at least 0; 0 unless ``status`` is 0.
    brier_model, brier_local, brier_oob : ndarray of float
        Brier score (sum over classes, in [0, 2]) of the classifier, of the forest on its own items,
        and of the forest out of bag (over the items that are out of bag at least once). NaN where
        there is no forest; ``brier_model`` is NaN without neighbours only.
    alpha : ndarray of float
        Complexity that was chosen; NaN where there is no forest.
    oob_score : ndarray of float
        Out-of-bag accuracy at that complexity; NaN where there is no forest.
    n_neighbors : ndarray of int, shape (n_neighbourhoods,)
    status : ndarray of int
        0 a forest was grown, 1 no neighbours, 2 one class only, 3 no complexity with a positive
        out-of-bag score; see ``STATUS_NAMES``.
    oob_proba : ndarray of shape (n_members, n_classes) or (n_draws, n_members, n_classes), or None
        Out-of-bag probabilities of the member ``indices[i]`` in its neighbourhood, at the chosen
        complexity; NaN where it never was out of bag. One class: that class has probability 1 (NaN
        for a single item). Status 3: the unpruned forest's.
    """

    hh: NDArray[np.float64]
    brier_model: NDArray[np.float64]
    brier_local: NDArray[np.float64]
    brier_oob: NDArray[np.float64]
    alpha: NDArray[np.float64]
    oob_score: NDArray[np.float64]
    n_neighbors: NDArray[np.int64]
    status: NDArray[np.int64]
    oob_proba: NDArray[np.float64] | None


def local_forest_scores(
    X: ArrayLike,
    codes: ArrayLike,
    n_classes: int,
    P: ArrayLike,
    indptr: ArrayLike,
    indices: ArrayLike,
    *,
    n_estimators: int = 100,
    alphas: ArrayLike = PAPER_ALPHAS,
    select: Literal["accuracy", "brier"] = "accuracy",
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = 1,
    mode: Literal["exact", "fast"] = "exact",
    return_oob: bool = True,
    progress: Progress | None = None,
) -> LocalForestScores:
    """Grow, prune and score one forest per neighbourhood; keep none of them.

    Parameters
    ----------
    X : array-like of shape (n_items, n_features)
        Features of the calibration items; used as float32, as scikit-learn's trees do.
    codes : array-like of int, shape (n_items,) or (n_draws, n_items)
        Class numbers in ``range(n_classes)``. Each row of a 2-D array is a label vector of its own;
        all share the neighbourhoods, the sorting and the bootstrap samples.
    n_classes : int
        Number of columns of ``P``.
    P : array-like of shape (n_items, n_classes)
        Probabilities that the classifier gave.
    indptr, indices : array-like of int
        Neighbourhoods: the items of neighbourhood ``j`` are ``indices[indptr[j]:indptr[j + 1]]``.
        Their order matters for the random draws.
    n_estimators : int, default=100
        Trees per forest.
    alphas : array-like of float, default=linspace(0, 0.03, 7)
        Complexities for minimal cost-complexity pruning, increasing; 0 means no pruning.
    select : {"accuracy", "brier"}, default="accuracy"
        Out-of-bag score that chooses the complexity: accuracy, as published (and no forest when no
        accuracy is positive), or the Brier score. Ties go to the smaller complexity.
    random_state : int, RandomState or None, default=0
        Seed of every forest.
    n_jobs : int or None, default=1
        Threads over neighbourhoods; -1 for all cores. Where :func:`joblib.parallel_config` names a
        backend of other processes (loky, dask, ray), its workers instead. The result does not
        depend on it.
    mode : {"exact", "fast"}, default="exact"
        "exact" draws the random numbers of scikit-learn's ``RandomForestClassifier``, so the
        results are those of seven such forests. "fast" breaks ties between equally good splits by
        random numbers of its own: same distribution, less work where there are many features.
    return_oob : bool, default=True
        Whether to return ``oob_proba``, the one large output.
    progress : callable, optional
        Called now and then as ``progress(n_done, n_total)``, in distinct neighbourhoods.

    Returns
    -------
    LocalForestScores

    Examples
    --------
    >>> import numpy as np
    >>> from hetcal.kernels.neighbourhoods import hellinger_balls
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [0.7], [0.8], [0.9], [1.0]])
    >>> y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> P = np.full((8, 2), 0.5)  # the classifier does not see the two groups
    >>> scores = local_forest_scores(X, y, 2, P, *hellinger_balls(P, P[:1]))
    >>> scores.hh.round(1), scores.n_neighbors
    (array([0.5]), array([8]))
    """
    X = np.require(X, np.float32, ["C", "A"])
    P = np.require(P, np.float64, ["C", "A"])
    codes = np.asarray(codes)
    several = codes.ndim == 2
    draws = np.require(np.atleast_2d(codes), np.int32, ["C", "A"])
    indptr = np.require(indptr, np.int64, ["C", "A"])
    indices = np.require(indices, np.int64, ["C", "A"])
    alphas = np.require(alphas, np.float64, ["C", "A"])
    _check_input(X, draws, n_classes, P, indptr, indices, alphas, select, mode)
    expect(n_estimators >= 1, "local_forest_scores", "n_estimators must be positive", n_estimators)
    seeds = _tree_seeds(random_state, n_estimators)

    # Saturated probabilities share their neighbours to the last item; one forest serves them all.
    n_neighbors = np.diff(indptr)
    distinct, same_as = _distinct_neighbourhoods(indptr, indices)
    indptr, indices = take_neighbourhoods(indptr, indices, distinct)

    forests = _Forests(n_classes, seeds, alphas, select, mode, return_oob)
    workers = n_workers(n_jobs)
    if workers > 1 and len(distinct) > 1:
        out, status, oob = _scored_by_workers(
            forests, X, draws, P, indptr, indices, workers, n_jobs, progress
        )
    else:
        out, status, oob = forests.score(X, draws, P, indptr, indices, n_jobs, progress)
    if len(distinct) < len(same_as):
        out = {name: values[:, same_as] for name, values in out.items()}
        status = status[:, same_as]
        if oob is not None:
            _, member = take_neighbourhoods(indptr, np.arange(len(indices)), same_as)
            oob = oob[:, member]
    if not several:
        out = {name: values[0] for name, values in out.items()}
        status, oob = status[0], None if oob is None else oob[0]
    return LocalForestScores(**out, n_neighbors=n_neighbors, status=status, oob_proba=oob)


# The order in which the compiled core fills them.
_FLOATS = ("hh", "brier_model", "brier_local", "brier_oob", "alpha", "oob_score")


_Scores = tuple[dict[str, NDArray], NDArray[np.int64], NDArray[np.float64] | None]


@dataclass(frozen=True)
class _Forests:
    """How forests are grown, apart from the data."""

    n_classes: int
    seeds: NDArray[np.uint32]
    alphas: NDArray[np.float64]
    select: str
    mode: str
    return_oob: bool

    def score(self, X, draws, P, indptr, indices, n_jobs, progress=None) -> _Scores:
        """Return values, status and out-of-bag predictions by label vector and neighbourhood."""
        shape = (len(draws), len(indptr) - 1)
        out = {name: np.full(shape, np.nan) for name in _FLOATS}
        out["hh"][:] = 0
        status = np.zeros(shape, np.int64)
        oob = None
        if self.return_oob:
            oob = np.full((len(draws), len(indices), self.n_classes), np.nan)
        seeds, alphas = aligned(self.seeds, self.alphas)
        how = seeds, alphas
        core = _core_for(X, self.n_classes)
        if core is None:
            from hetcal.kernels._local_forests_pure import score_neighbourhoods

            place = X, draws, P, indptr, indices
            score_neighbourhoods(*place, *how, self.select, n_jobs, progress, out, status, oob)
            return out, status, oob
        core.local_forest_scores(
            X,
            draws,
            P,
            indptr,
            indices,
            *how,
            self.select == "brier",
            self.mode == "exact",
            n_threads(n_jobs),
            progress,
            [out[name] for name in _FLOATS],
            status,
            np.empty((0, 0, 0)) if oob is None else oob,
        )
        return out, status, oob


def _scored_by_workers(
    forests: _Forests, X, draws, P, indptr, indices, workers: int, n_jobs, progress
) -> _Scores:
    """Score some neighbourhoods per task; a forest depends on its own neighbourhood alone."""
    cuts = pieces(np.diff(indptr), workers)
    tasks = (
        (
            forests,
            X,
            draws,
            P,
            *take_neighbourhoods(indptr, indices, np.arange(cut.start, cut.stop)),
        )
        for cut in cuts
    )
    parts = []
    for cut, part in zip(cuts, spread(_score_some, tasks, n_jobs), strict=True):
        parts.append(part)
        if progress is not None:
            progress(cut.stop, len(indptr) - 1)
    return (
        {name: np.hstack([out[name] for out, _, _ in parts]) for name in _FLOATS},
        np.hstack([status for _, status, _ in parts]),
        np.concatenate([oob for _, _, oob in parts], axis=1) if forests.return_oob else None,
    )


def _score_some(forests: _Forests, X, draws, P, indptr, indices) -> _Scores:
    return forests.score(X, draws, P, indptr, indices, n_jobs=1)


def _distinct_neighbourhoods(
    indptr: NDArray[np.int64], indices: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the neighbourhoods that differ in items or their order, and which one each equals."""
    place: dict[bytes, int] = {}
    first: list[int] = []
    same_as = np.empty(len(indptr) - 1, np.int64)
    for j in range(len(same_as)):
        key = indices[indptr[j] : indptr[j + 1]].tobytes()
        same_as[j] = place.setdefault(key, len(first))
        if same_as[j] == len(first):
            first.append(j)
    return np.array(first, np.int64), same_as


def _tree_seeds(random_state: int | np.random.RandomState | None, n: int) -> NDArray[np.uint32]:
    """Draw the trees' seeds as scikit-learn's forests do."""
    generator = check_random_state(random_state)
    largest = np.iinfo(np.int32).max
    return np.array([generator.randint(largest) for _ in range(n)], dtype=np.uint32)


def _core_for(X: NDArray[np.float32], n_classes: int) -> ModuleType | None:
    """Return the compiled core if it can take these data."""
    core = native()
    if core is None:
        return None
    reason = None
    if len(X) > _MOST_ITEMS:
        reason = f"more than {_MOST_ITEMS} calibration items"
    elif n_classes > _MOST_CLASSES:
        reason = f"more than {_MOST_CLASSES} classes"
    elif X.size > _MOST_CELLS:
        reason = f"more than {_MOST_CELLS} values in X"
    elif not np.isfinite(X).all():
        reason = "missing values in X"
    if reason is None:
        return core
    warnings.warn(
        f"Local forests with {reason} are grown by scikit-learn, many times slower than by the "
        "compiled core; the results are the same.",
        RuntimeWarning,
        stacklevel=4,
    )
    return None


def _check_input(X, draws, n_classes, P, indptr, indices, alphas, select, mode) -> None:
    n = len(X)
    if X.ndim != 2 or X.shape[1] == 0 or P.shape != (n, n_classes) or draws.shape[1] != n:
        raise ValueError(
            f"X, codes and P must describe the same items and classes; got X {X.shape}, "
            f"codes {draws.shape}, P {P.shape} and n_classes={n_classes}."
        )
    if draws.size and not (draws.min() >= 0 and draws.max() < n_classes):
        raise ValueError(f"codes must lie in range({n_classes}); encode the labels first.")
    check_starts("local_forest_scores", "indptr", indptr, len(indices))
    if len(indices) and not (indices.min() >= 0 and indices.max() < n):
        raise ValueError(f"indices must lie in range({n}), the calibration items.")
    rising = alphas.ndim == 1 and len(alphas) and (alphas[1:] > alphas[:-1]).all()
    if not (rising and alphas[0] >= 0):
        raise ValueError("alphas must be non-negative and strictly increasing.")
    if select not in ("accuracy", "brier"):
        raise ValueError(f"select must be 'accuracy' or 'brier'; got {select!r}.")
    if mode not in ("exact", "fast"):
        raise ValueError(f"mode must be 'exact' or 'fast'; got {mode!r}.")
