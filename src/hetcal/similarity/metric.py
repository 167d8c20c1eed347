"""Similarities from a metric or a kernel on the augmented space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy import sparse

from hetcal._compat import neighbour_search
from hetcal._stored import expect, stored
from hetcal._stored.fields import (
    Field,
    flag,
    instance_of,
    matrix,
    number,
    numbers,
    one_of,
    optional,
)
from hetcal._typing import Rows
from hetcal.kernels.votes import (
    Ballot,
    Voters,
    VoteRule,
    Votes,
    heaviest_neighbours,
    vote_with_neighbours,
)
from hetcal.similarity.base import BaseSimilarity, Matrix, Neighbours, without_self

# A duplicate is treated as if it lay at this fraction of the median distance.
_DUPLICATE_FRACTION = 1e-6
_MEDIAN_SAMPLE = 1000
# Sums of anything larger may overflow.
_LARGEST = 1e100


# Squares of these, and one over them, are still numbers.
_WIDTH = number(1e-150, 1e150)
_STORED: dict[str, Field] = {
    "scale": flag,
    "Z_": matrix,
    "scaler_": optional(instance_of("sklearn.preprocessing", "StandardScaler")),
}


class KeepsItems(BaseSimilarity):
    """A similarity that keeps a matrix with one row per calibration item."""

    Z_: Any

    @property
    def n_items_(self) -> int:
        """Number of calibration items."""
        return self.Z_.shape[0]

    @property
    def n_columns_(self) -> int:
        """Number of columns that are compared."""
        return self.Z_.shape[1]


class MetricSimilarity(KeepsItems):
    """Common ground of similarities that keep the calibration items and compare with them.

    Parameters
    ----------
    scale : bool, default=True
        Whether columns are standardised on the calibration items first. Without it, a column in
        large units decides alone.
    """

    accepts_sparse = True

    def __init__(self, *, scale: bool = True):
        self.scale = scale

    def fit(
        self,
        Z: Any,
        codes: NDArray[np.int64] | None = None,
        *,
        n_proba: int = 0,
        sample_weight: Matrix | None = None,
    ) -> Self:
        """Keep the calibration items."""
        self.scaler_ = None
        if self.scale:
            # A sparse matrix would lose its zeros if it were centred.
            self.scaler_ = sklearn.preprocessing.StandardScaler(with_mean=not sparse.issparse(Z))
            # The weighted variance of a constant may come out below zero; it counts as constant.
            with np.errstate(invalid="ignore"):
                self.scaler_.fit(Z, sample_weight=sample_weight)
        self._remember(self._scaled(Z))
        self._learn()
        return self

    def pairwise(self, Z: Any) -> Matrix:
        """Return the similarities of the rows of ``Z`` to all calibration items."""
        return self._compare(self._scaled(Z))

    def extend(self, Z: Any) -> None:
        """Add calibration items; what was learned at fit (scale, bandwidth) stays."""
        stack = sparse.vstack if sparse.issparse(self.Z_) else np.vstack
        self._remember(stack([self.Z_, self._scaled(Z)]))

    def retain(self, rows: Rows) -> None:
        """Keep only these calibration items; what was learned at fit (scale, bandwidth) stays."""
        self._remember(self.Z_[rows])

    def out_of_sample_pairwise(self, rows: slice) -> Matrix:
        """Return the similarities among the calibration items, -inf to themselves."""
        return without_self(self._compare(self.Z_[rows]), rows)

    def _scaled(self, Z: Any) -> Any:
        if self.scaler_ is not None and self.scaler_.with_mean and sparse.issparse(Z):
            Z = Z.toarray()  # as the calibration items came
        scaled = Z if self.scaler_ is None else self.scaler_.transform(Z)
        if not abs(scaled).max() < _LARGEST:
            raise ValueError(
                f"{type(self).__name__}: X holds values too large to be compared (above "
                f"{_LARGEST:g}). Rescale its columns."
            )
        return scaled

    def _remember(self, Z: Any) -> None:
        """Keep the scaled calibration items."""
        self.Z_ = Z

    def _check_restored(self) -> None:
        scaler = self.scaler_
        same = scaler is None or scaler.n_features_in_ == self.n_columns_
        expect(same, self, "has a scale of other columns")
        centred = scaler is not None and scaler.with_mean
        expect(not (centred and sparse.issparse(self.Z_)), self, "has a wrong scale")

    def _learn(self) -> None:
        """Learn whatever the comparison needs from the calibration items."""

    def _compare(self, Z: Any) -> Matrix:
        raise NotImplementedError


@stored(
    _STORED | {"duplicates": one_of("floor", "paper"), "floor_": _WIDTH},
    derived={"index_": None},
)
class EuclideanSimilarity(MetricSimilarity):
    """One over the Euclidean distance: the similarity of SBA-10 and SBAW-10.

    Parameters
    ----------
    duplicates : {"floor", "paper"}, default="floor"
        What a distance of zero means. ``"floor"``: a millionth of the median distance, so a
        duplicate outweighs everything but neighbours stay in their order. ``"paper"``: similarity 1
        to the duplicates and 0 to all others, as in the published code.
    scale : bool, default=True
        Whether columns are standardised first (the paper does not).

    Examples
    --------
    >>> import numpy as np
    >>> similarity = EuclideanSimilarity(scale=False).fit(np.array([[0.0], [4.0]]))
    >>> similarity.pairwise(np.array([[2.0], [5.0]]))
    array([[0.5, 0.5],
           [0.2, 1. ]])
    """

    def __init__(self, *, duplicates: str = "floor", scale: bool = True):
        super().__init__(scale=scale)
        self.duplicates = duplicates

    def _learn(self) -> None:
        if self.duplicates not in ("floor", "paper"):
            raise ValueError(
                f"EuclideanSimilarity: duplicates must be 'floor' or 'paper'; got "
                f"{self.duplicates!r}."
            )
        self.floor_ = _DUPLICATE_FRACTION * (_median_distance(self.Z_) or 1.0)

    def _remember(self, Z: Any) -> None:
        super()._remember(Z)
        self.index_ = sklearn.neighbors.NearestNeighbors(algorithm="brute").fit(Z)

    def _restore(self) -> None:
        self._remember(self.Z_)

    @staticmethod
    def _bytes_needed(state: dict[str, Any]) -> int:
        Z = state.get("Z_", ())
        return Z.data.nbytes if sparse.issparse(Z) else np.asarray(Z).nbytes

    def _compare(self, Z: Any) -> Matrix:
        if self.duplicates == "paper":
            return _published_similarities(_distances(Z, self.Z_))
        return 1.0 / np.maximum(_exact_distances(Z, self.Z_, self.floor_), self.floor_)

    def out_of_sample_pairwise(self, rows: slice) -> Matrix:
        """Return the similarities among the calibration items, -inf to themselves."""
        if self.duplicates == "floor":
            return super().out_of_sample_pairwise(rows)
        # An item is no duplicate of itself.
        distance = without_self(-_distances(self.Z_[rows], self.Z_), rows)
        return without_self(_published_similarities(-distance), rows)

    def neighbours(self, Z: Any, n_neighbors: int) -> Neighbours:
        """Return the nearest calibration items of each row."""
        if self.duplicates == "paper":
            return super().neighbours(Z, n_neighbors)
        k = min(n_neighbors, self.n_items_)
        with neighbour_search():
            distance, index = self.index_.kneighbors(self._scaled(Z), n_neighbors=k)
        return Neighbours(index, 1.0 / np.maximum(distance, self.floor_))

    def vote(self, Z: Any, voters: Voters, rule: VoteRule) -> Ballot:
        """Vote; the nearest few are found without comparing with everyone."""
        if self._by_index(voters, rule):
            near = self.neighbours(Z, rule.n_neighbors)  # type: ignore[arg-type]
            return vote_with_neighbours(near.index, near.similarity, voters, rule)
        return super().vote(Z, voters, rule)

    def heaviest(self, Z: Any, voters: Voters, rule: VoteRule, top: int) -> Votes:
        """List the heaviest votes; the nearest few are found without comparing with everyone."""
        if self._by_index(voters, rule):
            near = self.neighbours(Z, rule.n_neighbors)  # type: ignore[arg-type]
            return heaviest_neighbours(near.index, near.similarity, voters, rule, top)
        return super().heaviest(Z, voters, rule, top)

    def out_of_sample_vote(self, voters: Voters, rule: VoteRule) -> Ballot:
        """Leave-one-out vote."""
        if not self._by_index(voters, rule):
            return super().out_of_sample_vote(voters, rule)
        k = min(rule.n_neighbors, self.n_items_ - 1)  # type: ignore[type-var]
        with neighbour_search():
            distance, index = self.index_.kneighbors(n_neighbors=k)  # leaves each item itself out
        return vote_with_neighbours(index, 1.0 / np.maximum(distance, self.floor_), voters, rule)

    def _by_index(self, voters: Voters, rule: VoteRule) -> bool:
        all_count = voters.weight is None or bool(voters.weight.all())
        return rule.n_neighbors is not None and self.duplicates == "floor" and all_count


@stored(_STORED | {"centre_": optional(numbers(None))}, may_lack=("centre_",))
class CosineSimilarity(MetricSimilarity):
    """The cosine of the angle between two items, moved from [-1, 1] to [0, 1].

    With ``scale``, angles are measured at the mean of the calibration items.
    """

    centre_: Matrix | None = None  # files of before have none: sparse items were not centred

    def _learn(self) -> None:
        self.centre_ = None
        if self.scaler_ is not None and sparse.issparse(self.Z_):
            self.centre_ = self.scaler_.mean_ / self.scaler_.scale_

    def _compare(self, Z: Any) -> Matrix:
        if self.centre_ is None:
            cosine = sklearn.metrics.pairwise.cosine_similarity(Z, self.Z_)
        else:
            cosine = _cosine_around(self.centre_, Z, self.Z_)
        return np.clip((cosine + 1) / 2, 0.0, 1.0)

    def _check_restored(self) -> None:
        super()._check_restored()
        same = self.centre_ is None or len(self.centre_) == self.n_columns_
        expect(same, self, "has a centre of other columns")


@stored(_STORED | {"bandwidth_": _WIDTH})
class RBFSimilarity(MetricSimilarity):
    r"""Gaussian kernel :math:`\exp(-d^2 / 2h^2)`.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
        The width h; ``"median"`` takes the median distance between calibration items. A small one
        leaves items without support, a large one gives everyone the class frequencies.
    scale : bool, default=True
        Whether columns are standardised first.
    """

    def __init__(self, *, bandwidth: float | str = "median", scale: bool = True):
        super().__init__(scale=scale)
        self.bandwidth = bandwidth

    def _learn(self) -> None:
        if self.bandwidth == "median":
            self.bandwidth_ = _median_distance(self.Z_) or 1.0
        elif isinstance(self.bandwidth, str) or not self.bandwidth > 0:
            raise ValueError(
                f"RBFSimilarity: bandwidth must be 'median' or a positive number; got "
                f"{self.bandwidth!r}."
            )
        else:
            self.bandwidth_ = float(self.bandwidth)

    def _compare(self, Z: Any) -> Matrix:
        return np.exp(-_distances(Z, self.Z_, squared=True) / (2 * self.bandwidth_**2))


class CallableSimilarity(MetricSimilarity):
    """Your own function ``similarity(A, B)`` that returns non-negative values of shape (m, n).

    Examples
    --------
    >>> import numpy as np
    >>> overlap = CallableSimilarity(lambda A, B: np.minimum(A[:, None], B[None]).sum(axis=2))
    >>> overlap.fit(np.array([[0.2, 0.8]])).pairwise(np.array([[0.5, 0.5]]))
    array([[0.7]])
    """

    def __init__(self, function: Callable[[Any, Any], Any], *, scale: bool = False):
        super().__init__(scale=scale)
        self.function = function

    def _compare(self, Z: Any) -> Matrix:
        S = np.array(self.function(Z, self.Z_), dtype=np.float64)
        expected = (Z.shape[0], self.n_items_)
        if S.shape != expected:
            raise ValueError(
                f"The similarity function returned shape {S.shape}; expected {expected}: one row "
                "per new item and one column per calibration item."
            )
        _refuse_bad_similarities(S, "The similarity function returned")
        return S


@stored({"Z_": numbers(None, None, low=0.0)})
class PrecomputedSimilarity(KeepsItems):
    """Similarities that were computed elsewhere: ``X`` is the matrix itself.

    At fit ``X`` holds the similarities among the calibration items (n, n), at prediction those
    between the new and the calibration items (m, n).
    """

    # A missing similarity is refused with a word of its own, not filled in.
    accepts_missing = True

    def fit(
        self,
        Z: Any,
        codes: NDArray[np.int64] | None = None,
        *,
        n_proba: int = 0,
        sample_weight: Matrix | None = None,
    ) -> Self:
        """Keep the similarities among the calibration items."""
        if n_proba:
            raise ValueError(
                "A precomputed similarity cannot be augmented with probabilities. "
                "Pass augment=None."
            )
        if Z.shape[0] != Z.shape[1]:
            raise ValueError(
                f"X must hold the similarities among the calibration items, so it must be square; "
                f"got shape {Z.shape}."
            )
        _refuse_bad_similarities(Z, "The precomputed X holds")
        self.Z_ = np.array(Z, dtype=np.float64)
        return self

    def _check_restored(self) -> None:
        expect(self.n_items_ == self.n_columns_, self, "is not square")

    def pairwise(self, Z: Any) -> Matrix:
        """Return the given similarities."""
        if Z.shape[1] != self.n_items_:
            raise ValueError(
                f"X has {Z.shape[1]} columns but there are {self.n_items_} calibration items; "
                "pass one column per calibration item."
            )
        _refuse_bad_similarities(Z, "The precomputed X holds")
        return np.array(Z, dtype=np.float64)

    def out_of_sample_pairwise(self, rows: slice) -> Matrix:
        """Return the similarities among the calibration items, -inf to themselves."""
        return without_self(self.Z_[rows].copy(), rows)

    def extend(self, Z: Any) -> None:
        """Refuse: the similarities of old items to new ones are not known."""
        raise NotImplementedError(
            "A precomputed similarity cannot be extended. Fit anew with the larger matrix."
        )


def _refuse_bad_similarities(S: Matrix, who: str) -> None:
    bad = ~((S >= 0) & (S < _LARGEST))
    if bad.any():
        raise ValueError(
            f"{who} {float(S[bad][0])!r}; similarities must be finite and not negative. "
            "For distances, pass 1 / (1 + distance) or exp(-distance)."
        )


def _cosine_around(centre: Matrix, A: Any, B: Any) -> Matrix:
    """Return cosines of A - centre and B - centre, of which neither is sparse as A and B are."""
    A, square = sparse.csr_array(A), float(centre @ centre)
    a, b = A @ centre, B @ centre
    product = (A @ B.T).toarray() - a[:, None] - b + square
    return product / np.outer(_norm_around(A, a, square), _norm_around(B, b, square))


def _norm_around(A: Any, along: Matrix, square: float) -> Matrix:
    own = np.asarray(A.multiply(A).sum(axis=1)).ravel()
    squared = own - 2 * along + square
    # What rounding leaves of an item at the centre has no direction.
    return np.where(squared > 1e-14 * (own + square), np.sqrt(np.maximum(squared, 0.0)), np.inf)


def _published_similarities(distance: Matrix) -> Matrix:
    """Return 1 / distance; where there are duplicates, 1 to these and next to nothing to others.

    Published to the rounding: a duplicate is seen only where the fast formula for the distance
    happens to give exactly zero (about two of three duplicates on letter).
    """
    same = distance == 0
    with np.errstate(divide="ignore"):
        S = 1.0 / distance
    has_duplicate = same.any(axis=1)
    # Published as 0, yet SBA fills its ten places with such items.
    S[has_duplicate] = np.where(same[has_duplicate], 1.0, np.finfo(np.float64).tiny)
    return S


def _distances(A: Any, B: Any = None, *, squared: bool = False) -> Matrix:
    """Return Euclidean distances; scikit-learn's metrics are loaded on first use."""
    return sklearn.metrics.pairwise.euclidean_distances(A, B, squared=squared)


def _median_distance(Z: Any) -> float:
    """Median distance between distinct calibration items, on at most a thousand of them."""
    step = max(1, Z.shape[0] // _MEDIAN_SAMPLE)
    some = Z[::step][:_MEDIAN_SAMPLE]
    distance = _distances(some if sparse.issparse(some) else np.unique(some, axis=0))
    between = distance[np.triu_indices_from(distance, k=1)]
    positive = between[between > 0]
    return float(np.median(positive)) if positive.size else 0.0


def _exact_distances(A: Any, B: Any, small: float) -> Matrix:
    """Euclidean distances, with those near zero recomputed so that duplicates give exactly zero.

    The fast formula |a|^2 - 2ab + |b|^2 cancels for near-equal rows and leaves noise around 1e-7.
    """
    distance = _distances(A, B)
    rows, columns = np.nonzero(distance < np.maximum(1e3 * small, 1e-5))
    for start in range(0, rows.shape[0], 4096):
        i, j = rows[start : start + 4096], columns[start : start + 4096]
        difference = A[i] - B[j]
        squared = difference.multiply(difference) if sparse.issparse(A) else difference**2
        distance[i, j] = np.sqrt(np.asarray(squared.sum(axis=1)).ravel())
    return distance
