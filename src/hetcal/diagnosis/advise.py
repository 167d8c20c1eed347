"""What to do with a classifier's probabilities, what it will bring, and the reason for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from hetcal._blas import with_one_blas_thread
from hetcal._printable import printable
from hetcal._typing import Rows
from hetcal._validation.by_name import output_by_name
from hetcal.calibration.hybrid import HybridCalibrator
from hetcal.data import CalibrationSet
from hetcal.diagnosis import checks, render
from hetcal.diagnosis.certainty import Certainty, certainty_of, simulated_detectable
from hetcal.diagnosis.checks import AdviceWarning
from hetcal.diagnosis.inputs import (
    NewItems,
    calibration_items,
    check_worthwhile,
    new_items,
    numbered_columns,
)
from hetcal.diagnosis.measurements import N_STEPS, Gain, Measurements, measure
from hetcal.diagnosis.prior_shift import PriorShift, measure_prior_shift
from hetcal.diagnosis.reuse import check_given_hybrid
from hetcal.diagnosis.sample_size import (
    are_too_few_groups,
    groups_for_items,
    is_for_second_class,
    items_to_start,
)
from hetcal.diagnosis.snippet import recommended_call
from hetcal.diagnosis.steps import Progress, Steps
from hetcal.diagnosis.verdicts import (
    AS_IT_IS,
    COLLECT_MORE,
    HYBRID,
    LEAST_GAIN,
    State,
    best_action,
    decide,
    too_little_to_start,
)
from hetcal.heterogeneity.limits import n_groups
from hetcal.metrics.scores import brier_losses

# What the classifier adds to the features, as a share of what retraining brings.
_NEXT_TO_NOTHING = 0.1


@dataclass(frozen=True, eq=False)
class Advice:
    """What to do now, how sure it is that something is hidden, and the evidence.

    ``print(advice)`` says it in words.

    Attributes
    ----------
    verdict : str
        What to do now, in a word: one of :data:`hetcal.diagnosis.VERDICTS`.
    recommended : str
        What the call uses: "hybrid", the name of a global map, or "uncalibrated".
    call : str
        Code to copy; it leaves the probabilities to use in ``q_new``.
    retraining_call : str or None
        Code that trains a new model on the features, where the verdict is to retrain; the call is
        what to do until then.
    expected_gain : Gain or None
        What the recommended action gains in Brier score over the probabilities as they are, with
        its 95 % interval; None where nothing is done or nothing was measured.
    certainty : Certainty
        Whether something is hidden (``state``: "real", "not found", "open"), how large it must be
        to be found in so many items (``detectable``), and how many would settle it
        (``items_to_settle``).
    warnings : tuple of AdviceWarning
        What may make the calibration items misleading; each has a ``code`` and a ``text``.
    n_items : int
        Calibration items (those with a positive weight).
    n_groups : int
        Groups among them; 0 without ``groups``.
    share : float
        The smallest gain that matters, as a share of the Brier score.
    worthwhile : float
        The smallest gain over the probabilities as they are, in Brier score, that matters.
    worthwhile_locally : float
        The smallest further gain that matters: the same share of what the best map leaves.
    evidence : Measurements or None
        Every number; None where there were too few items to measure anything.
    prior_shift : PriorShift or None
        Class frequencies of the new data, where ``y_proba_new`` was passed.
    """

    verdict: str
    recommended: str
    call: str
    certainty: Certainty
    warnings: tuple[AdviceWarning, ...]
    n_items: int
    share: float
    worthwhile: float
    worthwhile_locally: float = float("nan")
    n_groups: int = 0
    expected_gain: Gain | None = None
    retraining_call: str | None = field(repr=False, default=None)
    evidence: Measurements | None = field(repr=False, default=None)
    prior_shift: PriorShift | None = field(repr=False, default=None)

    @property
    def known_evidence(self) -> Measurements:
        """The evidence, of items that were enough to measure something."""
        if self.evidence is None:
            raise ValueError("There were too few items to measure anything; see the warnings.")
        return self.evidence

    @property
    def expected_brier(self) -> float:
        """Brier score to expect from following the call, on items like these; NaN if unknown.

        Where the new data have another class balance, it is not about them.
        """
        if self.evidence is None:
            return float("nan")
        gain = 0.0 if self.expected_gain is None else self.expected_gain.value
        return self.evidence.brier - gain

    @property
    def is_void(self) -> bool:
        """Whether a warning must be settled before anything can be recommended."""
        return any(warning.voids for warning in self.warnings)

    @property
    def has_too_few_groups(self) -> bool:
        """Whether there are groups, but fewer than any test could show something of."""
        return are_too_few_groups(self.n_groups)

    @property
    def subgroups(self) -> pd.DataFrame:
        """Sub-populations whose probabilities are wrong and that no global map repairs."""
        return pd.DataFrame() if self.evidence is None else self.evidence.subgroups

    def frame(self) -> pd.DataFrame:
        """Return the evidence: one row per number.

        Returns
        -------
        DataFrame
            Index ``evidence``; columns ``value``, ``low`` and ``high`` (95 % interval),
            ``p_value``, and ``meaning`` in words.
        """
        return render.table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that ``json.dumps`` takes; unknown numbers are None."""
        return render.as_dict(self)

    def __str__(self) -> str:
        return printable(render.report(self))


