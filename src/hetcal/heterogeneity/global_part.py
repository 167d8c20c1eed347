r"""What the best global map gains: :math:`E|p - P(y \mid p)|^2`, with its interval."""

from __future__ import annotations

from hetcal._typing import Vector
from hetcal.data import CalibrationSet
from hetcal.heterogeneity.functions_of_p import GlobalFit
from hetcal.metrics.scores import brier_losses
from hetcal.metrics.standard_errors import mean_and_error


def mean_brier(items: CalibrationSet) -> float:
    """Return the Brier score of the classifier on the items."""
    return float(mean_and_error(brier_losses(items.proba, items.codes), items.weights)[0])


def global_gains(items: CalibrationSet, fit: GlobalFit) -> Vector:
    """Return each item's squared error less what the best global map leaves of it."""
    return brier_losses(items.proba, items.codes) - fit.squares


def global_part(items: CalibrationSet, fit: GlobalFit) -> tuple[float, tuple[float, float]]:
    """Return what the best global map gains, and its 95 % interval."""
    gain, error = mean_and_error(global_gains(items, fit), items.weights, items.groups)
    return float(gain), (float(gain - 1.96 * error), float(gain + 1.96 * error))
