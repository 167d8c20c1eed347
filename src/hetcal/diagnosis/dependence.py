"""Find rows that belong together although nobody said so: one event, one patient, many rows.

A local map that has seen other rows of the same event knows its outcome, and seems to gain much;
about a new event it knows nothing. So what is asked first is whether the gain depends on having
seen such rows: a forest predicts every item once by trees that have not seen the item, and once by
trees that have seen nothing of its cluster either. Where the second prediction is worse beyond
noise, the rows of a cluster are not independent. The second question is whether the labels of a
cluster agree more than independent labels would: then every error that counts rows is too small.

Clusters are proposed by columns whose values repeat (features, and columns that were left out of
them), by neighbourhood in the order of the rows, and where neither tells anything by rows that
nearly repeat each other in their features. A feature's value may also be an ordinary category or
count, of which new items will have more, and rows with it are alike because of what it says. Labels
cannot tell a category with a strong effect from persons; so whole numbers and text among the
features count as events only where hardly any value has rows of two classes, as in one event. And
what a smooth function of the features can say of values that it has not seen is no secret of
theirs: loss and agreement must be there behind an additive logistic regression too. An order that
merely sorts the rows by a feature, by the probabilities or by the label is no sign of dependence.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from hetcal._compat import many_classes
from hetcal._typing import Matrix, Rows, Vector
from hetcal._validation.containers import as_frame
from hetcal.data import CalibrationSet, Folds
from hetcal.data.near_copies import NearCopies, find_near_copies
from hetcal.kernels import forest as kernel
from hetcal.kernels.binned_features import BinnedFeatures, bin_features
from hetcal.kernels.forest_binned import BinnedForest
from hetcal.metrics.scores import brier_losses
from hetcal.metrics.standard_errors import kish_number, mean_and_error

# Few trees show what many show; of many items fewer are enough.
_FEWEST_TREES, _MOST_TREES, _TREES_TIMES_ITEMS, _LEAST_LEAF = 40, 100, 400_000, 3
# How sure the loss must be, and how large (share of the Brier score) to be worth a word; how sure
# the agreement of labels, which has heavier tails.
_SURE_ERRORS, _LEAST_LOSS, _SURE_OF_LABELS = 3.0, 0.02, 4.0
_NEARLY = 0.8  # of the largest loss: fewer columns tell it as well
# Equal items that weighted ones must be worth: a heavy one has a warning of its own.
_FEWEST_ITEMS = 10
# Which columns may number events: so many values, most of them on two rows or more.
_FEWEST_VALUES, _REPEATED = 20, 0.5
_LARGEST_LINKED = 0.1  # of the rows, that groups may link to one cluster
# Fractions on more rows than this number no events. Near-copies count from this agreement on.
_FEW_ROWS, _AS_ONE_EVENT = 10.0, 0.3
# Of the values that should have rows of two classes by their probabilities, those that may.
_MIXED = 0.1
_LISTED = 0.8  # of the combinations that shuffled columns show: fewer are a list of events
_FAR = 5.0  # standard deviations, beyond which a smooth function is flat
# Of a coarse map of the probability: few, so that the events in one bin do not cancel.
_BINS = 5
_BLOCKS = (3, 10)
_SORTED, _RUNS_PER_VALUE = 0.8, 1.2
_MOST_CANDIDATES, _MOST_DISCRETE = 12, 10


@dataclass(frozen=True, eq=False)
class Cluster:
    """Rows that may belong together, and the columns that say so.

    Without columns it is the order of the rows that says so, or that they nearly repeat each other.
    """

    columns: tuple[str, ...]
    numbers: Rows
    near_copies: bool = False
    of_features: bool = False

    @property
    def rows_per_value(self) -> float:
        """Rows per cluster, infinite where these cannot be events.

        There are too few, values are hardly repeated, or one of them has most of the rows.
        """
        counts = np.bincount(self.numbers)
        repeated = counts[counts > 1].sum() >= _REPEATED * len(self.numbers)
        good = repeated and len(counts) >= _FEWEST_VALUES and counts.max() <= len(self.numbers) / 2
        return len(self.numbers) / len(counts) if good else np.inf


@dataclass(frozen=True)
class Dependence:
    """Rows that belong together.

    Attributes
    ----------
    columns : tuple of str
        The columns that tell which rows belong together; empty for neighbours in the table and for
        near-copies.
    n_clusters : int
    gain, gain_apart : float
        What a forest gains over the probabilities, in Brier score: from any other rows, and from
        rows of other clusters only (or a logistic regression, where that gains more).
    lost_errors : float
        The difference of the two in standard errors.
    agreement : float
        Correlation of what is left of the labels between two rows of a cluster.
    agreement_errors : float
        The same in standard errors; 0 where groups are known already.
    by_gain : bool
        Whether the gain shows it; else the labels do.
    near_copies : bool
        Whether the rows that belong together are those that nearly repeat each other.
    """

    columns: tuple[str, ...]
    n_clusters: int
    gain: float
    gain_apart: float
    lost_errors: float
    agreement: float
    agreement_errors: float
    by_gain: bool
    near_copies: bool = False

    @property
    def is_sure(self) -> bool:
        """Whether the gain or the labels show it."""
        return self.by_gain or self.agreement_errors >= _SURE_OF_LABELS

    @property
    def lost(self) -> float:
        """What is lost when nothing of an item's cluster has been seen."""
        return self.gain - self.gain_apart


