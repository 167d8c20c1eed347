"""What the figures of results share: reading trials, and saying what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from hetcal.paper.settings import DATASETS, MEASUREMENTS, paper_methods
from hetcal.paper.store import load_results

# Our own methods that are drawn beside the paper's where there are results.
OWN_METHODS = ("hybrid",)


def trials_of(
    folder: Path, datasets: Iterable[str], *, figure: str, trials: int | None = None
) -> pd.DataFrame:
    """Return the results of some data sets; an error that says what to run where there are none.

    Parameters
    ----------
    folder : Path
        The store.
    datasets : iterable of str
    figure : str
        Whose error it is.
    trials : int, optional
        Leave out seeds from this one on.
    """
    names = list(datasets)
    table = load_results(folder)
    table = table[table["dataset"].isin(names)]
    if trials is not None:
        table = table[table["seed"] < trials]
    if table.empty:
        raise ValueError(
            f"The figure {figure!r} draws results of {', '.join(names)}, and {folder} has none. "
            f"Run: hetcal paper figure {figure} --results {folder}"
        )
    return table.reset_index(drop=True)


def methods_in(table: pd.DataFrame, dataset: str, extra: Sequence[str] = OWN_METHODS) -> list[str]:
    """Return the methods to draw, in the paper's order, our own last, if there are results."""
    there = set(table["method"]) - set(MEASUREMENTS)
    return [method for method in (*paper_methods(dataset), *extra) if method in there]


def in_words(trials: pd.Series) -> str:
    """Return how many trials the means of a figure rest on.

    Examples
    --------
    >>> import pandas as pd
    >>> in_words(pd.Series([2, 10])), in_words(pd.Series([10]))
    ('2 to 10 trials', '10 trials')
    """
    low, high = int(trials.min()), int(trials.max())
    if high == 1:
        return "1 trial"
    return f"{high} trials" if low == high else f"{low} to {high} trials"


def at_usual_size(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out the smaller calibration sets of learning curves."""
    usual = table["dataset"].map(lambda name: DATASETS[name].n_cal)
    return table[table["n_cal"] == usual]
