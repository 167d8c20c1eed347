r"""What accuracy, Brier score and log loss to expect on items without labels.

If the calibrated probabilities q are right, a loss :math:`\ell` of item i is expected to be
:math:`\sum_k q_{ik} \ell_i(k)`. What the calibrator's out-of-sample predictions of the calibration
items show of q being wrong is added: the mean of observed minus expected loss among calibration
items of the same confidence (five strata), in the mixture of the new items. The interval holds what
the labels' chance and the few calibration items of each stratum leave open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from hetcal._typing import Matrix, Rows, Vector
from hetcal.metrics.scores import brier_losses, log_losses
from hetcal.monitor.watched import independent_items, item_weights, own_predictions

_STRATA = 5
#: Flagged items are too many at so many times their rate.
_MANY = 3.0


def _hits(Q: Matrix, codes: Rows) -> Vector:
    return (Q.argmax(axis=1) == codes).astype(np.float64)


#: The loss of each item, and the largest that it may be.
_SCORES: dict[str, tuple[Callable[[Matrix, Rows], Vector], float]] = {
    "accuracy": (_hits, 1.0),
    "brier": (brier_losses, 2.0),
    "log_loss": (log_losses, np.inf),
}


class Estimate(NamedTuple):
    """A score to expect, and an interval for the one that labels will show."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class ExpectedPerformance:
    """What to expect of items without labels, if P(y | x) is as it was.

    Attributes
    ----------
    n_items : int
        The items.
    accuracy, brier, log_loss : Estimate
        Of the calibrated probabilities, whose most probable class is predicted.
    confusion : pandas.DataFrame of shape (K, K)
        Expected number of items by predicted (rows) and true class (columns).
    flagged : float
        Share of the items that the calibration set hardly covers.
    note : str or None
        Why not to trust these numbers, where there is a reason.
    """

    n_items: int
    accuracy: Estimate
    brier: Estimate
    log_loss: Estimate
    confusion: pd.DataFrame
    flagged: float
    note: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return numbers and text that JSON can hold."""
        scores = {name: getattr(self, name)._asdict() for name in _SCORES}
        rest = {"flagged": self.flagged, "note": self.note}
        confusion = self.confusion.to_numpy().tolist()
        return {"items": self.n_items} | scores | {"confusion": confusion} | rest


@dataclass(frozen=True, eq=False)
class ExpectedSums:
    """Sums over batches of items.

    Attributes
    ----------
    expected, variance : ndarray of shape (3,)
        Of the losses, by q.
    strata : ndarray of int of shape (n_strata,)
        Items by confidence.
    confusion : ndarray of shape (K, K)
        Probabilities of each class, by predicted class.
    n_flagged : int
        Items that are hardly covered.
    """

    expected: Vector
    variance: Vector
    strata: Rows
    confusion: Matrix
    n_flagged: int

    def __add__(self, other: ExpectedSums) -> ExpectedSums:
        return ExpectedSums(*(a + b for a, b in zip(self._parts, other._parts, strict=True)))

    @property
    def _parts(self) -> tuple[Any, ...]:
        return self.expected, self.variance, self.strata, self.confusion, self.n_flagged


class Expectation:
    """Turns calibrated probabilities of new items into scores to expect.

    Parameters
    ----------
    calibrator : SimilarityCalibrator or HybridCalibrator
        Fitted; its out-of-sample predictions say how wrong it is.
    """

    def __init__(self, calibrator: Any):
        Q, codes = own_predictions(calibrator)
        self.classes = calibrator.classes_
        confidence = Q.max(axis=1)
        edges = np.unique(np.quantile(confidence, np.arange(1, _STRATA) / _STRATA))
        self._edges = edges[edges < confidence.max()]
        observed = np.stack([loss(Q, codes) for loss, _ in _SCORES.values()])
        excess, strata = observed - _moments(Q)[0], self._strata(Q)
        weight = item_weights(calibrator)
        weight = np.ones(len(Q)) if weight is None else weight
        parts = [strata == g for g in range(len(self._edges) + 1)]
        means = [np.average(excess[:, own], axis=1, weights=weight[own]) for own in parts]
        squares = [np.average(excess[:, own] ** 2, axis=1, weights=weight[own]) for own in parts]
        self._excess = np.column_stack(means)
        self._variance = np.maximum(np.column_stack(squares) - self._excess**2, 0.0)
        self._n_items = np.array(
            [independent_items(calibrator, excess[:, own], own) for own in parts]
        )

    def sums(self, Q: Matrix, n_flagged: int) -> ExpectedSums:
        """Return the sums over items with calibrated probabilities Q."""
        expected, variance = (part.sum(axis=1) for part in _moments(Q))
        strata = np.bincount(self._strata(Q), minlength=len(self._edges) + 1)
        predicted = np.eye(Q.shape[1])[Q.argmax(axis=1)]
        return ExpectedSums(expected, variance, strata, predicted.T @ Q, n_flagged)

    def performance(self, sums: ExpectedSums, level: float, rate: float) -> ExpectedPerformance:
        """Return what to expect of the items behind some sums."""
        n = int(sums.strata.sum())
        share = sums.strata / n
        value = sums.expected / n + self._excess @ share
        # Where q is overconfident, labels scatter more than it says; as much as they used to.
        by_chance = np.maximum(sums.variance / n, self._variance @ share) / n
        error = np.sqrt(by_chance + self._variance @ (share**2 / self._n_items))
        half = ndtri(0.5 + level / 2) * error
        most = [largest for _, largest in _SCORES.values()]
        rows = (np.clip(row, 0.0, most) for row in (value, value - half, value + half))
        estimates = {
            name: Estimate(*map(float, triple))
            for name, *triple in zip(_SCORES, *rows, strict=True)
        }
        labels = self.classes.tolist()
        confusion = pd.DataFrame(sums.confusion, index=labels, columns=labels)
        flagged = sums.n_flagged / n
        return ExpectedPerformance(
            n, **estimates, confusion=confusion, flagged=flagged, note=_note(flagged, n, rate)
        )

    def _strata(self, Q: Matrix) -> Rows:
        return np.searchsorted(self._edges, Q.max(axis=1), side="left")


def _moments(Q: Matrix) -> tuple[Matrix, Matrix]:
    """Return mean and variance of each item's losses, by its own probabilities: (3, n) each."""
    mean, square = np.zeros((2, len(_SCORES), len(Q)))
    for code in range(Q.shape[1]):
        codes = np.full(len(Q), code)
        losses = np.stack([loss(Q, codes) for loss, _ in _SCORES.values()])
        mean += Q[:, code] * losses
        square += Q[:, code] * losses**2
    return mean, np.maximum(square - mean**2, 0.0)


def _note(flagged: float, n: int, rate: float) -> str | None:
    scatter = np.sqrt(rate * (1 - rate) / n)
    if flagged <= max(_MANY * rate, rate + _MANY * scatter):
        return None
    return (
        f"{flagged:.1%} of the items are hardly covered by the calibration set ({rate:.1%} while "
        "nothing changes): their probabilities, and so these numbers, are not to be trusted."
    )
