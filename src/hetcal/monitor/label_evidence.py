r"""Evidence in labels that probabilities are wrong, valid whenever it is looked at.

A test watches one mean: of the :func:`~hetcal.monitor.labels.excesses` r (observed minus expected:
of right top labels, of the Brier score, of a class) in one group. Its hypothesis is that, given the
labels before, this mean lies within a band :math:`[a, b]` around 0: what the calibration items say
about the probabilities' usual error. A capital of 1 is bet on the mean lying above or below it, by
factors

.. math:: \frac{1 + \lambda r}{1 + \lambda b} \; (\lambda > 0), \qquad
   \frac{1 + \lambda r}{1 + \lambda a} \; (\lambda < 0), \qquad |\lambda| < 1, \; |r| \le 1.

All are positive, and under the hypothesis none is expected to be above 1, so the capital, a mixture
over a grid of :math:`\lambda`, is a supermartingale: by Ville's inequality it reaches
:math:`1/\alpha` with probability at most :math:`\alpha`, ever. So is the mean of the capitals of
several tests that bet on the same labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hetcal._stored import expect, stored
from hetcal._stored.fields import array_of, count, numbers, whole
from hetcal._typing import Matrix, Rows, Vector
from hetcal.monitor.labels import LabelSums, excesses
from hetcal.monitor.martingale import bet, log_mean, mean_capital, start_capital

_SIZES = np.array([0.05, 0.1, 0.2, 0.4, 0.8])
#: The bets: on observed above expected, then below.
BETS = np.concatenate([_SIZES, -_SIZES])
#: The probabilities that are tested, in this order; the second where they are known.
SOURCES = ("calibrated", "stated")
#: The band reaches so many standard deviations beyond the mean excess of the calibration items.
_WIDTH = 2.0
#: With more classes, none of them is tested on its own.
_MOST_CLASSES = 20
#: Labels at once: bounds the memory.
_CHUNK = 2000

_by_test = numbers(None, low=-1e18, high=1e18)


@stored(
    {
        "low": numbers(None, low=-1.0, high=0.0),
        "high": numbers(None, low=0.0, high=1.0),
        "capital": numbers(None, 1 + len(BETS), low=-1e18, high=1e18),
        "least": _by_test,
        "since": array_of(np.int64, None),
        "n_items": count,
        "n_processes": whole(1, 1 << 60),
    }
)
@dataclass(frozen=True, eq=False)
class LabelEvidence:
    """The tests of one group, for each source in turn accuracy, Brier score and classes.

    Attributes
    ----------
    low, high : ndarray of shape (n_tests,)
        The band in which the mean excess may lie.
    capital : ndarray of shape (n_tests, 1 + n_bets)
        Logarithm of the reserve, then of the capital on each bet.
    least : ndarray of shape (n_tests,)
        Logarithm of the whole capital where it was smallest.
    since : ndarray of int of shape (n_tests,)
        After how many labels that was: the likeliest beginning of what the test has found.
    n_items : int
        Labels that were bet on.
    n_processes : int
        How many processes the capital is the mean of.
    """

    low: Vector
    high: Vector
    capital: Matrix
    least: Vector
    since: Rows
    n_items: int = 0
    n_processes: int = 1

    @classmethod
    def start(cls, usual: Sequence[LabelSums]) -> LabelEvidence:
        """Start tests whose bands come from the calibration items, one sum for each source."""
        intervals = [sums.interval(_WIDTH) for sums in usual]
        low, high = (
            np.concatenate([_tested(bounds[:, None])[:, 0] for bounds in side])
            for side in zip(*intervals, strict=True)
        )
        # Probabilities that are right are never outside, however wrong they used to be.
        return cls._within(np.clip(low, -1.0, 0.0), np.clip(high, 0.0, 1.0))

    @classmethod
    def _within(cls, low: Vector, high: Vector) -> LabelEvidence:
        n = len(low)
        return cls(low, high, start_capital(n, len(BETS)), np.zeros(n), np.zeros(n, np.int64))

    def reset(self) -> LabelEvidence:
        """Start the tests anew, with the same bands."""
        return self._within(self.low, self.high)

    @property
    def log_value(self) -> float:
        """Logarithm of the mean capital of all tests."""
        return float(log_mean(np.logaddexp.reduce(self.capital, axis=1)))

    def after(self, excess: Matrix) -> tuple[LabelEvidence, Matrix]:
        """Bet on labels one after the other.

        Parameters
        ----------
        excess : ndarray of shape (at least n_tests, m), m > 0
            What :func:`bounded_excesses` returns.

        Returns
        -------
        LabelEvidence
            After the last label.
        logs : ndarray of shape (n_tests, m)
            Logarithm of the whole capital of each test after each label.
        """
        now, logs = self, []
        for start in range(0, excess.shape[1], _CHUNK):
            now, part = now._after(excess[: len(self.low), start : start + _CHUNK])
            logs.append(part)
        return now, np.hstack(logs)

    def _after(self, excess: Matrix) -> tuple[LabelEvidence, Matrix]:
        may_be = np.where(BETS > 0, self.high[:, None], self.low[:, None])
        growth = np.log1p(excess[..., None] * BETS) - np.log1p(may_be * BETS)[:, None]
        capital, logs = bet(self.capital, self.n_items, growth)
        at = logs.argmin(axis=1)
        smallest = np.take_along_axis(logs, at[:, None], axis=1)[:, 0]
        lower = smallest <= self.least
        after = replace(
            self,
            capital=capital,
            least=np.where(lower, smallest, self.least),
            since=np.where(lower, self.n_items + 1 + at, self.since),
            n_items=self.n_items + excess.shape[1],
        )
        return after, logs

    def merged(self, other: LabelEvidence) -> LabelEvidence:
        """Return the mean of both; when a change began is looked for anew."""
        capital, n_processes = mean_capital(self, other)
        n_items = self.n_items + other.n_items
        least = np.logaddexp.reduce(capital, axis=1)
        since = np.full(len(least), n_items)
        return LabelEvidence(self.low, self.high, capital, least, since, n_items, n_processes)

    def found(self, classes: Sequence[Any]) -> dict[str, Any]:
        """Return what an alarm says now: what the strongest test has found, and since when."""
        test = int(np.logaddexp.reduce(self.capital, axis=1).argmax())
        return {
            "score": self._says(test, classes),
            "labels": self.n_items,
            "since": int(self.since[test]) + 1,
            "log10_evidence": self.log_value / np.log(10),
        }

    def _says(self, test: int, classes: Sequence[Any]) -> str:
        above, below = np.logaddexp.reduce(self.capital[test, 1:].reshape(2, -1), axis=1)
        names = ["accuracy", "Brier score", *(f"share of {label}" for label in classes)]
        rows = _rows(len(classes))
        source, row = divmod(test, len(rows))
        side = "higher" if above > below else "lower"
        return f"{names[rows[row]]} {side} than the {SOURCES[source]} probabilities say"

    def _check_restored(self) -> None:
        parts = (self.high, self.capital, self.least, self.since)
        expect(all(len(part) == len(self.low) for part in parts), self, "has other tests")
        known = bool(((self.since >= 0) & (self.since <= self.n_items)).all())
        expect(known, self, "began after its last label")


def bounded_excesses(sources: Sequence[Matrix], codes: Rows) -> Matrix:
    """Return what the tests bet on, between -1 and 1, one row per test, from each probabilities."""
    return np.vstack([_tested(excesses(Q, codes)) for Q in sources])


def n_tests(n_classes: int, n_sources: int) -> int:
    """Return how many tests a group has."""
    return n_sources * len(_rows(n_classes))


def _tested(excess: Matrix) -> Matrix:
    """Return the rows that are tested; the Brier score's, between -2 and 2, is halved."""
    rows = _rows(len(excess) - 2)
    return excess[rows] / np.where(np.array(rows) == 1, 2.0, 1.0)[:, None]


def _rows(n_classes: int) -> list[int]:
    """Return which of the 2 + K excesses are tested: of two classes one says it all."""
    if n_classes > _MOST_CLASSES:
        return [0, 1]
    return [0, 1, 3] if n_classes == 2 else list(range(2 + n_classes))
