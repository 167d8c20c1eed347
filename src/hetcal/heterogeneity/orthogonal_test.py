"""Whether anything is hidden behind p, whatever the global map; how much, and what carries it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student_t

from hetcal._exceptions import levels_to_caller
from hetcal._typing import Matrix, Rows, Vector
from hetcal._validation.containers import as_frame, take_rows
from hetcal.data import CalibrationSet, Folds
from hetcal.heterogeneity.block_directions import block_directions
from hetcal.heterogeneity.dictionary import Dictionary
from hetcal.heterogeneity.feature_columns import FeatureColumns
from hetcal.heterogeneity.functions_of_p import GlobalFit, fit_global, log_odds
from hetcal.heterogeneity.grouping_loss import FoundPart, found_part, size_along
from hetcal.heterogeneity.inputs import seed_of
from hetcal.heterogeneity.regions import Regions
from hetcal.heterogeneity.residual_learners import (
    LEARNERS,
    WITHOUT_TEST,
    Learner,
    Task,
    free_values,
    pursue,
    regressor_learner,
    stacked,
)
from hetcal.heterogeneity.score_test import (
    Outcomes,
    Scores,
    harmonic_p_value,
    score_test,
    scores_by_fold,
)
from hetcal.metrics.standard_errors import mean_and_error

LEAST_ITEMS = 40
_FEW_GROUPS = 10
_FOLDS, _FOLDS_OF_MANY, _MANY_ITEMS = 5, 3, 20_000
_FOLDS_OF_SIZE = 10
_SHARE_OF_DICTIONARY = 0.8  # of the level; learners share the rest
# Every pair of folds teaches both ways, which doubles the variance of a linear learner's statistic;
# of trees, averaged over splits, the standard deviation is 1.1 to 1.3 over the developing nulls.
_BOTH_WAYS = 1.25
_REPEATS = ((1000, 8), (3000, 3))
_CANDIDATES = 40


@dataclass(frozen=True, eq=False)
class HeterogeneityTest:
    r"""What a test of hidden heterogeneity found.

    Attributes
    ----------
    p_value : float
        Of the null hypothesis that P(y | x) = h(p) for *some* function h.
    statistic : float
        The same as a quantile of the standard normal distribution.
    grouping_loss_low : float
        One-sided lower bound (at the level ``1 - alpha``) on the grouping loss
        :math:`E|P(y|x) - P(y|p)|^2`: what an ideal local model gains in Brier score beyond the best
        global map. 0 unless the test rejects at ``alpha``.
    grouping_loss_found : float
        Estimate of the part of it that the learners found; what they miss is not in it.
    global_part : float
        Estimate of :math:`E|p - P(y|p)|^2`, what the best global map gains.
    global_part_interval : tuple of float
        95 % interval of it.
    brier : float
        Brier score of the classifier on the items.
    carried_by : tuple of (str, label, float)
        Directions that carry it, the most important first: in words, the class whose frequency
        differs along it, and its studentised score.
    parts : dict
        p-values of the parts that were combined: the dictionary's families, and each learner.
    n_items, n_groups : int
        Items with a weight; groups among them, or 0.
    n_null : int
        Draws under the null.
    notes : tuple of str
        What limits the answer, if anything does.
    """

    p_value: float
    statistic: float
    grouping_loss_low: float
    grouping_loss_found: float
    global_part: float
    global_part_interval: tuple[float, float]
    brier: float
    carried_by: tuple[tuple[str, Any, float], ...] = field(repr=False)
    parts: dict[str, float] = field(repr=False)
    n_items: int
    n_groups: int
    n_null: int
    notes: tuple[str, ...] = ()

    @property
    def directions(self) -> pd.DataFrame:
        """The directions that carry it as a table: ``direction``, ``class``, ``z``."""
        return pd.DataFrame(list(self.carried_by), columns=["direction", "class", "z"])

    @property
    def shares(self) -> dict[str, float]:
        """The bound, the found part and the global part as shares of the Brier score."""
        names = ("grouping_loss_low", "grouping_loss_found", "global_part")
        return {name: getattr(self, name) / max(self.brier, 1e-300) for name in names}


@dataclass(frozen=True, eq=False)
class Analysis:
    r"""A test, and what it learned about each item.

    Attributes
    ----------
    test : HeterogeneityTest
    gains : ndarray of shape (n, 2)
        Gain in squared error from the classifier to the best global map, and from there to the
        local model h(p) + d: :math:`2 r \cdot d - |d|^2` with d found on other folds.
    regions : Regions
    by_region : DataFrame
        Test and bound in each region of p.
    """

    test: HeterogeneityTest
    gains: Matrix
    regions: Regions
    by_region: pd.DataFrame


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
    by : str, list of str, or table, optional
        Columns of X, or other columns of the same items, that are asked about in particular.
    learners : "auto" or list, default="auto"
        Learners of residuals: names (``"linear"``, ``"greedy"``, ``"boosting"``) and scikit-learn
        regressors. An empty list leaves the dictionary of directions alone.
    alpha : float, default=0.05
        Level of the test and of the bound.
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
    for note in analysis.test.notes:
        warnings.warn(f"heterogeneity_test: {note}", stacklevel=levels_to_caller())
    return analysis.test


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

    Without tests, p-values are NaN, and bounds 0; only the gains are computed.
    """
    by = _asked_for(calibration, by)
    used = _learners(learners)
    order = _rows_in_use(calibration)
    items = calibration.take(order)
    columns = FeatureColumns.read(items.X)
    fit = fit_global(items)
    regions = Regions.of(items.proba)
    silent = _nothing_to_test(items, columns)
    if silent is not None:
        return _no_answer(items, fit, order, regions, silent)
    odds = log_odds(items.scores.log_proba)
    asked = None if by is None else FeatureColumns.read(take_rows(by, order))
    dictionary = Dictionary(columns, odds, fit.space.share_left, asked)
    seed = seed_of(random_state)
    scores = score_test(
        fit,
        Outcomes.of(fit, items.proba),
        dictionary,
        items.groups,
        np.random.default_rng([seed, 1]),
        with_draws=with_tests,
    )
    work = _Work(items, fit, dictionary, odds, scores, used)
    parts, local = work.learn(seed)
    p = work.combined(scores.p_value, parts) if with_tests else np.nan
    low, found = work.size(seed, alpha)
    gains = work.gains(local)
    part, interval = _global_part(items, fit)
    test = HeterogeneityTest(
        p_value=p,
        statistic=float(norm.isf(p)),
        grouping_loss_low=low if p <= alpha else 0.0,
        grouping_loss_found=found,
        global_part=part,
        global_part_interval=interval,
        brier=_brier(items),
        carried_by=work.carried_by(),
        parts=scores.families | {"dictionary": scores.p_value} | parts,
        n_items=items.n_items,
        n_groups=_n_groups(items),
        n_null=scores.n_draws,
        notes=_notes(items),
    )
    by_region = work.by_region(regions, local, seed, alpha, with_tests and with_regions)
    return Analysis(test, gains[np.argsort(order)], regions, by_region)


