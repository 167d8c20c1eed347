"""Calibration by the vote of similar items: SWC, SWC-HH, SBA-10, SBAW-10 and their relatives."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from hetcal._stored import stored
from hetcal._stored.fields import (
    MOST_FEATURES,
    MOST_ITEMS,
    column_names,
    either,
    flag,
    instance,
    integers,
    matrix,
    numbers,
    optional,
    probabilities,
    text,
    whole,
)
from hetcal._typing import Matrix, Rows
from hetcal._validation import propose_projection, warn_of_scales
from hetcal._validation.containers import as_float_array, as_frame, as_vector
from hetcal.calibration.augment import AugmentedSpace
from hetcal.calibration.base import STORED, GroupAwareCalibrator
from hetcal.calibration.chosen_columns import chosen_list
from hetcal.calibration.extending import ExtendableVotes
from hetcal.calibration.out_of_sample_support import (
    OutOfSampleSupport,
    Reference,
    stored_support,
)
from hetcal.calibration.own_votes import GroupedVotes, OwnVotes
from hetcal.calibration.stored_votes import StoredVotes
from hetcal.calibration.votes_on_items import (
    ItemsToVoteOn,
    vote_interval,
    vote_shares,
    voters_table,
)
from hetcal.data import CalibrationSet, NewItems, Scores
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.kernels.votes import Voters, VoteRule
from hetcal.similarity import BaseSimilarity, ForestProximity, make_similarity

# Beyond this the smallest similarity of a forest, to the power, is no number any more.
_LARGEST_POWER = 100
_CLOSEST = 1e-7  # values that the trees of scikit-learn tell apart


@stored(
    STORED
    | {
        "n_features_in_": whole(1, MOST_FEATURES),
        "similarity": either(text, instance(BaseSimilarity)),
        "heterogeneity": optional(instance(HiddenHeterogeneity)),
        "features": optional(chosen_list),
        "similarity_": instance(BaseSimilarity),
        "heterogeneity_": optional(instance(HiddenHeterogeneity, "_items")),
        "space_": instance(AugmentedSpace, "n_proba"),
        "voters_": instance(Voters),
        "scores_": instance(Scores),
        "groups_": optional(integers(None, low=0, high=MOST_ITEMS)),
        "times_": optional(numbers(None)),
        "feature_names_in_": column_names,
        "features_forgotten_": flag,
        "_out_of_sample": optional(probabilities(None, None)),
        "_out_of_sample_support": optional(stored_support),
        "_Z_grouped": optional(either(matrix, instance(np.ndarray))),
    },
    may_lack=(
        "zero_floor_",
        "feature_names_in_",
        "features_forgotten_",
        "times_",
        "_out_of_sample_support",
    ),
)
class SimilarityCalibrator(StoredVotes, ExtendableVotes, OutOfSampleSupport, GroupAwareCalibrator):
    r"""Calibrate each item by the labels of the calibration items that are similar to it.

    Estimates, for a new item t with features x and probabilities p,

    .. math:: \hat q_t[k] = \frac{\sum_i w_i\, s(t,i)^g\, 1(y_i = k)}{\sum_i w_i\, s(t,i)^g},

    where s is a similarity in the space of features and probabilities together. Items that no
    calibration item resembles keep their p.

    Parameters
    ----------
    similarity : str, BaseSimilarity or callable, default="forest"
        ``"forest"`` (RFprox), ``"extra-trees"``, ``"isolation"``, ``"euclidean"``, ``"cosine"``,
        ``"rbf"``, ``"precomputed"``; an instance from :mod:`hetcal.similarity`; or a function
        ``similarity(A, B)``.
    n_neighbors : int, optional
        Only so many of the most similar items vote; everyone when None.
    weights : {"similarity", "uniform"}, default="similarity"
        Whether the similarity decides how much a vote counts, or only who votes.
    power : float, default=1.0
        The exponent g, at most 100. Larger than 1 sharpens the vote towards the most similar items.
    heterogeneity : estimator, optional
        With one (:class:`hetcal.HiddenHeterogeneity`), only items with a similarity of at least
        half the hidden heterogeneity of t vote (SWC-HH), and the most similar one where none is
        left.
    augment : {"log-proba-scaled", "proba-scaled", "log-proba", "proba", None}
        What stands beside the features in the space of comparison. The logarithm keeps
        saturated probabilities apart, which a plain probability near 1 does not.
    features : transformer or list of columns, optional
        Applied to X before items are compared (a PCA, a network's latent layer); fitted on the
        calibration items without their labels. Wrap a fitted one in
        :class:`sklearn.frozen.FrozenEstimator`. A list (``["age", "income"]``) names the columns
        of X to compare by, or numbers them from 0; a number that is also the name of a column is
        that name.
    classes : array-like, optional
        The classes in the column order of ``y_proba``.
    random_state : int, default=0
        Seed of the similarity when it was given by name.
    n_jobs : int, optional
        Threads of the similarity when it was given by name. The result is the same for any number.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, in the order of every output's columns.
    similarity_ : BaseSimilarity
        The fitted similarity.
    heterogeneity_ : estimator or None
        The fitted estimator of hidden heterogeneity.
    out_of_sample_proba_ : ndarray of shape (n, K)
        An out-of-sample prediction for every calibration item (out of bag for forests,
        leave-one-out for the rest, by group-wise refits where ``groups`` were given).

    References
    ----------
    K. L. Wagstaff and T. G. Dietterich, "Hidden Heterogeneity: When to Choose Similarity-Based
    Calibration", Transactions on Machine Learning Research, 2023.

    Examples
    --------
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(600, heterogeneity=1.0, random_state=0)
    >>> swc = SimilarityCalibrator().fit(data.X, data.y, y_proba=data.y_proba)
    >>> new = data.sample(3, random_state=1)
    >>> Q, support = swc.predict_proba(new.X, y_proba=new.y_proba, return_support=True)
    >>> Q.shape, support.shape
    ((3, 2), (3,))
    """

    def __init__(
        self,
        similarity: Any = "forest",
        *,
        n_neighbors: int | None = None,
        weights: str = "similarity",
        power: float = 1.0,
        heterogeneity: Any = None,
        augment: str | None = "log-proba-scaled",
        features: Any = None,
        classes: Any = None,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ):
        self.similarity = similarity
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.power = power
        self.heterogeneity = heterogeneity
        self.augment = augment
        self.features = features
        self.classes = classes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit_set(self, items: CalibrationSet) -> Self:
        """Fit to items that were checked already."""
        self._check_parameters()
        self._remember(items)
        self.groups_ = items.groups
        self.times_: Matrix | None = None
        kind = self._new_similarity()
        self.space_ = AugmentedSpace(
            self.features,
            self.augment,
            accepts_missing=kind.accepts_missing,
            accepts_sparse=kind.accepts_sparse,
        )
        Z = self.space_.fit_transform(items)
        if isinstance(kind, ForestProximity):
            propose_projection(Z, "SimilarityCalibrator")
            features = Z[:, : Z.shape[1] - self.space_.n_proba]
            warn_of_scales(features, "SimilarityCalibrator", _CLOSEST)
        self._remember_columns(items.X)
        self.voters_ = Voters(items.codes, items.n_classes, items.weight)
        self.similarity_ = self._learn_similarity(Z, self.voters_, items.groups)
        self.heterogeneity_ = self._learn_heterogeneity(Z, items)
        self.scores_ = items.scores
        self._Z_grouped = Z if self.groups_ is not None else None
        self._out_of_sample: Matrix | None = None
        self._out_of_sample_support = None
        return self

    def predict_proba(
        self,
        X: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        heterogeneity: Any = None,
        return_support: bool = False,
    ) -> Any:
        """Return calibrated probabilities, and on request the support behind them.

        Parameters
        ----------
        X : array-like or table of shape (m, d)
            Features of the new items, with the same columns as at fit.
        y_proba, logits : array-like of shape (m, K)
            The classifier's output on the new items, of the same kind as at fit.
        heterogeneity : array-like of shape (m,), optional
            Hidden heterogeneity of the new items, where it is known already.
        return_support : bool, default=False
            Whether to return the sum of similarities as well.

        Returns
        -------
        Q : ndarray of shape (m, K)
        support : ndarray of shape (m,)
            Only with ``return_support=True``.
        """
        items = self._new_items(X, y_proba, logits, heterogeneity)
        ballot = items.vote(self.similarity_.vote, self.voters_)
        Q = vote_shares(ballot, items.scores.proba)
        return (Q, ballot.support) if return_support else Q

    def support(
        self,
        X: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        heterogeneity: Any = None,
        n_trees: Any = None,
        random_state: Any = None,
    ) -> Matrix:
        """Return the calibration support of each item: the sum of similarities of its voters.

        Low values say that the calibration set holds little that resembles the item.

        Parameters
        ----------
        X, y_proba, logits, heterogeneity
            New items as in :meth:`predict_proba`.
        n_trees : array-like of int of shape (m,), optional
            Count the similarities of each item over so many trees, drawn at random: what
            :meth:`out_of_sample_support` says of the calibration items, so that both can be
            compared.
        random_state : int or Generator, optional
            Seed of that draw.
        """
        items = self._new_items(X, y_proba, logits, heterogeneity)
        return self._support(items, n_trees, random_state)

    def predict_items(self, items: NewItems) -> Matrix:
        """Return calibrated probabilities of items that were checked already."""
        ballot = self._to_vote_on(items).vote(self.similarity_.vote, self.voters_)
        return vote_shares(ballot, items.scores.proba)

    def support_items(
        self, items: NewItems, n_trees: Any = None, random_state: Any = None
    ) -> Matrix:
        """Return :meth:`support` of items that were checked already."""
        return self._support(self._to_vote_on(items), n_trees, random_state)

    def effective_sample_size(
        self, X: Any, *, y_proba: Any = None, logits: Any = None, heterogeneity: Any = None
    ) -> Matrix:
        """Return how many equally heavy votes each item's vote is worth (Kish)."""
        items = self._new_items(X, y_proba, logits, heterogeneity)
        return items.vote(self.similarity_.counted_vote, self.voters_).effective_size

    def evidence(
        self,
        X: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        heterogeneity: Any = None,
        top: int = 10,
    ) -> pd.DataFrame:
        """List the calibration items that voted on each new item, the heaviest first.

        Parameters
        ----------
        X, y_proba, logits, heterogeneity
            New items as in :meth:`predict_proba`.
        top : int, default=10
            At most so many voters per item.

        Returns
        -------
        pandas.DataFrame
            Columns: ``item`` (row of X), ``rank``, ``calibration_item`` (row of the calibration
            set; those that joined later follow, and forgotten ones are not counted),
            ``similarity``, ``weight`` (share of the whole vote), ``label``. With all voters
            listed, the weights by label are the probabilities.
        """
        if not (isinstance(top, int | np.integer) and top > 0):
            raise ValueError(f"top must be a positive number of voters per item; got {top!r}.")
        items = self._new_items(X, y_proba, logits, heterogeneity)
        votes = self.similarity_.heaviest(items.points, self.voters_, items.rule, top)
        return voters_table(votes, self.voters_.codes, self.classes_)

    def predict_smoothed_interval(
        self,
        X: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        heterogeneity: Any = None,
        confidence: float = 0.95,
    ) -> tuple[Matrix, Matrix]:
        r"""Return an interval for the similarity-smoothed probability of each class.

        The target is :math:`\sum_i s(t,i) P(y = k | x_i) / \sum_i s(t,i)`: what the vote would
        give if every voter's true probability were known. It differs from P(y = k | x) of the item
        itself by whatever the similarity smooths away; the user guide shows the measured coverage
        of both. For forests, each voter is weighted by the trees that have not seen it, because
        weights that depend on the voter's own label favour that label. The prediction counts all
        trees unless ``ForestProximity(voters="out-of-bag")`` was asked for, and so may lie outside.

        Parameters
        ----------
        X, y_proba, logits, heterogeneity
            New items as in :meth:`predict_proba`.
        confidence : float, default=0.95
            Nominal coverage.

        Returns
        -------
        low, high : ndarray of shape (m, K)
            [0, 1] for items without support.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1; got {confidence!r}.")
        items = self._new_items(X, y_proba, logits, heterogeneity)
        return vote_interval(items.vote(self.similarity_.unbiased_vote, self.voters_), confidence)

    @property
    def out_of_sample_proba_(self) -> Matrix:
        """Out-of-sample calibrated probabilities of the calibration items themselves."""
        check_is_fitted(self, "similarity_")
        if self._out_of_sample is None:
            self._out_of_sample = vote_shares(self._own_votes().ballot(), self.scores_.proba)
        return self._out_of_sample

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = make_similarity(self.similarity).accepts_sparse
        return tags

    def _check_parameters(self) -> None:
        if self.weights not in ("similarity", "uniform"):
            raise ValueError(f"weights must be 'similarity' or 'uniform'; got {self.weights!r}.")
        k = self.n_neighbors
        if k is not None and not (isinstance(k, int | np.integer) and k > 0):
            raise ValueError(f"n_neighbors must be None or a positive integer; got {k!r}.")
        if not (isinstance(self.power, Real) and 0 < self.power <= _LARGEST_POWER):
            raise ValueError(
                f"power must be a number above 0 and at most {_LARGEST_POWER}; got {self.power!r}."
            )

    def _remember_columns(self, X: Any) -> None:
        """Set the number of columns and, for a table, their names."""
        self.n_features_in_ = int(np.shape(X)[1])
        frame = as_frame(X)
        if frame is not None and all(isinstance(name, str) for name in frame.columns):
            self.feature_names_in_ = np.array(frame.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit

    def _new_items(
        self, X: Any, y_proba: Any, logits: Any, heterogeneity: Any = None
    ) -> ItemsToVoteOn:
        items = self.new_items(X, y_proba=y_proba, logits=logits)
        return self._to_vote_on(items, heterogeneity)

    def _encode(self, X: Any) -> Any:
        return self.space_.encode(X)

    def _to_vote_on(self, items: NewItems, heterogeneity: Any = None) -> ItemsToVoteOn:
        rule = self._rule(self._threshold(items.scores, heterogeneity))
        return ItemsToVoteOn(self.space_, items.features, items.scores, rule)

    def _support(self, items: ItemsToVoteOn, n_trees: Any, random_state: Any) -> Matrix:
        if n_trees is None:
            return items.vote(self.similarity_.vote, self.voters_).support
        rng, hold = np.random.default_rng(random_state), self._vote_by_some_trees()
        return items.vote_by_some_trees(hold, self.voters_, n_trees, rng).support

    def _threshold(self, scores: Scores, given: Any) -> Matrix | None:
        if given is not None:
            return _check_heterogeneity(given, scores.proba.shape[0]) / 2
        if self.heterogeneity_ is None:
            return None
        # Where too little is near to say how heterogeneous it is (NaN), everyone votes.
        return np.fmax(self.heterogeneity_.score_samples(scores.proba), 0.0) / 2

    def _rule(self, threshold: Matrix | None) -> VoteRule:
        return VoteRule(self.n_neighbors, self.weights == "uniform", self.power, threshold)

    def _vote_by_some_trees(self) -> Any:
        vote = getattr(self.similarity_, "vote_by_some_trees", None)
        if vote is None:
            raise ValueError(
                f"n_trees: {type(self.similarity_).__name__} counts no trees. Leave it out."
            )
        return vote

    def _calibration_codes(self) -> NDArray[np.int64]:
        return self.voters_.codes

    def _compute_out_of_sample_support(self) -> Reference:
        return self._own_votes().support()

    def _own_votes(self) -> OwnVotes | GroupedVotes:
        rule = self._rule(self._threshold(self.scores_, None))
        if self.groups_ is None:
            return OwnVotes(self.similarity_, self.voters_, rule)
        return GroupedVotes(
            self._learn_similarity, self.voters_, rule, self._Z_grouped, self.groups_
        )

    def _new_similarity(self) -> BaseSimilarity:
        return make_similarity(self.similarity, random_state=self.random_state, n_jobs=self.n_jobs)

    def _learn_similarity(self, Z: Any, voters: Voters, groups: Rows | None) -> BaseSimilarity:
        similarity = self._new_similarity()
        options: dict[str, Any] = {"groups": groups} if similarity.uses_groups else {}
        return similarity.fit(
            Z, voters.codes, n_proba=self.space_.n_proba, sample_weight=voters.weight, **options
        )

    def _learn_heterogeneity(self, Z: Any, items: CalibrationSet) -> Any:
        if self.heterogeneity is None:
            return None
        weight = items.weight
        relative = None if weight is None else weight / weight[weight > 0].mean()
        options = {"sample_weight": relative, "groups": items.groups}
        # The same classes, in the same order, also where one of them was not observed.
        return (
            clone(self.heterogeneity)
            .set_params(classes=self.classes_)
            .fit(
                Z[:, : Z.shape[1] - self.space_.n_proba],
                items.labels,
                y_proba=items.proba,
                **{name: value for name, value in options.items() if value is not None},
            )
        )


def _check_heterogeneity(values: Any, n_rows: int) -> Matrix:
    """Return given hidden heterogeneity, one value per row; estimates below zero count as zero."""
    checked = as_float_array(as_vector(values, "heterogeneity"), "heterogeneity")
    if checked.shape[0] != n_rows or not np.isfinite(checked).all():
        raise ValueError(
            f"heterogeneity must hold one finite value per row of X ({n_rows}); got "
            f"{checked.shape[0]} values, {int(np.isfinite(checked).sum())} of them finite."
        )
    return np.maximum(checked, 0.0)
