"""Metrics of methods, with intervals, and errors that know the items are the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from hetcal._typing import Matrix
from hetcal.diagnosis.cross_validation import Predictions
from hetcal.metrics.bootstrap import resample_counts
from hetcal.metrics.ece import ece_statistic
from hetcal.metrics.gains import gain_and_error
from hetcal.metrics.standard_errors import interval_of_mean, mean_and_error, within_one_se

#: What metrics are called in sentences and on axes.
METRIC_WORDS = {
    "brier": "Brier score",
    "log_loss": "log loss",
    "ece": "calibration error",
    "accuracy": "accuracy",
}
METRICS = tuple(METRIC_WORDS)
HIGHER_IS_BETTER = frozenset({"accuracy"})


@dataclass(frozen=True)
class _Sample:
    """Values of one metric, all methods, and what their errors are computed from."""

    values: Matrix  # (M,)
    errors: Matrix  # (M,)
    low: Matrix  # (M,) of a 95 % interval
    high: Matrix  # (M,)
    difference_errors: Matrix  # (M,) to the best


def score(out: Predictions, *, n_bootstrap: int = 200, random_state: int = 0) -> pd.DataFrame:
    """Return one row per method and metric; see :meth:`hetcal.diagnosis.Comparison.frame`."""
    names = out.methods
    parts = [
        _rows(out, names, metric, _sample(out, names, metric, n_bootstrap, random_state))
        for metric in METRICS
    ]
    return pd.concat(parts, ignore_index=True)


def paired_difference(
    out: Predictions,
    first: str,
    second: str,
    metric: str = "brier",
    *,
    n_bootstrap: int = 200,
    random_state: int = 0,
) -> tuple[float, float]:
    """Return the difference first - second in a metric, and its standard error.

    What the second gains over the first, as :class:`hetcal.metrics.gains.Gain` has it.
    """
    if metric == "ece":
        sample = _from_bootstrap(out, [first, second], n_bootstrap, random_state)
        return float(sample.values[0] - sample.values[1]), float(sample.difference_errors.max())
    return _gain(out, first, second, metric)


def _gain(out: Predictions, worse: str, better: str, metric: str) -> tuple[float, float]:
    kept = out.scored_rows
    before, after = (out.losses_by_label(name, metric)[kept] for name in (worse, better))
    return gain_and_error(before, after, out.proba(better)[kept], out.scored, metric=metric)


def _sample(
    out: Predictions, names: list[str], metric: str, n_bootstrap: int, random_state: int
) -> _Sample:
    if metric == "ece":
        return _from_bootstrap(out, names, n_bootstrap, random_state)
    return _from_losses(out, names, metric)


def _rows(out: Predictions, names: list[str], metric: str, sample: _Sample) -> pd.DataFrame:
    higher = metric in HIGHER_IS_BETTER
    best = _best(sample.values, higher)
    table = pd.DataFrame(
        {
            "value": sample.values,
            "standard_error": sample.errors,
            "low": sample.low,
            "high": sample.high,
            "difference": sample.values - sample.values[best],
            "difference_se": sample.difference_errors,
            "best": np.arange(len(names)) == best,
            "within_one_se": within_one_se(sample.values, sample.errors, higher_is_better=higher),
        },
        index=names,
    ).reindex(list(out.runs))
    table[["best", "within_one_se"]] = table[["best", "within_one_se"]].eq(True)
    table.insert(0, "metric", metric)
    return table.rename_axis("method").reset_index()


def _from_losses(out: Predictions, names: list[str], metric: str) -> _Sample:
    kept = out.scored_rows
    losses = np.stack([out.losses(name, metric)[kept] for name in names])
    weight, units = out.scored.weight, out.scored.groups
    values, errors = mean_and_error(losses, weight, units)
    best = _best(values, metric in HIGHER_IS_BETTER)
    difference_errors = [_gain(out, name, names[best], metric)[1] for name in names]
    by_label = np.stack([out.losses_by_label(name, metric)[kept] for name in names])
    ends = interval_of_mean(losses, weight, units, metric=metric, by_label=by_label)
    return _Sample(values, errors, *ends, np.array(difference_errors))


def _from_bootstrap(
    out: Predictions, names: list[str], n_bootstrap: int, random_state: int
) -> _Sample:
    """Score the calibration error of all out-of-fold predictions together.

    It is no mean over items, so items (or groups) are resampled, the same ones for all methods.
    """
    kept = out.scored_rows
    place = np.full(out.items.n_items, -1)
    place[kept] = np.arange(kept.shape[0])
    use = place[out.rows] >= 0
    rows = out.rows[use]
    item = place[rows]
    # An item that is tested twice counts for half each time.
    weight = out.items.weights[rows] / out.times_tested[rows]
    tested = replace(out.items.take(rows), weight=weight)
    statistics = [
        ece_statistic(tested.with_output(out.stacked(name)[use], "y_proba")) for name in names
    ]
    blocks = [
        np.stack([statistic(counts[item]) for statistic in statistics])
        for counts in resample_counts(out.scored.units, n_bootstrap, random_state)
    ]
    once = np.ones((rows.shape[0], 1))
    values = np.array([statistic(once)[0] for statistic in statistics])
    nothing = np.full(len(names), np.nan)
    if not blocks:
        return _Sample(values, nothing, nothing, nothing, nothing)
    drawn = np.hstack(blocks)
    best = _best(values, False)
    # Calibration errors are biased: an interval around the value would not hold what is true.
    paired = (drawn - drawn[best]).std(axis=1, ddof=1)
    return _Sample(values, drawn.std(axis=1, ddof=1), nothing, nothing, paired)


def _best(values: Matrix, higher_is_better: bool) -> int:
    return int(np.argmax(values) if higher_is_better else np.argmin(values))
