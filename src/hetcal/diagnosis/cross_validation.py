"""Many methods on the same folds: out-of-fold probabilities, failures and warnings of each."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from hetcal._exceptions import ColumnOrderWarning
from hetcal._typing import Matrix, Rows
from hetcal.calibration import GlobalCalibrator, get_calibrator, list_calibrators
from hetcal.calibration.fitting import fitted_to, predicted_by, seeded
from hetcal.data import CalibrationSet
from hetcal.data.folds import Split
from hetcal.diagnosis.baselines import plain_baselines
from hetcal.diagnosis.inputs import calibration_items
from hetcal.diagnosis.splits import make_splits
from hetcal.diagnosis.steps import Progress
from hetcal.metrics.scores import brier_losses, log_losses, losses_by_label

LOSSES = ("brier", "log_loss", "accuracy")


@dataclass
class MethodRun:
    """What became of one method.

    Attributes
    ----------
    proba : list of ndarray of shape (n_test, K)
        Probabilities of the tested items, one matrix per split; empty where the method failed.
    error : str or None
        Why it failed in at least one split.
    warnings : Counter
        Warnings by text, with the number of splits that gave them.
    n_warned : int
        Splits with at least one warning (texts may differ in a figure from split to split).
    seconds : list of float
        Time to fit and predict, per split.
    """

    proba: list[Matrix] = field(default_factory=list)
    error: str | None = None
    warnings: Counter[str] = field(default_factory=Counter)
    n_warned: int = 0
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities of several methods for the same items, none of which they have learned from.

    Attributes
    ----------
    items : CalibrationSet
    rows : ndarray of shape (m,)
        Row of every predicted item; an item may occur several times.
    runs : dict of MethodRun
        By method; failed ones included.
    baselines : frozenset of str
        Which of the methods are plain retrained models.
    """

    items: CalibrationSet
    rows: Rows
    runs: dict[str, MethodRun]
    baselines: frozenset[str] = frozenset()

    @classmethod
    def of(cls, items: CalibrationSet, proba: Mapping[str, Matrix]) -> Self:
        """Return predictions of all items, one matrix per method."""
        runs = {name: MethodRun(proba=[Q]) for name, Q in proba.items()}
        baselines = frozenset(name for name in proba if " on " in name)
        return cls(items, np.arange(items.n_items), runs, baselines)

    @property
    def methods(self) -> list[str]:
        """Methods that gave probabilities for every split."""
        return [name for name, run in self.runs.items() if run.error is None]

    @cached_property
    def times_tested(self) -> NDArray[np.int64]:
        """How often each item was tested."""
        return np.bincount(self.rows, minlength=self.items.n_items)

    @property
    def tested(self) -> NDArray[np.bool_]:
        """Whether an item was tested at all."""
        return self.times_tested > 0

    @cached_property
    def scored_rows(self) -> Rows:
        """Rows of the items that were tested and have weight: the metrics are about these."""
        return np.flatnonzero(self.tested & (self.items.weights > 0))

    @cached_property
    def scored(self) -> CalibrationSet:
        """The items of :attr:`scored_rows`."""
        return self.items.take(self.scored_rows)

    def stacked(self, name: str) -> Matrix:
        """Return the probabilities of a method for :attr:`rows`."""
        if name not in self.runs:
            raise ValueError(f"{name!r} was not compared. The methods: {', '.join(self.runs)}.")
        run = self.runs[name]
        if run.error is not None:
            raise ValueError(f"{name!r} has no predictions: {run.error}")
        return np.vstack(run.proba)

    def proba(self, name: str) -> Matrix:
        """Return out-of-fold probabilities of every item, averaged over the times it was tested.

        Rows of items that were never tested are NaN.
        """
        return self._averaged(self.stacked(name))

    def losses(self, name: str, metric: str = "brier") -> Matrix:
        """Return the loss of every item, averaged over the times it was tested; NaN if never.

        ``"accuracy"`` is 1 where the most probable class was the true one.
        """
        codes = self.items.codes[self.rows]
        return self._averaged(item_losses(self.stacked(name), codes, metric))

    def losses_by_label(self, name: str, metric: str) -> Matrix:
        """Return the same with each label that an item might have, shape (n, K)."""
        return self._averaged(losses_by_label(self.stacked(name), metric))

    def _averaged(self, values: Matrix) -> Matrix:
        total = np.zeros((self.items.n_items, *values.shape[1:]))
        np.add.at(total, self.rows, values)
        times = self.times_tested.astype(np.float64)
        times[times == 0] = np.nan
        return total / times.reshape(-1, *[1] * (values.ndim - 1))


