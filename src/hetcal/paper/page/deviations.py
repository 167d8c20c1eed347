"""Where our figures and the published ones part."""

from __future__ import annotations

import pandas as pd

from hetcal.paper.text import markdown_table

LIMIT = 2.0  # published standard errors
# Given the splits, nothing is drawn at random but by a generator whose seed is known.
DETERMINISTIC = ("Uncal.", "Platt", "TS", "Iso Reg", "SBAW-10", "SWC")
DETERMINISTIC_LIMIT = 0.0005
_ROUNDING = 0.00005  # half a unit of the last printed digit


def is_complete(cells: pd.DataFrame) -> pd.Series:
    """Tell which cells have as many trials as the paper (ten) and a published figure."""
    return (cells["trials"] >= 10) & cells["published"].notna()


def is_off(cells: pd.DataFrame) -> pd.Series:
    """Tell which complete cells lie more than two published standard errors away.

    Half a unit of the last printed digit of the mean is allowed for.
    """
    allowed = LIMIT * cells["published_error"] + _ROUNDING
    return is_complete(cells) & ((cells["mean"] - cells["published"]).abs() > allowed)


def is_inexact(cells: pd.DataFrame) -> pd.Series:
    """Tell which complete Brier scores of deterministic methods are not the published ones."""
    apart = (cells["mean"] - cells["published"]).abs() > DETERMINISTIC_LIMIT + _ROUNDING
    return is_deterministic(cells) & apart


def is_deterministic(cells: pd.DataFrame) -> pd.Series:
    """Tell which complete cells are Brier scores of deterministic methods."""
    fixed = (cells["metric"] == "brier") & cells["method"].isin(DETERMINISTIC)
    return is_complete(cells) & fixed


def deviations(cells: pd.DataFrame) -> list[str]:
    """Return the section that lists every deviation."""
    off, inexact = cells[is_off(cells)], cells[is_inexact(cells)]
    lines = ["No complete cell lies further than two published standard errors away."]
    if len(off):
        lines = [
            f"{len(off)} cells (marked †) lie further than two published standard errors from the "
            "published mean.",
            *_listed(off, cells),
        ]
    if len(inexact):
        lines += [
            "",
            f"{len(inexact)} Brier scores of deterministic methods differ from the published ones "
            f"by more than {DETERMINISTIC_LIMIT}.",
            *_listed(inexact, cells),
        ]
    if len(off) or len(inexact):
        lines += [
            "",
            "The last column is the difference of the uncalibrated score of the same data set and "
            "classifier from the published one. Where it is more than rounding, the classifier "
            "is not the published one to begin with, and every method starts from its "
            "probabilities.",
        ]
    return lines


def _listed(found: pd.DataFrame, cells: pd.DataFrame) -> list[str]:
    """Return a table, worst first, with what the classifier itself is off by."""
    row = ["dataset", "classifier", "metric"]
    uncalibrated = cells[cells["method"] == "Uncal."].set_index(row)
    start = (uncalibrated["mean"] - uncalibrated["published"]).rename("start")
    ordered = found.join(start, on=row).sort_values("deviation", key=abs, ascending=False)
    head = ["data set", "classifier", "method", "metric"]
    head += ["ours", "published", "standard error", "off by (standard errors)", "uncalibrated"]
    rows = [
        [
            *(str(name) for name in (one.dataset, one.classifier, one.method, one.metric)),
            f"{one.mean:.4f}",
            f"{one.published:.4f}",
            f"{one.published_error:.3f}",
            f"{one.deviation:+.1f}",
            f"{one.start:+.4f}",
        ]
        for one in ordered.itertuples()
    ]
    return ["", markdown_table(head, rows, left=4)]
