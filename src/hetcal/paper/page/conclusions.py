"""What the paper's conclusions look like with the out-of-sample HH and the hybrid; shift; time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hetcal.paper.claims.base import ResultsFolder
from hetcal.paper.figures.improvement import correlations, improvements
from hetcal.paper.figures.shift import CLASSIFIERS, COMMON, METHODS, RARE
from hetcal.paper.hindsight import compare_in_hindsight, geometric_mean
from hetcal.paper.settings import MEASUREMENTS, PAPER_METHODS, SIMILARITY_METHODS
from hetcal.paper.text import duration, markdown_table

_N_METHODS = 8
_FEWEST = 30  # trials that say something about averages and correlations


def heterogeneity(results: pd.DataFrame) -> list[str]:
    """Return how the published and the out-of-sample HH compare, and what each predicts."""
    both = _paired(results)
    if len(both) < _FEWEST:
        return [f"The out-of-sample HH has {len(both)} results so far; {_FEWEST} are needed here."]
    lines = [
        "The published HH scores a local model on the items that it was grown on, so noise alone "
        "makes it positive. The out-of-sample HH (`HiddenHeterogeneity()`) is found on some items "
        "and measured on others, and splits into what a global map can repair and what only a "
        "local one can; on noise it is close to zero.",
        "",
        f"Over {len(both)} trials the published HH averages {both['hh'].mean():.3f}, the "
        f"out-of-sample one {both['out_of_sample'].mean():.3f}, of which "
        f"{both['local'].mean():.3f} is local. "
        "Averages per data set:",
        "",
    ]
    rows = [
        [
            str(name),
            f"{one['classifier'].nunique()} x {one.groupby('classifier').size().min()}",
            *(f"{one[column].mean():.3f}" for column in ("hh", "out_of_sample", "local")),
        ]
        for name, one in both.groupby("dataset", sort=False)
    ]
    lines += [
        markdown_table(
            [
                "data set",
                "classifiers x trials",
                "published HH",
                "out-of-sample HH",
                "local part",
            ],
            rows,
        ),
        "",
    ]
    lines += [
        "How well each predicts the improvement in Brier score (linear correlation / rank "
        "correlation over all trials):",
        "",
        _correlation_table(correlations(improvements(results))),
        "",
    ]
    return lines


def _paired(results: pd.DataFrame) -> pd.DataFrame:
    keys = ["dataset", "classifier", "seed"]
    published = results[results["method"] == "hh"].set_index(keys)["hh"]
    ours = results[results["method"] == "hh-out-of-sample"].set_index(keys)
    both = pd.DataFrame({"hh": published, "out_of_sample": ours["hh"], "local": ours["hh_local"]})
    return both.dropna().reset_index()


def _correlation_table(found: pd.DataFrame) -> str:
    measures = list(dict.fromkeys(found["measure"]))
    rows = []
    for (row, method), part in found.groupby(["row", "method"], sort=False):
        texts = {
            one.measure: f"{one.pearson:.2f} / {one.spearman:.2f}" for one in part.itertuples()
        }
        rows.append([f"{method}, {row}", *(texts.get(one, "") for one in measures)])
    return markdown_table(["improvement by", *(f"{name} HH" for name in measures)], rows)


_SCORES = {"brier": "Brier score", "log_loss": "log loss"}


def hybrid(results: pd.DataFrame) -> list[str]:
    """Return what the hybrid brings against the best of the paper's eight, chosen in hindsight."""
    rows = []
    for metric, title in _SCORES.items():
        found = compare_in_hindsight(results, metric, against="paper")
        if found.empty:
            continue
        found = found[found["others"] == _N_METHODS]
        for development, part in found.groupby("development"):
            worst = part.iloc[int(part["ratio"].argmax())]
            rows.append(
                [
                    f"{'development' if development else 'confirmation'}, {title}",
                    str(len(part)),
                    f"{geometric_mean(part['ratio']):.3f}",
                    str(int((part["ratio"] > 1).sum())),
                    f"{worst['ratio']:.3f} ({worst['dataset']}, {worst['classifier']})",
                ]
            )
    if not rows:
        return ["The hybrid has no results yet."]
    head = ["cells and score", "rows", "geometric mean", "rows above 1", "worst row"]
    return [
        "The paper's future work names a method that blends global and local calibration. hetcal's "
        "`HybridCalibrator` on the same splits, its score divided by that of the best of the "
        "paper's eight methods, chosen in hindsight for every row of the tables (below 1: better). "
        "Its settings were chosen on the data sets marked as development; the others confirm.",
        "",
        markdown_table(head, sorted(rows)),
    ]


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
        markdown_table(head, rows),
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


def time_taken(folder: ResultsFolder) -> list[str]:
    """Return how long the trials took, and what the published algorithms would have taken."""
    results = folder.results
    paper = results[results["method"].isin((*PAPER_METHODS, *MEASUREMENTS))]
    if paper.empty:
        return ["No trials yet."]
    ours = paper[~paper["method"].isin(MEASUREMENTS)]
    text = (
        f"The {len(ours)} results of the paper's methods on this page took "
        f"{duration(ours['seconds'].sum())} of processor time (training of the black boxes not "
        "counted)."
    )
    speed, loops = folder.speed("hh"), folder.speed("similarity")
    if speed is None or loops is None:
        return [text]
    # SWC-HH contains the time of hh, which is computed once for both.
    shared = float(paper[paper["method"] == "hh"]["seconds"].sum())
    ratio = speed["plain_s"].sum() / speed["exact_s"].sum()
    pairs = paper[paper["method"].isin(SIMILARITY_METHODS)]
    n_pairs = float((pairs["n_cal"] * pairs["n_test"]).sum())
    per_pair = loops["seconds_per_pair"].mean()
    return [
        f"{text} The published algorithms would have taken about "
        f"{duration(shared * ratio + n_pairs * per_pair)}: hidden heterogeneity "
        f"{duration(shared)} here, times {ratio:.0f} (the {len(speed)} cases of "
        f"`python benchmarks/hh_speed.py` together), and {per_pair * 1e6:.1f} microseconds per "
        f"pair of test and calibration item for each similarity method (mean of the {len(loops)} "
        "cases of `python benchmarks/swc_speed.py`).",
    ]
