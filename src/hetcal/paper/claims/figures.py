"""What the text claims about the figures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from hetcal.paper.claims.base import PAPER, TRIALS, WAITING, Claim, ResultsFolder
from hetcal.paper.figures._results import at_usual_size
from hetcal.paper.figures.cifar import IMAGES, NETWORKS
from hetcal.paper.figures.improvement import correlations, improvements
from hetcal.paper.figures.learning_curves import CLASSIFIERS as CURVE_CLASSIFIERS
from hetcal.paper.figures.learning_curves import DATASET as CURVE_DATASET
from hetcal.paper.figures.learning_curves import SIZES
from hetcal.paper.settings import (
    BINARY,
    CLASSIFIERS,
    GLOBAL_METHODS,
    MULTICLASS,
    PAPER_TABLES,
    SIMILARITY_METHODS,
)
from hetcal.paper.tables import mean_heterogeneity, summarise


def learning_curves(folder: ResultsFolder) -> list[Claim]:
    """Return the claims of Figure 1."""
    table = folder.results
    table = table[(table["dataset"] == CURVE_DATASET) & table["n_cal"].isin(SIZES)]
    table = table[table["classifier"].isin(CURVE_CLASSIFIERS) & table["method"].isin(PAPER)]
    cells = summarise(table, ["brier"])
    wide = cells.pivot(index=["classifier", "n_cal"], columns="method", values="mean")
    # A row that lacks a method says nothing yet.
    wide = wide.reindex(columns=[name for name in PAPER if name != "TS"]).dropna()
    complete = len(wide) == len(SIZES) * len(CURVE_CLASSIFIERS)
    complete = complete and cells["trials"].min() >= TRIALS
    size = wide.index.get_level_values("n_cal")
    is_rf = wide.index.get_level_values("classifier") == "RF"
    best_global = wide.filter(GLOBAL_METHODS).min(axis=1)
    similar_wins = wide[list(SIMILARITY_METHODS)].min(axis=1) < best_global
    flat = _gain_after_500(wide)

    def claim(text: str, published: str, rows: pd.Series) -> Claim:
        ours = f"{int(rows.sum())} of {len(rows)}" if len(rows) else WAITING
        return Claim("Figure 1", text, published, ours, bool(rows.all()) if complete else None)

    return [
        claim(
            "With NB and DT, SWC-HH has the lowest Brier score at every size",
            "all sizes",
            (wide["SWC-HH"] < wide.drop(columns="SWC-HH").min(axis=1))[~is_rf],
        ),
        claim(
            "With NB and DT, the best similarity method beats every global one from 500 items on",
            "from 500 items",
            similar_wins[~is_rf & (size >= 500)],
        ),
        claim(
            "With RF it does so from 1500 items on", "1500", similar_wins[is_rf & (size >= 1500)]
        ),
        claim(
            "SWC and SWC-HH out-perform SBA-10 (lower Brier score at each size)",
            "consistently",
            wide["SBA-10"] > wide[["SWC", "SWC-HH"]].max(axis=1),
        ),
        Claim(
            "Figure 1",
            "Platt scaling and isotonic regression gain nothing beyond 500 items (rule: by 3000 "
            "items the Brier score falls by less than 0.01)",
            "no further improvement",
            WAITING if flat.empty else f"falls by at most {flat.max():.4f}",
            bool(flat.max() < 0.01) if complete else None,
        ),
    ]


def _gain_after_500(wide: pd.DataFrame) -> pd.Series:
    size = wide.index.get_level_values("n_cal")
    early, late = (wide[size == n][["Platt", "Iso Reg"]].droplevel("n_cal") for n in (500, 3000))
    return pd.Series((early - late).dropna().to_numpy().ravel())


_LOCAL = ("SWC", "SWC-HH")
_NAMES = ("Platt / TS", *_LOCAL)
_FEWEST_TRIALS = 3  # whose spread says how sure a correlation is


def improvement(folder: ResultsFolder) -> list[Claim]:
    """Return the claims of Figure 2, from trials that were run on all rows of the tables."""
    table = at_usual_size(folder.results)
    points = improvements(table[table["dataset"].isin(PAPER_TABLES)])
    claims: list[Claim] = []
    for measure in ("published", "out-of-sample"):
        for row in ("binary", "multi-class"):
            part = points[(points["measure"] == measure) & (points["row"] == row)]
            whole = part[part["seed"].isin(_whole_trials(part, row))]
            claims += _correlation(measure, row, part if whole.empty else whole, not whole.empty)
    return claims


def _whole_trials(points: pd.DataFrame, row: str) -> pd.Index:
    """Return the trials that were run on all rows of the tables."""
    datasets = BINARY if row == "binary" else MULTICLASS
    counts = points[points["method"].isin(_NAMES)].groupby("seed").size()
    return counts.index[counts == len(_NAMES) * len(datasets) * len(CLASSIFIERS)]


def _correlation(measure: str, row: str, points: pd.DataFrame, whole: bool) -> list[Claim]:
    about = f"with {measure} HH on {row} data sets"
    found = correlations(points).set_index("method")
    known = set(_NAMES) <= set(found.index)
    by_trial = [correlations(part).set_index("method") for _, part in points.groupby("seed")]
    behind = f"{len(by_trial)} trial{'s' if len(by_trial) > 1 else ''}"

    def numbers(words: str, column: str) -> str:
        if not known:
            return WAITING
        values = ", ".join(f"{name} {found[column][name]:.2f}" for name in _NAMES)
        return f"{words}: {values} ({behind})"

    def holds(margin: Callable[[float, float], float], column: str) -> bool | None:
        """Whether the margin is positive: over ten trials, or beyond the error of fewer."""

        def of(value: pd.Series) -> float:
            return margin(value["Platt / TS"], min(value[name] for name in _LOCAL))

        if not (known and whole):
            return None
        sure = len(by_trial) >= TRIALS or _is_sure([of(one[column]) for one in by_trial])
        return of(found[column]) >= 0 if sure else None

    return [
        Claim(
            "Figure 2",
            f"Improvements by SWC and SWC-HH correlate {about} (rule: r of at least 0.7)",
            "strongly",
            numbers("r", "pearson"),
            holds(lambda _, local: local - 0.7, "pearson"),
        ),
        Claim(
            "Figure 2",
            f"Those by Platt/TS correlate far less {about} (rule: r lower by at least 0.2)",
            "far weaker",
            numbers("r as above; slope", "slope"),
            holds(lambda platt, local: local - platt - 0.2, "pearson"),
        ),
        Claim(
            "Figure 2",
            f"The same by ranks, which NB's large values do not dominate, {about}",
            "not given",
            numbers("rank r", "spearman"),
            holds(lambda platt, local: min(local - 0.7, local - platt - 0.2), "spearman"),
        ),
    ]


def _is_sure(margins: list[float]) -> bool:
    """Whether the mean of the trials' margins is not zero, by a t-test at 5 %."""
    if len(margins) < _FEWEST_TRIALS:
        return False
    mean, error = np.mean(margins), np.std(margins, ddof=1) / np.sqrt(len(margins))
    return bool(abs(mean) > stdtrit(len(margins) - 1, 0.975) * error)


