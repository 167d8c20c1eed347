"""Tables that can be sorted, and folded-away numbers behind pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hetcal.report.html.markup import Markup, el

Head = str | tuple[str, None]


@dataclass(frozen=True)
class Cell:
    """What is shown, and the value that it is sorted by and stands for."""

    shown: Any
    value: Any
    header: bool
    class_: str | None


def cell(shown: Any, value: Any = None, *, header: bool = False, class_: str | None = None) -> Cell:
    """Return a cell; ``value`` is written beside it in full precision."""
    return Cell(shown, value, header, class_)


def table(title: str, heads: Sequence[Head], rows: Sequence[Sequence[Cell]], *, key: str) -> Markup:
    """Return a table whose columns can be sorted; a head that is a pair cannot."""
    return region(title, _table(title, heads, rows, sortable=True), key)


def numbers_of(title: str, heads: Sequence[Head], rows: Sequence[Sequence[Cell]]) -> Markup:
    """Return the numbers of a picture, folded away."""
    inside = _table(title, heads, rows, sortable=False)
    return el("details", el("summary", "Show the numbers"), region(title, inside, None))


def region(title: str, inside: Markup, key: str | None) -> Markup:
    """Return a part that scrolls sideways by itself, also by keyboard."""
    return el("div", inside, class_="scroll", tabindex="0", role="region", aria_label=title, id=key)


def _table(
    title: str, heads: Sequence[Head], rows: Sequence[Sequence[Cell]], *, sortable: bool
) -> Markup:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(heads)
    head, numeric = [], []
    for name, cells in zip(heads, columns, strict=True):
        text, fixed = (name, False) if isinstance(name, str) else (name[0], True)
        numeric.append(any(_is_number(c.value) and not c.header for c in cells))
        inside: Any = text
        if sortable and not fixed:
            inside = el(
                "button",
                text,
                el("span", aria_hidden="true", class_="arrow"),
                type="button",
                class_="sort",
            )
        head.append(
            el(
                "th",
                inside,
                scope="col",
                class_="number" if numeric[-1] else None,
                aria_sort="none" if sortable and not fixed else None,
            )
        )
    body = [
        el("tr", [_cell(c, right) for c, right in zip(row, numeric, strict=True)]) for row in rows
    ]
    return el(
        "table",
        el("caption", title, class_="hidden"),
        el("thead", el("tr", head)),
        el("tbody", body),
        class_="sortable" if sortable else None,
    )


def _cell(c: Cell, right: bool) -> Markup:
    names = " ".join(name for name in (c.class_, "number" if right else None) if name)
    value = repr(c.value) if _is_number(c.value) else c.value
    tag, scope = ("th", "row") if c.header else ("td", None)
    return el(tag, c.shown, scope=scope, class_=names or None, data_value=value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
