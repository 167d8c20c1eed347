"""Pieces that several sections are made of."""

from __future__ import annotations

from hetcal.report.html.markup import Markup, el

#: Key, title and content.
Section = tuple[str, str, Markup]


def section(key: str, title: str, *children: object, lead: str | None = None) -> Section:
    """Return a section with its heading and, on top, what it is about."""
    heading = el("h2", title, id=f"{key}-title")
    opening = None if lead is None else el("p", lead.replace(" %", "\u00a0%"), class_="lead")
    markup = el("section", heading, opening, *children, id=key, aria_labelledby=f"{key}-title")
    return key, title, markup


def legend(*entries: tuple[str, str]) -> Markup:
    """Return which colour is what."""
    return el(
        "ul",
        [el("li", el("span", class_=f"swatch {kind}"), name) for kind, name in entries],
        class_="legend",
    )


def code(title: str, text: str, key: str) -> Markup:
    """Return text to copy, with a button that does it."""
    return el(
        "div",
        el(
            "div",
            el("span", title),
            el(
                "button",
                "Copy",
                type="button",
                class_="quiet copy",
                data_copy=key,
                aria_label=f"Copy: {title}",
            ),
            class_="codehead",
        ),
        el("pre", el("code", text, id=f"code-{key}"), tabindex="0", aria_label=title),
        class_="codeblock",
    )


def optional(value: float | None, digits: int) -> str:
    """Return a number, or a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def p_words(value: float) -> str:
    """Return a p-value in words."""
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"
