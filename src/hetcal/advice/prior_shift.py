r"""Class balance in new data without labels, and probabilities corrected for it.

If only the class frequencies change, and not what items of a class look like, then calibrated
probabilities p for the old frequencies :math:`\pi` become
:math:`q_k \propto p_k \pi'_k / \pi_k` for new ones :math:`\pi'`. Saerens, Latinne and Decaestecker
(2002) find :math:`\pi'` by expectation-maximisation: it is the mean of q over the new items.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning

from hetcal._validation import check_proba
from hetcal._validation.containers import as_float_array
from hetcal.advice.items import CalibrationItems, Matrix
from hetcal.calibration.registry import get_calibrator

_TOLERANCE = 1e-6
_MOST_STEPS = 500
_N_BOOTSTRAP = 100
_MOST_NEW_ITEMS = 5000  # of each resample: enough for intervals
_MATTERS = 0.02
_LEAST_PRIOR = 1e-6


@dataclass(frozen=True)
class PriorShift:
    """Class frequencies of the calibration items and of new items.

    Attributes
    ----------
    old, new : ndarray of shape (K,)
        Frequencies among the calibration items, and estimated among the new ones.
    low, high : ndarray of shape (K,)
        95 % interval of ``new - old``, adjusted for the number of classes.
    """

    old: Matrix
    new: Matrix
    low: Matrix
    high: Matrix

    @property
    def shifted(self) -> NDArray[np.bool_]:
        """Classes whose frequency has surely changed, and by 0.02 or more."""
        sure = (self.low > 0) | (self.high < 0)
        return sure & (np.abs(self.new - self.old) >= _MATTERS)


def correct_prior(proba: Any, old_prior: Any, new_prior: Any) -> Matrix:
    """Return probabilities for class frequencies other than those they were calibrated for.

    Parameters
    ----------
    proba : array-like of shape (n, K)
        Calibrated probabilities.
    old_prior, new_prior : array-like of shape (K,)
        Class frequencies that ``proba`` was calibrated for, and those of the items it is about.

    Returns
    -------
    ndarray of shape (n, K)

    Examples
    --------
    >>> correct_prior([[0.5, 0.5]], [0.5, 0.5], [0.8, 0.2])
    array([[0.8, 0.2]])
    """
    P = check_proba(proba, name="proba")
    old, new = _prior(old_prior, "old_prior", P), _prior(new_prior, "new_prior", P)
    impossible = (old == 0) & ((new > 0) | (P > 0).any(axis=0))
    if impossible.any():
        raise ValueError(
            f"correct_prior: class {int(np.argmax(impossible))} has old_prior 0, so nothing is "
            "known about it. Give every class that occurs a positive frequency."
        )
    return _reweighted(P, np.divide(new, old, out=np.zeros_like(new), where=old > 0))


def estimate_prior(proba: Any, old_prior: Any) -> Matrix:
    """Estimate the class frequencies of unlabelled items from their calibrated probabilities.

    Parameters
    ----------
    proba : array-like of shape (n, K)
        Calibrated probabilities of the items.
    old_prior : array-like of shape (K,)
        Class frequencies that ``proba`` was calibrated for.

    Returns
    -------
    ndarray of shape (K,)

    Examples
    --------
    >>> estimate_prior([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]], [0.5, 0.5]).round(2)
    array([0.82, 0.18])
    """
    P = check_proba(proba, name="proba")
    return _expectation_maximisation(P, _prior(old_prior, "old_prior", P), np.ones(P.shape[0]))


def measure_prior_shift(
    items: CalibrationItems, new_output: Matrix, *, random_state: int = 0
) -> PriorShift:
    """Compare class frequencies, with an interval from resampling both sets of items.

    The map that calibrates the probabilities is refitted to every resample, so the interval knows
    how little a small calibration set says.
    """
    rng = np.random.default_rng([random_state, 7])
    n, m, K = items.n_items, new_output.shape[0], items.classes.shape[0]
    old, new = _both_priors(items, new_output, np.arange(n), np.ones(m))
    units = np.arange(n) if items.groups is None else items.groups
    members = np.split(np.argsort(units, kind="stable"), np.cumsum(np.bincount(units))[:-1])
    shifts = []
    for _ in range(_N_BOOTSTRAP):
        rows = np.concatenate([members[u] for u in rng.integers(0, len(members), len(members))])
        some = rng.choice(m, min(m, _MOST_NEW_ITEMS), replace=False)
        counts = rng.multinomial(m, np.full(some.shape[0], 1 / some.shape[0])).astype(np.float64)
        before, after = _both_priors(items, new_output[some], rows, counts)
        shifts.append(after - before)
    spread = np.std(shifts, axis=0, ddof=1)
    # Bonferroni over classes; two classes are one question.
    width = ndtri(1 - 0.025 / max(K - 1, 1)) * spread
    return PriorShift(old, new, new - old - width, new - old + width)


def _both_priors(
    items: CalibrationItems,
    new_output: Matrix,
    rows: NDArray[np.int64],
    counts: Matrix,
) -> tuple[Matrix, Matrix]:
    """Return class frequencies among some calibration items, and those estimated for new ones.

    The estimate starts from the mean of the calibrated probabilities of these calibration items.
    It is not quite the frequency of the labels (maps are smoothed), and where probabilities say
    little about the class, expectation-maximisation would blow the difference up to a shift.
    """
    K = items.classes.shape[0]
    old = np.bincount(items.codes[rows], items.weights[rows], K)
    old = np.maximum(old / old.sum(), _LEAST_PRIOR)
    if np.unique(items.codes[rows]).shape[0] < 2:
        return old, old
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = get_calibrator("bcts", classes=np.arange(K)).fit(
            None, items.codes[rows], sample_weight=items.weights[rows], **items.output_of(rows)
        )
    before = items.weights[rows] @ fitted.predict_proba(None, **items.output_of(rows))
    before = np.maximum(before / before.sum(), _LEAST_PRIOR)
    P = fitted.predict_proba(None, **{items.kind: new_output})
    new = old * _expectation_maximisation(P, before, counts) / before
    return old, new / new.sum()


def _expectation_maximisation(P: Matrix, old: Matrix, counts: Matrix) -> Matrix:
    prior = old
    share = counts / counts.sum()
    for _ in range(_MOST_STEPS):
        ratio = np.divide(prior, old, out=np.zeros_like(prior), where=old > 0)
        updated = share @ _reweighted(P, ratio)
        if np.abs(updated - prior).max() < _TOLERANCE:
            return updated
        prior = updated
    return prior


def _reweighted(P: Matrix, ratio: Matrix) -> Matrix:
    Q = P * ratio
    total = Q.sum(axis=1, keepdims=True)
    return np.divide(Q, total, out=P.copy(), where=total > 0)


def _prior(values: Any, name: str, P: Matrix) -> Matrix:
    prior = as_float_array(values, name)
    if prior.shape != (P.shape[1],) or not np.isfinite(prior).all() or (prior < 0).any():
        raise ValueError(
            f"{name} must hold one frequency >= 0 per column of proba ({P.shape[1]}); got "
            f"{np.asarray(values).tolist()!r}."
        )
    if not 0.99 <= prior.sum() <= 1.01:
        raise ValueError(f"{name} sums to {prior.sum():.4g}; class frequencies must sum to one.")
    return prior / prior.sum()
