"""Figure 2: what calibration brings, against hidden heterogeneity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hetcal.paper.figures import DrawnFigure
from hetcal.paper.figures._results import OWN_METHODS, at_usual_size, trials_of
from hetcal.paper.settings import DATASETS, PAPER_TABLES, Trial, make_trials
from hetcal.plotting.style import INK, PALETTE, require_pyplot, tidy

ROWS = ("binary", "multi-class")
# What the improvement is held against: whose measurement, which part of it, and its name.
MEASURES = {
    "published": ("hh", "hh", "published HH"),
    "out-of-sample": ("hh-out-of-sample", "hh", "out-of-sample HH"),
    "out-of-sample local": ("hh-out-of-sample", "hh_local", "local part of the out-of-sample HH"),
}
_DRAWN = ("published", "out-of-sample")
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
            ["Uncal.", _global(dataset), "SWC", "SWC-HH", "hh", "hh-out-of-sample", *own],
            seeds=range(trials),
        )
    ]


def draw(name: str, results: Path, trials: int, progress: Callable[[str], object]) -> DrawnFigure:
    """Draw both rows of the paper against the published HH, and again out of sample."""
    table = at_usual_size(trials_of(results, PAPER_TABLES, figure=name, trials=trials))
    points = improvements(table)
    found = correlations(points)
    return DrawnFigure(_plot(points, found), found)


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
    """Return correlations and slope by row, method and measure, with the number of trials.

    Linear and rank correlation of improvement and hidden heterogeneity, and the improvement per
    unit of it by least squares; left out with fewer than three points or without variation.
    """
    found = []
    for place, part in points.groupby(["row", "method", "measure"]):
        hh, gain = part["hh"], part["improvement"]
        if len(part) > 2 and hh.nunique() > 1 and gain.nunique() > 1:
            slope = np.polyfit(hh, gain, 1)[0]
            numbers = (hh.corr(gain), hh.corr(gain, method="spearman"), slope, len(part))
            found.append((*place, *numbers))
    columns = ["row", "method", "measure", "pearson", "spearman", "slope", "trials"]
    return pd.DataFrame(found, columns=columns)


def _global(dataset: str) -> str:
    return "Platt" if DATASETS[dataset].n_classes == 2 else "TS"


def _plot(points: pd.DataFrame, found: pd.DataFrame) -> Any:
    plt = require_pyplot("The figure 'improvement'")
    methods = ("Platt / TS", "SWC", "SWC-HH")
    sizes = points.groupby(["measure", "row"]).size()
    blocks = [block for block in product(_DRAWN, ROWS) if int(sizes.get(block, 0)) >= _FEWEST]
    figure, axes = plt.subplots(
        len(blocks),
        len(methods),
        figsize=(3.7 * len(methods), 2.75 * len(blocks) + 0.4),
        layout="constrained",
        sharex="row",
        sharey="row",
        squeeze=False,
    )
    panels = dict(list(points.groupby(["measure", "row", "method"])))
    texts = {
        (one.measure, one.row, one.method): f"r = {one.pearson:.2f}\nrank r = {one.spearman:.2f}"
        for one in found.itertuples()
    }
    for i, (measure, row) in enumerate(blocks):
        for ax, method in zip(axes[i], methods, strict=True):
            place = (measure, row, method)
            part = panels.get(place, points.iloc[:0])
            _scatter(ax, part, texts.get(place, ""))
            name = {"binary": "Platt", "multi-class": "TS"}[row] if "/" in method else method
            ax.set_title(f"{name} ({part['dataset'].nunique()} {row})", fontsize=11)
            ax.set_xlabel(f"mean {MEASURES[measure][2]}")
        axes[i, 0].set_ylabel("Brier improvement")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _scatter(ax: Any, part: pd.DataFrame, text: str) -> None:
    """Draw one point per trial, and the correlations in the corner."""
    ax.axhline(0, color=INK, linewidth=0.8, zorder=0)
    for name in _CLASSIFIERS:
        mine = part[part["classifier"] == name]
        look = {"color": _COLORS[name], "marker": _MARKERS[name], "edgecolor": "white"}
        ax.scatter(
            mine["hh"], mine["improvement"], s=16, alpha=0.75, linewidth=0.3, label=name, **look
        )
    ax.text(0.04, 0.96, text, transform=ax.transAxes, va="top", color=INK)
    tidy(ax)
