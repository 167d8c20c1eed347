"""The estimator that a user meets: how much is hidden, is it real, where is it, who is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hetcal._threads import ThreadSafe
from hetcal._typing import Matrix
from hetcal._validation.frames import TablesAsColumns
from hetcal.data import CalibrationSet, Folds
from hetcal.heterogeneity import out_of_bag
from hetcal.heterogeneity.cells import (
    NET_STEPS,
    Balls,
    auto_radius,
    nearest_cell,
    net_of_cells,
    null_cells,
)
from hetcal.heterogeneity.global_map import CrossFittedMap
from hetcal.heterogeneity.inputs import (
    check_items,
    check_parameters,
    check_predictions,
    items_of,
    same_items,
    seed_of,
)
from hetcal.heterogeneity.local_models import LocalModels, neighbourhoods_done
from hetcal.heterogeneity.null import adjusted_among, benjamini_hochberg
from hetcal.heterogeneity.paper import balls_of_buckets, published_values
from hetcal.heterogeneity.subgroups import find_subgroups, report_groups
from hetcal.kernels.simplex import log_probabilities, zero_floor

_TREES = {"oob": 50, "paper": 100}  # as the paper's text says, and as its code does
_EVERYWHERE = 2.0  # no two predictions are further apart
_LARGEST = 1e30


@dataclass(frozen=True)
class HeterogeneityTest:
    """The test of the whole set: that a global map can repair everything.

    Attributes
    ----------
    statistic : float
        Studentised score statistic; about standard normal when nothing is hidden.
    p_value : float
        Probability of a statistic this large or larger when P(y | x) = h(p) for some h.
    n_null : int
        Draws that the p-value rests on.
    """

    statistic: float
    p_value: float
    n_null: int


class HiddenHeterogeneity(ThreadSafe, TablesAsColumns, BaseEstimator):
    r"""How much a classifier's probabilities hide, near each probability vector.

    Hidden heterogeneity (HH) near p is the improvement in Brier score that a local model g, which
    sees the features, makes over the classifier f among the calibration items U whose probabilities
    lie within a Hellinger ball around p:

    .. math:: HH(p) = \mathrm{Brier}_U(f) - \mathrm{Brier}_U(g) .

    It has two parts: what a global map :math:`p_g = h(p)` repairs, :math:`\mathrm{Brier}_U(f) -
    \mathrm{Brier}_U(p_g)`, and what only a local one can, :math:`\mathrm{Brier}_U(p_g) -
    \mathrm{Brier}_U(g)`. Large ``hh_local`` calls for similarity-based calibration.

    Parameters
    ----------
    estimate : {"oob", "paper"}, default="oob"
        ``"oob"``: g is scored out of bag, p_g is cross-fitted, and what pure noise would
        give is taken off, so that the value is 0 on average when nothing is hidden. ``"paper"``:
        Algorithm 1 of [1]_ as published in code; g is scored on the items it was grown on, so that
        noise gives positive values.
    radius : float or "auto", default=0.1
        Hellinger radius of the neighbourhoods; small radii leave few neighbours, large ones mix
        different p. ``"auto"``: the first of 0.1, 0.15, 0.2, 0.3, 0.5, 1 at which nine of ten
        calibration items have at least 50 neighbours (or half of all items).
    n_estimators : int, optional
        Trees per neighbourhood; None: 50 for ``"oob"``, 100 for ``"paper"``.
    local_model : classifier, optional
        Any scikit-learn classifier, cross-fitted within each neighbourhood instead of the forests
        (five folds). Slow: five fits per neighbourhood and null draw. Only for ``"oob"``.
    neighbourhoods : {None, "net", "overlap", "item"}, default=None
        How neighbourhoods are shared. ``"net"``: balls around a net of calibration probabilities, a
        tenth of the radius apart; a prediction is served by its nearest centre. ``"overlap"``: of
        these, balls with nine of ten items in common are merged (fewer cells, for many classes).
        ``"item"``: every prediction has its own ball. None: ``"net"``; for ``"paper"`` the
        published code's cache on three decimals, which depends on the order of the items.
    n_null : int, default=39
        Draws of labels from the global map: they give the null's mean and the p-values. From 199 on
        p-values are ranks; below, Student's distribution is used. 0: no correction, no p-values.
    min_neighbors : int, default=20
        Below, a neighbourhood has the status "too few neighbours" and no value.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.
    random_state : int, RandomState or None, default=0
        Seed of forests, folds and draws.
    n_jobs : int, optional
        Threads over neighbourhoods; -1 for all cores. Where :func:`joblib.parallel_config` names a
        backend of other processes (loky, dask, ray), its workers instead. The result does not
        depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    radius_ : float
    hh_mean_, hh_global_mean_, hh_local_mean_ : float
        Means over the calibration items, each with the value of its cell. NaN for ``"paper"``.
    standard_error_ : float
        Of ``hh_mean_``.
    statistic_, p_value_ : float
        The test of the whole set, see :meth:`test`.
    cells_ : DataFrame
        The columns of :meth:`frame`, one row per cell of the net.
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
        estimate: str = "oob",
        radius: float | str = 0.1,
        n_estimators: int | None = None,
        local_model: Any = None,
        neighbourhoods: str | None = None,
        n_null: int = 39,
        min_neighbors: int = 20,
        classes: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ):
        self.estimate = estimate
        self.radius = radius
        self.n_estimators = n_estimators
        self.local_model = local_model
        self.neighbourhoods = neighbourhoods
        self.n_null = n_null
        self.min_neighbors = min_neighbors
        self.classes = classes
        self.random_state = random_state
        self.n_jobs = n_jobs

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
            Features. Categorical columns are encoded, missing numbers filled with the median.
        y : array-like of shape (n,)
            Observed labels.
        y_proba, logits : array-like of shape (n, K)
            The classifier's output on these items: exactly one of the two. It must not have been
            trained on them.
        sample_weight : array-like of shape (n,), optional
            Weights of the items in the global map, in all averages and in the tests. Forests count
            items. Items of weight 0 are left out.
        groups : array-like of shape (n,) or (n, n_columns), optional
            Items that belong together (one patient, one document). Nothing is then predicted from
            the item's own group: local models are cross-fitted by group, and tests and errors count
            groups.

        Returns
        -------
        self
        """
        return self.fit_set(
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

    def fit_set(self, calibration: CalibrationSet) -> Self:
        """Measure on items that were checked already."""
        check_parameters(self)
        calibration = calibration.with_positive_weight()
        self.classes_ = calibration.classes
        self._table = calibration.X
        self._items = items = items_of(calibration)
        self.encoder_ = calibration.encoder("impute")
        # Huge values keep their sign, which is all that a split needs.
        features = np.clip(calibration.features("impute"), -_LARGEST, _LARGEST)
        self._X = features.astype(np.float32)
        self.n_features_in_ = self.encoder_.n_features_in_
        self.radius_ = auto_radius(items.P) if self.radius == "auto" else float(self.radius)
        self._seed = seed_of(self.random_state)
        self._n_trees = self.n_estimators or _TREES[self.estimate]
        shared = self.neighbourhoods in ("net", "overlap") or (
            self.estimate == "oob" and self.neighbourhoods is None
        )
        self._balls = (
            net_of_cells(items.P, self.radius_, self.neighbourhoods or "net") if shared else None
        )
        if self.estimate == "paper":
            self._fit_paper()
        else:
            self._fit_out_of_bag()
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

            - ``hh``: hidden heterogeneity, ``hh_raw - null_mean`` (``"paper"``: the published
              value);
            - ``hh_raw``: the improvement in Brier score as measured;
            - ``null_mean``: what the same measurement gives on average when nothing is hidden;
            - ``hh_global``, ``hh_local``: the parts that a global map, and only a local one, can
              repair; their sum is ``hh``;
            - ``standard_error``: of ``hh``;
            - ``p_value``: of the test that nothing is hidden in this neighbourhood (P(y | x) =
              h(p));
            - ``q_value``: the same, adjusted for the number of cells (Benjamini-Hochberg): cells
              with ``q_value`` below 0.05 contain at most 5 % false alarms on average;
            - ``n_neighbors``: calibration items in the neighbourhood;
            - ``status``: "ok", "too few neighbours", "one class", "no neighbours" ("paper" also "no
              out-of-bag score").
        """
        check_is_fitted(self, "radius_")
        P = check_predictions(y_proba, logits, self.classes_)
        if self.estimate == "paper" and self.neighbourhoods is None:
            balls, bucket = balls_of_buckets(self._items.P, P, self.radius_)
            return self._published(balls).take(bucket).reset_index(drop=True)
        if self._balls is None:
            return self._own_balls(P)
        cell = nearest_cell(self._balls, P, self._reach())
        table = self.cells_.take(np.maximum(cell, 0)).reset_index(drop=True)
        lonely = np.flatnonzero(cell < 0)
        if len(lonely):
            own = self._own_balls(P[lonely]).set_index(lonely)
            table = pd.concat([table[cell >= 0], own]).sort_index()
        return table

    def test(self) -> HeterogeneityTest:
        """Return the test of the whole set: that a global map can repair everything."""
        check_is_fitted(self, "radius_")
        if self.estimate == "paper":
            raise ValueError(
                "HiddenHeterogeneity(estimate='paper') has no test: the published value is "
                "positive for pure noise too. Use estimate='oob'."
            )
        return HeterogeneityTest(self.statistic_, self.p_value_, int(self.n_null))

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
            given = check_items(X, y, y_proba, None, classes=self.classes_, groups=groups)
            table, items = given.X, items_of(given)
        else:
            table, items = same_items(self._table, self._items, X, y_proba)
        if by is not None:
            return report_groups(
                table,
                items.codes,
                items.P,
                self.classes_,
                by,
                sample_weight=items.weight,
                groups=items.groups,
                random_state=self._seed,
            )
        return find_subgroups(
            table,
            self.classes_[items.codes],
            y_proba=items.P,
            classes=self.classes_,
            sample_weight=items.weight,
            groups=items.groups,
            max_conditions=max_conditions,
            max_subgroups=max_subgroups,
            min_count=min_count,
            level=level,
            random_state=self._seed,
        )

    # -- fitting ---------------------------------------------------------------------------------

    def _fit_paper(self) -> None:
        self.hh_mean_ = self.hh_global_mean_ = self.hh_local_mean_ = np.nan
        self.standard_error_ = self.statistic_ = self.p_value_ = np.nan
        if self._balls is not None:
            self.cells_ = self._published(self._balls)

    def _fit_out_of_bag(self) -> None:
        items, seed = self._items, self._seed
        log_proba = log_probabilities(items.P, zero_floor(items.P))
        folds = Folds.make(len(items.codes), 5, seed=[seed, 0], groups=items.groups)
        self._map = CrossFittedMap(log_proba, items.codes, items.weight, folds)
        apart = None if items.groups is None else folds.number
        self._models = LocalModels(
            self._X,
            items.P,
            self._n_trees,
            self.local_model,
            folds.number if self.local_model is not None else apart,
            seed,
            self.n_jobs,
        )
        self._draws = out_of_bag.NullDraws(
            items,
            np.hstack([self._X, log_proba]).astype(np.float32),
            self._map,
            n_null=int(self.n_null),
            fold=apart,
            seed=seed,
            n_jobs=self.n_jobs,
        )
        self._null_means = out_of_bag.NullMeans.simulate(
            items,
            null_cells(items.P, self.radius_),
            self._models,
            self._draws,
            self.min_neighbors,
        )
        self.statistic_, self.p_value_ = out_of_bag.whole_set_test(items, self._draws)
        self._fit_cells()

    def _fit_cells(self) -> None:
        """Measure the net, and take means over the items, each with the value of its cell."""
        items = self._items
        balls = self._balls
        if balls is None:
            balls = Balls.around(np.unique(items.P, axis=0), items.P, self.radius_)
        self.cells_, gain = self._measure(balls)
        self.cells_["q_value"] = benjamini_hochberg(self.cells_["p_value"].to_numpy())
        # Every item has a cell (merged ones may lie far away); where it has no value, the item does
        # not count.
        cell = nearest_cell(balls, items.P, _EVERYWHERE)
        mass = np.bincount(cell, weights=items.weight, minlength=len(balls))
        mass[self.cells_["hh"].isna()] = 0.0
        self.covered_ = float(mass.sum() / items.weight.sum())
        share = mass / mass.sum() if mass.any() else np.full(len(balls), np.nan)
        values = self.cells_[["hh", "hh_global", "hh_local"]].fillna(0.0)
        self.hh_mean_, self.hh_global_mean_, self.hh_local_mean_ = (
            float(share @ values[name]) for name in values
        )
        self.standard_error_ = out_of_bag.error_of_mean(gain, balls, items, share)

    # -- scoring ---------------------------------------------------------------------------------

    def _reach(self) -> float:
        """How far a prediction may lie from the centre that serves it."""
        # Merged balls lost their centre to one that may lie further away.
        return self.radius_ / (2 if self.neighbourhoods == "overlap" else NET_STEPS)

    def _measure(self, balls: Balls) -> tuple[pd.DataFrame, NDArray[np.float64]]:
        return out_of_bag.measure(
            self._items,
            balls,
            self._models,
            self._map.proba,
            self._draws,
            self._null_means,
            self.radius_,
            self.min_neighbors,
        )

    def _published(self, balls: Balls) -> pd.DataFrame:
        return published_values(
            self._X,
            self._items.codes,
            self._items.P,
            balls,
            n_estimators=self._n_trees,
            random_state=self._seed,
            n_jobs=self.n_jobs,
            progress=neighbourhoods_done,
        )

    def _own_balls(self, P: Matrix) -> pd.DataFrame:
        """Give every distinct prediction a ball of its own."""
        distinct, place = np.unique(P, axis=0, return_inverse=True)
        balls = Balls.around(distinct, self._items.P, self.radius_)
        if self.estimate == "paper":
            table = self._published(balls)
        else:
            table, _ = self._measure(balls)
            table["q_value"] = adjusted_among(
                table["p_value"].to_numpy(), self.cells_["p_value"].to_numpy()
            )
        return table.take(place.ravel()).reset_index(drop=True)
