"""Advice: what each method would bring on the user's own data, and what to do."""

from hetcal.advice.advise import Advice, advise
from hetcal.advice.checks import AdviceWarning
from hetcal.advice.comparison import Comparison, compare
from hetcal.advice.cross_validation import CrossValidated, cross_validated
from hetcal.advice.extrapolation import MoreData
from hetcal.advice.learning_curves import LearningCurve, learning_curve
from hetcal.advice.prior_shift import (
    PriorShift,
    correct_prior,
    estimate_prior,
    measure_prior_shift,
)
from hetcal.advice.verdicts import (
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
    "learning_curve",
    "measure_prior_shift",
]
