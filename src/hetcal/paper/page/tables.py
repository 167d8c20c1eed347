"""The seven tables beside the published ones, and how many cells agree."""

from __future__ import annotations

import pandas as pd

from hetcal.paper.figures._results import OWN_METHODS, in_words
from hetcal.paper.page import markdown
from hetcal.paper.page.deviations import (
    DETERMINISTIC_LIMIT,
    explain,
    explain_inexact,
    is_complete,
    is_deterministic,
    is_inexact,
    is_off,
)
from hetcal.paper.published import published_table
from hetcal.paper.settings import DATASETS, PAPER_TABLES, paper_methods
from hetcal.paper.tables import mark_best, mean_heterogeneity

_METRICS = {"brier": "Brier score", "accuracy": "Accuracy"}


def agreement(cells: pd.DataFrame) -> list[str]:
    """Return the section that counts cells."""
    n_all = len(published_table())
    complete, off = cells[is_complete(cells)], cells[is_off(cells)]
    if complete.empty:
        return [f"None of the {n_all} published cells has ten trials yet."]
    inside = len(complete) - len(off)
    return [
        f"**{inside} of {len(complete)} cells ({inside / len(complete):.1%}) lie within two "
        f"published standard errors.** The paper prints {n_all} cells (seven data sets, six "
        "classifiers, eight methods, two metrics, ten trials each); "
        + (
            "all have ten trials here."
            if len(complete) == n_all
            else f"{len(complete)} have ten trials here so far."
        ),
        "",
        _by_method(complete),
        "",
        f"Uncal., Platt/TS, Iso Reg, SBAW-10 and SWC are deterministic given the splits: "
        f"{_n_exact(complete)} of their Brier scores agree within {DETERMINISTIC_LIMIT}.",
    ]


def _n_exact(cells: pd.DataFrame) -> str:
    n = int(is_deterministic(cells).sum())
    return f"{n - int(is_inexact(cells).sum())} of {n}"


def _by_method(complete: pd.DataFrame) -> str:
    off = is_off(complete)
    rows = []
    for method in dict.fromkeys(name for one in PAPER_TABLES for name in paper_methods(one)):
        mine = complete["method"] == method
        brier = complete[mine & (complete["metric"] == "brier")]
        if not mine.any():
            continue
        largest = (brier["mean"] - brier["published"]).abs().max()
        rows.append([method, str(mine.sum()), str(int((mine & ~off).sum())), f"{largest:.4f}"])
    head = ["method", "cells", "within two standard errors", "largest difference in Brier score"]
    return markdown.table(head, rows)


def seven_tables(results: pd.DataFrame, cells: pd.DataFrame) -> list[str]:
    """Return one section per data set that has results."""
    lines = []
    for dataset in PAPER_TABLES:
        part = cells[cells["dataset"] == dataset]
        if part.empty:
            lines += [f"### {dataset}", "", "No results yet.", ""]
            continue
        hidden = mean_heterogeneity(results[results["dataset"] == dataset])
        hh = dict(zip(hidden["classifier"], hidden["mean"], strict=True))
        lines += [f"### {dataset}", ""]
        lines += [f"{DATASETS[dataset].n_cal} calibration items, {in_words(part['trials'])}.", ""]
        for metric, title in _METRICS.items():
            one = part[part["metric"] == metric]
            if len(one):
                lines += [f"**{title}**", "", _one_table(dataset, one, hh), ""]
    return lines


def _one_table(dataset: str, cells: pd.DataFrame, hh: dict[str, float]) -> str:
    paper = paper_methods(dataset)
    own = [method for method in OWN_METHODS if method in set(cells["method"])]
    marked = mark_best(cells[cells["method"].isin(paper)].drop(columns="best"))
    off = set(cells.index[is_off(cells)])
    by_place = {(row.classifier, row.method): row for row in cells.itertuples()}
    best = set(marked.index[marked["best"]])
    # Rows in the paper's order: by the published uncalibrated score.
    order = published_table()
    order = order[(order["dataset"] == dataset) & (order["metric"] == cells["metric"].iloc[0])]
    rows = []
    for classifier in dict.fromkeys(order["classifier"]):
        there = [by_place.get((classifier, method)) for method in (*paper, *own)]
        if not any(there):
            continue
        value = hh.get(classifier)
        head = classifier if value is None else f"{classifier} (HH {value:.3f})"
        rows.append([head, *(_cell(row, best, off) for row in there)])
    return markdown.table(["ours / published", *paper, *own], rows)


def _cell(row, best: set, off: set) -> str:
    if row is None:
        return ""
    ours = f"**{row.mean:.4f}**" if row.Index in best else f"{row.mean:.4f}"
    if pd.isna(row.published):
        return ours
    return f"{ours} / {row.published:.4f}" + (" †" if row.Index in off else "")


def deviations(cells: pd.DataFrame) -> list[str]:
    """Return the section that lists every deviation with its likely cause."""
    far, inexact = explain(cells), explain_inexact(cells)
    lines = ["No complete cell lies further than two published standard errors away.", ""]
    if len(far):
        lines = [
            f"{len(far)} cells (marked †) lie further than two published standard errors from the "
            "published mean.",
            "",
            *_by_cause(far),
        ]
    if len(inexact):
        lines += [
            f"{len(inexact)} Brier scores of deterministic methods differ from the published ones "
            f"by more than {DETERMINISTIC_LIMIT}.",
            "",
            *_by_cause(inexact),
        ]
    return lines


def _by_cause(found: pd.DataFrame) -> list[str]:
    lines = []
    for cause, part in found.groupby("cause", sort=False):
        lines += [str(cause), ""]
        rows = [
            [
                *(str(name) for name in (row.dataset, row.classifier, row.method, row.metric)),
                f"{row.mean:.4f}",
                f"{row.published:.4f}",
                f"{row.published_error:.3f}",
                f"{row.deviation:+.1f}",
            ]
            for row in part.itertuples()
        ]
        head = ["data set", "classifier", "method", "metric"]
        head += ["ours", "published", "standard error", "off by (standard errors)"]
        lines += [markdown.table(head, rows, left=4), ""]
    return lines
