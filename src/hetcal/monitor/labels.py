"""Labels as they arrive, against what the calibrated probabilities expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

NAMES = ("accuracy", "brier")


@dataclass(eq=False)
class LabelSums:
    """Sums of observed minus expected, and of their variance, should the probabilities be right.

    Attributes
    ----------
    n : int
        Labels so far.
    excess : ndarray of shape (2 + K,)
        Right top labels minus their probabilities; Brier score minus its expectation; and, for each
        class, items of the class minus its probabilities. Sums over items.
    variance : ndarray of shape (2 + K,)
        Of each of them.
    """

    n: int
    excess: Vector
    variance: Vector

    @classmethod
    def empty(cls, n_classes: int) -> LabelSums:
        """Return sums over no label."""
        return cls(0, np.zeros(2 + n_classes), np.zeros(2 + n_classes))

    def add(self, Q: Vector, codes: NDArray[np.int64]) -> None:
        """Count items with calibrated probabilities Q and observed classes."""
        happened = np.eye(Q.shape[1])[codes]
        top = Q.argmax(axis=1)
        rows = np.arange(len(Q))
        confidence, squares = Q[rows, top], (Q**2).sum(axis=1)
        self.n += len(Q)
        self.excess[0] += ((top == codes) - confidence).sum()
        self.variance[0] += (confidence * (1 - confidence)).sum()
        self.excess[1] += (((Q - happened) ** 2).sum(axis=1) - (1 - squares)).sum()
        self.variance[1] += 4 * ((Q**3).sum(axis=1) - squares**2).sum()
        self.excess[2:] += (happened - Q).sum(axis=0)
        self.variance[2:] += (Q * (1 - Q)).sum(axis=0)

    def excess_over(self, usual: LabelSums) -> tuple[Vector, Vector]:
        """Return how much the mean excess is above the usual one, and that in deviations.

        A calibrator may be a little too sure of itself from the start; ``usual`` is what its
        out-of-sample predictions of the calibration items leave.
        """
        more = self.excess / max(self.n, 1) - usual.excess / max(usual.n, 1)
        variance = self.variance / max(self.n, 1) ** 2 + usual.variance / max(usual.n, 1) ** 2
        deviation = np.sqrt(np.maximum(variance, 0.0))
        out = np.full(len(more), np.nan)
        counted = (deviation > 1e-12) & (self.n > 0)
        return more, np.divide(more, deviation, out=out, where=counted)

    def summary(self, usual: LabelSums, classes: Any) -> dict[str, Any]:
        """Return means and z, for people and for JSON."""
        more, z = self.excess_over(usual)
        names = [*NAMES, *(f"share of {label}" for label in classes)]
        return {
            name: {"excess": float(more[j]) if self.n else None, "z": _or_none(z[j])}
            for j, name in enumerate(names)
        }


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
