"""How the templates write numbers and text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

from hetcal._printable import counted

# Characters that change the direction of what follows could make a name look like another one.
_DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_REPLACED = dict.fromkeys({*range(32), 127, *map(ord, _DIRECTIONS)} - {9, 10}, "\ufffd")


def visible(value: Any) -> Any:
    r"""Return text with control characters and characters that turn text around made visible.

    Runs on whatever a template prints; escaping comes after it.

    Examples
    --------
    >>> visible("a\x00b")
    'a�b'
    """
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return value.translate(_REPLACED)


def px(value: float) -> str:
    """Return a coordinate of a picture.

    Examples
    --------
    >>> px(12.0), px(0.123)
    ('12', '0.12')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def fixed(value: float | None, digits: int, sign: str = "") -> str:
    """Return a number with as many decimals, or a dash where there is none.

    Examples
    --------
    >>> fixed(0.12345, 3), fixed(None, 3), fixed(0.5, 2, "+"), fixed(-0.001, 2)
    ('0.123', '–', '+0.50', '0.00')
    """
    return "–" if value is None else f"{value:{sign}z.{digits}f}"


def percent(value: float, digits: int = 0) -> str:
    r"""Return a share as a percentage.

    Examples
    --------
    >>> percent(0.256), percent(0.256, 1)
    ('26\xa0%', '25.6\xa0%')
    """
    return f"{100 * value:.{digits}f}\u00a0%"


def thousands(value: int) -> str:
    """Return a whole number with its thousands apart."""
    return f"{value:,}"


def rounded(value: float) -> str:
    """Return three significant digits, without a power of ten where it can be helped.

    Examples
    --------
    >>> rounded(106312.0), rounded(0.012345), rounded(25.0)
    ('106,000', '0.0123', '25')
    """
    return f"{float(f'{value:.3g}'):,.12g}"


def p_value(value: float) -> str:
    """Return a p-value in words.

    Examples
    --------
    >>> p_value(1e-9), p_value(0.034)
    ('p < 0.0001', 'p = 0.034')
    """
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"


def columns(names: Iterable[str], kind: str = "number") -> list[tuple[str, str]]:
    """Return heads of table columns of one kind: "number", "text" or "graphic"."""
    return [(name, kind) for name in names]


FILTERS = {f.__name__: f for f in (px, fixed, percent, thousands, counted, rounded, p_value)}
