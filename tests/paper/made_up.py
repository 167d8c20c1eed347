"""Results that are made up from the published figures: for tests of what is drawn and written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from hetcal.paper.published import published_table
from hetcal.paper.settings import PAPER_TABLES, Trial
from hetcal.paper.store import COLUMNS


def results_like_the_paper(datasets=PAPER_TABLES, *, trials: int = 10) -> pd.DataFrame:
    """Return trials whose means are the published ones; HH is the gain of SWC-HH."""
    published = published_table()
    rows = []
    for (dataset, n_cal, classifier), part in published.groupby(["dataset", "n_cal", "classifier"]):
        if dataset not in datasets:
            continue
        wide = part.pivot(index="method", columns="metric", values="mean")
        error = part[part["metric"] == "brier"].set_index("method")["standard_error"]
        gain = wide.loc["Uncal.", "brier"] - wide.loc["SWC-HH", "brier"]
        for seed in range(trials):
            place = {"dataset": dataset, "classifier": classifier, "n_cal": n_cal, "seed": seed}
            # Deviations that sum to 0 over the trials.
            wiggle = np.cos(2 * np.pi * (seed + 0.5) / trials)
            for method in wide.index:
                rows.append(
                    place
                    | {
                        "method": method,
                        "brier": wide.loc[method, "brier"] + 4 * error[method] * wiggle,
                        "accuracy": wide.loc[method, "accuracy"],
                    }
                )
            hybrid = {"brier": 0.8 * wide["brier"].min(), "accuracy": wide["accuracy"].max()}
            rows.append(place | {"method": "hybrid"} | hybrid)
            rows.append(place | {"method": "hh", "hh": max(gain, 0) + 0.05})
            parts = {"hh": gain, "hh_local": 0.8 * gain, "hh_global": 0.2 * gain}
            rows.append(place | {"method": "hh-out-of-sample", "p_value": 0.01} | parts)
    table = pd.DataFrame(rows).assign(seconds=2.0, n_test=500)
    keys = [
        Trial(row.dataset, row.classifier, row.n_cal, row.seed, row.method).key
        for row in table.itertuples()
    ]
    return table.assign(key=keys).reindex(columns=list(COLUMNS))


def write(table: pd.DataFrame, folder: Path) -> Path:
    """Write results as the store exports them."""
    folder.mkdir(parents=True, exist_ok=True)
    for dataset, part in table.groupby("dataset"):
        part.to_csv(folder / f"{dataset}.csv", index=False)
    return folder
