"""Which columns of a table are features, and their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal.tables.exclusions import WITH_COMMAS, WITH_PERCENT, why_excluded, with_percent
from hetcal.tables.kinds import as_components, as_feature, kind_of, refuse_infinite
from hetcal.tables.selection import listed, named_exactly, select_columns

_USABLE = ("number", "boolean", "text")
_DATE, _EMPTY = "a date", "empty"
_MOST_LEVELS = 100
# A column with so few values that goes with the label without exception is suspicious.
_FEW_VALUES = 20
_FEW_ROWS = 50
_WEIGHT_NAME = re.compile(r"(.*[_\W])?(weights?|wt|fnlwgt)|w", re.IGNORECASE)


@dataclass
class TableFeatures:
    """The features of a table.

    Attributes
    ----------
    X : pandas.DataFrame or None
        Numbers as float64, levels as text (as a category where they are many).
    kinds, levels : dict
        As in :class:`hetcal.tables.TableRoles`.
    left_out : dict
        Columns that are no features, with the reason.
    notes : list of str
        The same in words, and what looks like a leak.
    """

    X: pd.DataFrame | None
    kinds: dict[str, str] = field(default_factory=dict)
    levels: dict[str, list[str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_features(
    frame: nw.DataFrame,
    *,
    taken: set[str],
    wanted: str | Sequence[str] | None,
    drop: str | Sequence[str] | None,
    y: NDArray,
) -> TableFeatures:
    """Return the features: those that are wanted, or every column that can be one.

    Parameters
    ----------
    frame : narwhals.DataFrame
        The rows that are used.
    taken : set of str
        Columns that have another role.
    wanted, drop : str or list of str, optional
        As in :func:`hetcal.tables.read_labelled`.
    y : ndarray
        The labels, to notice columns that give them away.
    """
    names = list(frame.columns)
    dropped = set(select_columns(names, drop, "drop")) if drop is not None else set()
    chosen = select_columns(names, wanted, "features") if wanted is not None else names
    insisted = named_exactly(names, wanted)
    result = TableFeatures(None)
    columns: dict[str, pd.Series] = {}
    for name in chosen:
        if name in insisted & taken:
            raise InputError(
                f"{name!r} cannot be a feature: it has another role (label, probability, groups, "
                "weight or time). Take it out of --features."
            )
        if name in taken | dropped:
            continue
        kind = kind_of(frame[name])
        if kind == "nested" and name in insisted:
            parts = as_components(frame[name])
            for part, numbers in parts.items():
                refuse_infinite(numbers, part, of=" of those with a label and a probability")
            result.kinds[name], result.levels[name] = "vector", list(parts)
            columns |= parts
            continue
        values = as_feature(frame[name], kind) if kind in _USABLE else pd.Series(dtype=float)
        reason = why_excluded(name, values, kind)
        if reason is not None and not (name in insisted and kind in _USABLE):
            if name in insisted and kind != "empty":
                raise InputError(
                    f"{name!r} is {reason} and cannot be a feature as it is. Turn it into numbers "
                    "(an age in days, the month), or take it out of --features."
                )
            result.left_out[name] = reason
            continue
        refuse_infinite(values, name, of=" of those with a label and a probability")
        result.kinds[name] = kind
        if kind == "text":
            result.levels[name] = sorted(set(values.dropna()))
            if len(result.levels[name]) > _MOST_LEVELS:
                values = values.astype("category")
        columns[name] = values
    if columns:
        result.X = pd.DataFrame(columns)
    result.notes = _notes(result, columns, y)
    return result


def _notes(result: TableFeatures, columns: dict[str, pd.Series], y: NDArray) -> list[str]:
    notes = []
    if result.left_out:
        shown = [f"{name or '(no name)'} ({why})" for name, why in result.left_out.items()]
        more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
        notes.append(f"Not used as features: {', '.join(shown[:8])}{more}.{_remedy(result)}")
    commas = [name for name, why in result.left_out.items() if why == WITH_COMMAS]
    if commas:
        notes.append(
            f"{listed(commas, 5)}: numbers with a comma are text. If it is the decimal sign of all "
            "numbers, pass --decimal , (decimal=','); else write them without, e.g. 1234.5."
        )
    percent = [name for name, why in result.left_out.items() if why == WITH_PERCENT]
    percent += [n for n, v in columns.items() if result.kinds.get(n) == "text" and with_percent(v)]
    if percent:
        notes.append(
            f"{listed(percent, 5)}: numbers with a % sign are text, and as a feature every "
            "different text is a level of its own. Write them without the sign, e.g. 40.5."
        )
    weights = [name for name in columns if _may_weigh(name, columns[name])]
    if weights:
        notes.append(
            f"{listed(weights, 5)} {'are' if len(weights) > 1 else 'is'} used as "
            f"{'features' if len(weights) > 1 else 'a feature'}. If that says how much a row counts"
            f", pass --weight {weights[0]}."
        )
    telling = [name for name, values in columns.items() if _gives_away(values, y)]
    if telling:
        notes.append(
            f"{listed(telling, 5)} {'tell' if len(telling) > 1 else 'tells'} the label without "
            "exception. If that is not known when the model is asked, the result is worthless: "
            f"pass --drop {','.join(telling[:5])}."
        )
    if not columns:
        notes.append("No feature is left; only global methods (temperature, platt, ...) can work.")
    return notes


def _remedy(result: TableFeatures) -> str:
    """Return how to use a column that was left out, where that is possible."""
    reasons = set(result.left_out.values())
    if reasons <= {_DATE, _EMPTY}:
        return ""
    but_dates = " (a date cannot be)" if _DATE in reasons else ""
    return f" Name a column in --features to use it all the same{but_dates}."


def _may_weigh(name: str, values: pd.Series) -> bool:
    """Say whether a column may hold the weights of the rows, by its name and values."""
    named = _WEIGHT_NAME.fullmatch(name) is not None
    return (
        named and values.dtype.kind == "f" and not values.isna().any() and bool((values >= 0).all())
    )


def _gives_away(values: pd.Series, y: NDArray) -> bool:
    """Return whether a column with a few values determines the label."""
    if len(values) < _FEW_ROWS or not 2 <= values.nunique() <= _FEW_VALUES or values.isna().any():
        return False
    codes = np.unique(y, return_inverse=True)[1]
    per_value = pd.Series(codes).groupby(values.to_numpy(), observed=True).nunique()
    return bool((per_value == 1).all())
