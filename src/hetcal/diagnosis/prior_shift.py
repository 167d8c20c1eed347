r"""Class balance in new data without labels, and probabilities corrected for it.

If only the class frequencies change, and not what items of a class look like, then calibrated
probabilities p for the old frequencies :math:`\pi` become
:math:`q_k \propto p_k \pi'_k / \pi_k` for new ones :math:`\pi'`. Saerens, Latinne and Decaestecker
(2002) find :math:`\pi'` by expectation-maximisation: it is the mean of q over the new items. These
are the frequencies of greatest likelihood, a concave problem that Newton's method solves in a few
steps also where the probabilities say little and expectation-maximisation creeps.

What can be seen at all: if p has the same distribution in every class, any frequencies explain it
equally well, and only the features can tell. Where new features are given, a forest on features and
probabilities is asked too; items and new items are scored by forests that have not seen them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import ndtri, softmax
from sklearn.exceptions import ConvergenceWarning

from hetcal._typing import Matrix
from hetcal._validation import check_proba
from hetcal._validation.containers import as_float_array
from hetcal.calibration.registry import get_calibrator
from hetcal.data import CalibrationSet, Folds
from hetcal.diagnosis.candidates import forest_votes_of_both
from hetcal.kernels.simplex import log_probabilities

_TOLERANCE = 1e-9  # of the log-likelihood per item
_MOST_STEPS, _MOST_HALVINGS = 100, 10
_RIDGE, _NEARLY_ALL = 1e-10, 0.999
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
        Frequencies among the calibration items, and estimated among the new ones; of a class that
        no calibration item has, the mean of the classifier's probabilities.
    low, high : ndarray of shape (K,)
        95 % interval of ``new - old``, adjusted for the number of classes.
    seen_in : {"probabilities", "features"}
        Whether the classifier's probabilities show it, or a forest on features and probabilities.
    labels_half_width : float
        How far the interval would reach if the new items had labels.
    """

    old: Matrix
    new: Matrix
    low: Matrix
    high: Matrix
    seen_in: str = "probabilities"
    labels_half_width: float = 0.0

    @property
    def half_width(self) -> float:
        """How far the widest of the intervals reaches to either side."""
        return float((self.high - self.low).max() / 2)

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
    return _likeliest_prior(P, _prior(old_prior, "old_prior", P), np.ones(P.shape[0]))


def measure_prior_shift(
    items: CalibrationSet, new_output: Matrix, *, X_new: Any = None, random_state: int = 0
) -> PriorShift:
    """Compare class frequencies, with an interval from resampling both sets of items.

    The map that calibrates the probabilities is refitted to every resample, so the interval knows
    how little a small calibration set says. Where the interval is wide and new features are given,
    the classifier's probabilities are replaced by a forest's, if those give a shorter one.
    """
    if items.unseen.any():
        return _with_unseen_classes(items, new_output, X_new, random_state)
    seen = _measured(items, new_output, random_state)
    if X_new is None or seen.half_width <= _MATTERS:
        return seen
    by_forest = _measured(*_scored_by_forest(items, new_output, X_new, random_state), random_state)
    if by_forest.half_width >= seen.half_width:
        return seen
    return replace(by_forest, seen_in="features")


def _with_unseen_classes(
    items: CalibrationSet, new_output: Matrix, X_new: Any, random_state: int
) -> PriorShift:
    """Measure the classes that items have, and leave open what they cannot say about others.

    All that is known of a class without items is what the classifier says; and where that matters,
    new items of it were taken for others.
    """
    unseen, kind = items.unseen, items.kind
    known = replace(
        items.with_output(_without(unseen, kind, items.output), kind),
        classes=items.classes[~unseen],
        codes=(np.cumsum(~unseen) - 1)[items.codes],
    )
    shift = measure_prior_shift(
        known, _without(unseen, kind, new_output), X_new=X_new, random_state=random_state
    )
    said = _as_proba(kind, new_output).mean(axis=0)
    old, new, low, high = np.full((4, unseen.shape[0]), _LEAST_PRIOR)
    old[~unseen], new[~unseen] = shift.old, shift.new * (1 - said[unseen].sum())
    new[unseen] = said[unseen]
    if said[unseen].sum() >= _MATTERS:
        low, high = -old, 1 - old
    else:
        low[~unseen], high[~unseen] = shift.low, shift.high
        # As many may be there, and none among the calibration items (95 %).
        n_units = np.unique(items.units).size
        low[unseen], high[unseen] = -_LEAST_PRIOR, max(_MATTERS, 3 / n_units)
    return replace(shift, old=old, new=new, low=low, high=high)


