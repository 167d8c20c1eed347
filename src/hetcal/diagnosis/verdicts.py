"""What advise can say, and the rules by which it says it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

LEAVE_IT = "leave it"
GLOBAL_IS_ENOUGH = "global map is enough"
GO_LOCAL = "go local"
RETRAIN = "retrain instead"
COLLECT_MORE = "collect more data"

#: Every verdict, in the words that a user sees.
VERDICTS = (LEAVE_IT, GLOBAL_IS_ENOUGH, GO_LOCAL, RETRAIN, COLLECT_MORE)

# With less than this nothing can be said; see the rules in docs/user/advise.md.
LEAST_ITEMS = 40
LEAST_OF_SECOND_CLASS = 5
LEVEL = 0.05
# With 200 items the test of hidden heterogeneity alarms more often than its level says.
LOCAL_LEVEL = 0.02
# Among many features the test may miss what the hybrid has gained; so many standard errors of an
# out-of-sample gain are proof enough.
SURE_ERRORS = 3.0
# A share of next to nothing (a model that is never wrong) is no gain that matters to anybody.
LEAST_GAIN = 1e-5


class Answer(StrEnum):
    """Whether a kind of repair pays."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"


@dataclass(frozen=True)
class Case:
    """The numbers that a question "does this repair pay?" is decided on.

    Attributes
    ----------
    p_value : float
        Of the test that there is nothing to repair.
    gain : float
        The out-of-sample gain in Brier score, less one standard error (local: 1.96 of them, so that
        it is the lower end of the interval).
    most : float
        The largest gain that the data do not rule out.
    worthwhile : float
        Gains below this do not matter.
    rising : bool
        Whether more items surely help what was tried, so that more could be gained with them.
    level : float
        Of the test.
    sure : bool
        Whether the out-of-sample gain proves by itself that there is something to repair.
    tested : float, optional
        The part of ``most`` that the test itself leaves; None: all of it. Where this is too small,
        the test has found nothing that matters, and what else is not ruled out is only open.
    """

    p_value: float
    gain: float
    most: float
    worthwhile: float
    rising: bool = False
    level: float = LEVEL
    sure: bool = False
    tested: float | None = None

    @property
    def answer(self) -> Answer:
        """No: even the largest gain is too small. Yes: it is real, and it was gained out of sample.

        Something real that more items would show better is not called too small.

        Examples
        --------
        >>> Case(p_value=0.001, gain=0.004, most=0.03, worthwhile=0.004).answer
        <Answer.YES: 'yes'>
        >>> Case(p_value=0.001, gain=0.0001, most=0.003, worthwhile=0.004).answer
        <Answer.NO: 'no'>
        >>> Case(p_value=0.2, gain=-0.001, most=0.01, worthwhile=0.004).answer
        <Answer.UNSURE: 'unsure'>
        """
        real = self.sure or self.p_value <= self.level
        if self.most < self.worthwhile and not (real and self.rising):
            return Answer.NO
        tested = self.most if self.tested is None else self.tested
        if tested < self.worthwhile and not (real and self.rising):
            return Answer.UNSURE
        return Answer.YES if real and self.gain > 0 else Answer.UNSURE


def too_little_to_start(n_items: int, n_second_class: int) -> bool:
    """Return whether there are too few items to fit anything."""
    return n_items < LEAST_ITEMS or n_second_class < LEAST_OF_SECOND_CLASS


def decide(global_map: Answer, local: Answer, *, retraining_wins: bool) -> str:
    """Return the verdict; the first rule that applies decides.

    Parameters
    ----------
    global_map, local : Answer
        Whether a global map pays over the probabilities as they are, and whether a local one pays
        over the better of that map and none.
    retraining_wins : bool
        Whether a model trained on the calibration items alone beats the global map, and the
        classifier's probabilities add next to nothing to the features.

    Examples
    --------
    >>> decide(Answer.YES, Answer.NO, retraining_wins=False)
    'global map is enough'
    >>> decide(Answer.NO, Answer.UNSURE, retraining_wins=False)
    'collect more data'
    """
    if retraining_wins:
        return RETRAIN
    if local is Answer.YES:
        return GO_LOCAL
    if Answer.UNSURE in (local, global_map):
        return COLLECT_MORE
    return GLOBAL_IS_ENOUGH if global_map is Answer.YES else LEAVE_IT
