"""What to do with a classifier's probabilities, what it will bring, and the reason for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from hetcal._printable import printable
from hetcal._typing import Rows
from hetcal.calibration.hybrid import HybridCalibrator
from hetcal.data import CalibrationSet
from hetcal.diagnosis import checks, render
from hetcal.diagnosis.checks import AdviceWarning
from hetcal.diagnosis.inputs import NewItems, calibration_items, new_items, numbered_columns
from hetcal.diagnosis.measurements import N_STEPS, Measurements, measure
from hetcal.diagnosis.prior_shift import PriorShift, measure_prior_shift
from hetcal.diagnosis.reuse import check_given_hybrid
from hetcal.diagnosis.sample_size import enough_items, items_needed
from hetcal.diagnosis.snippet import AS_IT_IS, HYBRID, RETRAINED, recommended_call
from hetcal.diagnosis.steps import Progress, Steps
from hetcal.diagnosis.verdicts import (
    COLLECT_MORE,
    GO_LOCAL,
    LEAST_GAIN,
    LOCAL_LEVEL,
    RETRAIN,
    SURE_ERRORS,
    Answer,
    Case,
    decide,
    too_little_to_start,
)
from hetcal.metrics.scores import brier_losses

# What the classifier adds to the features, as a share of what retraining brings.
_NEXT_TO_NOTHING = 0.1


@dataclass(frozen=True, eq=False)
class Advice:
    """A verdict and its evidence; ``print(advice)`` says it in words.

    Attributes
    ----------
    verdict : str
        One of :data:`hetcal.diagnosis.VERDICTS`.
    call : str
        Code to copy; it leaves the probabilities to use in ``q_new``.
    warnings : tuple of AdviceWarning
        What may make the calibration items misleading; each has a ``code`` and a ``text``.
    global_map, local : {"yes", "no", "unsure"}
        Whether each repair pays; the verdict follows from them.
    n_items : int
        Calibration items (those with a positive weight).
    n_needed : int or None
        About how many items would settle what is unsure, at most a million or twice as many as
        there are; None where nothing is, or where a warning must be settled first.
    worthwhile : float
        The smallest gain of a global map, in Brier score, that matters.
    evidence : Measurements or None
        Every number; None where there were too few items to measure anything.
    prior_shift : PriorShift or None
        Class frequencies of the new data, where ``y_proba_new`` was passed.
    recommended : str
        What the call uses: "hybrid"; "forest" or "boosting", trained on the features alone; the
        name of a global map; or "uncalibrated".
    worthwhile_locally : float
        The smallest further gain that matters: the same share of what the best map leaves.
    """

    verdict: str
    call: str
    warnings: tuple[AdviceWarning, ...]
    global_map: Answer
    local: Answer
    n_items: int
    n_needed: int | None
    worthwhile: float
    evidence: Measurements | None = field(repr=False)
    prior_shift: PriorShift | None = field(repr=False, default=None)
    recommended: str = AS_IT_IS
    worthwhile_locally: float = float("nan")

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
        e = self.evidence
        if e is None:
            return float("nan")
        if self.recommended == HYBRID:
            return e.hybrid_brier
        if self.recommended in RETRAINED:
            return e.retrained_brier
        return e.brier if self.recommended == AS_IT_IS else e.best_map_brier

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

    The verdict is one of "leave it", "global map is enough", "go local", "retrain instead" and
    "collect more data". All gains are differences of Brier scores of out-of-sample predictions:
    nothing that is said about an item has used its label.

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
        The smallest gain that matters, as a share of the Brier score. Smaller values ask for more
        data before "leave it" can be said.
    hybrid : HybridCalibrator, optional
        One that was fitted to the same items already, to save the time of another fit.

    Returns
    -------
    Advice

    Examples
    --------
    >>> import hetcal
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(600, heterogeneity=1.0, random_state=0)
    >>> advice = hetcal.advise(data.X, data.y, y_proba=data.y_proba)
    >>> advice.verdict
    'go local'
    >>> print(advice.call)
    import hetcal
    <BLANKLINE>
    calibrator = hetcal.HybridCalibrator()
    calibrator.fit(X, y, y_proba=y_proba)
    q_new = calibrator.predict_proba(X_new, y_proba=y_proba_new)
    """
    if not 0 < worthwhile < 1:
        raise ValueError(
            f"advise: worthwhile must lie between 0 and 1, both excluded; got {worthwhile!r}. "
            "Pass 0.02 for 2 % of the Brier score."
        )
    everyone = calibration_items(
        "advise", X, y, y_proba, logits, classes, sample_weight, groups, need_features=True
    )
    items = everyone.with_positive_weight()
    related = numbered_columns("advise", identifiers, everyone)
    check_given_hybrid(hybrid, items, everyone)
    steps = Steps(progress, N_STEPS)
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
    return judged(items, evidence, shift, worthwhile, classes_given=classes_given)


