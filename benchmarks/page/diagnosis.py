"""Diagnosis: size and power of tests, coverage of intervals, where the truth is known."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.parts import script
from hetcal.datasets import list_problems
from hetcal.paper.text import markdown_table

_TESTS = {
    "new": "`heterogeneity_test`",
    "likelihood-ratio": "likelihood ratio of logistic regressions",
    "boosting": "boosted residuals",
    "glest": "glest, permuted labels",
    "mcgrad": "MCGrad's calibration error",
    "old": "hetcal's former test (commit f65c7c8)",
}


def answered(found: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of rejections among the draws that a test has answered.

    A draw on which a test fails is no verdict. Where all fail the share is NaN.

    Examples
    --------
    >>> found = pd.DataFrame({"draws": [4, 2], "failed": [2, 2], "rejects": [0.25, 0.0]})
    >>> answered(found)["rejects"].tolist()
    [0.5, nan]
    """
    draws = found["draws"] - found["failed"]
    rejections = found["rejects"] * found["draws"]
    return found.assign(draws=draws, rejects=rejections / draws.where(draws > 0))


def rejection_table(found: pd.DataFrame, kind: str) -> str:
    """Return, by test and number of items, how often it rejects on the problems of a kind."""
    found = found[found["problem"].isin(list_problems(kind)) & found["test"].isin(_TESTS)]
    groups = found.groupby(["test", "n"])
    order = sorted(groups.groups, key=lambda key: (list(_TESTS).index(key[0]), key[1]))
    extreme = "max" if kind == "null" else "min"
    rows = [
        [_TESTS[test], str(n), *_rejections(groups.get_group((test, n)), extreme)]
        for test, n in order
    ]
    head = ["test", "items", "problems", "draws", "failed", "rejects at 5 %"]
    return markdown_table([*head, f"{extreme} over problems", "seconds"], rows)


def _rejections(part: pd.DataFrame, extreme: str) -> list[str]:
    """Return the cells of a row: a problem without an answer has no share and no time."""
    given = part[part["rejects"].notna()]
    counts = [str(len(given)), str(given["draws"].sum()), str(part["failed"].sum())]
    if given.empty:
        return [*counts, "-", "-", "-"]
    worst = given.loc[getattr(given["rejects"], f"idx{extreme}")()]
    shares = [f"{given['rejects'].mean():.3f}", f"{worst['rejects']:.2f} {worst['problem']}"]
    return [*counts, *shares, f"{given['seconds'].median():.2g}"]


def beside_ours(found: pd.DataFrame, test: str, kind: str) -> pd.DataFrame:
    """Return the shares of our test and of another, on the problems that both have answered."""
    found = found[found["problem"].isin(list_problems(kind))]
    wide = found.pivot_table(index=["problem", "n"], columns="test", values="rejects")
    return wide.reindex(columns=["new", test]).dropna()


def shared_table(found: pd.DataFrame) -> str:
    """Return each test's rejections beside ours, on the problems and sizes that both have."""
    rows = []
    for test, title in list(_TESTS.items())[1:]:
        for kind, what in (("null", "nothing hidden"), ("alternative", "something hidden")):
            part = beside_ours(found, test, kind)
            if len(part):
                rows.append([title, what, str(len(part))])
                rows[-1] += [f"{part['new'].mean():.3f}", f"{part[test].mean():.3f}"]
    head = ["against", "problems where", "problems", "ours rejects", "it rejects"]
    return markdown_table(head, rows, left=2)


def power_in_words(found: pd.DataFrame) -> str:
    """Return what the power is, against what is possible and against the likelihood ratio."""
    power = beside_ours(found, "likelihood-ratio", "alternative").mean()
    size = beside_ours(found, "likelihood-ratio", "null").mean()
    return (
        f"In plain words: on these problems our test finds what is hidden in {power['new']:.2f} of "
        "the draws, a test that knew the direction to look in would in 0.95. The likelihood ratio "
        f"rejects in {power['likelihood-ratio']:.2f}, and in {size['likelihood-ratio']:.2f} where "
        f"nothing is hidden (ours: {size['new']:.2f}), so its rejections cannot be relied on. A "
        "test that does not reject says little with so few items."
    )


_WHY_SHORT = {
    "bootstrap_debiased": "what is taken off for noise is noisy itself, most of all when squared",
    "score": "log losses where probabilities are exactly 0 hang on one item in hundreds",
}


