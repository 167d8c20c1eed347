"""Frequencies at the few values that a coarse classifier can say, shrunk towards a smooth map."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from hetcal._typing import Matrix, Rows, Vector

# Probabilities that agree so far are the same value.
DIGITS = 10
_MASSES = 2.0 ** np.arange(0, 21)
_LEAST = 1e-9  # of a class that the smooth map rules out


def find_atoms(P: Matrix) -> tuple[Matrix, Rows]:
    """Return the distinct rows of P, and the number of each row's own.

    Examples
    --------
    >>> import numpy as np
    >>> find_atoms(np.array([[0.2, 0.8], [0.5, 0.5], [0.2, 0.8]]))
    (array([[0.2, 0.8],
           [0.5, 0.5]]), array([0, 1, 0]))
    """
    atoms, number = np.unique(_rounded(P), axis=0, return_inverse=True)
    return atoms, number.reshape(-1)


def match_atoms(P: Matrix, atoms: Matrix) -> Rows:
    """Return the number of each row among the atoms, -1 where it is none of them."""
    known = {row.tobytes(): number for number, row in enumerate(np.ascontiguousarray(atoms))}
    return np.array([known.get(row.tobytes(), -1) for row in _rounded(P)], dtype=np.int64)


def best_mass(counts: Matrix, prior: Matrix) -> float:
    r"""Return how many items the prior is worth, by the likelihood of the counts.

    Every atom has its own frequencies, drawn from a Dirichlet distribution around ``prior``; its
    mass is the one of 1, 2, 4, ... under which the counts are the most probable.

    Parameters
    ----------
    counts : ndarray of shape (A, K)
        Items of each class at each atom.
    prior : ndarray of shape (A, K)
        Probabilities by a smooth map, positive.

    Examples
    --------
    >>> import numpy as np
    >>> even = np.full((2, 2), 0.5)
    >>> best_mass(np.array([[90.0, 10.0], [10.0, 90.0]]), even) < 4
    True
    >>> best_mass(np.array([[50.0, 50.0], [51.0, 49.0]]), even)
    1048576.0
    """
    fits = np.array([_log_likelihood(counts, prior, mass) for mass in _MASSES])
    # Single items say nothing about the mass: of equally good ones the largest.
    return float(_MASSES[fits >= fits.max() - 1e-6][-1])


def _log_likelihood(counts: Matrix, prior: Matrix, mass: float) -> float:
    alpha = np.maximum(mass * prior, _LEAST)
    within = gammaln(alpha + counts) - gammaln(alpha)
    return float(within.sum() - (gammaln(mass + counts.sum(axis=1)) - gammaln(mass)).sum())


def counts_by_atom(number: Rows, codes: Rows, weight: Vector, shape: tuple[int, int]) -> Matrix:
    """Return the weight of each class at each atom."""
    flat = np.bincount(number * shape[1] + codes, weight, shape[0] * shape[1])
    return flat.astype(np.float64).reshape(shape)


def _rounded(P: Matrix) -> Matrix:
    return np.ascontiguousarray(np.round(P, DIGITS)) + 0.0
