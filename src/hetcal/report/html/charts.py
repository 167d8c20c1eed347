"""Charts as SVG, from the report's numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log2, log10

from hetcal.report import model
from hetcal.report.html.markup import Markup, el, join

SCOPE_CLASS = {"as it is": "raw", "global": "global", "local": "local", "retrained": "retrained"}
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Frame:
    """A plotting area: where data coordinates come to lie in the picture."""

    width: float
    height: float
    xlim: tuple[float, float]
    ylim: tuple[float, float]
    left: float = 46
    right: float = 12
    top: float = 12
    bottom: float = 42

    def x(self, value: float) -> float:
        """Return where a value lies across."""
        low, high = self.xlim
        inner = self.width - self.left - self.right
        return self.left + inner * (value - low) / ((high - low) or 1)

    def y(self, value: float) -> float:
        """Return where a value lies upright."""
        low, high = self.ylim
        inner = self.height - self.top - self.bottom
        return self.height - self.bottom - inner * (value - low) / ((high - low) or 1)

    def axes(
        self,
        xticks: Sequence[float],
        yticks: Sequence[float],
        xlabel: str,
        ylabel: str,
        xformat: Callable[[float], str] = lambda v: f"{v:g}",
        yformat: Callable[[float], str] = lambda v: f"{v:g}",
    ) -> Markup:
        """Return grid, ticks and labels."""
        x0, x1 = self.left, self.width - self.right
        y0, y1 = self.height - self.bottom, self.top
        parts = [
            el("line", x1=x0, x2=x1, y1=self.y(t), y2=self.y(t), class_="grid") for t in yticks
        ]
        parts += [
            el("text", yformat(t), x=x0 - 8, y=self.y(t) + 4, text_anchor="end", class_="tick")
            for t in yticks
        ]
        parts += [
            el("text", xformat(t), x=self.x(t), y=y0 + 17, text_anchor="middle", class_="tick")
            for t in xticks
        ]
        parts.append(el("line", x1=x0, x2=x1, y1=y0, y2=y0, class_="axis"))
        parts.append(
            el("text", xlabel, x=(x0 + x1) / 2, y=y0 + 35, text_anchor="middle", class_="label")
        )
        middle = (y0 + y1) / 2
        parts.append(
            el(
                "text",
                ylabel,
                transform=f"translate(12 {middle:.1f}) rotate(-90)",
                text_anchor="middle",
                class_="label",
            )
        )
        return join(parts)

    def svg(self, title: str, *children: object) -> Markup:
        """Return the picture; ``title`` says in words what it shows."""
        return el(
            "svg",
            el("title", title),
            *children,
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            role="img",
            aria_label=title,
            class_="chart",
            preserveAspectRatio="xMidYMid meet",
        )


def reliability(curve: model.Reliability, kind: str, event: str) -> Markup:
    """Return one reliability diagram with bands, and below it how often each value was said."""
    frame = Frame(330, 310, (0, 1), (0, 1), left=54, bottom=84)
    floor, tall = 268.0, 34.0
    most = max(curve.counts) or 1
    step = 1 / len(curve.counts)
    bars = [
        el(
            "rect",
            x=frame.x(k * step) + 0.6,
            y=floor - tall * (count / most) ** 0.5,
            width=frame.x(step) - frame.x(0) - 1.2,
            height=tall * (count / most) ** 0.5,
            class_=f"bar {kind} hot",
            data_tip=f"said {k * step:.2f} to {(k + 1) * step:.2f}: {count:,} items",
        )
        for k, count in enumerate(curve.counts)
        if count
    ]
    bands = [
        el(
            "line",
            x1=frame.x(b.predicted),
            x2=frame.x(b.predicted),
            y1=frame.y(b.low),
            y2=frame.y(b.high),
            class_=f"band {kind}",
        )
        for b in curve.bins
    ]
    path = " ".join(f"{frame.x(b.predicted):.1f},{frame.y(b.observed):.1f}" for b in curve.bins)
    dots = [
        el(
            "circle",
            cx=frame.x(b.predicted),
            cy=frame.y(b.observed),
            r=4.2,
            class_=f"dot {kind} hot",
            data_tip=_bin_words(b),
        )
        for b in curve.bins
    ]
    x0, x1 = frame.x(0), frame.x(1)
    axis = [el("line", x1=x0, x2=x1, y1=frame.y(t), y2=frame.y(t), class_="grid") for t in _TICKS]
    axis += [
        el("text", f"{t:g}", x=x0 - 8, y=frame.y(t) + 4, text_anchor="end", class_="tick")
        for t in _TICKS
    ]
    axis += [
        el("text", f"{t:g}", x=frame.x(t), y=floor + 17, text_anchor="middle", class_="tick")
        for t in _TICKS
    ]
    axis += [
        el("line", x1=x0, x2=x1, y1=floor, y2=floor, class_="axis"),
        el("line", x1=x0, x2=x1, y1=frame.y(1), y2=frame.y(1), class_="grid"),
        el(
            "text",
            _cut(event, 42),
            x=(x0 + x1) / 2,
            y=floor + 36,
            text_anchor="middle",
            class_="label",
        ),
        el(
            "text",
            "observed frequency",
            transform=f"translate(12 {(frame.y(0) + frame.y(1)) / 2:.1f}) rotate(-90)",
            text_anchor="middle",
            class_="label",
        ),
        el("line", x1=frame.x(0), y1=frame.y(0), x2=frame.x(1), y2=frame.y(1), class_="ideal"),
    ]
    words = f"Reliability of {curve.name}: calibration error {curve.ece:.3f}. " + "; ".join(
        f"said {b.predicted:.2f}, observed {b.observed:.2f}" for b in curve.bins
    )
    return frame.svg(
        words, axis, bars, bands, el("polyline", points=path, class_=f"curve {kind}"), dots
    )


def hidden_along_p(hidden: model.Hidden, event: str) -> Markup:
    """Return the two parts of hidden heterogeneity against the probability."""
    cells = [c for c in hidden.cells if c.hh_local is not None and c.hh_global is not None]
    tops = [max(c.hh_local or 0, c.hh_global or 0, (c.hh or 0)) for c in cells]
    bottoms = [min(c.hh_local or 0, c.hh_global or 0) for c in cells]
    low, high = _limits([*tops, *bottoms, 0.0])
    frame = Frame(520, 290, (0, 1), (low, high), left=64)
    ticks = _ticks(low, high)
    axes = frame.axes(
        _TICKS, ticks, _cut(event, 60), "gain in Brier score", yformat=lambda v: f"{v:.3g}"
    )
    zero = el("line", x1=frame.x(0), x2=frame.x(1), y1=frame.y(0), y2=frame.y(0), class_="axis")
    error = [(frame.x(c.at or 0), (c.hh_local or 0), 1.96 * (c.standard_error or 0)) for c in cells]
    upper = [f"{x:.1f},{frame.y(min(v + e, high)):.1f}" for x, v, e in error]
    lower = [f"{x:.1f},{frame.y(max(v - e, low)):.1f}" for x, v, e in error]
    band = el("polygon", points=" ".join(upper + lower[::-1]), class_="area local")
    lines = []
    for key, kind in (("hh_global", "global"), ("hh_local", "local")):
        points = " ".join(f"{frame.x(c.at or 0):.1f},{frame.y(getattr(c, key)):.1f}" for c in cells)
        lines.append(el("polyline", points=points, class_=f"curve {kind}"))
        lines += [
            el(
                "circle",
                cx=frame.x(c.at or 0),
                cy=frame.y(getattr(c, key)),
                r=3.2,
                class_=f"dot {kind} hot",
                data_tip=_cell_words(c),
            )
            for c in cells
        ]
    words = (
        f"Hidden heterogeneity along the probability, {len(cells)} places: mean global part "
        f"{hidden.global_part:.4f}, mean local part {hidden.local_part:.4f}."
    )
    return frame.svg(words, axes, band, zero, lines)


def interval(group: model.Subgroup, limits: tuple[float, float]) -> Markup:
    """Return what was said (a ring) and what happened (a dot with its interval)."""
    low, high = limits
    frame = Frame(220, 26, (low, high), (0, 1), left=8, right=8, top=0, bottom=0)
    said, seen = frame.x(group.predicted), frame.x(group.observed)
    kind = "global" if group.global_map_repairs else "local"
    words = (
        f"said {group.predicted:.2f}, observed {group.observed:.2f}, "
        f"95 % interval {group.low:.2f} to {group.high:.2f}"
    )
    return el(
        "svg",
        el("title", words),
        el("line", x1=8, x2=212, y1=13, y2=13, class_="grid"),
        el(
            "line",
            x1=frame.x(group.low),
            x2=frame.x(group.high),
            y1=13,
            y2=13,
            class_=f"whisker {kind}",
        ),
        el("line", x1=said, x2=seen, y1=13, y2=13, class_="gap"),
        el("circle", cx=seen, cy=13, r=5, class_=f"dot {kind}"),
        el("circle", cx=said, cy=13, r=4.5, class_="ring"),
        viewBox="0 0 220 26",
        role="img",
        aria_label=words,
        class_="strip hot",
        data_tip=words,
    )


def score_strip(row: model.MethodRow, limits: tuple[float, float], metric: str) -> Markup:
    """Return one score with its standard error."""
    score = row.scores[metric]
    frame = Frame(150, 22, limits, (0, 1), left=6, right=6, top=0, bottom=0)
    error = score.standard_error or 0.0
    kind = SCOPE_CLASS[row.scope]
    words = f"{row.label}: {score.value:.4f} ± {error:.4f}"
    return el(
        "svg",
        el("title", words),
        el("line", x1=6, x2=144, y1=11, y2=11, class_="grid"),
        el(
            "line",
            x1=frame.x(max(score.value - error, limits[0])),
            x2=frame.x(min(score.value + error, limits[1])),
            y1=11,
            y2=11,
            class_=f"whisker {kind}",
        ),
        el("circle", cx=frame.x(score.value), cy=11, r=4.5, class_=f"dot {kind}"),
        viewBox="0 0 150 22",
        role="img",
        aria_label=words,
        class_="strip hot",
        data_tip=words,
    )


def support(part: model.Support) -> Markup:
    """Return histograms of support, the test table beside the calibration set."""
    edges = part.histograms[0].edges
    shares = [[c / (sum(h.counts) or 1) for c in h.counts] for h in part.histograms]
    high = max(max(s) for s in shares) or 1.0
    frame = Frame(520, 270, (log10(edges[0]), log10(edges[-1])), (0, high * 1.25), left=60)
    axes = frame.axes(
        [log10(t) for t in _decades(edges[0], edges[-1])],
        _ticks(0, high),
        "calibration support (similar items, logarithmic)",
        "share of items",
        xformat=lambda v: f"{round(10**v, 6):,g}",
        yformat=lambda v: f"{round(100 * v, 6):g}%",
    )
    bars = []
    n = len(part.histograms)
    for place, (histogram, share) in enumerate(zip(part.histograms, shares, strict=True)):
        kind = ("raw", "test")[place]
        for k, value in enumerate(share):
            if not value:
                continue
            left, right = frame.x(log10(edges[k])), frame.x(log10(edges[k + 1]))
            wide = (right - left - 1) / n
            bars.append(
                el(
                    "rect",
                    x=left + 0.5 + place * wide,
                    y=frame.y(value),
                    width=wide,
                    height=frame.y(0) - frame.y(value),
                    class_=f"bar {kind} hot",
                    data_tip=f"{histogram.name}: {histogram.counts[k]:,} items ({value:.1%}) with "
                    f"support {edges[k]:.3g} to {edges[k + 1]:.3g}",
                )
            )
    x = frame.x(log10(min(max(part.typical_low, edges[0]), edges[-1])))
    mark = [
        el("line", x1=x, x2=x, y1=frame.y(0), y2=frame.top, class_="mark"),
        el("text", "low support", x=x + 5, y=frame.top + 10, class_="tick"),
    ]
    words = "Calibration support. " + "; ".join(
        f"{h.name}: median {h.median:.3g}, {h.share_low:.1%} low" for h in part.histograms
    )
    return frame.svg(words, axes, bars, mark)


def learning(curves: list[model.MethodCurve], scopes: dict[str, str]) -> Markup:
    """Return Brier score against the number of calibration items (on a logarithmic scale)."""
    points = [p for c in curves for p in c.points]
    sizes = sorted({p.size for p in points})
    low, high = _limits([p.value + s * (p.standard_error or 0) for p in points for s in (-1, 1)])
    frame = Frame(520, 290, (log2(sizes[0]) - 0.1, log2(sizes[-1]) + 0.1), (low, high), left=64)
    axes = frame.axes(
        [log2(s) for s in sizes],
        _ticks(low, high),
        "calibration items",
        "Brier score",
        xformat=lambda v: f"{round(2**v):,}",
        yformat=lambda v: f"{v:.3g}",
    )
    drawn = []
    for curve in curves:
        kind = SCOPE_CLASS[scopes[curve.method]]
        places = [(frame.x(log2(p.size)), frame.y(p.value), p) for p in curve.points]
        for x, _, p in places:
            e = p.standard_error or 0
            drawn.append(
                el(
                    "line",
                    x1=x,
                    x2=x,
                    y1=frame.y(p.value - e),
                    y2=frame.y(p.value + e),
                    class_=f"band {kind}",
                )
            )
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        drawn.append(el("polyline", points=text, class_=f"curve {kind}"))
        drawn += [
            el(
                "circle",
                cx=x,
                cy=y,
                r=4,
                class_=f"dot {kind} hot",
                data_tip=f"{curve.label}, {p.size:,} items: {p.value:.4f} ± "
                f"{p.standard_error or 0:.4f}",
            )
            for x, y, p in places
        ]
    words = "Learning curve. " + "; ".join(
        f"{c.label}: from {c.points[0].value:.4f} to {c.points[-1].value:.4f}"
        for c in curves
        if c.points
    )
    return frame.svg(words, axes, drawn)


def decision(cost: model.Cost, kinds: Sequence[str]) -> Markup:
    """Return net benefit against the threshold of acting."""
    top = max(max(c.net_benefit) for c in cost.curves)
    low, high = _limits([0.0, top, -0.15 * top])
    frame = Frame(520, 290, (0, 1), (low, high), left=64)
    axes = frame.axes(
        _TICKS,
        _ticks(low, high),
        "act above this probability",
        "net benefit",
        yformat=lambda v: f"{v:.3g}",
    )
    drawn = [el("line", x1=frame.x(0), x2=frame.x(1), y1=frame.y(0), y2=frame.y(0), class_="axis")]
    for curve, kind in zip(cost.curves, kinds, strict=True):
        points = " ".join(
            f"{frame.x(t):.1f},{frame.y(v):.1f}"
            for t, v in zip(cost.thresholds, curve.net_benefit, strict=True)
            if v >= low
        )
        drawn.append(el("polyline", points=points, class_=f"curve {kind}"))
    if cost.threshold is not None:
        x = frame.x(cost.threshold)
        drawn.append(el("line", x1=x, x2=x, y1=frame.y(low), y2=frame.top, class_="mark"))
        drawn.append(
            el(
                "text",
                f"your costs: {cost.threshold:.2f}",
                x=x + 5,
                y=frame.top + 10,
                class_="tick",
            )
        )
    words = "Decision curve: net benefit of acting above each threshold, for " + ", ".join(
        c.name for c in cost.curves
    )
    return frame.svg(words, axes, drawn)


def _bin_words(b: model.Bin) -> str:
    return (
        f"said {b.predicted:.3f}, observed {b.observed:.3f} "
        f"(95 % {b.low:.3f} to {b.high:.3f}), {b.count:,} items"
    )


def _cell_words(c: model.HiddenCell) -> str:
    q = "" if c.q_value is None else f", q = {c.q_value:.2g}"
    return (
        f"{c.name}: global part {c.hh_global or 0:.4f}, local part {c.hh_local or 0:.4f}"
        f"{q}, {c.count:,} neighbours"
    )


def _limits(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.08 * ((high - low) or 1.0)
    return low - margin, high + margin


def _ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers between two ends."""
    rough = (high - low) / about or 1.0
    power = 10.0 ** floor(log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough)
    first = ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, floor(high / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10, ... between two ends; over many decades the tens only."""
    steps = (1, 2, 5) if high / low < 1000 else (1,)
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [m * 10.0**p for p in powers for m in steps if low <= m * 10.0**p <= high]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