def is_short(held: float, draws: int, nominal: float) -> bool:
    """Tell whether a claim holds too rarely: by more than 0.02 and two binomial standard errors.

    Examples
    --------
    >>> is_short(92, 100, 0.95), is_short(920, 1000, 0.95), is_short(9400, 10_000, 0.95)
    (False, True, False)
    """
    error = (nominal * (1 - nominal) / draws) ** 0.5
    return nominal - held / draws > max(0.02, 2 * error)


def coverage_table() -> str:
    """Return, by claim, how often it holds over all cases and problems."""
    levels = script("coverage_of_levels")
    rows = []
    for key, part in levels.kept().groupby("key"):
        level = levels.LEVELS[key]
        held, draws = part["held"].sum(), part["draws"].sum()
        short = is_short(held, draws, level.nominal)
        why = f"short: {_WHY_SHORT.get(key, 'not explained yet')}" if short else ""
        rows.append([f"`{key}`", level.claim, why, f"{level.nominal:.2f}"])
        rows[-1] += [f"{held / draws:.3f}", str(draws)]
    return markdown_table(["key", "claim", "", "nominal", "holds", "draws"], rows, left=3)


def alarms_in_words(found: pd.DataFrame) -> str:
    """Return as a warning what the monitor does with alike neighbours that nobody told it of."""
    default = found[found["dependence"] == "1"].set_index("phi")
    alarms = default["all_items"] / default["streams"]
    return (
        "**Warning.** Without `dependence` the monitor assumes exchangeable items, whose order "
        "says nothing. Where neighbours are alike it alarms for nothing, with the default k = 1 in "
        f"{alarms[0.5]:.1%} of the streams at φ = 0.5 and in {alarms[0.9]:.1%} at φ = 0.9. "
        "Measure k first ([how](how-to/monitor.md))."
    )


def section(results: Path) -> list[str]:
    """Return the lines of the section."""
    found = answered(pd.read_csv(results / "heterogeneity_confirm.csv"))
    streams = pd.read_csv(results / "monitor_dependence.csv", dtype={"dependence": str})
    return [
        "The catalogue has problems in which nothing is hidden whatever the map from p to the "
        "truth (nulls) and problems in which something is (alternatives), each as strong as a test "
        "that knows its direction needs to find it in 95 of 100 draws. Among them are clustered "
        "rows, rare events, categories, missing values, trees as black boxes and three to eight "
        "classes. Shown is the confirming half. glest and MCGrad know two classes only. glest has "
        "no test: its estimate is compared with those of labels permuted among near p. MCGrad's "
        "test asks another question, whether p itself is right in every segment, and so rejects "
        "where a global map would put everything right; it stands here because it is used for "
        "this purpose.",
        "",
        "Shares of rejections are means over problems, each of its draws with an answer; on "
        "*failed* draws it gave none, and a row of failures alone has no share.",
        "",
        "**Size**: rejections where nothing is hidden; 0.05 is right, more is wrong. Where our "
        "test rejected more than 7 % of the first 81 draws of a problem, 600 fresh draws were "
        "added, and all draws count. Problems below 7 % were not repeated, which makes the "
        "mean a little low, if anything.",
        "",
        rejection_table(found, "null"),
        "",
        "**Power**: rejections where something is hidden. A test that does not keep its size "
        "earns no credit for power.",
        "",
        rejection_table(found, "alternative"),
        "",
        power_in_words(found),
        "",
        "On the problems and sizes that both have:",
        "",
        shared_table(found),
        "",
        "Few draws stand behind some rows, and what has no row was not measured; the bound on the "
        "grouping loss, its bias and the stability over seeds are in "
        "[measuring what is hidden](how-to/measure-heterogeneity.md).",
        "",
        "**Coverage**: how often every interval, bound, p-value and alarm holds what its level "
        "says, all problems together; short is below nominal by more than 0.02 and by more than "
        "two binomial standard errors. A test holds where it does not reject what is true, an "
        "alarm where it is not given without a reason. By case, number of items and problem: "
        "[the levels](reference/coverage.md).",
        "",
        coverage_table(),
        "",
        "**Streams**: alarms of the monitor without labels on streams of 3000 items that nothing "
        "has changed, whose neighbours are alike (AR(1) features with coefficient φ; nominal 1 % "
        "for all items, 2 % for anything), and items until the alarm after all features moved by "
        "1.5 deviations. `dependence=k` looks at items k apart.",
        "",
        script("monitor_dependence").table_of(streams),
        "",
        alarms_in_words(streams),
        "",
    ]
