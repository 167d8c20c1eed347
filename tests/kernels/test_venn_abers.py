"""Venn-Abers predictors against two isotonic fits per new item."""

import numpy as np
import pytest

from hetcal.kernels import native, use_core
from hetcal.kernels.isotonic import isotonic_fit
from hetcal.kernels.venn_abers import apply_venn_abers, fit_venn_abers, merged

needs_core = pytest.mark.skipif(native() is None, reason="the compiled core was not built")


def by_two_fits(score, target, weight, new):
    """Add the new item with either label, fit, and read the level at its score."""
    ends = []
    for label in (0.0, 1.0):
        thresholds, levels = isotonic_fit(
            np.append(score, new), np.append(target, label), np.append(weight, 1.0)
        )
        ends.append(levels[np.searchsorted(thresholds, new)])
    return ends


@pytest.mark.parametrize("seed", range(30))
def test_steps_are_what_two_fits_say(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 15))
    score = rng.integers(0, 8, n).astype(float)
    target = (rng.random(n) < rng.choice([0.0, 0.2, 0.5, 1.0])).astype(float)
    weight = rng.choice([1.0, 2.0, 0.3], n)
    new = np.arange(-0.5, 8.5, 0.5)
    lower, upper = apply_venn_abers(fit_venn_abers(score, target, weight), new)
    expected = np.array([by_two_fits(score, target, weight, x) for x in new])
    np.testing.assert_allclose(np.column_stack([lower, upper]), expected, atol=1e-12)


@needs_core
def test_the_core_says_the_same_as_its_twin():
    rng = np.random.default_rng(0)
    score, target, weight = rng.random(400).round(2), rng.random(400) < 0.4, rng.random(400)
    said = []
    for name in ("pure", "native"):
        with use_core(name):
            said.append(fit_venn_abers(score, target.astype(float), weight))
    for pure, compiled in zip(*said, strict=True):
        np.testing.assert_array_equal(pure, compiled)


def test_weight_zero_is_not_there():
    score, target = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.0])
    some = fit_venn_abers(score, target, np.array([1.0, 1.0, 0.0]))
    without = fit_venn_abers(score[:2], target[:2], np.ones(2))
    for one, other in zip(some, without, strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_item_says_nothing_and_merging_lies_between():
    nothing = apply_venn_abers(fit_venn_abers(*np.empty((3, 0))), np.array([0.0]))
    np.testing.assert_array_equal(np.ravel(nothing), [0.0, 1.0])
    assert merged([nothing])[0] == 0.5
    twice = merged([(np.array([0.2]), np.array([0.4]))] * 2)
    assert twice[0] == pytest.approx(0.4 / (1 - 0.2 + 0.4))


@pytest.mark.parametrize("core", ["pure", pytest.param("native", marks=needs_core)])
@pytest.mark.parametrize(("largest", "error"), [(6, 1e-6), (18, 1.0)])
def test_very_unequal_weights_leave_probabilities(core, largest, error):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        score, target = rng.permutation(30).astype(float), (rng.random(30) < 0.5).astype(float)
        weight = 10.0 ** rng.integers(-largest, largest + 1, 30)
        with use_core(core):
            lower, upper = apply_venn_abers(fit_venn_abers(score, target, weight), score)
        assert ((lower >= 0) & (lower <= upper) & (upper <= 1)).all()
        expected = np.array([by_two_fits(score, target, weight, x) for x in score])
        np.testing.assert_allclose(np.column_stack([lower, upper]), expected, atol=error)
