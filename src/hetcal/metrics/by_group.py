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
from hetcal.metrics._null_draws import drawn_labels, flipped_groups
from hetcal.metrics.bootstrap import resample_counts
from hetcal.metrics.marginals import event_of
from hetcal.metrics.scores import (
    accuracy_statistic,
    brier_losses,
    brier_statistic,
    expected_cost_statistic,
    log_loss_statistic,
    log_losses,
)
from hetcal.metrics.smooth import smooth_error_of_residuals
from hetcal.metrics.standard_errors import mean_and_error
from hetcal.metrics.statistics import WeightedMean

_NAME = "evaluate"
_COLUMNS = ["by", "part", "group", "n", "value", "low", "high"]
DIFFERENCE, DETECTABLE = "observed_minus_predicted", "minimum_detectable_error"
# Fewer rows (or groups of rows that belong together) do not show how much they vary.
_FEWEST_UNITS = 20
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
    cells = _Cells(items, groupings)
    measured = dict(_means(cells, cost_matrix, n_bootstrap, confidence, random_state))
    smooth = "smooth_calibration_error" + ("_binary" if items.n_classes == 2 else "")
    measured[smooth] = _smooth_errors(cells, n_bootstrap, confidence, random_state)
    tables = [_table(name, cells, found) for name, found in measured.items()]
    return pd.concat([*tables, _detectable(cells)])


# -- who is looked at together ---------------------------------------------------------------------


class _Cell(NamedTuple):
    """All items, or those of one group."""

    by: str
    group: Any
    rows: Rows
    items: CalibrationSet

    @property
    def n_units(self) -> int:
        return int(np.unique(self.items.units).size)


class _Cells:
    """All items first, then every group; which groups are large enough, and pairs of these."""

    def __init__(self, items: CalibrationSet, groupings: list[Grouping]) -> None:
        self.whole = items
        self.cells = [_Cell("", "", np.arange(items.n_items), items)]
        for grouping in groupings:
            codes = grouping.codes[items.rows]
            for number, group in enumerate(grouping.groups):
                rows = np.flatnonzero(codes == number)
                if rows.size:
                    self.cells.append(_Cell(grouping.by, group, rows, items.take(rows)))
        large = [j for j, c in enumerate(self.cells) if j and c.n_units >= _FEWEST_UNITS]
        self.members = np.array(large, dtype=np.int64)
        names = [cell.by for cell in self.cells]
        self.groupings = {
            by: np.array([j for j in large if names[j] == by], dtype=np.int64)
            for by in dict.fromkeys(names[j] for j in large)
        }
        pairs = [pair for inside in self.groupings.values() for pair in combinations(inside, 2)]
        self.pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def __iter__(self) -> Iterator[_Cell]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)


# -- values and how far from them the truth may lie ------------------------------------------------


class _Measured(NamedTuple):
    """Values of all cells, and half widths: of all large cells together, of all pairs together."""

    values: Vector
    half: Vector
    of_pairs: Vector


def _means(
    cells: _Cells,
    cost_matrix: ArrayLike | None,
    n_bootstrap: int,
    confidence: float,
    random_state: int | None,
) -> Iterator[tuple[str, _Measured]]:
    """Yield the metrics that are means over items, with widths from common resamples."""
    statistics = [_mean_statistics(cell.items, cost_matrix) for cell in cells]
    names = list(statistics[0])

    def of_counts(counts: Matrix) -> Matrix:
        with np.errstate(invalid="ignore", divide="ignore"):  # of a group that was not drawn
            found = [
                [statistic(counts[cell.rows]) for statistic in of_cell.values()]
                for cell, of_cell in zip(cells, statistics, strict=True)
            ]
        return np.swapaxes(np.array(found), 0, 1)

    values = of_counts(np.ones((cells.whole.n_items, 1)))[:, :, 0]
    blocks = [of_counts(c) for c in resample_counts(cells.whole.units, n_bootstrap, random_state)]
    drawn = np.concatenate([np.empty((len(names), len(cells), 0)), *blocks], axis=2)
    for number, name in enumerate(names):
        errors = np.array([_model_error(name, cell.items) for cell in cells])
        half, of_pairs = _widths(cells, drawn[number], errors, confidence)
        yield name, _Measured(values[number], half, of_pairs)


