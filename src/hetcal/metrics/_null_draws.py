"""Residuals (label minus probability) as they would be, were the probabilities right."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix, Rows

# Draws are worked off in blocks of so many residuals (32 MB), whatever their number.
_BLOCK = 4_000_000

# One residual per item, class and draw: shape (n, K, B).
Residuals = NDArray[np.float64]


def residuals_of_labels(codes: NDArray[np.int64], P: Matrix) -> Residuals:
    """Return one-hot labels minus probabilities; labels of shape (n, B), P of shape (n, K)."""
    happened = codes[:, None, :] == np.arange(P.shape[1])[:, None]
    return happened - P[:, :, None]


def drawn_labels(P: Matrix, n_draws: int, random_state: int | None) -> Iterator[Residuals]:
    """Yield residuals of labels that are drawn from the probabilities, in blocks."""
    rng = np.random.default_rng(random_state)
    borders = np.cumsum(P[:, :-1], axis=1)[:, :, None]
    for size in _block_sizes(P.size, n_draws):
        codes = (rng.random((P.shape[0], 1, size)) >= borders).sum(axis=1)
        yield residuals_of_labels(codes, P)


def flipped_groups(
    R: Matrix, units: Rows, n_draws: int, random_state: int | None
) -> Iterator[Residuals]:
    """Yield the residuals themselves with random signs, the same for all items of a group.

    It needs no more than that residuals are 0 on average: labels of one group may depend on each
    other in any way, which no draw of labels from the probabilities could imitate.
    """
    rng = np.random.default_rng(random_state)
    n_units = int(units.max()) + 1
    for size in _block_sizes(R.size, n_draws):
        signs = rng.choice([-1.0, 1.0], size=(n_units, size))
        yield R[:, :, None] * signs[units][:, None, :]


def _block_sizes(cells: int, n_draws: int) -> list[int]:
    width = max(1, _BLOCK // cells)
    whole, rest = divmod(n_draws, width)
    return [width] * whole + [rest] * (rest > 0)
