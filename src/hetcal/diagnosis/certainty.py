"""How sure it is that something is hidden, and what would settle it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetcal.data import CalibrationSet
from hetcal.diagnosis.measurements import Measurements
from hetcal.diagnosis.sample_size import (
    are_too_few_groups,
    groups_for_items,
    is_for_second_class,
    items_to_settle,
)
from hetcal.diagnosis.splits import nested_parts
from hetcal.diagnosis.verdicts import LEAST_GAIN, LEVEL, State, state_of
from hetcal.heterogeneity.detectable import detectable_size
from hetcal.heterogeneity.feature_columns import FeatureColumns
from hetcal.heterogeneity.limits import groups_for, n_groups

_SIMULATED_ITEMS = 2000  # what can be found falls like 1/n, so that more need no simulation


@dataclass(frozen=True)
class Certainty:
    """What is known about hidden heterogeneity: differences between items of equal probability.

    Attributes
    ----------
    state : {"real", "not found", "open"}
        "real": the test rejects at 2 %, or the hybrid's out-of-sample gain exceeds three standard
        errors. "not found": neither, and a difference of a size that matters would have been found
        with 80 % probability. "open": everything else.
    p_value : float
        Of the test that a global map repairs everything; NaN where nothing was measured.
    detectable : float
        The size that these items would have shown with 80 % probability, in Brier score: simulated
        on their own features and probabilities, for a step or trend in one column or a corner of
        two. Infinite where not even the largest would have been; NaN where nothing was simulated.
    detectable_share : float
        The same as a share of the Brier score that the better of a global map and none leaves; NaN
        where that is next to nothing.
    items_to_settle : int or None
        About how many items (rows) in all would settle what is open, at most a million; with
        ``groups`` these must be of so many groups as the next says. None where nothing is
        open, where a warning must be settled first, or where no number would: the features show
        nothing that the probabilities do not, or only other groups would help.
    groups_to_settle : int or None
        With ``groups``: how many groups that is in all, if more are like these. Where there are
        fewer than can tell anything, the least number of those that can; ``items_to_settle`` is
        then None, since more rows of the same groups would not help.
    for_second_class : bool
        Whether so many are asked for only so that 50 of the second most frequent class are among
        them.
    """

    state: State
    p_value: float = float("nan")
    detectable: float = float("nan")
    detectable_share: float = float("nan")
    items_to_settle: int | None = None
    groups_to_settle: int | None = None
    for_second_class: bool = False

    @property
    def more_would_help(self) -> bool:
        """Whether more items, or items of more groups, could settle what is open."""
        return self.items_to_settle is not None or self.groups_to_settle is not None


def simulated_detectable(items: CalibrationSet, random_state: int) -> float:
    """Return the size that these items would have shown with 80 % probability."""
    if are_too_few_groups(n_groups(items)):
        return np.inf
    n = items.n_items
    part = items
    if n > _SIMULATED_ITEMS:
        (rows,) = nested_parts(items, np.arange(n), [_SIMULATED_ITEMS], random_state)
        part = items.take(rows)
    size = detectable_size(part, level=LEVEL, random_state=random_state)
    return size * part.n_items / n


def _features_could_show_more(items: CalibrationSet) -> bool:
    return FeatureColumns.read(items.X).could_show_more_than(items.proba)


def certainty_of(
    items: CalibrationSet,
    evidence: Measurements,
    detectable: float,
    matters: float,
    *,
    void: bool,
) -> Certainty:
    """Return what is known; where a warning voids everything, that is nothing."""
    state, wanted, groups = State.OPEN, None, None
    size = min(detectable, evidence.reference_brier)  # nothing can be larger
    if not void:
        state = state_of(evidence.local_p_value, evidence.local_gain, size, matters)
    if state is State.OPEN and not void and _features_could_show_more(items):
        if are_too_few_groups(n_groups(items)):
            groups = groups_for(LEVEL)
        else:
            # What was found, less its error, if that is more than what must be seen anyway.
            target = max(matters, evidence.hh_local - evidence.hh_standard_error)
            wanted = items_to_settle(items, size, target)
            groups = groups_for_items(items, wanted)
    some_left = evidence.reference_brier > LEAST_GAIN  # else there is nothing to take a share of
    share = detectable / evidence.reference_brier if some_left else float("nan")
    rare = wanted is not None and is_for_second_class(items, wanted)
    return Certainty(state, evidence.local_p_value, detectable, share, wanted, groups, rare)
