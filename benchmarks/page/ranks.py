"""Average ranks over cells, the critical difference, and wins, ties and losses."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import studentized_range

TIE = 0.005  # of the score


def average_ranks(scores: pd.DataFrame) -> pd.Series:
    """Return the mean rank of each method (column) over cells (rows), the best first.

    A missing score is a failure and ranks last; ties share their mean rank.

    Examples
    --------
    >>> average_ranks(pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, np.nan]})).to_dict()
    {'a': 1.0, 'b': 2.0}
    """
    ranks = scores.fillna(np.inf).rank(axis=1)
    return ranks.mean().sort_values(kind="stable")


def critical_difference(n_methods: int, n_cells: int, level: float = 0.05) -> float:
    """Return how far two average ranks must be apart by Nemenyi's test.

    Examples
    --------
    >>> round(critical_difference(5, 30), 3)  # Demsar (2006): q = 2.728
    1.114
    """
    q = studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_cells)))


def not_apart(ranks: pd.Series, difference: float) -> list[tuple[int, int]]:
    """Return the longest runs of methods, as first and last position, that do not differ.

    Examples
    --------
    >>> not_apart(pd.Series([1.0, 1.5, 2.4, 5.0]), 1.0)
    [(0, 1), (1, 2)]
    """
    values, runs = ranks.to_numpy(), []
    for first in range(len(values)):
        last = int(np.flatnonzero(values <= values[first] + difference)[-1])
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs


def wins_ties_losses(scores: pd.DataFrame, method: str, other: str) -> tuple[int, int, int]:
    """Return in how many cells a method is better, about the same, and worse than another.

    Examples
    --------
    >>> table = pd.DataFrame({"a": [1.0, 1.0, 2.0], "b": [1.1, 1.001, np.nan]})
    >>> wins_ties_losses(table, "a", "b")
    (2, 1, 0)
    """
    ratio = scores[method].fillna(np.inf) / scores[other].fillna(np.inf)
    better, worse = int((ratio < 1 - TIE).sum()), int((ratio > 1 + TIE).sum())
    return better, len(ratio) - better - worse, worse


def geometric_mean(ratios: pd.Series) -> float:
    """Return the geometric mean of what is there."""
    return float(np.exp(np.log(ratios.dropna()).mean()))
