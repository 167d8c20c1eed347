"""Honest figures of a fitted calibrator: what it says of items whose label it has not used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hetcal._validation import check_groups
from hetcal.calibration.hybrid.problem import make_folds
from hetcal.io.problem import Problem
from hetcal.metrics import standard_errors

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


def mean_and_error(losses: Matrix, problem: Problem) -> tuple[float, float]:
    """Return the mean over the items and its standard error, by their weights and groups."""
    mean, error = standard_errors.mean_and_error(losses, problem.weight, _group_codes(problem))
    return float(mean), float(error)


def _cross_fitted(calibrator: Any, problem: Problem) -> Matrix | None:
    codes = np.unique(problem.y, return_inverse=True)[1]
    folds = make_folds(codes, _group_codes(problem), _N_FOLDS, seed=0)
    honest = np.empty((problem.n_items, problem.classes.shape[0]))
    for fold in np.unique(folds):
        kept, out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if np.unique(codes[kept]).size < 2:
            return None
        new = problem.take(out)
        part = problem.take(kept).fit(clone(calibrator))
        honest[out] = part.predict_proba(new.X, **{problem.roles.output_kind: new.output})
    return honest


def _group_codes(problem: Problem) -> NDArray[np.int64] | None:
    return None if problem.groups is None else check_groups(problem.groups, problem.n_items)
