"""``hetcal paper``: the paper's experiments, run again and put beside what it printed.

Found by the entry point ``paper`` of the group ``hetcal.commands``. What the commands need is
imported when one runs: every start of ``hetcal`` loads this module.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hetcal.cli._console import print_json, results

if TYPE_CHECKING:
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

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


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
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the table as JSON records.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Print one of the paper's tables with our figures above its own.

    Per classifier and method: mean over trials with its standard error, the published ones below,
    and the difference in published standard errors. Bold: the best and all within one of its
    standard errors. HH is the mean hidden heterogeneity as the paper defines it.
    """
    from hetcal.paper.progress import run_with_progress
    from hetcal.paper.settings import check_methods, make_trials, paper_methods
    from hetcal.paper.store import Store
    from hetcal.paper.tables import summary_table
    from hetcal.paper.terminal import print_tables

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
    run_with_progress(wanted, store, jobs, quiet=quiet)
    found = store.frame(name)
    found = found[found["key"].isin({trial.key for trial in wanted})].reset_index(drop=True)
    if as_json:
        print_json(summary_table(found).to_json(orient="records", indent=1))
    else:
        print_tables(results(), found, shown)


@app.command()
def figure(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Which figure; leave it out for a list."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Picture (.png, .svg, .pdf). Default: NAME.png"
        ),
    ] = None,
    folder: Results = None,
    trials: Trials = 10,
    extra: With = "",
    jobs: Jobs = 0,
    run: Annotated[
        bool,
        typer.Option("--run/--no-run", help="Run trials that are missing, or draw what is there."),
    ] = True,
    quiet: Quiet = False,
) -> None:
    """Draw one of the paper's figures.

    Figures of results run the trials that are missing first; a run that was stopped goes on. The
    numbers in the figure are kept as figures/NAME.csv in the results.
    """
    from hetcal.paper.figures import figure_names, figure_title, figure_trials
    from hetcal.paper.progress import run_with_progress
    from hetcal.paper.store import Store

    if name is None:
        for known in figure_names():
            results().print(f"{known:20}  {figure_title(known)}", soft_wrap=True)
        return
    figure_title(name)  # an unknown name is refused before anything is run
    store = Store(folder)
    if run:
        run_with_progress(figure_trials(name, trials, _names(extra)), store, jobs, quiet=quiet)
    _draw(name, store, trials, out or Path(f"{name}.png"), quiet=quiet)


@app.command(name="all")
def run_all(
    trials: Trials = 10,
    extra: With = "",
    jobs: Jobs = 0,
    folder: Results = None,
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Draw the figures too, into DIR/figures.")
    ] = True,
    quiet: Quiet = False,
) -> None:
    """Run everything that the paper's tables and figures need; may be stopped at any point."""
    from importlib.util import find_spec

    from hetcal.paper.figures import figure_names
    from hetcal.paper.plan import everything
    from hetcal.paper.progress import run_with_progress, say
    from hetcal.paper.store import Store

    store = Store(folder)
    wanted, left_out = _available(everything(_names(extra), trials), store)
    for line in left_out:
        say(f"Left out: {line}")
    run_with_progress(wanted, store, jobs, quiet=quiet)
    results().print(f"Trials are there: {store.folder}", markup=False, soft_wrap=True)
    if figures and find_spec("matplotlib") is None:
        say("No figures: install 'hetcal[paper]' first.")
    elif figures:
        target = store.folder / "figures"
        target.mkdir(parents=True, exist_ok=True)
        for name in figure_names():
            _draw(name, store, trials, target / f"{name}.png", quiet=quiet)


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
        results().print(str(path), soft_wrap=True)


@app.command()
def page(
    folder: Annotated[
        Path, typer.Option("--results", metavar="DIR", help="Tables of finished trials.")
    ] = Path("experiments/results"),
    docs: Annotated[Path, typer.Option(metavar="DIR", help="Where paper.md goes.")] = Path("docs"),
    figures: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="Pictures to draw again: none, results (those of DIR alone), all (needs the "
            "data; minutes).",
        ),
    ] = "none",
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if the page is not up to date.")
    ] = False,
) -> None:
    """Write the documentation's page of results: every table and figure beside the published."""
    from hetcal.paper.page import draw_pictures, page_text
    from hetcal.paper.progress import say
    from hetcal.persistence.atomic_file import write_atomic

    if figures not in ("none", "results", "all"):
        raise ValueError(f"--figures must be none, results or all; got {figures!r}.")
    target = docs / "paper.md"
    if figures != "none" and not check:
        pictures = docs / "_static" / "paper"
        for line in draw_pictures(folder, pictures, which=figures, progress=say):
            results().print(line, soft_wrap=True)
    text = page_text(folder)
    if check:
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            raise ValueError(f"{target} does not say what {folder} holds. Run: hetcal paper page")
        results().print(f"{target} is up to date.", soft_wrap=True)
        return
    write_atomic(target, text)
    results().print(str(target), soft_wrap=True)


def _draw(name: str, store: Store, trials: int, target: Path, *, quiet: bool) -> None:
    """Draw a figure from what the store has, and keep the numbers in it."""
    from hetcal.paper.figures import draw_figure, figure_title
    from hetcal.paper.progress import say

    progress = None if quiet else say
    drawn = draw_figure(name, results=store.folder, trials=trials, progress=progress)
    drawn.save(target, dpi=130)
    drawn.keep_facts(store.folder, name)
    results().print(f"{figure_title(name)}: {target}", markup=False, soft_wrap=True)


def _available(trials: list[Trial], store: Store) -> tuple[list[Trial], list[str]]:
    """Leave out data sets that are missing here: the others need not wait for them."""
    from hetcal.paper.data import why_unavailable
    from hetcal.paper.runner import missing

    needed = dict.fromkeys(trial.dataset for trial in missing(trials, store))
    reasons = {dataset: why_unavailable(dataset) for dataset in needed}
    kept = [trial for trial in trials if reasons.get(trial.dataset) is None]
    return kept, [reason for reason in reasons.values() if reason is not None]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
