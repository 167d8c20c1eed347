"""How often every interval, bound and test that hetcal prints holds what its level says.

    python benchmarks/coverage_of_levels.py           # everything, into results/coverage.csv
    python benchmarks/coverage_of_levels.py --studies gains --scale 0.1
    python benchmarks/coverage_of_levels.py --table   # the table of the documentation

Items are drawn from the problems of `hetcal.datasets.list_problems`, whose truth is known. The
formula for gains was chosen on the half "develop" with other seeds; what is reported here is the
half "confirm". Numbers carry the keys of `hetcal.metrics.levels.LEVELS`; a key without a row fails
a test.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hetcal import HybridCalibrator, SimilarityCalibrator, get_calibrator, learning_curve
from hetcal.data import CalibrationSet
from hetcal.datasets import list_problems, make_problem
from hetcal.datasets.problems.problem import Problem, draw
from hetcal.datasets.problems.strengths import STRENGTHS
from hetcal.diagnosis.dependence import find_dependence
from hetcal.diagnosis.prior_shift import measure_prior_shift
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.heterogeneity.average_test import average_p_value
from hetcal.heterogeneity.subgroups import report_groups, subgroups_of
from hetcal.metrics import evaluate
from hetcal.metrics.ece import bin_of
from hetcal.metrics.gains import Gain
from hetcal.metrics.levels import LEVELS
from hetcal.metrics.reliability import reliability_bins
from hetcal.metrics.scores import LOG_LOSS_EPS, brier_losses, losses_by_label
from hetcal.metrics.standard_errors import interval_of_mean
from hetcal.monitor import SupportMonitor
from hetcal.similarity import ForestProximity
from interval_coverage import Setting, coverage
from probability_intervals import Draw

RESULTS = Path(__file__).parent / "results" / "coverage.csv"
FIRST_SEED = 9_100_000
N_NEW, N_NEW_PER_ITEM, N_LARGE = 3000, 10, 100_000
_MAPS = ("temperature", "isotonic")
COLUMNS = ("key", "case", "problem", "n", "draws", "held", "width")

# One draw yields (key, case, whether it holds, width); NaN where nothing was stated.
Outcome = tuple[str, str, float, float]


@dataclass(frozen=True)
class Study:
    """Problems, sizes with numbers of draws, and what is looked at in each draw."""

    look: Callable[[str, int, int], Iterator[Outcome]]
    problems: tuple[str, ...]
    draws: dict[int, int]


def drawn(name: str, n: int, seed: int) -> Problem:
    """Draw a problem; "linear*3" is "linear" with three times the hidden effect."""
    base, _, times = name.partition("*")
    if not times:
        return make_problem(name, n, random_state=seed)
    return draw(base, n, np.random.default_rng([seed, 7]), float(times) * STRENGTHS[base])


def new_items(name: str, n: int, seed: int) -> Problem:
    """Draw items that nothing has learned from, so many that they hardly add an error of their own.

    As many new items as there were to calibrate would make true intervals look too short.
    """
    return drawn(name, max(N_NEW, N_NEW_PER_ITEM * n), seed + 10**9)


def items_of(problem: Problem) -> CalibrationSet:
    """Return the calibration set, of all classes also where one did not occur."""
    return CalibrationSet.check(
        problem.X,
        problem.y,
        y_proba=problem.y_proba,
        classes=np.arange(problem.n_classes),
        groups=problem.groups,
        sample_weight=problem.sample_weight,
        caller="coverage",
    )


# -- gains and scores ------------------------------------------------------------------------------


def look_at_gains(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Fit a global map and a hybrid by default; what they gain on new items is known."""
    items, new = items_of(drawn(name, n, seed)), new_items(name, n, seed)
    fitted = {
        "map": get_calibrator("global", classes=items.classes).fit_set(items),
        "hybrid": HybridCalibrator(classes=items.classes).fit_set(items),
    }
    stated = {"p": items.proba} | {m: f.out_of_sample_proba_ for m, f in fitted.items()}
    said = {"p": new.y_proba} | {
        m: f.predict_proba(new.X, y_proba=new.y_proba) for m, f in fitted.items()
    }
    loss = {m: brier_losses(Q, items.codes) for m, Q in stated.items()}
    truth = {m: expected_brier(Q, new) for m, Q in said.items()}
    better = min(("p", "map"), key=lambda m: np.average(loss[m], weights=items.weight))
    for case, worse, now in (
        ("map", "p", "map"),
        ("hybrid over the better of map and p", better, "hybrid"),
        ("hybrid", "p", "hybrid"),
    ):
        gain, true = Gain.between(stated[worse], stated[now], items), truth[worse] - truth[now]
        yield "gain", case, inside(true, gain.low, gain.high), gain.high - gain.low
        yield "gain_p", case, float(gain.less(1.645) <= max(true, 0.0) + 1e-12), np.nan


