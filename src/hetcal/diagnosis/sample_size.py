"""How many items would settle what these leave open."""

from __future__ import annotations

import numpy as np

from hetcal.data import CalibrationSet
from hetcal.diagnosis.measurements import ONE_SIDED_95, Measurements, class_pairs
from hetcal.diagnosis.verdicts import Answer

# So that a gain that just matters is found, and its absence seen, in 95 of 100 cases.
_SURELY_FOUND = (2 * ONE_SIDED_95) ** 2
# The unit of a gain, as a multiple of the Brier score over n: of few items it is measured badly.
_USUAL_SPREAD = 2.0
_WANTED_OF_SECOND_CLASS = 50
# Where a model is hardly ever wrong, no number that anybody could collect would settle it.
MOST_ITEMS = 1_000_000


def items_needed(
    items: CalibrationSet, evidence: Measurements, global_map: Answer, local: Answer, share: float
) -> int:
    """Return about how many items would settle it."""
    n = items.n_items
    least = np.finfo(float).eps  # where nothing is wrong, nothing can be gained either
    spreads = [_USUAL_SPREAD]
    if global_map is Answer.UNSURE:
        spreads.append(evidence.global_unit * n / max(evidence.brier, least))
    if local is Answer.UNSURE:
        spreads.append(evidence.local_unit * n / max(evidence.reference_brier, least))
    return enough_items(items, share, max(spreads))


def enough_items(items: CalibrationSet, share: float, spread: float = _USUAL_SPREAD) -> int:
    """Return a number that grows with the items and falls with what matters.

    It is at least twice as many as there are, and as many as hold enough items of the second most
    frequent class; many classes need many. More than a million are not told apart, unless there
    are as many already.
    """
    second = max(int(np.sort(np.bincount(items.codes, minlength=2))[-2]), 1)
    rare = _WANTED_OF_SECOND_CLASS * items.n_items / second
    spread = max(spread, class_pairs(items))
    wanted = min(max(rare, _SURELY_FOUND * spread / share), MOST_ITEMS)
    return _rounded(max(2.0 * items.n_items, wanted))


def _rounded(number: float) -> int:
    """Return the number with two digits that say something."""
    digits = max(int(np.floor(np.log10(number))) - 1, 0)
    return int(np.ceil(number / 10**digits) * 10**digits)
