"""Forecasts that people and published models really stated: what calibration brings them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.page.ranks import TIE
from benchmarks.page.repair import OURS, read_tables, table_scores
from hetcal.paper.text import markdown_table

_TITLES = {
    "forecasts-doctors": "doctors, death within 180 days",
    "forecasts-games": "FiveThirtyEight, games",
    "forecasts-governors": "FiveThirtyEight, governors (other races)",
}


def forecast_table(results: pd.DataFrame) -> str:
    """Return by table and number of items the scores before and after."""
    results = results[results["table"].isin(_TITLES)]
    scores = {m: table_scores(results, m) for m in ("brier", "log_loss", "ece", "worst_group")}
    brier = scores["brier"]
    rows = []
    for cell in brier.index:
        others = brier.loc[cell].drop(OURS)
        rows.append([_TITLES[cell[0]], str(cell[2])])
        rows[-1] += [f"{brier.loc[cell, m]:.4f}" for m in ("uncalibrated", OURS, "hetcal global")]
        rows[-1] += [f"{others.min():.4f} {others.idxmin()}"]
        for metric in ("log_loss", "ece", "worst_group"):
            before, after = (scores[metric].loc[cell, m] for m in ("uncalibrated", OURS))
            rows[-1] += [f"{before:.3f} to {after:.3f}"]
    head = ["forecasts", "items", "Brier score as stated", "hybrid", "`global`", "best other"]
    head += ["log loss, stated to hybrid", "ECE", "worst-group smECE"]
    return markdown_table(head, rows)


def worse_groups(results: pd.DataFrame) -> str:
    """Return in a sentence where the hybrid makes the worst group's calibration error larger."""
    scores = table_scores(results[results["table"].isin(_TITLES)], "worst_group")
    worse = scores[scores[OURS] > (1 + TIE) * scores["uncalibrated"]]
    named = [
        f"{_TITLES[table]}, {n} items (smECE {row['uncalibrated']:.3f} to {row[OURS]:.3f}, with "
        f"`global` {row['hetcal global']:.3f})"
        for (table, _, n), row in worse.iterrows()
    ]
    return f"The worst group is calibrated worse than as stated in: {'; '.join(named) or 'none'}."


def section(results: Path) -> list[str]:
    """Return the lines of the section."""
    found = read_tables(results)
    absent = [title for table, title in _TITLES.items() if table not in set(found["table"])]
    return [
        "Nobody trained these for us: a doctor wrote down a number, a model was published. "
        "Features are what stands beside the forecast in the table. The best other method is "
        "chosen in hindsight among all methods of "
        "[the comparison with other packages](#tables-and-stated-forecasts-beside-other-packages), "
        "and leaving the forecasts as stated (uncalibrated). Scores as stated change with the "
        "number of items because the test rows do: they are the up to 8000 rows that follow the "
        "calibration items. Governors are learned from 36 races and tested on 36 others; hetcal is "
        "told which rows belong to one race.",
        "",
        forecast_table(found),
        "",
        worse_groups(found),
        "The hybrid lowers the log loss of all items together; with few items a map that does so "
        "can move a group that was nearly right as stated. Where groups matter, look at them "
        "([how](how-to/measuring.md#groups)) before the calibrated forecasts are used.",
        "",
        *([f"Not measured yet: {', '.join(absent)}.", ""] if absent else []),
        "What [the advice](how-to/advise.md) says about the same tables, and what came true, is "
        "measured by `python -m benchmarks forecasts advice`.",
        "",
    ]
