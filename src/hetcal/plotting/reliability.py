"""Reliability diagrams: how often it happens against how probable it was said to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from hetcal._typing import Vector
from hetcal._validation import check_choice
from hetcal._validation.groups_by import check_groups_by
from hetcal.data import CalibrationSet
from hetcal.metrics.ece import BINNINGS, bin_of, check_n_bins
from hetcal.metrics.marginals import event_of
from hetcal.metrics.reliability import (
    reliability_bins,
    smooth_reliability,
    with_simultaneous_bands,
)
from hetcal.plotting.style import INK, PALETTE, axes_to_draw_on, require_pyplot, tidy

_NAME = "ReliabilityDisplay"
_N_COUNT_BARS = 20
_CURVES = ("binned", "smooth")
_BANDS = {"pointwise": "", "simultaneous": "_simultaneous"}
_MARKERS = ("o", "s", "^", "D", "v", "P")
_MOST_PANELS, _PANELS_IN_A_ROW = 30, 4


@dataclass(frozen=True, eq=False)
class ReliabilityDisplay:
    """Observed frequency against predicted probability, with bands and counts.

    One curve, or several: a panel per class, and in each panel a curve per model or per group.
    Make one with :meth:`from_predictions` or :meth:`from_estimator`; :meth:`plot` draws it,
    :meth:`frame` gives the numbers.

    Attributes
    ----------
    curve : DataFrame
        All curves, see :meth:`frame`; here always with the columns ``event`` and ``name``.
    counts : DataFrame
        How often each probability was given, in the same manner.
    confidence : float
        Coverage of the bands.
    """

    curve: pd.DataFrame
    counts: pd.DataFrame
    confidence: float = 0.95

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        y_proba: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        pos_label: Any = None,
        per_class: bool = False,
        by: Any = None,
        curve: str = "binned",
        n_bins: int = 15,
        binning: str = "equal-mass",
        confidence: float = 0.95,
        name: str | None = None,
    ) -> Self:
        r"""Compute the diagram from labels and probabilities.

        In bin b with mean prediction :math:`\bar s_b` and observed frequency :math:`\bar y_b`, the
        point is :math:`(\bar s_b, \bar y_b)` and the band is Wilson's interval for
        :math:`\bar y_b`. Weights enter it through the effective size
        :math:`(\sum w)^2 / \sum w^2`, and so do groups.

        Parameters
        ----------
        y : array-like of shape (n,)
            True labels of any kind.
        y_proba : array-like of shape (n, K), or (n,) or (n, 1) for two classes; or dict of these
            Probabilities; a single column is the probability of the second class. A dict of name
            to probabilities overlays several models.
        classes : array-like of shape (K,), optional
            Column order of ``y_proba``; the sorted labels of ``y`` when None.
        sample_weight : array-like of shape (n,), optional
            Weight of each item.
        groups : array-like of shape (n,) or (n, n_columns), optional
            Rows of one group are not independent, which makes bands wider.
        pos_label : label, optional
            The class whose probability is shown. None: the second of two classes; with more
            classes, whichever class is predicted, and how often it is right.
        per_class : bool, default=False
            A panel for each class instead.
        by : array-like of shape (n,), optional
            Names of groups to overlay, a curve for each.
        curve : {"binned", "smooth"}, default="binned"
            Points in bins; or a curve without bins, by the kernel of
            :func:`hetcal.metrics.smooth_calibration_error`, drawn where there are 20 items or more.
        n_bins : int, default=15
            Few bins hide errors that change sign within a bin; many have wide bands.
        binning : {"equal-mass", "equal-width"}, default="equal-mass"
            Bins of equal weight (equal scores share a bin), or of equal width in [0, 1].
        confidence : float in (0, 1), default=0.95
            Coverage of the bands: of each point by itself (pointwise), or of all points of a curve
            together (simultaneous).
        name : str, optional
            Legend entry of a single curve.

        Returns
        -------
        ReliabilityDisplay

        Examples
        --------
        Of ten items said to be 80 % probable, six happened.

        >>> from hetcal.plotting import ReliabilityDisplay
        >>> y = [1] * 6 + [0] * 4
        >>> display = ReliabilityDisplay.from_predictions(y, [0.8] * 10)
        >>> display.frame()[["predicted", "observed", "low", "high", "count"]].round(2)
           predicted  observed   low  high  count
        0        0.8       0.6  0.31  0.83     10

        Two models:

        >>> both = {"before": [0.8] * 10, "after": [0.6] * 10}
        >>> ReliabilityDisplay.from_predictions(y, both).frame()[["name", "predicted", "observed"]]
             name  predicted  observed
        0  before        0.8       0.6
        1   after        0.6       0.6
        """
        check_choice(curve, "curve", _CURVES, _NAME)
        check_choice(binning, "binning", BINNINGS, _NAME)
        check_n_bins(n_bins, _NAME)
        if not 0 < confidence < 1:
            raise ValueError(
                f"{_NAME}: confidence must lie between 0 and 1 (for example 0.95); "
                f"got {confidence!r}."
            )
        several = isinstance(y_proba, Mapping)
        models = y_proba if several else {name: y_proba}
        _check_layout(models, several, per_class, by, pos_label)
        scored = {
            own: CalibrationSet.to_score(
                y,
                P,
                classes=classes,
                sample_weight=sample_weight,
                groups=groups,
                name=f"y_proba[{own!r}]" if several else "y_proba",
            )
            for own, P in models.items()
        }
        curves, counts = [], []
        for one in _curves(scored, len(y), pos_label, per_class, by):
            if curve == "smooth":
                table = smooth_reliability(one.score, one.outcome, one.items, confidence)
            else:
                table = _binned(one, binning, n_bins, confidence)
            curves.append(one.named(table))
            counts.append(one.named(_count_bars(one.score, one.items.weights)))
        return cls(
            curve=pd.concat(curves, ignore_index=True),
            counts=pd.concat(counts, ignore_index=True),
            confidence=confidence,
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

    @property
    def events(self) -> list[str]:
        """What is predicted, panel by panel."""
        return list(dict.fromkeys(self.curve["event"]))

    @property
    def names(self) -> list[str | None]:
        """Names of the curves of a panel."""
        return list(dict.fromkeys(self.curve["name"]))

    def frame(self, part: str = "curve") -> pd.DataFrame:
        """Return what is drawn, as a table.

        Parameters
        ----------
        part : {"curve", "counts"}, default="curve"
            ``"curve"``: columns ``predicted`` (mean prediction of the bin, or place on the smooth
            curve), ``observed`` (frequency), ``low``, ``high`` (pointwise band),
            ``low_simultaneous``, ``high_simultaneous`` (band of the whole curve); for bins
            ``smallest``, ``largest`` (prediction in the bin), ``count`` (items) and ``weight``;
            for smooth curves ``share`` of the weight around the place. ``"counts"``: columns
            ``left``, ``right``, ``count``, ``weight`` and ``share`` of the total weight, the bars
            along the bottom. Several curves have the columns ``event`` (the panel) or ``name``.

        Returns
        -------
        DataFrame
        """
        check_choice(part, "part", ("curve", "counts"), f"{_NAME}.frame")
        table = self.curve if part == "curve" else self.counts
        single = {"event": len(self.events) == 1, "name": len(self.names) == 1}
        return table.drop(columns=[column for column, only in single.items() if only])

    def plot(
        self,
        ax: Any = None,
        *,
        color: str | None = None,
        marker: str | None = None,
        name: str | None = None,
        band: str | None = "pointwise",
        counts: bool = True,
        reference: bool = True,
    ) -> Any:
        """Draw the diagram; several can share one ``ax``.

        Parameters
        ----------
        ax : matplotlib Axes, or array of as many Axes as there are panels, optional
            Where to draw; a new figure when None.
        color, marker, name : str, optional
            Of a single curve; None takes the next colour of a palette that the colour-blind can
            use, and the curve's own name.
        band : {"pointwise", "simultaneous", None}, default="pointwise"
            Bands that hold point by point, or for all points of a curve together: only of these
            may one say that the curve leaves the diagonal *somewhere*.
        counts, reference : bool, default=True
            Draw the bars of how often each probability was given, and the diagonal.

        Returns
        -------
        matplotlib Axes, or array of Axes where there are several panels
        """
        if band is not None:
            check_choice(band, "band", _BANDS, f"{_NAME}.plot")
        if len(self.names) > 1 and (color or marker or name):
            raise ValueError(
                f"{_NAME}.plot: color, marker and name are those of a single curve; this display "
                f"has {len(self.names)} in a panel. Leave them out."
            )
        axes = self._axes(ax)
        for place, (panel, event) in enumerate(zip(axes, self.events, strict=True)):
            drawn = sum(line.get_gid() == _NAME for line in panel.lines)
            if reference and not drawn:
                panel.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
            for number, own in enumerate(self.names, start=drawn):
                style = {
                    "color": color or PALETTE[number % len(PALETTE)],
                    "marker": marker or _MARKERS[(number - drawn) % len(_MARKERS)],
                    "label": name or own,
                }
                self._draw(panel, event, own, style, band, counts)
            self._label(panel, event, counts, legend=place == 0 and bool(name or any(self.names)))
        return axes[0] if len(axes) == 1 else np.array(axes)

    def _axes(self, ax: Any) -> list[Any]:
        n_panels = len(self.events)
        if n_panels == 1:
            return [axes_to_draw_on(f"{_NAME}.plot", ax, (5, 5))]
        if ax is None:
            plt = require_pyplot(f"{_NAME}.plot")
            n_rows = -(-n_panels // _PANELS_IN_A_ROW)
            n_columns = -(-n_panels // n_rows)
            size = (3.4 * n_columns, 3.6 * n_rows)
            figure, grid = plt.subplots(
                n_rows, n_columns, figsize=size, layout="constrained", squeeze=False
            )
            for empty in grid.ravel()[n_panels:]:
                figure.delaxes(empty)
            for inner in grid[:, 1:].ravel():
                inner.yaxis.label.set_visible(False)
            return list(grid.ravel()[:n_panels])
        given = list(np.ravel(ax))
        if len(given) != n_panels:
            raise ValueError(
                f"{_NAME}.plot: this display has {n_panels} panels, and ax holds {len(given)}. "
                "Pass ax=None, or one Axes for each panel."
            )
        return given

    def _draw(
        self,
        ax: Any,
        event: str,
        name: str | None,
        style: dict[str, Any],
        band: str | None,
        counts: bool,
    ) -> None:
        curve, bars = (_part(table, event, name) for table in (self.curve, self.counts))
        smooth, color = "share" in curve, style["color"]
        if counts:
            edges = [*bars["left"], bars["right"].iloc[-1]]
            ax.stairs(bars["share"], edges, fill=True, color=color, alpha=0.12, zorder=0)
            ax.stairs(bars["share"], edges, color=color, alpha=0.5, linewidth=0.8, zorder=0)
        x = curve["predicted"]
        if band is not None:
            low, high = (curve[f"{end}{_BANDS[band]}"] for end in ("low", "high"))
            if smooth:
                ax.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)
            else:
                ax.vlines(x, low, high, color=color, alpha=0.45)
        marker = None if smooth else style["marker"]
        ax.plot(
            x,
            curve["observed"],
            color=color,
            marker=marker,
            markersize=5,
            linewidth=1.5,
            label=style["label"],
            gid=_NAME,
        )

    def _label(self, ax: Any, event: str, counts: bool, *, legend: bool) -> None:
        ax.set(
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            xlabel=f"predicted probability {event}",
            ylabel="observed frequency" + (" (bars: share of items)" if counts else ""),
            aspect="equal",
        )
        tidy(ax)
        if legend:
            ax.legend(frameon=False, loc="upper left")


class _Curve(NamedTuple):
    """What a curve is made of."""

    name: str | None
    event: str
    score: Vector
    outcome: Vector
    items: CalibrationSet

    def named(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table that says which curve it belongs to."""
        table.insert(0, "event", self.event)
        table.insert(1, "name", pd.Series([self.name] * len(table), dtype=object))
        return table


