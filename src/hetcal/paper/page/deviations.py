"""Where our figures and the published ones part, and why."""

from __future__ import annotations

import pandas as pd

LIMIT = 2.0  # published standard errors
# Given the splits, nothing is drawn at random but by a generator whose seed is known.
DETERMINISTIC = ("Uncal.", "Platt", "TS", "Iso Reg", "SBAW-10", "SWC")
DETERMINISTIC_LIMIT = 0.0005
_ROUNDING = 0.00005

_BLACK_BOX = (
    "The black box itself differs: the uncalibrated score of this row is off as well, and every "
    "method starts from it. The classifiers' random draws and tie rules have changed between "
    "versions of scikit-learn."
)
_CAUSES = {
    "Hist bin": (
        "Equal-mass bins are cut inside runs of equal probabilities; the published bins depend on "
        "the order in which an older library sorted such ties. Rows are not normalised, so a tie "
        "between classes is decided by their order."
    ),
    "SBA-10": (
        "The ten nearest of equally distant items depend on their order. On letter the published "
        "code gives an exact duplicate all similarity and takes nine arbitrary neighbours."
    ),
    "SBAW-10": "Equally distant neighbours are taken in another order.",
    "SWC-HH": (
        "The filter is a threshold at half the HH, and HH comes from small forests: the first item "
        "of a bucket of three decimals decides, and another order of equally good splits moves "
        "items across the threshold. Where one neighbour is left, its label is the answer."
    ),
    "SWC": "Forests break ties between equally good splits by random numbers.",
    "Iso Reg": (
        "Probabilities that differ by less than about 1e-15 are kept apart here, as the published "
        "figures require; newer libraries merge them."
    ),
    "TS": (
        "The text clips probabilities at 1e-12, the published figures come from 1e-7; the search "
        "for the temperature ends at a bound."
    ),
    "Platt": "The fit stops at another point of a flat likelihood.",
    "Uncal.": _BLACK_BOX,
}


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
    # Both are rounded to four decimals in print.
    apart = (cells["mean"] - cells["published"]).abs() > DETERMINISTIC_LIMIT + _ROUNDING
    return is_deterministic(cells) & apart


def is_deterministic(cells: pd.DataFrame) -> pd.Series:
    """Tell which complete cells are Brier scores of deterministic methods."""
    fixed = (cells["metric"] == "brier") & cells["method"].isin(DETERMINISTIC)
    return is_complete(cells) & fixed


def explain(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that are off, each with its likely cause, worst first."""
    return _with_causes(cells, cells[is_off(cells)], is_off(cells))


def explain_inexact(cells: pd.DataFrame) -> pd.DataFrame:
    """Return deterministic scores that are not the published ones, with their likely cause."""
    other = (cells["mean"] - cells["published"]).abs() > _ROUNDING
    return _with_causes(cells, cells[is_inexact(cells)], is_complete(cells) & other)


def _with_causes(cells: pd.DataFrame, off: pd.DataFrame, other: pd.Series) -> pd.DataFrame:
    """Name causes; where ``other`` holds of a row's uncalibrated score, it is the black box."""
    moved = cells[(cells["method"] == "Uncal.") & other]
    black_boxes = set(zip(moved["dataset"], moved["classifier"], moved["metric"], strict=True))
    causes = [
        _BLACK_BOX
        if (row.dataset, row.classifier, row.metric) in black_boxes
        else _CAUSES.get(str(row.method), "No cause is known.")
        for row in off.itertuples()
    ]
    return off.assign(cause=causes).sort_values(
        "deviation", key=lambda column: column.abs(), ascending=False
    )