def strongest_cuts(calibration: CalibrationSet) -> list[tuple[str, float]]:
    """Return cuts of columns of numbers, ``(name, value)``, whose scores stand out."""
    columns = FeatureColumns.read(calibration.X)
    fit = fit_global(calibration)
    if _nothing_to_test(calibration, columns) is not None:
        return []
    odds = log_odds(calibration.scores.log_proba)
    dictionary = Dictionary(columns, odds, fit.space.share_left)
    outcomes = Outcomes.of(fit, calibration.proba)
    scores = score_test(fit, outcomes, dictionary, None, np.random.default_rng(0), with_draws=False)
    found = _Work(calibration, fit, dictionary, odds, scores, {})._stand_out(scores.sums)
    chosen = [dictionary.directions[number] for number in found]
    return [
        (columns.names[at.columns[0]], columns.value_at(at.columns[0], at.value))
        for at in chosen
        if at.kind == "above"
    ]


@dataclass(frozen=True, eq=False)
class _Work:
    """What the learners need of the items."""

    items: CalibrationSet
    fit: GlobalFit
    dictionary: Dictionary
    odds: Matrix
    scores: Scores
    learners: dict[str, Learner]

    @property
    def residuals(self) -> Matrix:
        """One column for two classes."""
        R = self.fit.residuals
        return R[:, 1:] if R.shape[1] == 2 else R

    def learn(self, seed: int) -> tuple[dict[str, float], Matrix]:
        """Return each tested learner's p-value, and the learners' directions together."""
        z: dict[str, list[float]] = {name: [] for name in self.learners}
        local = np.zeros_like(self.residuals)
        tasks = self._tasks(seed) if self.learners else []
        for task in tasks:
            # What p says of a direction is taken off its out-of-fold values, as a whole.
            found = {
                name: self.fit.space.residual(learner(task))
                for name, learner in self.learners.items()
            }
            for name, direction in found.items():
                z[name].append(self._part(direction).z)
            local += stacked(list(found.values()), task) / len(tasks)
        tested = {name: values for name, values in z.items() if name not in WITHOUT_TEST}
        return {name: self._p_value(float(np.mean(v))) for name, v in tested.items()}, local

    def size(self, seed: int, alpha: float) -> tuple[float, float]:
        """Return the lower bound on what is hidden, and the part that was found."""
        if not self.learners:
            return 0.0, 0.0
        items, space = self.items, self.fit.space
        n_folds = _FOLDS_OF_SIZE if items.n_items <= _MANY_ITEMS else _FOLDS
        folds = Folds.make(items.n_items, n_folds, seed=[seed, 4], groups=items.groups)
        task = Task(self.residuals, folds, space.weight, self.dictionary, self.odds, space, [])
        direction = space.residual(block_directions(task))
        return size_along(self.residuals, direction, space.weight, items.groups, alpha)

    def _tasks(self, seed: int) -> list[Task]:
        """Return the same task on several splits: the average depends less on any of them."""
        n = self.items.n_items
        repeats = next((times for most, times in _REPEATS if n <= most), 1)
        n_folds = _FOLDS if n <= _MANY_ITEMS else _FOLDS_OF_MANY
        splits = [
            Folds.make(n, n_folds, seed=[seed, 2, repeat], groups=self.items.groups)
            for repeat in range(repeats)
        ]
        sums = scores_by_fold(self.scores, self.fit, self.dictionary, self.residuals, splits)
        return [
            Task(
                self.residuals,
                folds,
                self.fit.space.weight,
                self.dictionary,
                self.odds,
                self.fit.space,
                [self._stand_out(part.sum(axis=2) - part[:, :, j]) for j in range(len(folds))],
            )
            for folds, part in zip(splits, sums, strict=True)
        ]

    def combined(self, dictionary: float, parts: dict[str, float]) -> float:
        """Return the p-value of the dictionary and the learners together."""
        p = dictionary
        for learner in parts.values():
            p = harmonic_p_value(p, learner, _SHARE_OF_DICTIONARY ** (1 / len(parts)))
        return max(p, _least_p(self.items))

    def found(self, local: Matrix, alpha: float) -> FoundPart:
        """Return the size along the direction of all learners."""
        return self._part(self.fit.space.residual(local), alpha)

    def gains(self, local: Matrix) -> Matrix:
        """Return each item's gain by the global map, and by the direction of all learners.

        The direction is scaled to gain most, and shrunk by what its own error explains.
        """
        d, R = self.fit.space.residual(local), self.residuals
        space = self.fit.space
        product, square = (R * d).sum(axis=1), (d**2).sum(axis=1)
        a, error = map(float, mean_and_error(product, space.weight, self.items.groups))
        b = float(np.average(square, weights=space.weight)) + 1e-15
        f = max(a, 0.0) / b * max(1 - np.nan_to_num(error) ** 2 / (a**2 + 1e-30), 0.0)
        both = 2.0 if R.shape[1] == 1 else 1.0
        gain = both * (2 * f * product - f**2 * square)
        return np.column_stack([_global_gains(self.items, self.fit), gain])

    def by_region(
        self, regions: Regions, local: Matrix, seed: int, alpha: float, tested: bool
    ) -> pd.DataFrame:
        """Test the items of each region among themselves; regions share no items."""
        place = regions.number(self.items.proba)
        p_values, low = np.full(len(regions), np.nan), np.zeros(len(regions))
        for number in range(len(regions) if tested else 0):
            rows = np.flatnonzero(place == number)
            part = self._take(rows)
            if _nothing_to_test(part.items, part.dictionary.columns) is not None:
                continue
            outcomes = Outcomes.of(part.fit, part.items.proba)
            rng = np.random.default_rng([seed, 3, number])
            scores = score_test(part.fit, outcomes, part.dictionary, part.items.groups, rng)
            found = part.found(local[rows], alpha)
            p = part.combined(scores.p_value, {"learners": part._p_value(found.z)})
            p_values[number] = p
            low[number] = found.low if p <= alpha else 0.0
        return regions.table(p_values, low, np.bincount(place, minlength=len(regions)))

    def _take(self, rows: Rows) -> _Work:
        """Return the same for some items, with the functions of p on them."""
        items = self.items.take(rows)
        fit = self.fit.take(rows, items.groups)
        return replace(self, items=items, fit=fit, dictionary=self.dictionary.take(rows))

    def carried_by(self) -> tuple[tuple[str, Any, float], ...]:
        """Name the directions that carry what was found."""
        which = self._stand_out(self.scores.sums)
        F = free_values(self.fit.space, self.dictionary, which)
        chosen, _ = pursue(F, self.residuals, self.fit.space.weight)
        z = self.scores.z[which[chosen]]
        classes = self.items.classes[self.scores.classes].tolist()
        best = np.abs(z[:, : len(classes)]).argmax(axis=1)
        return tuple(
            (self.dictionary.words(int(number)), classes[k], float(row[k]))
            for number, k, row in zip(which[chosen], best, z, strict=True)
        )

    def _stand_out(self, sums: Matrix) -> Rows:
        """Return the directions with the largest scores, one of each kind and column."""
        strength = (sums**2).sum(axis=1) / self.scores.squares
        kept: dict[tuple, int] = {}
        for number in np.argsort(-strength, kind="stable").tolist():
            direction = self.dictionary.directions[number]
            kept.setdefault((direction.kind, direction.columns), number)
            if len(kept) == _CANDIDATES:
                break
        return np.array(list(kept.values()), dtype=np.int64)

    def _part(self, direction: Matrix, alpha: float = 0.05) -> FoundPart:
        space = self.fit.space
        return found_part(self.residuals, direction, space.weight, self.items.groups, alpha)

    def _p_value(self, z: float) -> float:
        z = z / _BOTH_WAYS
        groups = _n_groups(self.items)
        return float(student_t.sf(z, groups - 1) if groups else norm.sf(z))


