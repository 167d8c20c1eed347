"""The page as a whole, and its pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from hetcal.paper.claims import ResultsFolder, check_claims
from hetcal.paper.figures import (
    draw_figure,
    facts_file,
    figure_names,
    figure_title,
    figure_trials,
)
from hetcal.paper.figures._results import at_usual_size
from hetcal.paper.page import conclusions, tables
from hetcal.paper.page.deviations import deviations
from hetcal.paper.settings import PAPER_TABLES
from hetcal.paper.tables import summary_table
from hetcal.paper.text import markdown_table

_HEAD = """# The paper, run again

<!-- Written by `hetcal paper page` from experiments/results: change the results, not this file. -->

Kiri L. Wagstaff and Thomas G. Dietterich, "Hidden Heterogeneity: When to Choose Similarity-Based
Calibration", Transactions on Machine Learning Research, 2023: its tables, its figures and its
claims, computed again with hetcal and put beside what was printed.

```bash
hetcal paper table mnist-4v9        # one table, ours above the published
hetcal paper figure moons           # one figure
hetcal paper all                    # everything; may be stopped and goes on where it was
hetcal paper page --figures all     # this page and its pictures, from experiments/results
```
"""
_READING = (
    "Each cell shows our mean over the trials and the published one. Bold: the best of the paper's "
    "eight methods and those within one of its standard errors, by our figures. † more than two "
    "published standard errors away. HH: mean hidden heterogeneity as the paper defines it."
)
_NOTES = {
    "cifar": "RepVGG_A2 was trained for this project, since the published weights could not be "
    "had: its test accuracy is 94.4 % (published weights 95.0 %) and 76.0 % (77.2 %). The latent "
    "layer stands for the features, and the radius is 0.05.",
    "moons": "Left to right: what the classifier says, after Platt scaling, hidden heterogeneity, "
    "after SWC; the Brier score of 500 test items above each panel.",
    "rotation": "Turned items (hatched) have little support.",
    "improvement": "Every point is one trial. The upper rows hold the improvement against the "
    "published HH; rows below them, where there are results, against the out-of-sample HH.",
}

_SHIFT = (
    "The paper names this and leaves it open. A model of income (`adult`) is trained on 2000 "
    "people among whom women are missing or rare, then calibrated on 3000 people of the population "
    "as it is, and tested on 8000 others."
)


def page_text(folder: str | Path) -> str:
    """Return the page for a folder of results.

    Parameters
    ----------
    folder : path
        With the tables of :meth:`hetcal.paper.store.Store.export`, and the facts of figures
        in ``figures/``.
    """
    found = ResultsFolder.load(folder)
    usual = at_usual_size(found.results)
    paper = usual[usual["dataset"].isin(PAPER_TABLES)]
    cells = summary_table(paper)
    sections = {
        "How much agrees": tables.agreement(cells),
        "What the text claims": _claims(found),
        "Figures": _figures(found),
        "Tables": [_READING, "", *tables.seven_tables(paper, cells)],
        "Every deviation": deviations(cells),
        "The conclusions with the out-of-sample HH": conclusions.heterogeneity(paper),
        "The conclusions with the hybrid": conclusions.hybrid(paper),
        "A biased training sample, calibrated on the target": [
            _SHIFT,
            "",
            *conclusions.shift(found.facts("shift")),
        ],
        "How long it took": conclusions.time_taken(found),
    }
    lines = [_HEAD]
    for title, body in sections.items():
        lines += [f"## {title}", "", *body, ""]
    return "\n".join(lines).rstrip() + "\n"


def draw_pictures(
    folder: str | Path,
    target: Path,
    *,
    which: str = "all",
    progress: Callable[[str], object] | None = None,
) -> list[str]:
    """Draw the page's figures, and keep the facts of those that compute what they show.

    Parameters
    ----------
    folder, target : path
        Where the results are, and where the pictures go.
    which : {"all", "results"}
        "results" leaves out what would have to be computed.
    progress : callable, optional
        Called with a line of text at each step.

    Returns
    -------
    list of str
        One line per figure: where it is, or why it is not.
    """
    target.mkdir(parents=True, exist_ok=True)
    lines = []
    for name in figure_names():
        computed, trials = not figure_trials(name, trials=1), 10
        if computed and which == "results":
            if name != "shift" or not facts_file(folder, name).is_file():
                continue
            trials = pd.read_csv(facts_file(folder, name))["seed"].nunique()
        try:
            drawn = draw_figure(name, results=folder, trials=trials, progress=progress)
        except ValueError as error:  # results that are missing
            lines.append(f"{name}: {error}")
            continue
        path = target / f"{name}.png"
        drawn.save(path, dpi=100)
        if computed:
            drawn.keep_facts(folder, name)
        lines.append(str(path))
    return lines


def _claims(folder: ResultsFolder) -> list[str]:
    claims = check_claims(folder)
    decided = claims[claims["holds"] != ""]
    return [
        f"{int((decided['holds'] == 'yes').sum())} of {len(decided)} claims that can be checked "
        'hold. "Published" is what the paper says or, for the appendix, what its own tables say '
        "when they are counted in the same way.",
        "",
        markdown_table(
            ["where", "claim", "published", "ours", "holds"],
            claims.astype(str).to_numpy().tolist(),
            left=5,
        ),
    ]


def _figures(folder: ResultsFolder) -> list[str]:
    lines = []
    for name in figure_names():
        lines += [f"### {figure_title(name)}", ""]
        if name in _NOTES:
            lines += [_NOTES[name], ""]
        if _can_be_drawn(name, folder):
            lines += [f"![{figure_title(name)}](_static/paper/{name}.png)", ""]
        else:
            lines += ["No results yet.", ""]
    return lines


def _can_be_drawn(name: str, folder: ResultsFolder) -> bool:
    needed = figure_trials(name, trials=1)
    if not needed:
        return folder.facts(name) is not None
    there = set(zip(folder.results["dataset"], folder.results["n_cal"], strict=True))
    return bool(there & {(trial.dataset, trial.n_cal) for trial in needed})
