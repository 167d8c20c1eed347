"""A classifier's output in columns of a table: probabilities, percentages, or logits."""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal._validation.text import parse_numbers
from hetcal.tables.kinds import values_of
from hetcal.tables.selection import listed

Matrix = NDArray[np.float64]

_SUM_TOLERANCE = 1e-2 + 1e-12


def read_output(
    frame: nw.DataFrame,
    columns: Sequence[str],
    *,
    percent: bool = False,
    logits: bool = False,
    first_row: int = 1,
    later: bool = False,
) -> Matrix:
    """Return the output as it stands, one column per class or one for both; NaN where missing.

    Percentages are divided by 100 where ``percent`` says so, and an error otherwise. ``later``: the
    calibrator is there already, and what it was told of its table cannot be changed.
    """
    P = np.empty((frame.shape[0], len(columns)))
    for j, name in enumerate(columns):
        values = values_of(frame[name])
        if percent and values.dtype == object:
            values = np.array([_without_sign(v) for v in values.tolist()], dtype=object)
        P[:, j] = parse_numbers(values, name, first_row=first_row)
    if logits:
        _refuse(np.isinf(P), P, columns, first_row, "Clip it, or pass --proba.", "a finite logit")
        return P
    if percent:
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


def both_classes(output: Matrix, *, logits: bool) -> Matrix:
    """Return one column per class; a single column speaks of the second."""
    if output.shape[1] > 1:
        return output
    return np.hstack([np.zeros_like(output) if logits else 1 - output, output])


def missing_rows(output: Matrix) -> NDArray[np.bool_]:
    """Return which rows lack an output."""
    return np.asarray(np.isnan(output).any(axis=1))


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
        most = "Every row is off" if off.sum() == known.sum() else f"{off.sum():,} rows are off"
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


def _without_sign(value: object) -> object:
    return value.strip().removesuffix("%") if isinstance(value, str) else value


def _named(columns: Sequence[str]) -> str:
    return f"Column{'s' if len(columns) > 1 else ''} {listed(columns, 5)}"