def _rows_in_use(calibration: CalibrationSet) -> Rows:
    """Return the rows with a weight, rows of one group one after the other."""
    rows = np.flatnonzero(calibration.weights > 0)
    if calibration.groups is None:
        return rows
    return rows[np.argsort(calibration.groups[rows], kind="stable")]


def _asked_for(calibration: CalibrationSet, by: Any) -> Any:
    """Return the columns that the user asks about, as a table of all items."""
    if by is None:
        return None
    names = [by] if isinstance(by, str) else by
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        frame = as_frame(calibration.X)
        known: list[str] = [] if frame is None else list(frame.columns)
        unknown = [name for name in names if name not in known]
        if unknown or frame is None:
            raise ValueError(
                f"heterogeneity_test: by names columns that X does not have: {unknown}. Its "
                f"columns are {known[:20] or 'without names'}; pass the values instead."
            )
        return frame.select(list(names)).to_native()
    table = by if as_frame(by) is not None else pd.DataFrame(np.asarray(by))
    if len(table) != calibration.n_items:
        raise ValueError(
            f"heterogeneity_test: by has {len(table)} rows, but X has {calibration.n_items}. Pass "
            "one row per item."
        )
    return table.rename(columns=str) if isinstance(table, pd.DataFrame) else table


def _learners(asked: str | Sequence[Any]) -> dict[str, Learner]:
    if isinstance(asked, str):
        if asked == "auto":
            return dict(LEARNERS)
        asked = [asked]
    found: dict[str, Learner] = {}
    for learner in asked:
        if isinstance(learner, str) and learner in LEARNERS:
            found[learner] = LEARNERS[learner]
        elif hasattr(learner, "fit") and hasattr(learner, "predict"):
            found[f"{type(learner).__name__} {len(found)}"] = regressor_learner(learner)
        else:
            raise ValueError(
                f"heterogeneity_test: learners must be 'auto' or a list of {list(LEARNERS)} and of "
                f"scikit-learn regressors; got {learner!r}."
            )
    return found


