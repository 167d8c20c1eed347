"""What calibration brings, against the hidden heterogeneity that could be known before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.stats import pearsonr, spearmanr

from hetcal.plotting._style import INK, PALETTE, require_pyplot

_NAME = "ImprovementDisplay"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")


@dataclass(frozen=True, eq=False)
class ImprovementDisplay:
    """Improvement in a score against hidden heterogeneity, one point per experiment.

    Make one with :meth:`from_values`; :meth:`plot` draws it, :meth:`frame` gives the numbers.

    Attributes
    ----------
    points : DataFrame
        Columns ``hh``, ``improvement``, ``group``.
    pearson, spearman : float
        Linear and rank correlation; NaN where there is none (fewer than three points, or no
        variation).
    """

    points: pd.DataFrame
    pearson: float
    spearman: float

    @classmethod
    def from_values(cls, hh: Any, improvement: Any, *, groups: Any = None) -> Self:
        """Correlate improvements with hidden heterogeneity.

        Parameters
        ----------
        hh : array-like of shape (n,)
            Mean hidden heterogeneity of each experiment.
        improvement : array-like of shape (n,)
            Score before minus score after calibration; positive is better.
        groups : array-like of shape (n,), optional
            What tells the points apart (data set, classifier).

        Examples
        --------
        >>> from hetcal.plotting import ImprovementDisplay
        >>> display = ImprovementDisplay.from_values([0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.2, 0.9])
        >>> round(display.pearson, 2), round(display.spearman, 2)
        (0.89, 1.0)
        """
        x = np.asarray(hh, dtype=np.float64).ravel()
        gain = np.asarray(improvement, dtype=np.float64).ravel()
        if len(x) != len(gain):
            raise ValueError(
                f"{_NAME}: hh has {len(x)} entries, improvement {len(gain)}. "
                "Pass one of each per experiment."
            )
        names = np.full(len(x), "") if groups is None else np.asarray(groups).astype(str)
        points = pd.DataFrame({"hh": x, "improvement": gain, "group": names}).dropna()
        varied = len(points) > 2 and points["hh"].nunique() > 1
        varied = varied and points["improvement"].nunique() > 1
        return cls(
            points.reset_index(drop=True),
            float(pearsonr(points["hh"], points["improvement"])[0]) if varied else float("nan"),
            float(spearmanr(points["hh"], points["improvement"])[0]) if varied else float("nan"),
        )

    @property
    def slope(self) -> float:
        """Improvement per unit of hidden heterogeneity, by least squares; NaN without variation."""
        if np.isnan(self.pearson):
            return float("nan")
        return float(np.polyfit(self.points["hh"], self.points["improvement"], 1)[0])

    def frame(self) -> pd.DataFrame:
        """Return what is drawn: columns ``hh``, ``improvement``, ``group``."""
        return self.points.copy()

    def plot(
        self,
        ax: Any = None,
        *,
        colors: Sequence[str] | dict[str, str] | None = None,
        markers: dict[str, str] | None = None,
        legend: bool = True,
    ) -> Any:
        """Draw the points and write the correlations into the corner.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure when None.
        colors : sequence of str, or dict from group to colour, optional
        markers : dict from group to marker, optional
        legend : bool, default=True
            Name the groups, if there are several.

        Returns
        -------
        matplotlib Axes
        """
        plt = require_pyplot(f"{_NAME}.plot")
        if ax is None:
            _, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
        ax.axhline(0, color=INK, linewidth=0.8, zorder=0)
        names = list(dict.fromkeys(self.points["group"]))
        for number, name in enumerate(names):
            part = self.points[self.points["group"] == name]
            if isinstance(colors, dict):
                color = colors[name]
            else:
                color = list(colors or PALETTE)[number % len(colors or PALETTE)]
            ax.scatter(
                part["hh"],
                part["improvement"],
                s=16,
                alpha=0.75,
                color=color,
                marker=(markers or {}).get(name, MARKERS[number % len(MARKERS)]),
                linewidth=0.3,
                edgecolor="white",
                label=name,
            )
        if not np.isnan(self.pearson):
            ax.text(
                0.04,
                0.96,
                f"r = {self.pearson:.2f}\nrank r = {self.spearman:.2f}",
                transform=ax.transAxes,
                va="top",
                color=INK,
            )
        ax.set(xlabel="mean hidden heterogeneity", ylabel="improvement in Brier score")
        ax.spines[["top", "right"]].set_visible(False)
        if legend and len(names) > 1:
            ax.legend(frameon=False, loc="lower right", fontsize="small")
        return ax
