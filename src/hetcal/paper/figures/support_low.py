"""Figure 5: the test items of mnist-1v7 that the calibration set knows least about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hetcal.paper.figures import DrawnFigure
from hetcal.paper.figures._digits import CalibratedDigits
from hetcal.plotting.style import INK, method_style, require_pyplot, tidy

N_SHOWN = 5


def draw(name: str, results: Path, trials: int, progress: Callable[[str], object]) -> DrawnFigure:
    """Draw the five items of the first trial; the facts hold those of every trial."""
    facts, drawn = [], {}
    for seed in range(trials):
        progress(f"support-low: trial {seed + 1} of {trials}")
        digits = CalibratedDigits.trial(seed)
        facts.append(lowest_support(digits).assign(seed=seed))
        if seed == 0:
            drawn = {item: digits.images[item] for item in facts[0]["item"]}
    table = pd.concat(facts, ignore_index=True)
    return DrawnFigure(_plot(drawn, table), table)


def lowest_support(digits: CalibratedDigits) -> pd.DataFrame:
    """Return the items of least support: what was said about the true class before and after.

    Columns ``rank``, ``item`` (row of the test set), ``digit``, ``support``, ``median_support`` (of
    all test items), ``before`` and ``after`` (probability of the true digit).
    """
    split = digits.split
    X = digits.scaled(digits.images)
    P = digits.classifier.predict_proba(X)
    Q, support = digits.swc.predict_proba(X, y_proba=P, return_support=True)
    items = np.argsort(support, kind="stable")[:N_SHOWN]
    truth = split.y_test[items]
    return pd.DataFrame(
        {
            "rank": np.arange(1, N_SHOWN + 1),
            "item": items,
            "digit": split.classes[truth],
            "support": support[items],
            "median_support": float(np.median(support)),
            "before": P[items, truth],
            "after": Q[items, truth],
        }
    )


def _plot(images: dict[int, np.ndarray], facts: pd.DataFrame) -> Any:
    plt = require_pyplot("The figure 'support-low'")
    shown = facts[facts["seed"] == 0]
    figure, axes = plt.subplots(
        2,
        N_SHOWN,
        figsize=(2.2 * N_SHOWN, 3.9),
        layout="constrained",
        gridspec_kw={"height_ratios": [3, 1.1]},
    )
    for column, item in enumerate(shown.to_dict("records")):
        picture, bars = axes[:, column]
        picture.imshow(images[item["item"]], cmap="gray_r", vmin=0, vmax=255)
        picture.set(xticks=[], yticks=[])
        picture.set_title(f"a {item['digit']}, support {item['support']:.0f}", fontsize=11)
        _draw_before_and_after(bars, item["before"], item["after"], labels=column == 0)
    lowered = int((facts["after"] < facts["before"]).sum())
    n_trials = facts["seed"].nunique()
    figure.suptitle(
        "Five of 500 test items with the least calibration support "
        f"(median {shown['median_support'].iloc[0]:.0f}): probability of the true digit\n"
        f"SWC lowers it for {int((shown['after'] < shown['before']).sum())} of these five, and for "
        f"{lowered} of {len(facts)} such items in {n_trials} trials",
        fontsize=11,
    )
    return figure


def _draw_before_and_after(ax: Any, before: float, after: float, *, labels: bool) -> None:
    styles = [method_style("uncalibrated"), method_style("swc")]
    ax.barh([1, 0], [before, after], color=[style.color for style in styles], height=0.7)
    for y, value in ((1, before), (0, after)):
        inside = value > 0.6
        ax.text(
            value + (-0.03 if inside else 0.03),
            y,
            f"{value:.2f}",
            va="center",
            ha="right" if inside else "left",
            color="white" if inside else INK,
        )
    ax.set(xlim=(0, 1), xticks=[0, 0.5, 1], yticks=[1, 0])
    ax.set_yticklabels(["SVM", "SWC"] if labels else ["", ""])
    tidy(ax)
