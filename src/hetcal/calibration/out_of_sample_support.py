"""The support of new items, and that of calibration items as if they were new, to compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hetcal._stored import expect
from hetcal._stored.fields import integers, numbers
from hetcal._threads import ThreadSafe
from hetcal._typing import Matrix, Rows
from hetcal.data import Folds, NewItems, Scores

_LEVELS = np.linspace(0.05, 0.95, 10)
#: Support that so many of the calibration items lack is called low.
LOW_SHARE = 0.01


class Reference(NamedTuple):
    """Out-of-sample support, and over how many trees it was counted (None: all, or no trees)."""

    values: Matrix
    n_trees: NDArray[np.int64] | None = None


def stored_support(value: Any) -> bool:
    """Take support with the numbers of trees that it was counted over."""
    if not (isinstance(value, tuple) and len(value) == 2):
        return False
    support, n_trees = value
    n = np.size(support)
    counted = n_trees is None or integers(n, low=0, high=1 << 31)(n_trees)
    return n > 0 and numbers(n, low=0.0)(support) and counted


class OutOfSampleSupport(ThreadSafe):
    """Gives calibrators :meth:`out_of_sample_support`; they say how to compute it.

    Whoever needs probabilities and support of the same new items (:class:`hetcal.SupportMonitor`)
    has them checked once, by :meth:`new_items`, and hands them to :meth:`predict_items` and
    :meth:`support_items`.
    """

    _out_of_sample_support: tuple[Any, Any] | None

    def new_items(self, X: Any, *, y_proba: Any = None, logits: Any = None) -> NewItems:
        """Return new items, checked against what was seen at fit and encoded."""
        scores = self.new_scores(X, y_proba=y_proba, logits=logits)
        self._require_features(X)  # type: ignore[attr-defined]
        return NewItems(self._encode(X), scores)

    def new_scores(self, X: Any, *, y_proba: Any = None, logits: Any = None) -> Scores:
        """Return the classifier's output alone, checked against what was seen at fit."""
        return self._new_scores(X, y_proba, logits)  # type: ignore[attr-defined]

    def predict_items(self, items: NewItems) -> Matrix:
        """Return calibrated probabilities of items from :meth:`new_items`."""
        raise NotImplementedError

    def support_items(
        self, items: NewItems, n_trees: Any = None, random_state: Any = None
    ) -> Matrix:
        """Return the calibration support of items from :meth:`new_items`; see ``support``."""
        raise NotImplementedError

    def out_of_sample_support(self, *, return_n_trees: bool = False) -> Any:
        """Return the calibration support of the calibration items, each as if it were new.

        An item knows itself, and a forest has grown around it: its plain support would be too
        large. Here an item meets only the trees that have not seen it (without trees: all others
        vote), it does not vote for itself, and the sum is scaled by n / (n - 1), since a new item
        meets one voter more. With ``groups`` at fit, an item meets similarities that were learned
        without its group, and the sum is scaled by how support grows with the number of items.

        An average over a third of the trees scatters more than one over all of them. To rank new
        items among these values, let them meet as many trees:
        ``support(X, y_proba=P, n_trees=drawn from the n_trees returned here)``.

        Parameters
        ----------
        return_n_trees : bool, default=False
            Whether to return the number of trees as well.

        Returns
        -------
        support : ndarray of shape (n,)
        n_trees : ndarray of shape (n,) or None
            Only with ``return_n_trees=True``; None where all trees count, or there are none. An
            item with 0 has been seen by every tree, and its support of 0 says nothing.
        """
        check_is_fitted(self, "classes_")
        if getattr(self, "_out_of_sample_support", None) is None:
            values, n_trees = self._compute_out_of_sample_support()
            self._out_of_sample_support = (values, n_trees)
        values, n_trees = self._out_of_sample_support  # type: ignore[misc]
        return (values, n_trees) if return_n_trees else values

    def calibration_labels(self) -> NDArray:
        """Return the observed labels of the calibration items, in their order."""
        check_is_fitted(self, "classes_")
        return self.classes_[self._calibration_codes()]  # type: ignore[attr-defined]

    def _check_stored_support(self, n_items: int) -> None:
        found = getattr(self, "_out_of_sample_support", None)
        same = found is None or len(found[0]) == n_items
        expect(same, self, "has out-of-sample support of other items")

    def _encode(self, X: Any) -> Any:
        raise NotImplementedError

    def _compute_out_of_sample_support(self) -> Reference:
        raise NotImplementedError

    def _calibration_codes(self) -> NDArray[np.int64]:
        raise NotImplementedError


def low_support(calibrator: Any) -> float | None:
    """Return the support that one calibration item in a hundred lacks; None without support."""
    inner = getattr(calibrator, "calibrator_", calibrator)
    if not hasattr(inner, "out_of_sample_support"):
        return None
    return float(np.quantile(inner.out_of_sample_support(), LOW_SHARE))


def support_of_new_groups(
    support: Callable[[Folds], tuple[Matrix, Matrix]], groups: Rows
) -> Matrix:
    """Return the support that the items would have if their whole group were new.

    Support that was counted without a fifth of the groups is too small for what a new item meets,
    but not by a fifth: leaves of trees that are grown until they are pure grow with the items
    somewhere between not at all and in proportion, and less where items are few. How fast, as a
    power of the items, is seen from the support without half of the groups, for low and for high
    support apart.

    Parameters
    ----------
    support : callable
        From folds to the support of each item counted without its fold, and the share of all
        weight that took part.
    groups : ndarray of shape (n,)
    """
    n = groups.shape[0]
    most, share = support(Folds.make(n, seed=0, groups=groups))
    half, share_of_half = support(Folds.make(n, 2, seed=1, groups=groups))
    times_as_many = float(np.mean(share) / np.mean(share_of_half))
    if times_as_many <= 1:
        return most / share
    at = np.quantile(most, _LEVELS), np.quantile(half, _LEVELS)
    rise = np.divide(*at, out=np.full(len(_LEVELS), times_as_many), where=at[1] > 0)
    growth = np.clip(np.log(np.maximum(rise, 1.0)) / np.log(times_as_many), 0.0, 1.0)
    rank = np.argsort(np.argsort(most, kind="stable")) / n
    return most / share ** np.interp(rank, _LEVELS, growth)


def without_own(support: Matrix, weight: Matrix | None, groups: Rows | None = None) -> Matrix:
    """Scale support that misses an item's own vote, or its group's, to that of a new item."""
    weight = np.ones(support.shape[0]) if weight is None else weight
    own = weight if groups is None else np.bincount(groups, weight)[groups]
    others = weight.sum() - own
    return support * np.divide(weight.sum(), others, out=np.ones_like(others), where=others > 0)
