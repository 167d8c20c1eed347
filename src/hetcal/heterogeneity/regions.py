"""Where along p something is hidden: a test and a bound in each of a few disjoint regions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from hetcal._typing import Matrix, Rows, Vector
from hetcal.heterogeneity.multiplicity import benjamini_hochberg

MOST_REGIONS, _ITEMS_PER_REGION = 5, 100


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions of p that hold about equally many items.

    For two classes p is cut by the probability of the second one, for more by the largest.

    Attributes
    ----------
    edges : ndarray of shape (R - 1,)
    """

    edges: Vector

    @classmethod
    def of(cls, P: Matrix) -> Regions:
        """Cut p at quantiles; regions have about a hundred items at least."""
        n = int(np.clip(len(P) // _ITEMS_PER_REGION, 1, MOST_REGIONS))
        return cls(np.unique(np.quantile(_coordinate(P), np.linspace(0, 1, n + 1)[1:-1])))

    def __len__(self) -> int:
        return len(self.edges) + 1

    def number(self, P: Matrix) -> Rows:
        """Return the region of each prediction."""
        return np.searchsorted(self.edges, _coordinate(P), side="right")

    def table(self, p_values: Vector, low: Vector, counts: Rows) -> pd.DataFrame:
        """Return a row per region: its borders, its test and bound, adjusted for their number."""
        borders = np.concatenate([[0.0], self.edges, [1.0]])
        return pd.DataFrame(
            {
                "from": borders[:-1],
                "to": borders[1:],
                "n": counts,
                "hh_local_low": low,
                "p_value": p_values,
                "q_value": benjamini_hochberg(p_values),
            }
        )


def _coordinate(P: Matrix) -> Vector:
    return P[:, 1] if P.shape[1] == 2 else P.max(axis=1)
