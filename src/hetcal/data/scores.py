"""A classifier's output, in the two forms that everybody reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax

from hetcal._stored import expect, stored
from hetcal._stored.fields import numbers, probabilities
from hetcal._typing import Matrix
from hetcal.kernels.simplex import log_probabilities

# Below this a probability says no more than "never"; logarithms stay within reach of a tree.
_LOG_FLOOR = 1e-12


@stored(
    {
        "proba": probabilities(None, None),
        "log_proba": numbers(None, None, low=-np.finfo(float).max, high=1e-6),
    }
)
@dataclass(frozen=True)
class Scores:
    """A classifier's output, as probabilities and as their logarithms.

    ``log_proba`` comes straight from the logits where those were given, so it is not saturated;
    from probabilities it has a floor for hard zeros (:func:`hetcal.kernels.simplex.zero_floor`).
    """

    proba: Matrix
    log_proba: Matrix

    @classmethod
    def from_proba(cls, P: Matrix, floor: float) -> Scores:
        """Read probabilities; a hard zero counts as ``floor``."""
        return cls(P, log_probabilities(P, floor))

    @classmethod
    def from_logits(cls, logits: Matrix) -> Scores:
        """Read logits."""
        log_proba = log_softmax(logits, axis=1)
        return cls(np.exp(log_proba), log_proba)

    def take(self, rows: Any) -> Scores:
        """Return the scores of some rows (numbers, a mask or a slice)."""
        return Scores(self.proba[rows], self.log_proba[rows])

    def plus(self, other: Scores) -> Scores:
        """Return these scores and, after them, those of more items."""
        proba, log_proba = (self.proba, other.proba), (self.log_proba, other.log_proba)
        return Scores(np.vstack(proba), np.vstack(log_proba))

    @property
    def clipped_logs(self) -> Matrix:
        """The logarithms, cut where they no longer say anything."""
        return np.maximum(self.log_proba, log_probabilities(np.zeros(1), _LOG_FLOOR))

    def _check_restored(self) -> None:
        same = self.proba.shape == self.log_proba.shape
        expect(same, self, "do not match their logarithms")