def _mean_statistics(
    items: CalibrationSet, cost_matrix: ArrayLike | None
) -> dict[str, WeightedMean]:
    score, outcome, _ = event_of(items, None, _NAME)
    found = {
        "brier_score": brier_statistic(items),
        "log_loss": log_loss_statistic(items),
        "accuracy": accuracy_statistic(items),
    }
    if cost_matrix is not None:
        found["expected_cost"] = expected_cost_statistic(items, cost_matrix=cost_matrix)
    either = np.array([0.0, 1.0]) - score[:, None]
    return found | {DIFFERENCE: WeightedMean(outcome - score, items, either)}


def _model_error(name: str, items: CalibrationSet) -> float:
    """Return the standard error of a mean over items, were the probabilities right.

    A group in which nothing happened, or nothing went wrong, looks as if it never varied. Losses
    of all possible labels, weighted by their probabilities, say how much it may.
    """
    if name == "expected_cost":
        return 0.0
    P, share = items.proba, items.weights / items.weights.sum()
    possible = (np.full(items.n_items, k) for k in range(items.n_classes))
    losses = np.column_stack([_losses(name, items.with_codes(codes)) for codes in possible])
    mean = share @ (P * losses).sum(axis=1)
    return float(np.sqrt(share**2 @ (P * (losses - mean) ** 2).sum(axis=1)))


def _losses(name: str, items: CalibrationSet) -> Vector:
    if name == "brier_score":
        return brier_losses(items.proba, items.codes)
    if name == "log_loss":
        return log_losses(items.proba, items.codes)
    if name == "accuracy":
        return (items.proba.argmax(axis=1) == items.codes).astype(np.float64)
    score, outcome, _ = event_of(items, None, _NAME)
    return outcome - score


def _widths(
    cells: _Cells, drawn: Matrix, model_errors: Vector, confidence: float
) -> tuple[Vector, Vector]:
    few_look_alike = np.sqrt([cell.n_units / max(cell.n_units - 1, 1) for cell in cells])
    deviation = np.full(len(cells), np.nan)  # of small groups many resamples hold nothing
    known = np.append(0, cells.members)
    deviation[known] = _deviation(drawn[known]) * few_look_alike[known]
    error = np.maximum(deviation, model_errors)
    half = np.full(len(cells), np.nan)
    for together in (np.arange(1), cells.members):
        half[together] = _critical(drawn[together], confidence) * error[together]
    # What resamples of a single group do not show, those of its differences do not either.
    hidden = error**2 - deviation**2
    a, b = cells.pairs.T
    differences = drawn[a] - drawn[b]
    error = np.sqrt(_deviation(differences) ** 2 + hidden[a] + hidden[b])
    return half, _critical(differences, confidence) * error


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


def _smooth_errors(
    cells: _Cells, n_draws: int, confidence: float, random_state: int | None
) -> _Measured:
    """Return smooth calibration errors, with widths from the errors that noise alone has.

    Residuals are what is wrong plus noise, and the error of a sum is at most the sum of errors:
    the error that is measured and the true one differ by at most the error of the noise. Resamples
    would not do, because noise makes every error larger.
    """
    score, outcome, _ = event_of(cells.whole, None, _NAME)
    weight = cells.whole.weights
    errors = [smooth_error_of_residuals(score[c.rows], weight[c.rows]) for c in cells]

    def of_residuals(residuals: Matrix) -> Matrix:
        return np.array([of(residuals[c.rows]) for of, c in zip(errors, cells, strict=True)])

    P, R = np.column_stack([1 - score, score]), outcome - score
    if cells.whole.groups is None:
        draws = drawn_labels(P, n_draws, random_state)
    else:
        draws = flipped_groups(R[:, None], cells.whole.groups, n_draws, random_state)
    blocks = [of_residuals(residuals[:, -1]) for residuals in draws]
    noise = np.hstack([np.empty((len(cells), 0)), *blocks])
    half = np.full(len(cells), np.nan)
    if n_draws:
        mean = np.maximum(noise.mean(axis=1), np.finfo(float).tiny)
        for together in (np.arange(1), cells.members):
            if together.size:
                farthest = (noise[together] / mean[together, None]).max(axis=0)
                half[together] = np.quantile(farthest, confidence) * mean[together]
    return _Measured(of_residuals(R[:, None])[:, 0], half, half[cells.pairs].sum(axis=1))