def _without(unseen: NDArray[np.bool_], kind: str, output: Matrix) -> Matrix:
    """Return the output without some columns; rows of probabilities sum to one again."""
    left = output[:, ~unseen]
    if kind == "logits":
        return left
    total = left.sum(axis=1, keepdims=True)
    return np.divide(left, total, out=np.full_like(left, 1 / left.shape[1]), where=total > 0)


@dataclass(frozen=True)
class _Balance:
    """Class frequencies, and the means of calibrated probabilities, before and after."""

    old: Matrix
    new: Matrix
    mean_moved: Matrix


def _measured(items: CalibrationSet, new_output: Matrix, random_state: int) -> PriorShift:
    rng = np.random.default_rng([random_state, 7])
    n, m, K = items.n_items, new_output.shape[0], items.classes.shape[0]
    found = _balance(items, new_output, np.arange(n), np.ones(m))
    units = items.units
    members = np.split(np.argsort(units, kind="stable"), np.cumsum(np.bincount(units))[:-1])
    drawn = []
    for _ in range(_N_BOOTSTRAP):
        rows = np.concatenate([members[u] for u in rng.integers(0, len(members), len(members))])
        some = rng.choice(m, min(m, _MOST_NEW_ITEMS), replace=False)
        counts = rng.multinomial(m, np.full(some.shape[0], 1 / some.shape[0])).astype(np.float64)
        drawn.append(_balance(items, new_output[some], rows, counts))
    errors = ndtri(1 - 0.025 / max(K - 1, 1))  # Bonferroni over classes; two are one question
    shift, width = found.new - found.old, errors * _spread([b.new - b.old for b in drawn])
    low, high = shift - width, shift + width
    # Frequencies end at 0 and 1, so where probabilities say little their spread is no measure. The
    # mean of the probabilities has no such end: where it has not moved, nothing has been seen, and
    # an estimate that ran to an end says as little about the other side.
    still = np.abs(found.mean_moved) <= errors * _spread([b.mean_moved for b in drawn])
    reach = np.where((low < -found.old) | (high > 1 - found.old), width, 0.0)
    low = np.maximum(np.where(still, np.minimum(low, -reach), low), -found.old)
    high = np.minimum(np.where(still, np.maximum(high, reach), high), 1 - found.old)
    widest = (found.old * (1 - found.old)).max()
    by_labels = errors * np.sqrt(widest * (1 / len(members) + 1 / m))
    return PriorShift(found.old, found.new, low, high, labels_half_width=float(by_labels))


def _spread(values: list[Matrix]) -> Matrix:
    return np.std(values, axis=0, ddof=1)


def _balance(
    items: CalibrationSet,
    new_output: Matrix,
    rows: NDArray[np.int64],
    counts: Matrix,
) -> _Balance:
    """Return class frequencies among some calibration items, and those estimated for new ones.

    The estimate starts from the mean of the calibrated probabilities of these calibration items.
    It is not quite the frequency of the labels (maps are smoothed), and where probabilities say
    little about the class, the likelihood would blow the difference up to a shift.
    """
    K = items.classes.shape[0]
    old = np.bincount(items.codes[rows], items.weights[rows], K)
    old = np.maximum(old / old.sum(), _LEAST_PRIOR)
    if np.unique(items.codes[rows]).shape[0] < 2:
        return _Balance(old, old, np.zeros(K))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = get_calibrator("bcts").fit_set(items.take(rows))
    before = items.weights[rows] @ fitted.predict_set(items.take(rows))
    before = np.maximum(before / before.sum(), _LEAST_PRIOR)
    P = fitted.predict_proba(None, **{items.kind: new_output})
    new = old * _likeliest_prior(P, before, counts) / before
    return _Balance(old, new / new.sum(), counts @ P / counts.sum() - before)


