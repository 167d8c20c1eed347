"""Isotonic regression: both cores, scikit-learn as oracle, exact ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from hetcal.kernels import core_name, native, use_core
from hetcal.kernels.isotonic import isotonic_fit

CORES = [
    "pure",
    pytest.param(
        "native",
        marks=pytest.mark.skipif(native() is None, reason="the compiled core was not built"),
    ),
]


@pytest.mark.parametrize("core", CORES)
@settings(max_examples=60)
@given(seed=st.integers(0, 100_000), n=st.integers(1, 60))
def test_equals_scikit_learn_where_scores_are_apart(core, seed, n):
    rng = np.random.default_rng(seed)
    score = rng.integers(0, 20, n) / 20
    target, weight = rng.random(n), rng.random(n) + 0.1
    with use_core(core):
        thresholds, levels = isotonic_fit(score, target, weight)
    expected = IsotonicRegression().fit(score, target, sample_weight=weight)
    np.testing.assert_allclose(
        np.interp(score, thresholds, levels), expected.predict(score), atol=1e-12
    )


@pytest.mark.parametrize("core", CORES)
def test_scores_that_differ_in_the_last_bit_stay_apart(core):
    score = np.array([1.0 - 2**-53, 1.0, 1e-300, 0.0])
    with use_core(core):
        thresholds, levels = isotonic_fit(score, np.array([0.0, 1.0, 0.0, 0.0]))
    assert thresholds.shape == (4,)
    np.testing.assert_array_equal(levels, [0.0, 0.0, 0.0, 1.0])


@pytest.mark.skipif(native() is None, reason="the compiled core was not built")
def test_both_cores_agree_to_the_last_bit():
    rng = np.random.default_rng(0)
    score, target = rng.random(5000), rng.random(5000)
    with use_core("native"):
        assert core_name() == "native"
        compiled = isotonic_fit(score, target)
    with use_core("pure"):
        assert core_name() == "pure"
        pure = isotonic_fit(score, target)
    np.testing.assert_array_equal(compiled[1], pure[1])


def test_items_without_weight_do_not_count():
    with_zero = isotonic_fit(
        np.array([0.1, 0.2, 0.3]), np.array([0.0, 9.0, 1.0]), np.array([1, 0, 1.0])
    )
    np.testing.assert_array_equal(with_zero[0], [0.1, 0.3])
