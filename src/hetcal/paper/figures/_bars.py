"""Bars of several methods for several classifiers, as in Figure 4 and the appendix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from hetcal.paper.figures._results import style_of
from hetcal.plotting.style import INK

_WIDTH = 0.86  # of the place that a classifier has


def draw_bars(
    ax: Any,
    scores: pd.DataFrame,
    classifiers: Sequence[str],
    methods: Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    published: pd.DataFrame | None = None,
    as_points: bool = False,
) -> None:
    """Draw one group of bars per classifier, one bar per method, with one standard error.

    Parameters
    ----------
    ax : matplotlib Axes
    scores : DataFrame
        Columns ``classifier``, ``method``, ``mean``, ``standard_error``.
    classifiers, methods : sequence of str
        From left to right.
    labels : sequence of str, optional
        What stands under each group; the classifiers' names when None.
    published : DataFrame, optional
        Columns ``classifier``, ``method``, ``mean``: drawn as a short line across the bar.
    as_points : bool, default=False
        Points instead of bars, whose length would mislead where the axis does not begin at 0.
    """
    ours = _wide(scores, "mean", classifiers, methods)
    error = _wide(scores, "standard_error", classifiers, methods)
    theirs = None if published is None else _wide(published, "mean", classifiers, methods)
    place = np.arange(len(classifiers))
    width = _WIDTH / len(methods)
    for number, method in enumerate(methods):
        style = style_of(method)
        x = place - _WIDTH / 2 + (number + 0.5) * width
        if as_points:
            ax.errorbar(
                x,
                ours[method],
                yerr=error[method].fillna(0),
                color=style.color,
                marker=style.marker,
                markersize=9 if style.marker == "*" else 6.5,
                linestyle="none",
                label=style.label,
            )
        else:
            ax.bar(
                x,
                ours[method],
                width * 0.94,
                yerr=error[method].fillna(0),
                color=style.color,
                label=style.label,
                error_kw={"elinewidth": 0.9, "ecolor": INK},
            )
        if theirs is not None:
            ax.hlines(theirs[method], x - width / 2, x + width / 2, color="black", linewidth=1.3)
    ax.set_xticks(place, labels or list(classifiers))
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.55, len(classifiers) - 0.45)
    ax.spines[["top", "right"]].set_visible(False)
    if as_points:
        ax.grid(axis="y", color="#E6E6E6", linewidth=0.8)
        ax.set_axisbelow(True)
        for edge in place[1:] - 0.5:
            ax.axvline(edge, color="#E6E6E6", linewidth=0.8, zorder=0)


def legend_below(figure: Any, ax: Any, *, published: bool) -> None:
    """Name the methods once for the whole figure."""
    from matplotlib.lines import Line2D

    handles, labels = ax.get_legend_handles_labels()
    if published:
        handles.append(Line2D([], [], color="black", linewidth=1.3))
        labels.append("published")
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=10
    )


def _wide(
    table: pd.DataFrame, value: str, classifiers: Sequence[str], methods: Sequence[str]
) -> pd.DataFrame:
    wide = table.pivot(index="classifier", columns="method", values=value)
    return wide.reindex(index=list(classifiers), columns=list(methods))