def judged(
    items: CalibrationSet,
    evidence: Measurements,
    shift: PriorShift | None,
    worthwhile: float,
    *,
    classes_given: bool,
) -> Advice:
    """Return the verdict that follows from the evidence, with its call and its warnings."""
    matters = max(worthwhile * evidence.brier, LEAST_GAIN)
    global_map = Case(
        evidence.global_p_value, evidence.global_gain.less(1.0), evidence.global_most, matters
    ).answer
    # What a global map repairs does not count here: the scale is what it leaves.
    matters_locally = max(worthwhile * evidence.reference_brier, LEAST_GAIN)
    local = Case(
        evidence.local_p_value,
        evidence.local_gain.low,
        evidence.local_most,
        matters_locally,
        rising=evidence.doubling_gain.low > 0,
        level=LOCAL_LEVEL,
        sure=evidence.local_gain.value >= matters_locally
        and evidence.local_gain.less(SURE_ERRORS) > 0,
        tested=evidence.local_tested,
    ).answer
    retraining_wins = (
        evidence.retraining_gain.low > 0
        and evidence.retraining_gain.value >= matters_locally
        and evidence.model_gain.value
        < max(matters_locally, _NEXT_TO_NOTHING * evidence.retraining_gain.value)
    )
    found = [
        checks.check_column_order(items, still_needed=not retraining_wins),
        checks.check_unseen_classes(items, shift),
        checks.check_repeated_rows(items),
        checks.check_dependence(evidence.dependence),
        checks.check_training_rows(items, evidence.best_map_brier, evidence.retrained),
        checks.check_groups_balance(items),
        checks.check_errors(items),
        None if shift is None else checks.check_class_balance(shift, items),
    ]
    warnings = tuple(warning for warning in found if warning is not None)
    void = any(warning.voids for warning in warnings)
    if void:  # whatever was gained here says nothing about new items
        global_map = local = Answer.UNSURE
    verdict = decide(global_map, local, retraining_wins=retraining_wins and not void)
    recommended = _recommended(verdict, evidence, global_map, worthwhile)
    n_needed = None
    if verdict == COLLECT_MORE and not void:
        n_needed = items_needed(items, evidence, global_map, local, worthwhile)
    return Advice(
        verdict,
        recommended_call(recommended, items, shift=shift, classes_given=classes_given),
        warnings,
        global_map,
        local,
        items.n_items,
        n_needed,
        matters,
        evidence,
        shift,
        recommended,
        matters_locally,
    )


def _recommended(
    verdict: str, evidence: Measurements, global_map: Answer, worthwhile: float
) -> str:
    """Return what to use: of models that are trained anew the best one, not just any."""
    if verdict == GO_LOCAL:
        return HYBRID
    if verdict == RETRAIN:
        better = evidence.hybrid_over_retrained
        clearly = better.low > 0 and better.value >= worthwhile * evidence.retrained_brier
        return HYBRID if clearly else evidence.best_retrained
    return evidence.best_map if global_map is Answer.YES else AS_IT_IS


def _nothing_to_say(
    items: CalibrationSet, classes_given: bool, worthwhile: float, *, new_ignored: bool
) -> Advice:
    brier = float(np.average(brier_losses(items.proba, items.codes), weights=items.weights))
    second = int(np.sort(np.bincount(items.codes, minlength=2))[-2])
    few = AdviceWarning(
        "few-items",
        f"{items.n_items} items, {second} of the second most frequent class, are too few to "
        "measure anything."
        + (f" {items.kind}_new was not looked at either." if new_ignored else ""),
    )
    unseen = checks.check_unseen_classes(items)
    return Advice(
        COLLECT_MORE,
        recommended_call(AS_IT_IS, items, shift=None, classes_given=classes_given),
        (few,) if unseen is None else (few, unseen),
        Answer.UNSURE,
        Answer.UNSURE,
        items.n_items,
        enough_items(items, worthwhile),
        worthwhile * brier,
        None,
    )
