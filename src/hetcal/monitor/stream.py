"""One stream of items: the whole, a class, or a named sub-population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hetcal.monitor import evidence, window
from hetcal.monitor.labels import LabelSums
from hetcal.monitor.ranks import N_BINS, running_p_values

Vector = NDArray[np.float64]


@dataclass(eq=False)
class Stream:
    """Counts and evidence of bounded size; one row per score (support, distance).

    Attributes
    ----------
    base : ndarray of int of shape (n_scores, N_BINS)
        The reference items of this stream by bin.
    past : ndarray of int of shape (n_scores, N_BINS)
        The items since the last reset by bin.
    capital : ndarray of shape (n_scores, 1 + n_bets)
        See :mod:`hetcal.monitor.evidence`.
    tails : list of ndarray
        See :func:`hetcal.monitor.window.slide`.
    n_seen, n_flagged : int
        Items since the beginning, and how many of them were flagged.
    n_tested : int
        Items since the last reset.
    n_shards : int
        How many processes these counts come from.
    labels : LabelSums
        Of the items.
    usual : LabelSums
        Of the calibration items, by out-of-sample predictions.
    """

    base: NDArray[np.int64]
    past: NDArray[np.int64]
    capital: Vector
    tails: list[Vector]
    labels: LabelSums
    usual: LabelSums
    n_seen: int = 0
    n_flagged: int = 0
    n_tested: int = 0
    n_shards: int = 1

    @classmethod
    def on(cls, bins: NDArray[np.int64], usual: LabelSums) -> Stream:
        """Start a stream whose reference items lie in these bins, shape (n_scores, n)."""
        base = np.stack([np.bincount(row, minlength=N_BINS) for row in bins]).astype(np.int64)
        return cls(base, base, np.zeros(0), [], usual, usual).emptied()

    def emptied(self) -> Stream:
        """Return a stream with the same reference that has seen nothing."""
        labels = LabelSums.empty(len(self.usual.excess) - 2)
        stream = Stream(self.base, np.zeros_like(self.base), np.zeros(0), [], labels, self.usual)
        stream.reset()
        return stream

    def reset(self) -> None:
        """Start the tests anew; what was counted since the beginning stays counted."""
        self.past = np.zeros_like(self.base)
        self.capital = np.stack([evidence.start()] * len(self.base))
        self.tails = [np.zeros(0) for _ in self.base]
        self.n_tested, self.n_shards = 0, 1

    def test(self, bins: NDArray[np.int64], uniform: Vector, width: int) -> tuple[Vector, Vector]:
        """Test new items, one after the other.

        Returns
        -------
        logs : ndarray of shape (n_scores, m)
            Logarithm of the capital of each score after each item.
        sums : ndarray of shape (n_scores, m)
            The windowed statistic after each item.
        """
        logs, sums = np.empty(bins.shape), np.empty(bins.shape)
        for row in range(len(bins)):
            pool = self.base[row] + self.past[row]
            p = running_p_values(pool, bins[row], uniform[row])
            self.past[row] = pool - self.base[row]
            self.capital[row], logs[row] = evidence.play(self.capital[row], self.n_tested, p)
            self.tails[row], sums[row] = window.slide(self.tails[row], p, width)
        self.n_tested += bins.shape[1]
        self.n_seen += bins.shape[1]
        return logs, sums

    @property
    def log_evidence(self) -> float:
        """Logarithm of the capital, the mean over the scores."""
        return float(evidence.log_mean(np.logaddexp.reduce(self.capital, axis=1)))

    def label_z(self) -> Vector:
        """Return by how many deviations the labels differ from what is usual."""
        return self.labels.excess_over(self.usual)[1]

    def merge(self, other: Stream, width: int) -> None:
        """Add the items of another process that started from the same reference."""
        # Who has tested nothing has nothing to say.
        weights = np.array([s.n_shards * (s.n_tested > 0) for s in (self, other)], dtype=np.float64)
        if weights.any():
            self.capital = evidence.log_mean(np.stack([self.capital, other.capital]), weights)
        self.past = self.past + other.past
        self.tails = [
            window.interleave([mine, theirs], width)
            for mine, theirs in zip(self.tails, other.tails, strict=True)
        ]
        self.n_shards = max(int(weights.sum()), 1)
        for name in ("n_seen", "n_flagged", "n_tested"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.labels = LabelSums(
            self.labels.n + other.labels.n,
            self.labels.excess + other.labels.excess,
            self.labels.variance + other.labels.variance,
        )
