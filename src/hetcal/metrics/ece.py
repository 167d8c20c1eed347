"""Binned calibration error in its usual variants."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import ndtr

from hetcal._typing import Matrix, Rows, Vector
from hetcal._validation import check_choice
from hetcal.data import CalibrationSet
from hetcal.metrics.marginals import calibration_marginals
from hetcal.metrics.statistics import ErrorStatistic, checked_value

_NAME = "expected_calibration_error"
BINNINGS = ("equal-mass", "equal-width")
NORMS = ("l1", "l2", "max")
# Keeps a value that sits on the border of two bins up to rounding on one side of it.
_ROUNDING = 1e-9


def expected_calibration_error(
    y: Any,
    y_proba: Any,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    kind: str = "top-label",
    binning: str = "equal-mass",
    n_bins: int = 15,
    norm: str = "l1",
    debias: bool = False,
    normalized: bool = True,
) -> float:
    r"""Return the distance between mean score and observed frequency over bins of the score.

    With :math:`m_b` the share of the weight in bin b, :math:`\bar s_b` its mean score and
    :math:`\bar y_b` its observed frequency,

    .. math:: \text{l1: } \sum_b m_b |\bar s_b - \bar y_b|, \quad
              \text{l2: } \sqrt{\sum_b m_b (\bar s_b - \bar y_b)^2}, \quad
              \text{max: } \max_b |\bar s_b - \bar y_b| .

    Parameters
    ----------
    y, y_proba, classes, sample_weight, normalized
        As in :func:`brier_score`.
    kind : {"top-label", "class-wise", "binary"}, default="top-label"
        The score: the largest probability and whether its class was right; each class's own
        probability, averaged over classes (l1: mean, l2: root mean square, max: largest); or the
        probability of the second of two classes.
    binning : {"equal-mass", "equal-width"}, default="equal-mass"
        Bins that hold equal weight, as far as ties allow: equal scores always share a bin. Or bins
        ``(0, 1/n_bins], (1/n_bins, 2/n_bins], ...`` of the score (0 belongs to the first).
    n_bins : int, default=15
        Few bins hide errors that change sign within a bin; many bins turn noise into error.
    norm : {"l1", "l2", "max"}, default="l1"
        How the gaps of the bins are put together.
    debias : bool, default=False
        Subtract what sampling noise adds, so that a calibrated classifier gets about 0 at any
        sample size. With the variance :math:`v_b = \bar y_b (1 - \bar y_b) / (n_b - 1)` of an
        observed frequency:

        - l2 (Kumar et al. 2019): :math:`v_b` is subtracted from each squared gap;
        - l1: each gap g is replaced by :math:`2 |g| - E|R|`, R normal with mean g and
          variance :math:`v_b`, the closed form of the resampling correction in the same paper.

        Sums below 0 are returned as 0. A bin with one item is not corrected. Weights enter through
        the effective size :math:`n_b = (\sum w)^2 / \sum w^2`, so their scale does not matter, and
        a row of weight 2 is one observation, not two. Not available for ``norm="max"``.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    A bootstrap interval (:func:`bootstrap_interval`) keeps the bins of the original sample.

    References
    ----------
    Kumar, Liang, Ma (2019), Verified Uncertainty Calibration, NeurIPS 32.

    Examples
    --------
    Of ten items with 80 % confidence six are right.

    >>> y, y_proba = [1] * 6 + [0] * 4, [0.8] * 10
    >>> round(expected_calibration_error(y, y_proba), 6)
    0.2
    >>> round(expected_calibration_error(y, y_proba, debias=True), 3)
    0.183
    """
    options = {"kind": kind, "binning": binning, "n_bins": n_bins, "norm": norm, "debias": debias}
    return checked_value(ece_statistic, y, y_proba, classes, sample_weight, normalized, **options)


def ece_statistic(
    items: CalibrationSet,
    *,
    kind: str = "top-label",
    binning: str = "equal-mass",
    n_bins: int = 15,
    norm: str = "l1",
    debias: bool = False,
) -> ErrorStatistic:
    """Return :func:`expected_calibration_error` as a function of item counts."""
    check_choice(binning, "binning", BINNINGS, _NAME)
    check_choice(norm, "norm", NORMS, _NAME)
    check_n_bins(n_bins, _NAME)
    if debias and norm == "max":
        raise ValueError(
            f"{_NAME}: debias=True is defined for norm='l1' and norm='l2', not for the maximum. "
            "Pass debias=False or another norm."
        )
    weight = items.weights
    marginals = [
        (score, outcome, bin_of(score, weight, binning, n_bins))
        for score, outcome in calibration_marginals(items, kind, _NAME)
    ]
    once = np.ones((items.n_items, 1))
    own_gaps = [_bin_sums(*marginal, weight, n_bins, once)[2] for marginal in marginals]
    spreads = [
        _GroupSpread.of(items, *marginal, own, n_bins)
        for marginal, own in zip(marginals, own_gaps, strict=True)
    ]

    def parts(counts: Matrix) -> Matrix:
        errors = np.stack(
            [
                _combine_bins(
                    _bin_sums(*marginal, weight, n_bins, counts), own, spread, counts, norm
                )
                for marginal, own, spread in zip(marginals, own_gaps, spreads, strict=True)
            ]
        )
        if norm == "max":
            return errors.max(axis=0)
        mean = np.maximum(errors.mean(axis=0), 0.0)
        return np.sqrt(mean) if norm == "l2" else mean

    return ErrorStatistic(parts, debias)


def bin_of(score: Vector, weight: Vector, binning: str, n_bins: int) -> NDArray[np.int64]:
    """Return the bin number of each score.

    In equal-mass binning a distinct score goes where the middle of its weight falls, so that equal
    scores share a bin and, without ties, bins differ by at most one item.

    Examples
    --------
    >>> import numpy as np
    >>> bin_of(np.array([0.9, 0.2, 0.2, 0.2]), np.ones(4), "equal-mass", 2)
    array([1, 0, 0, 0])
    """
    if binning == "equal-width":
        return np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], score, side="left")
    _, distinct = np.unique(score, return_inverse=True)
    mass = np.bincount(distinct, weights=weight)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    return np.floor(middle * n_bins + _ROUNDING).astype(np.int64)[distinct]


def check_n_bins(n_bins: Any, caller: str) -> None:
    """Raise when ``n_bins`` is not a positive integer."""
    if not isinstance(n_bins, Integral) or n_bins < 1:
        raise ValueError(f"{caller}: n_bins must be an integer of at least 1; got {n_bins!r}.")


def _bin_sums(
    score: Vector,
    outcome: Vector,
    bins: NDArray[np.int64],
    weight: Vector,
    n_bins: int,
    counts: Matrix,
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Return weight, squared weight, mean gap and mean outcome, each of shape (n_bins, B)."""
    n = score.shape[0]
    order = np.argsort(bins, kind="stable")
    starts = np.searchsorted(bins[order], np.arange(n_bins + 1))
    quantities = (weight, weight**2, weight * (score - outcome), weight * outcome)
    mass, squared, gap, positive = (
        sparse.csr_array((q[order], order, starts), shape=(n_bins, n)) @ counts for q in quantities
    )
    filled = np.where(mass > 0, mass, 1.0)
    return mass, squared, gap / filled, positive / filled


