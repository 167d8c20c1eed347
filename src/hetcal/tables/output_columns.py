"""A classifier's output in columns of a table: probabilities, percentages, or logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal._printable import counted
from hetcal._validation.proba import are_probabilities
from hetcal._validation.text import parse_numbers
from hetcal.tables.kinds import values_of
from hetcal.tables.selection import listed

Matrix = NDArray[np.float64]

_SUM_TOLERANCE = 1e-2 + 1e-12
# Fewer rows of one column do not show whether they are percentages, ...
_ENOUGH_ROWS = 20
# ... nor do more that percentages of rare events may be by chance, one table in so many.
_HARDLY_BY_CHANCE = 1e-4


def read_output(
    frame: nw.DataFrame,
    columns: Sequence[str],
    *,
    percent: bool = False,
    logits: bool = False,
    first_row: int = 1,
    begins: bool | None = None,
    later: bool = False,
    below_one: float = 0.0,
) -> Matrix:
    """Return the output as it stands, one column per class or one for both; NaN where missing.

    Percentages are divided by 100 where ``percent`` says so, and an error otherwise; so are
    fractions where ``percent`` says that there are none. The first rows that are read decide on
    that: ``begins``, by default those of row 1.
    ``later``: the calibrator is there already, and what it was told of its table cannot be changed;
    ``below_one`` is the share of its percentages that were at most 1.
    """
    signed = False
    P = np.empty((frame.shape[0], len(columns)))
    for j, name in enumerate(columns):
        values = values_of(frame[name])
        if percent and values.dtype == object:
            signed |= any(isinstance(v, str) and v.rstrip().endswith("%") for v in values)
            values = np.array([_without_sign(v) for v in values.tolist()], dtype=object)
        P[:, j] = parse_numbers(values, name, first_row=first_row)
    if logits:
        _refuse(np.isinf(P), P, columns, first_row, "Clip it, or pass --proba.", "a finite logit")
        if are_probabilities(P[~missing_rows(P)]):
            raise InputError(
                f"{_named(columns)} hold probabilities, which sum to 1 in every row, not logits. "
                + ("The calibrator was fitted on logits." if later else "Pass them with --proba.")
            )
        return P
    if percent:
        begins = first_row == 1 if begins is None else begins
        if begins and not signed and _look_like_fractions(P, below_one):
            _refuse_fractions(P, columns, later=later)
        P /= 100
    elif _look_like_percentages(P):
        remedy = (
            "The calibrator was fitted on probabilities: divide by 100."
            if later
            else "Pass --percent (percent=True), which divides by 100."
        )
        raise InputError(
            f"{_named(columns)} {'holds' if len(columns) == 1 else 'hold'} percentages, not "
            f"probabilities (up to {np.nanmax(P):.4g}). "
            f"{remedy}"
        )
    _check_range(P, columns, first_row)
    return P


def within_unit_interval(output: Matrix) -> bool:
    """Return whether every known value is between 0 and 1, as log-odds hardly ever are."""
    known = output[~np.isnan(output)]
    return bool(known.size and (known >= 0).all() and (known <= 1).all())


def both_classes(output: Matrix, *, logits: bool) -> Matrix:
    """Return one column per class; a single column speaks of the second."""
    if output.shape[1] > 1:
        return output
    return np.hstack([np.zeros_like(output) if logits else 1 - output, output])


def missing_rows(output: Matrix) -> NDArray[np.bool_]:
    """Return which rows lack an output."""
    return np.asarray(np.isnan(output).any(axis=1))


def nothing_in(columns: Sequence[str], absent: NDArray[np.bool_], first_row: int = 1) -> str:
    """Name the rows in which cells are empty, and the columns of these cells.

    Examples
    --------
    >>> nothing_in(["p_a", "p_b"], np.array([[False, False], [False, True]]))
    "'p_b': nothing in row 2 (counted from 1)"
    """
    cells = absent.reshape(len(absent), -1)
    empty = [columns[j] for j in np.unique(np.nonzero(cells)[1])]
    rows = row_numbers(np.asarray(cells.any(axis=1)), first_row)
    return f"{listed(empty, 5)}: nothing in {rows} (counted from 1)"


def row_numbers(rows: NDArray[np.bool_], first_row: int = 1) -> str:
    """Return the numbers of the first of these rows, as people count.

    Examples
    --------
    >>> row_numbers(np.array([False, True, True]))
    'rows 2, 3'
    """
    places = np.flatnonzero(rows) + first_row
    shown = ", ".join(str(place) for place in places[:5])
    more = f" and {len(places) - 5:,} more" if len(places) > 5 else ""
    return f"row{'s' if len(places) > 1 else ''} {shown}{more}"


def _check_range(P: Matrix, columns: Sequence[str], first_row: int) -> None:
    _refuse(P < 0, P, columns, first_row, "If these are logits, pass them with --logits (logits=).")
    known = ~missing_rows(P)
    total = P.sum(axis=1)
    if P.shape[1] == 1:
        remedy = "If these are percentages, pass --percent; if they are log-odds, --logits."
        _refuse(P > 1, P, columns, first_row, remedy)
        return
    off = known & (np.abs(total - 1) > _SUM_TOLERANCE)
    if off.any():
        place = int(np.argmax(off))
        n_off = int(off.sum())
        some = f"{counted(n_off, 'row')} {'is' if n_off == 1 else 'are'} off"
        most = "Every row is off" if n_off == known.sum() else some
        raise InputError(
            f"{_named(columns)} sum to {total[place]:.4g} in row {first_row + place}, not to 1. "
            f"{most}. Is a class missing, or a column no probability? Name the columns one by one; "
            "if these are logits, pass them with --logits (logits=)."
        )


def _refuse(
    wrong: NDArray[np.bool_],
    P: Matrix,
    columns: Sequence[str],
    first_row: int,
    remedy: str,
    what: str = "a probability",
) -> None:
    if wrong.any():
        row, j = np.argwhere(wrong)[0]
        raise InputError(
            f"Column {columns[j]!r} holds {P[row, j]:.4g} in row {first_row + row} (counted from "
            f"1), which is not {what}. {remedy}"
        )


def _look_like_percentages(P: Matrix) -> bool:
    known = P[~missing_rows(P)]
    if not known.size or not (known.max() > 1.5 and known.max() <= 101 and known.min() >= 0):
        return False
    return P.shape[1] == 1 or 98 <= float(np.median(known.sum(axis=1))) <= 102


def _look_like_fractions(P: Matrix, below_one: float) -> bool:
    """Say whether values that should be percentages are not.

    Several columns show it in their sums. One column of a rare event may be below 1 in many rows:
    there have to be more than would all be so by chance.
    """
    known = P[~missing_rows(P)]
    if P.shape[1] > 1:
        return known.size > 0 and bool(abs(np.median(known.sum(axis=1)) - 1) <= _SUM_TOLERANCE)
    enough = len(known) >= _ENOUGH_ROWS and below_one ** len(known) < _HARDLY_BY_CHANCE
    return enough and bool(known.min() >= 0 and known.max() <= 1)


def _refuse_fractions(P: Matrix, columns: Sequence[str], *, later: bool) -> NoReturn:
    remedy = (
        "The calibrator was fitted on percentages (--percent): multiply by 100."
        if later
        else "Leave --percent (percent=True) out; if these are percentages all the same, divide "
        "them by 100 first."
    )
    raise InputError(
        f"{_named(columns)} {'holds' if len(columns) == 1 else 'hold'} probabilities, not "
        f"percentages (up to {np.nanmax(P):.4g} in {len(P):,} rows). {remedy}"
    )


def _without_sign(value: object) -> object:
    return value.strip().removesuffix("%") if isinstance(value, str) else value


def _named(columns: Sequence[str]) -> str:
    return f"Column{'s' if len(columns) > 1 else ''} {listed(columns, 5)}"
