"""What `hetcal.advise` promises on real tables, and what came true on rows that it has not seen.

    HETCAL_DATA=folder python benchmarks/advice_tables.py
    HETCAL_DATA=folder python benchmarks/advice_tables.py --n-cal 300 --only forecasts

Three tables with black boxes that were trained on 2000 other rows (the first trial of
``benchmarks/hybrid.py tables``, 8000 test rows), and three tables of probabilities that people and
published models really stated (calibration items drawn at random, 8000 others to test; of the
elections half of the races, the others to test). Gains are of what the advice recommends, over the
probabilities as they are, in per cent of their Brier score. "hybrid anyway" is what the hybrid
would have gained, recommended or not.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import hetcal
from hetcal.metrics.scores import brier_losses
from hetcal.metrics.standard_errors import mean_and_error
from hetcal.paper.data import trial_data
from hetcal.paper.hindsight import CELL_SETS

HEAD = (
    *("table", "probabilities of", "items", "verdict", "how sure", "does"),
    *("stated gain, % (95 % interval)", "realised gain, % (± error)", "hybrid anyway, %"),
)
MOST_TESTED = 8000
FORECASTS = {
    "forecasts-doctors": ("y_dead_180d", "p_physician_180d"),
    "forecasts-games": ("y_team1", "p_team1"),
}


@dataclass(frozen=True)
class Case:
    """Calibration items, new items, and who stated the probabilities."""

    table: str
    whose: str
    X: object
    y: np.ndarray
    P: np.ndarray
    X_new: object
    y_new: np.ndarray
    P_new: np.ndarray
    groups: object = None
    identifiers: object = None
    events_new: np.ndarray | None = None


def black_boxes(sizes: list[int], seed: int) -> Iterator[Case]:
    for dataset, classifier, n_cal in CELL_SETS["tables"]:
        if n_cal in sizes:
            d = trial_data(dataset, classifier, n_cal, seed)
            yield Case(dataset, classifier, d.X_cal, d.y_cal, d.P_cal, d.X_test, d.y_test, d.P_test)


def forecasts(sizes: list[int], seed: int) -> Iterator[Case]:
    for name, (label, proba) in FORECASTS.items():
        table = read(name).dropna(subset=[label, proba]).reset_index(drop=True)
        left_out = [c for c in table if c.startswith(("y_", "p_")) or c in ("sps", "date")]
        order = np.random.default_rng(seed).permutation(len(table))
        for n in sizes:
            cal, new = order[:n], order[n : n + MOST_TESTED]
            yield stated(name, proba, table, table.columns.difference(left_out), label, cal, new)
    yield from elections(seed)


def elections(seed: int) -> Iterator[Case]:
    """Yield half of the races, not knowing what belongs together, and knowing it."""
    table = read("forecasts-governors").dropna(subset=["race"]).reset_index(drop=True)
    races = np.random.default_rng(seed).permutation(table["race"].unique())
    known = table["race"].isin(races[: len(races) // 2]).to_numpy()
    rng = np.random.default_rng(seed)
    cal = rng.permutation(np.flatnonzero(known))[:3000]
    new = rng.permutation(np.flatnonzero(~known))[:MOST_TESTED]
    features = table.columns.difference(["y_win", "p_win", "race", "candidate"])
    for groups in (None, "candidate", "race"):
        yield stated(
            *("forecasts-governors" + ("" if groups is None else f", groups = {groups}"), "p_win"),
            *(table, features, "y_win", cal, new),
            groups=None if groups is None else table[groups].iloc[cal],
            identifiers=table[["candidate"]].iloc[cal] if groups is None else None,
            events_new=pd.factorize(table["race"].iloc[new])[0],
        )


def stated(name, proba, table, features, label, cal, new, **more) -> Case:
    X, p = table[features], table[proba].to_numpy()
    X = X.astype(dict.fromkeys(X.select_dtypes(["object", "string"]), "category"))
    P, y = np.column_stack([1 - p, p]), table[label].to_numpy()
    return Case(
        name, proba.removeprefix("p_"), X.iloc[cal], y[cal], P[cal], X.iloc[new], y[new], P[new],
        **more,
    )  # fmt: skip


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(Path(os.environ["HETCAL_DATA"]) / f"{name}.csv.gz")


def row(case: Case) -> list[str]:
    classes = np.unique(np.concatenate([case.y, case.y_new]))
    given = {"y_proba": case.P, "classes": classes, "groups": case.groups}
    advice = hetcal.advise(case.X, case.y, identifiers=case.identifiers, **given)
    evidence = advice.evidence
    codes = np.searchsorted(classes, case.y_new)
    before = brier_losses(case.P_new, codes)

    def realised(action: str) -> tuple[float, float]:
        Q = case.P_new
        if action == "hybrid":
            Q = evidence.hybrid.predict_proba(case.X_new, y_proba=case.P_new)
        elif action != "uncalibrated":
            fitted = hetcal.get_calibrator(action, classes=classes)
            Q = fitted.fit(None, case.y, y_proba=case.P).predict_proba(y_proba=case.P_new)
        gain, error = mean_and_error(before - brier_losses(Q, codes), None, case.events_new)
        return 100 * float(gain / before.mean()), 100 * float(error / before.mean())

    gain = advice.expected_gain
    shares = (
        []
        if gain is None
        else [100 * x / evidence.brier for x in (gain.value, gain.low, gain.high)]
    )
    came_true = realised(advice.recommended)
    return [
        *(case.table, case.whose, str(len(case.y)), advice.verdict, str(advice.certainty.state)),
        {"hybrid": "hybrid", "uncalibrated": "nothing"}.get(advice.recommended, "global map"),
        "0" if gain is None else "{:.1f} ({:.1f} to {:.1f})".format(*shares),
        "0" if gain is None else "{:.1f} ± {:.1f}".format(*came_true),
        f"{realised('hybrid')[0]:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-cal", type=int, nargs="*", default=[300, 3000])
    parser.add_argument("--only", choices=["black-boxes", "forecasts"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| " + " | ".join(HEAD) + " |")
    print("|" + "---|" * len(HEAD))
    for kind, cases in {"forecasts": forecasts, "black-boxes": black_boxes}.items():
        if options.only in (None, kind):
            for case in cases(options.n_cal, options.seed):
                print("| " + " | ".join(row(case)) + " |", flush=True)


if __name__ == "__main__":
    main()
