"""Repair: scores after calibration, beside the paper's methods, other packages and plain models."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

from benchmarks.page.pictures import critical_difference_plot
from benchmarks.page.ranks import (
    TIE,
    average_ranks,
    critical_difference,
    geometric_mean,
    wins_ties_losses,
)
from benchmarks.sources import stored_sources
from hetcal.paper.hindsight import CELL_SETS, compare_in_hindsight, is_development
from hetcal.paper.settings import BASELINES, PAPER_METHODS
from hetcal.paper.store import load_results
from hetcal.paper.text import markdown_table, number_of_trials

SCORES = {
    "brier": "Brier score",
    "log_loss": "log loss",
    "ece": "ECE",
    "worst_group": "worst-group smECE",
}
DEVELOPED_ON = ("adult", "credit-default")
OURS = "hetcal hybrid"
CELL = ["table", "model", "n_cal"]
_SETS = {
    "paper": "the paper's 42 cells, 3000 and 5000 items",
    "sizes": "50, 200 and 1000 items",
    "cifar": "CIFAR networks, 5000 items",
    "tables": "tables, 300 and 3000 items",
}
_WHY = [
    "How we read these losses (readings, not tests):",
    "",
    "- **Few items behind a good model.** With 50 to 200 items there is little to learn the "
    "weights of experts from. The hybrid then mostly averages maps of p, and a single map that "
    "suits the model can be better by a few per cent. Which one it is cannot be known beforehand.",
    "- **Naive Bayes with 50 items.** Its probabilities are near 0 and 1 and often wrong. "
    "Venn-Abers replaces them by averages over many rows, for which few items suffice.",
    "- **Calibration errors.** The hybrid is chosen by the log loss. Where it takes a local "
    "model's answer the Brier score falls, and an ECE may rise from nearly nothing. The worst of "
    "many groups is also the noisiest.",
    "- **Boosting on images** comes nearest on the paper's cells, and was ahead in single trials "
    "of the smaller sets (the rows with boosting above).",
    "",
]
Files = dict[str, str]


# ---- the paper's cells ----


@cache
def _stored(folder: Path) -> pd.DataFrame:
    return load_results(folder)


def stored_trials(folder: Path, cells: str) -> pd.DataFrame:
    """Return the stored trials of a set of cells, of methods that calibrate."""
    found = _stored(folder)
    wanted = pd.MultiIndex.from_tuples(CELL_SETS[cells])
    at = pd.MultiIndex.from_frame(found[["dataset", "classifier", "n_cal"]])
    methods = {*PAPER_METHODS, *BASELINES, "hybrid"}
    return found[at.isin(wanted) & found["method"].isin(methods)]


def hindsight_table(folder: Path) -> str:
    """Return the hybrid's scores divided by those of the best other method of each cell."""
    head = ["cells", "trials", "score", "against the best of", "develop", "confirm"]
    head += ["worst cell (confirm)", "cells above 1"]
    rows = []
    for name, title in _SETS.items():
        trials = stored_trials(folder, name)
        comparisons = [("paper", "the paper's eight", trials), ("all", "all others", trials)]
        if name == "sizes":  # boosting was run once
            comparisons += [("all", "all others, boosting too", trials[trials["seed"] == 0])]
        if name == "cifar":
            comparisons = comparisons[:1]
        for metric in ("brier", "log_loss", "ece"):
            for against, others, part in comparisons:
                found = compare_in_hindsight(part, metric, against=against)
                rows.append([title, number_of_trials(found["trials"]), SCORES[metric]])
                rows[-1] += [f"{others} ({found['others'].max()})", *_ratios(found)]
    return markdown_table(head, rows, left=4)


def _ratios(found: pd.DataFrame) -> list[str]:
    parts = [found[found["development"]], found[~found["development"]]]
    means = [f"{geometric_mean(p['ratio']):.3f} ({len(p)})" if len(p) else "-" for p in parts]
    worst = parts[1].loc[parts[1]["ratio"].idxmax()]
    cell = f"{worst['dataset']} {worst['classifier']} {worst['n_cal']}"
    above = int((found["ratio"] > 1).sum())
    return [*means, f"{worst['ratio']:.3f} {cell}", f"{above} of {len(found)}"]


def paper_scores(folder: Path, metric: str = "brier") -> pd.DataFrame:
    """Return mean scores of the confirming cells of the paper, by cell and method.

    Only methods that every cell has; Platt scaling (two classes) and temperature scaling (more)
    count as one. Trials are those that the hybrid has.
    """
    trials = stored_trials(folder, "paper")
    trials = trials.assign(
        method=trials["method"].replace(dict.fromkeys(["Platt", "TS"], "Platt / TS"))
    )
    keys = ["dataset", "classifier", "n_cal"]
    wide = trials.pivot(index=[*keys, "seed"], columns="method", values=metric)
    wide = wide[wide["hybrid"].notna()]
    wide = wide.groupby(level=keys).mean().dropna(axis="columns")
    return wide[[not is_development(cell) for cell in wide.index]]


