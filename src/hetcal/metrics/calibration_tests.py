"""Tests of the hypothesis that labels are drawn from the stated probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtr

from hetcal._typing import Matrix, Rows, Vector
from hetcal._validation import check_choice, warn_column_order
from hetcal.data import CalibrationSet
from hetcal.kernels.simplex import log_probabilities, zero_floor
from hetcal.metrics._null_draws import (
    Residuals,
    drawn_labels,
    flipped_groups,
    residuals_of_labels,
)
from hetcal.metrics.marginals import event_of

_NAME = "calibration_test"
NULLS = ("auto", "monte-carlo", "asymptotic")
# With "auto": up to so many residuals are drawn (one to three seconds) ...
_MOST_CELLS = 100_000_000
# ... and more of them where a class has a variance of less than so many equal, certain events.
_FEWEST_EVENTS = 100.0
# Sign changes of five groups cannot come below a p-value of 1/16.
_FEWEST_GROUPS = 6
# What rounding leaves of a sum that is zero, as a part of its terms.
_ROUNDING = 1e-9
# Smaller shares are not worth their digits in a sentence.
_LEAST_PERCENT = 0.001


@dataclass(frozen=True)
class CalibrationTestResult:
    """What :func:`calibration_test` found.

    Attributes
    ----------
    test : str
        Name of the test.
    statistic : float
        Scaled, see :func:`calibration_test`: comparable between samples of any size.
    p_value : float
        How often right probabilities lead to a statistic at least as far from what is expected.
    effect : float
        Not scaled by the sample's size; see :func:`calibration_test`.
    null : {"monte-carlo", "asymptotic", "group signs"}
        Where the p-value comes from.
    event : str
        Whose probabilities were tested.
    n_draws : int or None
        Draws behind the p-value, which cannot be below ``1 / (n_draws + 1)``; None if asymptotic.
    """

    test: str
    statistic: float
    p_value: float
    effect: float
    null: str
    event: str
    n_draws: int | None = None

    @property
    def words(self) -> str:
        """The result as a sentence."""
        percent = 100 * self.p_value
        usual = f"{percent:.2g} % of samples" if percent < 10 else f"{percent:.0f} % of samples"
        if self.p_value < _ROUNDING:
            usual = "next to no sample"
        elif percent < _LEAST_PERCENT:
            usual = f"less than {_LEAST_PERCENT} % of samples"
        elif self.n_draws is not None and self.p_value * (self.n_draws + 1) < 1.5:
            usual = f"at most {usual}"  # no draw came so far; fewer may than draws can tell
        return (
            f"If the probabilities {self.event} were right, {usual} would have labels that differ "
            f"from them as much as these do ({self.test} test)."
        )

    def __repr__(self) -> str:
        return (
            f"CalibrationTestResult({self.test!r}, statistic={self.statistic:.4g}, "
            f"p_value={self.p_value:.4g}, effect={self.effect:.4g}, null={self.null!r})"
        )


def calibration_test(
    y: Any,
    y_proba: Any,
    *,
    test: str = "kuiper",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    pos_label: Any = None,
    null: str = "auto",
    n_draws: int = 999,
    random_state: int | None = 0,
) -> CalibrationTestResult:
    r"""Test whether the labels may have been drawn from the probabilities.

    The hypothesis is that, given all probabilities, labels are independent draws from them. With
    residuals :math:`r_{ik} = [y_i = k] - p_{ik}` the tests look at

    - ``"spiegelhalter"``: the Brier score minus the score that the probabilities themselves
      expect, :math:`-2 \sum_i w_i \sum_k r_{ik} p_{ik}`, divided by its standard deviation.
      Above 0: overconfident; below 0: underconfident. It cannot see errors where all classes are
      equally probable, nor a shift that leaves the expected score right.
    - ``"kolmogorov-smirnov"`` and ``"kuiper"``: the cumulative differences
      :math:`C_j = \sum_{i \le j} w_i r_i / \sum_i w_i` of one event, items in order of its
      probability. The statistic is :math:`\max_j |C_j|` (ECCE-MAD), or
      :math:`\max_j C_j - \min_j C_j` (ECCE-R, with :math:`C_0 = 0`), divided by the standard
      deviation of the last of them. They see every kind of miscalibration, without bins. Between
      equal probabilities the order means nothing, so :math:`C_j` is read at their ends only.
    - ``"score"``: for all classes at once the sums of :math:`w_i r_{ik}` and of
      :math:`w_i r_{ik} \ln p_{ik}`, as a quadratic form in the inverse of their covariance. It is
      the score test against a wrong base rate or a wrong slope of any class (vector scaling; beta
      calibration with two classes), and the sharpest of the four against these.

    Parameters
    ----------
    y, y_proba, classes
        As in :func:`brier_score`.
    test : {"kuiper", "kolmogorov-smirnov", "spiegelhalter", "score"}, default="kuiper"
        The test. Choose it before you look: the smallest of four p-values is not a p-value.
    sample_weight : array-like of shape (n,), optional
        Weights of the residuals; their scale does not matter, and a row of weight 2 is one
        observation, not two.
    groups : array-like of shape (n,) or (n, n_columns), optional
        Rows of one group may depend on each other. The statistic stays the same, and its null
        distribution comes from random signs of whole groups; the hypothesis is then that no
        probability is wrong on average, and at least six groups are needed. It is not exact: with
        few groups or rare events see the sizes in the user guide.
    pos_label : label, optional
        The class whose probability is tested against all others. None: all classes at once
        (``"spiegelhalter"``, ``"score"``); the second of two classes or, with more, whichever
        class is predicted (``"kuiper"``, ``"kolmogorov-smirnov"``).
    null : {"auto", "monte-carlo", "asymptotic"}, default="auto"
        Where the p-value comes from. ``"monte-carlo"`` draws labels from the probabilities, so
        that the size is right by construction for any number of rows, rare events, and
        probabilities that take few values. ``"asymptotic"`` takes the limit for many rows (normal,
        chi-squared, Brownian motion). ``"auto"`` takes it only where drawing would take long
        (more than 50,000 rows of two classes) and no class is rare.
    n_draws : int, default=999
        Draws; the smallest p-value that they can give is ``1 / (n_draws + 1)``.
    random_state : int or None, default=0
        Seed of the draws.

    Returns
    -------
    CalibrationTestResult
        ``statistic``, ``p_value``, ``effect``, ``null``, and ``words``. The effect is the Brier
        score minus the expected one; the largest cumulative difference, or their range; for
        ``"score"`` the largest difference between a class's frequency and its mean probability.

    References
    ----------
    Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials,
    Statistics in Medicine 5. Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu (2022), Metrics of
    Calibration for Probabilistic Predictions, JMLR 23.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> y = rng.uniform(size=500) < p
    >>> calibration_test(y, p).p_value > 0.05
    True
    >>> calibration_test(y, np.sqrt(p), test="spiegelhalter")
    CalibrationTestResult('spiegelhalter', statistic=..., p_value=0.001, ...)
    """
    check_choice(test, "test", _TESTS, _NAME)
    check_choice(null, "null", NULLS, _NAME)
    _check_draws(n_draws)
    items = CalibrationSet.to_score(
        y, y_proba, classes=classes, sample_weight=sample_weight, groups=groups
    )
    _check_null_of_groups(items, null)
    warn_column_order(
        items.codes,
        items.proba,
        items.classes,
        name="y_proba",
        weight=items.weight,
        groups=items.units,
    )
    kind = _TESTS[test]
    P, codes, event = _tested(items, pos_label, kind.of_one_event)
    weight = items.weights / items.weights.mean()
    statistic = kind.statistic(P, weight)
    R = residuals_of_labels(codes[:, None], P)
    value = float(statistic(R)[0])
    if items.groups is not None:
        draws = flipped_groups(R[:, :, 0], items.groups, n_draws, random_state)
        null, p_value = "group signs", _share_at_least(value, statistic, draws)
    elif null == "asymptotic" or (null == "auto" and _limit_is_near(P, weight, n_draws)):
        null, p_value = "asymptotic", float(statistic.limit(abs(value)))
    else:
        draws = drawn_labels(P, n_draws, random_state)
        null, p_value = "monte-carlo", _share_at_least(value, statistic, draws)
    effect, drawn = float(statistic.effect(R)[0]), None if null == "asymptotic" else n_draws
    return CalibrationTestResult(test, value, p_value, effect, null, event, drawn)


def _tested(items: CalibrationSet, pos_label: Any, of_one_event: bool) -> tuple[Matrix, Rows, str]:
    """Return probabilities, labels as columns of them, and whose probabilities they are."""
    if pos_label is None and not of_one_event:
        return items.proba, items.codes, "of all classes"
    score, outcome, event = event_of(items, pos_label, _NAME)
    return np.column_stack([1 - score, score]), outcome.astype(np.int64), event


def _share_at_least(value: float, statistic: _Scaled, draws: Iterable[Residuals]) -> float:
    """Return the Monte Carlo p-value: the value itself is one of the draws."""
    far = abs(value) * (1 - _ROUNDING)
    reached = np.concatenate([np.abs(statistic(R)) >= far for R in draws])
    return float((1 + np.count_nonzero(reached)) / (1 + reached.shape[0]))


def _limit_is_near(P: Matrix, weight: Vector, n_draws: int) -> bool:
    variance = (weight**2) @ (P * (1 - P)) / (weight**2).max()
    return P.size * n_draws > _MOST_CELLS and bool((variance >= _FEWEST_EVENTS).all())


# -- statistics: functions of residuals, with their limits for many rows ---------------------------


class _Scaled(ABC):
    """A sum over residuals, as it is (effect) and divided by its standard deviation."""

    deviation: float
    total: float

    @abstractmethod
    def effect(self, R: Residuals) -> Vector:
        """Return the sum of each draw, divided by the weight."""

    @abstractmethod
    def limit(self, value: float) -> float:
        """Return how often the scaled sum of very many items is at least so far from 0."""

    def __call__(self, R: Residuals) -> Vector:
        sums = self.effect(R) * self.total
        if self.deviation > 0:
            return sums / self.deviation
        # Without any chance left, whatever differs from what was certain is beyond all scales.
        return np.where(np.abs(sums) > _ROUNDING * self.total, np.copysign(np.inf, sums), 0.0)


class _Spiegelhalter(_Scaled):
    def __init__(self, P: Matrix, weight: Vector) -> None:
        self.total = float(weight.sum())
        self._slopes = -2 * weight[:, None] * P
        square = np.einsum("ik,ik->i", P, P)
        variance = np.einsum("ik,ik->i", P, (P - square[:, None]) ** 2)
        self.deviation = 2 * float(np.sqrt(weight**2 @ variance))
        if self.deviation < _ROUNDING * np.sqrt(self.total):
            self.deviation = 0.0

    def effect(self, R: Residuals) -> Vector:
        return self._slopes.ravel() @ R.reshape(-1, R.shape[2]) / self.total

    def limit(self, value: float) -> float:
        return 2 * ndtr(-value)


class _Cumulative(_Scaled):
    """Residuals of the second column, summed up in order of its probability."""

    def __init__(self, P: Matrix, weight: Vector) -> None:
        self.total = float(weight.sum())
        p = P[:, 1]
        self._order = np.argsort(p, kind="stable")
        self._starts = np.flatnonzero(np.diff(p[self._order], prepend=-1.0) > 0)
        self._weight = weight[self._order, None]
        self.deviation = float(np.sqrt(weight**2 @ (p * (1 - p))))

    def _path(self, R: Residuals) -> Matrix:
        steps = np.add.reduceat(self._weight * R[self._order, 1], self._starts, axis=0)
        return np.cumsum(steps, axis=0) / self.total


class _KolmogorovSmirnov(_Cumulative):
    def effect(self, R: Residuals) -> Vector:
        return np.abs(self._path(R)).max(axis=0)

    def limit(self, value: float) -> float:
        """Return how often a Brownian motion on [0, 1] leaves [-value, value]."""
        if value < 0.2:  # where it is 1 to 13 digits
            return 1.0
        k = np.arange(100)
        return float(np.clip(4 * ((-1.0) ** k * ndtr(-(2 * k + 1) * value)).sum(), 0.0, 1.0))


class _Kuiper(_Cumulative):
    def effect(self, R: Residuals) -> Vector:
        path = self._path(R)
        return np.maximum(path.max(axis=0), 0.0) - np.minimum(path.min(axis=0), 0.0)

    def limit(self, value: float) -> float:
        """Return how often the range of a Brownian motion on [0, 1] is larger (Feller 1951)."""
        if value < 0.3:  # where the series is 1 to 20 digits
            return 1.0
        k = np.arange(1, 200)
        return float(np.clip(8 * ((-1.0) ** (k - 1) * k * ndtr(-k * value)).sum(), 0.0, 1.0))


class _Score(_Scaled):
    """Sums of residuals and of residuals times logarithms, decorrelated."""

    def __init__(self, P: Matrix, weight: Vector) -> None:
        self.total = float(weight.sum())
        self._weight, self._logs = weight, _centred_logs(P, weight)
        covariance = _multinomial_covariance(P, self._logs, weight)
        deviations = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        self._certain = deviations < _ROUNDING * np.sqrt(self.total)
        scale = np.where(self._certain, 0.0, 1 / np.where(self._certain, 1.0, deviations))
        roots, vectors = np.linalg.eigh(covariance * scale[:, None] * scale)
        kept = roots > 1e-8
        self._rank = int(kept.sum())
        self._whiten = (vectors[:, kept] / np.sqrt(roots[kept])).T * scale

    def effect(self, R: Residuals) -> Vector:
        return np.abs(np.einsum("i,ikb->kb", self._weight, R)).max(axis=0) / self.total

    def limit(self, value: float) -> float:
        return chdtrc(self._rank, value) if self._rank else 1.0

    def __call__(self, R: Residuals) -> Vector:
        shifts = np.einsum("i,ikb->kb", self._weight, R)
        slopes = np.einsum("ik,ikb->kb", self._weight[:, None] * self._logs, R)
        sums = np.vstack([shifts, slopes])
        refuted = (np.abs(sums[self._certain]) > _ROUNDING * self.total).any(axis=0)
        return np.where(refuted, np.inf, ((self._whiten @ sums) ** 2).sum(axis=0))


def _centred_logs(P: Matrix, weight: Vector) -> Matrix:
    """Return log P around the mean of each class, which keeps slopes apart from shifts."""
    L = log_probabilities(P, zero_floor(P))
    spread = (weight**2)[:, None] * P * (1 - P)
    total = spread.sum(axis=0)
    mean = (spread * L).sum(axis=0) / np.where(total > 0, total, 1.0)
    centred = L - mean
    return np.where(np.abs(centred) < _ROUNDING * (1 + np.abs(mean)), 0.0, centred)


def _multinomial_covariance(P: Matrix, L: Matrix, weight: Vector) -> Matrix:
    """Return the covariance of the 2K sums, were labels drawn from P."""
    both = weight[:, None] * np.hstack([P, P * L])
    squared = (weight**2)[:, None] * P
    shifts, cross, slopes = (squared.sum(0), (squared * L).sum(0), (squared * L**2).sum(0))
    diagonal = np.block([[np.diag(shifts), np.diag(cross)], [np.diag(cross), np.diag(slopes)]])
    return diagonal - both.T @ both


class _Test(NamedTuple):
    statistic: Callable[[Matrix, Vector], _Scaled]
    of_one_event: bool


_TESTS = {
    "kuiper": _Test(_Kuiper, True),
    "kolmogorov-smirnov": _Test(_KolmogorovSmirnov, True),
    "spiegelhalter": _Test(_Spiegelhalter, False),
    "score": _Test(_Score, False),
}


def _check_draws(n_draws: Any) -> None:
    if not isinstance(n_draws, Integral) or n_draws < 19:
        raise ValueError(
            f"{_NAME}: n_draws must be an integer of at least 19, which p = 0.05 needs; "
            f"got {n_draws!r}."
        )


def _check_null_of_groups(items: CalibrationSet, null: str) -> None:
    if items.groups is None:
        return
    if null != "auto":
        raise ValueError(
            f"{_NAME}: null={null!r} takes rows to be independent, which groups says they are "
            "not. Pass null='auto', or groups=None if the rows are independent."
        )
    n_groups = int(items.groups.max()) + 1
    if n_groups < _FEWEST_GROUPS:
        raise ValueError(
            f"{_NAME}: {n_groups} groups are too few for any test at 5 %; at least "
            f"{_FEWEST_GROUPS} are needed. Pass groups=None if the rows are independent, or "
            "test one row of each group."
        )
