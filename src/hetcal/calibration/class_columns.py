"""Which columns of a table hold the probabilities, and of which class each."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SEPARATORS = "_-.: /"
_WILDCARDS = "*?"


@dataclass(frozen=True)
class NamedColumns:
    """The columns of a table or an array.

    Attributes
    ----------
    names : list of str or None
        None where they have no names.
    width : int
        How many there are.
    """

    names: list[str] | None
    width: int

    def first(self, n_classes: int) -> list[int]:
        """Return the first columns, one per class."""
        if self.width < n_classes:
            raise ValueError(
                f"columns=None takes one column per class, but X has {self.width} feature(s) "
                f"(n_features = {self.width}) for {n_classes} classes. Pass columns=[...]."
            )
        return list(range(n_classes))

    def find(self, wanted: Any) -> list[int]:
        """Return the positions of columns by a pattern, or by names and numbers."""
        if _is_pattern(wanted):
            return self._matching(wanted)
        places = [self._place(column) for column in _listed(wanted)]
        if len(set(places)) < len(places) or not places:
            raise ValueError(
                f"columns={wanted!r} names no column, or one column twice. "
                "Name the column of each class once."
            )
        return places

    def classes_of(self, wanted: Any, places: list[int], labels: NDArray) -> NDArray:
        """Return the class of each column by its name (of a single column: its class last).

        Columns without names, or that were numbered, are in the order of the labels.
        """
        named = wanted is not None and all(isinstance(column, str) for column in _listed(wanted))
        if self.names is None or not named:
            return labels
        names = [self.names[j] for j in places]
        if len(places) == 1:
            return _named_class_last(names[0], labels)
        if _is_pattern(wanted):
            return _typed_like(_parts_for_the_star(wanted, names), labels)
        return _classes_from_names(names, labels)

    def _place(self, column: Any) -> int:
        names, width = self.names, self.width
        if isinstance(column, str):
            if names is None:
                raise ValueError(
                    f"columns names {column!r}, but X is an array without column names. "
                    "Pass column numbers, or X as a pandas or polars table."
                )
            if column not in names:
                raise ValueError(
                    f"X has no column {column!r}; its columns are {names[:20]}. Fix columns=."
                )
            return names.index(column)
        place = int(column)
        if not -width <= place < width:
            raise ValueError(
                f"columns holds {place}, but X has {width} columns. Number them from 0."
            )
        return place % width

    def _matching(self, pattern: str) -> list[int]:
        if self.names is None:
            raise ValueError(
                f"columns={pattern!r} is a pattern, but X is an array without column names. "
                "Pass column numbers, or X as a pandas or polars table."
            )
        places = [j for j, name in enumerate(self.names) if fnmatchcase(name, pattern)]
        if not places:
            raise ValueError(
                f"No column of X matches columns={pattern!r}; its columns are {self.names[:20]}. "
                "Fix the pattern, or name the columns one by one."
            )
        return places


def _listed(wanted: Any) -> list[Any]:
    return [wanted] if isinstance(wanted, str | int | np.integer) else list(wanted)


def _is_pattern(wanted: Any) -> bool:
    return isinstance(wanted, str) and any(sign in wanted for sign in _WILDCARDS)


def _parts_for_the_star(pattern: str, names: list[str]) -> list[str]:
    """Return what the wildcards of a pattern stand for in each name."""
    first = min(pattern.index(sign) for sign in _WILDCARDS if sign in pattern)
    last = max(pattern.rindex(sign) for sign in _WILDCARDS if sign in pattern)
    after = len(pattern) - last - 1
    return [name[first : len(name) - after] for name in names]


def _typed_like(names: list[str], labels: NDArray) -> NDArray:
    """Return class names read from columns as the type of the labels: ``"3"`` as 3."""
    known = {str(label): label for label in labels.tolist()}
    kind = {"i": int, "u": int, "f": float}.get(labels.dtype.kind, str)
    try:
        order = np.array([known[name] if name in known else kind(name) for name in names])
    except ValueError:
        order = np.array(names)
    unmatched = [label for label in labels.tolist() if label not in set(order.tolist())]
    if unmatched:
        raise ValueError(
            f"The columns stand for the classes {names[:10]}, but y holds labels that are not in "
            f"classes: {unmatched[:10]}. Pass classes=[...] in the order of the columns."
        )
    return order


def _classes_from_names(names: list[str], labels: NDArray) -> NDArray:
    """Return the class of each named column: its name after a prefix that all columns share."""
    shared = min(len(name) for name in names)
    while any(name[:shared] != names[0][:shared] for name in names):
        shared -= 1
    wanted = {str(label) for label in labels.tolist()}
    for cut in range(shared, -1, -1):
        rest = [name[cut:] for name in names]
        if wanted <= set(rest):
            return _typed_like(rest, labels)
    raise ValueError(
        f"The columns {names[:10]} do not end with the names of the classes "
        f"{labels.tolist()[:10]}. Pass classes=[...] in the order of the columns."
    )


def _named_class_last(name: str, labels: NDArray) -> NDArray:
    """Return two classes such that the one that the column is named after comes last."""
    if labels.shape[0] != 2:
        return labels
    first, second = (str(label) for label in labels.tolist())
    named_first = name == first or any(name.endswith(sign + first) for sign in _SEPARATORS)
    named_second = name == second or any(name.endswith(sign + second) for sign in _SEPARATORS)
    return labels[::-1] if named_first and not named_second else labels
