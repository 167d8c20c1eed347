"""What could make the calibration items misleading: each check gives one warning or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hetcal.advice.items import CalibrationItems, Matrix
from hetcal.advice.prior_shift import PriorShift
from hetcal.advice.repetition import repeated_rows
from hetcal.metrics.scores import brier_losses

FEW_ERRORS = 10
_DOMINANT = 0.5
# Training rows: with a global map the model is ten times better than an honest retrained one ...
_TOO_GOOD = 0.1
# ... and is wrong less often than it says itself, by this many standard errors,
_SURPRISINGLY_RIGHT = 3.0
# or says nothing but 0 and 1 and is never wrong, where the retrained model often is.
_CERTAIN, _OFTEN_WRONG = 1e-3, 0.05
# A difference in class balance as large as this might be there unseen, and labels would show it.
_OPEN_BALANCE, _MUCH_WIDER = 0.1, 3.0


@dataclass(frozen=True)
class AdviceWarning:
    """Something to look at before the verdict is believed.

    Attributes
    ----------
    code : str
        A short name for programs: ``"training-rows"``, ``"dominant-group"``, ``"class-balance"``,
        ``"class-balance-open"``, ``"repeated-rows"``, ``"few-errors"``, ``"few-items"``.
    text : str
        What was seen, with its numbers, and what to do.
    """

    code: str
    text: str


def check_training_rows(
    items: CalibrationItems, best_map_brier: float, retrained: Matrix
) -> AdviceWarning | None:
    """Warn when the classifier seems to know these very items.

    A model that is scored on its own training rows gets them right where no honest model could,
    and does so more often than it says (a forest's in-bag votes), or is certain and never wrong (a
    deep tree, one nearest neighbour).
    """
    P, codes, weight = items.proba, items.codes, items.weights
    truth = np.eye(P.shape[1])[codes]
    top = P.max(axis=1)
    wrong = P.argmax(axis=1) != codes
    retrained_brier = float(np.average(brier_losses(retrained, truth), weights=weight))
    retrained_error = float(np.average(retrained.argmax(axis=1) != codes, weights=weight))
    if not best_map_brier < _TOO_GOOD * retrained_brier or retrained_error < _OFTEN_WRONG:
        return None
    announced, spread = float((1 - top).sum()), float(np.sqrt((top * (1 - top)).sum()))
    lucky = spread > 0 and (announced - wrong.sum()) / spread > _SURPRISINGLY_RIGHT
    certain = announced / items.n_items < _CERTAIN and not wrong.any()
    if not (lucky or certain):
        return None
    return AdviceWarning(
        "training-rows",
        "These rows look like the model's training rows. It is wrong on "
        f"{int(wrong.sum())} of {items.n_items} (it announces {announced:.0f}), while a model "
        f"trained honestly on the same features is wrong on {retrained_error:.0%}. Calibrate on "
        "rows that the model has not seen, or on cross-validated probabilities; else nothing "
        "below holds.",
    )


def check_groups_balance(items: CalibrationItems) -> AdviceWarning | None:
    """Warn when one group makes up half of the items or more."""
    if items.groups is None:
        return None
    mass = np.bincount(items.groups, items.weights)
    share = float(mass.max() / mass.sum())
    if share < _DOMINANT:
        return None
    return AdviceWarning(
        "dominant-group",
        f"One value of groups holds {share:.0%} of the items ({mass.shape[0]} groups): what is "
        "learned is mostly about that group, and the intervals rest on few groups. Collect items "
        "of other groups, or advise on each large group apart.",
    )


def check_repeated_rows(items: CalibrationItems) -> AdviceWarning | None:
    """Warn when rows repeat others exactly, and not because features have few values."""
    found = repeated_rows(items)
    if found is None:
        return None
    return AdviceWarning(
        "repeated-rows",
        f"{found.n_repeats} of {items.n_items} rows repeat another one in every feature and in the "
        f"probabilities ({found.n_same_label} with the same label), although features have so many "
        "values that this is no chance. If they are the same items, each is predicted from its own "
        "copies, and every figure below is too good. Drop the copies, or pass groups= with one "
        "value per item.",
    )


def check_errors(items: CalibrationItems) -> AdviceWarning | None:
    """Warn when there are too few mistakes to learn from."""
    n_wrong = int((items.proba.argmax(axis=1) != items.codes).sum())
    rarest = np.bincount(items.codes, minlength=items.classes.shape[0])
    fewest = min(n_wrong, items.n_items - int(rarest.max()))
    if fewest >= FEW_ERRORS:
        return None
    s = "" if fewest == 1 else "s"
    what = f"error{s} of the model" if fewest == n_wrong else f"item{s} outside the largest class"
    return AdviceWarning(
        "few-errors",
        f"Only {fewest} {what} among {items.n_items} items: whatever is said about them is "
        "uncertain, and the intervals may be too short.",
    )


def check_class_balance(shift: PriorShift, items: CalibrationItems) -> AdviceWarning | None:
    """Warn when the new data have other class frequencies than the calibration items."""
    if not shift.shifted.any():
        return _open_balance(shift, items)
    k = int(np.argmax(np.where(shift.shifted, np.abs(shift.new - shift.old), -1)))
    label = items.classes.tolist()[k]
    return AdviceWarning(
        "class-balance",
        f"The new data differ in class balance: class {label!r} makes up {shift.old[k]:.1%} of "
        f"the calibration items and about {shift.new[k]:.1%} of the new ones (difference "
        f"{shift.new[k] - shift.old[k]:+.1%}, 95 % interval {shift.low[k]:+.1%} to "
        f"{shift.high[k]:+.1%}; seen in the {shift.seen_in}), if items of a class look alike in "
        "both. The call below corrects the probabilities for it (hetcal.correct_prior).",
    )


def _open_balance(shift: PriorShift, items: CalibrationItems) -> AdviceWarning | None:
    """Say so where even a large shift would not be seen, and not for want of items."""
    if shift.half_width <= max(_OPEN_BALANCE, _MUCH_WIDER * shift.labels_half_width):
        return None
    k = int(np.argmax(shift.high - shift.low))
    return AdviceWarning(
        "class-balance-open",
        f"Whether the new data differ in class balance is open: the share of class "
        f"{items.classes.tolist()[k]!r} may differ by {shift.low[k]:+.0%} to {shift.high[k]:+.0%} "
        "from that of the calibration items (95 % interval). The probabilities say too little "
        "about the class to tell; with X_new the features are asked too, and labels of a few "
        "hundred new items settle it.",
    )
