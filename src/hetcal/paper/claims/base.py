"""A claim, and what claims are checked against."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from hetcal.paper.figures import facts_file
from hetcal.paper.settings import GLOBAL_METHODS, SIMILARITY_METHODS
from hetcal.paper.store import load_results

PAPER = (*GLOBAL_METHODS, *SIMILARITY_METHODS)
WAITING = "no results yet"
TRIALS = 10  # what the paper averages; with fewer nothing is decided


@dataclass(frozen=True)
class Claim:
    """One claim of the text.

    Attributes
    ----------
    source : str
        Where the paper makes it.
    text : str
        The claim, with the rule by which it is checked.
    published, ours : str
        The paper's figure and ours.
    holds : bool or None
        None while results are missing.
    """

    source: str
    text: str
    published: str
    ours: str
    holds: bool | None


@dataclass(frozen=True, eq=False)
class ResultsFolder:
    """What claims are checked against.

    Attributes
    ----------
    results : DataFrame
        From :func:`hetcal.paper.store.load_results`.
    folder : Path
        Where the facts of figures are.
    """

    results: pd.DataFrame
    folder: Path

    @classmethod
    def load(cls, folder: str | Path) -> ResultsFolder:
        """Read a results folder."""
        return cls(load_results(folder), Path(folder))

    def facts(self, name: str) -> pd.DataFrame | None:
        """Return the facts of a figure, or None where it was not drawn yet."""
        path = facts_file(self.folder, name)
        return pd.read_csv(path) if path.is_file() else None

    def speed(self, name: str) -> pd.DataFrame | None:
        """Return what a benchmark measured about the published algorithms, or None."""
        path = self.folder / "speed" / f"{name}.csv"
        return pd.read_csv(path) if path.is_file() else None
