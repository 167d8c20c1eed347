"""What the items near a prediction gain, on average, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from hetcal._stored import expect, stored
from hetcal._stored.checks import check_codes, check_weight
from hetcal._stored.fields import MOST_ITEMS, integers, numbers, optional, probabilities
from hetcal._typing import Matrix, Rows, Vector
from hetcal.heterogeneity.cells import Balls

OK, TOO_FEW, ONE_CLASS, NO_NEIGHBORS = "ok", "too few neighbours", "one class", "no neighbours"
#: Cells whose hh is a number.
MEASURED = (OK, ONE_CLASS)
_CODES = integers(None, low=0, high=MOST_ITEMS)


@stored(
    {
        "P": probabilities(None, None),
        "codes": _CODES,
        "weight": numbers(None, low=0.0),
        "groups": optional(_CODES),
        "gains": optional(numbers(None, 2)),
    }
)
@dataclass(frozen=True, eq=False)
class MeasuredItems:
    """What a fit keeps of the calibration items.

    Attributes
    ----------
    P : ndarray of shape (n, K)
        The classifier's probabilities.
    codes : ndarray of shape (n,)
    weight : ndarray of shape (n,)
        Mean 1.
    groups : ndarray of shape (n,) or None
    gains : ndarray of shape (n, 2) or None
        Gain in squared error from the classifier to the best global map, and from there to the
        local model; None where only published values are computed.
    """

    P: Matrix
    codes: Rows
    weight: Vector
    groups: Rows | None
    gains: Matrix | None = None

    def _check_restored(self) -> None:
        n, K = self.P.shape
        expect(n > 0 and K > 1, self, "are none")
        check_codes(self, self.codes, n, K)
        check_weight(self, self.weight, n)
        expect(self.gains is None or len(self.gains) == n, self, "have gains of other items")
        if self.groups is not None:
            check_codes(self, self.groups, n, n)


def neighborhood_means(items: MeasuredItems, balls: Balls, min_neighbors: int) -> pd.DataFrame:
    """Return one row per ball: hh, its two parts, its standard error, and who is in it."""
    status = _status(balls, items.codes, min_neighbors)
    gains = np.full((len(items.P), 2), np.nan) if items.gains is None else items.gains
    members = gains[balls.indices].T
    part_global, part_local = balls.averages(members, items.weight)
    table = pd.DataFrame(
        {
            "hh": part_global + part_local,
            "hh_raw": part_global + part_local,
            "hh_global": part_global,
            "hh_local": part_local,
            "standard_error": _errors(members.sum(axis=0), balls, items),
        }
    )
    table.loc[~np.isin(status, MEASURED)] = np.nan
    return table.assign(n_neighbors=balls.sizes, status=status)


def _status(balls: Balls, codes: Rows, min_neighbors: int) -> list[str]:
    sizes = balls.sizes
    lowest = np.full(len(balls), -1)
    highest = np.full(len(balls), -1)
    some = sizes > 0
    starts = balls.indptr[:-1][some]
    if len(starts):
        lowest[some] = np.minimum.reduceat(codes[balls.indices], starts)
        highest[some] = np.maximum.reduceat(codes[balls.indices], starts)
    return np.select(
        [sizes == 0, sizes < min_neighbors, lowest == highest],
        [NO_NEIGHBORS, TOO_FEW, ONE_CLASS],
        default=OK,
    ).tolist()


def _errors(gain: Vector, balls: Balls, items: MeasuredItems) -> Vector:
    """Return the standard error of each ball's weighted mean; items of one group count together."""
    influence, ball = _influences(gain, balls, items)
    if items.groups is None:
        return np.sqrt(balls.sums(influence**2))
    shape = (len(balls), int(items.groups.max()) + 1)
    by_group = sparse.coo_array((influence, (ball, items.groups[balls.indices])), shape=shape)
    return np.sqrt(by_group.tocsr().power(2).sum(axis=1))


def _influences(
    gain: Vector, balls: Balls, items: MeasuredItems
) -> tuple[Vector, NDArray[np.int64]]:
    """Return how much each member moves its ball's weighted mean, and the member's ball."""
    ball = np.repeat(np.arange(len(balls)), balls.sizes)
    weight = items.weight[balls.indices]
    away = gain - balls.averages(gain, items.weight)[ball]
    return away * weight / np.maximum(balls.sums(weight), 1e-300)[ball], ball
