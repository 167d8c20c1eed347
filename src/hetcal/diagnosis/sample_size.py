"""How many items, or groups of items, would settle what these leave open."""

from __future__ import annotations

import numpy as np

from hetcal.data import CalibrationSet
from hetcal.diagnosis.verdicts import LEVEL
from hetcal.heterogeneity.limits import groups_for, least_p_of, n_groups

# Items times the detectable share of the Brier score: what simulation gives for two classes and
# some ten columns. Used where there are too few items to simulate anything.
_USUAL = 35.0
WANTED_OF_SECOND_CLASS = 50
# Where a model is hardly ever wrong, no number that anybody could collect would settle it.
MOST_ITEMS = 1_000_000


def items_to_settle(items: CalibrationSet, detectable: float, target: float) -> int:
    """Return about how many items find a difference of the size ``target``, or show its absence.

    What can be found falls like one over the number of items.

    Parameters
    ----------
    items : CalibrationSet
    detectable : float
        The size that these items show.
    target : float
        The size that shall be seen.
    """
    n = items.n_items
    wanted = n * detectable / target
    if wanted <= n:  # it should be seen already: ask for a second look
        wanted = 2.0 * n
    return _asked_for(items, wanted)


def items_to_start(items: CalibrationSet, share: float) -> int:
    """Return about how many items are needed where there are too few to simulate anything.

    Parameters
    ----------
    items : CalibrationSet
    share : float
        The smallest difference that shall be seen, as a share of the Brier score.
    """
    return _asked_for(items, max(2.0 * items.n_items, _USUAL / share))


def are_too_few_groups(number: int) -> bool:
    """Return whether there are groups, but no p-value of so few can be as small as is asked for."""
    return least_p_of(number) > LEVEL


def groups_for_items(items: CalibrationSet, number: int) -> int | None:
    """Return about how many groups like these have so many rows; None without groups.

    Rows of one group may all say the same, so where there are groups it is groups that count.
    """
    G = n_groups(items)
    if G == 0:
        return None
    return max(groups_for(LEVEL), _rounded(G * number / items.n_items))


def _asked_for(items: CalibrationSet, wanted: float) -> int:
    """Return the number, or as many as hold enough of the second most frequent class."""
    wanted = min(max(_for_second_class(items), wanted), MOST_ITEMS)
    return _rounded(max(wanted, 1.1 * items.n_items))


def is_for_second_class(items: CalibrationSet, number: int) -> bool:
    """Return whether so many items are asked for only to hold enough of the second class."""
    rare = _for_second_class(items)
    return rare > 1.1 * items.n_items and number <= _rounded(rare)


def _for_second_class(items: CalibrationSet) -> float:
    second = max(int(np.sort(np.bincount(items.codes, minlength=2))[-2]), 1)
    return WANTED_OF_SECOND_CLASS * items.n_items / second


def _rounded(number: float) -> int:
    """Return the number with two digits that say something."""
    digits = max(int(np.floor(np.log10(number))) - 1, 0)
    return int(np.ceil(number / 10**digits) * 10**digits)
