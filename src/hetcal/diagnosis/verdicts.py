"""What advise can say, and the rules by which it says it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hetcal.diagnosis.measurements import Gain

LEAVE_IT = "leave it"
GLOBAL_IS_ENOUGH = "global map is enough"
GO_LOCAL = "go local"
RETRAIN = "retrain instead"
COLLECT_MORE = "collect more data"

#: Every verdict, in the words that a user sees.
VERDICTS = (LEAVE_IT, GLOBAL_IS_ENOUGH, GO_LOCAL, RETRAIN, COLLECT_MORE)

#: What can be done with the probabilities: the hybrid, a global map by its name, or nothing.
HYBRID, AS_IT_IS = "hybrid", "uncalibrated"

# With less than this nothing can be said; see the rules in docs/how-to/advise.md.
LEAST_ITEMS = 40
LEAST_OF_SECOND_CLASS = 5
#: Level of the test of hidden heterogeneity at which it is called real.
LEVEL = 0.02
#: Level of `heterogeneity_test` by itself; between the two the words are careful.
LEVEL_OF_TEST = 0.05
#: So many standard errors of an out-of-sample gain are proof enough, with or without a test.
SURE_ERRORS = 3.0
# A share of next to nothing (a model that is never wrong) is no gain that matters to anybody.
LEAST_GAIN = 1e-5


class State(StrEnum):
    """What is known about hidden heterogeneity."""

    REAL = "real"
    NOT_FOUND = "not found"
    OPEN = "open"


def too_little_to_start(n_items: int, n_second_class: int) -> bool:
    """Return whether there are too few items to fit anything."""
    return n_items < LEAST_ITEMS or n_second_class < LEAST_OF_SECOND_CLASS


def is_sure(gain: Gain) -> bool:
    """Return whether a gain proves itself."""
    return gain.less(SURE_ERRORS) > 0


def pays(gain: Gain, matters: float, caution: float) -> bool:
    """Return whether to expect something of a repair: a gain that matters, or one that is sure.

    Parameters
    ----------
    gain : Gain
    matters : float
        Smaller gains are not worth it, unless they are sure.
    caution : float
        In standard errors: the gain must be positive without so many of them.
    """
    return gain.less(caution) > 0 and (gain.value >= matters or is_sure(gain))


def best_action(
    best_map: str,
    global_gain: Gain,
    local_gain: Gain,
    hybrid_gain: Gain,
    *,
    matters: tuple[float, float],
    caution: float,
) -> str:
    """Return the action with the lowest expected loss, of those that pay.

    Parameters
    ----------
    best_map : str
        Name of the global map.
    global_gain, local_gain, hybrid_gain : Gain
        Of the global map over the probabilities as they are; of the hybrid over the better of both;
        of the hybrid over the probabilities as they are.
    matters : (float, float)
        From where on gains over the probabilities matter, and gains over the better of both.
    caution : float
        As in :func:`pays`.
    """
    if hybrid_gain.value > 0 and pays(local_gain, matters[1], caution):
        return HYBRID
    if pays(global_gain, matters[0], caution):
        return best_map
    return HYBRID if pays(hybrid_gain, matters[0], caution) else AS_IT_IS


def state_of(p_value: float, local_gain: Gain, detectable: float, matters: float) -> State:
    """Return what is known about hidden heterogeneity.

    Parameters
    ----------
    p_value : float
        Of the test that a global map repairs everything.
    local_gain : Gain
        What the hybrid gains over the better of a global map and none.
    detectable : float
        What the test would have found.
    matters : float
        Smaller sizes do not.
    """
    if p_value <= LEVEL or is_sure(local_gain):
        return State.REAL
    # An interval above 0 is a sign that the test has missed something.
    return State.NOT_FOUND if detectable <= matters and local_gain.low <= 0 else State.OPEN


def decide(
    action: str, state: State, *, retraining_wins: bool, more_would_help: bool = True
) -> str:
    """Return the verdict: what to do now, in a word.

    Parameters
    ----------
    action : str
        From :func:`best_action`.
    state : State
    retraining_wins : bool
        Whether a model trained on the calibration items alone beats the global map, and the
        classifier's probabilities add next to nothing to the features.
    more_would_help : bool, default=True
        Whether more items of the same features could settle what is open.

    Examples
    --------
    >>> decide("hybrid", State.OPEN, retraining_wins=False)
    'go local'
    >>> decide("uncalibrated", State.OPEN, retraining_wins=False)
    'collect more data'
    """
    if retraining_wins:
        return RETRAIN
    if action == AS_IT_IS:
        settled = state is State.NOT_FOUND or (state is State.OPEN and not more_would_help)
        return LEAVE_IT if settled else COLLECT_MORE
    return GO_LOCAL if action == HYBRID else GLOBAL_IS_ENOUGH
