"""One method against the best of all others, chosen in hindsight.

Per cell (data set, classifier, calibration size) the other method with the best mean over the test
sets is taken, which nobody can know beforehand: that favours the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from hetcal.paper.settings import (
    CLASSIFIERS,
    DATASETS,
    GLOBAL_METHODS,
    NETWORKS,
    PAPER_METHODS,
    PAPER_TABLES,
    Trial,
    make_trials,
    paper_methods,
)

_CELL = ["dataset", "classifier", "n_cal"]
_OTHERS = {"paper": frozenset(PAPER_METHODS), "global": frozenset(GLOBAL_METHODS)}
Cell = tuple[str, str, int]

CELL_SETS: dict[str, tuple[Cell, ...]] = {
    "paper": tuple(
        (dataset, classifier, DATASETS[dataset].n_cal)
        for dataset in PAPER_TABLES
        for classifier in CLASSIFIERS
    ),
    "sizes": tuple(
        (dataset, classifier, n_cal)
        for dataset in ("mnist-4v9", "letter", "fashion-mnist")
        for n_cal in (50, 200, 1000)
        for classifier in ("NB", "DT", "RF", "SVM")
    ),
    "cifar": tuple(
        (dataset, network, 5000) for dataset in ("cifar10", "cifar100") for network in NETWORKS
    ),
    "tables": tuple(
        (dataset, classifier, n_cal)
        for dataset in ("adult", "bank-marketing", "credit-default")
        for n_cal in (300, 3000)
        for classifier in ("LR", "NB", "GBT")
    ),
}
# The hybrid's settings, and those of the maps that are its base, were chosen on these data sets and
# on four more cells; what it does on all other cells was looked at only afterwards.
_DEVELOPMENT_DATASETS = frozenset(
    {"mnist-4v9", "mnist-1v7", "mnist10", "letter", "adult", "credit-default"}
)
_DEVELOPMENT_CELLS = frozenset(
    {
        ("fashion-mnist", "RF", 200),
        ("mnist-3v5", "SVM", 50),
        ("cifar10", "resnet20", 5000),
        ("cifar100", "resnet20", 5000),
    }
)


def is_development(cell: Cell) -> bool:
    """Tell whether a cell served to choose the hybrid's settings.

    Examples
    --------
    >>> is_development(("letter", "NB", 5000)), is_development(("mnist-3v8", "NB", 3000))
    (True, False)
    """
    return cell[0] in _DEVELOPMENT_DATASETS or cell in _DEVELOPMENT_CELLS


def cell_trials(
    cells: Sequence[Cell], others: Sequence[str] = (), n_trials: int = 3
) -> list[Trial]:
    """Return the trials of the paper's eight methods and of others, MCGrad for two classes only.

    Examples
    --------
    >>> len(cell_trials(CELL_SETS["paper"], ["hybrid"], n_trials=10))
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


def compare_in_hindsight(
    results: pd.DataFrame,
    metric: str = "brier",
    *,
    method: str = "hybrid",
    against: str = "all",
    level: float = 0.05,
) -> pd.DataFrame:
    """Put one method beside the best other method of each cell.

    Parameters
    ----------
    results : DataFrame
        From :func:`hetcal.paper.store.load_results`.
    metric : str, default "brier"
        A column where less is better.
    method : str, default "hybrid"
    against : {"all", "paper", "global"}
        Every other method, the paper's eight, or those of them that look at p alone.
    level : float, default 0.05
        Of the test, over all cells together (Holm).

    Returns
    -------
    DataFrame
        One row per cell: ``mean`` of the method, ``others`` (how many there are), ``best`` of them
        and its ``best_mean``, the ``ratio`` of the means, the mean ``difference`` over common
        trials with its ``standard_error``, ``p_worse`` of the paired t-test that the method is not
        worse, ``worse``, true where that is significant, and ``development``. Cells without both
        are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> cell = {"dataset": "d", "classifier": "NB", "n_cal": 9}
    >>> values = {"hybrid": [0.1, 0.2], "SWC": [0.2, 0.4], "TS": [0.3, 0.5]}
    >>> rows = [cell | {"seed": s, "method": m, "brier": v[s]} for m, v in values.items()
    ...         for s in (0, 1)]
    >>> table = compare_in_hindsight(pd.DataFrame(rows))
    >>> table[["best", "ratio", "worse"]].to_dict("records")
    [{'best': 'SWC', 'ratio': 0.5, 'worse': False}]
    """
    rows = []
    cell: Any
    for cell, part in results.groupby(_CELL, sort=False):
        wide = part.pivot(index="seed", columns="method", values=metric)
        if method not in wide or wide[method].notna().sum() == 0:
            continue
        # Paired: only trials that the method has, and only others that have all of those.
        wide = wide[wide[method].notna()].dropna(axis="columns")
        others = wide.drop(columns=method)
        if against != "all":
            others = others[[name for name in others if name in _OTHERS[against]]]
        if others.shape[1] == 0:
            continue
        best = others.mean().idxmin()
        difference = wide[method] - others[best]
        mean, best_mean = wide[method].mean(), others[best].mean()
        rows.append(
            dict(zip(_CELL, cell, strict=True))
            | {
                "trials": len(wide),
                "mean": mean,
                "others": others.shape[1],
                "best": best,
                "best_mean": best_mean,
                "ratio": mean / best_mean if best_mean > 0 else np.nan,
                "difference": difference.mean(),
                "standard_error": difference.sem(),
                "p_worse": _p_worse(difference.to_numpy()),
                "development": is_development(cell),
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(worse=holm(table["p_worse"].to_numpy()) <= level) if rows else table


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
