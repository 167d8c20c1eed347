"""Out-of-fold outputs of a classifier: what it says about items that it was not trained on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from hetcal._exceptions import HetcalWarning, levels_to_caller
from hetcal._typing import Matrix
from hetcal._validation import check_columns_match_classes, check_logits, check_proba
from hetcal._validation.containers import number_of_rows, take_rows
from hetcal._validation.text import short_list
from hetcal.calibration.precomputed import PrecomputedProba
from hetcal.data.folds import Split
from hetcal.data.splits import check_groups_apart, splits_of, stratified_folds

_N_FOLDS = 5
# How far below the smallest logit of a row a class stands that the fold's model never saw.
_UNSEEN_LOGIT_GAP = -np.log(1e-12)


def output_kind(estimator: Any) -> str:
    """Return ``"y_proba"`` or ``"logits"``: what the classifier says about an item."""
    if isinstance(estimator, PrecomputedProba):
        return "y_proba" if estimator.kind == "proba" else "logits"
    if hasattr(estimator, "predict_proba"):
        return "y_proba"
    if hasattr(estimator, "decision_function"):
        return "logits"
    raise TypeError(
        f"{type(estimator).__name__} has neither predict_proba nor decision_function. "
        "Pass a classifier that has one of them."
    )


def output_of(estimator: Any, X: Any, classes: NDArray) -> Matrix:
    """Return the fitted classifier's output with one column per class of ``classes``."""
    kind = output_kind(estimator)
    name = f"{type(estimator).__name__}'s output"
    if isinstance(estimator, PrecomputedProba):
        scores = estimator.read(X)
    elif kind == "y_proba":
        scores = check_proba(estimator.predict_proba(X), name=name)
    else:
        scores = check_logits(estimator.decision_function(X), name=name)
    if scores.shape[0] != number_of_rows(X, "X"):
        raise ValueError(
            f"{name} has {scores.shape[0]} rows for {number_of_rows(X, 'X')} items. Correct its "
            "predict_proba or decision_function: one row per item, in the same order."
        )
    known = np.asarray(getattr(estimator, "classes_", classes))
    check_columns_match_classes(scores.shape[1], known, name=name, given=True)
    return _aligned(scores, known, classes, kind)


def fit_weighted(estimator: Any, X: Any, y: NDArray, weight: Matrix | None) -> Any:
    """Fit the classifier, with the weights where it takes them."""
    return estimator.fit(X, y, **weight_parameter(estimator, weight))


def weight_parameter(estimator: Any, weight: Matrix | None) -> dict[str, Matrix]:
    """Return the weights under the name by which ``fit`` takes them (a pipeline's last step too).

    Nothing, after a warning, where it does not.
    """
    if weight is None:
        return {}
    if has_fit_parameter(estimator, "sample_weight"):
        return {"sample_weight": weight}
    if isinstance(estimator, sklearn.pipeline.Pipeline):
        name, last = estimator.steps[-1]
        if has_fit_parameter(last, "sample_weight"):
            return {f"{name}__sample_weight": weight}
    warnings.warn(
        f"{type(estimator).__name__} does not take sample_weight; the weights are used for the "
        "calibration only.",
        HetcalWarning,
        stacklevel=levels_to_caller(),
    )
    return {}


