"""``hetcal paper figure`` and ``hetcal paper page``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hetcal.cli._console import errors, results

_RESULTS = "Where results are kept. Default: HETCAL_RESULTS, else a folder in the user's cache."


def register(app: typer.Typer) -> None:
    """Add both commands to the app of ``hetcal paper``."""
    app.command()(figure)
    app.command()(page)


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
    folder: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help=_RESULTS, show_default=False)
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials, each with a split of its own.")] = 10,
    extra: Annotated[
        str,
        typer.Option("--with", metavar="NAMES", help="More methods to run first, such as hybrid."),
    ] = "",
    jobs: Annotated[
        int, typer.Option(min=0, help="Processes; 0 is one per core.", show_default="all cores")
    ] = 0,
    run: Annotated[
        bool,
        typer.Option("--run/--no-run", help="Run trials that are missing, or draw what is there."),
    ] = True,
) -> None:
    """Draw one of the paper's figures.

    Figures of results run the trials that are missing first; a run that was stopped goes on. The
    numbers in the figure are kept as figures/NAME.csv in the results.
    """
    from hetcal.io.whole import WholeFile
    from hetcal.paper.figures import draw_figure, figure_names, figure_title, figure_trials
    from hetcal.paper.store import Store

    if name is None:
        for known in figure_names():
            typer.echo(f"{known:20}  {figure_title(known)}")
        return
    figure_title(name)  # an unknown name is refused before anything is run
    store = Store(folder)
    own = [method.strip() for method in extra.split(",") if method.strip()]
    wanted = figure_trials(name, trials, own) if run else []
    if wanted:
        from hetcal.paper.commands import run_with_progress

        run_with_progress(wanted, store, jobs)
    drawn = draw_figure(name, results=store.folder, trials=trials, progress=_say)
    target = out or Path(f"{name}.png")
    with WholeFile(target) as stream:
        drawn.figure.savefig(stream, format=_format(target), dpi=130)
    drawn.keep_facts(store.folder, name)
    results().print(f"{figure_title(name)}: {target}", markup=False, soft_wrap=True)


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
    from hetcal.io.whole import write_whole
    from hetcal.paper.page import draw_pictures, page_text

    if figures not in ("none", "results", "all"):
        raise ValueError(f"--figures must be none, results or all; got {figures!r}.")
    target = docs / "paper.md"
    if figures != "none" and not check:
        pictures = docs / "_static" / "paper"
        for line in draw_pictures(folder, pictures, which=figures, progress=_say):
            typer.echo(line)
    text = page_text(folder)
    if check:
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            raise ValueError(f"{target} does not say what {folder} holds. Run: hetcal paper page")
        typer.echo(f"{target} is up to date.")
        return
    write_whole(target, text)
    typer.echo(target)


def _format(target: Path) -> str:
    return target.suffix[1:].lower() or "png"


def _say(text: str) -> None:
    console = errors()
    if console.is_terminal:
        console.print(text, markup=False)
