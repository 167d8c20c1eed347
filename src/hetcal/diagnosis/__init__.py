"""Advice: what each method would bring on the user's own data, and what to do."""

from hetcal.data.near_copies import group_near_copies
from hetcal.diagnosis.advise import Advice, advise
from hetcal.diagnosis.certainty import Certainty
from hetcal.diagnosis.checks import AdviceWarning
from hetcal.diagnosis.comparison import Comparison, compare
from hetcal.diagnosis.cross_validation import CrossValidated, cross_validated
from hetcal.diagnosis.extrapolation import MoreData
from hetcal.diagnosis.learning_curves import LearningCurve, learning_curve
from hetcal.diagnosis.prior_shift import (
    PriorShift,
    correct_prior,
    estimate_prior,
    measure_prior_shift,
)
from hetcal.diagnosis.verdicts import (
    COLLECT_MORE,
    GLOBAL_IS_ENOUGH,
    GO_LOCAL,
    LEAVE_IT,
    RETRAIN,
    VERDICTS,
)

__all__ = [
    "COLLECT_MORE",
    "GLOBAL_IS_ENOUGH",
    "GO_LOCAL",
    "LEAVE_IT",
    "RETRAIN",
    "VERDICTS",
    "Advice",
    "AdviceWarning",
    "Certainty",
    "Comparison",
    "CrossValidated",
    "LearningCurve",
    "MoreData",
    "PriorShift",
    "advise",
    "compare",
    "correct_prior",
    "cross_validated",
    "estimate_prior",
    "group_near_copies",
    "learning_curve",
    "measure_prior_shift",
]
