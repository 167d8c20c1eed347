"""What the text claims about the tables; checked on the published tables and on ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from hetcal.paper.claims.base import PAPER, TRIALS, WAITING, Claim, ResultsFolder
from hetcal.paper.figures._results import at_usual_size
from hetcal.paper.published import published_table
from hetcal.paper.settings import (
    BINARY,
    CLASSIFIERS,
    GLOBAL_METHODS,
    PAPER_TABLES,
    SIMILARITY_METHODS,
)
from hetcal.paper.tables import mark_best, summarise

# A condition looks at the means of one row (classifier) per line, one column per method, and at
# which of them are marked as the best of their row; it tells for each line whether it holds.
Condition = Callable[[pd.DataFrame, pd.DataFrame], pd.Series]


def _among_best(*methods: str) -> Condition:
    """One of the methods is the best of the row, or within one of the best's standard errors."""
    return lambda mean, best: best.reindex(columns=list(methods)).any(axis=1)


def _lower(first: str, second: str) -> Condition:
    return lambda mean, best: mean[first] < mean[second]


def _similar_beats_global(mean: pd.DataFrame, best: pd.DataFrame) -> pd.Series:
    similar = mean.filter(SIMILARITY_METHODS).min(axis=1)
    return similar < mean.filter(GLOBAL_METHODS).min(axis=1)


@dataclass(frozen=True)
class _TableClaim:
    text: str
    datasets: tuple[str, ...]
    condition: Condition
    metric: str = "brier"
    classifiers: tuple[str, ...] = ()
    share: float = 1.0  # of the rows that must agree


_TABLE_CLAIMS = (
    _TableClaim(
        "Binary data: SWC-HH consistently has the best Brier score (within one standard error)",
        BINARY,
        _among_best("SWC-HH"),
    ),
    _TableClaim(
        "Binary data: SWC-HH consistently has the best accuracy (within one standard error)",
        BINARY,
        _among_best("SWC-HH"),
        metric="accuracy",
    ),
    _TableClaim(
        "Binary data: similarity-based methods are best for all classifiers",
        BINARY,
        _similar_beats_global,
    ),
    _TableClaim(
        "Binary data: Platt scaling improves NB and RF",
        BINARY,
        _lower("Platt", "Uncal."),
        classifiers=("NB", "RF"),
    ),
    _TableClaim(
        "Binary data: isotonic regression usually beats histogram binning (rule: in most rows)",
        BINARY,
        _lower("Iso Reg", "Hist bin"),
        share=0.5,
    ),
    _TableClaim(
        "mnist10 and fashion-mnist: similarity-based methods are best",
        ("mnist10", "fashion-mnist"),
        _similar_beats_global,
    ),
    _TableClaim(
        "fashion-mnist: SWC-HH has the best accuracy",
        ("fashion-mnist",),
        _among_best("SWC-HH"),
        metric="accuracy",
    ),
    _TableClaim(
        "letter: SBAW-10 is best, except with RF",
        ("letter",),
        _among_best("SBAW-10"),
        classifiers=("NB", "DT", "SVM", "RBFSVM", "GBT"),
    ),
    _TableClaim(
        "letter with RF: SWC or SWC-HH is best",
        ("letter",),
        _among_best("SWC", "SWC-HH"),
        classifiers=("RF",),
    ),
    _TableClaim(
        "SWC out-performs SBA-10 in most cases (rule: in most rows)",
        PAPER_TABLES,
        _lower("SWC", "SBA-10"),
        share=0.5,
    ),
)


def tables(folder: ResultsFolder) -> list[Claim]:
    """Return the claims of the appendix."""
    table = at_usual_size(folder.results)
    ours = summarise(table[table["method"].isin(PAPER)])
    published = published_table()
    claims = []
    for wanted in _TABLE_CLAIMS:
        theirs, mine = (_rows_that_agree(cells, wanted) for cells in (published, ours))
        n_rows = len(wanted.datasets) * len(wanted.classifiers or CLASSIFIERS)
        holds = None
        if len(mine) == n_rows and _enough_trials(ours, wanted):
            agree = mine.mean()
            holds = bool(agree == 1.0 if wanted.share == 1.0 else agree > wanted.share)
        claims.append(
            Claim(
                "Appendix",
                wanted.text,
                f"{int(theirs.sum())} of {len(theirs)}",
                f"{int(mine.sum())} of {len(mine)}" if len(mine) else WAITING,
                holds,
            )
        )
    return claims


def _enough_trials(cells: pd.DataFrame, claim: _TableClaim) -> bool:
    return bool(cells[cells["dataset"].isin(claim.datasets)]["trials"].min() >= TRIALS)


def _rows_that_agree(cells: pd.DataFrame, claim: _TableClaim) -> pd.Series:
    part = cells[cells["dataset"].isin(claim.datasets) & (cells["metric"] == claim.metric)]
    if claim.classifiers:
        part = part[part["classifier"].isin(claim.classifiers)]
    part = mark_best(part)
    mean, best = (
        part.pivot(index=["dataset", "classifier"], columns="method", values=value)
        for value in ("mean", "best")
    )
    # A row that is not finished says nothing yet; eight methods are a whole row.
    whole = mean.notna().sum(axis=1) == len(PAPER) - 1
    if not whole.any():
        return pd.Series(dtype=bool)
    return claim.condition(mean[whole], best[whole] == True)  # noqa: E712 (False where missing)
