"""Hidden heterogeneity along the probability, with its two parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from hetcal._typing import Vector
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.plotting.style import BLUE, INK, ORANGE, axes_to_draw_on, tidy

_NAME = "HeterogeneityCurveDisplay"
_N_BINS = 12
_SURE = 0.05
_PARTS = {
    "hh": ("all of it", INK, "-"),
    "hh_global": ("a global map repairs", ORANGE, "--"),
    "hh_local": ("only a local map repairs", BLUE, "-"),
}
_COLUMNS = ["hh", "hh_global", "hh_local", "standard_error", "q_value", "n_neighbors"]


@dataclass(frozen=True, eq=False)
class HeterogeneityCurveDisplay:
    """How much hidden heterogeneity there is at each probability, and who could repair it.

    Make one with :meth:`from_estimator` or :meth:`from_predictions`; :meth:`plot` draws it,
    :meth:`frame` gives the numbers.

    Attributes
    ----------
    rows : DataFrame
        One row per place, see :meth:`frame`.
    event : str
        What the probability is of; the label of the axis.
    """

    rows: pd.DataFrame
    event: str

    @classmethod
    def from_estimator(
        cls, estimator: HiddenHeterogeneity, y_proba: Any, *, n_points: int = 49
    ) -> Self:
        """Read the curve off a fitted :class:`~hetcal.HiddenHeterogeneity`.

        Parameters
        ----------
        estimator : HiddenHeterogeneity
            Fitted.
        y_proba : array-like of shape (m, K)
            Predictions at which to look, for example those of the calibration items. The curve has
            points only where there are some.
        n_points : int, default=49
            Two classes: places along the probability of the second class. More classes: ignored;
            the means over items of about the same confidence are shown.

        Examples
        --------
        >>> from hetcal import HiddenHeterogeneity
        >>> from hetcal.datasets import make_hidden_heterogeneity
        >>> from hetcal.plotting import HeterogeneityCurveDisplay
        >>> data = make_hidden_heterogeneity(300, heterogeneity=1.0, random_state=0)
        >>> hidden = HiddenHeterogeneity().fit(data.X, data.y, y_proba=data.y_proba)
        >>> display = HeterogeneityCurveDisplay.from_estimator(hidden, data.y_proba, n_points=5)
        >>> display.frame().columns.tolist()[:4]
        ['p', 'hh', 'hh_global', 'hh_local']
        """
        P = np.asarray(y_proba, dtype=np.float64)
        if P.ndim != 2 or P.shape[0] == 0:
            raise ValueError(
                f"{_NAME}: y_proba must have one row per prediction and one column per class; got "
                f"shape {P.shape}."
            )
        if P.shape[1] == 2:
            from hetcal.diagnosis.summaries import near_grid

            at = near_grid(P[:, 1], n_points)
            at = at if at.size else P[:, 1].min(keepdims=True)
            found = estimator.frame(np.column_stack([1 - at, at]))
            event = f"probability of class {estimator.classes_.tolist()[1]}"
            rows = found[_COLUMNS].assign(p=at)
        else:
            event = "probability of the predicted class"
            rows = _by_confidence(estimator.frame(P), P.max(axis=1))
        rows = rows[rows["hh"].notna()]
        return cls(rows[["p", *_COLUMNS]].reset_index(drop=True), event)

    @classmethod
    def from_predictions(
        cls, X: Any, y: Any, y_proba: Any, *, n_points: int = 49, **settings: Any
    ) -> Self:
        """Measure hidden heterogeneity, and read the curve off.

        Parameters
        ----------
        X, y, y_proba : array-like
            Labelled items that the classifier was not trained on.
        n_points : int, default=49
            As in :meth:`from_estimator`.
        **settings
            Of :class:`~hetcal.HiddenHeterogeneity`.
        """
        hidden = HiddenHeterogeneity(**settings).fit(X, y, y_proba=y_proba)
        return cls.from_estimator(hidden, y_proba, n_points=n_points)

    def frame(self) -> pd.DataFrame:
        """Return what is drawn, in order of ``p``.

        Columns ``p``, ``hh``, ``hh_global``, ``hh_local``, ``standard_error`` (of ``hh``),
        ``q_value`` (that nothing is hidden there; missing for means over several places) and
        ``n_neighbors``, as in :meth:`hetcal.HiddenHeterogeneity.frame`.
        """
        return self.rows.copy()

    def plot(self, ax: Any = None, *, parts: bool = True, band: bool = True) -> Any:
        """Draw the curve.

        Filled dots are places where something is hidden for sure (``q_value`` below 0.05).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure when None.
        parts : bool, default=True
            Draw what a global map repairs, and what only a local one repairs, too.
        band : bool, default=True
            Draw a 95 % interval around the whole, place by place.

        Returns
        -------
        matplotlib Axes
        """
        ax = axes_to_draw_on(f"{_NAME}.plot", ax, (6, 3.8))
        rows = self.rows
        ax.axhline(0, color=INK, linewidth=0.8, zorder=0)
        if band:
            half = 1.96 * rows["standard_error"]
            low, high = rows["hh"] - half, rows["hh"] + half
            ax.fill_between(rows["p"], low, high, color=INK, alpha=0.12, linewidth=0)
        for name in _PARTS if parts else ["hh"]:
            label, color, line = _PARTS[name]
            ax.plot(rows["p"], rows[name], color=color, linestyle=line, label=label, gid=name)
        sure = (rows["q_value"] < _SURE).to_numpy()
        ax.plot(rows["p"][~sure], rows["hh"][~sure], "o", color=INK, mfc="white", ms=4)
        ax.plot(rows["p"][sure], rows["hh"][sure], "o", color=INK, ms=4)
        ax.set(xlim=(-0.02, 1.02), xlabel=self.event, ylabel="hidden heterogeneity")
        tidy(ax)
        if parts:
            ax.legend(frameon=False, fontsize="small")
        return ax


def _by_confidence(found: pd.DataFrame, confidence: Vector) -> pd.DataFrame:
    """Return means over items of about the same confidence; a mean has no q-value."""
    known = found["hh"].notna().to_numpy()
    table = found.loc[known, _COLUMNS].assign(p=confidence[known])
    bins = np.unique(np.quantile(confidence, np.linspace(0, 1, _N_BINS + 1)))[1:-1]
    means = table.groupby(np.searchsorted(bins, table["p"].to_numpy(), side="right")).mean()
    return means.assign(q_value=np.nan)