def look_at_refreshes(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Extend a vote of similar items by as many new items, of the same law and of another.

    Under the other law the model was right for every item before.
    """
    old, more, new = (drawn(name, n, seed + k * 10**9) for k in (2, 0, 1))
    draws = np.random.default_rng(seed).random((n, 1))
    once = (old.y_proba.cumsum(axis=1) < draws).sum(axis=1).clip(max=old.n_classes - 1)
    items = items_of(more)
    for case, y in (("refresh, as before", old.y), ("refresh, after a change", once)):
        swc = SimilarityCalibrator(ForestProximity(30), classes=items.classes)
        swc.fit(old.X, y, y_proba=old.y_proba)
        before, true = swc.predict_proba(more.X, y_proba=more.y_proba), expected_of(swc, new)
        swc.extend(more.X, more.y, y_proba=more.y_proba, half_life=n)
        gain = Gain.between(before, swc.out_of_sample_proba_[-n:], items)
        true -= expected_of(swc, new)
        yield "gain", case, inside(true, gain.low, gain.high), gain.high - gain.low


def expected_of(calibrator: Any, new: Problem) -> float:
    """Return the Brier score that a calibrator will have on items whose truth is known."""
    return expected_brier(calibrator.predict_proba(new.X, y_proba=new.y_proba), new)


def look_at_scores(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Look at the scores of p and of a map of p."""
    items, new = items_of(drawn(name, n, seed)), new_items(name, n, seed)
    fitted = get_calibrator("global", classes=items.classes).fit_set(items)
    stated = {"p": items.proba, "map": fitted.out_of_sample_proba_}
    said = {"p": new.y_proba, "map": fitted.predict_proba(y_proba=new.y_proba)}
    for metric, expected in (("Brier score", expected_brier), ("log loss", expected_log)):
        name_of_loss = metric.lower().replace(" ", "_").removesuffix("_score")
        # What the new items are like by chance is taken off: the score of p is known of many more.
        surplus = expected(new.y_proba, new) - of_the_law(expected, name)
        for m, Q in stated.items():
            truth = expected(said[m], new) - surplus
            by_label = losses_by_label(Q, name_of_loss)
            yield from holds_mean("score", f"{metric}, {m}", by_label, truth, items)


@cache
def of_the_law(expected: Callable[[np.ndarray, Problem], float], name: str) -> float:
    """Return what p scores on many items."""
    large = drawn(name, N_LARGE, 1)
    return expected(large.y_proba, large)


def expected_brier(Q: np.ndarray, new: Problem) -> float:
    """Return the Brier score to expect where P(y | x) is known."""
    T = new.true_proba
    return weighted_mean(((Q - T) ** 2).sum(axis=1) + (T * (1 - T)).sum(axis=1), new)


def expected_log(Q: np.ndarray, new: Problem) -> float:
    """Return the log loss to expect where P(y | x) is known."""
    return weighted_mean(-(new.true_proba * np.log(np.clip(Q, LOG_LOSS_EPS, 1))).sum(axis=1), new)


def weighted_mean(values: np.ndarray, new: Problem) -> float:
    """Return a mean over the law that the weights stand for."""
    return float(np.average(values, weights=new.sample_weight))


def holds_mean(
    key: str, case: str, by_label: np.ndarray, truth: float, items: CalibrationSet
) -> Iterator[Outcome]:
    """Look whether the interval of a mean holds the truth; losses are those with each label."""
    loss = by_label[np.arange(items.n_items), items.codes]
    low, high = interval_of_mean(loss, items.weight, items.groups, by_label=by_label)
    yield key, case, inside(truth, low, high), float(high - low)


def inside(truth: float, low: float, high: float) -> float:
    """Return 1 where an interval holds the truth; NaN where there is none."""
    if np.isnan(low):
        return np.nan
    return float(low - 1e-12 <= truth <= high + 1e-12)


# -- metrics of given probabilities ----------------------------------------------------------------

COST = np.array([[0.0, 1.0], [5.0, 0.0]])
_METRIC_KEYS = {
    "brier_score": "bootstrap",
    "brier_calibration": "bootstrap_parts",
    "brier_refinement": "bootstrap_parts",
    "brier_uncertainty": "bootstrap",
    "log_loss": "bootstrap",
    "accuracy": "bootstrap",
    "expected_cost": "bootstrap",
    "ece_top_label": "bootstrap_ece",
    "ece_top_label_equal_width": "bootstrap_ece",
    "ece_class_wise": "bootstrap_ece",
    "smooth_calibration_error": "bootstrap_ece",
    "ece_top_label_debiased": "bootstrap_debiased",
    "ece_top_label_debiased_l2": "bootstrap_debiased",
}


def look_at_metrics(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Compare bootstrap intervals with the metrics of 100 000 items of the law."""
    found, truth = evaluated(drawn(name, n, seed), 200), large_metrics(name)
    for metric, row in found[found["method"] == "p"].iterrows():
        said = (row["low"], row["high"])
        true = truth.loc[truth["method"] == "p", "value"][metric]
        yield _METRIC_KEYS[metric], metric, inside(true, *said), row["high"] - row["low"]
    for metric, row in found[found["method"] == "half way"].iterrows():
        true = truth.loc[truth["method"] == "half way", "difference"][metric]
        low, high = row["difference_low"], row["difference_high"]
        key, case = _METRIC_KEYS[metric], f"difference in {metric}"
        yield key, case, inside(true, low, high), high - low


def evaluated(problem: Problem, n_bootstrap: int) -> pd.DataFrame:
    """Return every metric of p, and of p drawn half way towards one half."""
    P = {"p": problem.y_proba, "half way": 0.5 * problem.y_proba + 0.25}
    return evaluate(problem.y, P, baseline="p", cost_matrix=COST, n_bootstrap=n_bootstrap)


@cache
def large_metrics(name: str) -> pd.DataFrame:
    """Return the metrics of many items."""
    return evaluated(drawn(name, 100_000, 1), 0)


def look_at_costs_and_bins(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Costs of decisions, and bands of reliability diagrams with 12 bins."""
    problem = drawn(name, n, seed)
    items, new = items_of(problem), new_items(name, n, seed)
    decided = (items.proba @ COST).argmin(axis=1)
    true = np.einsum("ij,ji->i", new.true_proba, COST[:, (new.y_proba @ COST).argmin(axis=1)])
    yield from holds_mean("cost", "", COST[:, decided].T, weighted_mean(true, new), items)
    place = bin_of(items.proba[:, 1], items.weights, "equal-mass", 12)
    bins = reliability_bins(items.proba[:, 1], (items.codes == 1).astype(float), place, items)
    means = [
        np.average(problem.true_proba[place == k, 1], weights=items.weights[place == k])
        for k in np.unique(place)
    ]
    held = [inside(m, *b) for m, b in zip(means, bins[["low", "high"]].to_numpy(), strict=True)]
    yield "reliability", "", float(np.mean(held)), float((bins["high"] - bins["low"]).mean())


# -- hidden heterogeneity --------------------------------------------------------------------------


def look_at_heterogeneity(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Look at the test, by region too, the lower bound, and the mean with its standard error."""
    problem = drawn(name, n, seed)
    found = HiddenHeterogeneity(classes=np.arange(problem.n_classes)).fit_set(items_of(problem))
    if problem.kind == "null":
        yield "hh_p", "", float(found.p_value_ > 0.05), np.nan
        yield "hh_regions", "", float(not (found.regions_["q_value"] <= 0.05).any()), np.nan
    held = found.hh_local_low_ <= problem.grouping_loss + 1e-12
    yield "hh_low", "", float(held), problem.grouping_loss - found.hh_local_low_
    error, true = found.standard_error_, problem.grouping_loss + problem.global_part
    low, high = found.hh_mean_ - 1.96 * error, found.hh_mean_ + 1.96 * error
    # It is said of what was found: there may be more.
    most = high if problem.kind == "null" else np.inf
    yield "hh_error", problem.kind, inside(true, low, most), high - low


def look_at_averages(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Look at the test that probabilities are right on average, where they are."""
    yield "average_p", "", float(average_p_value(items_of(drawn(name, n, seed))) > 0.05), np.nan


def look_at_subgroups(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Sub-populations, given or found, where every probability is right."""
    problem = drawn(name, n, seed)
    items, letter = items_of(problem), np.random.default_rng(seed).choice(list("abcd"), n)
    given = report_groups(items, pd.DataFrame({"letter": letter}), ["letter"])
    yield "subgroup_p", "given", float(given["adjusted_p_value"].min() > 0.05), np.nan
    for row in given.to_dict("records"):
        true = problem.true_proba[letter == row["rule"][-1], 1].mean()
        held = inside(true, row["low"], row["high"])
        yield "subgroup", "given", held, row["high"] - row["low"]
    yield "subgroup_p", "found", float(len(subgroups_of(items)) == 0), np.nan


# -- new items -------------------------------------------------------------------------------------


def look_at_class_balance(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Twice as many of the second class among 2000 new items, or as many as before."""
    old, pool = drawn(name, n, seed), drawn(name, 20_000, seed + 10**9)
    rng = np.random.default_rng(seed)
    for case, times in (("same balance", 1.0), ("another balance", 2.0)):
        chance = np.where(pool.y == 1, times, 1.0)
        rows = rng.choice(len(pool.y), 2000, replace=False, p=chance / chance.sum())
        shift = measure_prior_shift(items_of(old), pool.y_proba[rows])
        before = pool.true_proba.mean(axis=0)
        now = before * [1.0, times] / (before @ [1.0, times])
        held = np.all((shift.low <= now - before) & (now - before <= shift.high))
        yield "class_balance", case, float(held), float((shift.high - shift.low).mean())


def look_at_support(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Items of the same law: who is said to have little support, flags and alarms of a monitor."""
    problem, new = drawn(name, n, seed), drawn(name, 1000, seed + 10**9)
    swc = SimilarityCalibrator(classes=np.arange(2)).fit_set(items_of(problem))
    low = np.quantile(swc.out_of_sample_support(), 0.05)
    support = swc.support(new.X, y_proba=new.y_proba)
    yield "low_support", "", float(np.mean(support >= low)), np.nan
    monitor = SupportMonitor(swc, rate=0.05, alarm_rate=0.1, horizon=1000)
    monitor.fit(problem.X, y_proba=problem.y_proba)
    items = monitor.update(new.X, y_proba=new.y_proba)
    yield "monitor_flag", "", float(1 - np.mean(items["flag"])), np.nan
    yield "monitor_alarm", "", float(monitor.alarm_ is None), np.nan


def look_at_rows(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Independent rows are not said to belong together."""
    yield "dependence", "", float(find_dependence(items_of(drawn(name, n, seed))) is None), np.nan


def look_at_votes(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Look at the interval of `SimilarityCalibrator`, which is about a smoothed probability."""
    found = coverage(Setting(int(name.split()[0]), n, seed=seed))
    yield "votes", "", found["target"], found["width"]


def look_at_probabilities(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Look at the interval of `HybridCalibrator`, which is about P(y | x); 60 trees."""
    low, high, truth = Draw(name, n, seed, 60).interval()
    held = np.mean((low <= truth) & (truth <= high))
    yield "probability", "", float(held), float(np.mean(high - low))


def look_at_more_data(name: str, n: int, seed: int) -> Iterator[Outcome]:
    """Look at what twice the items are said to bring, for two global maps."""
    problem, truth = drawn(name, n, seed), gains_of_doubling(name, n)
    curve = learning_curve(
        problem.X, problem.y, y_proba=problem.y_proba, methods=list(_MAPS), random_state=seed
    )
    for method in _MAPS:
        said = curve.more_data_helps(method)
        low, high = said.expected_low, said.expected_high
        yield "more_data", method, inside(truth[method], low, high), high - low


@cache
def gains_of_doubling(name: str, n: int) -> dict[str, float]:
    """Return the mean gain of twice the items over 30 pairs of other draws."""
    return {
        method: np.mean(_losses(name, n, method) - _losses(name, 2 * n, method)) for method in _MAPS
    }


def _losses(name: str, n: int, method: str) -> np.ndarray:
    new, losses = drawn(name, N_NEW, 10**9), []
    for seed in range(2 * 10**9, 2 * 10**9 + 30):
        fitted = get_calibrator(method).fit_set(items_of(drawn(name, n, seed)))
        losses.append(expected_brier(fitted.predict_proba(y_proba=new.y_proba), new))
    return np.array(losses)


# -- all of them -----------------------------------------------------------------------------------

GAINS = (
    "under-confident",
    "atoms-among-a-continuum",
    "rounded-to-one-digit",
    "over-forecast-rare-events",
    "few-unequal-groups",
    "confusion-of-five",
    "output-of-another-model",
    "decaying-linear",
    "decaying-linear*3",
    "parity-of-coins*4",
    "rare-corner",
    "rare-events-along-a-skewed-feature",
    "unequal-clusters",
)

# Of these twelve also 3000 items, chosen for their cost before anything was seen of them.
PROBABILITIES = (
    "decaying-linear",
    "slope-by-category",
    "saw-tooth",
    "sectors",
    "two-islands",
    "only-above-one-half",
    "rare-events-along-a-skewed-feature",
    "few-bad-levels",
    "product-behind-rounding",
    "many-missing",
    "ripples-of-three",
    "pairs-of-four",
)

STUDIES = {
    "gains": Study(look_at_gains, GAINS, {200: 31, 1000: 31, 3000: 8}),
    "refreshes": Study(
        look_at_refreshes,
        ("under-confident", "decaying-linear", "rare-corner", "confusion-of-five"),
        {200: 50, 1000: 25},
    ),
    "scores": Study(look_at_scores, GAINS, {200: 40, 1000: 40, 3000: 6}),
    "metrics": Study(
        look_at_metrics,
        ("calibrated", "under-confident", "wrong-above-one-half", "rounded-to-one-digit"),
        {300: 60},
    ),
    "costs and bins": Study(
        look_at_costs_and_bins,
        ("under-confident", "over-forecast-rare-events", "few-unequal-groups"),
        {200: 100, 1000: 100},
    ),
    "heterogeneity": Study(
        look_at_heterogeneity,
        (
            "under-confident",
            "atoms-among-a-continuum",
            "few-unequal-groups",
            "confusion-of-five",
            "decaying-linear",
            "rare-corner",
        ),
        {300: 40},
    ),
    "averages": Study(
        look_at_averages, ("calibrated", "groups-of-five", "calibrated-eight"), {300: 40}
    ),
    "subgroups": Study(look_at_subgroups, ("calibrated", "two-per-cent-events"), {300: 40}),
    "class balance": Study(
        look_at_class_balance, ("under-confident", "decaying-linear"), {300: 60}
    ),
    "support": Study(look_at_support, ("under-confident", "decaying-linear"), {300: 25}),
    "rows": Study(look_at_rows, ("under-confident", "rare-corner", "decaying-linear"), {300: 30}),
    "more data": Study(look_at_more_data, ("under-confident", "decaying-linear"), {300: 8}),
    "probabilities": Study(
        look_at_probabilities, tuple(list_problems("alternative", half="confirm")), {500: 1}
    ),
    "probabilities of more": Study(look_at_probabilities, PROBABILITIES, {3000: 1}),
    "votes": Study(look_at_votes, ("2 classes", "4 classes"), {300: 10}),
}


def run(study: Study, scale: float, first_seed: int = FIRST_SEED) -> Iterator[pd.DataFrame]:
    """Yield what was counted so far, after each round of draws."""
    counted: dict[tuple, list[float]] = {}
    for number in range(max(study.draws.values())):
        for n, draws in study.draws.items():
            if number >= max(1, round(scale * draws)):
                continue
            for problem in study.problems:
                try:
                    outcomes = list(study.look(problem, n, first_seed + number))
                except ValueError as error:
                    if "one class only" not in str(error):
                        raise
                    continue  # no event among so few items: nothing is stated
                for key, case, held, width in outcomes:
                    if np.isnan(held):
                        continue
                    sums = counted.setdefault((key, case, problem, n), [0, 0.0, 0.0])
                    sums[0] += 1
                    sums[1] += held
                    sums[2] += width
        yield pd.DataFrame(
            [
                (*where, draws, round(held, 3), width / draws)
                for where, (draws, held, width) in counted.items()
            ],
            columns=list(COLUMNS),
        )


def save(found: pd.DataFrame, path: Path) -> None:
    """Replace the rows that were looked at, and keep the others, of the same key too."""
    row = ["key", "case", "problem", "n"]
    if path.exists():
        found = pd.concat([kept(path), found]).drop_duplicates(row, keep="last")
    found["width"] = found["width"].map(lambda w: f"{w:.4g}")
    found.sort_values(["key", "case", "n", "problem"]).to_csv(path, index=False)


def kept(path: Path = RESULTS) -> pd.DataFrame:
    """Return what was counted, a row per key, case, problem and number of items."""
    return pd.read_csv(path, keep_default_na=False, na_values={"width": ["nan"]})


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return a row per key, case and number of items: the share that holds, and its extremes."""
    rows = []
    for (key, case, n), part in found.groupby(["key", "case", "n"], sort=False):
        shares = part["held"] / part["draws"]
        rows.append(
            {
                "key": key,
                "case": case,
                "n": n,
                "nominal": LEVELS[key].nominal,
                "holds": part["held"].sum() / part["draws"].sum(),
                "draws": part["draws"].sum(),
                "worst": shares.min(),
                "of": part["problem"].iloc[int(np.argmin(shares))],
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    """Run the studies of the wanted keys, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", nargs="*", default=list(STUDIES), choices=list(STUDIES))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the draws")
    parser.add_argument("--items", type=int, nargs="*", help="only these numbers of items")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print what is kept, run nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in [] if options.table else options.studies:
        start = time.perf_counter()
        study = STUDIES[name]
        sizes = [n for n in study.draws if not options.items or n in options.items]
        study = replace(study, draws={n: study.draws[n] for n in sizes})
        for found in run(study, options.scale, options.first_seed):
            save(found, options.out)
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    print(markdown(summary(kept(options.out))))


def markdown(table: pd.DataFrame) -> str:
    """Return a table for the documentation."""
    lines = ["| " + " | ".join(table.columns) + " |", "|" + "---|" * len(table.columns)]
    for row in table.itertuples(index=False):
        cells = [f"{v:.3f}" if isinstance(v, float) else str(v) for v in row]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