def cross_fit(
    estimator: Any,
    X: Any,
    y: NDArray,
    classes: NDArray,
    *,
    parameters: dict[str, Any] | None = None,
    weight: Matrix | None = None,
    groups: NDArray | None = None,
    cv: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> tuple[Matrix, NDArray[np.int64]]:
    """Return out-of-fold outputs and the rows they belong to.

    Rows that no fold tests (as with ``TimeSeriesSplit``) are left out.

    Parameters
    ----------
    estimator : classifier
        Unfitted; cloned for each fold.
    X : table, array or sparse matrix
    y : ndarray of shape (n,)
    classes : ndarray of shape (K,)
        The columns of the result; a class that is missing from a fold keeps its column.
    parameters : dict, optional
        What the classifier's ``fit`` is given; of what has one entry per row, the rows of the fold.
    weight : ndarray of shape (n,), optional
        Rows of weight 0 do not count where a fold must hold two classes.
    groups : ndarray of shape (n,), optional
        Rows of one group are never on both sides of a split.
    cv : int, splitter or iterable of splits, optional
        None: five stratified folds, shuffled.
    n_jobs : int, optional
    random_state : int, RandomState or None
        Of the shuffling of the default folds.

    Returns
    -------
    scores : ndarray of shape (m, K)
    rows : ndarray of shape (m,)
    """
    splits = _splits(y, groups, cv, random_state)
    _check_splits(splits, y, groups, weight)
    outputs = Parallel(n_jobs=n_jobs)(
        delayed(_fold_output)(estimator, X, y, parameters or {}, train, test, classes)
        for train, test in splits
    )
    tested = np.concatenate([test for _, test in splits])
    order = np.argsort(tested, kind="stable")
    return np.vstack(outputs)[order], tested[order]


def _fold_output(
    estimator: Any,
    X: Any,
    y: NDArray,
    parameters: dict[str, Any],
    train: NDArray[np.int64],
    test: NDArray[np.int64],
    classes: NDArray,
) -> Matrix:
    n_rows = y.shape[0]
    cut = {name: _rows_of(value, train, n_rows) for name, value in parameters.items()}
    with warnings.catch_warnings():
        # The fit on all rows says the same once.
        warnings.simplefilter("ignore", HetcalWarning)
        model = clone(estimator).fit(take_rows(X, train), y[train], **cut)
    return output_of(model, take_rows(X, test), classes)


def _rows_of(value: Any, rows: NDArray[np.int64], n_rows: int) -> Any:
    """Return some rows of what has one entry per row, and everything else as it is."""
    if isinstance(value, str | bytes | dict):
        return value
    if getattr(value, "shape", None):
        length = value.shape[0]
    else:
        length = len(value) if hasattr(value, "__len__") else None
    return take_rows(value, rows) if length == n_rows else value


def _splits(y: NDArray, groups: NDArray | None, cv: Any, random_state: Any) -> list[Split]:
    if cv is not None and not isinstance(cv, int | np.integer):
        _check_rare_classes(getattr(cv, "n_splits", 0), y)
        return splits_of(cv, y, groups)
    n_folds = int(_N_FOLDS if cv is None else cv)
    units = y.shape[0] if groups is None else np.unique(groups).shape[0]
    if n_folds < 2 or (cv is not None and n_folds > units):
        raise ValueError(
            f"cv={cv} folds cannot be made of {units} rows or groups. Pass 2 <= cv <= {units}."
        )
    if cv is not None:
        _check_rare_classes(n_folds, y)
    return stratified_folds(y, min(n_folds, units), groups=groups, seed=random_state)


def _check_rare_classes(n_folds: int, y: NDArray) -> None:
    """Raise where a class has fewer items than folds that were asked for."""
    labels, counts = np.unique(y, return_counts=True)
    rarest = counts.argmin()
    if counts[rarest] < n_folds:
        raise ValueError(
            f"Requesting {n_folds}-fold cross-validation, but class {labels[rarest].item()!r} has "
            f"{counts[rarest]} item(s). Pass cv={max(counts[rarest], 2)} or fewer folds, or "
            "cv=None, under which folds may lack a rare class."
        )


def _check_splits(
    splits: list[Split], y: NDArray, groups: NDArray | None, weight: Matrix | None
) -> None:
    tested = np.concatenate([test for _, test in splits])
    if np.unique(tested).shape[0] < tested.shape[0]:
        raise ValueError(
            "cv tests some rows in more than one split, so they have no single out-of-fold "
            "probability. Pass a splitter whose test sets do not overlap, e.g. StratifiedKFold."
        )
    counts = np.ones(y.shape[0]) if weight is None else weight
    unseen = 0
    for train, test in splits:
        check_groups_apart((train, test), groups, "LocallyCalibratedClassifier")
        trained = np.unique(y[train][counts[train] > 0])
        if trained.shape[0] < 2:
            raise ValueError(
                f"A training fold holds one class only ({trained.tolist()}). Pass a smaller cv, "
                "collect more items of the rare class, or fit the model elsewhere and freeze it "
                "(sklearn.frozen.FrozenEstimator)."
            )
        unseen += int((~np.isin(y[test], trained) & (counts[test] > 0)).sum())
    if unseen:
        warnings.warn(
            f"{unseen} row(s) belong to a class that their training fold does not hold; their "
            "out-of-fold probability of that class is zero. Collect more items of rare classes, "
            "or freeze a fitted model (sklearn.frozen.FrozenEstimator).",
            HetcalWarning,
            stacklevel=levels_to_caller(),
        )


def _aligned(scores: Matrix, known: NDArray, classes: NDArray, kind: str) -> Matrix:
    """Return the columns of ``known`` classes at their place among all ``classes``."""
    if np.array_equal(known, classes):
        return scores
    place = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in known.tolist() if label not in place]
    if unknown:
        raise ValueError(
            f"The classifier predicts classes that y does not hold: {short_list(unknown)}. Let its "
            "classes_ be the labels it was fitted with, or fit it first and freeze it "
            "(sklearn.frozen.FrozenEstimator): then all its classes count."
        )
    if kind == "y_proba":
        full = np.zeros((scores.shape[0], classes.shape[0]))
    else:
        lowest = scores.min(axis=1, keepdims=True) - _UNSEEN_LOGIT_GAP
        full = np.repeat(lowest, classes.shape[0], axis=1)
    full[:, [place[label] for label in known.tolist()]] = scores
    return full
