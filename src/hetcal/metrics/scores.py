"""Scores that are a weighted mean of one loss per item: Brier, log loss, accuracy, cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hetcal._typing import Matrix, Vector
from hetcal._validation.containers import as_float_array
from hetcal.data import CalibrationSet
from hetcal.metrics.statistics import WeightedMean, checked_value

LOG_LOSS_EPS = float(np.finfo(np.float64).eps)


def brier_score(
    y: Any,
    y_proba: Any,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    normalized: bool = True,
) -> float:
    r"""Return the mean squared distance between probabilities and outcomes, summed over classes.

    .. math:: \frac{\sum_i w_i \sum_k (p_{ik} - [y_i = k])^2}{\sum_i w_i} \in [0, 2]

    The sum runs over all classes, also for two of them; scikit-learn halves the binary score unless
    told ``scale_by_half=False``.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels of any kind.
    y_proba : array-like of shape (n, K), or (n,) or (n, 1) for two classes
        Probabilities; a single column is the probability of the second class.
    classes : array-like of shape (K,), optional
        Column order of ``y_proba``; the sorted labels of ``y`` when None.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights; weight 2 counts like the row twice, weight 0 like no row.
    normalized : bool, default=True
        With False, rows need not sum to one; each class is scored by its own column. For methods
        that calibrate every class apart, such as the histogram binning of the paper.

    Returns
    -------
    float
        0 for certain and right, 2 for certain and wrong, ``1 - 1/K`` for uniform guesses.

    Examples
    --------
    >>> round(brier_score(["no", "yes"], [0.1, 0.8]), 6)
    0.05
    >>> round(brier_score(["no", "yes"], [[0.9, 0.2], [0.2, 0.8]], normalized=False), 6)
    0.065
    """
    return checked_value(brier_statistic, y, y_proba, classes, sample_weight, normalized)


def log_loss(
    y: Any,
    y_proba: Any,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    normalized: bool = True,
    eps: float = LOG_LOSS_EPS,
) -> float:
    r"""Return the mean of :math:`-\ln p_{i, y_i}`, the natural logarithm at the true class.

    Parameters
    ----------
    y, y_proba, classes, sample_weight, normalized
        As in :func:`brier_score`. The log loss of rows that do not sum to one is not proper.
    eps : float, default=2.2e-16
        Probabilities are clipped to ``[eps, 1 - eps]``, so that an impossible event that happened
        costs ``-ln(eps)`` (36.04 by default) and not infinity. A larger value forgives more.

    Returns
    -------
    float

    Examples
    --------
    >>> round(log_loss(["no", "yes"], [0.5, 0.5]), 4)
    0.6931
    >>> round(log_loss(["no", "yes"], [1.0, 1.0]), 4)
    18.0218
    """
    return checked_value(
        log_loss_statistic, y, y_proba, classes, sample_weight, normalized, eps=eps
    )


def accuracy(
    y: Any,
    y_proba: Any,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    normalized: bool = True,
) -> float:
    """Return the weighted share of items whose most probable class is the true one.

    Among equally probable classes the first in column order is predicted.

    Parameters
    ----------
    y, y_proba, classes, sample_weight, normalized
        As in :func:`brier_score`.

    Returns
    -------
    float

    Examples
    --------
    >>> accuracy(["no", "yes", "yes"], [0.1, 0.8, 0.5])
    0.666...
    """
    return checked_value(accuracy_statistic, y, y_proba, classes, sample_weight, normalized)


def expected_cost(
    y: Any,
    y_proba: Any,
    cost_matrix: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    normalized: bool = True,
) -> float:
    r"""Return the mean cost of the decisions that the probabilities recommend.

    For item i the decision is :math:`d_i = \arg\min_j \sum_k p_{ik} C_{kj}` (the first of equally
    cheap ones), and it costs :math:`C_{y_i d_i}`.

    Parameters
    ----------
    y, y_proba, classes, sample_weight, normalized
        As in :func:`brier_score`.
    cost_matrix : array-like of shape (K, n_decisions)
        ``cost_matrix[true class, decision]``, rows in the order of ``classes``. Usually K x K with
        zeros on the diagonal; further columns are decisions such as "ask a person". Gains are
        negative costs.

    Returns
    -------
    float

    Examples
    --------
    A missed fault costs 10, a needless check 1: at 20 % a check pays.

    >>> expected_cost(["ok", "fault"], [0.2, 0.2], [[0, 1], [10, 0]], classes=["ok", "fault"])
    0.5
    """
    return checked_value(
        expected_cost_statistic,
        y,
        y_proba,
        classes,
        sample_weight,
        normalized,
        cost_matrix=cost_matrix,
    )


def brier_losses(proba: Matrix, codes: NDArray[np.integer]) -> Vector:
    """Return the squared distance of each row to its outcome, given as the column of the truth.

    Any number of models may stand in leading axes: shape (..., n, K) gives (..., n).
    """
    difference = np.array(proba, dtype=np.float64)
    difference[..., np.arange(codes.shape[0]), codes] -= 1.0
    return np.einsum("...j,...j->...", difference, difference)


def log_losses(proba: Matrix, codes: NDArray[np.integer], *, eps: float = LOG_LOSS_EPS) -> Vector:
    """Return minus the logarithm of the probability of the truth, cut at ``eps``."""
    return -np.log(np.clip(proba[..., np.arange(codes.shape[0]), codes], eps, 1 - eps))


def losses_by_label(proba: Matrix, metric: str = "brier", *, eps: float = LOG_LOSS_EPS) -> Matrix:
    """Return what each row would cost with each label, shape (n, K).

    Examples
    --------
    >>> losses_by_label(np.array([[0.9, 0.1]])).round(2)
    array([[0.02, 1.62]])
    """
    if metric == "brier":
        return np.einsum("nj,nj->n", proba, proba)[:, None] + 1 - 2 * proba
    if metric == "log_loss":
        return -np.log(np.clip(proba, eps, 1 - eps))
    return np.eye(proba.shape[1])[proba.argmax(axis=1)]  # whether the label is the predicted one


def brier_statistic(items: CalibrationSet) -> WeightedMean:
    """Return :func:`brier_score` as a function of item counts."""
    by_label = losses_by_label(items.proba)
    return WeightedMean(brier_losses(items.proba, items.codes), items, by_label)


def log_loss_statistic(items: CalibrationSet, *, eps: float = LOG_LOSS_EPS) -> WeightedMean:
    """Return :func:`log_loss` as a function of item counts."""
    if not 0 < eps < 0.5:
        raise ValueError(f"log_loss: eps must lie between 0 and 0.5, both excluded; got {eps!r}.")
    by_label = losses_by_label(items.proba, "log_loss", eps=eps)
    return WeightedMean(log_losses(items.proba, items.codes, eps=eps), items, by_label)


def accuracy_statistic(items: CalibrationSet) -> WeightedMean:
    """Return :func:`accuracy` as a function of item counts."""
    right = losses_by_label(items.proba, "accuracy")
    return WeightedMean(right[np.arange(items.n_items), items.codes], items, right)


def expected_cost_statistic(items: CalibrationSet, *, cost_matrix: ArrayLike) -> WeightedMean:
    """Return :func:`expected_cost` as a function of item counts."""
    cost = check_cost_matrix(cost_matrix, items.n_classes)
    decisions = (items.proba @ cost).argmin(axis=1)
    return WeightedMean(cost[items.codes, decisions], items, cost[:, decisions].T)


def check_cost_matrix(cost_matrix: ArrayLike, n_classes: int) -> Matrix:
    """Return the costs as an array with a row per class and a column per decision."""
    cost = as_float_array(cost_matrix, "cost_matrix")
    if cost.ndim != 2 or cost.shape[0] != n_classes or cost.shape[1] == 0:
        raise ValueError(
            f"cost_matrix must have one row per class ({n_classes}) and one column per decision; "
            f"got shape {cost.shape}. cost_matrix[i, j] is the cost of decision j when class i is "
            "true."
        )
    if not np.isfinite(cost).all():
        raise ValueError(
            "cost_matrix must be finite; got NaN or infinity. Use a large number for a decision "
            "that must never be taken."
        )
    return cost