def computed_with(file: str) -> str:
    """Return at which commit stored results were computed, and what is to be known of them."""
    [source] = stored_sources().query("file == @file").itertuples()
    note = f": {source.note}" if source.note else ""
    return f"**Computed at commit {source.commit} ({source.day})**{note}."


# ---- tables and stated forecasts ----


def read_tables(results: Path) -> pd.DataFrame:
    """Return the scores on tables and forecasts, a row per cell, trial and method."""
    return pd.read_csv(results / "repair_tables.csv", dtype={"failure": object})


def table_scores(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return mean scores over trials, by cell and method; NaN where a method failed."""
    return results.pivot_table(
        index=CELL, columns="method", values=metric, aggfunc="mean", dropna=False, sort=True
    ).dropna(how="all")


def is_confirming(scores: pd.DataFrame) -> pd.Series:
    """Tell which cells no setting was chosen on."""
    return ~scores.index.get_level_values("table").isin(DEVELOPED_ON)


def rank_table(results: pd.DataFrame) -> str:
    """Return ranks in every score, ratio to leaving p alone, and the hybrid's wins and losses."""
    confirm = {}
    for metric in SCORES:
        scores = table_scores(results, metric)
        confirm[metric] = scores[is_confirming(scores)]
    ranks = {metric: average_ranks(scores) for metric, scores in confirm.items()}
    brier = confirm["brier"]
    times = results.groupby("method")["seconds"].median()
    failures = results["failure"].notna().groupby(results["method"]).sum()
    rows = []
    for name in ranks["brier"].index:
        record = (
            "-" if name == OURS else "{} / {} / {}".format(*wins_ties_losses(brier, OURS, name))
        )
        rows.append([name, *(f"{ranks[metric][name]:.1f}" for metric in SCORES)])
        rows[-1] += [f"{geometric_mean(brier[name] / brier['uncalibrated']):.3f}", record]
        rows[-1] += [f"{times[name]:.2g}", str(failures[name])]
    head = ["method", *(f"rank, {title}" for title in SCORES.values())]
    head += ["Brier over p's", "hybrid wins / ties / loses", "seconds", "failures"]
    return markdown_table(head, rows)


def size_table(results: pd.DataFrame) -> str:
    """Return by number of items what methods leave of p's Brier score and log loss."""
    shown = [OURS, "hetcal global", "sklearn isotonic", "sklearn temperature", "MCGrad"]
    shown += ["forest on [X, P]", "boosting on [X, P]"]
    rows = []
    for metric in ("brier", "log_loss"):
        scores = table_scores(results, metric)
        for confirming, part in scores.groupby(is_confirming(scores)):
            for n, cells in part.groupby("n_cal"):
                ratios = [
                    geometric_mean(cells[m] / cells["uncalibrated"]) for m in shown if m in cells
                ]
                label = "confirm" if confirming else "develop"
                rows.append([f"{SCORES[metric]}, {label}", f"{n}", str(len(cells))])
                rows[-1] += [f"{ratio:.3f}" for ratio in ratios]
    return markdown_table(["score, cells", "items", "cells", *(m for m in shown)], rows)


def not_told_apart(scores: pd.DataFrame) -> str:
    """Return in a sentence which methods Nemenyi's test does not tell apart from the hybrid."""
    ranks = average_ranks(scores)
    near = (ranks - ranks[OURS]).abs() <= critical_difference(len(ranks), len(scores))
    names = ", ".join(str(name) for name in ranks.index[near] if name != OURS)
    return (
        f"With {len(scores)} cells and {len(ranks)} methods the test of ranks does not tell the "
        f"hybrid apart from: {names or 'none'}. The counts of wins and losses say how each pair "
        "compares."
    )


def how_much_it_says(results: pd.DataFrame) -> str:
    """Return how many data sets and trials are behind the confirming cells."""
    scores = table_scores(results, "brier")
    scores = scores[is_confirming(scores)]
    names = sorted(scores.index.unique("table"))
    words = (
        f"The {len(scores)} confirming cells are of {len(names)} data sets ({', '.join(names)}): "
        f"they are not {len(scores)} independent results."
    )
    if results["seed"].nunique() == 1:
        words += (
            " One trial is one split and one black box: no cell has a standard error, and a "
            "difference of a few per cent in one cell may be chance. Only what recurs over data "
            "sets and sizes says something, and only about data like these."
        )
    return words


def growth_losses(growth: pd.DataFrame) -> str:
    """Return where another method comes nearer to a known truth than the hybrid."""
    wide = growth.pivot(index="n_cal", columns="method", values="excess")
    others = wide.drop(columns=OURS)
    named = [
        f"{others.loc[n].idxmin()} with {n:,} items (excess {others.loc[n].min():.4f} against "
        f"{wide.loc[n, OURS]:.4f})"
        for n in wide.index[wide[OURS] > others.min(axis=1)]
    ]
    return (
        "Where the truth is known ([cost](#cost), generated data, one draw), nearer to it than the "
        f"hybrid: {', '.join(named) or 'none'}."
    )


def losses(results: pd.DataFrame) -> list[str]:
    """Return where the hybrid is worse than p, and than the best other method in hindsight."""
    scores = table_scores(results, "brier")
    scores = scores[is_confirming(scores)]
    others = scores.drop(columns=OURS)
    ratio = scores[OURS] / others.min(axis=1)
    worse = ratio[ratio > 1 + TIE].sort_values(ascending=False, kind="stable")
    rows = [
        [f"{table}, {model}", str(n), f"{value:.3f}", str(others.loc[(table, model, n)].idxmin())]
        for (table, model, n), value in worse.items()
    ]
    head = ["cell", "items", "ratio of Brier scores", "best other"]
    return [
        "Against the best other method of each cell, chosen in hindsight, the Brier score of the "
        f"hybrid is worse by more than {TIE:.1%} in {len(worse)} of {len(ratio)} confirming cells:",
        "",
        markdown_table(head, rows),
        "",
        "Against leaving the probabilities alone, by score, over all cells:",
        "",
        harm_table(results),
    ]


def harm_table(results: pd.DataFrame) -> str:
    """Return in how many cells the hybrid is worse than the probabilities as they were."""
    rows = []
    for metric, title in SCORES.items():
        scores = table_scores(results, metric)
        ratio = scores[OURS] / scores["uncalibrated"]
        worst = ratio.idxmax()
        rows.append([title, f"{(ratio > 1 + TIE).sum()} of {len(ratio)}", f"{ratio[worst]:.3f}"])
        rows[-1] += ["{}, {}, {} items".format(*worst)]
    return markdown_table(["score", "cells made worse", "worst ratio", "where"], rows)


# ---- the section ----


def section(stored: Path, results: Path) -> tuple[list[str], Files]:
    """Return the lines of the section, and its pictures by name."""
    tables = read_tables(results)
    paper, brier = paper_scores(stored), table_scores(tables, "brier")
    brier = brier[is_confirming(brier)]
    pictures = {
        "ranks-paper.svg": _plot(paper, f"Brier score, {len(paper)} confirming cells of the paper"),
        "ranks-tables.svg": _plot(
            brier, f"Brier score, {len(brier)} confirming cells of tables and forecasts"
        ),
    }
    trials = tables.groupby(CELL)["seed"].nunique()
    return [
        "### The paper's cells, and smaller sets",
        "",
        "Scores of the hybrid divided by those of the best other method of each cell, which is "
        "chosen in hindsight on the test items: below 1 the hybrid is better than all of them. "
        'Geometric means over cells, their number in brackets. "All others" are the paper\'s '
        "eight, forests and boosting on X and on [X, P], and MCGrad with two classes, as far as "
        "they have the trials of the hybrid (how many at most: in brackets).",
        "",
        computed_with("experiments/results/*.csv"),
        "",
        hindsight_table(stored),
        "",
        "![Average ranks on the paper's cells](_static/proof/ranks-paper.svg)",
        "",
        "Average ranks of the methods that every cell has. Bars join methods that Nemenyi's test "
        "does not tell apart.",
        "",
        "### Tables and stated forecasts, beside other packages",
        "",
        f"{len(trials)} cells with {tables['n_cal'].min():,} to {tables['n_cal'].max():,} "
        f"calibration items, {number_of_trials(trials)} each: "
        f"{', '.join(tables['table'].unique())}. "
        "Tables stand behind logistic regression (LR), naive Bayes (NB) and boosting (GBT) that "
        "were trained on 2000 other rows; forecasts are as people and published models stated "
        "them. "
        'Ranks are over the confirming cells (1 is best). "Brier over p\'s" is the '
        "geometric mean of the Brier score divided by that of the probabilities as they were. "
        "Seconds of processor time are medians of fit and prediction together, over all cells.",
        "",
        how_much_it_says(tables),
        "",
        computed_with("benchmarks/results/repair_tables.csv"),
        "",
        rank_table(tables),
        "",
        "![Average ranks on tables and forecasts](_static/proof/ranks-tables.svg)",
        "",
        not_told_apart(brier),
        "",
        "What is left of p's score by number of calibration items (geometric means; below 1 is "
        "better than leaving the probabilities alone):",
        "",
        size_table(tables),
        "",
        "### Where the hybrid loses",
        "",
        *losses(tables),
        "",
        growth_losses(pd.read_csv(results / "growth.csv")),
        "",
        *_WHY,
    ], pictures


def _plot(scores: pd.DataFrame, title: str) -> str:
    ranks = average_ranks(scores)
    return critical_difference_plot(ranks, critical_difference(len(ranks), len(scores)), title)
