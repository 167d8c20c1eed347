"""All calibrators side by side on the user's own data."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from hetcal._exceptions import HetcalWarning, levels_to_caller
from hetcal._printable import printable
from hetcal._typing import Matrix
from hetcal._validation import check_choice
from hetcal._validation.by_name import output_by_name
from hetcal.calibration import GlobalCalibrator, Uncalibrated
from hetcal.data import CalibrationSet
from hetcal.diagnosis.checks import check_training_rows
from hetcal.diagnosis.cross_validation import (
    CrossValidated,
    MethodRun,
    Predictions,
    cross_validated,
    named_calibrators,
)
from hetcal.diagnosis.inputs import calibration_items
from hetcal.diagnosis.latex import latex_table
from hetcal.diagnosis.learning_curves import LearningCurve, curve_of
from hetcal.diagnosis.own_predictions import own_predictions
from hetcal.diagnosis.scoring import HIGHER_IS_BETTER, METRICS, paired_difference, score
from hetcal.diagnosis.splits import make_splits
from hetcal.diagnosis.steps import Progress

_SHORT_NOTE = 200
_CURVE_FOLDS = 5


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What each method brings, with standard errors; the result of :func:`compare`.

    Attributes
    ----------
    cross_validated : Predictions or None
        All out-of-sample probabilities, with the splits (:class:`CrossValidated`) where ``cv`` was
        given; None with ``keep_predictions=False``.
    learning_curve : LearningCurve or None
        Where one was asked for.
    n_items, n_splits : int
        Items that were tested, and splits that tested them; 0 splits where each method has
        predicted every item in its own way.
    warnings : dict of dict
        By method: the texts of its warnings and the number of fits that gave them.
    """

    _rows: pd.DataFrame
    _seconds: pd.Series
    n_items: int
    n_splits: int
    cross_validated: Predictions | None = None
    learning_curve: LearningCurve | None = None
    warnings: dict[str, dict[str, int]] = field(default_factory=dict)
    _bootstrap: dict[str, int] = field(default_factory=dict)

    @property
    def methods(self) -> list[str]:
        """Methods, the lowest Brier score first, those that failed last."""
        return list(dict.fromkeys(self._rows["method"]))

    def frame(self) -> pd.DataFrame:
        """Return one row per method and metric.

        Returns
        -------
        DataFrame
            ``method``, the lowest Brier score first; ``kind``, "calibrator" or "baseline" (a plain
            retrained model); ``metric``: ``brier`` (sum over classes), ``log_loss``, ``ece`` (top
            label, 15 bins of equal mass), ``accuracy``; ``value``, its ``standard_error`` and a 95
            % interval, ``low`` to ``high`` (not of the ``ece``, which is biased); ``difference`` to
            the best method of the metric and ``difference_se``, paired item by item; ``best``;
            ``within_one_se``, true where the value comes as close to the best as its own standard
            error (the paper's bold print); ``note``: why a method failed, or what it warned of.
        """
        return self._rows.copy()

    def table(self) -> pd.DataFrame:
        """Return one row per method: a column per metric, its error, and seconds per fit."""
        rows = self._rows.set_index(["metric", "method"])[["value", "standard_error"]]
        columns = {}
        for metric in METRICS:
            part = rows.loc[metric]
            columns[metric], columns[f"{metric}_se"] = part["value"], part["standard_error"]
        first = self._rows.drop_duplicates("method").set_index("method")
        return (
            pd.DataFrame(columns)
            .reindex(self.methods)
            .assign(kind=first["kind"], seconds=self._seconds, note=first["note"])
        )

    def to_latex(self, metrics: Sequence[str] = ("brier", "log_loss")) -> str:
        r"""Return a table for a paper (``\usepackage{booktabs}``).

        Values with their standard errors in brackets; bold: within one standard error of the best.

        Parameters
        ----------
        metrics : sequence of str
            Columns, of ``brier``, ``log_loss``, ``ece`` and ``accuracy``.
        """
        for metric in metrics:
            check_choice(metric, "metric", METRICS, "Comparison.to_latex")
        return latex_table(self._rows, self.methods, metrics)

    def best(self, metric: str = "brier", *, baselines: bool = True) -> str:
        """Return the name of the best method, with or without the plain retrained models."""
        rows = self._of(metric)
        if not baselines:
            rows = rows[rows["kind"] == "calibrator"]
        rows = rows.dropna(subset=["value"])
        if rows.empty:
            raise ValueError("No calibrator came through; see the notes in frame().")
        order = rows["value"] * (-1 if metric in HIGHER_IS_BETTER else 1)
        return str(rows["method"].iloc[int(np.argmin(order))])

    def predictions(self, name: str) -> Matrix:
        """Return the out-of-sample probabilities of a method, one row per item.

        They are averaged over repeats, so slightly better than those of a single fit; rows of
        items that were never tested (``TimeSeriesSplit``) are NaN.
        """
        return self._kept().proba(name)

    def difference(self, first: str, second: str, metric: str = "brier") -> tuple[float, float]:
        """Return the paired difference first - second in a metric, and its standard error.

        Below zero the first is better, except for accuracy. The error is that of the gain from
        replacing the first by the second, as everywhere in hetcal: labels vary at least as much as
        the second expects.
        """
        return paired_difference(self._kept(), first, second, metric, **self._bootstrap)

    def plot(self, metric: str = "brier", *, ax: Any = None) -> Any:
        """Draw the methods with their standard errors; see ``plotting.ComparisonDisplay``."""
        # Plotting stands above advice: looked up when something is drawn, never imported from here.
        display = import_module("hetcal.plotting.comparison").ComparisonDisplay
        return display.from_comparison(self, metric=metric).plot(ax=ax)

    def _kept(self) -> Predictions:
        if self.cross_validated is None:
            raise ValueError(
                "Comparison holds no predictions: compare was called with keep_predictions=False."
            )
        return self.cross_validated

    def _of(self, metric: str) -> pd.DataFrame:
        check_choice(metric, "metric", METRICS, "Comparison")
        return self._rows[self._rows["metric"] == metric]

    def _shown(self) -> pd.DataFrame:
        """Return the table as texts: values with intervals, marks, and the paired difference."""
        rows = self._rows.set_index(["method", "metric"])
        shown = {}
        for metric in METRICS:
            part = rows.xs(metric, level="metric").reindex(self.methods)
            shown[metric.replace("_", " ")] = [
                _with_interval(*figures)
                for figures in zip(
                    part["value"], part["low"], part["high"], part["within_one_se"], strict=True
                )
            ]
        brier = rows.xs("brier", level="metric").reindex(self.methods)
        shown["Brier above the best"] = [
            "best" if best else "-" if np.isnan(difference) else f"{difference:+z.4f} ± {error:.4f}"
            for best, difference, error in zip(
                brier["best"], brier["difference"], brier["difference_se"], strict=True
            )
        ]
        return pd.DataFrame(shown, index=pd.Index(self.methods, name="method"))

    def _notes(self) -> list[str]:
        """Return every text once, with the methods that it is about."""
        notes = self._of("brier").set_index("method")["note"]
        texts = notes[notes != ""].map(_shortened)
        return [
            f"{', '.join(map(str, said.index))}: {text}"
            for text, said in texts.groupby(texts, sort=False)
        ]

    def _title(self) -> str:
        tested = _counted(self.n_splits, "split") if self.n_splits else "each without its label"
        return (
            f"Comparison of {_counted(len(self.methods), 'method')} on "
            f"{_counted(self.n_items, 'item')}, {tested}. * within one standard error of the best. "
            "In brackets: 95 % intervals."
        )

    def __repr__(self) -> str:
        return printable("\n".join([self._title(), self._shown().to_string(), *self._notes()]))

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self._notes())
        return f"<p>{self._title()}</p>{self._shown().to_html()}<ul>{notes}</ul>"


