r"""Text from outside as a terminal may show it: control and invisible characters in writing.

Column names, labels, metadata and file names are written by others. What a terminal would obey
(escape sequences), reorder (bidi marks) or hide (zero-width characters) is shown as Python would
write it, ``\x1b`` or ``\u202e``; letters, accents, CJK and emoji stay as they are.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

# Control, format, surrogate, line separator, paragraph separator.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Letters and marks by category, and yet without any ink.
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
# They join and part letters of many scripts and the pieces of an emoji.
_JOINERS = frozenset("\u200c\u200d")


def printable(text: str, keep: str = "\n") -> str:
    r"""Return text whose control and invisible characters can be seen.

    Parameters
    ----------
    text : str
    keep : str, default newline
        Control characters that the writer of the text itself has put there.

    Examples
    --------
    >>> print(printable("name \x1b[31m \u202e Zoë 日本 👩‍🔬"))
    name \x1b[31m \u202e Zoë 日本 👩‍🔬
    """
    return _replaced(text, keep, lambda sign: sign.encode("unicode_escape").decode("ascii"))


def printable_json(text: str) -> str:
    r"""Return JSON that says the same and whose strings hold no control or invisible character.

    Examples
    --------
    >>> print(printable_json('{"name": "\x7f \u202e Zoë"}'))
    {"name": "\u007f \u202e Zoë"}
    """
    return _replaced(text, "\n", _as_json)


def _replaced(text: str, keep: str, escape: Callable[[str], str]) -> str:
    if text.isprintable() and (text.isascii() or _BLANKS.isdisjoint(text)):
        return text
    return "".join(
        sign if sign in keep or not _is_unseen(text, i, sign) else escape(sign)
        for i, sign in enumerate(text)
    )


def _is_unseen(text: str, place: int, sign: str) -> bool:
    if sign in _JOINERS:
        around = text[place - 1 : place] + text[place + 1 : place + 2]
        return len(around) < 2 or any(neighbour.isascii() for neighbour in around)
    return sign in _BLANKS or unicodedata.category(sign) in _UNSEEN


def _as_json(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def counted(n: int, one: str) -> str:
    """Return how many of something there are, in words.

    Examples
    --------
    >>> counted(1, "row"), counted(2500, "row"), counted(0, "item")
    ('1 row', '2,500 rows', '0 items')
    """
    return f"{n:,} {one}{'' if n == 1 else 's'}"
