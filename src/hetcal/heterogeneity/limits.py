"""What limits the answer: too few items or groups, labels or columns that do not vary."""

from __future__ import annotations

import numpy as np

from hetcal.data import CalibrationSet
from hetcal.data.repeated_rows import repeated_rows
from hetcal.heterogeneity.feature_columns import FeatureColumns

LEAST_ITEMS = 40
LEAST_GROUPS = 3
_FEW_GROUPS = 10
HEAVY = 0.1
NOTHING_BEYOND_P = (
    "every column of X is a function of p, or has levels that hardly any two items share; there "
    "is nothing that could be hidden."
)


def nothing_to_test(items: CalibrationSet, columns: FeatureColumns) -> str | None:
    """Say why nothing can be tested, or None."""
    if items.n_items < LEAST_ITEMS:
        return f"{items.n_items} items are too few to test anything; {LEAST_ITEMS} are the least."
    if len(np.unique(items.codes)) < 2:
        return "all items have the same label; there is nothing to explain."
    if columns.is_empty:
        return "no column of X takes two values; there is nothing that could be hidden."
    if 0 < n_groups(items) < LEAST_GROUPS:
        return note_on_groups(items)
    return None


def notes_on(items: CalibrationSet, columns: FeatureColumns) -> tuple[str, ...]:
    """Say what makes the answer uncertain, if anything does."""
    of_groups = note_on_groups(items)
    notes = [] if of_groups is None else [of_groups]
    copies = repeated_rows(items, columns.matrix())
    if copies is not None:
        notes.append(
            f"{copies.n_repeats} of {items.n_items} rows repeat another one and count as items of "
            "their own: the p-value, the bound and the interval of the global part are too sure. "
            "Drop the copies, or pass groups= with one value per item."
        )
    share = heaviest_share(items)
    if share >= HEAVY:
        notes.append(
            f"one item has {share:.0%} of all weight: the global part, its interval and the bound "
            "hang on its label. Check sample_weight."
        )
    return tuple(notes)


def note_on_groups(items: CalibrationSet) -> str | None:
    """Say what so few groups cannot show, or None where there are enough, or no groups at all."""
    G = n_groups(items)
    if G == 0 or G >= _FEW_GROUPS:
        return None
    if G < LEAST_GROUPS:
        s = "s are" if G > 1 else " is"
        return f"{G} group{s} too few to test anything; {LEAST_GROUPS} are the least."
    return (
        f"with {G} groups no p-value can be below {least_p(items):.2g}, and the lower bound is as "
        "uncertain as an error from so few groups."
    )


def heaviest_share(items: CalibrationSet) -> float:
    """Return the share of the weight that the heaviest item has; 0 without weights."""
    return 0.0 if items.weight is None else float(items.weight.max() / items.weight.sum())


def n_groups(items: CalibrationSet) -> int:
    """Return the number of groups, 0 where there are none."""
    return 0 if items.groups is None else len(np.unique(items.groups))


def least_p(items: CalibrationSet) -> float:
    """Return the smallest p-value that signs of so few groups can give."""
    return least_p_of(n_groups(items))


def least_p_of(n_groups: int) -> float:
    """Return the smallest p-value that signs of so many groups can give; 0 without groups."""
    return 2.0 ** (1 - n_groups) if 0 < n_groups < 60 else 0.0


def groups_for(level: float) -> int:
    """Return the least number of groups whose p-value can be as small as the level.

    Examples
    --------
    >>> groups_for(0.05), groups_for(0.02)
    (6, 7)
    """
    return next(n for n in range(1, 61) if least_p_of(n) <= level)
