"""The estimator that a user meets: how much is hidden, is it real, where is it, who is in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hetcal._stored import stored
from hetcal._stored.fields import (
    MOST_FEATURES,
    either,
    instance,
    is_array,
    labels,
    list_of,
    number,
    numbers,
    one_of,
    optional,
    probabilities,
    table,
    whole,
)
from hetcal._threads import ThreadSafe
from hetcal._typing import Matrix
from hetcal._validation import FeatureEncoder
from hetcal._validation.by_name import output_by_name
from hetcal._validation.frames import TablesAsColumns
from hetcal.data import CalibrationSet
from hetcal.heterogeneity.cells import NET_STEPS, Balls, auto_radius, nearest_cell, net_of_cells
from hetcal.heterogeneity.inputs import (
    check_items,
    check_parameters,
    check_predictions,
    same_items,
    seed_of,
)
from hetcal.heterogeneity.neighborhood_means import MeasuredItems, neighborhood_means
from hetcal.heterogeneity.orthogonal_test import analyse, warn_of
from hetcal.heterogeneity.paper import balls_of_buckets, published_values
from hetcal.heterogeneity.regions import Regions
from hetcal.heterogeneity.residual_learners import LEARNERS
from hetcal.heterogeneity.result import HeterogeneityTest
from hetcal.heterogeneity.storing import OF_REGION, StoredMeasurement, as_forests_see
from hetcal.heterogeneity.subgroups import report_groups, subgroups_of
from hetcal.metrics.standard_errors import mean_and_error

LEAST_DRAWS = 99
_TREES = 100  # as the published code has it
_EVERYWHERE = 2.0  # no two predictions are further apart
_MOST_TREES = 10_000
_UNKNOWN = number(may_miss=True)
_COLUMNS = [
    "hh",
    "hh_raw",
    "hh_global",
    "hh_local",
    "hh_local_low",
    "standard_error",
    "p_value",
    "q_value",
    "n_neighbors",
    "status",
]


def _features(value: Any) -> bool:
    """Take the features as they were given: numbers, of which some may be missing."""
    return is_array(value, "f", (None, None)) and not np.isinf(value).any()


def _statistic(value: Any) -> bool:
    """Take any number: that of a p-value of 0 or 1 is infinite."""
    return isinstance(value, float)


@stored(
    {
        "n_null": optional(whole(0, 1_000_000)),
        "learners": either(one_of("auto"), list_of(one_of(*LEARNERS))),
        "classes_": labels,
        "n_features_in_": whole(1, MOST_FEATURES),
        "encoder_": instance(FeatureEncoder),
        "radius_": number(0, 1),
        "cells_": table,
        "regions_": optional(table),
        "covered_": number(0, 1 + 1e-9),
        "hh_mean_": _UNKNOWN,
        "hh_global_mean_": _UNKNOWN,
        "hh_local_mean_": _UNKNOWN,
        "hh_local_low_": _UNKNOWN,
        "standard_error_": _UNKNOWN,
        "statistic_": _statistic,
        "p_value_": _UNKNOWN,
        "_seed": whole(0, 2**32 - 1),
        "_n_trees": whole(1, _MOST_TREES),
        "_items": instance(MeasuredItems),
        "_table": optional(_features),
        "_centres": optional(probabilities(None, None)),
        "_edges": optional(numbers(None)),
    },
    may_lack=("cells_", "covered_", "encoder_"),
    derived={"_X": None, "_balls": None, "test_": None},
)
class HiddenHeterogeneity(StoredMeasurement, ThreadSafe, TablesAsColumns, BaseEstimator):
    r"""How much a classifier's probabilities hide, near each probability vector.

    Hidden heterogeneity (HH) near p is the improvement in Brier score that a local model g, which
    sees the features, makes over the classifier f among the calibration items U whose probabilities
    lie within a Hellinger ball around p:

    .. math:: HH(p) = \mathrm{Brier}_U(f) - \mathrm{Brier}_U(g) .

    It has two parts: what the best global map h(p) repairs, :math:`\mathrm{Brier}_U(f) -
    \mathrm{Brier}_U(h)`, and what only a local one can, :math:`\mathrm{Brier}_U(h) -
    \mathrm{Brier}_U(g)`, whose mean over all p is the *grouping loss* for an ideal g. Large
    ``hh_local`` calls for similarity-based calibration.

    Parameters
    ----------
    estimate : {"orthogonal", "paper"}, default="orthogonal"
        ``"orthogonal"``: h is any function of p, g = h + d with d learned from the residuals on
        other folds (:func:`hetcal.heterogeneity.heterogeneity_test`), so that the value is about 0
        when nothing is hidden. ``"paper"``: Algorithm 1 of [1]_ as published in code; g is scored
        on the items it was grown on, so that noise gives positive values.
    radius : float or "auto", default=0.1
        Hellinger radius of the neighbourhoods; small radii leave few neighbours, large ones mix
        different p. ``"auto"``: the first of 0.1, 0.15, 0.2, 0.3, 0.5, 1 at which nine of ten
        calibration items have at least 50 neighbours (or half of all items).
    learners : "auto" or list, default="auto"
        Learners of residuals, as in :func:`hetcal.heterogeneity.heterogeneity_test`.
    n_estimators : int, optional
        Trees per neighbourhood of ``"paper"``; None: 100.
    neighborhoods : {None, "net", "overlap", "item"}, default=None
        How neighbourhoods are shared. ``"net"``: balls around a net of calibration probabilities, a
        tenth of the radius apart; a prediction is served by its nearest centre. ``"overlap"``: of
        these, balls with nine of ten items in common are merged (fewer cells, for many classes).
        ``"item"``: every prediction has its own ball. None: ``"net"``; for ``"paper"`` the
        published code's cache on three decimals, which depends on the order of the items.
    n_null : int, optional
        None: as many draws under the null as the tests can afford. Fewer than 99: no tests, hence
        no p-values and bounds of 0, which saves time where only the values are wanted.
    min_neighbors : int, default=20
        Below, a neighbourhood has the status "too few neighbours" and no value.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.
    random_state : int, RandomState or None, default=0
        Seed of folds and draws, and of the published forests.
    n_jobs : int, optional
        Threads over the neighbourhoods of ``"paper"``; -1 for all cores. Where
        :func:`joblib.parallel_config` names a backend of other processes (loky, dask, ray), its
        workers instead. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    radius_ : float
    test_ : HeterogeneityTest
        The test of the whole set, see :meth:`test`.
    statistic_, p_value_ : float
        Of this test.
    hh_global_mean_, hh_local_mean_, hh_mean_ : float
        Means over all calibration items of the gain in squared error from f to h, from h to g, and
        from f to g. NaN for ``"paper"``.
    hh_local_low_ : float
        One-sided 95 % lower bound on the grouping loss.
    standard_error_ : float
        Of ``hh_mean_``.
    cells_ : DataFrame
        The columns of :meth:`frame`, one row per cell of the net.
    regions_ : DataFrame
        Test and bound in up to five disjoint regions of p: ``from``, ``to`` (of the second of two
        classes, or of the largest probability), ``n``, ``hh_local_low``, ``p_value``, ``q_value``.
    covered_ : float
        Share of the calibration items (by weight) whose cell has a value.

    References
    ----------
    .. [1] Kiri L. Wagstaff and Thomas G. Dietterich, "Hidden Heterogeneity: When to Choose
       Similarity-Based Calibration", Transactions on Machine Learning Research, 2023.

    Examples
    --------
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> from hetcal.heterogeneity import HiddenHeterogeneity
    >>> data = make_hidden_heterogeneity(1000, heterogeneity=0.9, random_state=0)
    >>> hidden = HiddenHeterogeneity().fit(data.X, data.y, y_proba=data.y_proba)
    >>> bool(hidden.p_value_ < 0.001)
    True
    >>> bool(hidden.hh_local_mean_ > 5 * abs(hidden.hh_global_mean_))
    True
    >>> hidden.score_samples([[0.5, 0.5], [0.95, 0.05]]).shape
    (2,)
    """

    def __init__(
        self,
        *,
        estimate: str = "orthogonal",
        radius: float | str = 0.1,
        learners: Any = "auto",
        n_estimators: int | None = None,
        neighborhoods: str | None = None,
        n_null: int | None = None,
        min_neighbors: int = 20,
        classes: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ):
        self.estimate = estimate
        self.radius = radius
        self.learners = learners
        self.n_estimators = n_estimators
        self.neighborhoods = neighborhoods
        self.n_null = n_null
        self.min_neighbors = min_neighbors
        self.classes = classes
        self.random_state = random_state
        self.n_jobs = n_jobs

    @output_by_name
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Measure hidden heterogeneity on calibration items.

        Parameters
        ----------
        X : array-like or table of shape (n, d)
            Features: numbers, levels, missing values; for ``"paper"`` levels are encoded and
            missing numbers filled with the median.
        y : array-like of shape (n,)
            Observed labels.
        y_proba, logits : array-like of shape (n, K)
            The classifier's output on these items: exactly one of the two. It must not have been
            trained on them.
        sample_weight : array-like of shape (n,), optional
            Weights of the items everywhere but in the forests of ``"paper"``, which count items.
            Items of weight 0 are left out.
        groups : array-like of shape (n,) or (n, n_columns), optional
            Items that belong together (one patient, one document). Nothing is then predicted from
            the item's own group: folds keep groups whole, and tests and errors count groups.

        Returns
        -------
        self
        """
        self.fit_set(
            check_items(
                X,
                y,
                y_proba,
                logits,
                classes=self.classes,
                sample_weight=sample_weight,
                groups=groups,
            )
        )
        if self.test_ is not None and self._asks_for_tests():
            warn_of(self.test_, "HiddenHeterogeneity")
        return self

    def fit_set(self, calibration: CalibrationSet) -> Self:
        """Measure on items that were checked already; whoever calls it tells the notes of the test.

        Advice has warnings of its own about the same.
        """
        check_parameters(self)
        calibration = calibration.with_positive_weight()
        self.classes_ = calibration.classes
        # For `subgroups`. The caller may change what was passed; tables without copy() are fixed.
        self._table = calibration.X.copy() if hasattr(calibration.X, "copy") else calibration.X
        self._seed = seed_of(self.random_state)
        self._n_trees = self.n_estimators or _TREES
        P = calibration.proba
        self.radius_ = auto_radius(P) if self.radius == "auto" else float(self.radius)
        shared = self.neighborhoods in ("net", "overlap") or (
            self.estimate == "orthogonal" and self.neighborhoods is None
        )
        self._balls = net_of_cells(P, self.radius_, self.neighborhoods or "net") if shared else None
        self._centres = None if self._balls is None else self._balls.centres
        if self.estimate == "paper":
            self._fit_paper(calibration)
        else:
            self._fit_orthogonal(calibration)
        return self

    def score_samples(self, y_proba: Any = None, *, logits: Any = None) -> NDArray[np.float64]:
        """Return HH at each prediction; NaN where too few calibration items are near to say.

        Parameters
        ----------
        y_proba, logits : array-like of shape (m, K)
            Predictions: exactly one of the two. HH depends on them alone.

        Returns
        -------
        hh : ndarray of shape (m,)
        """
        return self.frame(y_proba, logits=logits)["hh"].to_numpy(dtype=np.float64)

    def frame(self, y_proba: Any = None, *, logits: Any = None) -> pd.DataFrame:
        """Return everything that is known about the neighbourhood of each prediction.

        Parameters
        ----------
        y_proba, logits : array-like of shape (m, K)
            Predictions: exactly one of the two.

        Returns
        -------
        DataFrame
            One row per prediction, with columns

            - ``hh``: hidden heterogeneity, the mean gain of the calibration items nearby from f to
              g (``"paper"``: the published value);
            - ``hh_raw``: the same (``"paper"``: before it is cut off at 0);
            - ``hh_global``, ``hh_local``: the parts that a global map, and only a local one, can
              repair; their sum is ``hh``;
            - ``hh_local_low``: one-sided 95 % lower bound on the grouping loss in the region of
              p that the prediction lies in (``regions_``); 0 where the region's test does not
              reject;
            - ``standard_error``: of ``hh``;
            - ``p_value``: of the test that nothing is hidden in the region (P(y | x) = h(p));
            - ``q_value``: the same, adjusted for the number of regions (Benjamini-Hochberg):
              regions with ``q_value`` below 0.05 contain at most 5 % false alarms on average;
            - ``n_neighbors``: calibration items in the neighbourhood;
            - ``status``: "ok", "too few neighbours", "one class", "no neighbours" ("paper" also "no
              out-of-bag score").
        """
        check_is_fitted(self, "radius_")
        P = check_predictions(y_proba, logits, self.classes_)
        if self.estimate == "paper" and self.neighborhoods is None:
            balls, bucket = balls_of_buckets(self._items.P, P, self.radius_)
            return self._published(balls).take(bucket).reset_index(drop=True)
        if self._balls is None:
            return self._own_balls(P)
        cell = nearest_cell(self._balls, P, self._reach())
        found = self.cells_.take(np.maximum(cell, 0)).reset_index(drop=True)
        lonely = np.flatnonzero(cell < 0)
        if len(lonely):
            own = self._own_balls(P[lonely]).set_index(lonely)
            found = pd.concat([found[cell >= 0], own]).sort_index()
        return self._with_region(found, P)

    def test(self) -> HeterogeneityTest:
        """Return the test of the whole set: that a global map can repair everything."""
        check_is_fitted(self, "radius_")
        if self.estimate == "paper":
            raise ValueError(
                "HiddenHeterogeneity(estimate='paper') has no test: the published value is "
                "positive for pure noise too. Use estimate='orthogonal'."
            )
        if self.test_ is None:
            raise ValueError(
                "HiddenHeterogeneity.test: this estimator was loaded from a file, which keeps "
                "p_value_ and statistic_ only. Fit it again for the whole test."
            )
        return self.test_

    def subgroups(
        self,
        X: Any = None,
        y_proba: Any = None,
        y: Any = None,
        *,
        by: Sequence[str] | str | None = None,
        groups: Any = None,
        max_conditions: int = 3,
        max_subgroups: int = 10,
        min_count: int | None = None,
        level: float = 0.05,
    ) -> pd.DataFrame:
        """Name the sub-populations for which the probabilities are wrong.

        Rules are searched on one half of the items and measured on the other, so the figures
        are not selected for; rules that the second half does not confirm (Holm, at ``level``) are
        not reported.

        Parameters
        ----------
        X, y_proba, y : array-like, optional
            Labelled items. None: those of :meth:`fit`; X and y_proba without y must be those rows.
        by : str or list of str, optional
            Report the groups that these columns form (numbers are cut at their quartiles) instead
            of searching. All of them are reported, measured on all items.
        groups : array-like, optional
            Items that belong together and must not be split over the halves; as at fit when the
            items are.
        max_conditions : int, default=3
            Longest rule.
        max_subgroups : int, default=10
            Most rules that are searched for.
        min_count : int, optional
            Smallest sub-population, per half; None: 25, or 2 % of the half if that is more.
        level : float, default=0.05
            Probability of reporting anything when every sub-population is as the model says.

        Returns
        -------
        DataFrame
            Sorted by ``gain``; see :func:`hetcal.heterogeneity.find_subgroups` for the columns.
            Empty when nothing was found.
        """
        check_is_fitted(self, "radius_")
        if y is not None:
            items = check_items(X, y, y_proba, None, classes=self.classes_, groups=groups)
        else:
            items = same_items(self._table, self._items, self.classes_, X, y_proba)
        if by is not None:
            return report_groups(items, items.X, by)
        return subgroups_of(
            items,
            max_conditions=max_conditions,
            max_subgroups=max_subgroups,
            min_count=min_count,
            level=level,
            random_state=self._seed,
        )

    # -- fitting ---------------------------------------------------------------------------------

    def _asks_for_tests(self) -> bool:
        return self.n_null is None or self.n_null >= LEAST_DRAWS

    def _keep(self, calibration: CalibrationSet, gains: Matrix | None) -> None:
        weight = calibration.weights / calibration.weights.mean()
        self._items = MeasuredItems(
            calibration.proba, calibration.codes, weight, calibration.groups, gains
        )
        self.n_features_in_ = int(np.shape(calibration.X)[1])

    def _fit_paper(self, calibration: CalibrationSet) -> None:
        self._keep(calibration, None)
        self.encoder_ = calibration.encoder("impute")
        self._X = as_forests_see(calibration.features("impute"))
        self.hh_mean_ = self.hh_global_mean_ = self.hh_local_mean_ = self.hh_local_low_ = np.nan
        self.standard_error_ = self.statistic_ = self.p_value_ = np.nan
        self.test_: HeterogeneityTest | None = None
        self._edges = None
        self.regions_ = None
        if self._balls is not None:
            self.cells_ = self._published(self._balls)

    def _fit_orthogonal(self, calibration: CalibrationSet) -> None:
        found = analyse(
            calibration,
            learners=self.learners,
            random_state=self._seed,
            with_tests=self._asks_for_tests(),
            with_regions=True,
        )
        self._keep(calibration, found.gains)
        self._X, self.test_ = None, found.test
        self._edges, self.regions_ = found.regions.edges, found.by_region
        self.statistic_, self.p_value_ = found.test.statistic, found.test.p_value
        self.hh_local_low_ = found.test.grouping_loss_low
        items = self._items
        means, _ = mean_and_error(found.gains.T, items.weight)
        self.hh_global_mean_, self.hh_local_mean_ = map(float, means)
        both = mean_and_error(found.gains.sum(axis=1), items.weight, items.groups)
        self.hh_mean_, self.standard_error_ = map(float, both)
        self._fit_cells()

    def _fit_cells(self) -> None:
        items, balls = self._items, self._balls
        if balls is None:
            balls = Balls.around(np.unique(items.P, axis=0), items.P, self.radius_)
        self.cells_ = self._with_region(self._measured(balls), balls.centres)
        # Every item has a cell (merged ones may lie far away).
        cell = nearest_cell(balls, items.P, _EVERYWHERE)
        known = self.cells_["hh"].notna().to_numpy()[cell]
        self.covered_ = float(items.weight[known].sum() / items.weight.sum())

    # -- scoring ---------------------------------------------------------------------------------

    def _reach(self) -> float:
        """How far a prediction may lie from the centre that serves it."""
        # Merged balls lost their centre to one that may lie further away.
        return self.radius_ / (2 if self.neighborhoods == "overlap" else NET_STEPS)

    def _measured(self, balls: Balls) -> pd.DataFrame:
        return neighborhood_means(self._items, balls, self.min_neighbors)

    def _with_region(self, found: pd.DataFrame, P: Matrix) -> pd.DataFrame:
        """Add what is known about the region of p that each prediction lies in."""
        if self.regions_ is None or self._edges is None:
            return found
        of_region = self.regions_[OF_REGION].take(Regions(self._edges).number(P))
        for name in OF_REGION:
            found[name] = of_region[name].to_numpy()
        return found[_COLUMNS]

    def _published(self, balls: Balls) -> pd.DataFrame:
        return published_values(
            self._X,
            self._items.codes,
            self._items.P,
            balls,
            n_estimators=self._n_trees,
            random_state=self._seed,
            n_jobs=self.n_jobs,
        )

    def _own_balls(self, P: Matrix) -> pd.DataFrame:
        """Give every distinct prediction a ball of its own."""
        distinct, place = np.unique(P, axis=0, return_inverse=True)
        balls = Balls.around(distinct, self._items.P, self.radius_)
        paper = self.estimate == "paper"
        found = self._published(balls) if paper else self._measured(balls)
        return self._with_region(found, distinct).take(place.ravel()).reset_index(drop=True)