@dataclass(frozen=True, eq=False)
class CrossValidated(Predictions):
    """Out-of-fold probabilities of several methods on the same splits.

    Attributes
    ----------
    splits : list of (train rows, test rows)
    """

    splits: list[Split] = field(default_factory=list)

    @classmethod
    def on(
        cls,
        items: CalibrationSet,
        splits: list[Split],
        runs: dict[str, MethodRun],
        baselines: frozenset[str] = frozenset(),
    ) -> Self:
        """Return what the methods said of the tested items, split after split."""
        rows = np.concatenate([test for _, test in splits])
        return cls(items, rows, runs, baselines, splits)

    def split_losses(self, name: str, metric: str = "brier") -> list[Matrix]:
        """Return the losses of the tested items, split by split."""
        self.stacked(name)  # says why there are none
        return [
            item_losses(Q, self.items.codes[test], metric)
            for Q, (_, test) in zip(self.runs[name].proba, self.splits, strict=True)
        ]


def cross_validated(
    X: Any,
    y: Any = None,
    *,
    y_proba: Any = None,
    logits: Any = None,
    methods: str | Sequence[str] | Mapping[str, Any] = "all",
    baselines: bool | Sequence[str] = True,
    cv: Any = 5,
    n_repeats: int = 1,
    groups: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    caller: str = "cross_validated",
) -> CrossValidated:
    """Return out-of-fold probabilities of several calibrators on the same folds.

    Parameters are those of :func:`hetcal.diagnosis.compare`. A method that fails does not stop the
    others.

    Examples
    --------
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(200, random_state=0)
    >>> out = cross_validated(data.X, data.y, y_proba=data.y_proba,
    ...                       methods=["temperature", "swc"], baselines=False)
    >>> out.proba("swc").shape, out.losses("swc", "brier").shape
    ((200, 2), (200,))
    """
    items = calibration_items(caller, X, y, y_proba, logits, classes, sample_weight, groups)
    calibrators, plain = named_methods(methods, baselines, items, random_state, caller)
    splits = make_splits(items, cv, n_repeats, random_state=random_state, caller=caller)
    runs = run_splits(items, calibrators | plain, splits, n_jobs=n_jobs, progress=progress)
    return CrossValidated.on(items, splits, runs, frozenset(plain))


