"""What could make the calibration items misleading: each check gives one warning or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from hetcal._typing import Matrix, Vector
from hetcal._validation import find_column_order
from hetcal.data import CalibrationSet
from hetcal.data.repeated_rows import repeated_rows
from hetcal.diagnosis.dependence import Dependence, as_numbers, columns_of
from hetcal.diagnosis.prior_shift import PriorShift
from hetcal.heterogeneity.limits import HEAVY, heaviest_share, note_on_groups
from hetcal.metrics.scores import brier_losses

# Numbers rows that nearly repeat each other, where no column does.
MAKESHIFT = "hetcal.diagnosis.group_near_copies"
FEW_ERRORS = 10
_DOMINANT = 0.5
# Training rows: after a global map the model is ten times better than one retrained on others ...
_TOO_GOOD = 0.1
# ... and is wrong less often than it says itself, by this many standard errors,
_SURPRISINGLY_RIGHT = 3.0
# or says nothing but 0 and 1 and is never wrong, where the retrained model often is.
_CERTAIN, _OFTEN_WRONG = 1e-3, 0.05
# One column orders a class before all others, and the classifier does not (areas under the curve);
# so many rows show it, and a level of a category must have so many.
_TELLS, _TELLS_NOT, _ROWS_TO_TELL, _ROWS_OF_LEVEL = 0.995, 0.95, 2000, 10
# A difference in class balance as large as this might be there unseen, and labels would show it.
_OPEN_BALANCE, _MUCH_WIDER = 0.1, 3.0
# From this share on, a class that no item has matters.
_MATTERS, _LABELS_NAMED = 0.02, 5
_MANY_REPEATS = 0.1  # of the rows: what the copies give away decides what is found


@dataclass(frozen=True)
class AdviceWarning:
    """Something to look at before the verdict is believed.

    Attributes
    ----------
    code : str
        A short name for programs: ``"column-order"``, ``"class-never-seen"``,
        ``"training-rows"``, ``"telling-feature"``, ``"dominant-group"``, ``"few-groups"``,
        ``"heavy-item"``, ``"class-balance"``, ``"class-balance-open"``, ``"repeated-rows"``,
        ``"dependent-rows"``, ``"few-errors"``, ``"few-items"``.
    text : str
        What was seen, with its numbers, and what to do.
    voids : bool
        Whether nothing can be recommended until this is settled.
    """

    code: str
    text: str
    voids: bool = False


def check_column_order(items: CalibrationSet, *, still_needed: bool = True) -> AdviceWarning | None:
    """Warn when labels go with the probabilities of other columns, and not with their own.

    It voids the advice where the probabilities are still needed, and not where features do better.
    """
    found = find_column_order(items.codes, items.proba, items.weights, items.groups)
    if found is None:
        return None
    labels = items.classes.tolist()
    return AdviceWarning(
        "column-order",
        f"The labels go with other columns of {items.kind} than their own: the model is right on "
        f"{found.right:.0%} of the items, and would be on {found.right_then:.0%} with the columns "
        f"read as {_named([labels[k] for k in found.class_of])}. Are the columns in the order of "
        f"the classes, {_named(labels)}? Pass classes= in the order of the columns, or reorder the "
        "columns, and ask again"
        + ("; until then nothing is recommended." if still_needed else "."),
        voids=still_needed,
    )


def check_unseen_classes(
    items: CalibrationSet, shift: PriorShift | None = None
) -> AdviceWarning | None:
    """Warn when the model announces classes that no item has."""
    unseen = items.unseen
    if not unseen.any():
        return None
    here = float(np.average(items.proba, axis=0, weights=items.weights)[unseen].sum())
    there = 0.0 if shift is None else float(shift.new[unseen].sum())
    voids = max(here, there) >= _MATTERS
    names = [label for label, out in zip(items.classes.tolist(), unseen, strict=True) if out]
    one = len(names) == 1
    return AdviceWarning(
        "class-never-seen",
        f"{'Class' if one else 'Classes'} {_named(names)} {'is' if one else 'are'} announced ("
        f"{here:.1%} of the probability"
        + ("" if shift is None else f", {there:.1%} in the new data")
        + f"), but no calibration item has {'it' if one else 'them'}: what is learned from these "
        f"items takes {'it' if one else 'them'} for impossible, and every figure below is about "
        f"items of other classes. Collect items of {'it' if one else 'them'}, or, if "
        f"{'it' if one else 'they'} cannot occur, leave the column{'' if one else 's'} out and "
        "scale the rows to sum to one" + ("; until then nothing is recommended." if voids else "."),
        voids=voids,
    )


def _named(labels: list) -> str:
    """Return labels for a sentence, the first of many."""
    more = len(labels) - _LABELS_NAMED
    named = ", ".join(repr(label) for label in labels[:_LABELS_NAMED])
    return named if more <= 0 else f"{named} and {more} more"


def check_training_rows(
    items: CalibrationSet, best_map_brier: float, retrained: Matrix
) -> AdviceWarning | None:
    """Warn when the classifier seems to know these very items.

    A model that is scored on its own training rows gets them right where no other model could,
    and does so more often than it says (a forest's in-bag votes), or is certain and never wrong (a
    deep tree, one nearest neighbour).
    """
    P, codes, weight = items.proba, items.codes, items.weights
    top = P.max(axis=1)
    wrong = P.argmax(axis=1) != codes
    retrained_brier = float(np.average(brier_losses(retrained, codes), weights=weight))
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
        f"trained on the other rows is wrong on {retrained_error:.0%}. Calibrate on "
        "rows that the model has not seen, or on cross-validated probabilities; else these "
        "figures do not hold.",
    )


def check_telling_feature(items: CalibrationSet) -> AdviceWarning | None:
    """Warn when one feature tells a class from all others, and the classifier does not.

    It may only be known once the label is.
    """
    if not items.has_features or sparse.issparse(items.X):
        return None
    if items.n_items > _ROWS_TO_TELL:
        items = items.take(np.linspace(0, items.n_items - 1, _ROWS_TO_TELL).astype(np.int64))
    of_classes, labels = items.onehot.sum(axis=0), items.classes.tolist()
    for k in np.flatnonzero(np.minimum(of_classes, items.n_items - of_classes) >= FEW_ERRORS):
        of_class = items.onehot[:, k] > 0
        by_model = _area(items.proba[:, k], of_class)
        if by_model > _TELLS_NOT:
            continue
        for name, column in columns_of(items.X).items():
            by_column = _area(_as_order(column, of_class), of_class)
            if by_column >= _TELLS:
                return AdviceWarning(
                    "telling-feature",
                    f"Column {name!r} alone tells class {labels[k]!r} from the others (area under "
                    f"the curve {by_column:.3f}, of the model's probability {by_model:.3f}). Is "
                    "it known before the label is? Something that is only known afterwards makes "
                    "every gain below one that new items will not have. Then leave the column out "
                    "and ask again.",
                )
    return None


def _as_order(column: Matrix, of_class: NDArray[np.bool_]) -> Vector:
    """Return numbers, missing ones lowest, or how often a level has the class."""
    numbers = as_numbers(column)
    if np.isfinite(numbers).any():
        return np.where(np.isnan(numbers), -np.inf, numbers)
    level = pd.Series(pd.factorize(np.asarray(column), use_na_sentinel=False)[0])
    found = pd.Series(of_class.astype(float)).groupby(level).agg(["mean", "size"])
    often = found["mean"].where(found["size"] >= _ROWS_OF_LEVEL, of_class.mean())
    return level.map(often).to_numpy(np.float64)


def _area(values: Vector, of_class: NDArray[np.bool_]) -> float:
    """Return how well values order the items of a class, upwards or downwards."""
    ranks, n = pd.Series(values).rank().to_numpy(), int(of_class.sum())
    area = (ranks[of_class].sum() - n * (n + 1) / 2) / (n * (len(ranks) - n))
    return float(max(area, 1 - area))


def check_groups_balance(items: CalibrationSet) -> AdviceWarning | None:
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


def check_few_groups(items: CalibrationSet) -> AdviceWarning | None:
    """Warn when the groups are so few that they bound what any test of them can show."""
    note = note_on_groups(items)
    if note is None:
        return None
    return AdviceWarning(
        "few-groups", f"{note[:1].upper()}{note[1:]} Collect items of other groups."
    )


def check_heavy_item(items: CalibrationSet) -> AdviceWarning | None:
    """Warn when a single item has a tenth of the weight or more."""
    share = heaviest_share(items)
    if share < HEAVY:
        return None
    return AdviceWarning(
        "heavy-item",
        f"One item has {share:.0%} of all weight: gains and their intervals hang on its label. "
        "Check sample_weight.",
    )


def check_repeated_rows(items: CalibrationSet) -> AdviceWarning | None:
    """Warn when rows repeat others exactly, and not because features have few values."""
    found = repeated_rows(items)
    if found is None:
        return None
    voids = found.n_repeats >= _MANY_REPEATS * items.n_items
    return AdviceWarning(
        "repeated-rows",
        f"{found.n_repeats} of {items.n_items} rows repeat another one in every feature and in the "
        f"probabilities ({found.n_same_label} with the same label), although features have so many "
        "values that this is no chance. If they are the same items, each is predicted from its own "
        "copies, and every figure below is too good. Drop the copies, or pass groups= with one "
        "value per item" + ("; until then nothing is recommended." if voids else "."),
        voids=voids,
    )


def what_was_seen(found: Dependence) -> str:
    """Return which rows seem to belong together, and what was measured that says so."""
    if found.near_copies:
        who = "Rows that are nearly equal in their features"
    elif not found.columns:
        who = "Neighbouring rows"
    else:
        who = "Rows with the same " + " and ".join(repr(name) for name in found.columns)
    if found.lost > 0 and found.by_gain:
        seen = (
            f"a forest {_gains(found.gain)} in Brier score over the probabilities when it has seen "
            f"such rows, and {_gains(found.gain_apart)} when it has not, which is what new ones "
            "can expect"
        )
    else:
        seen = (
            "their labels agree more than those of independent rows do (correlation "
            f"{found.agreement:.2f}), so that intervals and p-values that count rows are too sure"
        )
    return f"{who} seem to belong together: {seen}."


def check_dependence(found: Dependence | None, *, grouped: bool = False) -> AdviceWarning | None:
    """Warn when rows belong together although ``groups`` does not say so.

    Groups that are given are what the user knows. A column or near-copies can show that they do not
    say all; the order of the rows alone is too weak a sign to withhold the advice, and leaves
    nothing to pass.
    """
    if found is None:
        return None
    if grouped and not found.columns and not found.near_copies:
        return AdviceWarning(
            "dependent-rows",
            f"{what_was_seen(found)} If groups says all of that, this may be chance; else pass "
            "groups= with the column that does and ask again.",
        )
    if found.columns:
        names = " and ".join(repr(name) for name in found.columns)
        remedy = f"Pass groups= with {names} (in a command: --groups {','.join(found.columns)})"
    else:
        remedy = (
            "Pass groups= with a column that says which rows are of one event or person (in a "
            "command: --groups COLUMN; "
        )
        if found.near_copies:
            remedy += f"where there is none, groups={MAKESHIFT}(X))"
        else:
            remedy += "one value per row if no two belong together)"
    return AdviceWarning(
        "dependent-rows",
        f"{what_was_seen(found)} {remedy} and ask again; until then nothing is recommended.",
        voids=True,
    )


def _gains(gain: float) -> str:
    return f"{'loses' if gain < 0 else 'gains'} {abs(gain):.3f}"


def check_errors(items: CalibrationSet) -> AdviceWarning | None:
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


def check_class_balance(shift: PriorShift, items: CalibrationSet) -> AdviceWarning | None:
    """Warn when the new data have other class frequencies than the calibration items."""
    if shift.new[items.unseen].sum() >= _MATTERS:
        return _unknown_balance(shift, items)
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


def _unknown_balance(shift: PriorShift, items: CalibrationSet) -> AdviceWarning:
    """Say that the classifier sees classes in the new data that no calibration item has."""
    k = int(np.argmax(np.where(items.unseen, shift.new, -1)))
    label = items.classes.tolist()[k]
    return AdviceWarning(
        "class-balance",
        f"The new data may differ in class balance: no calibration item has class {label!r}, but "
        f"the model gives it {shift.new[k]:.1%} of the probability in the new data. How often it "
        "occurs there cannot be told without labelled items of it, nor then how often the other "
        "classes do; the call below corrects nothing.",
    )


def _open_balance(shift: PriorShift, items: CalibrationSet) -> AdviceWarning | None:
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
