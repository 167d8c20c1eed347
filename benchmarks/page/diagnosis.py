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


def rejection_table(found: pd.DataFrame, kind: str) -> str:
    """Return, by test and number of items, how often it rejects on the problems of a kind."""
    found = found[found["problem"].isin(list_problems(kind)) & found["test"].isin(_TESTS)]
    groups = found.groupby(["test", "n"])
    order = sorted(groups.groups, key=lambda key: (list(_TESTS).index(key[0]), key[1]))
    extreme = "max" if kind == "null" else "min"
    rows = []
    for test, n in order:
        part = groups.get_group((test, n))
        mean = (part["rejects"] * part["draws"]).sum() / part["draws"].sum()
        worst = part.loc[part["rejects"].idxmax() if kind == "null" else part["rejects"].idxmin()]
        rows.append([_TESTS[test], str(n), str(len(part)), str(part["draws"].sum())])
        rows[-1] += [f"{mean:.3f}", f"{worst['rejects']:.2f} {worst['problem']}"]
        rows[-1] += [f"{part['seconds'].median():.2g}"]
    head = ["test", "items", "problems", "draws", "rejects at 5 %", f"{extreme} over problems"]
    return markdown_table([*head, "seconds"], rows)


def shared_table(found: pd.DataFrame) -> str:
    """Return each test's rejections beside ours, on the problems and sizes that both have."""
    wide = found.pivot_table(index=["problem", "n"], columns="test", values="rejects")
    rows = []
    for test, title in _TESTS.items():
        if test not in wide or test == "new" or "new" not in wide:
            continue
        both = wide[["new", test]].dropna()
        for kind, what in (("null", "nothing hidden"), ("alternative", "something hidden")):
            part = both[both.index.get_level_values("problem").isin(list_problems(kind))]
            if len(part):
                rows.append([title, what, str(len(part))])
                rows[-1] += [f"{part['new'].mean():.3f}", f"{part[test].mean():.3f}"]
    head = ["against", "problems where", "problems", "ours rejects", "it rejects"]
    return markdown_table(head, rows, left=2)


_SHORT = 0.03
_WHY_SHORT = {
    "bootstrap_debiased": "what is taken off for noise is noisy itself, most of all when squared",
    "score": "1.96 standard errors are too few with few groups",
    "cost": "1.96 standard errors are too few with few groups",
}


def coverage_table() -> str:
    """Return, by claim, how often it holds over all cases and problems."""
    levels = script("coverage_of_levels")
    rows = []
    for key, part in levels.kept().groupby("key"):
        nominal = levels.LEVELS[key].nominal
        held, draws = part["held"].sum(), part["draws"].sum()
        why = ""
        if held / draws < nominal - _SHORT:
            why = f"short: {_WHY_SHORT.get(key, 'not explained yet')}"
        rows.append([f"`{key}`", why, f"{nominal:.2f}", f"{held / draws:.3f}", str(draws)])
    return markdown_table(["claim", "", "nominal", "holds", "draws"], rows, left=2)


def section(results: Path) -> list[str]:
    """Return the lines of the section."""
    found = pd.read_csv(results / "heterogeneity_confirm.csv")
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
        "**Size**: rejections where nothing is hidden; 0.05 is right, more is wrong.",
        "",
        rejection_table(found, "null"),
        "",
        "**Power**: rejections where something is hidden. A test that does not keep its size "
        "earns no credit for power.",
        "",
        rejection_table(found, "alternative"),
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
        f"says, all problems together; short is more than {_SHORT} below nominal. By case, number "
        "of items and problem: [the levels](reference/coverage.md).",
        "",
        coverage_table(),
        "",
        "**Streams**: alarms of the monitor without labels on streams of 3000 items that nothing "
        "has changed, whose neighbours are alike (AR(1) features with coefficient φ; nominal 1 % "
        "for all items, 2 % for anything), and items until the alarm after all features moved by "
        "1.5 deviations. `dependence=k` looks at items k apart.",
        "",
        script("monitor_dependence").table_of(
            pd.read_csv(results / "monitor_dependence.csv", dtype={"dependence": str})
        ),
        "",
    ]
