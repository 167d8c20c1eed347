"""Pictures as SVG text: the same numbers give the same picture, on every machine."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
import pandas as pd

from benchmarks.page.ranks import not_apart

_COLOURS = ("#1b6ca8", "#c0392b", "#2e7d32", "#8e44ad", "#d68910", "#444444", "#16a2a2", "#999999")


def _svg(width: float, height: float, title: str, parts: list[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" role="img" font-family="sans-serif" font-size="13">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "#333", width=1.0) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width}"/>'
    )


def _text(x: float, y: float, words: str, anchor: str = "start", colour: str = "#111") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(words)}</text>"
    )


def critical_difference_plot(ranks: pd.Series, difference: float, title: str) -> str:
    """Return average ranks on a line, best to the left; bars join methods that do not differ.

    Parameters
    ----------
    ranks : Series
        Average ranks, the best first, by method.
    difference : float
        The critical difference.
    title : str
    """
    k = len(ranks)
    left, right, axis, step = 230.0, 570.0, 62.0, 19.0
    low, high = 1.0, float(k)

    def place(rank: float) -> float:
        return left + (rank - low) / (high - low) * (right - left)

    bars = not_apart(ranks, difference)
    below = axis + 14 + 6 * len(bars)
    parts = [_line(left, axis, right, axis), _text(400, 18, title, "middle")]
    for tick in sorted({1, k, *range(5, k, 5)}):
        parts += [_line(place(tick), axis - 5, place(tick), axis)]
        parts += [_text(place(tick), axis - 9, str(tick), "middle")]
    parts += [_line(left, 34, place(low + difference), 34, "#c0392b", 2.5)]
    parts += [_text(place(low + difference) + 6, 38, f"critical difference {difference:.2f}")]
    for number, (first, last) in enumerate(bars):
        y = axis + 9 + 6 * number
        parts += [_line(place(ranks.iloc[first]) - 3, y, place(ranks.iloc[last]) + 3, y, "#333", 3)]
    half = (k + 1) // 2
    for number, (name, rank) in enumerate(ranks.items()):
        at_left = number < half
        y = below + step * ((number if at_left else k - 1 - number) + 1)
        end = left - 12 if at_left else right + 12
        parts += [_line(place(rank), axis, place(rank), y - 4, "#777", 0.8)]
        parts += [_line(place(rank), y - 4, end, y - 4, "#777", 0.8)]
        words = f"{name}  {rank:.2f}" if at_left else f"{rank:.2f}  {name}"
        strong = "#1b6ca8" if "hybrid" in str(name) else "#111"
        parts += [
            _text(end + (-4 if at_left else 4), y, words, "end" if at_left else "start", strong)
        ]
    return _svg(800, below + step * (half + 1), title, parts)


def growth_plot(lines: Mapping[str, pd.Series], title: str, unit: str) -> str:
    """Return curves over the number of items, both axes logarithmic.

    Parameters
    ----------
    lines : mapping
        By name, a series of positive values indexed by the number of items.
    title, unit : str
        The picture's title, and what the vertical axis counts.
    """
    left, right, top, bottom = 80.0, 520.0, 40.0, 330.0
    sizes = sorted({n for line in lines.values() for n in line.index})
    values = np.concatenate([line.to_numpy() for line in lines.values()])
    y_low, y_high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))
    x_low, x_high = np.log10(sizes[0]), np.log10(sizes[-1])

    def place(n: float, value: float) -> tuple[float, float]:
        x = left + (np.log10(n) - x_low) / (x_high - x_low) * (right - left)
        return x, bottom - (np.log10(value) - y_low) / (y_high - y_low) * (bottom - top)

    parts = [_text(300, 20, title, "middle"), _text(300, 372, "calibration items", "middle")]
    parts += [_text(8, 30, unit)]
    for n in sizes:
        x = place(n, 10**y_low)[0]
        parts += [_line(x, bottom, x, bottom + 5), _text(x, bottom + 20, f"{n:,}", "middle")]
    for power in range(int(y_low), int(y_high) + 1):
        y = place(sizes[0], 10.0**power)[1]
        parts += [
            _line(left, y, right, y, "#ddd"),
            _text(left - 6, y + 4, f"{10.0**power:g}", "end"),
        ]
    labels = sorted(lines.items(), key=lambda item: -item[1].iloc[-1])
    spots = _spread([place(line.index[-1], line.iloc[-1])[1] for _, line in labels], 16.0)
    for (name, line), spot in zip(labels, spots, strict=True):
        colour = _COLOURS[list(lines).index(name) % len(_COLOURS)]
        points = " ".join("{:.1f},{:.1f}".format(*place(n, v)) for n, v in line.items())
        parts += [f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>']
        parts += [_text(right + 10, spot + 4, name, colour=colour)]
    return _svg(720, 385, title, parts)


def _spread(places: list[float], gap: float) -> list[float]:
    """Return places, from the top down, moved so far that labels do not overlap."""
    spread: list[float] = []
    for place in places:
        spread.append(max(place, spread[-1] + gap) if spread else place)
    return spread
