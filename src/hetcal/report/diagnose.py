"""One call from features, labels and probabilities to a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hetcal._validation.by_name import output_by_name
from hetcal.diagnosis.inputs import (
    Request,
    calibration_items,
    check_costs,
    check_worthwhile,
    in_order_of_time,
    named,
    new_items,
    numbered_columns,
)
from hetcal.diagnosis.pipeline import find
from hetcal.diagnosis.steps import Progress
from hetcal.report.model import Report


@output_by_name
def diagnose(
    X: Any,
    y: Any = None,
    *,
    y_proba: Any = None,
    logits: Any = None,
    groups: Any = None,
    identifiers: Any = None,
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
    worthwhile: float = 0.02,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Find out whether a classifier's probabilities are right, for whom not, and what to do.

    Everything is measured on out-of-sample predictions, made once: nothing that is said about an
    item has used its label. Compared are the probabilities as they are, four global maps
    (temperature, bias-corrected temperature, beta, isotonic), the votes of similar items (SWC), the
    hybrid, and forests and gradient boosting on the features and on features and probabilities.
    :func:`hetcal.compare` compares all methods in the same way, and takes longer.

    Parameters
    ----------
    X : array-like or table of shape (n, d), or CalibrationSet
        Features of the calibration items; or items that were checked already, with their labels and
        the classifier's output (then the next six stay out).
    y : array-like of shape (n,)
        Observed labels.
    y_proba, logits : array-like of shape (n, K)
        The classifier's output on these items: exactly one of the two. The classifier must not have
        been trained on them.
    groups : array-like of shape (n,) or (n, n_columns), optional
        Items that belong together (one patient, one document): nothing is predicted from the item's
        own group, and standard errors count groups.
    identifiers : table or dict of columns, optional
        Columns that are no features but may tell which items belong together (a patient, an event,
        a date): where they do and ``groups`` does not say so, a warning names them.
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
        as they are, the global map and the hybrid, fitted to all calibration items, are scored
        on them.
    costs : array-like of shape (K, n_decisions), optional
        ``costs[true class, decision]``; adds expected cost and, for two classes, a decision curve.
    feature_names : sequence of str, optional
        Names of the columns of an array ``X``.
    learning_curve : bool, default=False
        Measure growing calibration sizes too; takes several times as long.
    name : str, optional
        What the data are called in the title.
    worthwhile : float, default=0.02
        The smallest gain that matters, as a share of the Brier score; as in :func:`hetcal.advise`.
    random_state : int, default=0
        Seed of folds, forests and draws.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    progress : callable, optional
        Called as ``progress(done, total, text)`` before each step, and at the end.

    Returns
    -------
    Report
        ``print`` it, show it in a notebook, or write it with ``to_html`` and ``to_json``.

    Examples
    --------
    >>> import hetcal
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(300, heterogeneity=1.0, random_state=0)
    >>> report = hetcal.diagnose(data.frame(), data.y, y_proba=data.y_proba)
    >>> report.verdict.verdict
    'go local'
    >>> report.comparison[0].scope
    'local'
    """
    given = calibration_items(
        "diagnose",
        named(X, feature_names),
        y,
        y_proba,
        logits,
        classes,
        sample_weight,
        groups,
        need_features=True,
    )
    X_test = named(X_test, feature_names)
    new = new_items(
        "diagnose", given, "test", X_test, y_proba_test, logits_test, y_test, need_features=True
    )
    related = numbered_columns("diagnose", identifiers, given)
    items, rows, moment, by = in_order_of_time(given, time, by)
    request = Request(
        items=items,
        rows=rows,
        moment=moment,
        by=by,
        identifiers={key: numbers[rows] for key, numbers in related.items()},
        costs=check_costs(costs, items),
        new=new,
        classes_given=classes is not None or given is X,
        learning_curve=learning_curve,
        name=name,
        worthwhile=check_worthwhile("diagnose", worthwhile),
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return Report.of(find(request, progress))