def _nothing_to_test(items: CalibrationSet, columns: FeatureColumns) -> str | None:
    """Say why nothing can be tested, or None."""
    if items.n_items < LEAST_ITEMS:
        return f"{items.n_items} items are too few to test anything; {LEAST_ITEMS} are the least."
    if len(np.unique(items.codes)) < 2:
        return "all items have the same label; there is nothing to explain."
    if columns.is_empty:
        return "no column of X takes two values; there is nothing that could be hidden."
    if items.groups is not None and _n_groups(items) < 3:
        return f"{_n_groups(items)} groups are too few to test anything; 3 are the least."
    return None


def _no_answer(
    items: CalibrationSet, fit: GlobalFit, order: Rows, regions: Regions, why: str
) -> Analysis:
    part, interval = _global_part(items, fit)
    test = HeterogeneityTest(
        p_value=1.0,
        statistic=-np.inf,
        grouping_loss_low=0.0,
        grouping_loss_found=0.0,
        global_part=part,
        global_part_interval=interval,
        brier=_brier(items),
        carried_by=(),
        parts={},
        n_items=items.n_items,
        n_groups=_n_groups(items),
        n_null=0,
        notes=(why,),
    )
    gains = np.column_stack([_global_gains(items, fit), np.zeros(items.n_items)])
    counts = np.bincount(regions.number(items.proba), minlength=len(regions))
    ones = np.ones(len(regions))
    by_region = regions.table(ones, 0 * ones, counts)
    return Analysis(test, gains[np.argsort(order)], regions, by_region)