def _curves(
    scored: dict[str | None, CalibrationSet],
    n_rows: int,
    pos_label: Any,
    per_class: bool,
    by: Any,
) -> Iterator[_Curve]:
    """Yield panel by panel the curves of all models, or of all groups."""
    some = next(iter(scored.values()))
    if per_class and some.n_classes > _MOST_PANELS:
        raise ValueError(
            f"{_NAME}: per_class would draw {some.n_classes} panels, and at most {_MOST_PANELS} "
            "are drawn. Pass pos_label for one class, or neither for the predicted one."
        )
    parts = scored if by is None else _divided(some, by, n_rows)
    for label in some.classes.tolist() if per_class else [pos_label]:
        for name, items in parts.items():
            score, outcome, event = event_of(items, label, _NAME)
            yield _Curve(name, event, score, outcome, items)


def _divided(items: CalibrationSet, by: Any, n_rows: int) -> dict[str | None, CalibrationSet]:
    groupings = check_groups_by(by, n_rows, name="by", caller=_NAME)
    if len(groupings) > 1:
        raise ValueError(
            f"{_NAME}: by has {len(groupings)} columns. Pass one; joined columns show combinations."
        )
    [grouping] = groupings
    codes = grouping.codes[items.rows]
    inside = {group: codes == j for j, group in enumerate(grouping.groups)}
    return {group: items.take(rows) for group, rows in inside.items() if rows.any()}


