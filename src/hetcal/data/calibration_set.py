"""The calibration items: checked once by whoever a user calls, then handed on."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hetcal._typing import Matrix, Rows
from hetcal._validation import (
    PASS_LOGITS,
    FeatureEncoder,
    check_columns_match_classes,
    check_groups,
    check_labels,
    check_logits,
    check_one_kind,
    check_proba,
    check_proba_names,
    check_same_order,
    check_same_rows,
    check_sample_weight,
    check_two_classes,
    relative_weights,
    warn_column_order,
    warn_uneven_weights,
    weights_as_counts,
)
from hetcal._validation.containers import take_rows, without_tensor
from hetcal._validation.vectors import spread_vectors
from hetcal.data.scores import Scores
from hetcal.kernels.binned_features import BinnedFeatures, bin_features
from hetcal.kernels.simplex import zero_floor


class _Features:
    """Features as they were given, and their encodings, each made once when it is asked for."""

    def __init__(self, X: Any):
        self.given = spread_vectors(without_tensor(X, "X"))
        self._encodings: dict[tuple[str, bool], tuple[FeatureEncoder, Any]] = {}

    def encoding(self, missing: str, allow_sparse: bool) -> tuple[FeatureEncoder, Any]:
        kind = (missing, allow_sparse)
        if kind not in self._encodings:
            if allow_sparse and not sparse.issparse(self.given):
                encoder, matrix = self.encoding(missing, False)
                encoder = copy(encoder)  # new items may still come as a sparse matrix
                encoder.allow_sparse = True
            else:
                encoder = FeatureEncoder(missing=missing, allow_sparse=allow_sparse)
                matrix = encoder.fit_transform(self.given)
            self._encodings[kind] = (encoder, matrix)
        return self._encodings[kind]

    @cached_property
    def binned(self) -> BinnedFeatures:
        return bin_features(self.encoding("keep", False)[1])


@dataclass(frozen=True, eq=False)
class CalibrationSet:
    """Features, labels, and the classifier's output on the same items; never changed.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Labels as columns of the output.
    classes : ndarray of shape (K,)
        The labels of the columns.
    kind : {"y_proba", "logits"}
        What the classifier's output is.
    output : ndarray of shape (n, K)
        Probabilities or logits, as given.
    scores : Scores
        The same as probabilities and their logarithms.
    zero_floor : float or None
        What a probability of zero counts as in the logarithm; None for logits.
    output_names : object
        Names of the columns of the output, where it had names.
    weight : ndarray of shape (n,) or None
        Weights as given; None where none were.
    counts : ndarray of shape (n,)
        How many items each row counts for, see :func:`hetcal._validation.weights_as_counts`.
    groups : ndarray of shape (n,) or None
        Group numbers 0..G-1; items of one group belong together.
    rows : ndarray of shape (n,)
        Places of the items in the table that was given.
    """

    codes: Rows
    classes: NDArray
    kind: str
    output: Matrix
    scores: Scores
    zero_floor: float | None
    output_names: Any
    weight: Matrix | None
    counts: Matrix
    groups: Rows | None
    rows: Rows
    _features: _Features = field(repr=False)

    @classmethod
    def check(
        cls,
        X: Any,
        y: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        caller: str,
        order_is_known: bool = False,
    ) -> Self:
        """Return checked items, or say what is wrong with them and what to do.

        Parameters
        ----------
        X : table, array, sparse matrix or None
            Kept as given; :meth:`features` encodes it on demand.
        y : array-like of shape (n,)
            Labels.
        y_proba, logits : array-like of shape (n, K)
            The classifier's output: exactly one of the two.
        classes : array-like of shape (K,), optional
            The column order; the sorted labels when None.
        sample_weight, groups : array-like of shape (n,), optional
        caller : str
            Who was called, for the error texts.
        order_is_known : bool, default=False
            Whether to take the order of the columns as given, also where it looks wrong.
        """
        kind = check_one_kind(y_proba, logits, caller=caller)
        if y is None:
            raise ValueError(
                f"{caller} requires y to be passed, but the target y is None. "
                "Pass the observed labels of the calibration items."
            )
        given = y_proba if kind == "y_proba" else logits
        rows = {"X": X, "y": y, kind: given}
        n = check_same_rows(**rows)
        check_same_order(**rows, sample_weight=sample_weight, groups=groups)
        codes, order = check_labels(y, classes)
        if classes is None:
            check_two_classes(codes, order)
        # Copies, as of weights: calibrators keep them, and the caller may change what was passed.
        if kind == "y_proba":
            output = np.array(check_proba(given, if_logits=PASS_LOGITS))
        else:
            output = np.array(check_logits(given))
        check_columns_match_classes(output.shape[1], order, name=kind, given=classes is not None)
        names = check_proba_names(given, order, name=kind)
        weight = None if sample_weight is None else np.array(check_sample_weight(sample_weight, n))
        check_two_classes(codes, order, weight)
        if weight is not None:
            warn_uneven_weights(weight, caller=caller)
        floor = zero_floor(output) if kind == "y_proba" else None
        scores, groups = _scores(output, floor), check_groups(groups, n)
        if not order_is_known:
            warn_column_order(codes, scores.proba, order, name=kind, weight=weight, groups=groups)
        return cls(
            codes=codes,
            classes=order,
            kind=kind,
            output=output,
            scores=scores,
            zero_floor=floor,
            output_names=names,
            weight=weight,
            counts=np.ones(n) if weight is None else weights_as_counts(weight),
            groups=groups,
            rows=np.arange(n),
            _features=_Features(X),
        )

    @classmethod
    def to_score(
        cls,
        y: Any,
        y_proba: Any,
        *,
        X: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        normalized: bool = True,
        name: str = "y_proba",
    ) -> CalibrationSet:
        """Return labels and probabilities of any origin, for metrics; without items of weight 0.

        Unlike :meth:`check` it takes labels that are all of one class, and rows that do not sum to
        one where ``normalized`` is False. Errors call the probabilities by ``name``.
        """
        codes, order = check_labels(y, classes)
        P = check_proba(y_proba, name=name, normalized=normalized)
        rows = {"y": y, name: y_proba, "X": X}
        n = check_same_rows(**rows)
        check_same_order(**rows, sample_weight=sample_weight, groups=groups)
        check_columns_match_classes(P.shape[1], order, name=name, given=classes is not None)
        names = check_proba_names(y_proba, order, name=name)
        weight = check_sample_weight(sample_weight, n)
        floor = zero_floor(P)
        items = cls(
            codes=codes,
            classes=order,
            kind="y_proba",
            output=P,
            scores=_scores(P, floor),
            zero_floor=floor,
            output_names=names,
            weight=weight,
            counts=weights_as_counts(weight),
            groups=check_groups(groups, n),
            rows=np.arange(n),
            _features=_Features(X),
        )
        return items if (weight > 0).all() else items.take(weight > 0)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.codes.shape[0]

    @property
    def n_classes(self) -> int:
        """Number of classes, those without an item included."""
        return self.classes.shape[0]

    @property
    def has_features(self) -> bool:
        """Whether there are features at all."""
        return self._features.given is not None

    @cached_property
    def X(self) -> Any:  # noqa: N802
        """The features in the container they came in."""
        given = self._features.given
        return given if given is None or self._is_whole else take_rows(given, self.rows)

    @property
    def labels(self) -> NDArray:
        """Labels as the user writes them."""
        return self.classes[self.codes]

    @cached_property
    def onehot(self) -> Matrix:
        """Labels as one-hot rows."""
        return np.eye(self.n_classes)[self.codes]

    @property
    def proba(self) -> Matrix:
        """The classifier's probabilities."""
        return self.scores.proba

    @property
    def weights(self) -> Matrix:
        """Weights as given, all one where none were."""
        return np.ones(self.n_items) if self.weight is None else self.weight

    @property
    def unequal_counts(self) -> Matrix | None:
        """The counts, or None where all are equal (which lets forests use the compiled core)."""
        return None if np.all(self.counts == self.counts[0]) else self.counts

    @property
    def units(self) -> Rows:
        """Group numbers 0..G-1; each item is a group of its own where there are none."""
        return np.arange(self.n_items) if self.groups is None else self.groups

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Classes that no item has, shape (K,)."""
        return np.bincount(self.codes, minlength=self.n_classes) == 0

    @property
    def arguments(self) -> dict[str, Any]:
        """Named arguments of ``fit``: the output, and weights and groups where there are any."""
        named: dict[str, Any] = {self.kind: self.output}
        if self.weight is not None:
            named["sample_weight"] = self.weight
        if self.groups is not None:
            named["groups"] = self.groups
        return named

    def encoder(self, missing: str = "keep", *, allow_sparse: bool = False) -> FeatureEncoder:
        """Return the encoder that :meth:`features` used; it was fitted without labels."""
        return self._features.encoding(missing, allow_sparse)[0]

    def features(self, missing: str = "keep", *, allow_sparse: bool = False) -> Any:
        """Return the features as a matrix of numbers.

        Encoded once per way of treating missing values, for all parts of the set together.
        """
        kind = (missing, allow_sparse)
        if kind not in self._own:
            matrix = self._features.encoding(*kind)[1]
            self._own[kind] = matrix if self._is_whole else matrix[self.rows]
        return self._own[kind]

    def binned(self) -> BinnedFeatures:
        """Return the features in bins, missing values kept: once, for all parts of the set."""
        if "binned" not in self._own:
            whole = self._features.binned
            self._own["binned"] = whole if self._is_whole else whole.take(self.rows)
        return self._own["binned"]

    def take(self, rows: Rows | NDArray[np.bool_]) -> CalibrationSet:
        """Return some of the items as a set of their own; groups are numbered anew."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        groups = None
        if self.groups is not None:
            groups = np.unique(self.groups[rows], return_inverse=True)[1].astype(np.int64)
        return replace(
            self,
            codes=self.codes[rows],
            output=self.output[rows],
            scores=self.scores.take(rows),
            weight=None if self.weight is None else self.weight[rows],
            counts=self.counts[rows],
            groups=groups,
            rows=self.rows[rows],
        )

    def with_positive_weight(self) -> CalibrationSet:
        """Return the items that count; those of weight 0 leave no trace, in encodings neither."""
        if self.weight is None or (self.weight > 0).all():
            return self
        return self.take(self.weight > 0).detached()

    def with_relative_weights(self) -> CalibrationSet:
        """Return the items with weights of mean 1, for whom only their ratios have a meaning."""
        if self.weight is None:
            return self
        weight = relative_weights(self.weight)
        return replace(self, weight=weight, counts=weight)

    def detached(self) -> CalibrationSet:
        """Return the items as a set that knows nothing of those it was taken from."""
        return replace(self, _features=_Features(self.X), rows=np.arange(self.n_items))

    def with_output(self, output: Matrix, kind: str) -> CalibrationSet:
        """Return the same items with another model's output."""
        floor = zero_floor(output) if kind == "y_proba" else None
        return replace(
            self, kind=kind, output=output, zero_floor=floor, scores=_scores(output, floor)
        )

    def with_codes(self, codes: Rows) -> CalibrationSet:
        """Return the same items with other labels, as a simulation draws them."""
        return replace(self, codes=codes)

    @cached_property
    def _own(self) -> dict[Any, Any]:
        """Features of these items: encoded, by treatment of missing values; binned."""
        return {}

    @cached_property
    def _is_whole(self) -> bool:
        n = np.shape(self._features.given)[0]
        return self.n_items == n and bool((self.rows == np.arange(n)).all())


def _scores(output: Matrix, floor: float | None) -> Scores:
    return Scores.from_logits(output) if floor is None else Scores.from_proba(output, floor)