def _with_interval(value: float, low: float, high: float, near: bool) -> str:
    if np.isnan(value):
        return "-"
    ends = "" if np.isnan(low) else f" ({low:.4f} to {high:.4f})"
    return f"{value:.4f}{'*' if near else ' '}{ends}"


@output_by_name
def compare(
    X: Any,
    y: Any = None,
    *,
    y_proba: Any = None,
    logits: Any = None,
    methods: str | Sequence[str] | Mapping[str, Any] = "all",
    cv: Any = None,
    n_repeats: int = 1,
    groups: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    baselines: bool | Sequence[str] = True,
    learning_curve: bool | Sequence[str] = False,
    sizes: Sequence[int] | None = None,
    n_bootstrap: int = 200,
    keep_predictions: bool = True,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare calibrators on your own calibration items, each predicted without its label.

    The numbers are those that ``hetcal fit`` and :func:`hetcal.diagnose` state for the same items
    and seed. Plain models trained on the calibration items stand beside the calibrators: where they
    win, retraining is the better answer. A method that fails keeps its row, and the row says why.

    Parameters
    ----------
    X, y, y_proba, logits, groups, sample_weight, classes
        As in :func:`hetcal.diagnose`; where X is None, only global maps are compared. Rows of one
        group are never on both sides of a split.
    methods : "all", sequence of str or dict, default="all"
        All known names (see :func:`hetcal.calibration.list_calibrators`), some of them, or
        calibrators by a name of your choice.
    cv : int, splitter or iterable of (train, test), optional
        None: one fit to all items, and each method's own out-of-sample predictions, out of bag or
        cross-fitted on five folds. Otherwise every method learns from the same items and is tested
        on the same others, which takes as many fits as there are splits. An int gives stratified
        folds, by group where there are groups. With ``TimeSeriesSplit`` the earliest items are
        never tested, and do not count.
    n_repeats : int, default=1
        Shuffles of the folds (where ``cv`` is an int); the loss of an item is averaged over them.
    baselines : bool or sequence of str, default=True
        Forest and gradient boosting, each on X and on [X, P]; or some of their names.
    learning_curve : bool or sequence of str, default=False
        Also measure growing calibration sizes, of these methods, or of the best calibrator, the
        best global map and the uncalibrated probabilities; see :func:`learning_curve`.
    sizes : sequence of int, optional
        Sizes of the learning curve.
    n_bootstrap : int, default=200
        Resamples for the standard errors of the ECE.
    keep_predictions : bool, default=True
        Whether the result holds the out-of-fold probabilities of every method.
    random_state : int, default=0
        Seed of folds, of methods given by name, of baselines and of resamples.
    n_jobs : int, optional
        Processes over methods and splits; the result does not depend on it.
    progress : callable, optional
        Called as ``progress(done, total, text)`` after every method or split; the count starts
        again for a learning curve.

    Returns
    -------
    Comparison

    Notes
    -----
    Standard errors of values are those of a mean over independent items (or groups). Those of
    differences in Brier score and log loss also hold what another calibration set would have made
    of the calibrators (:mod:`hetcal.metrics.gains`): value ± 1.96 of them is an interval for the
    difference on new items, whose coverage is measured.

    Examples
    --------
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(400, heterogeneity=1.0, random_state=0)
    >>> comparison = compare(
    ...     data.X, data.y, y_proba=data.y_proba, methods=["uncalibrated", "temperature", "swc"],
    ...     baselines=False)
    >>> comparison.best("brier")
    'swc'
    >>> comparison.frame().query("metric == 'brier'")[["method", "within_one_se"]]
             method  within_one_se
    0           swc           True
    ...
    """
    items = calibration_items("compare", X, y, y_proba, logits, classes, sample_weight, groups)
    options: dict[str, Any] = {
        "methods": methods,
        "baselines": baselines,
        "random_state": random_state,
        "n_jobs": n_jobs,
        "progress": progress,
        "caller": "compare",
    }
    out = _predictions(items, cv, n_repeats, options)
    if not out.methods:
        name, run = next(iter(out.runs.items()))
        raise ValueError(f"compare: every method failed; {name!r} with {run.error}")
    calibrators = named_calibrators(methods, items.has_features, random_state)
    _warn_of_training_rows(out, calibrators)
    bootstrap = {"n_bootstrap": n_bootstrap, "random_state": random_state}
    scored = score(out, **bootstrap)
    comparison = Comparison(
        _rows=_ordered(_described(scored, out)),
        _seconds=pd.Series({name: np.mean(run.seconds) for name, run in out.runs.items()}),
        n_items=int(out.tested.sum()),
        n_splits=len(out.splits) if isinstance(out, CrossValidated) else 0,
        cross_validated=out if keep_predictions else None,
        warnings={name: dict(run.warnings) for name, run in out.runs.items() if run.warnings},
        _bootstrap=bootstrap,
    )
    if isinstance(learning_curve, bool) and not learning_curve:
        return comparison
    if isinstance(out, CrossValidated):
        splits = out.splits
    else:
        splits = make_splits(items, _CURVE_FOLDS, random_state=random_state)
    curve = curve_of(
        items,
        _of_curve(learning_curve, calibrators, comparison),
        splits,
        sizes,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=progress,
    )
    return replace(comparison, learning_curve=curve)


def _predictions(
    items: CalibrationSet, cv: Any, n_repeats: int, options: dict[str, Any]
) -> Predictions:
    if cv is not None:
        return cross_validated(items, cv=cv, n_repeats=n_repeats, **options)
    if n_repeats != 1:
        raise ValueError(
            f"compare: n_repeats={n_repeats!r} repeats folds, of which there are none without cv. "
            "Pass cv=5 with it, or leave it out."
        )
    return own_predictions(items, **options)


def _warn_of_training_rows(out: Predictions, calibrators: Mapping[str, Any]) -> None:
    """Warn, as advise does, where models on the features alone show that p knows these items."""
    plain = [name for name in out.methods if name in out.baselines and name.endswith(" on X")]
    maps = [name for name in out.methods if isinstance(calibrators.get(name), GlobalCalibrator)]
    if not (plain and maps and out.tested.all()):
        return

    def brier(name: str) -> float:
        return float(np.average(out.losses(name), weights=out.items.weights))

    found = check_training_rows(out.items, min(map(brier, maps)), out.proba(min(plain, key=brier)))
    if found is not None:
        warnings.warn(found.text, HetcalWarning, stacklevel=levels_to_caller())


def _of_curve(
    wanted: bool | Sequence[str], calibrators: Mapping[str, Any], comparison: Comparison
) -> dict[str, Any]:
    """Return the calibrators whose learning curve is measured."""
    if not isinstance(wanted, bool):
        names = [wanted] if isinstance(wanted, str) else list(wanted)
        others = [name for name in names if name not in calibrators]
        known = dict(calibrators) | (named_calibrators(others, True) if others else {})
        return {name: known[name] for name in names}
    brier = comparison.table()["brier"]
    maps = [name for name, c in calibrators.items() if isinstance(c, GlobalCalibrator)]
    names = [name for name in maps if isinstance(calibrators[name], Uncalibrated)]
    if brier[maps].notna().any():
        names.append(str(brier[maps].idxmin()))
    names.append(comparison.best(baselines=False))
    return {name: calibrators[name] for name in dict.fromkeys(names)}


def _described(rows: pd.DataFrame, out: Predictions) -> pd.DataFrame:
    kinds = rows["method"].map(lambda name: "baseline" if name in out.baselines else "calibrator")
    notes = {name: _note(run) for name, run in out.runs.items()}
    rows.insert(1, "kind", kinds)
    return rows.assign(note=rows["method"].map(notes))


def _note(run: MethodRun) -> str:
    if run.error is not None:
        return f"failed: {run.error}"
    if run.warnings:
        text, _ = run.warnings.most_common(1)[0]
        return f"warned in {run.n_warned} of {len(run.seconds)} fits: {text}"
    return ""


def _ordered(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows metric by metric, methods by Brier score, whatever order they came in."""
    brier = rows[rows["metric"] == "brier"].sort_values(["value", "method"], na_position="last")
    place = {name: number for number, name in enumerate(brier["method"])}
    order = {metric: number for number, metric in enumerate(METRICS)}
    keys = rows["metric"].map(order) * len(place) + rows["method"].map(place)
    return rows.iloc[np.argsort(keys.to_numpy())].reset_index(drop=True)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT_NOTE else f"{line[: _SHORT_NOTE - 3]}..."
