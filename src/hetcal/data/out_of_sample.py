"""Predictions of items by what was learned from other items: the one loop over folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from hetcal._typing import Matrix, Rows
from hetcal.data.folds import Split

Predict = Callable[[Rows], Matrix]


def out_of_sample(
    learn: Callable[[Rows], Predict], splits: Iterable[Split], n_items: int
) -> Matrix:
    """Return predictions of every item, each by a predictor that has not seen it.

    Parameters
    ----------
    learn : callable
        Takes the rows to learn from and returns a function from other rows to their predictions,
        an array whose last two axes are (rows, classes).
    splits : Folds or iterable of (train rows, test rows)
    n_items : int

    Returns
    -------
    ndarray of shape (..., n_items, K)
        NaN for items that no split tests.

    Examples
    --------
    >>> from hetcal.data import Folds
    >>> truth = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    >>> def frequencies(train):
    ...     return lambda test: np.tile(truth[train].mean(axis=0), (len(test), 1))
    >>> out_of_sample(frequencies, Folds(np.array([0, 0, 1, 1])), 4)
    array([[0. , 1. ],
           [0. , 1. ],
           [0.5, 0.5],
           [0.5, 0.5]])
    """
    predicted: Matrix | None = None
    for train, test in splits:
        part = np.asarray(learn(train)(test), dtype=np.float64)
        if predicted is None:
            predicted = np.full((*part.shape[:-2], n_items, part.shape[-1]), np.nan)
        predicted[..., test, :] = part
    if predicted is None:
        raise ValueError("out_of_sample got no split. Pass Folds, or pairs of train and test rows.")
    return predicted