def _binned(one: _Curve, binning: str, n_bins: int, confidence: float) -> pd.DataFrame:
    bins = bin_of(one.score, one.items.weights, binning, n_bins)
    parts = (one.score, one.outcome, bins, one.items, confidence)
    return with_simultaneous_bands(reliability_bins(*parts), *parts)


def _part(table: pd.DataFrame, event: str, name: str | None) -> pd.DataFrame:
    of_name = table["name"].isna() if name is None else table["name"] == name
    return table[(table["event"] == event) & of_name]


def _check_layout(
    models: Mapping[Any, Any], several: bool, per_class: bool, by: Any, pos_label: Any
) -> None:
    if not models:
        raise ValueError(f"{_NAME} got an empty dict of models. Pass at least one y_proba.")
    if several and by is not None:
        raise ValueError(
            f"{_NAME}: by overlays groups and a dict overlays models; one diagram shows one of "
            "them. Pass one model, or by=None."
        )
    if per_class and pos_label is not None:
        raise ValueError(
            f"{_NAME}: per_class shows every class and pos_label one of them. Pass one of the two."
        )


def _count_bars(score: Vector, weight: Vector) -> pd.DataFrame:
    """Return how many items, and how much weight, fall into each of twenty equal steps."""
    edges = np.linspace(0, 1, _N_COUNT_BARS + 1)
    count, _ = np.histogram(score, edges)
    mass, _ = np.histogram(score, edges, weights=weight)
    table = {"left": edges[:-1], "right": edges[1:], "count": count, "weight": mass}
    return pd.DataFrame(table | {"share": mass / mass.sum()})
