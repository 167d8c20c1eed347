"""Whether anything is hidden behind p, whatever the global map; how much, and what carries it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtri

from hetcal._blas import with_one_blas_thread
from hetcal._compat import many_classes
from hetcal._exceptions import HetcalWarning, levels_to_caller
from hetcal._typing import Rows
from hetcal._validation.by_name import output_by_name
from hetcal._validation.containers import take_rows
from hetcal.data import CalibrationSet
from hetcal.heterogeneity.asked_for import columns_asked_for, learners_asked_for
from hetcal.heterogeneity.dictionary import Dictionary
from hetcal.heterogeneity.feature_columns import FeatureColumns
from hetcal.heterogeneity.functions_of_p import GlobalFit, fit_global, log_odds
from hetcal.heterogeneity.global_part import global_gains, global_part, mean_brier
from hetcal.heterogeneity.inputs import seed_of
from hetcal.heterogeneity.learning import Learning
from hetcal.heterogeneity.limits import NOTHING_BEYOND_P, n_groups, notes_on, nothing_to_test
from hetcal.heterogeneity.regions import Regions
from hetcal.heterogeneity.result import Analysis, HeterogeneityTest
from hetcal.heterogeneity.score_test import Outcomes, score_test


@output_by_name
def heterogeneity_test(
    X: Any,
    y: Any,
    *,
    y_proba: Any = None,
    logits: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    by: Any = None,
    learners: str | Sequence[Any] = "auto",
    alpha: float = 0.05,
    random_state: Any = 0,
) -> HeterogeneityTest:
    r"""Test whether features say more about the labels than any function of the probabilities.

    The null hypothesis is P(y | x) = h(p) for *some* h: whatever is wrong, a global map repairs it.

    Parameters
    ----------
    X : table, array or sparse matrix of shape (n, d)
        Features; numbers, levels, missing values (which may themselves be the direction).
    y : array-like of shape (n,)
        Observed labels.
    y_proba, logits : array-like of shape (n, K)
        The classifier's output on these items: exactly one of the two. It must not have been
        trained on them.
    classes : array-like of shape (K,), optional
        The classes in the column order of the output.
    sample_weight : array-like of shape (n,), optional
    groups : array-like of shape (n,), optional
        Items that belong together; their labels may depend on each other.
    by : name, list of names, table or dict of columns, optional
        Columns of X, or other columns of the same items, that are asked about in particular.
    learners : "auto" or list, default="auto"
        Learners of residuals: names (``"linear"``, ``"greedy"``, ``"boosting"``, ``"forest"``) and
        scikit-learn regressors. ``"auto"`` means the first three; an empty list leaves the
        dictionary of directions alone.
    alpha : float, default=0.05
        Level of the test and of the bound, between 0 and 0.5.
    random_state : int, RandomState or None, default=0

    Returns
    -------
    HeterogeneityTest

    Examples
    --------
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> from hetcal.heterogeneity import heterogeneity_test
    >>> data = make_hidden_heterogeneity(1000, heterogeneity=0.9, random_state=0)
    >>> found = heterogeneity_test(data.X, data.y, y_proba=data.y_proba)
    >>> found.p_value < 0.001 and found.grouping_loss_low > 0
    True
    """
    calibration = CalibrationSet.check(
        X,
        y,
        y_proba=y_proba,
        logits=logits,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        caller="heterogeneity_test",
    )
    if X is None:
        raise ValueError("heterogeneity_test needs X of the labelled items; got None.")
    if not (isinstance(alpha, Real) and 0 < float(alpha) < 0.5):
        raise ValueError(
            f"heterogeneity_test: alpha must lie between 0 and 0.5; got {alpha!r}. Pass the "
            "probability with which the test and the bound may err, e.g. 0.05."
        )
    return heterogeneity_test_set(
        calibration, by=by, learners=learners, alpha=alpha, random_state=random_state
    )


def heterogeneity_test_set(
    calibration: CalibrationSet,
    *,
    by: Any = None,
    learners: str | Sequence[Any] = "auto",
    alpha: float = 0.05,
    random_state: Any = 0,
) -> HeterogeneityTest:
    """Test items that were checked already; see :func:`heterogeneity_test`."""
    analysis = analyse(
        calibration, by=by, learners=learners, alpha=alpha, random_state=random_state
    )
    warn_of(analysis.test, "heterogeneity_test")
    return analysis.test


def warn_of(test: HeterogeneityTest, caller: str) -> None:
    """Warn of everything that limits the answer, at the line that asked."""
    for note in test.notes:
        warnings.warn(f"{caller}: {note}", HetcalWarning, stacklevel=levels_to_caller())


@with_one_blas_thread(items=0)
def analyse(
    calibration: CalibrationSet,
    *,
    by: Any = None,
    learners: str | Sequence[Any] = "auto",
    alpha: float = 0.05,
    random_state: Any = 0,
    with_tests: bool = True,
    with_regions: bool = False,
) -> Analysis:
    """Test, and return what was learned about each item too.

    Without tests, p-values and the found part are NaN, and bounds 0; only the gains are computed.
    """
    by = columns_asked_for(calibration, by)
    used = learners_asked_for(learners)
    order = _rows_in_use(calibration)
    items = calibration.take(order)
    columns = FeatureColumns.read(items.X)
    with many_classes():
        fit = fit_global(items)
    regions = Regions.of(items.proba)
    silent = nothing_to_test(items, columns)
    if silent is not None:
        return _no_answer(items, fit, order, regions, silent)
    odds = log_odds(items.scores.log_proba)
    asked = None if by is None else FeatureColumns.read(take_rows(by, order))
    dictionary = Dictionary(columns, odds, fit.space, asked)
    if not len(dictionary):
        return _no_answer(items, fit, order, regions, NOTHING_BEYOND_P)
    seed = seed_of(random_state)
    scores = score_test(
        fit,
        Outcomes.of(fit, items.proba),
        dictionary,
        items.groups,
        np.random.default_rng([seed, 1]),
        with_draws=with_tests,
    )
    work = Learning(items, fit, dictionary, odds, scores, used)
    parts, local = work.learn(seed, with_tests)
    p = work.combined(scores.p_value, parts) if with_tests else np.nan
    low, found = work.size(seed, alpha) if with_tests else (0.0, np.nan)
    gains = work.gains(local)
    part, interval = global_part(items, fit)
    test = HeterogeneityTest(
        p_value=p,
        statistic=float(-ndtri(p)),
        grouping_loss_low=low if p <= alpha else 0.0,
        grouping_loss_found=found,
        global_part=part,
        global_part_interval=interval,
        brier=mean_brier(items),
        carried_by=work.carried_by(),
        parts=scores.families | {"dictionary": scores.p_value} | parts,
        n_items=items.n_items,
        n_groups=n_groups(items),
        n_null=scores.n_draws,
        notes=notes_on(items, columns),
    )
    by_region = work.by_region(regions, local, seed, alpha, with_tests and with_regions)
    return Analysis(test, gains[np.argsort(order)], regions, by_region)


def strongest_cuts(calibration: CalibrationSet) -> list[tuple[str, float]]:
    """Return cuts of columns of numbers, ``(name, value)``, whose scores stand out."""
    columns = FeatureColumns.read(calibration.X)
    with many_classes():
        fit = fit_global(calibration)
    if nothing_to_test(calibration, columns) is not None:
        return []
    odds = log_odds(calibration.scores.log_proba)
    dictionary = Dictionary(columns, odds, fit.space)
    if not len(dictionary):
        return []
    outcomes = Outcomes.of(fit, calibration.proba)
    scores = score_test(fit, outcomes, dictionary, None, np.random.default_rng(0), with_draws=False)
    found = Learning(calibration, fit, dictionary, odds, scores, {}).stand_out(scores.sums)
    chosen = [dictionary.directions[number] for number in found]
    return [
        (columns.names[at.columns[0]], columns.value_at(at.columns[0], at.value))
        for at in chosen
        if at.kind == "above"
    ]


def _rows_in_use(calibration: CalibrationSet) -> Rows:
    """Return the rows with a weight, rows of one group one after the other."""
    rows = np.flatnonzero(calibration.weights > 0)
    if calibration.groups is None:
        return rows
    return rows[np.argsort(calibration.groups[rows], kind="stable")]


def _no_answer(
    items: CalibrationSet, fit: GlobalFit, order: Rows, regions: Regions, why: str
) -> Analysis:
    part, interval = global_part(items, fit)
    test = HeterogeneityTest(
        p_value=1.0,
        statistic=-np.inf,
        grouping_loss_low=0.0,
        grouping_loss_found=0.0,
        global_part=part,
        global_part_interval=interval,
        brier=mean_brier(items),
        carried_by=(),
        parts={},
        n_items=items.n_items,
        n_groups=n_groups(items),
        n_null=0,
        notes=(why,),
    )
    gains = np.column_stack([global_gains(items, fit), np.zeros(items.n_items)])
    counts = np.bincount(regions.number(items.proba), minlength=len(regions))
    ones = np.ones(len(regions))
    by_region = regions.table(ones, 0 * ones, counts)
    return Analysis(test, gains[np.argsort(order)], regions, by_region)
