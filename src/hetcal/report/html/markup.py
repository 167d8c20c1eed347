"""HTML and SVG from values; whatever is not markup made here is escaped."""

from __future__ import annotations

from html import escape
from typing import Any

_VOID = frozenset({"meta", "br", "hr", "circle", "line", "rect", "path", "polyline", "polygon"})
# Characters that change the direction of what follows could make a name look like another one.
_DIRECTIONS = dict.fromkeys(
    map(ord, "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"), "\ufffd"
)


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def plain(value: object) -> str:
    """Return a value as text that cannot be markup, with characters that turn text around shown.

    Examples
    --------
    >>> plain("<script>&")
    '&lt;script&gt;&amp;'
    """
    text = "".join(c if c >= " " or c in "\n\t" else "\ufffd" for c in str(value))
    return escape(text.translate(_DIRECTIONS), quote=True)


def el(tag: str, *children: Any, **attributes: Any) -> Markup:
    """Return an element; children and attributes are escaped unless they are markup.

    A trailing underscore is dropped and others become hyphens (``class_``, ``aria_label``);
    attributes that are None or False are left out.

    Examples
    --------
    >>> el("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    parts = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        key = name.rstrip("_").replace("__", ":").replace("_", "-")
        text = "" if value is True else _number(value) if isinstance(value, float) else value
        parts.append(f'{key}="{plain(text)}"')
    start = "<" + " ".join(parts) + ">"
    if tag in _VOID and not children:
        return Markup(start if tag in ("meta", "br", "hr") else start[:-1] + "/>")
    return Markup(f"{start}{join(*children)}</{tag}>")


def join(*children: Any) -> Markup:
    """Return children one after the other; lists are taken apart, None is nothing."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, list | tuple):
            parts.append(join(*child))
        else:
            parts.append(child if isinstance(child, Markup) else plain(child))
    return Markup("".join(parts))


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
