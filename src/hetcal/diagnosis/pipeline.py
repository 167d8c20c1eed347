"""One diagnosis, from a checked request to findings: measure, judge, summarise."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from hetcal._exceptions import ColumnOrderWarning, TrainingSetWarning
from hetcal.data.folds import Split
from hetcal.diagnosis.advise import Advice, advise_on, judged
from hetcal.diagnosis.assemble import assembled, learning_curves, too_few
from hetcal.diagnosis.findings import Findings
from hetcal.diagnosis.inputs import Request
from hetcal.diagnosis.measurements import N_STEPS
from hetcal.diagnosis.predictions import (
    Compared,
    forward,
    forward_evidence,
    forward_splits,
    shuffled,
)
from hetcal.diagnosis.steps import Progress, Steps
from hetcal.diagnosis.test_scores import with_test_scores


def find(request: Request, progress: Progress | None) -> Findings:
    """Return what a diagnosis finds out."""
    steps = Steps(progress, N_STEPS + 3 + int(request.learning_curve))
    items, seed = request.items, request.random_state
    splits = None if request.moment is None else forward_splits(request.moment, items.groups)
    caught: list[str] = []
    with _collected(caught):
        with steps.timed("advice"):
            advice = advise_on(
                items,
                new=request.new,
                identifiers=request.identifiers,
                classes_given=request.classes_given,
                worthwhile=request.worthwhile,
                random_state=seed,
                n_jobs=request.n_jobs,
                begin=steps.begin,
            )
        if advice.evidence is None:
            found = too_few(advice, items, request.name)
        else:
            with steps.timed("out-of-sample predictions"):
                steps.begin("comparing methods")
                advice, compared = _compared(request, advice, splits)
            curves = []
            if request.learning_curve:
                with steps.timed("learning curve"):
                    steps.begin("measuring growing calibration sizes")
                    curves = learning_curves(items, advice, seed, request.n_jobs)
            with steps.timed("scores"):
                steps.begin("scoring")
                found = assembled(request, advice, compared, curves)
                found = with_test_scores(found, request, advice)
    steps.finish()
    settings = {
        "items": f"{items.n_items:,}",
        "out-of-sample predictions": "out of bag or cross-fitted"
        if splits is None
        else "fitted to earlier items, scored on later ones",
        "hidden heterogeneity measured on": f"{found.hidden.n_items:,} items"
        if found.hidden
        else "nothing",
        "random_state": str(seed),
        "worthwhile": f"{100 * request.worthwhile:g} % of the Brier score",
    }
    return replace(
        found,
        warnings=[*found.warnings, *dict.fromkeys(caught)],
        settings=settings,
        seconds=steps.seconds,
    )


def _compared(
    request: Request, advice: Advice, splits: list[Split] | None
) -> tuple[Advice, Compared]:
    """Return every method out of sample, and the advice, which follows later items given time."""
    items, seed, n_jobs = request.items, request.random_state, request.n_jobs
    evidence = advice.known_evidence
    if splits is None:
        return advice, shuffled(items, evidence, seed, n_jobs)
    compared = forward(items, splits, seed, n_jobs)
    evidence = forward_evidence(evidence, compared)
    advice = judged(
        items,
        evidence,
        advice.certainty.detectable,
        advice.prior_shift,
        request.worthwhile,
        classes_given=request.classes_given,
    )
    return advice, compared


@contextmanager
def _collected(texts: list[str]) -> Iterator[None]:
    """Collect warnings: a report says them where they are read, not in between.

    The order of the columns and what the classifier adds are among what the advice says.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts += [
        str(w.message)
        for w in caught
        if not issubclass(
            w.category,
            ColumnOrderWarning
            | TrainingSetWarning
            | DeprecationWarning
            | PendingDeprecationWarning
            | FutureWarning,
        )
    ]