def _notes(items: CalibrationSet) -> tuple[str, ...]:
    G = _n_groups(items)
    if 0 < G < _FEW_GROUPS:
        return (
            f"with {G} groups no p-value can be below {_least_p(items):.2g}, and the lower bound "
            "is as uncertain as an error from so few groups.",
        )
    return ()


def _n_groups(items: CalibrationSet) -> int:
    return 0 if items.groups is None else len(np.unique(items.groups))


def _least_p(items: CalibrationSet) -> float:
    """Return the smallest p-value that signs of so few groups can give."""
    G = _n_groups(items)
    return 2.0 ** (1 - G) if 0 < G < 60 else 0.0


def _brier(items: CalibrationSet) -> float:
    return float(mean_and_error(((items.onehot - items.proba) ** 2).sum(axis=1), items.weights)[0])


def _global_gains(items: CalibrationSet, fit: GlobalFit) -> Vector:
    """Return each item's squared error less what the best global map leaves of it."""
    before = ((items.onehot - items.proba) ** 2).sum(axis=1)
    return before - (fit.unshrunk**2).sum(axis=1)


def _global_part(items: CalibrationSet, fit: GlobalFit) -> tuple[float, tuple[float, float]]:
    """Return what the best global map gains, and its 95 % interval."""
    gain, error = mean_and_error(_global_gains(items, fit), items.weights, items.groups)
    return float(gain), (float(gain - 1.96 * error), float(gain + 1.96 * error))
