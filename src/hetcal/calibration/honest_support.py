"""The support of calibration items as if they were new: what a new item is compared with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hetcal._threads import ThreadSafe

Matrix = NDArray[np.float64]


class Reference(NamedTuple):
    """Honest support, and over how many trees it was counted (None: all, or there are none)."""

    values: Matrix
    n_trees: NDArray[np.int64] | None = None


class HonestSupport(ThreadSafe):
    """Gives calibrators :meth:`honest_support`; they say how to compute it."""

    _honest_support: tuple[Any, Any] | None

    def honest_support(self, *, return_n_trees: bool = False) -> Any:
        """Return the calibration support of the calibration items, each as if it were new.

        An item knows itself, and a forest has grown around it: its plain support would be too
        large. Here an item meets only the trees that have not seen it (without trees: all others
        vote), it does not vote for itself, and the sum is scaled by n / (n - 1), since a new item
        meets one voter more. With ``groups`` at fit, an item meets similarities that were learned
        without its group.

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
        if getattr(self, "_honest_support", None) is None:
            values, n_trees = self._compute_honest_support()
            self._honest_support = (values, n_trees)
        values, n_trees = self._honest_support  # type: ignore[misc]
        return (values, n_trees) if return_n_trees else values

    def calibration_labels(self) -> NDArray:
        """Return the observed labels of the calibration items, in their order."""
        check_is_fitted(self, "classes_")
        return self.classes_[self._calibration_codes()]  # type: ignore[attr-defined]

    def _compute_honest_support(self) -> Reference:
        raise NotImplementedError

    def _calibration_codes(self) -> NDArray[np.int64]:
        raise NotImplementedError


def without_own(support: Matrix, weight: Matrix | None) -> Matrix:
    """Scale support that an item's own vote is missing from to that of a new item."""
    if weight is None:
        n = support.shape[0]
        return support * (n / max(n - 1, 1))
    others = weight.sum() - weight
    return support * np.divide(weight.sum(), others, out=np.ones_like(others), where=others > 0)
