"""Every metric with its interval in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from hetcal._typing import Matrix
from hetcal._validation import warn_column_order
from hetcal._validation.groups_by import Grouping, check_groups_by
from hetcal.data import CalibrationSet
from hetcal.metrics.bootstrap import Interval, check_confidence, resample_counts
from hetcal.metrics.by_group import table_by_group
from hetcal.metrics.decomposition import DecompositionStatistic, default_statistics
from hetcal.metrics.ece import ece_statistic
from hetcal.metrics.interval_kinds import BrierPart, CalibrationError, interval_of_loss
from hetcal.metrics.scores import (
    accuracy_statistic,
    brier_statistic,
    expected_cost_statistic,
    log_loss_statistic,
)
from hetcal.metrics.smooth import smooth_statistic

_PARTS_SHOWN = ("calibration", "refinement", "uncertainty")
# Rows in their order; without a kind: a mean over items.
_KINDS: dict[str, BrierPart | CalibrationError | None] = {
    "brier_score": None,
    **{f"brier_{part}": BrierPart(part) for part in _PARTS_SHOWN},
    "log_loss": None,
    "accuracy": None,
    "expected_cost": None,
    "ece_top_label": CalibrationError(),
    "ece_top_label_debiased": CalibrationError(debiased=True),
    "ece_top_label_debiased_l2": CalibrationError(debiased=True),
    "ece_top_label_equal_width": CalibrationError(),
    "ece_class_wise": CalibrationError(),
    "smooth_calibration_error": CalibrationError(),
}


def evaluate(
    y: Any,
    y_proba: Any,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    cost_matrix: ArrayLike | None = None,
    n_bootstrap: int = 200,
    confidence: float = 0.95,
    random_state: int | None = 0,
    normalized: bool = True,
    baseline: str | None = None,
    groups_by: Any = None,
) -> pd.DataFrame:
    """Return every metric with its interval.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels.
    y_proba : array-like of shape (n, K), (n, 1) or (n,), or dict of name to such arrays
        Probabilities of one method, or of several methods for the same items.
    classes, sample_weight, normalized
        As in :func:`brier_score`.
    groups : array-like of shape (n,) or (n, n_columns), optional
        Rows of one group are resampled together, and stay in one fold of the decomposition.
    cost_matrix : array-like of shape (K, n_decisions), optional
        Adds the row ``expected_cost``; see :func:`expected_cost`.
    n_bootstrap : int, default=200
        Resamples, the same ones for every metric and method. 0 leaves the bounds empty (NaN).
    confidence : float, default=0.95
        Coverage aimed at.
    random_state : int or None, default=0
        Seed of resamples and folds.
    baseline : str, optional
        Name of one of several methods: adds ``difference``, ``difference_low`` and
        ``difference_high``, the paired difference of each method to it on the same resamples. An
        interval without 0 tells two methods apart even where their own intervals overlap.
    groups_by : array-like of shape (n,), table, or dict of name to array, optional
        Groups to compare (fairlearn's ``sensitive_features``), which gives another table: see
        below. Each column divides the rows by itself; join columns to look at their combinations.
        Rows without a value are the group ``"(missing)"``. Not to be confused with ``groups``,
        rows that belong together.

    Returns
    -------
    DataFrame
        Index ``metric``, columns ``value``, ``low``, ``high``; for a dict also ``method``, first.
        ``print(table.to_string())`` shows all columns where the terminal is narrow.
        The rows: ``brier_score``, its parts ``brier_calibration``, ``brier_refinement`` (these two
        add up to it) and ``brier_uncertainty``, ``log_loss``, ``accuracy``, ``expected_cost``
        where asked for, ``ece_top_label``, ``ece_top_label_debiased``, ``ece_class_wise`` (15
        equal-mass bins, l1), ``ece_top_label_debiased_l2``, ``ece_top_label_equal_width``,
        ``smooth_calibration_error`` (top label). Intervals of means over items (``brier_score``,
        ``log_loss``, ``accuracy``, ``expected_cost``, and their differences) are those of
        :func:`~hetcal.metrics.standard_errors.interval_of_mean`, which knows few groups and
        skewed losses; those of the parts of the Brier score are percentiles of resamples; those of
        calibration errors are intervals of the error less its bias, and reach up to the value (see
        :func:`bootstrap_interval`). A single row has no bounds and no parts (NaN).

        With ``groups_by``: index ``metric``, columns ``by`` (which column), ``part``, ``group``,
        ``n`` (rows), ``value``, ``low``, ``high``. The parts:

        - ``"overall"``: all items;
        - ``"group"``: one group. Bounds hold for all groups of all columns together;
        - ``"worst"``: of each column the group with the largest loss or error, and bounds of the
          largest true one;
        - ``"gap"``: of each column the two groups that are furthest apart, and bounds of the
          largest true difference. A lower bound above 0: the groups differ. All pairs are
          counted.

        Metrics of a group are ``brier_score``, ``log_loss``, ``accuracy``, ``expected_cost`` where
        asked for, ``smooth_calibration_error`` (``smooth_calibration_error_binary``, of the second
        of two classes), ``observed_minus_predicted`` (how often the second class happened minus
        its mean probability; with more classes, how often the predicted class was right; the worst
        by absolute value) and ``minimum_detectable_error``: the difference of these two that would
        be found at 5 % in four of five samples of this size. Groups of fewer than 20 rows (or
        ``groups``) have no bounds and are not among the worst. Bounds of the smooth calibration
        error are as wide as the errors of labels drawn from the probabilities: a lower bound of 0
        means that noise alone may have made it.

    Examples
    --------
    >>> y = [0, 1, 1, 1, 0, 1] * 20
    >>> table = evaluate(y, [0.1, 0.8, 0.9, 0.4, 0.6, 0.7] * 20)
    >>> table.loc[["brier_score", "accuracy"], "value"].round(3)
    metric
    brier_score    0.290
    accuracy       0.667
    Name: value, dtype: float64
    >>> both = {"sharp": [0.1, 0.8, 0.9, 0.4, 0.6, 0.7] * 20, "vague": [0.5] * 120}
    >>> table = evaluate(y, both, baseline="vague")
    >>> table.columns.tolist()
    ['method', 'value', 'low', 'high', 'difference', 'difference_low', 'difference_high']

    Probabilities of 50 % are right for group a, and wrong for group b:

    >>> table = evaluate([1, 0] * 30 + [1] * 30, [0.5] * 90, groups_by=["a"] * 60 + ["b"] * 30)
    >>> worst = table.query("part == 'worst'").loc["observed_minus_predicted"]
    >>> worst["group"], round(float(worst["value"]), 6)
    ('b', 0.5)
    """
    check_confidence(confidence)
    several = isinstance(y_proba, Mapping)
    methods = _check_methods(y_proba, baseline)
    if groups_by is not None and baseline is not None:
        raise ValueError(
            "evaluate: baseline compares methods and groups_by compares groups; only one of them "
            "can be given. Call evaluate twice."
        )
    scored = {
        name: CalibrationSet.to_score(
            y,
            P,
            classes=classes,
            sample_weight=sample_weight,
            groups=groups,
            normalized=normalized,
            name=f"y_proba[{name!r}]" if several else "y_proba",
        )
        for name, P in methods.items()
    }
    some = next(iter(scored.values()))
    units = some.units
    for name, items in scored.items():
        warn_column_order(
            items.codes,
            items.proba,
            items.classes,
            name=f"y_proba[{name!r}]" if several else "y_proba",
            weight=items.weight,
            groups=units,
        )
    if groups_by is not None:
        return _by_group(
            scored if several else some,
            check_groups_by(groups_by, len(y), name="groups_by", caller="evaluate"),
            cost_matrix=cost_matrix,
            n_bootstrap=n_bootstrap,
            confidence=confidence,
            random_state=random_state,
        )
    tables = {
        name: _AllStatistics(items, cost_matrix, default_statistics(items, random_state))
        for name, items in scored.items()
    }
    replicates: dict[str, list[dict[str, Matrix]]] = {name: [] for name in tables}
    for counts in resample_counts(units, n_bootstrap, random_state):
        for name, table in tables.items():
            replicates[name].append(table(counts))
    once = np.ones((some.n_items, 1))
    found = {}
    for name, table in tables.items():
        own = table(once)
        found[name] = _Evaluated(table, own, _joined(replicates[name], own))
    frames = []
    for name, method in found.items():
        metrics = [metric for metric in _KINDS if metric in method.own]
        frame = _table({metric: method.interval(metric, confidence) for metric in metrics})
        if several:
            frame.insert(0, "method", name)
        if baseline is not None:
            frame[["difference", "difference_low", "difference_high"]] = _table(
                {
                    metric: method.difference(found[baseline], metric, confidence)
                    for metric in metrics
                }
            )
        frames.append(frame)
    return pd.concat(frames)


def _by_group(
    scored: dict[str, CalibrationSet] | CalibrationSet, groupings: list[Grouping], **options: Any
) -> pd.DataFrame:
    """Return the table of groups, of one method or of each."""
    if isinstance(scored, CalibrationSet):
        return table_by_group(scored, groupings, **options)
    tables = {name: table_by_group(items, groupings, **options) for name, items in scored.items()}
    for name, table in tables.items():
        table.insert(0, "method", name)
    return pd.concat(tables.values())


class _AllStatistics:
    """Every row of the table as a function of item counts (n, B), in the form of its kind."""

    def __init__(
        self,
        items: CalibrationSet,
        cost_matrix: ArrayLike | None,
        parts: tuple[DecompositionStatistic, DecompositionStatistic] | None,
    ) -> None:
        self._parts = parts
        self.means = {
            "brier_score": brier_statistic(items),
            "log_loss": log_loss_statistic(items),
            "accuracy": accuracy_statistic(items),
        }
        if cost_matrix is not None:
            self.means["expected_cost"] = expected_cost_statistic(items, cost_matrix=cost_matrix)
        # Two rows of the table are two values of one statistic, which is computed once.
        self._errors = {
            ("ece_top_label", "ece_top_label_debiased"): ece_statistic(items),
            ("ece_top_label_debiased_l2",): ece_statistic(items, norm="l2"),
            ("ece_top_label_equal_width",): ece_statistic(items, binning="equal-width"),
            ("ece_class_wise",): ece_statistic(items, kind="class-wise"),
            ("smooth_calibration_error",): smooth_statistic(items),
        }

    def __call__(self, counts: Matrix) -> dict[str, Matrix]:
        found = {name: statistic(counts)[None] for name, statistic in self.means.items()}
        for names, statistic in self._errors.items():
            found |= dict.fromkeys(names, statistic.parts(counts))
        if self._parts is None:
            nothing = np.full((2, counts.shape[1]), np.nan)
            return found | {f"brier_{part}": nothing for part in _PARTS_SHOWN}
        both = np.stack([statistic(counts) for statistic in self._parts], axis=1)
        parts = dict(zip(self._parts[0].names, both, strict=True))
        return found | {f"brier_{part}": parts[part] for part in _PARTS_SHOWN}


@dataclass(frozen=True)
class _Evaluated:
    """The values of one method, of its items and of resamples."""

    statistics: _AllStatistics
    own: dict[str, Matrix]
    drawn: dict[str, Matrix]

    def interval(self, metric: str, confidence: float) -> Interval:
        """Return a metric with its interval."""
        kind, own, drawn = _KINDS[metric], self.own[metric], self.drawn[metric]
        if kind is None:
            mean = self.statistics.means[metric]
            losses = mean.losses, mean.by_label
            return interval_of_loss(own[0, 0], *losses, mean.items, drawn, confidence, metric)
        return kind.interval(own, drawn, confidence)

    def difference(self, baseline: _Evaluated, metric: str, confidence: float) -> Interval:
        """Return how far a metric lies above that of the baseline."""
        own, drawn = (
            (mine[metric], other[metric])
            for mine, other in ((self.own, baseline.own), (self.drawn, baseline.drawn))
        )
        kind = _KINDS[metric]
        if kind is not None:
            return kind.difference(own, drawn, confidence)
        mean, other = (of.statistics.means[metric] for of in (self, baseline))
        losses = mean.losses - other.losses, mean.by_label - other.by_label
        value = (own[0] - own[1])[0, 0]
        return interval_of_loss(value, *losses, mean.items, drawn[0], confidence)


def _joined(blocks: list[dict[str, Matrix]], own: dict[str, Matrix]) -> dict[str, Matrix]:
    """Return the blocks of resamples side by side; no columns where there are none."""
    return {
        metric: np.hstack([value[:, :0], *(block[metric] for block in blocks)])
        for metric, value in own.items()
    }


def _table(intervals: dict[str, Interval]) -> pd.DataFrame:
    index = pd.Index(list(intervals), name="metric")
    return pd.DataFrame(list(intervals.values()), index=index, columns=["value", "low", "high"])


def _check_methods(y_proba: Any, baseline: str | None) -> dict[str, Any]:
    methods = dict(y_proba) if isinstance(y_proba, Mapping) else {"": y_proba}
    if not methods:
        raise ValueError("evaluate got an empty dict of methods. Pass at least one y_proba.")
    if baseline is not None and baseline not in methods:
        raise ValueError(
            f"evaluate: baseline must name one of the methods {list(methods)}; got {baseline!r}. "
            "Pass y_proba as a dict of name to probabilities."
        )
    return methods
