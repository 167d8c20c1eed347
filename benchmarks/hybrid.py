"""The hybrid calibrator beside the paper's eight methods, retrained models and MCGrad.

    HETCAL_DATA=folder python benchmarks/hybrid.py paper              # 42 cells, the paper's sizes
    HETCAL_DATA=folder python benchmarks/hybrid.py sizes              # 50, 200 and 1000 items
    HETCAL_DATA=folder python benchmarks/hybrid.py cifar              # three networks
    HETCAL_DATA=folder python benchmarks/hybrid.py tables --trials 5  # adult, bank, credit

Results are kept in ``--results`` (HETCAL_RESULTS, else a folder in the user's cache) as soon as
they are there; a run that is started again goes on where it stopped, and what
``hetcal paper table`` has computed there is not computed again. ``--show`` runs nothing.

Settings of the hybrid were chosen on the cells marked "develop"; those marked "confirm" were not
looked at while choosing. Others are taken in hindsight: per cell the one with the best mean.
MCGrad takes part where the package mcgrad is installed. Tables test on 8000 rows.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from hetcal.paper.hindsight import CELL_SETS, cell_trials, compare_in_hindsight, geometric_mean
from hetcal.paper.runner import run_trials
from hetcal.paper.settings import BASELINES
from hetcal.paper.store import Store

OTHERS = {
    "global": "the maps of p alone",
    "paper": "the paper's eight",
    "all": "all others",
}
METRICS = ("brier", "log_loss", "ece")
SHOWN = ["dataset", "classifier", "n_cal", "cell", "trials", "mean", "best", "best_mean", "ratio"]
SHOWN += ["difference", "standard_error", "p_worse", "worse"]


def summary(results: pd.DataFrame, method: str) -> None:
    """Print every cell's Brier score and, for all scores, geometric means and losses."""
    for against, title in OTHERS.items():
        table = compare_in_hindsight(results, method=method, against=against)
        if table.empty:
            print("No cell has both the hybrid and another method yet.")
            return
        table["cell"] = table["development"].map({True: "develop", False: "confirm"})
        print(f"\nBrier score of {method} against the best of {title} in hindsight")
        print(table[SHOWN].round(4).to_string(index=False))
        for metric in METRICS:
            scores = compare_in_hindsight(results, metric, method=method, against=against)
            parts = [("all cells", scores)]
            parts += [("develop", scores[scores["development"]])]
            parts += [("confirm", scores[~scores["development"]])]
            for name, part in parts:
                if len(part):
                    print(
                        f"{metric:>8}, {name} ({len(part)}): geometric mean of ratios "
                        f"{geometric_mean(part['ratio']):.3f}, worst {part['ratio'].max():.3f}, "
                        f"worse in {int((part['ratio'] > 1).sum())}, "
                        f"significantly in {int(part['worse'].sum())} (Holm, 5 %)"
                    )
    debiased = results[results["method"] == method].groupby("n_cal")["ece_debiased"].mean()
    print(f"\nDebiased ECE of {method}, mean over cells, by calibration items:")
    print(debiased.round(4).to_string())


def main() -> None:
    """Run what is missing and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", choices=CELL_SETS)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--datasets", nargs="*", help="only these")
    parser.add_argument("--without", nargs="*", default=[], help="methods to leave out")
    parser.add_argument("--method", default="hybrid")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--show", action="store_true", help="run nothing, print what is there")
    arguments = parser.parse_args()
    others = [name for name in BASELINES if name != "mcgrad" or find_spec("mcgrad")]
    cells = [
        cell
        for cell in CELL_SETS[arguments.cells]
        if not arguments.datasets or cell[0] in arguments.datasets
    ]
    trials = [
        trial
        for trial in cell_trials(cells, [arguments.method, *others], arguments.trials)
        if trial.method not in arguments.without
    ]
    store = Store(arguments.results)
    if not arguments.show:
        run_trials(trials, store, jobs=arguments.jobs, report=lambda done: print(done, flush=True))
    found = store.frame()
    summary(found[found["key"].isin({trial.key for trial in trials})], arguments.method)


if __name__ == "__main__":
    main()
