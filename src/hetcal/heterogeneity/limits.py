"""What limits the answer: too few items or groups, labels or columns that do not vary."""

from __future__ import annotations

import numpy as np

from hetcal.data import CalibrationSet
from hetcal.data.repeated_rows import repeated_rows
from hetcal.heterogeneity.feature_columns import FeatureColumns

LEAST_ITEMS = 40
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
    if items.groups is not None and n_groups(items) < 3:
        return f"{n_groups(items)} groups are too few to test anything; 3 are the least."
    return None


def notes_on(items: CalibrationSet, columns: FeatureColumns) -> tuple[str, ...]:
    """Say what makes the answer uncertain, if anything does."""
    notes = []
    G = n_groups(items)
    if 0 < G < _FEW_GROUPS:
        notes.append(
            f"with {G} groups no p-value can be below {least_p(items):.2g}, and the lower bound "
            "is as uncertain as an error from so few groups."
        )
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


def heaviest_share(items: CalibrationSet) -> float:
    """Return the share of the weight that the heaviest item has; 0 without weights."""
    return 0.0 if items.weight is None else float(items.weight.max() / items.weight.sum())


def n_groups(items: CalibrationSet) -> int:
    """Return the number of groups, 0 where there are none."""
    return 0 if items.groups is None else len(np.unique(items.groups))


def least_p(items: CalibrationSet) -> float:
    """Return the smallest p-value that signs of so few groups can give."""
    G = n_groups(items)
    return 2.0 ** (1 - G) if 0 < G < 60 else 0.0
