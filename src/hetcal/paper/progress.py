"""Run trials, and show on stderr how far the run is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from hetcal.cli._console import errors
from hetcal.paper.plan import expected_seconds
from hetcal.paper.runner import GroupDone, missing, run_trials
from hetcal.paper.settings import Trial
from hetcal.paper.store import Store

Report = Callable[[GroupDone], None]


def say(text: str) -> None:
    """Print a line on stderr."""
    errors().print(text, markup=False, soft_wrap=True)


def run_with_progress(trials: list[Trial], store: Store, jobs: int, *, quiet: bool = False) -> None:
    """Run what is missing.

    On a terminal a bar shows the time left; elsewhere each group of trials (one split behind one
    classifier) that is finished is a line, unless `quiet`.
    """
    from joblib import cpu_count

    todo = missing(trials, store)
    if not todo:
        return
    shown = _nothing if quiet else _bar if errors().is_terminal else _lines
    with shown(todo, store) as report:
        run_trials(todo, store, jobs=jobs or cpu_count(), report=report)


@contextlib.contextmanager
def _nothing(todo: list[Trial], store: Store) -> Iterator[None]:
    yield None


@contextlib.contextmanager
def _lines(todo: list[Trial], store: Store) -> Iterator[Report]:
    say(f"{len(todo)} trials to run; results go to {store.folder}")
    finished = 0

    def report(group: GroupDone) -> None:
        nonlocal finished
        finished += len(group.trials)
        say(f"{finished} of {len(todo)}: {group}")

    yield report


@contextlib.contextmanager
def _bar(todo: list[Trial], store: Store) -> Iterator[Report]:
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    expected = expected_seconds(todo, store)
    columns = [
        TextColumn("{task.fields[done]} of {task.fields[all]} trials"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    ]
    # Groups take minutes and differ: the pace is that of the last hour.
    with Progress(*columns, console=errors(), speed_estimate_period=3600) as bar:
        task = bar.add_task("", total=sum(expected.values()), done=0, all=len(todo))

        def report(group: GroupDone) -> None:
            done = bar.tasks[0].fields["done"] + len(group.trials)
            bar.update(task, advance=sum(expected[trial] for trial in group.trials), done=done)

        yield report