def find_dependence(
    items: CalibrationSet,
    identifiers: Mapping[str, Any] | None = None,
    *,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Dependence | None:
    """Return what the rows depend by, or None where they look independent.

    Losses count weights; what is learned does not. Where weights depend on the label, as those do
    that undo a choice of rows by class, the labels of any two rows would seem to agree.

    Parameters
    ----------
    items : CalibrationSet
        With ``groups``, whether rows belong together beyond the groups.
    identifiers : mapping of str to array-like of shape (n,), optional
        Columns that are no features: numbers of events or persons, dates.
    random_state : int, default=0
        Seed of the forests.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    """
    kept = np.flatnonzero(items.weights > 0)
    others = {str(name): _numbered(column)[kept] for name, column in (identifiers or {}).items()}
    items = items.take(kept) if len(kept) < items.n_items else items
    if not items.has_features or sparse.issparse(items.X):
        return None
    if kish_number(items.weights) < _FEWEST_ITEMS:  # what is lost hangs on a few labels
        return None
    forests = _Forests(items, random_state, n_jobs)
    told = [*_by_columns(columns_of(items.X), others, items), *_by_order(items)]
    # What a column or the order tells can be named; copies are looked for where nothing does.
    return forests.surest(told) or forests.surest(_by_copies(items, random_state))


class _Forests:
    """Out-of-bag predictions of a forest on features and probabilities, by row and by cluster."""

    def __init__(self, items: CalibrationSet, random_state: int, n_jobs: int | None):
        self.items = items
        self.grower = BinnedForest(
            int(np.clip(_TREES_TIMES_ITEMS // items.n_items, _FEWEST_TREES, _MOST_TREES)),
            min_samples_leaf=_LEAST_LEAF,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.Z = np.hstack([items.features(), items.scores.clipped_logs[:, 1:]])
        self.binned: BinnedFeatures = bin_features(self.Z)
        self.stated = brier_losses(items.proba, items.codes)
        predictions = self._out_of_bag(items.groups)
        self.by_row = brier_losses(predictions, items.codes)
        self.residuals = items.onehot - predictions

    def compare(self, cluster: Cluster) -> Dependence:
        """Measure what is lost when nothing of an item's cluster has been seen.

        Other trees must lose it too: the errors count the chance of the rows, not of the trees. By
        the values of features it is lost only if a smooth function of these loses it as well.
        """
        found = self._by_trees(cluster)
        if found.by_gain:
            found = _lesser(found, self._other_trees._by_trees(cluster))
        if not (cluster.of_features and found.is_sure):
            return found
        smooth = self._smooth(cluster.numbers, cluster.columns)
        return _lesser(found, self._measured(cluster, smooth, self.items.onehot - smooth))

    @cached_property
    def _other_trees(self) -> _Forests:
        return _Forests(self.items, self.grower.random_state + 1, self.grower.n_jobs)

    def _by_trees(self, cluster: Cluster) -> Dependence:
        return self._measured(cluster, self._out_of_bag(cluster.numbers), self.residuals)

    def _measured(self, cluster: Cluster, apart: Matrix, residuals: Matrix) -> Dependence:
        items, numbers = self.items, cluster.numbers
        losses = brier_losses(apart, items.codes)
        lost, error = mean_and_error(losses - self.by_row, items.weight, numbers)
        brier, forest_brier = (
            np.average(losses, weights=items.weights) for losses in (self.stated, self.by_row)
        )
        gain, lost_errors = brier - forest_brier, lost / error if error > 0 else 0.0
        agreement, errors = 0.0, 0.0
        if items.groups is None:
            agreement, errors = _agreement(residuals, numbers)
        return Dependence(
            columns=cluster.columns,
            n_clusters=int(numbers.max()) + 1,
            gain=float(gain),
            gain_apart=float(gain - lost),
            lost_errors=float(lost_errors),
            agreement=agreement,
            agreement_errors=errors,
            by_gain=bool(lost_errors >= _SURE_ERRORS and lost >= _LEAST_LOSS * brier),
            near_copies=cluster.near_copies,
        )

    def surest(self, proposed: Sequence[Cluster]) -> Dependence | None:
        """Return what is lost most by, else where labels agree most surely, if anywhere."""
        linked = [_with_groups(cluster, self.items.groups) for cluster in proposed]
        found = [self.compare(cluster) for cluster in linked if cluster is not None]
        sure = [one for one in found if one.by_gain]
        most = max((one.lost for one in sure), default=0.0)
        enough = [one for one in sure if one.lost >= _NEARLY * most]
        if enough:
            return min(enough, key=lambda one: (len(one.columns), -one.lost))
        agreeing = [one for one in found if one.is_sure]
        return max(agreeing, key=lambda one: one.agreement_errors, default=None)

    def _smooth(self, clusters: Rows, bent: Sequence[str] = ()) -> Matrix:
        """Predict by logistic regressions on features and squares, without an item's cluster.

        Some columns may also have an effect that bends at their deciles.
        """
        items = self.items
        Z = np.hstack([self.Z, *map(_hinges, map(columns_of(items.X).get, bent))])
        known = np.isfinite(Z)
        Z = np.where(known, Z, np.nan)
        Z = (Z - np.nanmean(Z, axis=0)) / np.maximum(np.nanstd(Z, axis=0), np.finfo(float).tiny)
        Z = np.where(known, Z, 0.0).clip(-_FAR, _FAR)
        Z, predictions = np.hstack([Z, Z**2]), items.proba.copy()
        for train, test in Folds.make(
            items.n_items, seed=self.grower.random_state, groups=clusters
        ):
            codes, varies = items.codes[train], np.ptp(Z[train], axis=0) > 0
            if codes.min() < codes.max() and varies.any():
                model = sklearn.linear_model.LogisticRegression(max_iter=300)
                with many_classes():  # nearly converged is good enough
                    warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
                    model.fit(Z[train][:, varies], codes)
                predictions[test] = 0.0
                said = model.predict_proba(Z[test][:, varies])
                predictions[np.ix_(test, model.classes_)] = said
        return predictions

    def _out_of_bag(self, groups: Rows | None) -> Matrix:
        items = self.items
        forest = self.grower.fit_classes(self.binned, items.codes, items.n_classes, groups=groups)
        leaves = kernel.apply(forest, self.Z, self.grower.n_jobs)
        once = np.ones(items.n_items)
        mass = kernel.leaf_frequencies(forest, leaves, items.codes, items.n_classes, once)
        votes = kernel.vote_leaves(kernel.out_of_bag_leaves(forest, leaves), mass)
        total = votes.sum(axis=1, keepdims=True)
        return np.divide(votes, total, out=items.proba.copy(), where=total > 0)


def _lesser(one: Dependence, other: Dependence) -> Dependence:
    """Return what both measurements of a cluster show."""
    return replace(
        min(one, other, key=lambda found: found.lost),
        agreement=min(one.agreement, other.agreement),
        agreement_errors=min(one.agreement_errors, other.agreement_errors),
    )


def _by_columns(
    features: Mapping[str, Any], others: Mapping[str, Rows], items: CalibrationSet
) -> list[Cluster]:
    """Propose columns whose values number events: one, two or three, or all that have few values.

    A column that was left out of the features may number events whatever its labels and however
    many rows have its values; fractions may where few rows have them; and anything else where
    labels are those of one event. Columns that spell the label out, alone (a copy of it) or as a
    pair (an answer and the truth), number nothing: of course labels agree where they do.
    """
    numbered = {**{name: _numbered(column) for name, column in features.items()}, **others}
    mapped = _mapped(items)

    def crossed(names: tuple[str, ...]) -> Cluster:
        parts = np.column_stack([numbered[name] for name in names])
        numbers = np.unique(parts, axis=0, return_inverse=True)[1].astype(np.int64)
        return Cluster(names, numbers, of_features=others.keys().isdisjoint(names))

    def few_of_the_possible(cluster: Cluster) -> bool:
        # Categories meet each other as if shuffled; of numbers of events most combinations lack.
        rng = np.random.default_rng(0)
        shuffled = np.column_stack([rng.permutation(numbered[name]) for name in cluster.columns])
        return bool(cluster.numbers.max() + 1 < _LISTED * len(np.unique(shuffled, axis=0)))

    def numbers_events(name: str) -> bool:
        cluster = crossed((name,))
        if name in others or cluster.rows_per_value > _FEW_ROWS:
            return name in others
        return _has_fractions(features[name]) or _is_one_event(items.onehot, mapped, cluster)

    keys: list[tuple[str, ...]] = [(name,) for name in numbered if numbers_events(name)]
    few = [name for name, c in numbered.items() if 1 <= c.max() < items.n_items / _FEW_ROWS]
    few = [name for name in few if not _spells_labels(crossed((name,)), items.codes)]
    pairs = combinations(few[:_MOST_DISCRETE], 2)
    spelling = [set(names) for names in pairs if _spells_labels(crossed(names), items.codes)]
    for names in _together(few[:_MOST_DISCRETE]):
        if any(pair.issubset(names) for pair in spelling):
            continue
        cluster = crossed(names)
        if cluster.rows_per_value < np.inf and _is_one_event(items.onehot, mapped, cluster):
            keys += _together(names)  # a part of it may be what tells events apart
    if len(few) > 3:  # more than three columns: only all together
        cluster = crossed(tuple(few[:_MOST_DISCRETE]))
        if _is_one_event(items.onehot, mapped, cluster) and few_of_the_possible(cluster):
            keys.append(cluster.columns)
    proposed = [crossed(names) for names in dict.fromkeys(keys)]
    proposed = [cluster for cluster in proposed if cluster.rows_per_value < np.inf]
    return sorted(proposed, key=lambda cluster: cluster.numbers.max())[:_MOST_CANDIDATES]


def _spells_labels(cluster: Cluster, codes: Rows) -> bool:
    """Tell whether a few values, each on many rows, have rows of one class each."""
    n_values = int(cluster.numbers.max()) + 1
    with_class = np.unique(np.column_stack([cluster.numbers, codes]), axis=0)
    few = n_values < min(_FEWEST_VALUES, len(codes) / _FEW_ROWS)
    return few and len(with_class) == n_values


def _is_one_event(onehot: Matrix, mapped: Matrix, cluster: Cluster) -> bool:
    """Tell whether hardly any values have rows of two classes, of those that should by chance."""
    one_class = np.zeros(int(cluster.numbers.max()) + 1)
    for proba in mapped.T:
        logs = np.log(np.maximum(proba, np.finfo(float).tiny))
        one_class += np.exp(np.bincount(cluster.numbers, logs))
    of_class = np.stack([np.bincount(cluster.numbers, labels) for labels in onehot.T])
    mixed = np.count_nonzero((of_class > 0).sum(axis=0) > 1)
    return bool(mixed <= _MIXED * (1 - one_class).sum())


def _mapped(items: CalibrationSet) -> Matrix:
    """Return the class frequencies in bins of each class's probability, a coarse global map.

    Where the probabilities themselves are far off, labels of any two rows would seem to agree.
    """
    columns = []
    for proba, label in zip(items.proba.T, items.onehot.T, strict=True):
        edges = np.quantile(proba, np.linspace(0, 1, _BINS + 1)[1:-1])
        bins = np.searchsorted(edges, proba, side="right")
        counts = np.bincount(bins)
        columns.append((np.bincount(bins, label) / np.maximum(counts, 1))[bins])
    return np.column_stack(columns)


def _together(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [key for size in (1, 2, 3) for key in combinations(names, size)]


def _by_order(items: CalibrationSet) -> list[Cluster]:
    """Propose blocks of neighbouring rows, unless the rows are merely sorted."""
    n = items.n_items
    sizes = [size for size in _BLOCKS if n // size >= _FEWEST_VALUES]
    if not sizes or sparse.issparse(items.X):
        return []
    columns = np.column_stack([items.features(), items.proba, items.codes])
    if any(map(_is_sorted, columns.T)):
        return []
    return [Cluster((), np.minimum(np.arange(n) // size, n // size - 1)) for size in sizes]


def _by_copies(items: CalibrationSet, random_state: int) -> list[Cluster]:
    """Propose rows that nearly repeat each other, where only these have labels that agree.

    A difference that the features show goes on beyond the copies; the outcome of one event does
    not. So the labels of a row's copies must agree with its own by more than those of the rows that
    are next to it and no copies.
    """
    found = find_near_copies(items.features(), random_state=random_state)
    if found is None or np.sum(np.bincount(found.numbers) > 1) < _FEWEST_VALUES:
        return []
    mapped = _mapped(items)
    left, scale = items.onehot - mapped, np.sqrt(mapped * (1 - mapped))
    repeated = np.bincount(found.numbers)[found.numbers] > 1
    beyond = repeated[:, None] & (found.numbers[found.nearest] != found.numbers[:, None])
    most, most_beyond = _between_rows(scale, found.numbers), _between_pairs(scale, found, beyond)
    if min(most, most_beyond) <= 0:
        return []
    agreement = _between_rows(left, found.numbers) / most
    smooth = max(_between_pairs(left, found, beyond) / most_beyond, 0.0)
    enough = agreement >= smooth + _AS_ONE_EVENT
    return [Cluster((), found.numbers, near_copies=True)] if enough else []


def _between_pairs(values: Matrix, found: NearCopies, which: NDArray[np.bool_]) -> float:
    """Return the sum of products of rows and some of their nearest, for all columns."""
    return sum(
        float(np.vdot(values, (values[other] * chosen[:, None])))
        for other, chosen in zip(found.nearest.T, which.T, strict=True)
    )


def _is_sorted(column: Vector) -> bool:
    """Tell whether the rows are in the order of a column, or each of its values in one stretch."""
    known = column[~np.isnan(column)]
    n_values = len(np.unique(known))
    if n_values < 2:
        return False
    if n_values <= len(known) / _FEW_ROWS:
        return bool(1 + np.count_nonzero(np.diff(known)) <= _RUNS_PER_VALUE * n_values)
    place = pd.Series(known).rank().to_numpy()
    return bool(abs(np.corrcoef(np.arange(len(known)), place)[0, 1]) > _SORTED)


def _agreement(residuals: Matrix, clusters: Rows) -> tuple[float, float]:
    """Return the correlation of residuals between rows of a cluster, and it in standard errors."""
    most = _between_rows(np.sqrt((residuals**2).mean(axis=0)) * np.ones_like(residuals), clusters)
    variance = 2 * _squared_products(residuals, clusters)
    between = _between_rows(residuals, clusters)
    if most <= 0 or variance <= 0:
        return 0.0, 0.0
    return between / most, between / float(np.sqrt(variance))


def _between_rows(values: Matrix, clusters: Rows) -> float:
    """Return the sum of products over pairs of different rows of one cluster, for all columns."""
    sums = np.stack([np.bincount(clusters, column) for column in values.T])
    return float((sums**2).sum() - (values**2).sum())


def _squared_products(values: Matrix, clusters: Rows) -> float:
    """Return the sum of squared products (over all columns) of different rows of one cluster."""
    ends = np.cumsum(np.bincount(clusters))[:-1]
    parts = np.split(values[np.argsort(clusters, kind="stable")], ends)
    products = (part @ part.T if len(part) < part.shape[1] else part.T @ part for part in parts)
    with_itself = ((values**2).sum(axis=1) ** 2).sum()
    return float(sum(np.vdot(product, product) for product in products) - with_itself)


def _joined(clusters: Rows, groups: Rows | None) -> Rows:
    """Return clusters that hold whole groups too: rows linked by either belong together."""
    if groups is None:
        return clusters
    n = int(clusters.max()) + 1
    size = n + int(groups.max()) + 1
    links = sparse.coo_array((np.ones(len(groups)), (clusters, n + groups)), shape=(size, size))
    return _numbered(connected_components(links, directed=False)[1][clusters])


def _with_groups(cluster: Cluster, groups: Rows | None) -> Cluster | None:
    """Return a cluster that holds whole groups, or None where these link it to most other rows.

    Values that many groups share hang together through the groups, whether or not they mean
    anything; a forest that has seen nothing of such a part has seen next to nothing.
    """
    numbers = _joined(cluster.numbers, groups)
    alone, linked = np.bincount(cluster.numbers).max(), np.bincount(numbers).max()
    too_many = linked > max(_LARGEST_LINKED * len(numbers), 2 * alone)
    return None if too_many else replace(cluster, numbers=numbers)


def columns_of(X: Any) -> dict[str, Any]:
    """Return the values of each feature by its name."""
    frame = as_frame(X)
    if frame is not None:
        # One by one: frame[0] of a table whose columns are numbered is a row.
        return {str(column.name): column.to_numpy() for column in frame.iter_columns()}
    columns: Any = [] if X is None or sparse.issparse(X) else np.asarray(X).T
    return {f"x{j}": column for j, column in enumerate(columns)}


def _hinges(column: Any) -> Matrix:
    """Return how far numbers lie above each of their deciles; nothing of what is no number."""
    numbers = as_numbers(column)
    known = numbers[np.isfinite(numbers)]
    knots = np.unique(np.quantile(known, np.linspace(0.1, 0.9, 9))) if len(known) else known
    return np.maximum(numbers[:, None] - knots, 0.0)


def as_numbers(column: Any) -> Vector:
    """Return what a column holds of numbers; NaN for the rest."""
    numbers = pd.to_numeric(pd.Series(column), errors="coerce")
    return numbers.to_numpy(np.float64, na_value=np.nan)


def _has_fractions(column: Any) -> bool:
    """Tell whether a column holds numbers that are not all whole."""
    if np.asarray(column).dtype.kind not in "fO":
        return False
    numbers = as_numbers(column)
    return bool(np.any(numbers[np.isfinite(numbers)] % 1))


def _numbered(column: Any) -> Rows:
    return pd.factorize(np.asarray(column), use_na_sentinel=False)[0].astype(np.int64)
