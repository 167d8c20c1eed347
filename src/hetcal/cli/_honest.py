"""Honest figures of a fitted calibrator: what it says of items whose label it has not used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hetcal.calibration.hybrid.problem import make_folds
from hetcal.io.problem import Problem

Matrix = NDArray[np.float64]

_N_FOLDS = 5


def honest_proba(calibrator: Any, problem: Problem) -> Matrix | None:
    """Return honest predictions of the calibration items, None where there are too few items.

    A calibrator that has none of its own is fitted again on four fifths of the items, five times.
    """
    own = getattr(calibrator, "out_of_sample_proba_", None)
    return _cross_fitted(calibrator, problem) if own is None else own


def honest_support(calibrator: Any) -> Matrix | None:
    """Return the support of the calibration items, each as if it were new; None without any."""
    calibrator = getattr(calibrator, "calibrator_", calibrator)
    return calibrator.honest_support() if hasattr(calibrator, "honest_support") else None


def brier_losses(proba: Matrix, problem: Problem) -> Matrix:
    """Return the Brier score of each item, summed over classes."""
    truth = problem.y[:, None] == problem.classes[None, :]
    return ((proba - truth) ** 2).sum(axis=1)


def mean_and_error(losses: Matrix, weight: Matrix | None) -> tuple[float, float]:
    """Return the mean, weighted where the items are, and its standard error."""
    share = np.full(len(losses), 1.0) if weight is None else weight
    share = share / share.sum()
    mean = float(share @ losses)
    return mean, float(np.sqrt(share**2 @ (losses - mean) ** 2))


def _cross_fitted(calibrator: Any, problem: Problem) -> Matrix | None:
    codes = np.unique(problem.y, return_inverse=True)[1]
    groups = None
    if problem.groups is not None:
        groups = np.unique(problem.groups, return_inverse=True)[1]
    folds = make_folds(codes, groups, _N_FOLDS, seed=0)
    honest = np.empty((problem.n_items, problem.classes.shape[0]))
    for fold in np.unique(folds):
        kept, out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if np.unique(codes[kept]).size < 2:
            return None
        new = problem.take(out)
        part = problem.take(kept).fit(clone(calibrator))
        honest[out] = part.predict_proba(new.X, **{problem.roles.output_kind: new.output})
    return honest