_MOONS = {"SVM": (0.218, 0.133), "DT": (0.156, 0.129), "RF": (0.134, 0.122)}


def moons(folder: ResultsFolder) -> list[Claim]:
    """Return the claims of Figure 3."""
    facts = folder.facts("moons")
    claims = []
    for classifier, (before, after) in _MOONS.items():
        text = f"moons, {classifier}: Brier score before and after SWC"
        published = f"{before:.3f} → {after:.3f}"
        if facts is None:
            claims.append(Claim("Figure 3", text, published, WAITING, None))
            continue
        row = facts.set_index("classifier").loc[classifier]
        ours = f"{row['uncalibrated']:.3f} → {row['swc']:.3f}"
        claims.append(Claim("Figure 3", text, published, ours, ours == published))
    return claims


def cifar(folder: ResultsFolder) -> list[Claim]:
    """Return the claims of Figure 4."""
    table = at_usual_size(folder.results)
    table = table[table["dataset"].isin(IMAGES)]
    claims = []
    for dataset, title in IMAGES.items():
        part = table[table["dataset"] == dataset]
        hidden = mean_heterogeneity(part)
        hh = hidden["mean"]
        cells = summarise(part[part["method"].isin(PAPER)], ["brier"])
        wide = cells.pivot(index="classifier", columns="method", values="mean")
        wide = wide.loc[[network for network in NETWORKS if network in wide.index]].dropna()
        complete = len(hh) == len(wide) == len(NETWORKS)
        complete = complete and min(cells["trials"].min(), hidden["trials"].min()) >= TRIALS
        best = wide.idxmin(axis=1) if len(wide) else pd.Series(dtype=str)
        in_order = wide.get("Uncal.", pd.Series(dtype=float)).is_monotonic_decreasing
        claims += [
            Claim(
                "Figure 4",
                f"{title}: mean HH of all three networks",
                "0.01 to 0.03",
                f"{hh.min():.3f} to {hh.max():.3f}" if len(hh) else WAITING,
                bool(hh.between(0.005, 0.035).all()) if complete else None,
            ),
            Claim(
                "Figure 4",
                f"{title}: temperature scaling or isotonic regression is the best of the eight",
                "all three networks",
                ", ".join(f"{net} {method}" for net, method in best.items()) or WAITING,
                bool(best.isin(["TS", "Iso Reg"]).all()) if complete else None,
            ),
            Claim(
                "Figure 4",
                f"{title}: Brier score falls from ResNet20 to ResNet56 to RepVGG_A2 (uncalibrated; "
                "our RepVGG_A2 was trained for this project)",
                "consistently",
                " → ".join(f"{value:.4f}" for value in wide.get("Uncal.", [])) or WAITING,
                bool(in_order) if complete else None,
            ),
        ]
    return claims


