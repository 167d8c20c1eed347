"""Algorithm 1 of Wagstaff and Dietterich (2023), as their published code runs it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._progress import progressed
from hetcal._typing import Matrix, Rows
from hetcal.heterogeneity.cells import Balls
from hetcal.kernels.local_forests import STATUS_NAMES, local_forest_scores
from hetcal.kernels.neighbourhoods import hellinger_balls, three_decimal_buckets


def balls_of_buckets(P_cal: Matrix, P: Matrix, radius: float) -> tuple[Balls, NDArray[np.int64]]:
    """Return a ball for the first item of each three-decimal bucket, and each item's ball."""
    first, bucket = three_decimal_buckets(P)
    # Not sorted: the bootstrap draws positions, so the published value depends on this order.
    return Balls(P[first], *hellinger_balls(P_cal, P[first], radius), len(P_cal)), bucket


def published_values(
    X: NDArray[np.float32],
    codes: Rows,
    P: Matrix,
    balls: Balls,
    *,
    n_estimators: int,
    random_state: int,
    n_jobs: int | None,
) -> pd.DataFrame:
    """Return the published value of each ball; what the algorithm does not define is NaN.

    ``hh_raw`` is the value before it is cut off at 0.
    """
    found = local_forest_scores(
        X,
        codes,
        P.shape[1],
        P,
        balls.indptr,
        balls.indices,
        n_estimators=n_estimators,
        random_state=random_state,
        n_jobs=n_jobs,
        return_oob=False,
        progress=_neighbourhoods_done,
    )
    return pd.DataFrame(
        {
            "hh": found.hh,
            "hh_raw": found.brier_model - found.brier_local,
            "hh_global": np.nan,
            "hh_local": np.nan,
            "hh_local_low": np.nan,
            "standard_error": np.nan,
            "p_value": np.nan,
            "q_value": np.nan,
            "n_neighbors": found.n_neighbors,
            "status": np.array(STATUS_NAMES, dtype=object)[found.status],
        }
    )


def _neighbourhoods_done(done: int, total: int) -> None:
    progressed(done, total, "neighbourhoods")
