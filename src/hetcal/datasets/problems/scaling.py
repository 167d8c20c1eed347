"""How strong an alternative's effect must be for a test that knows it to find it 95 times in 100.

The results are stored in `strengths.py`; ``python benchmarks/heterogeneity_test.py scale`` finds
them again.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from hetcal.datasets.problems import parts
from hetcal.datasets.problems.alternatives import ALTERNATIVES
from hetcal.datasets.problems.problem import draft_alternative, mean_over_effect, score_terms

__all__ = ["find_strength", "predicted_power"]

N_LARGE = 60_000
LEVEL, POWER = 0.05, 0.95


def predicted_power(name: str, strength: float) -> float:
    """Power of the oracle's one-sided score test at the problem's n, by its normal limit."""
    mean, null_variance, true_variance = _moments(name, strength)
    n = ALTERNATIVES[name].scaled_at
    excess = np.sqrt(n) * mean + ndtri(LEVEL) * np.sqrt(null_variance)
    return float(ndtr(excess / np.sqrt(true_variance)))


def find_strength(name: str) -> float:
    """Strength at which `predicted_power` is .95, to three digits."""
    strength = brentq(lambda s: predicted_power(name, s) - POWER, 0.02, 12.0, xtol=1e-4)
    return float(f"{strength:.3g}")


def _moments(name: str, strength: float) -> tuple[float, float, float]:
    """Per item: mean of the score under the truth, its variance under h(p) and under the truth."""
    rng = np.random.default_rng(12345)
    draft, u = draft_alternative(name, N_LARGE, rng)
    true, centre = parts.shifted(draft, strength * u), mean_over_effect(name, draft, strength)
    terms = score_terms(true, centre)
    mean = (true * terms).sum(axis=1)
    if draft.groups is None:
        null_variance = (centre * terms**2).sum(axis=1)
        return mean.mean(), null_variance.mean(), ((true * terms**2).sum(axis=1) - mean**2).mean()
    U = parts.uniforms(draft, rng)
    return (
        mean.mean(),
        _group_variance(terms, centre, U, draft.groups),
        _group_variance(terms, true, U, draft.groups),
    )


def _group_variance(terms, Q, U, groups) -> float:
    """Variance per item of the score when labels are drawn from Q and depend within groups."""
    labels = parts.draw_labels(Q, U)
    values = np.take_along_axis(terms, labels[:, None], axis=1)[:, 0] - (Q * terms).sum(axis=1)
    return float((np.bincount(groups, values) ** 2).sum() / len(groups))
