"""The Brier score in parts: what recalibration repairs, what only features repair, the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from hetcal._typing import Matrix
from hetcal._validation import check_choice, check_proba
from hetcal._validation.containers import number_of_rows
from hetcal.data import CalibrationSet, Folds
from hetcal.metrics import _crossfit
from hetcal.metrics.bootstrap import Interval, check_confidence, interval_of, resample_counts
from hetcal.metrics.ece import check_n_bins
from hetcal.metrics.scores import brier_losses

_NAME = "brier_decomposition"
RECALIBRATIONS = ("cross-fitted", "isotonic", "bins")


@dataclass(frozen=True)
class BrierDecomposition:
    """Parts of a Brier score; see :func:`brier_decomposition` for what each one estimates.

    Attributes
    ----------
    brier : float
        ``calibration + refinement``.
    calibration : float
        What a map of the probabilities alone would gain.
    refinement : float
        What remains after it: ``uncertainty - resolution``, and ``grouping + irreducible``.
    uncertainty : float
        Score of the class frequencies, a forecast that knows nothing of the item.
    resolution : float
        What the recalibrated probabilities gain over those.
    grouping, irreducible : float or None
        What a better estimate of P(y|x) gains over recalibration, and its own score; None without
        ``X`` or ``reference_proba``.
    bounds : dict of str to (low, high)
        Bootstrap interval of each part; empty without bootstrap.
    """

    brier: float
    calibration: float
    refinement: float
    uncertainty: float
    resolution: float
    grouping: float | None = None
    irreducible: float | None = None
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    def frame(self) -> pd.DataFrame:
        """Return the parts as a table with columns ``value``, ``low`` and ``high``."""
        names = [*_PARTS, *(_LOCAL_PARTS if self.grouping is not None else ())]
        unknown = (np.nan, np.nan)
        rows = [(getattr(self, name), *self.bounds.get(name, unknown)) for name in names]
        index = pd.Index(names, name="part")
        return pd.DataFrame(rows, index=index, columns=["value", "low", "high"])


_PARTS = ("brier", "calibration", "refinement", "uncertainty", "resolution")
_LOCAL_PARTS = ("grouping", "irreducible")


def brier_decomposition(
    y: Any,
    y_proba: Any,
    *,
    X: Any = None,
    reference_proba: Any = None,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    recalibration: str = "cross-fitted",
    n_splits: int = 5,
    n_bins: int = 15,
    n_bootstrap: int = 0,
    confidence: float = 0.95,
    random_state: int | None = 0,
    normalized: bool = True,
) -> BrierDecomposition:
    r"""Split the Brier score into calibration, grouping and irreducible parts.

    With B the Brier score of a forecast on the items at hand, :math:`c_k(p_k)` an estimate of
    :math:`P(y = k \mid p_k)`, class by class, :math:`q(x)` an estimate of :math:`P(y \mid x)` and
    :math:`\bar y` the class frequencies,

    .. math:: B(p) = \underbrace{B(p) - B(c)}_{\text{calibration}}
                   + \underbrace{B(c)}_{\text{refinement}},
              \quad
              B(c) = \underbrace{B(\bar y)}_{\text{uncertainty}}
                   - \underbrace{(B(\bar y) - B(c))}_{\text{resolution}}
                   = \underbrace{B(c) - B(q)}_{\text{grouping}}
                   + \underbrace{B(q)}_{\text{irreducible}} .

    The parts are differences of scores, so they add up exactly whatever c and q are. Were both
    exact, calibration would on average be the mean of :math:`\|p - c\|^2` and grouping that of
    :math:`\|c - q\|^2`. With estimates, calibration comes out too small on average
    (``"cross-fitted"``) or too large (the other two); and since an out-of-sample q scores worse
    than P(y|x), irreducible comes out too large.

    Parameters
    ----------
    y, y_proba, classes, sample_weight, normalized
        As in :func:`brier_score`.
    X : table or array of shape (n, d), optional
        Features. q is then a random forest on features and log-probabilities, cross-fitted, and
        shrunk towards c by the share that scored best on the other folds.
    reference_proba : array-like of shape (n, K), optional
        Your own q, instead of ``X``. It must be out-of-sample: never fitted on these labels.
    groups : array-like of shape (n,) or (n, n_columns), optional
        Rows of one group stay in one fold and in one bootstrap draw.
    recalibration : {"cross-fitted", "isotonic", "bins"}, default="cross-fitted"
        How c is found. ``"cross-fitted"``: isotonic regression per class on the other folds,
        shrunk towards p by the share that scored best there; a calibrated classifier gets about 0,
        which may come out slightly negative. ``"isotonic"``: the same on the items themselves,
        unshrunk; never negative, deterministic, too large for small samples. ``"bins"``: observed
        frequency in equal-mass bins of the items themselves.
    n_splits : int, default=5
        Number of folds (of items or groups; fewer where there are fewer of them).
    n_bins : int, default=15
        Bins per class for ``recalibration="bins"``.
    n_bootstrap : int, default=0
        Resamples for the intervals in ``bounds``; c and q stay as fitted on all items. With
        ``"cross-fitted"`` the intervals of parts that depend on c reach from what c finds, which
        is less than there is, to what ``"isotonic"`` finds, which is more.
    confidence : float, default=0.95
        Coverage aimed at.
    random_state : int or None, default=0
        Seed of folds, forest and bootstrap.

    Returns
    -------
    BrierDecomposition

    References
    ----------
    Brocker (2009), Reliability, sufficiency, and the decomposition of proper scores, QJRMS 135.
    Kull, Flach (2015), Novel decompositions of proper scoring rules for classification, ECML PKDD.
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic
    classifiers, PNAS 118.

    Examples
    --------
    Two sub-populations share the score 0.7; with a better estimate the grouping part shows.

    >>> y = [1] * 9 + [0] * 1 + [1] * 3 + [0] * 7
    >>> q = [0.9] * 10 + [0.3] * 10
    >>> parts = brier_decomposition(y, [0.7] * 20, reference_proba=q, recalibration="isotonic")
    >>> parts.frame()["value"].round(2)
    part
    brier          0.50
    calibration    0.02
    refinement     0.48
    uncertainty    0.48
    resolution     0.00
    grouping       0.18
    irreducible    0.30
    Name: value, dtype: float64
    """
    check_choice(recalibration, "recalibration", RECALIBRATIONS, _NAME)
    check_n_bins(n_bins, _NAME)
    check_confidence(confidence)
    if X is not None and reference_proba is not None:
        raise ValueError(f"{_NAME} got both X and reference_proba. Pass one of them.")
    items = CalibrationSet.to_score(
        y,
        y_proba,
        X=X,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        normalized=normalized,
    )
    fold = None
    if recalibration == "cross-fitted" or X is not None:
        fold = _folds(items, n_splits, random_state)
    C = _recalibrate(items, recalibration, fold, n_bins)
    Q = None
    if reference_proba is not None:
        Q = _check_reference(reference_proba, number_of_rows(y, "y"), items)
    elif X is not None and fold is not None:
        Q = _crossfit.locally_estimated(items, C, fold, random_state)
    statistic = DecompositionStatistic(items, C, Q)
    values = statistic(np.ones((items.n_items, 1)))[:, 0]
    other = statistic
    if recalibration == "cross-fitted" and n_bootstrap:
        other = DecompositionStatistic(items, _crossfit.isotonic_in_sample(items), Q)
    draws = resample_counts(items.units, n_bootstrap, random_state)
    blocks = [np.stack([statistic(counts), other(counts)], axis=1) for counts in draws]
    bounds = {}
    if blocks:
        for name, value, drawn in zip(statistic.names, values, np.dstack(blocks), strict=True):
            bounds[name] = interval_of_part(name, float(value), drawn, confidence)[1:]
    parts = dict(zip(statistic.names, values.tolist(), strict=True))
    return BrierDecomposition(**parts, bounds=bounds)


def interval_of_part(name: str, value: float, drawn: Matrix, confidence: float) -> Interval:
    """Return the interval of a part of the Brier score.

    A cross-fitted map finds less than there is, and one that is fitted to the items themselves
    finds more: an interval that is to hold what there is reaches from the one to the other.

    Parameters
    ----------
    name : str
    value : float
    drawn : ndarray of shape (2, B)
        Resampled parts with the cross-fitted map, and with the other.
    confidence : float
    """
    if name == "uncertainty":
        return interval_of(value, drawn[0], confidence, "both ways")
    below, above = (interval_of(value, row, confidence, "percentile") for row in drawn)
    if name in ("refinement", "grouping"):
        below, above = above, below
    return Interval(value, min(below.low, value), max(above.high, value))


class DecompositionStatistic:
    """Parts of the Brier score as a function of item counts, for a given c and q.

    Called with counts of shape (n, B) it gives an array of shape (len(names), B).
    """

    def __init__(self, items: CalibrationSet, C: Matrix, Q: Matrix | None = None) -> None:
        Y, w = items.onehot, items.weights
        self.names = _PARTS if Q is None else _PARTS + _LOCAL_PARTS
        self._weight = w
        self._outcomes = (w[:, None] * Y).T
        forecasts = [items.proba, C] if Q is None else [items.proba, C, Q]
        self._losses = np.stack([w * brier_losses(F, items.codes) for F in forecasts])

    def __call__(self, counts: Matrix) -> Matrix:
        """Return every part (rows) for every resample (columns)."""
        total = self._weight @ counts
        brier, refinement, *local = self._losses @ counts / total
        frequencies = self._outcomes @ counts / total
        uncertainty = 1 - (frequencies**2).sum(axis=0)
        parts = [brier, brier - refinement, refinement, uncertainty, uncertainty - refinement]
        for irreducible in local:
            parts += [refinement - irreducible, irreducible]
        return np.stack(parts)


def default_statistics(
    items: CalibrationSet, random_state: int | None
) -> tuple[DecompositionStatistic, DecompositionStatistic] | None:
    """Return the decompositions with a cross-fitted map, and with one fitted to the items.

    None where nothing can be split.
    """
    if items.units.max() == 0:
        return None
    folds = _folds(items, 5, random_state)
    maps = _crossfit.recalibrated(items, folds), _crossfit.isotonic_in_sample(items)
    return DecompositionStatistic(items, maps[0]), DecompositionStatistic(items, maps[1])


def _folds(items: CalibrationSet, n_splits: int, random_state: int | None) -> Folds:
    units = items.units
    if not isinstance(n_splits, Integral) or n_splits < 2:
        raise ValueError(f"{_NAME}: n_splits must be an integer of at least 2; got {n_splits!r}.")
    if units.max() == 0:
        raise ValueError(
            f"{_NAME}: cross-fitting needs two or more rows or groups of positive weight; got one. "
            "Pass more rows, or recalibration='isotonic' without X."
        )
    return Folds.make(items.n_items, int(n_splits), seed=random_state, groups=units)


def _recalibrate(
    items: CalibrationSet, recalibration: str, folds: Folds | None, n_bins: int
) -> Matrix:
    if recalibration == "bins":
        return _crossfit.bin_frequencies(items, n_bins)
    if recalibration == "isotonic" or folds is None:
        return _crossfit.isotonic_in_sample(items)
    return _crossfit.recalibrated(items, folds)


def _check_reference(reference_proba: Any, n_rows: int, items: CalibrationSet) -> Matrix:
    Q = check_proba(reference_proba, name="reference_proba")
    if Q.shape != (n_rows, items.n_classes):
        raise ValueError(
            f"reference_proba must have one row per item and one column per class, "
            f"({n_rows}, {items.n_classes}); got {Q.shape}. Estimate it for the same "
            "items, with the same column order as y_proba."
        )
    return Q[items.rows]
