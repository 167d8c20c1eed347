"""Figure 4: three networks on CIFAR-10 and CIFAR-100, where little is hidden."""

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
from hetcal.paper.settings import Trial
from hetcal.paper.tables import mean_heterogeneity, summarise
from hetcal.paper.text import number_of_trials
from hetcal.plotting.style import require_pyplot

IMAGES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
NETWORKS = {"resnet20": "ResNet20", "resnet56": "ResNet56", "repvgg_a2": "RepVGG_A2*"}


def trials_needed(name: str, trials: int, own: Sequence[str] = ()) -> list[Trial]:
    """Return the trials that the figure shows."""
    return table_trials(IMAGES, trials, own)


def draw(name: str, results: Path, trials: int, progress: Callable[[str], object]) -> DrawnFigure:
    """Draw a panel per data set that has results."""
    table = at_usual_size(trials_of(results, IMAGES, figure=name, trials=trials))
    scores = summarise(table, ["brier"])
    hh, out_of_sample = (
        mean_heterogeneity(table, method).set_index(["dataset", "classifier"])["mean"]
        for method in ("hh", "hh-out-of-sample")
    )
    keys = pd.MultiIndex.from_frame(scores[["dataset", "classifier"]])
    facts = scores.assign(
        hh=hh.reindex(keys).to_numpy(), hh_out_of_sample=out_of_sample.reindex(keys).to_numpy()
    )
    return DrawnFigure(_plot(table, scores, hh), facts)


def _plot(table: pd.DataFrame, scores: pd.DataFrame, hh: pd.Series) -> Any:
    plt = require_pyplot("The figure 'cifar'")
    datasets = [dataset for dataset in IMAGES if dataset in set(table["dataset"])]
    figure, axes = plt.subplots(
        1, len(datasets), figsize=(6.6 * len(datasets), 4.4), layout="constrained", squeeze=False
    )
    for ax, dataset in zip(axes[0], datasets, strict=True):
        part = scores[scores["dataset"] == dataset]
        networks = [name for name in NETWORKS if name in set(part["classifier"])]
        methods = methods_in(table[table["dataset"] == dataset], dataset)
        labels = [
            with_heterogeneity(NETWORKS[network], hh.get((dataset, network)), 3)
            for network in networks
        ]
        draw_bars(ax, part, networks, methods, labels=labels, as_points=True)
        ax.set_title(f"{IMAGES[dataset]} ({number_of_trials(part['trials'])})")
        ax.set_ylabel("Brier score")
    legend_below(figure, axes[0, 0], published=False)
    figure.suptitle(
        "Features: the network's latent layer; HH with radius 0.05 in parentheses.\n"
        "* trained for this project; the published weights could not be had",
        fontsize=11,
    )
    return figure
