"""Numbers of a CSV file with decimal commas, and points between thousands."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hetcal._exceptions import InputError
from hetcal._validation.text import MISSING

# Numbers with a decimal comma, and points between thousands: 0,25  1.234,5  1.234  2,5e-3  40,5 %
COMMA_NUMBER = re.compile(
    r"\s*[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+)?(,\d+)?(e[+-]?\d+)?\s*%?\s*", re.IGNORECASE
)
_POINT_NUMBER = re.compile(r"\s*[+-]?(\d+\.\d*|\.\d+)(e[+-]?\d+)?\s*%?\s*", re.IGNORECASE)
# A decimal point, or one between thousands; a zero at the end, or none.
_ROUND = re.compile(r"\s*[+-]?[1-9]\d{0,2}\.\d\d0\s*%?\s*")
_EITHER = re.compile(r"\s*[+-]?[1-9]\d{0,2}\.\d\d[1-9]\s*%?\s*")
_SHORT = re.compile(r"\s*[+-]?\d{1,3}\s*%?\s*")


class DecimalCommas:
    """The cells of a table with decimal commas, as Python writes numbers.

    A point stands between thousands where the column shows it: by a decimal comma, by two points in
    one number, or by 12.500 beside 950, of which a format with decimal points writes one or the
    other. Where a number can only have a decimal point (0.484), the column is left as it is. A
    column that shows neither, or both, is an error.
    """

    def __init__(self, path: str, names: Sequence[str]):
        self._path, self._names = path, names
        self._seen: list[dict[str, str]] = [{} for _ in names]  # a cell of each kind

    def read(self, column: int, cells: Sequence[str]) -> Sequence[str]:
        """Return the next cells of a column."""
        found = {_kind(cell): cell.strip() for cell in reversed(cells)}
        seen = self._seen[column] = found | self._seen[column]
        if not any("." in cell or "," in cell for cell in cells):
            return cells
        others = [seen[kind] for kind in ("point", "text", "long") if kind in seen]
        if "thousands" in seen and "comma" not in seen and others:
            raise InputError(
                f"{self._path}: column {self._names[column]!r} holds {seen['thousands']!r}, read "
                f"with a point between thousands, and later {others[0]!r}, which is not written "
                "so. Write all of its numbers with the comma and without points."
            )
        if "text" in seen:  # no column of numbers
            return [with_point(cell) if "," in cell else cell for cell in cells]
        if "comma" in seen and "point" in seen:
            raise InputError(
                f"{self._path}: column {self._names[column]!r} holds {seen['comma']!r} and "
                f"{seen['point']!r}, a comma and a point as decimal signs. Write all of its "
                "numbers with the comma."
            )
        if "point" in seen:
            return cells
        if not ("comma" in seen or ("round" in seen and "short" in seen and "long" not in seen)):
            self._refuse_unclear(column)
        elif "comma" not in seen and "round" in seen:
            seen["thousands"] = seen["round"]
        return [with_point(cell) for cell in cells]

    def _refuse_unclear(self, column: int) -> None:
        seen = self._seen[column]
        cell = seen.get("either", seen.get("round"))
        if cell is not None:
            raise InputError(
                f"{self._path}: column {self._names[column]!r} holds {cell!r}, and its numbers do "
                "not show whether that is a decimal point or one between thousands. Write "
                f"{cell.replace('.', '')} or {cell.replace('.', ',')}; where all numbers of the "
                "table have decimal points, leave --decimal , (decimal=',') out."
            )


def with_point(cell: str) -> str:
    """Return a number with a decimal comma as Python writes it; other text as it is.

    Examples
    --------
    >>> [with_point(cell) for cell in ("0,25", "1.234,5", "1.234", "0.484", "01.02.2024", "a,b")]
    ['0.25', '1234.5', '1234', '0.484', '01.02.2024', 'a,b']
    """
    if not COMMA_NUMBER.fullmatch(cell):
        return cell
    return cell.replace(".", "").replace(",", ".")


def _kind(cell: str) -> str:
    """Return what a cell shows about the sign of its column.

    Examples
    --------
    >>> [_kind(cell) for cell in ("0,25", "1.234.567", "0.484", "1.234", "12.500", "950", "1500")]
    ['comma', 'comma', 'point', 'either', 'round', 'short', 'long']
    >>> _kind("NA"), _kind("01.02.2024")
    ('missing', 'text')
    """
    if "." not in cell and "," not in cell:
        if cell.strip() in MISSING:
            return "missing"
        if _SHORT.fullmatch(cell):
            return "short"
        return "long" if COMMA_NUMBER.fullmatch(cell) else "text"
    if _EITHER.fullmatch(cell):
        return "either"
    if _ROUND.fullmatch(cell):
        return "round"
    if COMMA_NUMBER.fullmatch(cell):
        return "comma"
    return "point" if _POINT_NUMBER.fullmatch(cell) else "text"