@dataclass(frozen=True, eq=False)
class _GroupSpread:
    """How far the residuals of groups lie apart in each bin; rows of a group belong together."""

    first: Rows  # one row of each group
    squares: sparse.csr_array  # of the sums over a group, less the bin's mean, (n_bins, groups)
    factor: Matrix  # G / (G - 1) of the G groups in a bin

    @classmethod
    def of(
        cls,
        items: CalibrationSet,
        score: Vector,
        outcome: Vector,
        bins: Rows,
        own_gap: Matrix,
        n_bins: int,
    ) -> _GroupSpread | None:
        if items.groups is None:
            return None
        units, first = items.units, np.unique(items.units, return_index=True)[1]
        apart = items.weights * (score - outcome - own_gap[bins, 0])
        sums = sparse.csr_array((apart, (bins, units)), shape=(n_bins, len(first)))
        n_groups = np.diff(sums.indptr)[:, None]
        factor = np.where(n_groups > 1, n_groups / np.maximum(n_groups - 1, 1), 0.0)
        return cls(first, sums.power(2), factor)

    def variance(self, mass: Matrix, counts: Matrix) -> Matrix:
        """Return the variance of each bin's mean residual in each resample."""
        filled = np.where(mass > 0, mass, 1.0)
        return self.factor * (self.squares @ counts[self.first]) / filled**2


def _combine_bins(
    sums: tuple[Matrix, Matrix, Matrix, Matrix],
    own_gap: Matrix,
    spread: _GroupSpread | None,
    counts: Matrix,
    norm: str,
) -> Matrix:
    """Put the bins of one marginal together: the parts of an `ErrorStatistic`, (4, B).

    l2 stays squared, corrected sums may be negative.
    """
    mass, squared, gap, positive = sums
    noise = np.where(mass > 0, gap - own_gap, 0.0)
    if norm == "max":
        error = np.abs(gap).max(axis=0)
        return np.stack([error, error, error, np.abs(noise).max(axis=0)])
    n_effective = mass**2 / np.where(squared > 0, squared, 1.0)
    variance = positive * (1 - positive) / np.maximum(n_effective - 1, _ROUNDING)
    variance = np.where(n_effective > 1 + _ROUNDING, np.maximum(variance, 0.0), 0.0)
    by_group = variance if spread is None else spread.variance(mass, counts)
    raw = gap**2 if norm == "l2" else np.abs(gap)
    by_bin = (
        raw,
        *(_less_bias(gap, raw, one, norm) for one in (variance, by_group)),
        noise**2 if norm == "l2" else np.abs(noise),
    )
    share = mass / mass.sum(axis=0)
    return np.stack([(share * one).sum(axis=0) for one in by_bin])


def _less_bias(gap: Matrix, raw: Matrix, variance: Matrix, norm: str) -> Matrix:
    return raw - variance if norm == "l2" else 2 * raw - _folded_normal_mean(gap, variance)


def _folded_normal_mean(mean: Matrix, variance: Matrix) -> Matrix:
    """Return E|R| of a normal R."""
    deviation = np.sqrt(variance)
    z = mean / np.where(deviation > 0, deviation, 1.0)
    folded = deviation * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + mean * (2 * ndtr(z) - 1)
    return np.where(deviation > 0, folded, np.abs(mean))
