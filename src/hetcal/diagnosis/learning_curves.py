"""How the loss falls with the number of calibration items, and whether more of them would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from hetcal._typing import Matrix
from hetcal._validation.by_name import output_by_name
from hetcal.data import CalibrationSet
from hetcal.data.folds import Split
from hetcal.diagnosis.cross_validation import (
    LOSSES,
    CrossValidated,
    item_losses,
    named_calibrators,
    run_splits,
)
from hetcal.diagnosis.extrapolation import MoreData, gain_of_more_data
from hetcal.diagnosis.inputs import calibration_items
from hetcal.diagnosis.splits import make_splits, nested_parts
from hetcal.diagnosis.steps import Progress
from hetcal.metrics.standard_errors import covariance, mean_and_error

_MOST_SIZES = 6
_SMALLEST = 25
_ITEMS_PER_CLASS = 5
_DEFAULT_METHODS = ("uncalibrated", "temperature", "swc", "hybrid")


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Losses of several methods at growing calibration sizes; made by :func:`learning_curve`.

    Attributes
    ----------
    n_items : int
        Items that the user has; a calibrator fitted on all of them would learn from so many.
    sizes : list of int
        Calibration sizes, growing.
    """

    n_items: int
    sizes: list[int]
    _rows: pd.DataFrame
    _covariances: dict[tuple[str, str], Matrix]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_items={self.n_items}, sizes={self.sizes}, "
            f"methods={self.methods})"
        )

    @property
    def methods(self) -> list[str]:
        """Methods in the order in which they were given."""
        return list(dict.fromkeys(self._rows["method"]))

    def frame(self) -> pd.DataFrame:
        """Return one row per method, metric and size.

        Returns
        -------
        DataFrame
            ``method``; ``metric``: ``brier``, ``log_loss`` or ``accuracy``; ``size``, the number of
            calibration items; ``value`` and its ``standard_error`` (chance of the tested items and
            of the items learned from); ``note``, why a method failed at this size.
        """
        return self._rows.copy()

    def more_data_helps(self, method: str, metric: str = "brier") -> MoreData:
        """Return what the last doubling brought, and what the next one may bring.

        Examples
        --------
        >>> from hetcal.diagnosis import learning_curve
        >>> from hetcal.datasets import make_hidden_heterogeneity
        >>> data = make_hidden_heterogeneity(400, random_state=0)
        >>> curve = learning_curve(data.X, data.y, y_proba=data.y_proba, methods=["temperature"])
        >>> curve.more_data_helps("temperature").verdict
        'no'
        """
        rows = self._rows[(self._rows["method"] == method) & (self._rows["metric"] == metric)]
        if rows.empty:
            raise ValueError(
                f"LearningCurve holds the methods {self.methods} and the metrics {LOSSES}; got "
                f"{method!r} and {metric!r}."
            )
        known = rows["value"].notna().to_numpy()
        return gain_of_more_data(
            rows["size"].to_numpy()[known],
            rows["value"].to_numpy()[known],
            self._covariances[method, metric][np.ix_(known, known)],
            n_items=self.n_items,
            method=method,
            metric=metric,
        )

    def plot(self, metric: str = "brier", *, ax: Any = None) -> Any:
        """Draw the curves; see ``plotting.LearningCurveDisplay``."""
        # Plotting stands above advice: looked up when something is drawn, never imported from here.
        display = import_module("hetcal.plotting.learning_curve").LearningCurveDisplay
        return display.from_learning_curve(self, metric=metric).plot(ax=ax)


