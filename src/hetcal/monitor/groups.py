"""The groups of items that a monitor tests on their own: all, each class, each sub-population."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._typing import Rows

#: Kind (``all``, ``class``, ``by``) and name.
Group = tuple[str, str]
Members = dict[Group, NDArray[np.bool_]]

KINDS = ("all", "class", "by")
ALL: Group = ("all", "all items")


def title(group: Group) -> str:
    """Return what a group is called in alarms."""
    kind, name = group
    return name if kind == "all" else f"{kind} {name}"


def class_members(classes: NDArray, top: Rows, most: int) -> Members:
    """Return who is in which class; no classes at all where there are more than ``most``."""
    labels = classes.tolist() if len(classes) <= most else []
    return {("class", str(label)): top == code for code, label in enumerate(labels)}


def named_members(names: NDArray | None, chosen: Iterable[str] | None = None) -> Members:
    """Return who is in which of the chosen sub-populations, or in any; blank is none."""
    if names is None:
        return {}
    chosen = pd.unique(names) if chosen is None else chosen
    return {("by", str(name)): names == name for name in chosen if name}


def most_frequent(names: NDArray | None, most: int) -> list[str]:
    """Return the names that occur most often."""
    if names is None:
        return []
    return pd.Series(names[names != ""]).value_counts(sort=True).index[:most].tolist()
