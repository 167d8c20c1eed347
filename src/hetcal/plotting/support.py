"""How much calibration data stands behind each prediction, as a stacked histogram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal.plotting.style import BLUE, INK, PALETTE, VERMILION, axes_to_draw_on, tidy

_NAME = "SupportDisplay"
_COLORS = (BLUE, VERMILION, *(color for color in PALETTE if color not in (BLUE, VERMILION)))


@dataclass(frozen=True, eq=False)
class SupportDisplay:
    """Histogram of calibration support, stacked by group of items.

    Make one with :meth:`from_support` or :meth:`from_estimator`; :meth:`plot` draws it,
    :meth:`frame` gives the numbers.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins.
    counts : dict of ndarray of shape (n_bins,)
        Items per bin, by group, in the order in which they are stacked.
    median : float
        Of all items.
    """

    edges: NDArray[np.float64]
    counts: dict[str, NDArray[np.int64]]
    median: float

    @classmethod
    def from_support(
        cls,
        support: Any,
        *,
        groups: Any = None,
        order: Sequence[str] | None = None,
        n_bins: int = 25,
        largest: float | None = None,
    ) -> Self:
        """Count items by support.

        Parameters
        ----------
        support : array-like of shape (n,)
            What ``calibrator.support(X, y_proba=P)`` gives.
        groups : array-like of shape (n,), optional
            Which group each item is of (old and new, expected and strange); stacked.
        order : sequence of str, optional
            Groups from bottom to top; sorted when None. A group may be empty.
        n_bins : int, default=25
            Bins of equal width from 0 to the largest support.
        largest : float, optional
            Right end of the last bin, to give several histograms one scale; nothing may lie beyond
            it.

        Examples
        --------
        >>> from hetcal.plotting import SupportDisplay
        >>> display = SupportDisplay.from_support([1, 2, 9], groups=["a", "b", "b"], n_bins=3)
        >>> display.counts
        {'a': array([1, 0, 0]), 'b': array([1, 0, 1])}
        """
        values = np.asarray(support, dtype=np.float64).ravel()
        if len(values) == 0 or not np.isfinite(values).all() or values.min() < 0:
            raise ValueError(
                f"{_NAME}: support must be finite numbers of at least 0, one per item; got "
                f"{len(values)} values. Pass what calibrator.support(X, y_proba=P) returns."
            )
        names = np.full(len(values), "items") if groups is None else np.asarray(groups).astype(str)
        if len(names) != len(values):
            raise ValueError(
                f"{_NAME}: groups has {len(names)} entries for {len(values)} items. "
                "Pass one group per item."
            )
        top = float(values.max()) if largest is None else float(largest)
        if values.max() > top:
            raise ValueError(
                f"{_NAME}: largest={largest} lies below the largest support {values.max():g}. "
                "Raise it, or leave it out."
            )
        edges = np.linspace(0, top or 1.0, n_bins + 1)
        order = sorted(set(names.tolist())) if order is None else list(order)
        missing = set(names.tolist()) - set(order)
        if missing:
            raise ValueError(f"{_NAME}: order leaves out {sorted(missing)}. Name every group.")
        counts = {str(name): np.histogram(values[names == name], edges)[0] for name in order}
        return cls(edges, counts, float(np.median(values)))

    @classmethod
    def from_estimator(
        cls, calibrator: Any, X: Any, *, groups: Any = None, n_bins: int = 25, **output: Any
    ) -> Self:
        """Count items by the support that a fitted calibrator has for them.

        Parameters
        ----------
        calibrator : SimilarityCalibrator or HybridCalibrator
            Fitted.
        X : array-like or table of shape (n, d)
            New items.
        groups, n_bins
            As in :meth:`from_support`.
        **output
            The classifier's output on these items, ``y_proba=`` or ``logits=``.
        """
        support = calibrator.support(X, **output)
        return cls.from_support(support, groups=groups, n_bins=n_bins)

    @property
    def peak(self) -> float:
        """Middle of the fullest bin, over all groups."""
        fullest = int(np.sum(list(self.counts.values()), axis=0).argmax())
        return float(self.edges[fullest : fullest + 2].mean())

    def frame(self) -> pd.DataFrame:
        """Return what is drawn: columns ``group``, ``left``, ``right``, ``count``."""
        return pd.concat(
            [
                pd.DataFrame(
                    {
                        "group": name,
                        "left": self.edges[:-1],
                        "right": self.edges[1:],
                        "count": count,
                    }
                )
                for name, count in self.counts.items()
            ],
            ignore_index=True,
        )

    def plot(
        self, ax: Any = None, *, colors: Sequence[str] | None = None, median: bool = True
    ) -> Any:
        """Draw the histogram.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure when None.
        colors : sequence of str, optional
            One per group, from bottom to top.
        median : bool, default=True
            Mark the median; the fullest bin depends on where the bins begin.

        Returns
        -------
        matplotlib Axes
        """
        ax = axes_to_draw_on(f"{_NAME}.plot", ax, (5, 3.2))
        colors = list(colors or _COLORS)
        below = np.zeros(len(self.edges) - 1)
        for number, (name, count) in enumerate(self.counts.items()):
            ax.bar(
                self.edges[:-1],
                count,
                np.diff(self.edges),
                bottom=below,
                align="edge",
                color=colors[number % len(colors)],
                edgecolor="white",
                linewidth=0.6,
                hatch="///" if number % 2 else None,  # told apart in grey print too
                label=name,
            )
            below = below + count
        if median:
            ax.axvline(self.median, ymax=0.86, color=INK, linestyle=(0, (4, 2)), linewidth=1.2)
            ax.text(
                self.median,
                0.87,
                f"median {self.median:.0f}",
                transform=ax.get_xaxis_transform(),
                ha="center",
                color=INK,
            )
            ax.set_ylim(0, below.max() * 1.22)
        ax.set(xlim=(self.edges[0], self.edges[-1]), xlabel="calibration support", ylabel="items")
        tidy(ax)
        if len(self.counts) > 1:
            ax.legend(frameon=False)
        return ax