# -- tables ----------------------------------------------------------------------------------------


def _table(name: str, cells: _Cells, measured: _Measured) -> pd.DataFrame:
    """Return the rows of one metric: all items, groups, worst groups, largest gaps."""
    values, half, _ = measured
    low, high = _within(name, values - half, values + half)
    rows = [(*_head(cell), *row) for cell, *row in zip(cells, values, low, high, strict=True)]
    rows += _worst(name, cells, measured)
    rows += _gaps(cells, measured)
    return _frame(name, rows)


def _worst(name: str, cells: _Cells, measured: _Measured) -> Iterator[tuple[Any, ...]]:
    """Yield the worst group of each grouping; the bounds are those of the worst true value."""
    values, half, _ = measured
    sign = -1.0 if name == "accuracy" else 1.0
    badness = np.abs(values) if name == DIFFERENCE else sign * values
    for by, inside in cells.groupings.items():
        worst = inside[badness[inside].argmax()]
        ends = (badness - half)[inside].max(), (badness + half)[inside].max()
        low, high = _within(name, *sorted(sign * np.array(ends)))
        cell = cells.cells[worst]
        if name == DIFFERENCE:
            low = max(low, 0.0)
        yield by, "worst", cell.group, cell.rows.size, sign * badness[worst], low, high


def _gaps(cells: _Cells, measured: _Measured) -> Iterator[tuple[Any, ...]]:
    """Yield the largest difference of two groups of each grouping.

    All differences lie within their half widths together, so the largest true one lies between
    the largest lower and the largest upper bound.
    """
    values, _, half = measured
    difference = values[cells.pairs[:, 0]] - values[cells.pairs[:, 1]]
    gap = np.abs(difference)
    for by, inside in cells.groupings.items():
        own = np.flatnonzero(np.isin(cells.pairs[:, 0], inside))
        if not own.size:
            continue
        largest = own[gap[own].argmax()]
        pair = cells.pairs[largest] if difference[largest] >= 0 else cells.pairs[largest][::-1]
        more, less = (cells.cells[j] for j in pair)
        label, n = f"{more.group} - {less.group}", more.rows.size + less.rows.size
        low, high = np.maximum((gap - half)[own].max(), 0.0), (gap + half)[own].max()
        yield by, "gap", label, n, gap[largest], low, high


def _detectable(cells: _Cells) -> pd.DataFrame:
    """Return the error of the mean probability that would be found in four of five samples."""
    rows = []
    for cell in cells:
        score, outcome, _ = event_of(cell.items, None, _NAME)
        error = _model_error(DIFFERENCE, cell.items)
        if cell.items.groups is not None and cell.n_units > 1:
            residuals = outcome - score
            of_groups = mean_and_error(residuals, cell.items.weights, cell.items.groups)[1]
            error = max(error, float(of_groups))
        rows.append((*_head(cell), _DETECTED * error, np.nan, np.nan))
    return _frame(DETECTABLE, rows)


def _head(cell: _Cell) -> tuple[Any, ...]:
    return cell.by, "group" if cell.by else "overall", cell.group, cell.rows.size


def _within(name: str, low: Any, high: Any) -> tuple[Any, Any]:
    """Return bounds cut at what the metric can be."""
    floor = -np.inf if name in _ANY_SIGN else 0.0
    ceiling = 1.0 if name in _AT_MOST_ONE else np.inf
    return np.maximum(low, floor), np.minimum(high, ceiling)


def _frame(name: str, rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    index = pd.Index([name] * len(rows), name="metric")
    return pd.DataFrame(rows, columns=_COLUMNS, index=index)
