"""Losses against the number of calibration items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from hetcal._validation import check_choice
from hetcal.diagnosis.scoring import METRIC_WORDS
from hetcal.plotting.style import INK, axes_to_draw_on, method_style, tidy

_NAME = "LearningCurveDisplay"
_METRICS = {name: METRIC_WORDS[name] for name in ("brier", "log_loss", "accuracy")}
_DODGE = 0.06  # of a doubling, between the error bars of two methods


@dataclass(frozen=True, eq=False)
class LearningCurveDisplay:
    """One metric of several methods at growing calibration sizes.

    Make one with :meth:`from_learning_curve` or :meth:`from_predictions`; :meth:`plot` draws it,
    :meth:`frame` gives the numbers.

    Attributes
    ----------
    rows : DataFrame
        One row per method and size, see :meth:`frame`.
    metric : str
    """

    rows: pd.DataFrame
    metric: str

    @classmethod
    def from_learning_curve(cls, curve: Any, *, metric: str = "brier") -> Self:
        """Take one metric out of a learning curve.

        Parameters
        ----------
        curve : LearningCurve
            The result of :func:`hetcal.learning_curve`.
        metric : {"brier", "log_loss", "accuracy"}, default="brier"

        Examples
        --------
        >>> from hetcal.diagnosis import learning_curve
        >>> from hetcal.datasets import make_hidden_heterogeneity
        >>> data = make_hidden_heterogeneity(200, random_state=0)
        >>> curve = learning_curve(data.X, data.y, y_proba=data.y_proba, methods=["temperature"])
        >>> LearningCurveDisplay.from_learning_curve(curve).frame()["size"].tolist()
        [40, 80, 160]
        """
        check_choice(metric, "metric", _METRICS, _NAME)
        rows = curve.frame()
        rows = rows[rows["metric"] == metric].drop(columns="metric")
        return cls(rows.reset_index(drop=True), metric)

    @classmethod
    def from_predictions(
        cls, X: Any, y: Any, y_proba: Any, *, metric: str = "brier", **options: Any
    ) -> Self:
        """Measure the learning curve on these items, and take one metric out.

        Parameters
        ----------
        X, y, y_proba : array-like
            Labelled items that the classifier was not trained on.
        metric : {"brier", "log_loss", "accuracy"}, default="brier"
        **options
            Of :func:`hetcal.learning_curve`.
        """
        from hetcal.diagnosis import learning_curve

        curve = learning_curve(X, y, y_proba=y_proba, **options)
        return cls.from_learning_curve(curve, metric=metric)

    def frame(self) -> pd.DataFrame:
        """Return what is drawn: ``method``, ``size``, ``value``, ``standard_error``, ``note``."""
        return self.rows.copy()

    def plot(self, ax: Any = None, *, errors: bool = True, dodge: float = _DODGE) -> Any:
        """Draw one line per method.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure when None.
        errors : bool, default=True
            Draw one standard error to either side. All methods are tested on the same items, so
            the errors of two lines go up and down together.
        dodge : float, default=0.06
            How far methods stand apart at one size, in doublings of the size; 0 where sizes are
            close together.

        Returns
        -------
        matplotlib Axes
        """
        ax = axes_to_draw_on(f"{_NAME}.plot", ax, (6.2, 4.2))
        names = list(dict.fromkeys(self.rows["method"]))
        for number, name in enumerate(names):
            part = self.rows[self.rows["method"] == name].dropna(subset=["value"])
            style = method_style(name)
            shift = 2.0 ** (dodge * (number - (len(names) - 1) / 2))
            x, y = part["size"].to_numpy() * shift, part["value"].to_numpy()
            if errors:
                error = part["standard_error"].to_numpy()
                ax.vlines(x, y - error, y + error, color=style.color, alpha=0.4, linewidth=1.4)
            ax.plot(
                x,
                y,
                color=style.color,
                marker=style.marker,
                markersize=6,
                linewidth=1.6,
                linestyle="--" if name == "uncalibrated" else "-",
                label=style.label,
                gid=name,
            )
        sizes = np.unique(self.rows["size"])
        ax.set_xscale("log", base=2)
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        ax.set(xlabel="calibration items", ylabel=_METRICS[self.metric])
        ax.tick_params(colors=INK)
        tidy(ax, grid="y")
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        return ax
