"""Weights of a mixture against a general-purpose optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from hetcal.kernels.mixture import mixture_weights


@pytest.mark.parametrize("seed", range(5))
def test_weights_minimise_the_log_loss_on_the_simplex(seed):
    rng = np.random.default_rng(seed)
    likelihood, weight = rng.random((4, 60)), rng.uniform(0.1, 3, 60)
    ours = mixture_weights(likelihood, weight)

    def loss(v):
        return -weight @ np.log(v @ likelihood)

    sums = {"type": "eq", "fun": lambda v: v.sum() - 1}
    best = minimize(loss, np.full(4, 0.25), bounds=[(0, 1)] * 4, constraints=sums, tol=1e-12)
    assert ours.min() >= 0
    assert ours.sum() == pytest.approx(1.0, abs=1e-12)
    assert loss(ours) <= best.fun + 1e-7


def test_only_ratios_matter():
    rng = np.random.default_rng(0)
    likelihood, weight = rng.random((3, 20)), np.ones(20)
    scaled = likelihood * rng.uniform(1e-200, 1e-100, 20)
    np.testing.assert_allclose(
        mixture_weights(scaled, weight), mixture_weights(likelihood, 7 * weight), atol=1e-7
    )


def test_who_is_better_at_every_item_gets_all():
    assert mixture_weights(np.array([[0.5, 0.6], [0.4, 0.1]]), np.ones(2))[0] == pytest.approx(1.0)


def test_twins_share_and_nothing_breaks():
    v = mixture_weights(np.array([[0.5, 0.2], [0.5, 0.2]]), np.ones(2))
    np.testing.assert_allclose(v, 0.5)


def test_what_all_but_one_rule_out_does_not_overflow():
    v = mixture_weights(np.array([[1.0, 0.0, 0.5], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), np.ones(3))
    assert np.isfinite(v).all()
    assert v[2] == pytest.approx(1 / 3, abs=1e-3)
