"""What the paper's conclusions look like with the honest HH and the hybrid; shift; time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hetcal.paper.figures.improvement import correlations, improvements
from hetcal.paper.figures.shift import CLASSIFIERS, COMMON, METHODS, RARE
from hetcal.paper.page import markdown
from hetcal.paper.settings import MEASUREMENTS, PAPER_METHODS, PAPER_TABLES

# benchmarks/hh_speed.py and benchmarks/swc_speed.py: the published algorithms written plainly,
# against hetcal in the same process, on one thread.
HH_RATIO = 364
SECONDS_PER_PAIR = 5e-6
# Where the hybrid's settings were chosen.
DEVELOPMENT = ("mnist-1v7", "mnist-4v9", "letter")
_N_METHODS = 8
_FEWEST = 30  # trials that say something about averages and correlations


def heterogeneity(results: pd.DataFrame) -> list[str]:
    """Return how the published and the honest HH compare, and what each predicts."""
    part = results[results["dataset"].isin(PAPER_TABLES)]
    both = _paired(part)
    if len(both) < _FEWEST:
        return [f"The honest HH has {len(both)} results so far; {_FEWEST} are needed here."]
    lines = [
        "The published HH scores a local model on the items that it was grown on, so noise alone "
        "makes it positive. The honest HH scores it out of bag, takes off what noise gives, and "
        "splits the rest into what a global map can repair and what only a local one can.",
        "",
        f"Over {len(both)} trials the published HH averages {both['hh'].mean():.3f}, the honest "
        f"one {both['honest'].mean():.3f}, of which {both['local'].mean():.3f} is local. Averages "
        "per data set:",
        "",
    ]
    rows = [
        [str(name), *(f"{one[column].mean():.3f}" for column in ("hh", "honest", "local"))]
        for name, one in both.groupby("dataset", sort=False)
    ]
    lines += [markdown.table(["data set", "published HH", "honest HH", "local part"], rows), ""]
    points = improvements(part)
    found = correlations(points)
    lines += [
        "How well each predicts the improvement in Brier score (linear correlation / rank "
        "correlation over all trials):",
        "",
        _correlation_table(found),
        "",
    ]
    return lines


def _paired(part: pd.DataFrame) -> pd.DataFrame:
    keys = ["dataset", "classifier", "seed"]
    published = part[part["method"] == "hh"].set_index(keys)["hh"]
    honest = part[part["method"] == "hh-honest"].set_index(keys)
    return (
        pd.DataFrame({"hh": published, "honest": honest["hh"], "local": honest["hh_local"]})
        .dropna()
        .reset_index()
    )


def _correlation_table(found: pd.DataFrame) -> str:
    measures = list(dict.fromkeys(found["measure"]))
    rows = []
    for (row, method), part in found.groupby(["row", "method"], sort=False):
        known = part.set_index("measure")
        rows.append(
            [
                f"{method}, {row}",
                *(
                    f"{known.loc[one, 'pearson']:.2f} / {known.loc[one, 'spearman']:.2f}"
                    if one in known.index
                    else ""
                    for one in measures
                ),
            ]
        )
    return markdown.table(["improvement by", *(f"{name} HH" for name in measures)], rows)


def hybrid(results: pd.DataFrame) -> list[str]:
    """Return what the hybrid brings against the best of the paper's eight, chosen in hindsight."""
    found = _ratios(results)
    if found.empty:
        return ["The hybrid has no results yet."]
    lines = [
        "The paper's future work names a method that blends global and local calibration. hetcal's "
        "`HybridCalibrator` on the same splits, its score divided by that of the best of the "
        "paper's eight methods, chosen in hindsight for every row of the tables (below 1: better). "
        "Its settings were chosen on the data sets marked as development; the others confirm.",
        "",
    ]
    rows = []
    for kind, part in found.groupby("kind", sort=False):
        for metric, one in part.groupby("metric", sort=False):
            worst = one.iloc[int(one["ratio"].to_numpy().argmax())]
            rows.append(
                [
                    f"{kind}, {_SCORES[str(metric)]}",
                    str(len(one)),
                    f"{np.exp(np.log(one['ratio']).mean()):.3f}",
                    str(int((one["ratio"] > 1).sum())),
                    f"{worst['ratio']:.3f} ({worst['dataset']}, {worst['classifier']})",
                ]
            )
    head = ["cells and score", "rows", "geometric mean", "rows above 1", "worst row"]
    return [*lines, markdown.table(head, rows)]


_SCORES = {"brier": "Brier score", "log_loss": "log loss"}