@output_by_name
def advise(
    X: Any,
    y: Any = None,
    *,
    y_proba: Any = None,
    logits: Any = None,
    groups: Any = None,
    identifiers: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    X_new: Any = None,
    y_proba_new: Any = None,
    logits_new: Any = None,
    worthwhile: float = 0.02,
    hybrid: HybridCalibrator | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Say what to do with a classifier's probabilities, and show the numbers behind it.

    Two questions are answered. What to do now: the repair with the lowest expected loss (the
    hybrid, a global map, none), what it should gain, and code for it. How sure is it that something
    is hidden behind the probabilities: real, not found or open, what so many items would have
    shown, and how many would settle it. All gains are differences of Brier scores of out-of-sample
    predictions: nothing that is said about an item has used its label.

    Parameters
    ----------
    X, y, y_proba, logits, groups, identifiers, sample_weight, classes, random_state, n_jobs, \
progress
        As in :func:`hetcal.diagnose`. A warning says where the classifier seems to have been
        trained on the items.
    X_new : array-like or table, optional
        Features of new items: where the probabilities say little about the class, the class balance
        is estimated with them. Only together with ``y_proba_new`` (or ``logits_new``).
    y_proba_new, logits_new : array-like of shape (m, K), optional
        The classifier's output on items without labels, of the same kind: their class balance is
        estimated, and corrected for where it differs.
    worthwhile : float, default=0.02
        The smallest gain that matters, as a share of the Brier score; a smaller one is recommended
        only where it is sure (three standard errors). Smaller values ask for more data before
        "leave it" can be said.
    hybrid : HybridCalibrator, optional
        One that was fitted to the same items already, to save the time of another fit.

    Returns
    -------
    Advice

    Examples
    --------
    >>> import hetcal
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(300, heterogeneity=1.0, random_state=0)
    >>> advice = hetcal.advise(data.X, data.y, y_proba=data.y_proba)
    >>> advice.verdict
    'go local'
    >>> print(advice.certainty.state)
    real
    >>> print(advice.call)
    import hetcal
    <BLANKLINE>
    calibrator = hetcal.HybridCalibrator()
    calibrator.fit(X, y, y_proba=y_proba)
    q_new = calibrator.predict_proba(X_new, y_proba=y_proba_new)
    """
    worthwhile = check_worthwhile("advise", worthwhile)
    everyone = calibration_items(
        "advise", X, y, y_proba, logits, classes, sample_weight, groups, need_features=True
    )
    items = everyone.with_positive_weight()
    related = numbered_columns("advise", identifiers, everyone)
    check_given_hybrid(hybrid, items, everyone)
    steps = Steps(progress, N_STEPS + 1)
    advice = advise_on(
        items,
        new=new_items("advise", items, "new", X_new, y_proba_new, logits_new),
        identifiers={key: numbers[everyone.weights > 0] for key, numbers in related.items()},
        classes_given=classes is not None or everyone is X,
        worthwhile=worthwhile,
        hybrid=hybrid,
        random_state=random_state,
        n_jobs=n_jobs,
        begin=steps.begin,
    )
    steps.finish()
    return advice


@with_one_blas_thread(items=0)
def advise_on(
    items: CalibrationSet,
    *,
    new: NewItems | None,
    identifiers: dict[str, Rows],
    classes_given: bool,
    worthwhile: float,
    random_state: int,
    n_jobs: int | None,
    begin: Callable[[str], object],
    hybrid: HybridCalibrator | None = None,
) -> Advice:
    """Do what :func:`advise` does, on items that were checked already; all of positive weight."""
    counts = np.sort(np.bincount(items.codes, minlength=2))
    if too_little_to_start(items.n_items, int(counts[-2])):
        return _nothing_to_say(items, classes_given, worthwhile, new_ignored=new is not None)
    evidence = measure(
        items,
        identifiers=identifiers,
        hybrid=hybrid,
        random_state=random_state,
        n_jobs=n_jobs,
        begin=begin,
    )
    shift = None
    if new is not None:
        shift = measure_prior_shift(items, new.output, X_new=new.X, random_state=random_state)
    begin("simulating what would have been found")
    detectable = simulated_detectable(items, random_state)
    return judged(items, evidence, detectable, shift, worthwhile, classes_given=classes_given)


def judged(
    items: CalibrationSet,
    evidence: Measurements,
    detectable: float,
    shift: PriorShift | None,
    worthwhile: float,
    *,
    classes_given: bool,
) -> Advice:
    """Return the two answers that follow from the evidence, with code and warnings."""
    matters = max(worthwhile * evidence.brier, LEAST_GAIN)
    # What a global map repairs does not count here: the scale is what it leaves.
    matters_locally = max(worthwhile * evidence.reference_brier, LEAST_GAIN)
    retraining_wins = _retraining_wins(evidence, matters_locally)
    warnings = _warnings(items, evidence, shift, still_needed=not retraining_wins)
    void = any(warning.voids for warning in warnings)
    action = AS_IT_IS
    if not void:  # else whatever was gained here says nothing about new items
        action = best_action(
            evidence.best_map,
            evidence.global_gain,
            evidence.local_gain,
            evidence.hybrid_gain,
            matters=(matters, matters_locally),
            caution=evidence.hybrid.caution,
        )
    certainty = certainty_of(items, evidence, detectable, matters_locally, void=void)
    retraining_wins = retraining_wins and not void
    options: dict[str, Any] = {"shift": shift, "classes_given": classes_given}
    return Advice(
        verdict=decide(
            action,
            certainty.state,
            retraining_wins=retraining_wins,
            more_would_help=void or certainty.more_would_help,
        ),
        recommended=action,
        call=recommended_call(action, items, **options),
        certainty=certainty,
        warnings=warnings,
        n_items=items.n_items,
        share=worthwhile,
        worthwhile=matters,
        worthwhile_locally=matters_locally,
        n_groups=n_groups(items),
        expected_gain=_expected_gain(action, evidence),
        retraining_call=recommended_call(evidence.best_retrained, items, **options)
        if retraining_wins
        else None,
        evidence=evidence,
        prior_shift=shift,
    )


def _expected_gain(action: str, evidence: Measurements) -> Gain | None:
    if action == AS_IT_IS:
        return None
    return evidence.hybrid_gain if action == HYBRID else evidence.global_gain


def _retraining_wins(evidence: Measurements, matters: float) -> bool:
    """Return whether a model on the features is better, and the old one adds next to nothing.

    Better than maps, and no worse than the hybrid by anything that is sure and matters.
    """
    gain, more = evidence.retraining_gain, evidence.hybrid_over_retrained
    if more.low > 0 and more.value >= matters:
        return False
    next_to_nothing = max(matters, _NEXT_TO_NOTHING * gain.value)
    return gain.low > 0 and gain.value >= matters and evidence.model_gain.value < next_to_nothing


def _warnings(
    items: CalibrationSet, evidence: Measurements, shift: PriorShift | None, *, still_needed: bool
) -> tuple[AdviceWarning, ...]:
    found = [
        # First: the others count rows as independent.
        checks.check_dependence(evidence.dependence, grouped=items.groups is not None),
        checks.check_column_order(items, still_needed=still_needed),
        checks.check_unseen_classes(items, shift),
        checks.check_repeated_rows(items),
        checks.check_heavy_item(items),
        checks.check_training_rows(items, evidence.best_map_brier, evidence.retrained),
        checks.check_telling_feature(items),
        checks.check_groups_balance(items),
        checks.check_few_groups(items),
        checks.check_errors(items),
        None if shift is None else checks.check_class_balance(shift, items),
    ]
    return tuple(warning for warning in found if warning is not None)


def _nothing_to_say(
    items: CalibrationSet, classes_given: bool, worthwhile: float, *, new_ignored: bool
) -> Advice:
    brier = float(np.average(brier_losses(items.proba, items.codes), weights=items.weights))
    second = int(np.sort(np.bincount(items.codes, minlength=2))[-2])
    wanted = items_to_start(items, worthwhile)
    few = AdviceWarning(
        "few-items",
        f"{items.n_items} items, {second} of the second most frequent class, are too few to "
        "measure anything."
        + (f" {items.kind}_new was not looked at either." if new_ignored else ""),
    )
    unseen = checks.check_unseen_classes(items)
    return Advice(
        verdict=COLLECT_MORE,
        recommended=AS_IT_IS,
        call=recommended_call(AS_IT_IS, items, shift=None, classes_given=classes_given),
        certainty=Certainty(
            State.OPEN,
            items_to_settle=wanted,
            groups_to_settle=groups_for_items(items, wanted),
            for_second_class=is_for_second_class(items, wanted),
        ),
        warnings=(few,) if unseen is None else (few, unseen),
        n_items=items.n_items,
        share=worthwhile,
        worthwhile=worthwhile * brier,
        n_groups=n_groups(items),
    )
