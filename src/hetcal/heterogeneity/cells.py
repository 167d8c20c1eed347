"""Cells of the probability simplex: which calibration items a prediction is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix
from hetcal.kernels.neighbourhoods import (
    hellinger_balls,
    merge_overlapping,
    nearest_leader,
    simplex_net,
)

Indexes = NDArray[np.int64]

NET_STEPS = 10  # a cell's leader is at most radius / 10 away
OVERLAP = 0.9
_AUTO_RADII = (0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
_AUTO_NEIGHBOURS, _AUTO_SHARE = 50, 0.9


@dataclass(frozen=True, eq=False)
class Balls:
    """Neighbourhoods of calibration items around centres, items in increasing order.

    Attributes
    ----------
    centres : ndarray of shape (m, K)
    indptr, indices : ndarray of int
        Items of ball j are ``indices[indptr[j]:indptr[j + 1]]``.
    n_items : int
        Calibration items in all.
    """

    centres: Matrix
    indptr: Indexes
    indices: Indexes
    n_items: int

    @classmethod
    def around(cls, centres: Matrix, P: Matrix, radius: float) -> Balls:
        """Return the balls of one radius around the centres."""
        indptr, indices = hellinger_balls(P, centres, radius)
        # Sorted members make the forests independent of how the search happens to return them.
        ball = np.repeat(np.arange(len(centres)), np.diff(indptr))
        return cls(centres, indptr, indices[np.lexsort((indices, ball))], len(P))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def sizes(self) -> Indexes:
        """Items in each ball."""
        return np.diff(self.indptr)

    def averages(self, per_member: Matrix, weight: NDArray[np.float64]) -> Matrix:
        """Return the weighted mean of values per member over each ball; NaN members do not count.

        Parameters
        ----------
        per_member : ndarray of shape (..., n_members)
        weight : ndarray of shape (n_items,)
        """
        known = ~np.isnan(per_member)
        w = np.where(known, weight[self.indices], 0.0)
        total = self.sums(w)
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.sums(np.where(known, per_member, 0.0) * w) / total

    def sums(self, per_member: Matrix) -> Matrix:
        """Return the sum of values per member over each ball, along the last axis."""
        running = np.zeros((*per_member.shape[:-1], per_member.shape[-1] + 1))
        np.cumsum(per_member, axis=-1, out=running[..., 1:])
        return running[..., self.indptr[1:]] - running[..., self.indptr[:-1]]


def net_of_cells(P: Matrix, radius: float, kind: str) -> Balls:
    """Return the balls that serve all predictions, built from the calibration probabilities.

    Parameters
    ----------
    P : ndarray of shape (n, K)
    radius : float
    kind : {"net", "overlap"}
        ``"net"``: leaders more than a tenth of the radius apart. ``"overlap"``: of these, balls
        that share nine of ten items are merged.
    """
    balls = Balls.around(simplex_net(P, radius / NET_STEPS), P, radius)
    if kind == "overlap":
        kept, _ = merge_overlapping(balls.indptr, balls.indices, len(P), overlap=OVERLAP)
        balls = Balls.around(balls.centres[kept], P, radius)
    return balls


def nearest_cell(balls: Balls, P: Matrix, spacing: float) -> Indexes:
    """Return the nearest centre of each prediction, -1 where none lies within ``spacing``."""
    return nearest_leader(balls.centres, P, spacing)


def auto_radius(P: Matrix) -> float:
    """Return the smallest radius that keeps neighbourhoods large enough.

    Of 0.1, 0.15, 0.2, 0.3, 0.5 and 1 the first at which nine of ten items of ``P`` have at least 50
    neighbours (or half of all items, where there are fewer than 100).

    Examples
    --------
    >>> import numpy as np
    >>> p = np.linspace(0.01, 0.99, 1000)
    >>> auto_radius(np.column_stack([p, 1 - p])), auto_radius(np.column_stack([p, 1 - p])[::20])
    (0.1, 0.5)
    """
    enough = min(_AUTO_NEIGHBOURS, len(P) // 2)
    for radius in _AUTO_RADII[:-1]:
        net = simplex_net(P, radius / 2)
        cell = nearest_leader(net, P, radius / 2)
        sizes = np.diff(hellinger_balls(P, net, radius)[0])[cell]
        if np.mean(sizes >= enough) >= _AUTO_SHARE:
            return radius
    return _AUTO_RADII[-1]