def named_methods(
    methods: str | Sequence[str] | Mapping[str, Any],
    baselines: bool | Sequence[str],
    items: CalibrationSet,
    random_state: int,
    caller: str,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return calibrators and plain retrained models by name."""
    calibrators = named_calibrators(methods, items.has_features, random_state, caller)
    plain = _named_baselines(baselines, items.has_features, random_state, caller)
    double = sorted(set(calibrators) & set(plain))
    if double:
        raise ValueError(f"{caller}: {double[0]!r} is the name of a baseline. Choose another name.")
    return calibrators, plain


def named_calibrators(
    methods: str | Sequence[str] | Mapping[str, Any],
    has_features: bool,
    random_state: int = 0,
    caller: str = "compare",
) -> dict[str, Any]:
    """Return calibrators by name, from names or from instances."""
    if isinstance(methods, Mapping):
        chosen = {
            name: seeded(get_calibrator(given), random_state) if isinstance(given, str) else given
            for name, given in methods.items()
        }
    else:
        if isinstance(methods, str):
            names: Iterable[str] = list_calibrators() if methods == "all" else [methods]
        else:
            names = dict.fromkeys(methods)
        _check_names(names, caller)
        chosen = {name: seeded(get_calibrator(name), random_state) for name in names}
        if isinstance(methods, str) and methods == "all" and not has_features:
            chosen = {n: c for n, c in chosen.items() if isinstance(c, GlobalCalibrator)}
    if not chosen:
        raise ValueError(
            f"{caller}: methods is empty. Pass 'all', a list of names such as ['temperature', "
            "'swc'], or a dict of name to calibrator."
        )
    for name, calibrator in chosen.items():
        if not (hasattr(calibrator, "fit") and hasattr(calibrator, "predict_proba")):
            raise TypeError(
                f"{caller}: method {name!r} is a {type(calibrator).__name__}; a calibrator with "
                "fit(X, y, y_proba=...) and predict_proba(X, y_proba=...) is expected."
            )
    return chosen


def _check_names(names: Iterable[Any], caller: str) -> None:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"{caller}: methods holds a {type(name).__name__}, which has no name. Pass a dict "
                "of names to calibrators, e.g. {'mine': Mine(), 'swc': 'swc'}."
            )


def run_splits(
    items: CalibrationSet,
    methods: Mapping[str, Any],
    splits: Sequence[Split],
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> dict[str, MethodRun]:
    """Fit every method on every split and predict its test items."""
    steps = [
        (
            f"{name}, split {number} of {len(splits)}",
            name,
            partial(_predicted, items, method, *split),
        )
        for name, method in methods.items()
        for number, split in enumerate(splits, start=1)
    ]
    return run_steps(steps, n_jobs=n_jobs, progress=progress)


def run_steps(
    steps: Sequence[tuple[str, str, Callable[[], Matrix]]],
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> dict[str, MethodRun]:
    """Work off steps (what it is, name of the method, what to do) and collect them by method."""
    runs = {name: MethodRun() for _, name, _ in steps}
    results: Iterator[_Result] = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_attempted)(predict) for _, _, predict in steps
    )
    for done, ((what, name, _), result) in enumerate(zip(steps, results, strict=True), start=1):
        run = runs[name]
        run.seconds.append(result.seconds)
        run.warnings.update(result.warnings)
        run.n_warned += bool(result.warnings)
        if result.error is None:
            run.proba.append(result.proba)
        elif run.error is None:
            run.error = result.error
        if progress is not None:
            progress(done, len(steps), what)
    for run in runs.values():
        if run.error is not None:  # some items have no prediction: nothing could be compared
            run.proba = []
    return runs


def item_losses(Q: Matrix, codes: Rows, metric: str) -> Matrix:
    """Return one value per item whose mean is the metric.

    Examples
    --------
    >>> item_losses(np.array([[0.9, 0.1]]), np.array([0]), "brier").round(2)
    array([0.02])
    """
    if metric == "brier":
        return brier_losses(Q, codes)
    if metric == "log_loss":
        return log_losses(Q, codes)
    if metric == "accuracy":
        return (Q.argmax(axis=1) == codes).astype(np.float64)
    raise ValueError(f"metric must be one of {', '.join(LOSSES)} for single items; got {metric!r}.")


@dataclass(frozen=True)
class _Result:
    proba: Matrix
    error: str | None
    warnings: set[str]
    seconds: float


def _attempted(predict: Callable[[], Matrix]) -> _Result:
    start = time.perf_counter()
    Q, error = np.empty((0, 0)), None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            Q = predict()
        # Whatever goes wrong in one method must not lose the others; its row says why.
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
    # That of the order of the columns was given for all items together.
    said = [w for w in caught if not issubclass(w.category, ColumnOrderWarning)]
    texts = {str(warning.message) for warning in said}
    return _Result(Q, error, texts, time.perf_counter() - start)


def _predicted(items: CalibrationSet, calibrator: Any, train: Rows, test: Rows) -> Matrix:
    part = items.take(train)
    if part.groups is not None and part.groups.max() == 0:
        part = replace(part, groups=None)  # a single group cannot be kept apart from others
    Q = predicted_by(fitted_to(calibrator, part), items.take(test))
    refuse_unpredicted(Q)
    return Q


def refuse_unpredicted(Q: Matrix) -> None:
    """Raise where some item has no prediction, so that its loss is not known."""
    unpredicted = ~np.isfinite(Q).all(axis=1)
    if unpredicted.any():
        raise ValueError(
            f"{int(unpredicted.sum())} of {Q.shape[0]} items have no prediction; without their "
            "fold a single class may be left to learn from. Pass more items of the rarest class."
        )


def _named_baselines(
    baselines: bool | Sequence[str], has_features: bool, random_state: int, caller: str
) -> dict[str, Any]:
    known = plain_baselines(random_state)
    if isinstance(baselines, bool):
        return dict(known) if baselines and has_features else {}
    wanted = [baselines] if isinstance(baselines, str) else list(baselines)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(
            f"{caller}: unknown baseline {unknown[0]!r}. Pass True, False, or some of "
            f"{', '.join(map(repr, known))}."
        )
    return {name: known[name] for name in wanted}
