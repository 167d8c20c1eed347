"""Atoms: the distinct rows, and how much the smooth map counts."""

import numpy as np
import pytest
from scipy.stats import dirichlet_multinomial

from hetcal.kernels.atoms import best_mass, counts_by_atom, find_atoms, match_atoms


def test_rows_find_their_atom_and_others_none():
    P = np.array([[0.1, 0.9], [0.1 + 1e-13, 0.9 - 1e-13], [0.5, 0.5], [0.1, 0.9]])
    atoms, number = find_atoms(P)
    assert number.tolist() == [0, 0, 1, 0]
    np.testing.assert_array_equal(match_atoms(P, atoms), number)
    assert match_atoms(np.array([[0.2, 0.8]]), atoms).tolist() == [-1]
    counts = counts_by_atom(number, np.array([0, 1, 1, 1]), np.array([1.0, 2, 1, 1]), (2, 2))
    np.testing.assert_array_equal(counts, [[1, 3], [0, 1]])


@pytest.mark.parametrize("mass", [2.0, 64.0])
def test_the_mass_has_the_largest_likelihood_and_finds_the_true_one(mass):
    rng = np.random.default_rng(0)
    prior = rng.dirichlet([4, 3, 2], 200)
    rates = np.array([rng.dirichlet(mass * row) for row in prior])
    counts = np.array([rng.multinomial(40, row) for row in rates])
    found = best_mass(counts.astype(float), prior)
    assert mass / 2 <= found <= 2 * mass

    def likelihood(m):
        return sum(
            dirichlet_multinomial.logpmf(c, m * p, 40) for c, p in zip(counts, prior, strict=True)
        )

    assert likelihood(found) >= max(likelihood(found / 2), likelihood(2 * found))


def test_single_items_leave_the_smooth_map():
    rng = np.random.default_rng(0)
    prior = rng.dirichlet([3, 3], 300)
    counts = np.eye(2)[(rng.random(300) < prior[:, 1]).astype(int)]
    assert best_mass(counts, prior) == 2.0**20
