"""How far a prediction may replace another: by labels that it has not seen."""

from __future__ import annotations

import numpy as np

from hetcal._typing import Matrix
from hetcal.data import CalibrationSet
from hetcal.metrics.scores import brier_losses, log_losses
from hetcal.metrics.standard_errors import mean_and_error

# Probabilities count as no less, so that one surprise cannot decide by itself.
LEAST_LIKELIHOOD = 1e-6
# With so many items caution counts twice. The larger, the less the worst of fifty small sets costs
# behind a perfect model, and the less is gained behind an over-confident one (the table in
# docs/explanation/hybrid.md).
_FEW = 30
# If p is right, a change costs exactly its mean squared size. Without strong evidence, in units of
# the log-likelihood, it may cost this share of the Brier score; the same table says how it was
# chosen. New items are changed by somewhat more than those that it is measured on.
_MOST_LOST, _STRONG = 0.03, 6.0


def likelihood_gain(after: Matrix, before: Matrix, items: CalibrationSet) -> float:
    """Return the gain in log-likelihood; items of one group count as one."""
    loss, loss_before = (log_losses(Q, items.codes, eps=LEAST_LIKELIHOOD) for Q in (after, before))
    gain = float(items.counts @ (loss_before - loss))
    return gain * _independent(items) / float(items.counts.sum())


def trust(final: Matrix, items: CalibrationSet, caution: float) -> float:
    """Return the probability that ``final`` and not the classifier's own p is right.

    Beforehand the odds against ``final`` are ``exp(c) - 1`` to one, c being ``caution``, and more
    for few items: what looks like a gain on them is often none, because weights, share and last
    step were chosen on these items; many items decide by themselves. Evidence is the mean of what
    likelihoods and Brier scores say: a chance pattern that fools one of them often leaves the
    other unmoved. Unless the evidence is strong, the probability is cut so that the change would
    cost no more than a few percent of the Brier score if p were right after all. ``caution`` 0
    believes everything.
    """
    against = np.expm1(min(caution * (1 + _FEW / _independent(items)), 500.0))
    evidence = (likelihood_gain(final, items.proba, items) + _brier_evidence(final, items)) / 2
    evidence = float(np.clip(evidence, -100.0, 100.0))
    believed = float(1 / (1 + against * np.exp(-evidence)))
    return min(believed, _affordable(final, items, caution, evidence))


def _affordable(final: Matrix, items: CalibrationSet, caution: float, evidence: float) -> float:
    """Return how far p may be moved towards ``final`` at the risk that p is right."""
    p, count = items.proba, items.counts
    distance = float(count @ ((final - p) ** 2).sum(axis=1))
    # A perfect p scores what it says of itself; one that does worse has more to gain.
    scores = brier_losses(p, items.codes), (p * (1 - p)).sum(axis=1)
    allowed = _MOST_LOST * max(float(count @ loss) for loss in scores)
    allowed *= np.exp(max(0.0, evidence - _STRONG))
    return float(np.sqrt(allowed / (caution * distance))) if caution * distance > 0 else 1.0


def _brier_evidence(final: Matrix, items: CalibrationSet) -> float:
    """Return the log-likelihood ratio of a gain in Brier score as seen, and none, if normal."""
    gain = brier_losses(items.proba, items.codes) - brier_losses(final, items.codes)
    mean, error = mean_and_error(gain, items.counts, items.groups)
    if not error > 0:
        return 0.0
    # The error of a few heavy items seems small: their mean is close to each of them.
    return float(np.sign(mean) * min((mean / error) ** 2, _independent(items)) / 2)


def _independent(items: CalibrationSet) -> float:
    """Return how many items there are, or groups.

    Whole numbers are taken for copies of an item. Other weights are merely relative, and many
    items of which a few have most of the weight are worth little more than these few.
    """
    count = items.counts
    units = float(count.sum())
    worth = 1.0
    if (count % 1 != 0).any():
        worth = units**2 / (float(count @ count) * np.count_nonzero(count))
    if items.groups is not None:
        units = float(np.unique(items.groups).shape[0])
    return max(units * worth, 1.0)
