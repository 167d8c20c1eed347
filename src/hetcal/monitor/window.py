"""The windowed test: whether the p-values of the last items, taken together, are too small.

The statistic is Fisher's, the sum of -log p over the last W items. While the items are exchangeable
the running p-values are independent and uniform, so the largest value within a horizon of items
follows one known law, which is simulated; it depends on no data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hetcal._stored import stored
from hetcal._stored.fields import list_of, numbers
from hetcal._typing import Matrix, Vector

_N_SIMULATED = 1000
_NUMBERS_AT_ONCE = 500_000
_LEAST_P = 1e-12


@stored({"tails": list_of(numbers(None, low=0.0, high=1e3))}, inline=True)
@dataclass(frozen=True, eq=False)
class FisherWindow:
    """The last items of a stream.

    Attributes
    ----------
    tails : list of ndarray
        For each score -log p of the last items, at most as many as the window is wide.
    """

    tails: list[Vector]

    @classmethod
    def start(cls, n_scores: int) -> FisherWindow:
        """Return a window over no item."""
        return cls([np.zeros(0) for _ in range(n_scores)])

    def after(self, p: Matrix, width: int) -> tuple[FisherWindow, Matrix]:
        """Move the window over new p-values, shape (n_scores, m).

        Returns
        -------
        FisherWindow
            After the last item.
        sums : ndarray of shape (n_scores, m)
            The statistic after each item; 0 before the window is full.
        """
        moved = [_slide(tail, q, width) for tail, q in zip(self.tails, p, strict=True)]
        return FisherWindow([tail for tail, _ in moved]), np.stack([sums for _, sums in moved])

    def merged(self, other: FisherWindow, width: int) -> FisherWindow:
        """Return the latest items of both in turn, as one window."""
        pairs = zip(self.tails, other.tails, strict=True)
        return FisherWindow([_interleave(pair, width) for pair in pairs])


@lru_cache(maxsize=64)
def bound(width: int, horizon: int, rate: float) -> float:
    """Return what the largest sum of ``width`` items within ``horizon`` exceeds at a given rate.

    The tail beyond the 1000 simulated maxima is Gumbel's, fitted by their mean and deviation.
    """
    rng = np.random.default_rng(0)
    at_once = max(1, _NUMBERS_AT_ONCE // (horizon + width))
    largest = []
    for done in range(0, _N_SIMULATED, at_once):
        n = min(at_once, _N_SIMULATED - done)
        total = np.cumsum(rng.exponential(size=(n, horizon + width)), axis=1)
        largest.append((total[:, width:] - total[:, :-width]).max(axis=1))
    maxima = np.concatenate(largest)
    scale = maxima.std() * np.sqrt(6) / np.pi
    return float(maxima.mean() - np.euler_gamma * scale - scale * np.log(-np.log1p(-rate)))


def _slide(tail: Vector, p: Vector, width: int) -> tuple[Vector, Vector]:
    values = np.concatenate([tail, -np.log(np.maximum(p, _LEAST_P))])
    total = np.concatenate([[0.0], np.cumsum(values)])
    end = np.arange(len(tail) + 1, len(values) + 1)
    sums = np.where(end >= width, total[end] - total[np.maximum(end - width, 0)], 0.0)
    return values[-width:], sums


def _interleave(tails: tuple[Vector, ...], width: int) -> Vector:
    longest = max(len(tail) for tail in tails)
    padded = np.full((longest, len(tails)), np.nan)
    for column, tail in enumerate(tails):
        padded[longest - len(tail) :, column] = tail
    joined = padded.ravel()
    return joined[~np.isnan(joined)][-width:]
