"""Intervals around the hybrid's probabilities: of P(y | x), and of E[y | q]."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from hetcal._typing import Matrix, Rows, Vector
from hetcal.kernels.venn_abers import apply_venn_abers, fit_venn_abers

# What differences between items that nobody has found may be worth, as a share of the Brier score:
# the size that the advice calls worthwhile. Fewer items, for which nothing was measured, may leave
# more undiscovered in proportion.
_UNDISCOVERED, _ITEMS_TO_DISCOVER = 0.02, 500
# How items learned from locally lessen it, the share of a vote's variance and that of the experts
# around their blend, with how many items a change of p may be as wrong as it is large, and how far
# to a vote that was not followed one standard deviation reaches with up to 500 items: chosen on the
# develop half of the catalogue, 500 and 3000 items (benchmarks/probability_intervals.py).
_ITEMS_TO_HALVE = 1000 / 1.5
_SHARE_OF_VOTE = 0.05
_SHARE_OF_DISAGREEMENT = 0.75
_ITEMS_TO_CHANGE = 100
_WAY_TO_VOTE = 0.12
_NOBODY = 1e-9


def undiscovered(n_classes: int, n_items: float, local: float) -> float:
    """Return what hidden differences may remain, as a variance in units of Q (1 - Q).

    Parameters
    ----------
    n_classes : int
        The more there are, the less of what is hidden along one direction falls to each.
    n_items : float
        How many independent items were learned from.
    local : float
        How far local experts replace the classifier's own probabilities, in [0, 1].
    """
    at_start = _UNDISCOVERED * max(1.0, _ITEMS_TO_DISCOVER / n_items) / (n_classes - 1)
    return at_start / (1 + local * n_items / _ITEMS_TO_HALVE)


def share_of_vote(effective_size: Vector) -> Vector:
    """Return the variance of a vote that counts, in units of Q (1 - Q); huge where nobody votes."""
    return _SHARE_OF_VOTE / np.maximum(effective_size, _NOBODY)


def probability_interval(
    Q: Matrix,
    P: Matrix,
    vote: Matrix,
    relative: Vector,
    disagreement: Matrix,
    n_items: float,
    level: float,
) -> tuple[Matrix, Matrix]:
    """Return where P(y | x) may lie: so many standard deviations around the prediction.

    Parameters
    ----------
    Q, P : ndarray of shape (m, K)
        The prediction, and the classifier's own.
    vote : ndarray of shape (m, K)
        What similar items say, followed or not; NaN where there are none.
    relative : ndarray of shape (m,)
        Variance of what nobody has found and of votes that count, in units of Q (1 - Q).
    disagreement : ndarray of shape (m, K)
        Variance of the experts around their blend.
    n_items : float
        How many independent items were learned from.
    level : float
        Nominal coverage.

    Returns
    -------
    low, high : ndarray of shape (m, K)
        [0, 1] for items on which a vote counts that nobody casts.
    """
    # Half an item of either outcome: also a prediction of 0 or 1 may be wrong.
    relative = relative[:, None]
    center = (Q + relative / 2) / (1 + relative)
    variance = center * (1 - center) * relative + _SHARE_OF_DISAGREEMENT * disagreement
    error = np.sqrt(variance + min(1.0, _ITEMS_TO_CHANGE / n_items) * (Q - P) ** 2)
    toward = _WAY_TO_VOTE * min(1.0, _ITEMS_TO_DISCOVER / n_items) * np.nan_to_num(vote - Q)
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    low = Q - quantile * (error - np.minimum(toward, 0.0))
    high = Q + quantile * (error + np.maximum(toward, 0.0))
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def venn_abers_pair(known: Matrix, codes: Rows, weight: Vector, Q: Matrix) -> tuple[Matrix, Matrix]:
    """Return both ends of Venn-Abers predictors of each class, learned from ``known``.

    Parameters
    ----------
    known : ndarray of shape (n, K)
        Out-of-sample predictions of the calibration items.
    codes, weight : ndarray of shape (n,)
        Their labels and weights.
    Q : ndarray of shape (m, K)
        Predictions of new items.
    """
    low, high = np.empty_like(Q), np.empty_like(Q)
    for k in range(Q.shape[1]):
        fitted = fit_venn_abers(known[:, k], (codes == k).astype(np.float64), weight)
        low[:, k], high[:, k] = apply_venn_abers(fitted, Q[:, k])
    return low.clip(0.0, 1.0), high.clip(0.0, 1.0)


def check_level(level: Any) -> float:
    """Return the level of an interval."""
    if not (isinstance(level, int | float | np.number) and 0 < float(level) < 1):
        raise ValueError(
            "HybridCalibrator.predict_interval: level must be the share of items to be covered, "
            f"between 0 and 1; got {level!r}."
        )
    return float(level)
