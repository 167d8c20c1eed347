"""The history of a monitor as curves over the items seen. The templates draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from hetcal.report.html import frames
from hetcal.report.html.filters import fixed, percent, rounded, thousands

# More points than that run into each other.
_MOST_POINTS = 300


@dataclass(frozen=True)
class Curve:
    """A named curve; points are items seen, value, and words."""

    name: str
    kind: str
    points: list[tuple[int, float, str]]


@dataclass(frozen=True)
class Picture:
    """Curves over the items seen.

    Attributes
    ----------
    level : float or None
        A dashed line across, which the note explains.
    alarms : list of int
        Items at which an update raised an alarm.
    shares : bool
        Whether values are shares.
    """

    title: str
    note: str
    ylabel: str
    curves: list[Curve]
    level: float | None
    alarms: list[int]
    xs: list[int]
    shares: bool = False

    @property
    def frame(self) -> frames.Frame:
        """Where everything comes to lie."""
        values = [y for curve in self.curves for _, y, _ in curve.points]
        return frames.over_time(self.xs, values if self.level is None else [*values, self.level])


def support_pictures(history: Sequence[dict[str, Any]], rate: float, bound: float) -> list[Picture]:
    """Return flagged items, evidence of a shift and median support over time."""
    rows = _with_items(history)
    share = _curve("flagged", "local", rows, lambda r: r["flagged"] / r["items"], percent_of)
    evidence = _curve(
        "evidence, largest in the update",
        "test",
        rows,
        lambda r: max(r["log10_evidence"], r["log10_evidence_peak"]),
        power_of_ten,
    )
    support = _curve("median support", "calibration", rows, lambda r: r["median_support"], rounded)
    return _drawn(
        rows,
        (
            "Flagged items",
            "of each update; dashed: as usual",
            "share flagged",
            [share],
            rate,
            True,
        ),
        (
            "Evidence of a shift",
            "power of ten; dashed: alarm",
            "log10 evidence",
            [evidence],
            bound,
            False,
        ),
        ("Support", "median of each update", "median support", [support], None, False),
    )


def label_pictures(history: Sequence[dict[str, Any]], bound: float) -> list[Picture]:
    """Return evidence in labels, and expected and observed scores, over time."""
    rows = _with_items(history)
    evidence = _curve(
        "evidence in labels", "test", rows, lambda r: r["log10_label_evidence"], power_of_ten
    )
    pictures: list[Any] = [
        (
            "Evidence in labels",
            "power of ten; dashed: alarm",
            "log10 evidence",
            [evidence],
            bound,
            False,
        )
    ]
    for key, title in (("accuracy", "Accuracy"), ("brier", "Brier score")):
        curves = [
            _curve("expected", "everyone", rows, itemgetter(f"expected_{key}"), _three),
            _curve("observed", "local", rows, itemgetter(key), _three),
        ]
        note = "of the labels of each update"
        pictures.append((title, note, title, curves, None, False))
    return _drawn(rows, *pictures)


def percent_of(value: float) -> str:
    """Return a share in words."""
    return percent(value, 2)


def power_of_ten(value: float) -> str:
    """Return evidence in words."""
    return f"10^{fixed(value, 1)}"


def _three(value: float) -> str:
    return fixed(value, 3)


def _curve(
    name: str,
    kind: str,
    rows: Sequence[dict[str, Any]],
    value: Callable[[dict[str, Any]], float | None],
    words: Callable[[float], str],
) -> Curve:
    points = []
    for row in rows:
        y = value(row)
        if y is not None:
            when = f"after {thousands(row['seen'])} items, {row['when']}"
            points.append((row["seen"], y, f"{name} {words(y)} {when}"))
    return Curve(name, kind, _thinned(points))


def _thinned(points: list[Any]) -> list[Any]:
    """Return points at even distances, the last among them."""
    step = -(-len(points) // _MOST_POINTS) or 1
    return points[::-1][::step][::-1]


def _drawn(rows: Sequence[dict[str, Any]], *described: Any) -> list[Picture]:
    """Return pictures of those that have a point."""
    alarms = [row["seen"] for row in rows if row["alarms"]]
    xs = [] if not rows else [rows[0]["seen"] - rows[0]["items"], rows[-1]["seen"]]
    found = []
    for title, note, ylabel, curves, level, shares in described:
        curves = [curve for curve in curves if curve.points]
        if curves:
            found.append(Picture(title, note, ylabel, curves, level, alarms, xs, shares))
    return found


def _with_items(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in history if row["items"]]
