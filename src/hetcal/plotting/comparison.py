"""Methods side by side: what each brings, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from hetcal._validation import check_choice
from hetcal.plotting.style import INK, axes_to_draw_on, method_style, tidy

_NAME = "ComparisonDisplay"
_METRICS = {
    "brier": "Brier score (lower is better)",
    "log_loss": "log loss (lower is better)",
    "ece": "expected calibration error (lower is better)",
    "accuracy": "accuracy (higher is better)",
}
_GREY = "#8A8A8A"
_GAP = 0.9  # rows between calibrators and retrained models


@dataclass(frozen=True, eq=False)
class ComparisonDisplay:
    """One metric of all methods of a comparison, the best on top.

    Make one with :meth:`from_comparison` or :meth:`from_predictions`; :meth:`plot` draws it,
    :meth:`frame` gives the numbers.

    Attributes
    ----------
    rows : DataFrame
        One row per method, see :meth:`frame`.
    metric : str
    """

    rows: pd.DataFrame
    metric: str

    @classmethod
    def from_comparison(cls, comparison: Any, *, metric: str = "brier") -> Self:
        """Take one metric out of a comparison.

        Parameters
        ----------
        comparison : Comparison
            The result of :func:`hetcal.compare`.
        metric : {"brier", "log_loss", "ece", "accuracy"}, default="brier"

        Examples
        --------
        >>> from hetcal.diagnosis import compare
        >>> from hetcal.datasets import make_hidden_heterogeneity
        >>> data = make_hidden_heterogeneity(200, random_state=0)
        >>> comparison = compare(data.X, data.y, y_proba=data.y_proba, baselines=False,
        ...                      methods=["temperature", "isotonic"], n_repeats=1)
        >>> ComparisonDisplay.from_comparison(comparison).frame()["method"].tolist()
        ['temperature', 'isotonic']
        """
        check_choice(metric, "metric", _METRICS, _NAME)
        rows = comparison.frame()
        rows = rows[rows["metric"] == metric].drop(columns="metric")
        order = rows["value"] * (-1 if metric == "accuracy" else 1)
        # Calibrators first, retrained models apart; failures last in their block.
        keys = pd.DataFrame({"kind": rows["kind"] == "baseline", "order": order})
        return cls(
            rows.loc[keys.sort_values(["kind", "order"]).index].reset_index(drop=True), metric
        )

    @classmethod
    def from_predictions(
        cls, X: Any, y: Any, y_proba: Any, *, metric: str = "brier", **options: Any
    ) -> Self:
        """Compare all methods on these items, and take one metric out.

        Parameters
        ----------
        X, y, y_proba : array-like
            Labelled items that the classifier was not trained on.
        metric : {"brier", "log_loss", "ece", "accuracy"}, default="brier"
        **options
            Of :func:`hetcal.compare`.
        """
        from hetcal.diagnosis import compare

        return cls.from_comparison(compare(X, y, y_proba=y_proba, **options), metric=metric)

    def frame(self) -> pd.DataFrame:
        """Return what is drawn, from top to bottom.

        Columns as in :meth:`hetcal.diagnosis.Comparison.frame`, of one metric.
        """
        return self.rows.copy()

    def plot(self, ax: Any = None) -> Any:
        """Draw one row per method.

        The thin line is one standard error of the value to either side; the thick line is one
        standard error of the paired difference to the best. A thick line that reaches the dotted
        one is a tie. Names in bold come within their own standard error of the best (the paper's
        bold print). Plain retrained models are hollow and stand apart.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure when None.

        Returns
        -------
        matplotlib Axes
        """
        places = self._places()
        ax = axes_to_draw_on(f"{_NAME}.plot", ax, (6.8, 1.3 + 0.3 * (places.max() + 1)))
        known = self.rows.dropna(subset=["value"])
        if not known.empty:
            best = known.loc[known["best"], "value"].iloc[0]
            ax.axvline(best, color=INK, linewidth=1, linestyle=(0, (1, 2)), zorder=0)
        for place, row in zip(places, self.rows.itertuples(), strict=True):
            self._draw_row(ax, place, row)
        ax.set_yticks(places, [method_style(name).label for name in self.rows["method"]])
        marks = zip(self.rows["within_one_se"], self.rows["value"].isna(), strict=True)
        for label, (near, failed) in zip(ax.get_yticklabels(), marks, strict=True):
            label.set_fontweight("bold" if near else "normal")
            label.set_color(_GREY if failed else INK)
        self._separate(ax, places)
        ax.set(ylim=(places.max() + 0.7, -0.7), xlabel=_METRICS[self.metric])
        ax.tick_params(axis="y", length=0)
        tidy(ax, grid="x", left=False)
        ax.set_title(
            "thin: standard error; thick: of the difference to the best; bold: within one",
            fontsize=8.5,
            color=_GREY,
            loc="right",
        )
        return ax

    def _places(self) -> np.ndarray:
        return np.arange(len(self.rows)) + _GAP * (self.rows["kind"] == "baseline").to_numpy()

    def _draw_row(self, ax: Any, place: float, row: Any) -> None:
        if np.isnan(row.value):
            ax.text(
                0.01,
                place,
                "failed, see the note",
                transform=ax.get_yaxis_transform(),
                color=_GREY,
                fontsize=9,
                style="italic",
                va="center",
            )
            return
        style = method_style(row.method)
        value, error, paired = row.value, row.standard_error, row.difference_se
        ax.hlines(place, value - error, value + error, color=style.color, linewidth=1.2, alpha=0.6)
        ax.hlines(place, value - paired, value + paired, color=style.color, linewidth=5, alpha=0.45)
        ax.plot(
            value,
            place,
            marker="D" if row.best else "o",
            markersize=8 if row.best else 6.5,
            color=style.color,
            markerfacecolor="white" if row.kind == "baseline" else style.color,
            markeredgewidth=1.6,
            linestyle="none",
            gid=row.method,
        )
        if row.best:
            ax.annotate(
                "best",
                (value, place),
                (6, 6),
                textcoords="offset points",
                fontsize=8.5,
                color=INK,
            )

    def _separate(self, ax: Any, places: np.ndarray) -> None:
        baseline = (self.rows["kind"] == "baseline").to_numpy()
        if not baseline.any() or baseline.all():
            return
        border = (places[~baseline].max() + places[baseline].min()) / 2
        ax.axhline(border, color="#BBBBBB", linewidth=0.8)
        ax.text(
            1.0,
            border + 0.1,
            "retrained on the calibration items",
            transform=ax.get_yaxis_transform(),
            ha="right",
            va="top",
            fontsize=8.5,
            color=_GREY,
        )
