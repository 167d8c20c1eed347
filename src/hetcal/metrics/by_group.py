"""Metrics of groups of items, the worst group, and the largest gap between two groups."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri

from hetcal._typing import Matrix, Rows, Vector
from hetcal._validation.groups_by import Grouping
from hetcal.data import CalibrationSet
from hetcal.metrics.bootstrap import resample_counts
from hetcal.metrics.marginals import calibration_marginals, event_of
from hetcal.metrics.scores import (
    accuracy_statistic,
    brier_statistic,
    expected_cost_statistic,
    log_loss_statistic,
)
from hetcal.metrics.smooth import smooth_statistic
from hetcal.metrics.standard_errors import mean_and_error
from hetcal.metrics.statistics import Statistic, weighted_mean

_NAME = "evaluate"
_COLUMNS = ["by", "part", "group", "n", "value", "low", "high"]
# Fewer rows (or groups of rows that belong together) do not show how much they vary.
FEWEST_UNITS = 20
DIFFERENCE, DETECTABLE = "observed_minus_predicted", "minimum_detectable_error"
# An error of this many standard errors is found at 5 % (two-sided) in 80 % of samples.
_DETECTED = float(ndtri(0.975) + ndtri(0.8))
_ANY_SIGN = (DIFFERENCE, "expected_cost")
_AT_MOST_ONE = ("accuracy", "smooth_calibration_error", "smooth_calibration_error_binary")


def table_by_group(
    items: CalibrationSet,
    groupings: list[Grouping],
    *,
    cost_matrix: ArrayLike | None,
    n_bootstrap: int,
    confidence: float,
    random_state: int | None,
) -> pd.DataFrame:
    """Return all metrics of all groups, the worst group and the largest gap of each grouping.

    The table is described in :func:`evaluate`.
    """
    cells = list(_cells(items, groupings))
    metrics = [_GroupMetrics(items.take(cell.rows), cost_matrix) for cell in cells]
    drawn = _replicates(items, cells, metrics, n_bootstrap, random_state)
    tables = [
        _of_metric(
            name,
            cells,
            np.array([m.values[number] for m in metrics]),
            drawn[number],
            np.array([m.model_errors.get(name, 0.0) for m in metrics]),
            confidence,
        )
        for number, name in enumerate(metrics[0].names)
    ]
    detectable = [
        (c.by, "group" if c.by else "overall", c.group, c.rows.size, m.detectable, np.nan, np.nan)
        for c, m in zip(cells, metrics, strict=True)
    ]
    return pd.concat([*tables, _table(DETECTABLE, detectable)])


class _Cell(NamedTuple):
    """Items that are looked at together: all of them (the first cell), or one group."""

    by: str
    group: Any
    rows: Rows
    n_units: int

    @property
    def measured(self) -> bool:
        """Whether it is a group of which there is enough."""
        return self.by != "" and self.n_units >= FEWEST_UNITS


def _cells(items: CalibrationSet, groupings: list[Grouping]) -> Iterator[_Cell]:
    everyone, units = np.arange(items.n_items), items.units
    yield _Cell("", "", everyone, np.unique(units).size)
    for grouping in groupings:
        codes = grouping.codes[items.rows]
        for number, group in enumerate(grouping.groups):
            rows = np.flatnonzero(codes == number)
            if rows.size:
                yield _Cell(grouping.by, group, rows, np.unique(units[rows]).size)


class _GroupMetrics:
    """Every metric of one group as a function of item counts: (n, B) -> (len(names), B)."""

    def __init__(self, items: CalibrationSet, cost_matrix: ArrayLike | None) -> None:
        score, outcome, _ = event_of(items, None, _NAME)
        [(top, _)] = calibration_marginals(items, "top-label", _NAME)
        self._single: dict[str, Statistic] = {
            "brier_score": brier_statistic(items),
            "log_loss": log_loss_statistic(items),
            "accuracy": accuracy_statistic(items),
        }
        if cost_matrix is not None:
            self._single["expected_cost"] = expected_cost_statistic(items, cost_matrix=cost_matrix)
        if items.n_classes == 2:
            self._single["smooth_calibration_error_binary"] = smooth_statistic(items, kind="binary")
        else:
            self._single["smooth_calibration_error"] = smooth_statistic(items)
        self._single[DIFFERENCE] = weighted_mean(outcome - score, items)
        self.names = list(self._single)
        self._weight = items.weights
        self.values = self(np.ones((items.n_items, 1)))[:, 0]
        # A group in which nothing happened, or nothing went wrong, looks as if it never varied.
        self.model_errors = {
            DIFFERENCE: _model_error(score, items.weights),
            "accuracy": _model_error(top, items.weights),
        }
        of_groups = mean_and_error(outcome - score, items.weights, items.units)[1]
        known = items.groups is not None and np.isfinite(of_groups)
        error = max(self.model_errors[DIFFERENCE], float(of_groups) if known else 0.0)
        self.detectable = _DETECTED * error

    def __call__(self, counts: Matrix) -> Matrix:
        with np.errstate(invalid="ignore", divide="ignore"):
            found = np.stack([statistic(counts) for statistic in self._single.values()])
        return np.where(self._weight @ counts > 0, found, np.nan)


def _model_error(score: Vector, weight: Vector) -> float:
    """Return the standard error of a frequency, were the probabilities right."""
    return float(np.sqrt(weight**2 @ (score * (1 - score))) / weight.sum())


def _replicates(
    items: CalibrationSet,
    cells: list[_Cell],
    metrics: list[_GroupMetrics],
    n_bootstrap: int,
    random_state: int | None,
) -> Matrix:
    """Return resampled values of shape (metrics, cells, B); all cells see the same resamples."""
    blocks = [
        np.stack([m(counts[cell.rows]) for cell, m in zip(cells, metrics, strict=True)], axis=1)
        for counts in resample_counts(items.units, n_bootstrap, random_state)
    ]
    return np.concatenate([np.empty((len(metrics[0].names), len(cells), 0)), *blocks], axis=2)


# -- one metric: groups, the worst of them, the largest gap ----------------------------------------


def _of_metric(
    name: str,
    cells: list[_Cell],
    values: Vector,
    drawn: Matrix,
    model_errors: Vector,
    confidence: float,
) -> pd.DataFrame:
    """Return the rows of one metric; bounds hold for all groups of all groupings together."""
    few_look_alike = np.sqrt([c.n_units / max(c.n_units - 1, 1) for c in cells])
    deviation = _deviation(drawn) * few_look_alike
    error = np.maximum(deviation, model_errors)
    members = np.array([j for j, cell in enumerate(cells) if cell.measured], dtype=np.int64)
    half = np.full(values.shape, np.nan)
    for together in (np.arange(1), members):
        half[together] = _critical(drawn[together], confidence) * error[together]
    floor, ceiling = _limits(name)
    low, high = np.maximum(values - half, floor), np.minimum(values + half, ceiling)
    rows: list[tuple[Any, ...]] = [
        (c.by, "group" if j else "overall", c.group, c.rows.size, values[j], low[j], high[j])
        for j, c in enumerate(cells)
    ]
    rows += _worst(name, cells, values, half, members)
    rows += _gaps(cells, values, drawn, error**2 - deviation**2, members, confidence)
    return _table(name, rows)


def _worst(
    name: str, cells: list[_Cell], values: Vector, half: Vector, members: Rows
) -> Iterator[tuple[Any, ...]]:
    """Yield the worst group of each grouping; the bounds are those of the worst true value."""
    sign = -1.0 if name == "accuracy" else 1.0
    badness = np.abs(values) if name == DIFFERENCE else sign * values
    for by, inside in _by_grouping(cells, members):
        worst = inside[badness[inside].argmax()]
        ends = [(badness - half)[inside].max(), (badness + half)[inside].max()]
        low, high = np.clip(sorted(sign * np.array(ends)), *_limits(name, absolute=True))
        value = sign * badness[worst]
        yield by, "worst", cells[worst].group, cells[worst].rows.size, value, low, high


def _gaps(
    cells: list[_Cell],
    values: Vector,
    drawn: Matrix,
    missing: Vector,
    members: Rows,
    confidence: float,
) -> Iterator[tuple[Any, ...]]:
    """Yield the largest difference of two groups of each grouping.

    All differences lie within their half widths together, so the largest true one lies between
    the largest lower and the largest upper bound.
    """
    groupings = list(_by_grouping(cells, members))
    pairs = {by: np.array([*combinations(inside, 2)]).reshape(-1, 2) for by, inside in groupings}
    every = np.vstack([np.empty((0, 2), dtype=np.int64), *pairs.values()]).astype(np.int64)
    critical = _critical(drawn[every[:, 0]] - drawn[every[:, 1]], confidence)
    for by, two in pairs.items():
        if not two.size:
            continue
        a, b = two.astype(np.int64).T
        # What resamples of a single group do not show, those of its differences do not either.
        error = np.sqrt(_deviation(drawn[a] - drawn[b]) ** 2 + missing[a] + missing[b])
        gap, half = np.abs(values[a] - values[b]), critical * error
        j = gap.argmax()
        more, less = (a[j], b[j]) if values[a[j]] >= values[b[j]] else (b[j], a[j])
        label = f"{cells[more].group} - {cells[less].group}"
        n = cells[more].rows.size + cells[less].rows.size
        yield by, "gap", label, n, gap[j], max((gap - half).max(), 0.0), (gap + half).max()


def _by_grouping(cells: list[_Cell], members: Rows) -> Iterator[tuple[str, Rows]]:
    for by in dict.fromkeys(cells[j].by for j in members):
        yield by, np.array([j for j in members if cells[j].by == by])


def _critical(drawn: Matrix, confidence: float) -> float:
    """Return how many deviations hold all resampled values together (NaN without resamples)."""
    deviation = _deviation(drawn)
    varies = deviation > 0
    if not varies.any():
        return np.nan
    centred = drawn[varies] - np.nanmean(drawn[varies], axis=1, keepdims=True)
    farthest = np.nanmax(np.abs(centred) / deviation[varies, None], axis=0)
    return float(np.quantile(farthest, confidence))


def _deviation(drawn: Matrix) -> Vector:
    if drawn.shape[1] < 2:
        return np.full(drawn.shape[0], np.nan)
    return np.nanstd(drawn, axis=1, ddof=1)


def _limits(name: str, *, absolute: bool = False) -> tuple[float, float]:
    floor = -np.inf if name in _ANY_SIGN and not (absolute and name == DIFFERENCE) else 0.0
    return floor, 1.0 if name in _AT_MOST_ONE else np.inf


def _table(name: str, rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    index = pd.Index([name] * len(rows), name="metric")
    return pd.DataFrame(rows, columns=_COLUMNS, index=index)
