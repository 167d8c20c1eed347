"""What the figures of results share: which trials, in which methods, and how they look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from hetcal.paper.settings import (
    DATASETS,
    MEASUREMENTS,
    PAPER_METHODS,
    Trial,
    make_trials,
    paper_methods,
)
from hetcal.paper.store import load_results
from hetcal.plotting.style import MethodStyle, method_style

# Our own methods that are drawn beside the paper's where there are results.
OWN_METHODS = ("hybrid",)


def table_trials(datasets: Iterable[str], trials: int, own: Sequence[str] = ()) -> list[Trial]:
    """Return the trials of whole tables, hidden heterogeneity included."""
    return [
        trial
        for dataset in datasets
        for trial in make_trials(
            dataset, [*paper_methods(dataset), "hh", *own], seeds=range(trials)
        )
    ]


def trials_of(folder: Path, datasets: Iterable[str], *, figure: str, trials: int) -> pd.DataFrame:
    """Return the results of some data sets; an error that says what to run where there are none.

    Parameters
    ----------
    folder : Path
        The store.
    datasets : iterable of str
    figure : str
        Whose error it is.
    trials : int
        Leave out seeds from this one on.
    """
    names = list(datasets)
    table = load_results(folder)
    table = table[table["dataset"].isin(names) & (table["seed"] < trials)]
    if table.empty:
        raise ValueError(
            f"The figure {figure!r} draws results of {', '.join(names)}, and {folder} has none. "
            f"Run: hetcal paper figure {figure} --results {folder}"
        )
    return table.reset_index(drop=True)


def methods_in(table: pd.DataFrame, dataset: str) -> list[str]:
    """Return the methods to draw, in the paper's order, our own last, if there are results."""
    there = set(table["method"]) - set(MEASUREMENTS)
    return [method for method in (*paper_methods(dataset), *OWN_METHODS) if method in there]


def at_usual_size(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out the smaller calibration sets of learning curves."""
    usual = table["dataset"].map(lambda name: DATASETS[name].n_cal)
    return table[table["n_cal"] == usual]


def style_of(method: str) -> MethodStyle:
    """Return the look of a method, under the name that the paper prints.

    Examples
    --------
    >>> style_of("Iso Reg").label, style_of("Iso Reg").color == method_style("isotonic").color
    ('Iso Reg', True)
    """
    if method not in PAPER_METHODS:
        return method_style(method)
    return method_style(PAPER_METHODS[method])._replace(label=method)


def with_heterogeneity(title: str, value: float | None, digits: int) -> str:
    """Return the label of a classifier, with its mean hidden heterogeneity where it is known."""
    return title if value is None else f"{title}\n(HH {value:.{digits}f})"
