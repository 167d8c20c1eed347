"""Labels as they arrive, against what the calibrated probabilities expect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetcal._stored import expect, stored
from hetcal._stored.fields import count, numbers
from hetcal._typing import Matrix, Rows, Vector
from hetcal.metrics.scores import brier_losses

NAMES = ("accuracy", "brier")
_LEAST_WEIGHT = 1e-300
#: From scores of items, shape (n_scores, n), to how many independent items these are worth.
Worth = Callable[[Matrix], float]


@stored(
    {
        "n": count,
        "excess": numbers(None),
        "variance": numbers(None),
        "expected": numbers(None),
    },
    may_lack=("expected",),
)
@dataclass(frozen=True, eq=False)
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
    expected : ndarray of shape (2 + K,)
        What was expected; of a file of old, since it was loaded.
    """

    n: int
    excess: Vector
    variance: Vector
    expected: Vector

    @classmethod
    def empty(cls, n_classes: int) -> LabelSums:
        """Return sums over no label."""
        return cls(0, *np.zeros((3, 2 + n_classes)))

    @classmethod
    def over(
        cls, Q: Matrix, codes: Rows, weight: Vector | None = None, worth: Worth | None = None
    ) -> LabelSums:
        """Return the sums over items with calibrated probabilities Q and observed classes.

        Items of different weight, or of groups, count as the independent items that they are
        worth, each by its weight.
        """
        confidence, squares = Q.max(axis=1), (Q**2).sum(axis=1)
        variance = np.vstack(
            [
                confidence * (1 - confidence),
                4 * ((Q**3).sum(axis=1) - squares**2),
                (Q * (1 - Q)).T,
            ]
        )
        expected = np.vstack([confidence, 1 - squares, Q.T])
        parts = excesses(Q, codes), variance, expected
        if worth is None:
            return cls(len(Q), *(part.sum(axis=1) for part in parts))
        weight = np.ones(len(Q)) if weight is None else weight
        n = round(worth(parts[0]))
        counts = n * weight / max(float(weight.sum()), _LEAST_WEIGHT)
        return cls(n, *(part @ counts for part in parts))

    def __add__(self, other: LabelSums) -> LabelSums:
        return LabelSums(
            self.n + other.n,
            self.excess + other.excess,
            self.variance + other.variance,
            self.expected + other.expected,
        )

    def interval(self, width: float) -> tuple[Vector, Vector]:
        """Return the mean excess less and plus so many of its standard deviations."""
        mean, deviation = self.excess / max(self.n, 1), np.sqrt(np.maximum(self.variance, 0.0))
        deviation = width * deviation / max(self.n, 1)
        return mean - deviation, mean + deviation

    def excess_over(self, usual: LabelSums) -> tuple[Vector, Vector]:
        """Return how much the mean excess is above the usual one, and that in deviations.

        A calibrator may be a little overconfident from the start; ``usual`` are the sums over its
        out-of-sample predictions of the calibration items.
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

    def _restore(self) -> None:
        if not hasattr(self, "expected"):
            object.__setattr__(self, "expected", np.zeros(len(self.excess)))

    def _check_restored(self) -> None:
        n = len(self.excess)
        expect(n >= 3 and len(self.variance) == n, self, "are not counted")
        expect(len(self.expected) == n, self, "expect other scores")


def excesses(Q: Matrix, codes: Rows) -> Matrix:
    """Return observed minus expected of each item, shape (2 + K, n); see :class:`LabelSums`."""
    top, happened = Q.argmax(axis=1), np.eye(Q.shape[1])[codes]
    accuracy = (top == codes) - Q.max(axis=1)
    brier = brier_losses(Q, codes) - (1 - (Q**2).sum(axis=1))
    return np.vstack([accuracy, brier, (happened - Q).T])


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
