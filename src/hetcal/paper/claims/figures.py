"""What the text claims about the figures."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from hetcal.paper.claims.base import PAPER, TRIALS, WAITING, Claim, ResultsFolder
from hetcal.paper.figures._results import at_usual_size
from hetcal.paper.figures.cifar import IMAGES, NETWORKS
from hetcal.paper.figures.improvement import MEASURES, correlations, improvements
from hetcal.paper.figures.learning_curves import CLASSIFIERS as CURVE_CLASSIFIERS
from hetcal.paper.figures.learning_curves import DATASET as CURVE_DATASET
from hetcal.paper.figures.learning_curves import SIZES
from hetcal.paper.settings import CLASSIFIERS, GLOBAL_METHODS, PAPER_TABLES, SIMILARITY_METHODS
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


_ALL_TRIALS = len(PAPER_TABLES) * len(CLASSIFIERS) * TRIALS


def improvement(folder: ResultsFolder) -> list[Claim]:
    """Return the claims of Figure 2."""
    table = at_usual_size(folder.results)
    table = table[table["dataset"].isin(PAPER_TABLES)]
    found = correlations(improvements(table))
    trials = table["method"].value_counts()
    claims: list[Claim] = []
    for measure in ("published", "out-of-sample"):
        for row in ("binary", "multi-class"):
            part = found[(found["measure"] == measure) & (found["row"] == row)]
            complete = trials.get(MEASURES[measure][0], 0) >= _ALL_TRIALS
            claims += _correlation(measure, row, part.set_index("method"), complete)
    return claims


def _correlation(measure: str, row: str, found: pd.DataFrame, complete: bool) -> list[Claim]:
    about = f"with {measure} HH on {row} data sets"
    names = ["Platt / TS", "SWC", "SWC-HH"]
    known = set(names) <= set(found.index)

    def numbers(column: str) -> str:
        if not known:
            return WAITING
        return ", ".join(f"{name} {found[column][name]:.2f}" for name in names)

    def holds(rule: Callable[[float, float], bool], column: str) -> bool | None:
        if not (known and complete):
            return None
        value = found[column]
        return bool(rule(value["Platt / TS"], min(value["SWC"], value["SWC-HH"])))

    return [
        Claim(
            "Figure 2",
            f"Improvements by SWC and SWC-HH correlate {about} (rule: r of at least 0.7)",
            "strongly",
            f"r: {numbers('pearson')}" if known else WAITING,
            holds(lambda _, local: local >= 0.7, "pearson"),
        ),
        Claim(
            "Figure 2",
            f"Those by Platt/TS correlate far less {about} (rule: r lower by at least 0.2)",
            "far weaker",
            f"r as above; slope: {numbers('slope')}" if known else WAITING,
            holds(lambda platt, local: local >= platt + 0.2, "pearson"),
        ),
        Claim(
            "Figure 2",
            f"The same by ranks, which NB's large values do not dominate, {about}",
            "not given",
            f"rank r: {numbers('spearman')}" if known else WAITING,
            holds(lambda platt, local: local >= 0.7 and local >= platt + 0.2, "spearman"),
        ),
    ]


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
