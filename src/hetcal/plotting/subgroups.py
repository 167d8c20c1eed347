"""Sub-populations by name: what the model says of them, and what happened."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from hetcal.heterogeneity import HiddenHeterogeneity, find_subgroups
from hetcal.plotting.style import BLUE, INK, ORANGE, axes_to_draw_on, tidy

_NAME = "SubgroupsDisplay"
_NEEDED = ("rule", "class", "n", "predicted", "observed", "low", "high", "global_map_repairs")
_WIDTH = 44


@dataclass(frozen=True, eq=False)
class SubgroupsDisplay:
    """One row per sub-population: predicted, observed, and the interval of what was observed.

    Make one with :meth:`from_estimator` or :meth:`from_predictions`, or with the constructor from
    any table of :func:`hetcal.heterogeneity.find_subgroups`; :meth:`plot` draws it, :meth:`frame`
    gives the numbers.

    Attributes
    ----------
    rows : DataFrame
        See :func:`hetcal.heterogeneity.find_subgroups`.
    """

    rows: pd.DataFrame

    def __post_init__(self) -> None:
        missing = [name for name in _NEEDED if name not in self.rows.columns]
        if missing:
            raise ValueError(
                f"{_NAME}: the table lacks {', '.join(missing)}. Pass what "
                "hetcal.heterogeneity.find_subgroups or HiddenHeterogeneity.subgroups returns."
            )

    @classmethod
    def from_estimator(cls, estimator: HiddenHeterogeneity, *items: Any, **options: Any) -> Self:
        """Ask a fitted :class:`~hetcal.HiddenHeterogeneity` for sub-populations.

        Parameters
        ----------
        estimator : HiddenHeterogeneity
            Fitted.
        *items, **options
            Of :meth:`hetcal.HiddenHeterogeneity.subgroups`: a table with the features' names,
            ``by`` for groups of one's own choice.
        """
        return cls(estimator.subgroups(*items, **options))

    @classmethod
    def from_predictions(cls, X: Any, y: Any, y_proba: Any, **options: Any) -> Self:
        """Find sub-populations for which the probabilities are wrong.

        Parameters
        ----------
        X, y, y_proba : array-like
            Labelled items that the classifier was not trained on.
        **options
            Of :func:`hetcal.heterogeneity.find_subgroups`.

        Examples
        --------
        >>> from hetcal.datasets import make_hidden_heterogeneity
        >>> from hetcal.plotting import SubgroupsDisplay
        >>> data = make_hidden_heterogeneity(1500, heterogeneity=0.9, random_state=0)
        >>> display = SubgroupsDisplay.from_predictions(data.frame(), data.y, data.y_proba)
        >>> "x0" in display.frame()["rule"][0]
        True
        """
        return cls(find_subgroups(X, y, y_proba=y_proba, **options))

    def frame(self) -> pd.DataFrame:
        """Return what is drawn, from top to bottom."""
        return self.rows.copy()

    def plot(self, ax: Any = None, *, most: int = 12) -> Any:
        """Draw one row per sub-population.

        A ring is what the model says on average, a dot what happened, the line its 95 % interval.
        Blue: no global map repairs it; orange: one does.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure when None.
        most : int, default=12
            Rows, from the top of the table.

        Returns
        -------
        matplotlib Axes
        """
        shown = self.rows.head(most)
        names = [_label(row) for row in shown.to_dict("records")]
        n_lines = sum(1 + name.count("\n") for name in names)
        ax = axes_to_draw_on(f"{_NAME}.plot", ax, (7, 1.4 + 0.27 * max(n_lines, 3)))
        places = np.arange(len(shown))
        for place, row in zip(places, shown.to_dict("records"), strict=True):
            color = ORANGE if row["global_map_repairs"] else BLUE
            ax.plot([row["predicted"], row["observed"]], [place, place], color=color, alpha=0.3)
            ax.hlines(place, row["low"], row["high"], color=color, linewidth=2.5)
            ax.plot(row["observed"], place, "o", color=color, markersize=7, gid="observed")
            ax.plot(row["predicted"], place, "o", color=INK, mfc="white", markersize=7)
        ax.set_yticks(places, names, fontsize="small")
        ax.set(xlim=(-0.02, 1.02), ylim=(max(len(shown), 1) - 0.4, -0.6))
        ax.set_xlabel("ring: the model says\ndot: observed (95 % interval)")
        if shown.empty:
            ax.text(0.5, 0.5, "none found", transform=ax.transAxes, ha="center", color=INK)
        elif shown["global_map_repairs"].any():
            ax.set_title("orange: a global map repairs it", fontsize="small", loc="right")
        ax.tick_params(axis="y", length=0)
        tidy(ax, grid="x", left=False)
        return ax


def _label(row: Mapping[Any, Any]) -> str:
    """Return the rule in short lines, without what matplotlib would take for mathematics."""
    text = f"{row['rule']} ({row['class']}, n\u00a0=\u00a0{row['n']:,})".replace("$", r"\$")
    return "\n".join(textwrap.wrap(text, _WIDTH)[:4])
