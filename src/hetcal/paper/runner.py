"""Run trials: what is missing, in groups that share a split and a black box, on many cores.

Every result is written the moment it is there (:class:`hetcal.paper.store.Store`), so a run
may be killed at any point and loses the one method it was at. Started again, it goes on.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from hetcal.paper.methods import Workbench
from hetcal.paper.settings import Trial
from hetcal.paper.store import Store


@dataclass(frozen=True)
class GroupDone:
    """What is reported when a group of trials is finished.

    Attributes
    ----------
    trials : tuple of Trial
        The group's trials that were missing when the run began.
    seconds : float
        Time on the clock, black box included.
    """

    trials: tuple[Trial, ...]
    seconds: float

    def __str__(self) -> str:
        first = self.trials[0]
        return (
            f"{first.dataset} {first.classifier}, {first.n_cal} items, trial {first.seed}: "
            f"{len(self.trials)} methods, {self.seconds:.0f} s"
        )


def missing(trials: Iterable[Trial], store: Store) -> list[Trial]:
    """Return the trials that have no result yet."""
    return [trial for trial in dict.fromkeys(trials) if not store.has(trial)]


def run_trials(
    trials: Iterable[Trial],
    store: Store,
    *,
    jobs: int = 1,
    report: Callable[[GroupDone], object] | None = None,
) -> int:
    """Run the trials that have no result yet.

    Parameters
    ----------
    trials : iterable of Trial
        In the order in which they are wanted; trials of one group run together.
    store : Store
        Where results are looked for and written.
    jobs : int, default 1
        Processes; each works on a group of its own, on one core.
    report : callable, optional
        Called with a `GroupDone` after each group.

    Returns
    -------
    int
        How many trials were run.

    Examples
    --------
    >>> import tempfile
    >>> from hetcal.paper.settings import make_trials
    >>> store = Store(tempfile.mkdtemp())
    >>> trials = make_trials("moons", ["Uncal.", "Iso Reg"], classifiers=["NB"], seeds=[0])
    >>> run_trials(trials, store), run_trials(trials, store)
    (2, 0)
    >>> store.frame()[["method", "n_test"]].to_dict("list")
    {'method': ['Iso Reg', 'Uncal.'], 'n_test': [500, 500]}
    """
    groups: dict[tuple, list[Trial]] = defaultdict(list)
    for trial in missing(trials, store):
        groups[trial.group].append(trial)
    # Processes, not threads: most of the work holds the interpreter.
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")
    tasks = (delayed(_run_group)(tuple(group), store.folder) for group in groups.values())
    for done in parallel(tasks):
        if report is not None:
            report(done)
    return sum(map(len, groups.values()))


def _run_group(trials: Sequence[Trial], folder) -> GroupDone:
    """Run trials that share data set, classifier, size and seed."""
    start = time.perf_counter()
    store = Store(folder)
    bench = Workbench(*trials[0].group, store=store)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        # What the library warns of (few neighbours, a class that is missing) is part of a trial.
        warnings.simplefilter("ignore")
        for trial in trials:
            # Another run on the same store may have been faster.
            if not store.has(trial):
                store.write(trial, bench.run(trial))
    return GroupDone(tuple(trials), time.perf_counter() - start)
