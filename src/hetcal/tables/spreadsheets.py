"""Text in CSV that a spreadsheet would run as a formula, and how it is kept from that.

A spreadsheet that opens a CSV file takes a cell such as ``=HYPERLINK(...)`` or ``-2+cmd|...`` for a
formula, whoever wrote it. Such text is written with an apostrophe before it, and read without:
what hetcal has written it reads back unchanged. Numbers are no formulas and stay as they are.
"""

from __future__ import annotations

import re
from typing import Any

_QUOTE = "'"
# Spreadsheets skip blanks and marks without width before a sign, which may be of full width.
_BLANKS = (
    "".join(map(chr, range(0x21)))
    + "\x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x2010)))
    + "\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
)
_SIGNS = "=+@-＝＋＠－"
_FORMULA = re.compile(f"[{_BLANKS}]*[{re.escape(_SIGNS)}][{_BLANKS}]*[^{_BLANKS}]")
_BLANK_START = re.compile(f"[\t\r\n][{_BLANKS}]*[^{_BLANKS}]")
_NUMBER = re.compile(
    r"\s*[+-]?([0-9][0-9.,]*|[.,][0-9]+)(e[+-]?[0-9]+)?\s*%?\s*|\s*[+-]?(inf|infinity|nan)\s*",
    re.IGNORECASE,
)
# Most text is neither, and most of what begins with a sign is a number: both are told quickly.
_FIRST = frozenset(_BLANKS + _SIGNS + _QUOTE)
_usual_number = re.compile(r"[+-][0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?").fullmatch


def defused(text: str) -> str:
    """Return text that no spreadsheet runs as a formula.

    Examples
    --------
    >>> [defused(text) for text in ("=1+1", "@SUM(A1)", "-1", "-1 to 0", "-", "a=b", "'=1")]
    ["'=1+1", "'@SUM(A1)", '-1', "'-1 to 0", '-', 'a=b', "''=1"]
    """
    return _QUOTE + text if _would_run(text) else text


def defused_cells(cells: list[Any]) -> list[Any]:
    """Return a column whose text no spreadsheet runs as a formula; other values as they are."""
    return [
        defused(cell)
        if isinstance(cell, str) and cell[:1] in _FIRST and not _usual_number(cell)
        else cell
        for cell in cells
    ]


def restored(text: str) -> str:
    """Return the text that :func:`defused` was given.

    Examples
    --------
    >>> [restored(text) for text in ("'=1+1", "''=1", "'tis", "'-1")]
    ['=1+1', "'=1", "'tis", "'-1"]
    """
    return text[1:] if text[:1] == _QUOTE and _would_run(text) else text


def _would_run(text: str) -> bool:
    """Return whether the text is a formula, apart from any apostrophes before it."""
    bare = text.lstrip(_QUOTE)
    if _NUMBER.fullmatch(bare):
        return False
    return _FORMULA.match(bare) is not None or _BLANK_START.match(bare) is not None