@output_by_name
def learning_curve(
    X: Any,
    y: Any = None,
    *,
    y_proba: Any = None,
    logits: Any = None,
    methods: str | Sequence[str] | Mapping[str, Any] = _DEFAULT_METHODS,
    sizes: Sequence[int] | None = None,
    cv: Any = 5,
    n_repeats: int = 2,
    groups: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> LearningCurve:
    """Measure methods at growing calibration sizes, always on the same held-out items.

    In each split the tested items stay the same, and the calibration items of one size contain
    those of every smaller size, so that differences between sizes and between methods are paired.

    Parameters
    ----------
    X, y, y_proba, logits, groups, sample_weight, classes, n_jobs, progress
        As in :func:`hetcal.diagnosis.compare`.
    methods : "all", sequence of str or dict, default=("uncalibrated", "temperature", "swc", \
"hybrid")
        Names, or calibrators by name.
    sizes : sequence of int, optional
        Numbers of calibration items. None: all that a split learns from, and up to five halvings.
    cv : int, splitter or iterable, default=5
        Folds; each tests its own items.
    n_repeats : int, default=2
        Shuffles of the folds. The chance of who is learned from is seen only through other splits:
        fewer than ten in all make standard errors at small sizes uncertain themselves.
    random_state : int, default=0
        Seed of folds, of nested parts and of methods given by name.

    Returns
    -------
    LearningCurve

    Examples
    --------
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(400, heterogeneity=1.0, random_state=0)
    >>> curve = learning_curve(
    ...     data.X, data.y, y_proba=data.y_proba, methods=["temperature", "swc"], n_repeats=1)
    >>> curve.sizes
    [40, 80, 160, 320]
    """
    given = (y_proba, logits, classes, sample_weight, groups)
    items = calibration_items("learning_curve", X, y, *given)
    return curve_of(
        items,
        named_calibrators(methods, items.has_features, random_state, "learning_curve"),
        make_splits(items, cv, n_repeats, random_state=random_state, caller="learning_curve"),
        sizes,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=progress,
    )


def curve_of(
    items: CalibrationSet,
    calibrators: Mapping[str, Any],
    splits: list[Split],
    sizes: Sequence[int] | None = None,
    *,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> LearningCurve:
    """Return the curves of calibrators on given splits."""
    chosen = _check_sizes(sizes, min(train.shape[0] for train, _ in splits), len(items.classes))
    parts = [
        nested_parts(items, train, chosen, random_state + number)
        for number, (train, _) in enumerate(splits)
    ]
    at_size = []
    for place, size in enumerate(chosen):
        nested = [(part[place], test) for part, (_, test) in zip(parts, splits, strict=True)]
        report = _shifted(progress, place, len(chosen), size)
        runs = run_splits(items, calibrators, nested, n_jobs=n_jobs, progress=report)
        at_size.append(CrossValidated.on(items, nested, runs))
    rows, covariances = [], {}
    for method in calibrators:
        for metric in LOSSES:
            values, spread = _values(at_size, method, metric)
            covariances[method, metric] = spread
            rows.append(
                pd.DataFrame(
                    {
                        "method": method,
                        "metric": metric,
                        "size": chosen,
                        "value": values,
                        "standard_error": np.sqrt(np.diagonal(spread)),
                        "note": [out.runs[method].error or "" for out in at_size],
                    }
                )
            )
    return LearningCurve(items.n_items, chosen, pd.concat(rows, ignore_index=True), covariances)


def _values(at_size: list[CrossValidated], method: str, metric: str) -> tuple[Matrix, Matrix]:
    """Return the means at every size and their covariance; NaN where the method failed."""
    n_sizes = len(at_size)
    values, spread = np.full(n_sizes, np.nan), np.full((n_sizes, n_sizes), np.nan)
    known = [k for k, out in enumerate(at_size) if out.runs[method].error is None]
    if known:
        curve = [at_size[k] for k in known]
        losses = np.stack([out.losses(method, metric) for out in curve])
        kept = curve[0].scored_rows
        weight, units = curve[0].scored.weights, curve[0].scored.groups
        values[known], _ = mean_and_error(losses[:, kept], weight, units)
        chance = covariance(losses[:, kept], weight, units)
        spread[np.ix_(known, known)] = chance + _learning_chance(curve, method, metric)
    return values, spread


def _learning_chance(curve: list[CrossValidated], method: str, metric: str) -> Matrix:
    """Return how far means over splits vary because of the items learned from, shape (S, S).

    The means of single splits vary more than their tested items explain; the rest is due to what
    was learned.
    """
    items, splits = curve[0].items, curve[0].splits
    by_size = [out.split_losses(method, metric) for out in curve]
    means, within = [], []
    for number, (_, test) in enumerate(splits):
        tested = items.take(test)
        weight = tested.weights
        if np.unique(tested.units[weight > 0]).size < 2:
            continue
        # What the tested items cost the classifier itself has nothing to do with learning.
        given = item_losses(tested.proba, tested.codes, metric)
        losses = np.stack([part[number] for part in by_size]) - given
        means.append(losses @ weight / weight.sum())
        within.append(covariance(losses, weight, tested.groups))
    if len(means) < 2:
        return np.zeros((len(curve), len(curve)))
    excess = np.atleast_2d(np.cov(np.array(means), rowvar=False)) - np.mean(within, axis=0)
    value, direction = np.linalg.eigh(excess)
    return (direction * np.maximum(value, 0)) @ direction.T / len(means)


def _check_sizes(sizes: Sequence[int] | None, largest: int, n_classes: int) -> list[int]:
    if sizes is None:
        least = max(_SMALLEST, _ITEMS_PER_CLASS * n_classes)
        chosen = [largest]
        while len(chosen) < _MOST_SIZES and chosen[-1] // 2 >= least:
            chosen.append(chosen[-1] // 2)
        return chosen[::-1]
    bad = [s for s in sizes if not isinstance(s, Integral) or not 2 <= s <= largest]
    if bad or not len(sizes):
        raise ValueError(
            f"learning_curve: sizes must be integers between 2 and {largest}, the items that every "
            f"split can learn from; got {bad[0] if bad else list(sizes)!r}. Leave larger sizes "
            "out, or pass a larger cv."
        )
    return sorted({int(size) for size in sizes})


def _shifted(progress: Progress | None, place: int, n_sizes: int, size: int) -> Progress | None:
    """Return a progress of one size as part of the progress of all."""
    if progress is None:
        return None
    report = progress

    def step(done: int, total: int, text: str) -> None:
        report(place * total + done, n_sizes * total, f"{size} items: {text}")

    return step
