"""Reliability diagrams: how often it happens against how probable it was said to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from hetcal._typing import Vector
from hetcal._validation import check_choice
from hetcal.data import CalibrationSet
from hetcal.metrics.ece import BINNINGS, bin_of, check_n_bins
from hetcal.metrics.marginals import event_of
from hetcal.metrics.reliability import reliability_bins
from hetcal.plotting.style import INK, PALETTE, axes_to_draw_on, tidy

_NAME = "ReliabilityDisplay"
_N_COUNT_BARS = 20


@dataclass(frozen=True)
class ReliabilityDisplay:
    """Observed frequency against predicted probability, in bins, with bands and counts.

    Make one with :meth:`from_predictions` or :meth:`from_estimator`; :meth:`plot` draws it,
    :meth:`frame` gives the numbers.

    Attributes
    ----------
    curve : DataFrame
        One row per bin that holds items, see :meth:`frame`.
    counts : DataFrame
        How often each probability was given, see :meth:`frame`.
    event : str
        What is predicted; the label of the axes.
    confidence : float
        Coverage of the bands.
    name : str or None
        Legend entry.
    """

    curve: pd.DataFrame
    counts: pd.DataFrame
    event: str
    confidence: float = 0.95
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        y_proba: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        n_bins: int = 15,
        binning: str = "equal-mass",
        confidence: float = 0.95,
        name: str | None = None,
    ) -> Self:
        r"""Compute the diagram from labels and probabilities.

        In bin b with mean prediction :math:`\bar s_b` and observed frequency :math:`\bar y_b`, the
        point is :math:`(\bar s_b, \bar y_b)` and the band is Wilson's interval for
        :math:`\bar y_b`. Weights enter it through the effective size
        :math:`(\sum w)^2 / \sum w^2`.

        Parameters
        ----------
        y : array-like of shape (n,)
            True labels of any kind.
        y_proba : array-like of shape (n, K), or (n,) or (n, 1) for two classes
            Probabilities; a single column is the probability of the second class.
        classes : array-like of shape (K,), optional
            Column order of ``y_proba``; the sorted labels of ``y`` when None.
        sample_weight : array-like of shape (n,), optional
            Weight of each item.
        pos_label : label, optional
            The class whose probability is shown. None: the second of two classes; with more
            classes, whichever class is predicted, and how often it is right.
        n_bins : int, default=15
            Few bins hide errors that change sign within a bin; many have wide bands.
        binning : {"equal-mass", "equal-width"}, default="equal-mass"
            Bins of equal weight (equal scores share a bin), or of equal width in [0, 1].
        confidence : float in (0, 1), default=0.95
            Coverage of the band, bin by bin.
        name : str, optional
            Legend entry.

        Returns
        -------
        ReliabilityDisplay

        Examples
        --------
        Of ten items said to be 80 % probable, six happened.

        >>> from hetcal.plotting import ReliabilityDisplay
        >>> display = ReliabilityDisplay.from_predictions([1] * 6 + [0] * 4, [0.8] * 10)
        >>> display.frame()[["predicted", "observed", "low", "high", "count"]].round(2)
           predicted  observed   low  high  count
        0        0.8       0.6  0.31  0.83     10
        """
        check_choice(binning, "binning", BINNINGS, _NAME)
        check_n_bins(n_bins, _NAME)
        if not 0 < confidence < 1:
            raise ValueError(
                f"{_NAME}: confidence must lie between 0 and 1 (for example 0.95); "
                f"got {confidence!r}."
            )
        items = CalibrationSet.to_score(y, y_proba, classes=classes, sample_weight=sample_weight)
        score, outcome, event = event_of(items, pos_label, _NAME)
        bins = bin_of(score, items.weights, binning, n_bins)
        return cls(
            curve=reliability_bins(score, outcome, bins, items, confidence),
            counts=_count_bars(score, items.weights),
            event=event,
            confidence=confidence,
            name=name,
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        **options: Any,
    ) -> Self:
        """Compute the diagram of what a classifier or calibrator says about labelled items.

        Parameters
        ----------
        estimator : classifier or calibrator
            Fitted; has ``predict_proba`` and ``classes_``.
        X : array-like or table of shape (n, d)
            Items that it was not trained on.
        y : array-like of shape (n,)
            Their labels.
        y_proba, logits : array-like of shape (n, K), optional
            For a calibrator: the classifier's output on these items.
        **options
            Of :meth:`from_predictions`.
        """
        given = {"y_proba": y_proba, "logits": logits}
        said = estimator.predict_proba(X, **{k: v for k, v in given.items() if v is not None})
        return cls.from_predictions(y, said, classes=estimator.classes_, **options)

    def frame(self, part: str = "curve") -> pd.DataFrame:
        """Return what is drawn, as a table.

        Parameters
        ----------
        part : {"curve", "counts"}, default="curve"
            ``"curve"``: columns ``predicted`` (mean prediction of the bin), ``observed``
            (frequency), ``low``, ``high`` (band), ``smallest``, ``largest`` (prediction in the
            bin), ``count`` (items) and ``weight``. ``"counts"``: columns ``left``, ``right``,
            ``count``, ``weight`` and ``share`` of the total weight, the bars along the bottom.

        Returns
        -------
        DataFrame
        """
        check_choice(part, "part", ("curve", "counts"), f"{_NAME}.frame")
        return (self.curve if part == "curve" else self.counts).copy()

    def plot(
        self,
        ax: Any = None,
        *,
        color: str | None = None,
        marker: str = "o",
        name: str | None = None,
        band: bool = True,
        counts: bool = True,
        reference: bool = True,
    ) -> Any:
        """Draw the diagram; several can share one ``ax``.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure when None.
        color, marker : str, optional
            Of the points; None takes the next colour of a palette that the colour-blind can use.
        name : str, optional
            Legend entry instead of the display's own.
        band, counts, reference : bool, default=True
            Draw the bands, the bars of how often each probability was given, and the diagonal.

        Returns
        -------
        matplotlib Axes
        """
        ax = axes_to_draw_on(f"{_NAME}.plot", ax, (5, 5))
        drawn = sum(line.get_gid() == _NAME for line in ax.lines)
        color = color or PALETTE[drawn % len(PALETTE)]
        if counts:
            self._draw_counts(ax, color)
        if reference and not drawn:
            ax.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        curve = self.curve
        if band:
            ax.vlines(curve["predicted"], curve["low"], curve["high"], color=color, alpha=0.45)
        ax.plot(
            curve["predicted"],
            curve["observed"],
            color=color,
            marker=marker,
            markersize=5,
            linewidth=1.5,
            label=name or self.name,
            gid=_NAME,
        )
        ax.set(
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            xlabel=f"predicted probability {self.event}",
            ylabel="observed frequency" + (" (bars: share of items)" if counts else ""),
            aspect="equal",
        )
        tidy(ax)
        if name or self.name:
            ax.legend(frameon=False, loc="upper left")
        return ax

    def _draw_counts(self, ax: Any, color: str) -> None:
        bars = self.counts
        edges = [*bars["left"], bars["right"].iloc[-1]]
        ax.stairs(bars["share"], edges, fill=True, color=color, alpha=0.12, zorder=0)
        ax.stairs(bars["share"], edges, color=color, alpha=0.5, linewidth=0.8, zorder=0)


def _count_bars(score: Vector, weight: Vector) -> pd.DataFrame:
    """Return how many items, and how much weight, fall into each of twenty equal steps."""
    edges = np.linspace(0, 1, _N_COUNT_BARS + 1)
    count, _ = np.histogram(score, edges)
    mass, _ = np.histogram(score, edges, weights=weight)
    table = {"left": edges[:-1], "right": edges[1:], "count": count, "weight": mass}
    return pd.DataFrame(table | {"share": mass / mass.sum()})
