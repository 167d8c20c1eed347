"""Everything that the paper's tables and figures need, and how long the rest of it will take."""

from __future__ import annotations

from collections.abc import Sequence

from hetcal.paper.data import training_seconds
from hetcal.paper.figures import figure_trials
from hetcal.paper.settings import Trial, make_trials, paper_methods
from hetcal.paper.store import Store

# The tables are those of the appendix. Cheap figures first.
_FIGURES = ("appendix-binary", "appendix-multiclass", "cifar", "learning-curves", "improvement")
# For a method that no trial in the store tells anything about.
_SECONDS_UNKNOWN = 1.0


def everything(extra: Sequence[str] = (), n_trials: int = 10) -> list[Trial]:
    """Return all trials of the paper's tables and figures, each once.

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
    trials = make_trials("moons", [*paper_methods("moons"), "hh", *extra], seeds=range(n_trials))
    for figure in _FIGURES:
        trials += figure_trials(figure, n_trials, extra)
    return list(dict.fromkeys(trials))


def expected_seconds(trials: Sequence[Trial], store: Store) -> dict[Trial, float]:
    """Return how much processor time each trial should take, from trials that were run already.

    The nearest ones decide: same data set, size and classifier; same data set; any. Training of the
    black box goes to the first trial of its group.
    """
    known = store.frame()
    names = ["method", "dataset", "n_cal", "classifier"]
    means: dict[tuple, float] = {}
    for depth in range(1, len(names) + 1):
        for place, part in known.groupby(names[:depth]):
            means[place] = part["seconds"].mean()
    wanted, groups = set(trials), set()
    expected = {}
    for trial in trials:
        place = tuple(getattr(trial, name) for name in names)
        # Hidden heterogeneity is computed once for both.
        shared = trial.method == "hh" and Trial(*trial.group, method="SWC-HH") in wanted
        near = [means[place[:depth]] for depth in (4, 3, 2, 1) if place[:depth] in means]
        expected[trial] = 0.0 if shared else [*near, _SECONDS_UNKNOWN][0]
        if trial.group not in groups:
            groups.add(trial.group)
            expected[trial] += training_seconds(trial, store)
    return expected
