"""One call from features, labels and probabilities to a report."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hetcal._exceptions import ColumnOrderWarning
from hetcal.diagnosis.advise import advise_on, judged
from hetcal.report import model
from hetcal.report.assemble import assembled, learning_curves, too_few
from hetcal.report.honest import forward, forward_evidence, forward_splits, shuffled
from hetcal.report.inputs import calibration_items, check_costs, named, new_items, new_labels
from hetcal.report.on_test import with_test_scores

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


def diagnose(
    X: Any,
    y: Any,
    *,
    y_proba: Any = None,
    logits: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    by: str | Sequence[str] | Mapping[str, Any] | None = None,
    time: Any = None,
    X_test: Any = None,
    y_proba_test: Any = None,
    logits_test: Any = None,
    y_test: Any = None,
    costs: Any = None,
    feature_names: Sequence[str] | None = None,
    learning_curve: bool = False,
    name: str = "",
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> model.Report:
    """Find out whether a classifier's probabilities are right, for whom not, and what to do.

    Everything is measured on honest predictions, made once: nothing that is said about an item has
    used its label. Compared are the probabilities as they are, four global maps (temperature,
    bias-corrected temperature, beta, isotonic), the votes of similar items (SWC), the hybrid, and
    forests and gradient boosting on the features and on features and probabilities.
    :func:`hetcal.compare` compares all methods by repeated cross-validation, and takes longer.

    Parameters
    ----------
    X : array-like or table of shape (n, d)
        Features of the calibration items.
    y : array-like of shape (n,)
        Observed labels.
    y_proba, logits : array-like of shape (n, K)
        The classifier's output on these items: exactly one of the two. The classifier must not have
        been trained on them.
    groups : array-like of shape (n,) or (n, n_columns), optional
        Items that belong together (one patient): nothing is predicted from the item's own group.
    sample_weight : array-like of shape (n,), optional
        Weights; items of weight 0 are left out.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.
    by : str, list of str or dict, optional
        Columns of ``X`` whose groups are reported besides those that are found; or values by name.
    time : array-like of shape (n,), optional
        When each item was seen: numbers, dates, or text that sorts in order of time. Then methods
        are fitted to earlier items and scored on later ones, the verdict follows these scores, and
        the earliest fifth is learned from only.
    X_test, y_proba_test, logits_test : array-like, optional
        New items: their support and their class balance are reported.
    y_test : array-like of shape (n_test,), optional
        Labels of the new items, missing where unknown. Nothing learns from them: the probabilities
        as they are, the best global map and the hybrid, fitted to all calibration items, are scored
        on them.
    costs : array-like of shape (K, n_decisions), optional
        ``costs[true class, decision]``; adds expected cost and, for two classes, a decision curve.
    feature_names : sequence of str, optional
        Names of the columns of an array ``X``.
    learning_curve : bool, default=False
        Measure growing calibration sizes too; takes several times as long.
    name : str, optional
        What the data are called in the title.
    random_state : int, default=0
        Seed of folds, forests and draws.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    progress : callable, optional
        Called as ``progress(done, total, text)`` before each step.

    Returns
    -------
    Report
        ``print`` it, show it in a notebook, or write it with ``to_html`` and ``to_json``.

    Examples
    --------
    >>> import hetcal
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(600, heterogeneity=1.0, random_state=0)
    >>> report = hetcal.diagnose(data.frame(), data.y, y_proba=data.y_proba)
    >>> report.verdict.verdict
    'go local'
    >>> report.comparison[0].scope
    'local'
    """
    steps = _Steps(progress, n_extra=int(learning_curve))
    X = named(X, feature_names)
    items, rows, moment, by = calibration_items(
        X, y, y_proba, logits, classes, sample_weight, groups, time, by
    )
    matrix = check_costs(costs, items)
    test = new_items(items, named(X_test, feature_names), y_proba_test, logits_test)
    labels_test = new_labels(items, y_test, None if test is None else len(test[1]))
    splits = None if moment is None else forward_splits(moment, items.groups)
    new: dict[str, Any] = {}
    if test is not None:
        new = {"X_new": test[0], "new_output": test[1]}
    caught: list[str] = []
    with _collected(caught):
        with steps.timed("advice"):
            advice = advise_on(
                items,
                **new,
                classes_given=classes is not None,
                worthwhile=_WORTHWHILE,
                random_state=random_state,
                n_jobs=n_jobs,
                progress=steps.of_advice,
            )
        if advice.evidence is None:
            report = too_few(advice, items, name)
        else:
            with steps.timed("honest predictions"):
                steps.next("comparing methods")
                if splits is None:
                    honest = shuffled(items, advice.evidence, random_state, n_jobs)
                else:
                    honest = forward(items, splits, random_state, n_jobs)
                    advice = judged(
                        items,
                        forward_evidence(advice.evidence, honest),
                        advice.prior_shift,
                        _WORTHWHILE,
                        classes_given=classes is not None,
                    )
            curves = []
            if learning_curve:
                with steps.timed("learning curve"):
                    steps.next("measuring growing calibration sizes")
                    curves = learning_curves(items, advice, random_state, n_jobs)
            with steps.timed("scores"):
                steps.next("scoring")
                report = assembled(
                    items, rows, advice, honest, matrix, test, by, curves, name, random_state
                )
                if labels_test is not None and test is not None:
                    report = with_test_scores(
                        report, items, advice, test, labels_test, random_state
                    )
    steps.finish()
    settings = {
        "items": f"{items.n_items:,}",
        "honest predictions": "fitted to earlier items, scored on later ones"
        if moment is not None
        else "out of bag or cross-fitted",
        "hidden heterogeneity measured on": f"{report.hidden.n_items:,} items"
        if report.hidden
        else "nothing",
        "random_state": str(random_state),
        "worthwhile": f"{_WORTHWHILE:.0%} of the Brier score",
    }
    return replace(
        report,
        warnings=[*report.warnings, *dict.fromkeys(caught)],
        settings=settings,
        seconds=steps.seconds,
    )


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
