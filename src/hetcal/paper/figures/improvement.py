"""Figure 2: what calibration brings, against hidden heterogeneity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hetcal.paper.figures._registry import DrawnFigure
from hetcal.paper.figures._results import OWN_METHODS, at_usual_size, trials_of
from hetcal.paper.settings import DATASETS, PAPER_TABLES, Trial, make_trials
from hetcal.plotting import ImprovementDisplay
from hetcal.plotting._style import PALETTE, require_pyplot

_BINARY = tuple(name for name in PAPER_TABLES if DATASETS[name].n_classes == 2)
_MANY = tuple(name for name in PAPER_TABLES if DATASETS[name].n_classes > 2)
ROWS = {"binary": _BINARY, "multi-class": _MANY}
# What the improvement is held against: whose measurement, which part of it, and its name.
MEASURES = {
    "published": ("hh", "hh", "published HH"),
    "honest": ("hh-honest", "hh", "honest HH"),
    "honest local": ("hh-honest", "hh_local", "local part of the honest HH"),
}
_DRAWN = ("published", "honest")
_FEWEST = 30  # trials times methods: with less there is nothing to see
_CLASSIFIERS = ("NB", "DT", "RF", "GBT", "SVM", "RBFSVM")
_COLORS = dict(zip(_CLASSIFIERS, PALETTE, strict=True))
_MARKERS = dict(zip(_CLASSIFIERS, ("o", "s", "^", "D", "v", "P"), strict=True))


def trials_needed(name: str, trials: int, own: Sequence[str] = ()) -> list[Trial]:
    """Return the trials that the figure shows."""
    return [
        trial
        for dataset in PAPER_TABLES
        for trial in make_trials(
            dataset,
            ["Uncal.", _global(dataset), "SWC", "SWC-HH", "hh", "hh-honest", *own],
            seeds=range(trials),
        )
    ]


def draw(name: str, results: Path, trials: int, progress: Callable[[str], object]) -> DrawnFigure:
    """Draw both rows of the paper against the published HH, and again against the honest one."""
    table = at_usual_size(trials_of(results, PAPER_TABLES, figure=name, trials=trials))
    points = improvements(table)
    return DrawnFigure(_plot(points), correlations(points))


def improvements(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per trial, method and measure of HH.

    Columns ``row`` (binary or multi-class), ``dataset``, ``classifier``, ``seed``, ``method``
    (``"Platt / TS"`` for the global one), ``measure``, ``hh``, ``improvement`` of the Brier score.
    """
    keys = ["dataset", "classifier", "n_cal", "seed"]
    start = table[table["method"] == "Uncal."].set_index(keys)["brier"]
    scored = table[table["method"].isin(("Platt", "TS", "SWC", "SWC-HH", *OWN_METHODS))]
    scored = scored.join(start.rename("start"), on=keys)
    gains = scored.assign(
        improvement=scored["start"] - scored["brier"],
        method=scored["method"].replace({"Platt": "Platt / TS", "TS": "Platt / TS"}),
        row=scored["dataset"].map(
            lambda name: "binary" if DATASETS[name].n_classes == 2 else "multi-class"
        ),
    )[["row", *keys, "method", "improvement"]]
    parts = []
    for measure, (measurement, column, _) in MEASURES.items():
        hh = table[table["method"] == measurement].set_index(keys)[column].rename("hh")
        parts.append(gains.join(hh, on=keys, how="inner").assign(measure=measure))
    return pd.concat(parts, ignore_index=True).dropna(subset=["hh", "improvement"])


def correlations(points: pd.DataFrame) -> pd.DataFrame:
    """Return correlations and slope by row, method and measure, with the number of trials."""
    found = []
    for (row, method, measure), part in points.groupby(["row", "method", "measure"]):
        display = ImprovementDisplay.from_values(part["hh"], part["improvement"])
        if np.isnan(display.pearson):
            continue
        found.append(
            {
                "row": row,
                "method": method,
                "measure": measure,
                "pearson": display.pearson,
                "spearman": display.spearman,
                "slope": display.slope,
                "trials": len(display.points),
            }
        )
    columns = ["row", "method", "measure", "pearson", "spearman", "slope", "trials"]
    return pd.DataFrame(found, columns=columns)


def _global(dataset: str) -> str:
    return "Platt" if DATASETS[dataset].n_classes == 2 else "TS"


def _plot(points: pd.DataFrame) -> Any:
    plt = require_pyplot("The figure 'improvement'")
    methods = ("Platt / TS", "SWC", "SWC-HH")
    blocks = [
        (measure, row)
        for measure in _DRAWN
        for row in ROWS
        if ((points["measure"] == measure) & (points["row"] == row)).sum() >= _FEWEST
    ]
    figure, axes = plt.subplots(
        len(blocks),
        len(methods),
        figsize=(3.7 * len(methods), 2.75 * len(blocks) + 0.4),
        layout="constrained",
        sharex="row",
        sharey="row",
        squeeze=False,
    )
    for i, (measure, row) in enumerate(blocks):
        for ax, method in zip(axes[i], methods, strict=True):
            part = points[
                (points["measure"] == measure)
                & (points["row"] == row)
                & (points["method"] == method)
            ]
            display = ImprovementDisplay.from_values(
                part["hh"], part["improvement"], groups=part["classifier"]
            )
            display.plot(ax, colors=_COLORS, markers=_MARKERS, legend=False)
            name = {"binary": "Platt", "multi-class": "TS"}[row] if "/" in method else method
            n_sets = part["dataset"].nunique()
            ax.set_title(f"{name} ({n_sets} {row})", fontsize=11)
            ax.set(xlabel=f"mean {MEASURES[measure][2]}", ylabel="")
        axes[i, 0].set_ylabel("Brier improvement")
    _legend(figure)
    return figure


def _legend(figure: Any) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", color=_COLORS[name], marker=_MARKERS[name])
        for name in _CLASSIFIERS
    ]
    figure.legend(
        handles, _CLASSIFIERS, loc="outside lower center", ncols=len(handles), frameon=False
    )
