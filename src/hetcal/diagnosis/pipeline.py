"""One diagnosis, from a checked calibration set to findings: measure, judge, summarise."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hetcal._exceptions import ColumnOrderWarning
from hetcal._typing import Matrix, Rows
from hetcal.data import CalibrationSet
from hetcal.diagnosis.advise import Advice, advise_on, judged
from hetcal.diagnosis.assemble import assembled, learning_curves, too_few
from hetcal.diagnosis.findings import Findings
from hetcal.diagnosis.new_items import with_test_scores
from hetcal.diagnosis.predictions import (
    Compared,
    forward,
    forward_evidence,
    forward_splits,
    shuffled,
)

# Called as progress(steps done, steps in all, what is being done).
Progress = Callable[[int, int, str], None]

_WORTHWHILE = 0.02
_ADVICE_STEPS = (
    "fitting the hybrid",
    "retraining plain models",
    "looking for hidden heterogeneity",
    "naming sub-populations",
    "weighing the evidence",
)


def find(
    items: CalibrationSet,
    *,
    rows: Rows,
    moment: Rows | None,
    by: Any,
    costs: Matrix | None,
    test: tuple[Any, Matrix] | None,
    labels_test: Rows | None,
    classes_given: bool,
    learning_curve: bool,
    name: str,
    random_state: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> Findings:
    """Diagnose checked items; the parameters are those of :func:`hetcal.diagnose`, checked."""
    steps = _Steps(progress, n_extra=int(learning_curve))
    splits = None if moment is None else forward_splits(moment, items.groups)
    new = {} if test is None else {"X_new": test[0], "new_output": test[1]}
    options: Any = {"random_state": random_state, "n_jobs": n_jobs}
    caught: list[str] = []
    with _collected(caught):
        with steps.timed("advice"):
            advice = advise_on(
                items,
                **new,
                classes_given=classes_given,
                worthwhile=_WORTHWHILE,
                progress=steps.of_advice,
                **options,
            )
        if advice.evidence is None:
            found = too_few(advice, items, name)
        else:
            with steps.timed("out-of-sample predictions"):
                steps.next("comparing methods")
                advice, compared = _compared(
                    items, advice, splits, classes_given, random_state, n_jobs
                )
            curves = []
            if learning_curve:
                with steps.timed("learning curve"):
                    steps.next("measuring growing calibration sizes")
                    curves = learning_curves(items, advice, random_state, n_jobs)
            with steps.timed("scores"):
                steps.next("scoring")
                found = assembled(
                    items, rows, advice, compared, costs, test, by, curves, name, random_state
                )
                if labels_test is not None and test is not None:
                    found = with_test_scores(found, items, advice, test, labels_test, random_state)
    steps.finish()
    settings = {
        "items": f"{items.n_items:,}",
        "out-of-sample predictions": "out of bag or cross-fitted"
        if splits is None
        else "fitted to earlier items, scored on later ones",
        "hidden heterogeneity measured on": f"{found.hidden.n_items:,} items"
        if found.hidden
        else "nothing",
        "random_state": str(random_state),
        "worthwhile": f"{_WORTHWHILE:.0%} of the Brier score",
    }
    return replace(
        found,
        warnings=[*found.warnings, *dict.fromkeys(caught)],
        settings=settings,
        seconds=steps.seconds,
    )


def _compared(
    items: CalibrationSet,
    advice: Advice,
    splits: list | None,
    classes_given: bool,
    random_state: int,
    n_jobs: int | None,
) -> tuple[Advice, Compared]:
    """Return every method out of sample, and the advice, which follows later items given time."""
    if advice.evidence is None:
        raise ValueError("There are too few items to compare anything; see too_few.")
    if splits is None:
        return advice, shuffled(items, advice.evidence, random_state, n_jobs)
    compared = forward(items, splits, random_state, n_jobs)
    evidence = forward_evidence(advice.evidence, compared)
    shift = advice.prior_shift
    return judged(items, evidence, shift, _WORTHWHILE, classes_given=classes_given), compared


@contextmanager
def _collected(texts: list[str]) -> Iterator[None]:
    """Collect warnings: a report says them where they are read, not in between.

    That of the order of the columns is among those of the advice.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts += [
        str(w.message)
        for w in caught
        if not issubclass(
            w.category,
            ColumnOrderWarning | DeprecationWarning | PendingDeprecationWarning | FutureWarning,
        )
    ]


class _Steps:
    """Tells whoever waits what is being done, and remembers how long it took."""

    def __init__(self, progress: Progress | None, n_extra: int):
        self.progress = progress
        self.total = len(_ADVICE_STEPS) + 2 + n_extra
        self.done = 0
        self.seconds: dict[str, float] = {}
        self._say("fitting global maps")

    def of_advice(self, done: int, total: int) -> None:
        self.next(_ADVICE_STEPS[min(done, len(_ADVICE_STEPS)) - 1])

    def next(self, what: str) -> None:
        self.done = min(self.done + 1, self.total)
        self._say(what)

    def finish(self) -> None:
        self.done = self.total
        self._say("done")

    def _say(self, what: str) -> None:
        if self.progress is not None:
            self.progress(self.done, self.total, what)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        start = clock.perf_counter()
        yield
        self.seconds[what] = round(clock.perf_counter() - start, 2)
