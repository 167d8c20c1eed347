"""The picture of ``hetcal demo``: calibrated on average, wrong in every group, repaired."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from hetcal._typing import Matrix
from hetcal.cli._demo_example import Example
from hetcal.persistence.atomic_file import AtomicFile
from hetcal.plotting import ReliabilityDisplay
from hetcal.plotting.style import BLUE, GREEN, ORANGE, PURPLE, VERMILION

_N_BINS = 10


def draw(
    example: Example,
    predictions: dict[str, tuple[Matrix, str]],
    scores: pd.DataFrame,
    target: Path,
) -> None:
    """Draw reliability on average and group by group, and write it to ``target``."""
    # Without pyplot: no window system is asked for and no global state is left behind.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    best = {
        scope: part["brier"].idxmin()
        for scope, part in scores[scores["scope"] != "truth"].groupby("scope")
    }
    n_panels = 2 + ("local" in best)
    figure = Figure(figsize=(4.6 * n_panels, 5.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, n_panels, sharey=True)
    _draw_average(axes[0], example, predictions, str(best["global"]))
    for ax, scope in zip(axes[1:], ("global", "local"), strict=False):
        name = str(best[scope])
        _draw_groups(ax, example, predictions[name][0], name)
    for ax in axes[1:]:
        ax.set_ylabel("")
    with AtomicFile(target) as stream:
        figure.savefig(stream, format=target.suffix[1:].lower(), dpi=100)


def _draw_average(ax, example: Example, predictions, best: str) -> None:
    for name, color, marker in (("uncalibrated", VERMILION, "s"), (best, BLUE, "o")):
        display = ReliabilityDisplay.from_predictions(
            example.test.y, predictions[name][0], n_bins=_N_BINS, name=name
        )
        display.plot(ax, color=color, marker=marker)
    ax.set_title("On average, a global map repairs it", loc="left", fontsize=11)


def _draw_groups(ax, example: Example, Q: Matrix, method: str) -> None:
    groups = (
        (1, example.test.subgroups[1], ORANGE, "^"),
        (2, example.test.subgroups[2], PURPLE, "v"),
        (0, "everyone else", GREEN, "o"),
    )
    for number, label, color, marker in groups:
        inside = example.test.group == number
        display = ReliabilityDisplay.from_predictions(
            example.test.y[inside],
            Q[inside],
            classes=example.test.classes,
            n_bins=_N_BINS,
            name=label,
        )
        display.plot(ax, color=color, marker=marker, counts=False)
    ax.set_title(f"Group by group, after {method}", loc="left", fontsize=11)