def support(folder: ResultsFolder) -> list[Claim]:
    """Return the claims of Figures 5 and 6."""
    low, turned = folder.facts("support-low"), folder.facts("rotation")
    text = "SWC lowers q of the true class for all five items of least support (first trial)"
    if low is None:
        claims = [Claim("Figure 5", text, "5 of 5", WAITING, None)]
    else:
        lowered = low.assign(lowered=low["after"] < low["before"]).groupby("seed")["lowered"]
        first, total = int(lowered.sum().loc[0]), int(lowered.sum().sum())
        claims = [
            Claim("Figure 5", text, "5 of 5", f"{first} of 5", first == 5),
            Claim(
                "Figure 5",
                f"The same over {lowered.ngroups} trials: not a rule, but more often than not",
                "not given",
                f"{total} of {len(low)} items; all five in "
                f"{int((lowered.sum() == 5).sum())} of {lowered.ngroups} trials",
                total > len(low) / 2,
            ),
        ]
    for share, published in ((0.0, 900), (1.0, 300)):
        text = (
            f"Support of mnist-1v7 peaks around {published} with {share:.0%} of the items turned "
            "(rule: the fullest bin of width 100, first trial, within 100)"
        )
        if turned is None:
            claims.append(Claim("Figure 6", text, str(published), WAITING, None))
            continue
        part = turned[turned["share"] == share]
        shown = part[part["seed"] == 0].iloc[0]
        claims.append(
            Claim(
                "Figure 6",
                text,
                str(published),
                f"{shown['peak']:.0f}; median {shown['median']:.0f} "
                f"({part['median'].min():.0f} to {part['median'].max():.0f} over trials)",
                bool(abs(shown["peak"] - published) <= 100),
            )
        )
    return claims
