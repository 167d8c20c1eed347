"""How a shift of the log-odds moves the probabilities of all classes, item by item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetcal._typing import Matrix, Vector

_TOWARDS_MEAN = 0.1  # what is said for certain may be wrong too
_SINGULAR = 1e-6


@dataclass(frozen=True, eq=False)
class ClassShifts:
    r"""Contrasts of the classes, and what a unit of each does to an item's probabilities.

    A small shift c of the log-probabilities moves h(p) by :math:`J c`, with
    :math:`J = \mathrm{diag}(h) - h h'`, which is the covariance of the label too. So the score of
    a shift :math:`\varphi(x) c` is the sum of :math:`\varphi(x)\, c \cdot r`, with the variance
    :math:`\sum \varphi^2 c' J c`.

    Attributes
    ----------
    law : ndarray of shape (n, C)
        h(p), a little nearer to its mean.
    contrasts : ndarray of shape (C, L)
        Columns c with a mean of :math:`c' J c` of one, orthogonal to each other in that sense.
    spread : ndarray of shape (n,)
        Root of the mean of :math:`c' J c` over the contrasts.
    """

    law: Matrix
    contrasts: Matrix
    spread: Vector

    @classmethod
    def of(cls, law: Matrix, weight: Vector) -> ClassShifts:
        """Find the contrasts of a law."""
        share = (weight / weight.sum())[:, None]
        H = (law + _TOWARDS_MEAN * (share * law).sum(axis=0)) / (1 + _TOWARDS_MEAN)
        values, vectors = np.linalg.eigh(np.diag((share * H).sum(axis=0)) - (share * H).T @ H)
        kept = values > _SINGULAR * values.max()
        contrasts = vectors[:, kept] / np.sqrt(values[kept])
        square = H @ contrasts**2 - (H @ contrasts) ** 2
        return cls(H, contrasts, np.sqrt(square.mean(axis=1)))

    def moved(self, contrast: Vector) -> Matrix:
        """Return how a combination of the contrasts moves each item's classes."""
        shift = self.contrasts @ contrast
        return self.law * (shift - (self.law @ shift)[:, None])
