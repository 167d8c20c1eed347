"""One method against all others: who is best in hindsight, by how much, and is it more than luck.

"In hindsight" is generous to the others: per cell (data set, classifier, calibration size) the one
with the best mean over the test sets is taken, which nobody can know beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from hetcal.paper.settings import PAPER_METHODS, Trial, make_trials, paper_methods

__all__ = ["CELL_SETS", "contest", "contest_trials", "geometric_mean", "holm", "is_development"]

_CELL = ["dataset", "classifier", "n_cal"]
_GLOBAL = frozenset({"Uncal.", "Platt", "TS", "Iso Reg", "Hist bin"})
_RIVALS = {"paper": frozenset(PAPER_METHODS), "global": _GLOBAL}
Cell = tuple[str, str, int]

_BINARY = ("mnist-1v7", "mnist-4v9", "mnist-3v8", "mnist-3v5")
_CLASSIFIERS = ("DT", "NB", "RF", "SVM", "RBFSVM", "GBT")
CELL_SETS: dict[str, tuple[Cell, ...]] = {
    "paper": tuple(
        (dataset, classifier, 3000 if dataset in _BINARY else 5000)
        for dataset in (*_BINARY, "letter", "fashion-mnist", "mnist10")
        for classifier in _CLASSIFIERS
    ),
    "sizes": tuple(
        (dataset, classifier, n_cal)
        for dataset in ("mnist-4v9", "letter", "fashion-mnist")
        for n_cal in (50, 200, 1000)
        for classifier in ("NB", "DT", "RF", "SVM")
    ),
    "cifar": tuple(
        (dataset, network, 5000)
        for dataset in ("cifar10", "cifar100")
        for network in ("resnet20", "resnet56", "repvgg_a2")
    ),
    "tables": tuple(
        (dataset, classifier, n_cal)
        for dataset in ("adult", "bank-marketing", "credit-default")
        for n_cal in (300, 3000)
        for classifier in ("LR", "NB", "GBT")
    ),
}
# The hybrid's settings were chosen on these data sets and on two more cells; what it does on all
# others was looked at only afterwards.
_DEVELOPMENT_DATASETS = frozenset({"mnist-4v9", "mnist-1v7", "letter", "adult", "credit-default"})
_DEVELOPMENT_CELLS = frozenset({("fashion-mnist", "RF", 200), ("mnist-3v5", "SVM", 50)})


def is_development(cell: Cell) -> bool:
    """Tell whether a cell served to choose the hybrid's settings.

    Examples
    --------
    >>> is_development(("letter", "NB", 5000)), is_development(("mnist10", "NB", 5000))
    (True, False)
    """
    return cell[0] in _DEVELOPMENT_DATASETS or cell in _DEVELOPMENT_CELLS


def contest_trials(
    cells: Sequence[Cell], others: Sequence[str] = (), n_trials: int = 3
) -> list[Trial]:
    """Return the trials of the paper's eight methods and of others, MCGrad for two classes only.

    Examples
    --------
    >>> len(contest_trials(CELL_SETS["paper"], ["hybrid"], n_trials=10))
    3780
    """
    trials = []
    for dataset, classifier, n_cal in cells:
        methods = paper_methods(dataset)
        more = [name for name in others if name != "mcgrad" or "Platt" in methods]
        trials += make_trials(
            dataset,
            [*methods, *more],
            classifiers=[classifier],
            seeds=range(n_trials),
            n_cal=n_cal,
        )
    return trials


def contest(
    results: pd.DataFrame,
    metric: str = "brier",
    *,
    challenger: str = "hybrid",
    against: str = "all",
    level: float = 0.05,
) -> pd.DataFrame:
    """Put one method beside the best other method of each cell, in hindsight.

    Parameters
    ----------
    results : DataFrame
        From :func:`hetcal.paper.store.load_results`.
    metric : str, default "brier"
        A column where less is better.
    challenger : str, default "hybrid"
    against : {"all", "paper", "global"}
        Every other method, the paper's eight, or those of them that look at p alone.
    level : float, default 0.05
        Of the test, over all cells together (Holm).

    Returns
    -------
    DataFrame
        One row per cell: ``mean`` of the challenger, ``best``, the other method, and its
        ``best_mean``, their ``ratio``, the mean ``difference`` over common trials with its
        ``standard_error``, ``p_worse`` of the paired t-test that the challenger is not worse, and
        ``worse``, true where that is significant. Cells without both are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> cell = {"dataset": "d", "classifier": "NB", "n_cal": 9}
    >>> values = {"hybrid": [0.1, 0.2], "SWC": [0.2, 0.4], "TS": [0.3, 0.5]}
    >>> rows = [cell | {"seed": s, "method": m, "brier": v[s]} for m, v in values.items()
    ...         for s in (0, 1)]
    >>> contest(pd.DataFrame(rows))[["best", "ratio", "worse"]].to_dict("records")
    [{'best': 'SWC', 'ratio': 0.5, 'worse': False}]
    """
    rows = []
    for cell, part in results.groupby(_CELL, sort=False):
        wide = part.pivot(index="seed", columns="method", values=metric)
        if challenger not in wide or wide[challenger].notna().sum() == 0:
            continue
        # Paired: only trials that the challenger has, and only others that have all of those.
        wide = wide[wide[challenger].notna()].dropna(axis="columns")
        others = wide.drop(columns=challenger)
        if against != "all":
            others = others[[name for name in others if name in _RIVALS[against]]]
        if others.shape[1] == 0:
            continue
        best = others.mean().idxmin()
        difference = wide[challenger] - others[best]
        mean, best_mean = wide[challenger].mean(), others[best].mean()
        rows.append(
            dict(zip(_CELL, cell, strict=True))
            | {
                "trials": len(wide),
                "mean": mean,
                "best": best,
                "best_mean": best_mean,
                "ratio": mean / best_mean if best_mean > 0 else np.nan,
                "difference": difference.mean(),
                "standard_error": difference.sem(),
                "p_worse": _p_worse(difference.to_numpy()),
            }
        )
    table = pd.DataFrame(rows)
    if rows:
        table["worse"] = holm(table["p_worse"].to_numpy()) <= level
        table["development"] = [
            is_development(cell) for cell in zip(*(table[n] for n in _CELL), strict=True)
        ]
    return table


def _p_worse(difference: np.ndarray) -> float:
    """Return the one-sided p-value of the paired t-test; 1 where one trial tells nothing."""
    if len(difference) < 2 or np.ptp(difference) == 0:
        return 0.0 if len(difference) > 1 and difference[0] > 0 else 1.0
    return float(stats.ttest_1samp(difference, 0.0, alternative="greater").pvalue)


def holm(p_values: np.ndarray) -> np.ndarray:
    """Return p-values adjusted for their number (Holm's step-down).

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    n = len(p_values)
    stepped = np.maximum.accumulate(p_values[order] * np.arange(n, 0, -1))
    adjusted = np.empty(n)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def geometric_mean(ratios: pd.Series) -> float:
    """Return the geometric mean; ratios are averaged as factors."""
    return float(np.exp(np.log(ratios.dropna()).mean()))
