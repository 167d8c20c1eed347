"""Where data come to lie in a picture: scales and ticks. The templates draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, log10

from hetcal.diagnosis import findings
from hetcal.report.html.filters import px

_PROBABILITIES = (0.0, 0.25, 0.5, 0.75, 1.0)
# Neighbours on the curve are at most three steps of its grid apart where items are everywhere.
_WIDEST_STEP = 0.07


@dataclass(frozen=True)
class Frame:
    """A plotting area: its size, the limits and ticks of its axes, and its margins."""

    width: float
    height: float
    xlim: tuple[float, float] = (0.0, 1.0)
    ylim: tuple[float, float] = (0.0, 1.0)
    xticks: Sequence[float] = _PROBABILITIES
    yticks: Sequence[float] = ()
    log_x: bool = False
    left: float = 64
    right: float = 12
    top: float = 12
    bottom: float = 42

    def x(self, value: float) -> float:
        """Return where a value lies across; what is outside of the limits lies on them."""
        return self.left + (self.width - self.left - self.right) * _part(
            value, self.xlim, self.log_x
        )

    def y(self, value: float) -> float:
        """Return where a value lies upright; what is outside of the limits lies on them."""
        tall = self.height - self.bottom - self.top
        return self.height - self.bottom - tall * _part(value, self.ylim)

    def points(self, xs: Iterable[float], ys: Iterable[float]) -> str:
        """Return a line through data points, as SVG writes it."""
        return " ".join(f"{px(self.x(x))},{px(self.y(y))}" for x, y in zip(xs, ys, strict=True))


def _part(value: float, limits: tuple[float, float], log: bool = False) -> float:
    """Return how far a value lies from one limit (0) to the other (1)."""
    low, high = limits
    value = min(max(value, low), high)
    if log:
        low, high, value = log10(low), log10(high), log10(value)
    return (value - low) / ((high - low) or 1)


def reliability() -> Frame:
    """Return the frame of a reliability diagram, with room for bars below."""
    return Frame(330, 310, yticks=_PROBABILITIES, left=54, bottom=84)


def hidden(cells: Sequence[findings.HiddenCell]) -> Frame:
    """Return the frame of both parts of hidden heterogeneity along the probability."""
    values = [v for c in cells for v in (c.hh, c.hh_global, c.hh_local) if v is not None]
    return _curves([0.0, *values])


def support(part: findings.Support) -> Frame:
    """Return the frame of histograms of support."""
    edges = part.histograms[0].edges
    high = max(count / (sum(h.counts) or 1) for h in part.histograms for count in h.counts) or 1.0
    return Frame(
        520,
        270,
        (edges[0], edges[-1]),
        (0, 1.25 * high),
        _decades(edges[0], edges[-1]),
        _ticks(0, high),
        log_x=True,
    )


def learning(curves: Sequence[findings.MethodCurve]) -> Frame:
    """Return the frame of learning curves."""
    points = [p for c in curves for p in c.points]
    sizes = sorted({p.size for p in points})
    ends = [p.value + sign * (p.standard_error or 0) for p in points for sign in (-1, 1)]
    return _curves(ends, xlim=(sizes[0] / 1.07, sizes[-1] * 1.07), xticks=sizes, log_x=True)


def decision(cost: findings.Cost) -> Frame:
    """Return the frame of decision curves; what lies far below zero is cut off."""
    top = max(max(c.net_benefit) for c in cost.curves)
    return _curves([0.0, top, -0.15 * top])


def over_time(seen: Sequence[int], values: Sequence[float]) -> Frame:
    """Return the frame of curves over the items that a monitor has seen."""
    xlim = (float(seen[0]), float(seen[-1]))
    drawn = _curves([0.0, *values] if min(values) >= 0 else values, xlim, _ticks(*xlim, about=4))
    return replace(drawn, width=350, height=270, left=76, right=22)


def intervals(groups: Sequence[findings.Subgroup]) -> Frame:
    """Return the frame that the intervals of all groups of a table share."""
    return _strip([v for g in groups for v in (g.low, g.predicted, g.high)], 220, 26)


def scores(methods: Sequence[findings.MethodRow]) -> Frame:
    """Return the frame that the Brier scores of all methods of a table share."""
    briers = [row.scores["brier"] for row in methods]
    return _strip([v for s in briers for v in (s.low, s.value, s.high) if v is not None], 150, 22)


def runs(cells: Sequence[findings.HiddenCell]) -> list[list[findings.HiddenCell]]:
    """Return the measured points in stretches that may be joined by a line.

    Where no item has a probability nothing was measured, and a line would claim otherwise.
    """
    known = [c for c in cells if None not in (c.at, c.hh_local, c.hh_global)]
    found: list[list[findings.HiddenCell]] = [known[:1]] if known else []
    for before, cell in pairwise(known):
        if (cell.at or 0) - (before.at or 0) > _WIDEST_STEP:
            found.append([])
        found[-1].append(cell)
    return found


def _curves(
    values: Sequence[float],
    xlim: tuple[float, float] = (0.0, 1.0),
    xticks: Sequence[float] = _PROBABILITIES,
    log_x: bool = False,
) -> Frame:
    """Return the frame of curves that take these values."""
    margin = 0.08 * ((max(values) - min(values)) or 1.0)
    low, high = min(values) - margin, max(values) + margin
    return Frame(520, 290, xlim, (low, high), xticks, _ticks(low, high), log_x)


def _strip(values: Sequence[float], width: float, height: float) -> Frame:
    """Return the frame of a small picture in a line of a table."""
    return Frame(width, height, (min(values), max(values)), left=8, right=8, top=0, bottom=0)


def _ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers between two ends.

    Examples
    --------
    >>> _ticks(0, 0.11)
    [0.0, 0.025, 0.05, 0.075, 0.1]
    """
    rough = (high - low) / about or 1.0
    power = 10.0 ** floor(log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough)
    first = ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, floor(high / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10, ... between two ends; over many decades the tens only.

    Examples
    --------
    >>> _decades(0.5, 12)
    [0.5, 1.0, 2.0, 5.0, 10.0]
    """
    steps = (1, 2, 5) if high / low < 1000 else (1,)
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [m * 10.0**p for p in powers for m in steps if low <= m * 10.0**p <= high]
