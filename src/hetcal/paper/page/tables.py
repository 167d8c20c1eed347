"""The seven tables beside the published ones, and how many cells agree."""

from __future__ import annotations

import pandas as pd

from hetcal.paper.figures._results import OWN_METHODS
from hetcal.paper.page.deviations import (
    DETERMINISTIC_LIMIT,
    is_complete,
    is_deterministic,
    is_inexact,
    is_off,
)
from hetcal.paper.published import published_table
from hetcal.paper.settings import DATASETS, PAPER_TABLES, paper_methods
from hetcal.paper.tables import mark_best, mean_heterogeneity
from hetcal.paper.text import markdown_table, number_of_trials

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
    return markdown_table(head, rows)


def seven_tables(results: pd.DataFrame, cells: pd.DataFrame) -> list[str]:
    """Return one section per data set that has results."""
    lines = []
    for dataset in PAPER_TABLES:
        part = cells[cells["dataset"] == dataset]
        lines += [f"### {dataset}", ""]
        if part.empty:
            lines += ["No results yet.", ""]
            continue
        hidden = mean_heterogeneity(results[results["dataset"] == dataset])
        hh = dict(zip(hidden["classifier"], hidden["mean"], strict=True))
        lines += [
            f"{DATASETS[dataset].n_cal} calibration items, {number_of_trials(part['trials'])}.",
            "",
        ]
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
    return markdown_table(["ours / published", *paper, *own], rows)


def _cell(row, best: set, off: set) -> str:
    if row is None:
        return ""
    ours = f"**{row.mean:.4f}**" if row.Index in best else f"{row.mean:.4f}"
    if pd.isna(row.published):
        return ours
    return f"{ours} / {row.published:.4f}" + (" †" if row.Index in off else "")
