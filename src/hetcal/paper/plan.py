"""Everything that the paper's tables and figures need, and how long the rest of it will take."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from hetcal.paper.data import training_seconds
from hetcal.paper.settings import PAPER_TABLES, Trial, make_trials, paper_methods
from hetcal.paper.store import Store

__all__ = ["LEARNING_CURVE_SIZES", "everything", "expected_seconds"]

LEARNING_CURVE_SIZES = (50, 100, 200, 500, 1000, 1500, 2000, 2500, 3000)
# For a method that no trial in the store tells anything about.
_SECONDS_UNKNOWN = 1.0


def everything(extra: Sequence[str] = (), n_trials: int = 10) -> list[Trial]:
    """Return all trials of the paper's tables and figures, cheap data sets first.

    Parameters
    ----------
    extra : sequence of str
        Methods beside the paper's eight and both measurements of hidden heterogeneity.
    n_trials : int, default 10

    Examples
    --------
    >>> trials = everything(n_trials=1)
    >>> len({trial.dataset for trial in trials})
    10
    """
    seeds = range(n_trials)
    trials = []
    for dataset in ("moons", *sorted(PAPER_TABLES, key=_size), "cifar10", "cifar100"):
        methods = [*paper_methods(dataset), "hh", *extra]
        trials += make_trials(dataset, methods, seeds=seeds)
    for n_cal in LEARNING_CURVE_SIZES:
        trials += make_trials(
            "mnist-4v9",
            [*paper_methods("mnist-4v9"), "hh", *extra],
            classifiers=["NB", "DT", "RF"],
            seeds=seeds,
            n_cal=n_cal,
        )
    for dataset in PAPER_TABLES:
        trials += make_trials(dataset, ["hh-honest"], seeds=seeds)
    return list(dict.fromkeys(trials))


def expected_seconds(trials: Sequence[Trial], store: Store) -> dict[Trial, float]:
    """Return how much processor time each trial should take, from trials that were run already.

    The nearest ones decide: same data set, size and classifier; same data set; any. Training of the
    black box goes to the first trial of its group.
    """
    known = store.frame()
    means = [
        known.groupby(names)["seconds"].mean()
        for names in (
            ["method", "dataset", "n_cal", "classifier"],
            ["method", "dataset", "n_cal"],
            ["method", "dataset"],
            ["method"],
        )
    ]
    wanted, groups = set(trials), set()
    expected = {}
    for trial in trials:
        names = (trial.method, trial.dataset, trial.n_cal, trial.classifier)
        twin = Trial(*trial.group, method="SWC-HH")
        # Hidden heterogeneity is computed once for both.
        shared = trial.method == "hh" and twin in wanted
        expected[trial] = 0.0 if shared else _first_known(means, names)
        if trial.group not in groups:
            groups.add(trial.group)
            expected[trial] += training_seconds(trial, store)
    return expected


def _first_known(means: Sequence[pd.Series], names: tuple) -> float:
    for depth, mean in zip((4, 3, 2, 1), means, strict=True):
        place = names[:depth] if depth > 1 else names[0]
        if place in mean.index:
            return float(mean.loc[place])
    return _SECONDS_UNKNOWN


def _size(dataset: str) -> int:
    """Order of cost: two classes, then letter with its 16 features, then images in ten classes."""
    return {"letter": 1, "fashion-mnist": 2, "mnist10": 3}.get(dataset, 0)
