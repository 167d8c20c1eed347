"""How ``hetcal paper`` shows tables in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from hetcal.paper.plan import expected_seconds
from hetcal.paper.runner import missing
from hetcal.paper.settings import MEASUREMENTS, Trial
from hetcal.paper.store import Store
from hetcal.paper.tables import mean_heterogeneity, summary_table
from hetcal.paper.text import duration

Cells = Mapping[tuple[str, str], Mapping[Any, Any]]

_TITLES = {"brier": "Brier score (sum over classes)", "accuracy": "Accuracy"}
_CELL_WIDTH, _ROW_HEAD_WIDTH = 14, 27
# A pipe takes the columns of a table side by side.
_PIPE_WIDTH = 250


def print_tables(console: Console, found: pd.DataFrame, methods: Sequence[str]) -> None:
    """Print Brier score and accuracy, methods side by side, in as many parts as the width asks."""
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    cells = summary_table(found)
    hidden = mean_heterogeneity(found).set_index("classifier")["mean"].to_dict()
    shown = [method for method in methods if method not in MEASUREMENTS]
    for metric, title in _TITLES.items():
        ours: Cells = {
            (row["classifier"], row["method"]): row
            for row in cells[cells["metric"] == metric].to_dict("records")
        }
        if not ours:
            continue
        console.print(f"\n[bold]{title}[/], {_setting(found)}", soft_wrap=True, markup=True)
        for part in _parts(shown, console.width):
            console.print(_table(ours, part, hidden), markup=True)
    for line in _agreement(cells):
        console.print(line, soft_wrap=True)


def print_status(console: Console, trials: Sequence[Trial], store: Store) -> None:
    """Print what is there and what is not, per data set."""
    todo = missing(trials, store)
    expected = expected_seconds(todo, store)
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("data set")
    for head in ("there", "of", "processor time left"):
        table.add_column(head, justify="right")
    for dataset in dict.fromkeys(trial.dataset for trial in trials):
        total = sum(trial.dataset == dataset for trial in trials)
        left = [trial for trial in todo if trial.dataset == dataset]
        seconds = sum(expected[trial] for trial in left)
        table.add_row(dataset, str(total - len(left)), str(total), duration(seconds))
    console.print(table)
    console.print(
        f"{len(trials) - len(todo)} of {len(trials)} trials are in {store.folder}; about "
        f"{duration(sum(expected.values()))} of processor time is left.",
        soft_wrap=True,
    )


def _setting(found: pd.DataFrame) -> str:
    first = found.iloc[0]
    trials = found["seed"].nunique()
    return f"{first['dataset']}, {first['n_cal']} calibration items, {trials} trials"


def _parts(methods: Sequence[str], width: int) -> Iterator[Sequence[str]]:
    """Cut the columns into parts that fit."""
    n = max(1, (width - _ROW_HEAD_WIDTH) // _CELL_WIDTH)
    for start in range(0, len(methods), n):
        yield methods[start : start + n]


def _table(ours: Cells, methods: Sequence[str], hidden: dict[Any, float]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("HH", justify="right")
    table.add_column("")
    for method in methods:
        table.add_column(f"{method} ", justify="right", no_wrap=True)
    compared = any(pd.notna(row["published"]) for row in ours.values())
    lines = "ours\n[dim]paper\ndifference[/]" if compared else ""
    for classifier in dict.fromkeys(classifier for classifier, _ in ours):
        hh = f"{hidden[classifier]:.3f}" if classifier in hidden else ""
        cells = [_cell(ours, classifier, method) for method in methods]
        table.add_row(classifier, hh, lines, *cells)
    return table


def _cell(ours: Cells, classifier: str, method: str) -> str:
    """Three lines: ours, the paper's, the difference in published standard errors."""
    row = ours.get((classifier, method))
    if row is None:
        return ""
    first = f"{row['mean']:.4f} {_small(row['standard_error'])}"
    # Bold does not survive a pipe: the star does.
    lines = [f"[bold]{first}*[/]" if row["best"] else f"{first} "]
    if pd.notna(row["published"]):
        published = f"{row['published']:.4f} {_small(row['published_error'])} "
        colour = "red" if abs(row["deviation"]) > 2 else "dim"
        lines += [f"[dim]{published}[/]", f"[{colour}]{row['deviation']:+.1f} s.e.[/] "]
    return "\n".join(lines)


def _small(error: float) -> str:
    return "" if pd.isna(error) else f"{error:.3f}"[1:] if error < 1 else f"{error:.2f}"


def _agreement(cells: pd.DataFrame) -> Iterator[str]:
    compared = cells.dropna(subset="deviation")
    if len(compared):
        near = int((compared["deviation"].abs() <= 2).sum())
        yield f"{near} of {len(compared)} cells lie within two published standard errors."
