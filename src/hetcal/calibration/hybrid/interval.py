"""Intervals around the hybrid's probabilities: of P(y | x), and of E[y | q]."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from hetcal._typing import Matrix, Rows, Vector
from hetcal.kernels.venn_abers import apply_venn_abers, fit_venn_abers

# Chosen on the develop half of the catalogue (benchmarks/probability_intervals.py).
_ITEMS_PER_VOTE = 1.5
_SHARE_OF_DISAGREEMENT = 0.5


def probability_interval(
    Q: Matrix, effective_size: Vector, disagreement: Matrix, level: float
) -> tuple[Matrix, Matrix]:
    """Return where P(y | x) may lie: what similar items leave open, and where experts disagree.

    Agresti and Coull's interval of a frequency, of as many items as the vote of similar items is
    worth, around Q instead of the vote; the disagreement adds to its variance.

    Parameters
    ----------
    Q : ndarray of shape (m, K)
    effective_size : ndarray of shape (m,)
        How many equal votes the vote of similar items is worth.
    disagreement : ndarray of shape (m, K)
        Variance of the experts around their blend.
    level : float
        Nominal coverage.

    Returns
    -------
    low, high : ndarray of shape (m, K)
        [0, 1] without votes.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    votes = _ITEMS_PER_VOTE * effective_size[:, None]
    center = (votes * Q + z**2 / 2) / (votes + z**2)
    variance = center * (1 - center) / (votes + z**2) + _SHARE_OF_DISAGREEMENT * disagreement
    half = z * np.sqrt(variance)
    return np.clip(center - half, 0.0, Q), np.clip(center + half, Q, 1.0)


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
