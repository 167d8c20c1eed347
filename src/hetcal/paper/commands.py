"""``hetcal paper``: the paper's experiments, run again and put beside what it printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hetcal.cli._console import errors, results
from hetcal.paper import figure_commands

if TYPE_CHECKING:
    import pandas as pd

    from hetcal.paper.settings import Trial
    from hetcal.paper.store import Store

app = typer.Typer(
    name="paper",
    help="Run the paper's experiments again, beside its published figures. Results are kept: a "
    "run that was stopped goes on where it was.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Results = Annotated[
    Path | None,
    typer.Option(
        "--results",
        metavar="DIR",
        help="Where results are kept. Default: HETCAL_RESULTS, else a folder in the user's cache.",
        show_default=False,
    ),
]
Jobs = Annotated[
    int, typer.Option(min=0, help="Processes; 0 is one per core.", show_default="all cores")
]
Trials = Annotated[int, typer.Option(min=1, help="Trials, each with a split of its own.")]
With = Annotated[
    str,
    typer.Option(
        "--with",
        metavar="NAMES",
        help="More methods, separated by commas: hybrid and every calibrator by its name, "
        "forest-x, forest-xp, boosting-x, boosting-xp, mcgrad.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the table as JSON records.")]


@app.command()
def table(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Data set, such as mnist-4v9.")],
    trials: Trials = 10,
    classifiers: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these, separated by commas: NB,DT.")
    ] = "",
    methods: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these of the paper's eight: Platt,SWC.")
    ] = "",
    extra: With = "",
    n_cal: Annotated[
        int | None, typer.Option(min=1, help="Calibration items; default as in the paper.")
    ] = None,
    jobs: Jobs = 0,
    folder: Results = None,
    as_json: AsJson = False,
) -> None:
    """Print one of the paper's tables with our figures above its own.

    Per classifier and method: mean over trials with its standard error, the published ones below,
    and the difference in published standard errors. Bold: the best and all within one of its
    standard errors. HH is the mean hidden heterogeneity as the paper defines it.
    """
    from hetcal.paper.settings import check_methods, make_trials, paper_methods
    from hetcal.paper.store import Store

    store = Store(folder)
    shown = check_methods(_names(methods) or paper_methods(name), name, prefer="paper")
    shown = list(dict.fromkeys([*shown, *check_methods(_names(extra), name)]))
    wanted = make_trials(
        name,
        [*shown, "hh"] if "SWC-HH" in shown else shown,
        classifiers=_names(classifiers) or None,
        seeds=range(trials),
        n_cal=n_cal,
    )
    run_with_progress(wanted, store, jobs)
    found = _only(store.frame(name), wanted)
    if as_json:
        from hetcal.paper.tables import summary_table

        typer.echo(summary_table(found).to_json(orient="records", indent=1))
    else:
        from hetcal.paper.terminal import print_tables

        print_tables(results(), found, shown)


@app.command(name="all")
def run_all(
    trials: Trials = 10,
    extra: With = "",
    jobs: Jobs = 0,
    folder: Results = None,
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Draw the figures too, into DIR/figures.")
    ] = True,
) -> None:
    """Run everything that the paper's tables and figures need; may be stopped at any point."""
    from importlib.util import find_spec

    from hetcal.paper.plan import everything
    from hetcal.paper.store import Store

    store = Store(folder)
    wanted, left_out = _that_can_be_had(everything(_names(extra), trials), store)
    for line in left_out:
        errors().print(f"Left out: {line}", markup=False, soft_wrap=True)
    run_with_progress(wanted, store, jobs)
    results().print(f"Trials are there: {store.folder}", markup=False, soft_wrap=True)
    if figures and find_spec("matplotlib") is None:
        errors().print("No figures: install 'hetcal[paper]' first.", markup=False)
    elif figures:
        _draw_all(store, trials)


@app.command()
def status(trials: Trials = 10, extra: With = "", folder: Results = None) -> None:
    """Tell how much of `hetcal paper all` is there, and how long the rest will take."""
    from hetcal.paper.plan import everything
    from hetcal.paper.store import Store
    from hetcal.paper.terminal import print_status

    print_status(results(), everything(_names(extra), trials), Store(folder))


@app.command()
def export(
    target: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the tables.")],
    folder: Results = None,
) -> None:
    """Write the results as one CSV per data set; rows that DIR has already are kept."""
    from hetcal.paper.store import Store

    for path in Store(folder).export(target):
        typer.echo(path)


figure_commands.register(app)


def run_with_progress(trials: list[Trial], store: Store, jobs: int) -> None:
    """Run what is missing; a bar with the time left on stderr, nothing where that is a pipe."""
    from joblib import cpu_count

    from hetcal.paper.plan import expected_seconds
    from hetcal.paper.runner import missing, run_trials

    todo = missing(trials, store)
    if not todo:
        return
    jobs = jobs or cpu_count()
    console = errors()
    if not console.is_terminal:
        run_trials(todo, store, jobs=jobs)
        return
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
    with Progress(*columns, console=console, speed_estimate_period=3600) as bar:
        task = bar.add_task("", total=sum(expected.values()), done=0, all=len(todo))
        finished = 0

        def advance(group) -> None:
            nonlocal finished
            finished += len(group.trials)
            bar.update(task, advance=sum(expected[trial] for trial in group.trials), done=finished)

        run_trials(todo, store, jobs=jobs, report=advance)


def _that_can_be_had(trials: list[Trial], store: Store) -> tuple[list[Trial], list[str]]:
    """Leave out data sets that are missing here: the others need not wait for them."""
    from hetcal.paper.data import why_unavailable
    from hetcal.paper.runner import missing

    needed = dict.fromkeys(trial.dataset for trial in missing(trials, store))
    reasons = {dataset: why_unavailable(dataset) for dataset in needed}
    kept = [trial for trial in trials if reasons.get(trial.dataset) is None]
    return kept, [reason for reason in reasons.values() if reason is not None]


def _draw_all(store: Store, trials: int) -> None:
    from hetcal.paper.figures import figure_names

    target = store.folder / "figures"
    target.mkdir(parents=True, exist_ok=True)
    for name in figure_names():
        figure_commands.figure(
            name, out=target / f"{name}.png", folder=store.folder, trials=trials, run=False
        )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _only(found: pd.DataFrame, trials: list[Trial]) -> pd.DataFrame:
    return found[found["key"].isin({trial.key for trial in trials})].reset_index(drop=True)
