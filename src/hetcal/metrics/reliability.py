"""Observed frequency against predicted probability: bin by bin, or smoothed by a kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import ndtri

from hetcal._typing import Matrix, Rows, Vector
from hetcal.data import CalibrationSet
from hetcal.kernels.intervals import effective_size, exact_interval, wilson_interval
from hetcal.metrics._null_draws import drawn_labels, flipped_groups
from hetcal.metrics.smooth import ReflectedKernel

COLUMNS = ["predicted", "observed", "low", "high", "smallest", "largest", "count", "weight"]
# A smooth curve is drawn where at least so many items (or groups of items) are around, or half as
# many as at its densest place.
_FEWEST_AROUND = 20.0
_N_PLACES = 128
_N_DRAWS = 400


def reliability_bins(
    score: Vector,
    outcome: Vector,
    bins: Rows,
    items: CalibrationSet,
    confidence: float = 0.95,
    interval: Callable[..., tuple[Matrix, Matrix]] = wilson_interval,
) -> pd.DataFrame:
    """Return one row per bin that holds items, in order of the score.

    Parameters
    ----------
    score, outcome : ndarray of shape (n,)
        How probable something was said to be, and whether it happened (0 or 1).
    bins : ndarray of int, shape (n,)
        The bin of each item.
    items : CalibrationSet
        The items; weights and groups enter the interval through the effective size.
    confidence : float, default=0.95
        Coverage of the interval of the observed frequency, bin by bin.
    interval : callable
        Of a proportion: Wilson's, or the exact one.

    Returns
    -------
    DataFrame
        ``predicted`` (mean score), ``observed`` (frequency), ``low``, ``high``, ``smallest``,
        ``largest`` (score), ``count`` (items), ``weight``.
    """
    weight, groups = items.weights, items.groups
    rows = []
    for number in np.unique(bins):
        inside = bins == number
        total = weight[inside].sum()
        share, happened, said = weight[inside] / total, outcome[inside], score[inside]
        observed = min(float(share @ happened), 1.0)  # a sum of shares may round above
        n = effective_size(happened, share, None if groups is None else groups[inside])
        low, high = interval(np.array([observed]), np.array([n]), confidence)
        ends = (low[0], high[0], said.min(), said.max())
        rows.append((share @ said, observed, *ends, np.count_nonzero(inside), total))
    return pd.DataFrame(rows, columns=COLUMNS)


def with_simultaneous_bands(
    table: pd.DataFrame,
    score: Vector,
    outcome: Vector,
    bins: Rows,
    items: CalibrationSet,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Return the table of bins with ``low_simultaneous`` and ``high_simultaneous``.

    Bins hold different items, so their intervals are independent, and all of them hold together
    with the product of their confidences (Sidak). They are exact ones, because Wilson's holds too
    seldom where events are rare.
    """
    each = confidence ** (1 / len(table))
    wide = reliability_bins(score, outcome, bins, items, each, exact_interval)
    return table.assign(
        low_simultaneous=np.minimum(table["low"], wide["low"]),
        high_simultaneous=np.maximum(table["high"], wide["high"]),
    )


def smooth_reliability(
    score: Vector,
    outcome: Vector,
    items: CalibrationSet,
    confidence: float = 0.95,
    random_state: int | None = 0,
) -> pd.DataFrame:
    r"""Return the reliability curve without bins, with bands.

    At a place t the observed frequency is t plus the mean residual around it,

    .. math:: t + \frac{\sum_i w_i K_\sigma(t, s_i) (o_i - s_i)}{\sum_i w_i K_\sigma(t, s_i)},

    with the kernel of :func:`smooth_calibration_error`, as wide as the error itself or by
    Silverman's rule, whichever is more. Right probabilities give the diagonal on average, also at
    the ends. Bands are for this smoothed curve: noise is drawn with the variance of the curve or
    of the score, whichever is larger (with groups: by random signs of whole groups).

    Returns
    -------
    DataFrame
        ``predicted`` (the place), ``observed``, ``low``, ``high``, ``low_simultaneous``,
        ``high_simultaneous`` (the whole curve at once), ``share`` of the weight around the place.
    """
    residual = outcome - score
    n_units = int(items.units.max()) + 1
    kernel = ReflectedKernel(score, residual, items.weights, n_units)
    means = kernel.mean(residual[:, None])[:, 0]
    around = kernel.density * kernel.places.shape[0] * kernel.width * np.sqrt(2 * np.pi)
    inside = (kernel.places >= score.min() - 0.5 / means.shape[0]) & (
        kernel.places <= score.max() + 0.5 / means.shape[0]
    )
    enough = min(_FEWEST_AROUND, n_units * around[inside].max() / 2)
    shown = np.flatnonzero(inside & (around * n_units >= enough))
    shown = shown[:: max(1, shown.size // _N_PLACES)]
    noise = _noise(kernel, score, residual, means, items, random_state)[shown]
    deviation = np.sqrt((noise**2).mean(axis=1))
    farthest = (np.abs(noise) / np.maximum(deviation, 1e-300)[:, None]).max(axis=0, initial=0.0)
    place, observed = kernel.places[shown], kernel.places[shown] + means[shown]
    columns = {"predicted": place, "observed": np.clip(observed, 0.0, 1.0)}
    widths = {"": ndtri(0.5 + confidence / 2), "_simultaneous": np.quantile(farthest, confidence)}
    for name, width in widths.items():
        columns[f"low{name}"] = np.clip(observed - width * deviation, 0.0, 1.0)
        columns[f"high{name}"] = np.clip(observed + width * deviation, 0.0, 1.0)
    return pd.DataFrame(columns | {"share": np.minimum(around[shown], 1.0)})


def _noise(
    kernel: ReflectedKernel,
    score: Vector,
    residual: Vector,
    means: Vector,
    items: CalibrationSet,
    random_state: int | None,
) -> Matrix:
    """Return draws of what the smoothed residuals are apart from their means, (places, draws)."""
    curve = np.clip(score + np.interp(score, kernel.places, means), 0.0, 1.0)
    if items.groups is None:
        rate = np.where(curve * (1 - curve) > score * (1 - score), curve, score)
        draws = drawn_labels(np.column_stack([1 - rate, rate]), _N_DRAWS, random_state)
    else:
        left = score + residual - curve
        draws = flipped_groups(left[:, None], items.groups, _N_DRAWS, random_state)
    return np.hstack([kernel.mean(block[:, -1]) for block in draws])
