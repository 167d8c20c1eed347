"""Kernels say the same whichever vector instructions a processor has."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from hetcal.kernels import forest as fk
from hetcal.kernels import native, use_core
from hetcal.kernels.local_forests import local_forest_scores
from hetcal.kernels.neighbourhoods import hellinger_balls

with use_core("auto"):
    CORE = native()
pytestmark = pytest.mark.skipif(CORE is None, reason="the compiled core was not built")


@pytest.fixture(params=["none", "avx2", "avx512"])
def fewer(request):
    """Return a function that calls another with fewer vector instructions."""
    usual = CORE.vectors()

    def call(function, *arguments, **options):
        CORE.use_vectors(request.param)
        try:
            return function(*arguments, **options)
        finally:
            CORE.use_vectors(usual)

    with use_core("native"):
        yield call
    assert CORE.vectors() == usual


def assert_same(some, others):
    for one, other in zip(astuple(some), astuple(others), strict=True):
        np.testing.assert_array_equal(one, other)


def pixels(n_rows, n_columns, seed=0):
    """Draw rows of which most values are 0, and two classes that can be told apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    Z = rng.integers(1, 256, (n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < 0.3)
    Z[:, 0] = 40 * y + rng.integers(0, 60, n_rows)
    return Z.astype(np.float64), y.astype(np.int32)


def grown(Z, y, n_trees):
    forest = fk.fit_forest(Z, y, 2, n_estimators=n_trees, random_state=0)
    return forest.feature, forest.threshold, fk.apply(forest, Z)


@pytest.mark.parametrize("n_rows", [130, 3000])
def test_trees(fewer, n_rows):
    Z, y = pixels(n_rows, 50)
    for usual, with_fewer in zip(grown(Z, y, 8), fewer(grown, Z, y, 8), strict=True):
        np.testing.assert_array_equal(with_fewer, usual)


@pytest.mark.parametrize("n_items", [100, 1500])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_votes_of_similar_items(fewer, n_items, n_classes):
    """Trees of a few leaves, of which some hold most of the items."""
    rng = np.random.default_rng(n_items)
    n_trees, shares = 90, [0.6, 0.25, 0.1, 0.04, 0.01]
    tree = len(shares) * np.arange(n_trees)
    leaves = (rng.choice(len(shares), (n_items + 40, n_trees), p=shares) + tree).astype(np.int32)
    codes = rng.integers(0, n_classes, n_items).astype(np.int32)
    index = fk.build_index(len(shares) * n_trees, leaves[:n_items])
    rows = fk.queries_from_leaves(leaves[n_items:])
    for threshold in (0.3, 0.45, 0.6):
        asked = (index, rows, codes, n_classes)
        usual = fk.neighbour_vote(*asked, threshold=threshold)
        said = fewer(fk.neighbour_vote, *asked, threshold=threshold)
        assert len(np.unique(usual.support)) > 1
        assert_same(said, usual)


def test_hidden_heterogeneity(fewer):
    Z, y = pixels(300, 5)
    P = np.random.default_rng(2).dirichlet([3.0, 3.0], 300)
    data = (np.round(Z / 50), y, 2, P, *hellinger_balls(P, P[:30], 0.2))
    assert_same(fewer(local_forest_scores, *data), local_forest_scores(*data))


def test_only_vector_instructions_that_there_are_can_be_asked_for():
    usual = CORE.vectors()
    with pytest.raises(ValueError, match="none, avx2, avx512, vbmi2"):
        CORE.use_vectors("sse")
    CORE.use_vectors("vbmi2")  # beyond the processor's: as many as there are
    assert CORE.vectors() == usual
