"""What the paper's text claims, checked: the published figure, ours, and whether it holds.

Claims about the tables are checked twice in the same way, on the published tables and on our
results, so that one can see which claims the paper's own figures bear out. What the paper says
without a number is checked by a rule that stands in the claim's text.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from hetcal.paper.claims import figures, tables
from hetcal.paper.claims.base import WAITING, Claim, ResultsFolder

__all__ = ["Claim", "ResultsFolder", "check_claims"]

_CHECKS: tuple[Callable[[ResultsFolder], list[Claim]], ...] = (
    figures.learning_curves,
    figures.improvement,
    figures.moons,
    figures.cifar,
    figures.support,
    tables.tables,
)


def check_claims(folder: ResultsFolder) -> pd.DataFrame:
    """Check every claim against the results of a folder.

    Returns
    -------
    DataFrame
        Columns ``source``, ``claim``, ``published``, ``ours``, ``holds`` (yes, no, or empty while
        results are missing).
    """
    claims = [claim for check in _CHECKS for claim in check(folder)]
    answer = {True: "yes", False: "no", None: ""}
    return pd.DataFrame(
        {
            "source": [claim.source for claim in claims],
            "claim": [claim.text for claim in claims],
            "published": [claim.published for claim in claims],
            "ours": [_ours(claim) for claim in claims],
            "holds": [answer[claim.holds] for claim in claims],
        }
    )


def _ours(claim: Claim) -> str:
    unfinished = claim.holds is None and claim.ours != WAITING
    return f"{claim.ours} (so far)" if unfinished else claim.ours
