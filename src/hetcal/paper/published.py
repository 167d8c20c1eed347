"""The figures that the paper printed, as data."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd


def published_table() -> pd.DataFrame:
    """All 672 figures of the paper's tables, one per row.

    Returns
    -------
    DataFrame
        Columns: ``dataset``; ``n_cal``, the number of calibration items; ``trials`` averaged;
        ``classifier``; ``metric`` (``brier``, the sum over classes, or ``accuracy``); ``method`` as
        printed (``Platt`` for two classes, ``TS`` for more); ``mean`` and ``standard_error``;
        ``best``, 1 where the paper marks the best of its row.

    Examples
    --------
    >>> published_table().shape
    (672, 9)
    """
    with files("hetcal.paper").joinpath("published.csv").open("rb") as stream:
        return pd.read_csv(stream)


def published_value(dataset: str, classifier: str, method: str, metric: str = "brier") -> float:
    """One published mean.

    Examples
    --------
    >>> published_value("mnist-4v9", "NB", "Uncal.")
    0.4932
    """
    table = published_table()
    wanted = {"dataset": dataset, "classifier": classifier, "method": method, "metric": metric}
    for column, value in wanted.items():
        known = table[column].unique()
        if value not in known:
            raise ValueError(
                f"published_value: {column} must be one of {sorted(known)}; got {value!r}."
            )
    hit = table[(table[list(wanted)] == pd.Series(wanted)).all(axis=1)]
    if len(hit) != 1:
        raise ValueError(f"published_value: the paper has no single figure for {wanted}.")
    return float(hit["mean"].iloc[0])
