"""Figure 1: Brier score against the size of the calibration set, on mnist-4v9."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hetcal.paper.figures import DrawnFigure
from hetcal.paper.figures._results import methods_in, trials_of
from hetcal.paper.settings import PAPER_METHODS, Trial, make_trials, paper_methods
from hetcal.paper.tables import summarise
from hetcal.paper.text import number_of_trials
from hetcal.plotting import LearningCurveDisplay
from hetcal.plotting.style import require_pyplot

DATASET = "mnist-4v9"
SIZES = (50, 100, 200, 500, 1000, 1500, 2000, 2500, 3000)
CLASSIFIERS = {"NB": "Naive Bayes", "DT": "decision tree", "RF": "random forest"}
_PRINTED = {name: printed for printed, name in PAPER_METHODS.items()}


def trials_needed(name: str, trials: int, own: Sequence[str] = ()) -> list[Trial]:
    """Return the trials that the figure shows, small calibration sets first."""
    return [
        trial
        for size in SIZES
        for trial in make_trials(
            DATASET,
            [*paper_methods(DATASET), *own],
            classifiers=list(CLASSIFIERS),
            seeds=range(trials),
            n_cal=size,
        )
    ]


def draw(name: str, results: Path, trials: int, progress: Callable[[str], object]) -> DrawnFigure:
    """Draw one panel per classifier; methods and sizes without results are left out."""
    table = trials_of(results, [DATASET], figure=name, trials=trials)
    table = table[table["classifier"].isin(CLASSIFIERS) & table["n_cal"].isin(SIZES)]
    methods = methods_in(table, DATASET)
    scores = summarise(_whole_curves(table[table["method"].isin(methods)]), ["brier"])
    return DrawnFigure(_plot(scores, methods), scores)


def _whole_curves(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out trials that have fewer sizes than others: a curve must not change its trials."""
    curve = ["method", "classifier"]
    sizes = table.groupby([*curve, "seed"])["n_cal"].transform("nunique")
    return table[sizes == sizes.groupby([table[name] for name in curve]).transform("max")]


def _plot(scores: pd.DataFrame, methods: list[str]) -> Any:
    plt = require_pyplot("The figure 'learning-curves'")
    figure, axes = plt.subplots(1, len(CLASSIFIERS), figsize=(14, 4.6), layout="constrained")
    for ax, (short, title) in zip(axes, CLASSIFIERS.items(), strict=True):
        _display(scores[scores["classifier"] == short], methods).plot(ax, dodge=0.012)
        ax.get_legend().remove()
        ax.set(title=title, ylabel="", ylim=(0, None))
        # 2500 has no room between its neighbours on a logarithmic axis.
        ax.set_xticks(SIZES, [str(size) if size not in (1500, 2500) else "" for size in SIZES])
        ax.tick_params(axis="x", labelrotation=45)
        ax.minorticks_off()
    axes[0].set_ylabel("Brier score (lower is better)")
    handles, _ = axes[0].get_legend_handles_labels()
    labels = [_PRINTED.get(line.get_gid(), line.get_gid()) for line in handles]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    trials = number_of_trials(scores["trials"])
    figure.suptitle(f"mnist-4v9, nested calibration sets ({trials}, one standard error)")
    return figure


def _display(scores: pd.DataFrame, methods: list[str]) -> LearningCurveDisplay:
    order = pd.Categorical(scores["method"], categories=methods, ordered=True)
    rows = scores.assign(method=order).dropna(subset=["method"]).sort_values(["method", "n_cal"])
    rows = rows.astype({"method": str}).replace({"method": PAPER_METHODS})
    rows = rows.rename(columns={"n_cal": "size", "mean": "value"})
    columns = ["method", "size", "value", "standard_error"]
    return LearningCurveDisplay(rows[columns].fillna({"standard_error": 0.0}), "brier")
