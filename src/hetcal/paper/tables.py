"""The paper's tables: means over trials beside what it printed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hetcal.paper.published import published_table
from hetcal.paper.settings import MEASUREMENTS

_CELL = ["dataset", "n_cal", "classifier"]
_HIGHER_IS_BETTER = frozenset({"accuracy"})


def summarise(
    results: pd.DataFrame, metrics: Sequence[str] = ("brier", "accuracy")
) -> pd.DataFrame:
    """Return means and standard errors over trials.

    The standard error is the sample standard deviation over the square root of the number of
    trials.

    Parameters
    ----------
    results : DataFrame
        From :func:`hetcal.paper.store.load_results`.
    metrics : sequence of str
        Columns of `results`.

    Returns
    -------
    DataFrame
        ``dataset``, ``n_cal``, ``classifier``, ``metric``, ``method``, ``trials``, ``mean``,
        ``standard_error``; rows without a value are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> cell = {"dataset": "moons", "n_cal": 9, "classifier": "NB", "method": "SWC"}
    >>> results = pd.DataFrame([cell | {"seed": s, "brier": b} for s, b in [(0, 0.1), (1, 0.3)]])
    >>> summarise(results, ["brier"])[["trials", "mean", "standard_error"]].round(3).to_dict("list")
    {'trials': [2], 'mean': [0.2], 'standard_error': [0.1]}
    """
    names = [*_CELL, "method"]
    long = results.melt([*names, "seed"], list(metrics), "metric").dropna(subset="value")
    groups = long.groupby([*_CELL, "metric", "method"], sort=False)["value"]
    table = groups.agg(trials="count", mean="mean", standard_error="sem").reset_index()
    return table.sort_values([*_CELL, "metric", "method"], ignore_index=True)


def mark_best(table: pd.DataFrame) -> pd.DataFrame:
    """Add ``best``: the best method of each row, and those within one of its standard errors.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"dataset": "d", "n_cal": 9, "classifier": "NB", "metric": "brier"}
    >>> methods = [("a", 0.10, 0.01), ("b", 0.109, 0.1), ("c", 0.12, 0.1)]
    >>> cells = [row | {"method": m, "mean": v, "standard_error": e} for m, v, e in methods]
    >>> mark_best(pd.DataFrame(cells))["best"].tolist()
    [True, True, False]
    """
    if table.empty:
        return table.assign(best=False)
    sign = np.where(table["metric"].isin(list(_HIGHER_IS_BETTER)), -1.0, 1.0)
    loss = table["mean"] * sign
    rows = [table[name] for name in (*_CELL, "metric")]
    first = loss.groupby(rows).transform("idxmin")
    limit = loss.loc[first].to_numpy() + table["standard_error"].loc[first].fillna(0.0).to_numpy()
    # Rounding must not cost a method that ties with the limit its mark.
    return table.assign(best=loss.to_numpy() <= limit + 1e-12)


def compare_with_published(table: pd.DataFrame) -> pd.DataFrame:
    """Put the published figures beside a table of :func:`summarise`.

    Returns
    -------
    DataFrame
        The table with ``published``, ``published_error``, ``published_best`` and ``deviation``,
        the difference in published standard errors; NaN where the paper has no such cell.
    """
    published = published_table().rename(
        columns={
            "mean": "published",
            "standard_error": "published_error",
            "best": "published_best",
        }
    )
    joined = table.merge(
        published.drop(columns="trials"), "left", on=[*_CELL, "metric", "method"], validate="1:1"
    )
    deviation = (joined["mean"] - joined["published"]) / joined["published_error"]
    return joined.assign(deviation=deviation)


def mean_heterogeneity(results: pd.DataFrame, method: str = "hh") -> pd.DataFrame:
    """Return mean hidden heterogeneity and its standard error per data set, size and classifier.

    Parameters
    ----------
    results : DataFrame
    method : {"hh", "hh-out-of-sample"}
    """
    chosen = results[results["method"] == method]
    return summarise(chosen, ["hh"]).drop(columns=["metric", "method"])


def summary_table(
    results: pd.DataFrame, metrics: Sequence[str] = ("brier", "accuracy")
) -> pd.DataFrame:
    """Return means, errors, marks of the best, and published figures of calibration methods.

    The three functions above, one after the other; measurements are left out.
    """
    calibrated = results[~results["method"].isin(MEASUREMENTS)]
    return compare_with_published(mark_best(summarise(calibrated, metrics)))
