"""Cost: time and memory beside quality, and how they grow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.page.pictures import growth_plot
from benchmarks.page.repair import read_tables
from hetcal.paper.text import markdown_table

Files = dict[str, str]
_TIMED = (
    *("hetcal hybrid", "hetcal global", "paper SWC", "sklearn isotonic", "MCGrad"),
    *("forest on [X, P]", "boosting on [X, P]"),
)


def exponent(line: pd.Series) -> float:
    """Return b of cost ~ items^b, over the upper half of the sizes.

    Examples
    --------
    >>> round(exponent(pd.Series([1.0, 1.0, 4.0], index=[10, 100, 200])), 1)
    2.0
    """
    upper = line.iloc[len(line) // 2 :] if len(line) > 3 else line.iloc[-2:]
    return float(np.polyfit(np.log(upper.index), np.log(upper.to_numpy()), 1)[0])


def growth_table(found: pd.DataFrame) -> str:
    """Return time, memory and excess of each method at every size."""
    sizes = sorted(found["n_cal"].unique())
    grows = len(sizes) > 2  # two sizes give a line, and no sign of whether it is one
    rows = []
    for method, part in found.groupby("method", sort=False):
        part = part.set_index("n_cal")
        rows.append([str(method)])
        for n in sizes:
            row = part.loc[n] if n in part.index else None
            rows[-1].append(
                "-"
                if row is None
                else f"{row['seconds']:.2g} s, {row['megabytes']:.0f} MB, {row['excess']:.4f}"
            )
        if grows:
            rows[-1].append(f"{exponent(part['seconds']):.2f}" if len(part) > 2 else "-")
    head = ["method", *(f"{n:,} items" for n in sizes), *(["exponent of time"] if grows else [])]
    return markdown_table(head, rows)


def least_excess(found: pd.DataFrame) -> str:
    """Return in a sentence which method comes nearest to the truth at each size."""
    best = found.loc[found.groupby("n_cal")["excess"].idxmin()]
    named = [f"{row.method} with {row.n_cal:,} items" for row in best.itertuples()]
    return f"Nearest to the truth: {', '.join(named)}."


def published_table(stored: Path) -> str:
    """Return how often faster the published algorithms are than their plain form."""
    hh = pd.read_csv(stored / "speed" / "hh.csv")
    pair = pd.read_csv(stored / "speed" / "similarity.csv")
    ratio = float(np.exp(np.log(hh["exact_x"]).mean()))
    rows = [
        [
            *("published hidden heterogeneity, same numbers", f"{len(hh)} cases"),
            *(f"{ratio:.0f} times", f"{hh['exact_x'].min():.0f} times"),
            f"{hh['parity'].max():.0e}",
        ],
        [
            *("the plain loop over pairs of SWC", f"{len(pair)} cases"),
            *(f"{pair['seconds_per_pair'].mean() * 1e6:.1f} µs a pair", "-", "-"),
        ],
    ]
    head = ["work", "measured on", "geometric mean of the gain", "least", "largest difference"]
    return markdown_table(head, rows)


def time_lines(tables: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the median time of methods over the tables, by number of items."""
    times = tables.pivot_table(index="n_cal", columns="method", values="seconds", aggfunc="median")
    return {name: times[name].clip(lower=1e-3) for name in _TIMED if name in times}


def time_table(tables: pd.DataFrame) -> str:
    """Return these times, what they are in random forests, and how they grow."""
    lines = time_lines(tables)
    yard = lines["forest on [X, P]"]
    rows = []
    for name, line in lines.items():
        rows.append([name, *(f"{value:.2g}" for value in line)])
        rows[-1] += [f"{line.iloc[-1] / yard.iloc[-1]:.2g}", f"{exponent(line):.2f}"]
    head = ["method", *(f"{n:,} items" for n in yard.index)]
    return markdown_table([*head, "in forests, at the last", "exponent"], rows)


def section(stored: Path, results: Path) -> tuple[list[str], Files]:
    """Return the lines of the section, and its pictures by name."""
    tables = read_tables(results)
    growth = pd.read_csv(results / "growth.csv")
    before = growth["excess_before"].iloc[0]
    memory = {
        str(name): part.set_index("n_cal")["megabytes"].clip(lower=1.0)
        for name, part in growth.groupby("method", sort=False)
    }
    lines = [
        "Processor seconds of fit and prediction together (8000 new rows where there are so many), "
        "one thread, medians over the tables and forecasts whose quality is stated above; the last "
        "column is b of time ~ items^b over the larger sizes.",
        "",
        time_table(tables),
        "",
        "![Processor time by calibration items](_static/proof/growth-time.svg)",
        "",
        "Time, memory and quality where the truth is known, each in a process of its own (20 "
        "features, two classes, 10 000 new rows): processor seconds, growth of the process, and "
        "the excess of the Brier score over the least possible one (the probabilities as they are: "
        f"{before:.4f}). One draw of each size; the sizes are those of the columns, no others were "
        "measured.",
        "",
        growth_table(growth),
        "",
        least_excess(growth),
        "",
        "![Memory by calibration items](_static/proof/growth-memory.svg)",
        "",
        "The published algorithms against their plain form in scikit-learn and Python:",
        "",
        published_table(stored),
        "",
        "Times of commands, of `hetcal apply` on large tables and growth with every size are in "
        "[benchmarks](appendix/benchmarks.md) and [large tables](how-to/scaling.md).",
        "",
    ]
    return lines, {
        "growth-time.svg": growth_plot(time_lines(tables), "Fit and prediction", "seconds"),
        "growth-memory.svg": growth_plot(memory, "Memory of fit and prediction", "MB"),
    }