def _scored_by_forest(
    items: CalibrationSet, new_output: Matrix, X_new: Any, random_state: int
) -> tuple[CalibrationSet, Matrix]:
    """Return the items and the new ones with the votes of forests that have seen neither.

    Each new item is scored by one of the forests, as each calibration item is, so that without a
    shift both have the same distribution.
    """
    rng = np.random.default_rng([random_state, 8])
    Z = _with_log_proba(items.features(), items.kind, items.output)
    Z_new = _with_log_proba(items.encoder().transform(X_new), items.kind, new_output)
    folds = Folds.make(items.n_items, seed=[random_state, 8], groups=items.groups)
    scorer = rng.choice(folds.number, Z_new.shape[0])
    votes, new_votes = forest_votes_of_both(Z, items, folds, Z_new, scorer, seed=random_state)
    return items.with_output(votes, "y_proba"), new_votes


def _with_log_proba(features: Matrix, kind: str, output: Matrix) -> Matrix:
    return np.hstack([features, log_probabilities(_as_proba(kind, output), _LEAST_PRIOR)])


def _as_proba(kind: str, output: Matrix) -> Matrix:
    return output if kind == "y_proba" else softmax(output, axis=1)


def _likeliest_prior(P: Matrix, old: Matrix, counts: Matrix) -> Matrix:
    r"""Return the class frequencies under which the probabilities are likeliest.

    With :math:`R_{ik} = P_{ik} / \pi_k` and shares w, minimises
    :math:`-\sum_i w_i \log (R x)_i + \sum_k x_k` over :math:`x \ge 0`, whose solution sums to one
    by itself, by Newton steps: each a least-squares problem with :math:`x \ge 0`, cut short until
    the likelihood has grown. The slope of a class tells how far from the maximum it is.
    """
    known = old > 0
    ratio = P[:, known] / old[known]
    possible = (ratio.sum(axis=1) > 0) & (counts > 0)
    ratio, share = ratio[possible], counts[possible] / counts[possible].sum()
    x = old[known]
    value = _minus_log_likelihood(x, ratio, share)
    for _ in range(_MOST_STEPS):
        per_item = ratio / (ratio @ x)[:, None]
        slope = share @ per_item
        if slope.max() - 1 < _TOLERANCE:
            break
        curvature = (per_item * share[:, None]).T @ per_item
        # Probabilities that say nothing make it singular.
        curvature[np.diag_indices_from(curvature)] += _RIDGE * np.trace(curvature)
        root = np.linalg.cholesky(curvature)
        wanted, _ = nnls(root.T, np.linalg.solve(root, 2 * slope - 1), maxiter=30 * x.shape[0])
        towards = wanted - x
        for halved in range(_MOST_HALVINGS):
            further = x + _NEARLY_ALL * towards / 2**halved  # no class is ruled out for good
            reached = _minus_log_likelihood(further, ratio, share)
            if reached < value:
                break
        else:
            further = x * slope  # a step of expectation-maximisation never fails
            reached = _minus_log_likelihood(further, ratio, share)
        x, value = further, reached
    prior = np.zeros_like(old)
    prior[known] = x / x.sum()
    return prior


def _minus_log_likelihood(x: Matrix, ratio: Matrix, share: Matrix) -> float:
    with np.errstate(divide="ignore"):
        return float(x.sum() - share @ np.log(ratio @ x))


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