def _ratios(results: pd.DataFrame) -> pd.DataFrame:
    """Return one ratio per row of the tables and score, over the trials that the hybrid has."""
    place = ["dataset", "classifier"]
    has = results[results["method"] == "hybrid"][[*place, "seed"]]
    same = results.merge(has, on=[*place, "seed"])
    rows = []
    for (dataset, classifier), part in same.groupby(place, sort=False):
        for metric in _SCORES:
            means = part.groupby("method")[metric].mean().dropna()
            paper = means[means.index.isin(list(PAPER_METHODS))]
            if len(paper) < _N_METHODS or "hybrid" not in means.index:
                continue
            kind = "development" if dataset in DEVELOPMENT else "confirmation"
            row = {"dataset": dataset, "classifier": classifier, "kind": kind, "metric": metric}
            rows.append(row | {"ratio": float(means["hybrid"] / paper.min())})
    return pd.DataFrame(rows, columns=["dataset", "classifier", "kind", "metric", "ratio"])


_LEVELS = ("0 %", "5 %", "33 %")
_GROUPS = {RARE: "women", COMMON: "men"}


def shift(facts: pd.DataFrame | None) -> list[str]:
    """Return the table of the shift experiment."""
    if facts is None:
        return ["Not run yet."]
    level = np.select([facts["share"] < 0.01, facts["share"] < 0.2], ["0 %", "5 %"], "33 %")
    facts = facts.assign(level=level)
    rows = [
        [f"{classifier}, {method}"]
        + [_mean(facts, classifier, method, group, name) for group in _GROUPS for name in _LEVELS]
        for classifier in CLASSIFIERS
        for method in METHODS
    ]
    head = ["", *(f"{people}, {name}" for people in _GROUPS.values() for name in _LEVELS)]
    return [
        f"Brier score per group, mean over {facts['seed'].nunique()} trials ± standard error; the "
        "columns give the share of women in the training sample (33 % is the population's):",
        "",
        markdown.table(head, rows),
        "",
        *(_shift_in_words(facts[facts["classifier"] == name], name) for name in CLASSIFIERS),
    ]


def _shift_in_words(facts: pd.DataFrame, classifier: str) -> str:
    """Return what the table says about women: what the bias costs, and how much comes back."""
    women = facts[facts["group"] == RARE]
    brier = women.groupby(["level", "method"])["brier"].mean()
    gap = women.groupby(["level", "method"])["gap"].mean()
    biased = brier["0 %"]
    cost = biased["uncalibrated"] - brier["33 %"]["uncalibrated"]
    back = {
        name: (biased["uncalibrated"] - biased[list(methods)].min()) / cost
        for name, methods in {
            "the better global map": ("platt", "isotonic"),
            "SWC": ("swc",),
            "the hybrid": ("hybrid",),
        }.items()
    }
    return (
        f"- {CLASSIFIERS[classifier]}: without women in training, their Brier score rises by "
        f"{cost:.4f}, while the mean prediction for them is off by "
        f"{gap['0 %']['uncalibrated']:+.3f}. Of the rise, calibration on the population takes back "
        + ", ".join(f"{share:.0%} ({name})" for name, share in back.items())
        + "."
    )


def _mean(facts: pd.DataFrame, classifier: str, method: str, group: str, level: str) -> str:
    wanted = {"classifier": classifier, "method": method, "group": group, "level": level}
    found = facts[(facts[list(wanted)] == pd.Series(wanted)).all(axis=1)]["brier"].to_numpy()
    error = f" ± {found.std(ddof=1) / len(found) ** 0.5:.4f}" if len(found) > 1 else ""
    return f"{found.mean():.4f}{error}"


def time_taken(results: pd.DataFrame) -> list[str]:
    """Return how long the trials took, and what the published algorithms would have taken."""
    paper = results[results["method"].isin((*PAPER_METHODS, *MEASUREMENTS))]
    if paper.empty:
        return ["No trials yet."]
    # SWC-HH contains the time of hh, which is computed once for both.
    ours = paper[~paper["method"].isin(MEASUREMENTS)]
    shared = paper[paper["method"] == "hh"]["seconds"].sum()
    pairs = paper[paper["method"].isin(("SBA-10", "SBAW-10", "SWC", "SWC-HH"))]
    loops = float((pairs["n_cal"] * pairs["n_test"]).sum()) * SECONDS_PER_PAIR
    published = shared * HH_RATIO + loops
    return [
        f"The {len(ours)} results of the paper's methods on this page took "
        f"{_hours(ours['seconds'].sum())} of processor time (training of the black boxes not "
        f"counted). The published algorithms would have taken about {_hours(published)}: hidden "
        f"heterogeneity {_hours(shared)} here, times {HH_RATIO} (geometric mean of "
        f"`python benchmarks/hh_speed.py`), and {SECONDS_PER_PAIR * 1e6:.0f} microseconds per pair "
        "of test and calibration item for each similarity method "
        "(`python benchmarks/swc_speed.py`).",
    ]


def _hours(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 72 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86400:.0f} days"
