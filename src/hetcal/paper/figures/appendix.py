"""Figures 7 and 8 (appendix): Brier score and accuracy of every method behind every classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hetcal.paper.figures import DrawnFigure
from hetcal.paper.figures._bars import draw_bars, legend_below
from hetcal.paper.figures._results import (
    at_usual_size,
    methods_in,
    table_trials,
    trials_of,
    with_heterogeneity,
)
from hetcal.paper.published import published_table
from hetcal.paper.settings import BINARY, MULTICLASS, Trial
from hetcal.paper.tables import mean_heterogeneity, summarise
from hetcal.plotting.style import require_pyplot

DATASETS_OF = {"appendix-binary": BINARY, "appendix-multiclass": MULTICLASS}
_METRICS = {"brier": "Brier score", "accuracy": "accuracy"}


def trials_needed(name: str, trials: int, own: Sequence[str] = ()) -> list[Trial]:
    """Return the trials that the figure shows."""
    return table_trials(DATASETS_OF[name], trials, own)


def draw(name: str, results: Path, trials: int, progress: Callable[[str], object]) -> DrawnFigure:
    """Draw one row per data set that has results."""
    table = at_usual_size(trials_of(results, DATASETS_OF[name], figure=name, trials=trials))
    datasets = [one for one in DATASETS_OF[name] if one in set(table["dataset"])]
    scores = summarise(table, list(_METRICS))
    hh = mean_heterogeneity(table).set_index(["dataset", "classifier"])["mean"]
    return DrawnFigure(_plot(table, scores, hh, datasets), scores)


def _plot(table: pd.DataFrame, scores: pd.DataFrame, hh: pd.Series, datasets: list[str]) -> Any:
    plt = require_pyplot("The appendix figures")
    figure, axes = plt.subplots(
        len(datasets),
        2,
        figsize=(15, 2.75 * len(datasets) + 0.6),
        layout="constrained",
        squeeze=False,
    )
    published = published_table()
    for row, dataset in enumerate(datasets):
        methods = methods_in(table[table["dataset"] == dataset], dataset)
        for ax, (metric, title) in zip(axes[row], _METRICS.items(), strict=True):
            part = scores[(scores["dataset"] == dataset) & (scores["metric"] == metric)]
            order = _worst_first(part, metric)
            draw_bars(
                ax,
                part,
                order,
                methods,
                labels=[with_heterogeneity(name, hh.get((dataset, name)), 2) for name in order],
                published=published[
                    (published["dataset"] == dataset) & (published["metric"] == metric)
                ],
                as_points=metric == "accuracy",  # far from 0
            )
            ax.set(title=f"{dataset}: {title}", ylabel=title)
    legend_below(figure, axes[0, 0], published=True)
    return figure


def _worst_first(scores: pd.DataFrame, metric: str) -> list[str]:
    """Order the classifiers by their uncalibrated score, as the paper does."""
    start = scores[scores["method"] == "Uncal."].sort_values("mean", ascending=metric != "brier")
    return start["classifier"].tolist()
