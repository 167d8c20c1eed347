"""Splits that a user asks for by ``cv=``, with scikit-learn's meaning; our own are ``Folds``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray

from hetcal._typing import Rows
from hetcal.data.folds import Split


def stratified_folds(y: NDArray, n_folds: int, *, groups: Any = None, seed: Any = 0) -> list[Split]:
    """Return shuffled folds with about equal shares of each class, by group where there are any."""
    kinds = sklearn.model_selection  # loaded here: whoever only predicts does not need it
    kind = kinds.StratifiedKFold if groups is None else kinds.StratifiedGroupKFold
    # Where every class is rarer than the number of folds there is nothing to stratify by.
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    strata = codes if counts.max() >= n_folds else np.zeros_like(codes)
    return _split(kind(n_folds, shuffle=True, random_state=seed), strata, groups)


def splits_of(cv: Any, y: NDArray, groups: Any = None) -> list[Split]:
    """Return the splits of a splitter, or of an iterable of (train, test)."""
    return _split(sklearn.model_selection.check_cv(cv, y, classifier=True), y, groups)


def check_groups_apart(split: Split, groups: Rows | None, caller: str) -> None:
    """Raise where a group is on both sides of a split."""
    train, test = split
    if groups is not None and np.intersect1d(groups[train], groups[test]).size:
        raise ValueError(
            f"{caller}: cv puts rows of one group on both sides of a split. Pass a splitter that "
            "keeps groups together, e.g. StratifiedGroupKFold, or a number of folds."
        )


def _split(splitter: Any, y: NDArray, groups: Any) -> list[Split]:
    with warnings.catch_warnings():
        # Classes rarer than the number of folds keep their column, and whether groups were kept
        # together is checked on the splits themselves.
        warnings.filterwarnings("ignore", message="The least populated class")
        warnings.filterwarnings("ignore", message="The groups parameter is ignored")
        pairs = list(splitter.split(np.zeros((y.shape[0], 1)), y, groups))
    return [(_as_rows(train), _as_rows(test)) for train, test in pairs]


def _as_rows(rows: Any) -> Rows:
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
