"""A monitor's history: the evidence of a shift, and the share of flagged items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from hetcal.plotting.style import BLUE, INK, VERMILION, require_pyplot, tidy

_NAME = "MonitorDisplay"


@dataclass(frozen=True, eq=False)
class MonitorDisplay:
    """Evidence and flags over the items seen.

    Make one with :meth:`from_monitor`; :meth:`plot` draws it, :meth:`frame` gives the numbers.

    Attributes
    ----------
    history : pandas.DataFrame
        One row per update, from :meth:`hetcal.SupportMonitor.frame`.
    log10_bound : float
        Evidence at which the stream alarms.
    rate : float
        Share of items flagged while nothing has changed.
    alarm_time : int or None
        Item of the first alarm of the whole stream.
    """

    history: pd.DataFrame
    log10_bound: float
    rate: float
    alarm_time: int | None

    @classmethod
    def from_monitor(cls, monitor: Any) -> Self:
        """Read a :class:`hetcal.SupportMonitor` that has seen something."""
        history = monitor.frame()
        if history.empty:
            raise ValueError(f"{_NAME}: the monitor has seen no items. Call its update first.")
        facts = monitor.summary()
        return cls(
            history,
            facts["log10_bound"],
            facts["rate"],
            None if facts["alarm"] is None else facts["alarm"]["time"],
        )

    def frame(self) -> pd.DataFrame:
        """Return what is drawn: ``seen``, ``log10_evidence``, its peak, ``share_flagged``."""
        table = self.history[["seen", "log10_evidence", "log10_evidence_peak"]].copy()
        items = self.history["items"]
        table["share_flagged"] = self.history["flagged"] / items.where(items > 0)
        return table

    def plot(self, axes: Any = None) -> Any:
        """Draw the evidence above, the share of flagged items of each update below.

        Parameters
        ----------
        axes : pair of matplotlib Axes, optional
            Where to draw; a new figure when None.

        Returns
        -------
        ndarray of two matplotlib Axes
        """
        plt = require_pyplot(f"{_NAME}.plot")
        if axes is None:
            _, axes = plt.subplots(
                2, 1, figsize=(6.4, 4.4), sharex=True, layout="constrained", height_ratios=(1.5, 1)
            )
        above, below = axes
        table = self.frame()
        above.plot(table["seen"], table["log10_evidence"], color=BLUE, marker="o", markersize=3)
        above.axhline(self.log10_bound, color=VERMILION, linestyle=(0, (4, 2)), linewidth=1.2)
        above.text(
            0.01,
            self.log10_bound,
            "alarm",
            color=VERMILION,
            va="bottom",
            transform=above.get_yaxis_transform(),
        )
        above.set_ylabel("evidence of a shift ($\\log_{10}$)")
        # Where a shift is certain, by how many powers of ten does not matter.
        above.set_ylim(min(-1.5, float(table["log10_evidence"].min()) - 0.5), self.log10_bound * 3)
        width = self.history["items"].to_numpy()
        below.bar(
            table["seen"], table["share_flagged"], -width, align="edge", color=BLUE,
            edgecolor="white", linewidth=0.4,
        )  # fmt: skip
        below.axhline(self.rate, color=INK, linestyle=(0, (4, 2)), linewidth=1.0)
        below.set(xlabel="items seen", ylabel="flagged")
        below.yaxis.set_major_formatter(plt.matplotlib.ticker.PercentFormatter(1.0))
        for ax in axes:
            if self.alarm_time is not None:
                ax.axvline(self.alarm_time, color=VERMILION, linewidth=1.0)
            tidy(ax)
        if self.alarm_time is not None:
            above.set_title(f"alarm at item {self.alarm_time:,}", color=VERMILION, loc="left")
        return np.asarray(axes)
