from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hetcal.paper import hindsight
from hetcal.paper.hindsight import (
    CELL_SETS,
    cell_trials,
    compare_in_hindsight,
    holm,
    is_development,
)

RNG = np.random.default_rng(0)


def results(values):
    """Rows from {(data set, method): values over trials}."""
    return pd.DataFrame(
        [
            {"dataset": d, "classifier": "NB", "n_cal": 100, "seed": s, "method": m, "brier": v}
            for (d, m), series in values.items()
            for s, v in enumerate(series)
        ]
    )


def test_holm_against_its_definition():
    p = RNG.uniform(size=12) ** 3
    order = sorted(range(12), key=lambda i: p[i])
    for place, i in enumerate(order):
        expected = max(min(1.0, (12 - j) * p[order[j]]) for j in range(place + 1))
        assert holm(p)[i] == pytest.approx(expected)


def test_a_clear_loss_is_called_one_and_noise_is_not():
    base = RNG.uniform(0.1, 0.3, 10)
    table = compare_in_hindsight(
        results(
            {
                ("mnist-3v8", "hybrid"): base + 0.05 + RNG.normal(0, 0.01, 10),
                ("mnist-3v8", "SWC"): base,
                ("letter", "hybrid"): base + RNG.normal(0, 0.01, 10),
                ("letter", "SWC"): base,
                ("letter", "forest-x"): base + 1,
            }
        )
    ).set_index("dataset")
    assert table["worse"].to_dict() == {"mnist-3v8": True, "letter": False}
    assert table["development"].to_dict() == {"mnist-3v8": False, "letter": True}
    assert table.loc["letter", "best"] == "SWC"


def test_only_common_trials_are_compared():
    table = compare_in_hindsight(
        results({("d", "hybrid"): [0.1, 0.2], ("d", "SWC"): [0.2, 0.4, 9.0], ("d", "TS"): [0.0]})
    )
    assert table["best"].tolist() == ["SWC"]  # TS lacks a trial that the hybrid has
    assert table["ratio"].tolist() == [pytest.approx(0.5)]


def test_others_can_be_narrowed_down():
    scores = {"hybrid": 0.2, "forest-x": 0.1, "SWC": 0.4, "TS": 0.5}
    data = results({("d", method): [score] for method, score in scores.items()})
    assert compare_in_hindsight(data)["best"].tolist() == ["forest-x"]
    assert compare_in_hindsight(data, against="paper")["best"].tolist() == ["SWC"]
    assert compare_in_hindsight(data, against="global")["best"].tolist() == ["TS"]
    assert compare_in_hindsight(data[data["method"] != "hybrid"]).empty


def test_the_guide_names_the_cells_of_development():
    docs = Path(__file__).parents[2] / "docs"
    history = (docs / "appendix" / "hybrid-development.md").read_text(encoding="utf-8")
    guide = (docs / "explanation" / "hybrid.md").read_text(encoding="utf-8")
    chosen = " ".join(history.split("## How it was chosen")[1].split("\n\n")[1].split())
    for dataset in hindsight._DEVELOPMENT_DATASETS:
        assert dataset in chosen
    for dataset, classifier, n_cal in hindsight._DEVELOPMENT_CELLS:
        assert f"{dataset} ({classifier}, {n_cal} items)" in chosen
    confirm = guide.split('"Confirm" are the cells')[1].split("\n\n")[0]
    whole = confirm.split(", and those of ")[0]
    developed = {*hindsight._DEVELOPMENT_DATASETS, *(c[0] for c in hindsight._DEVELOPMENT_CELLS)}
    assert not [dataset for dataset in developed if dataset in whole]


def test_cell_sets_are_those_that_were_announced():
    sizes = {name: len(set(cells)) for name, cells in CELL_SETS.items()}
    assert sizes == {"paper": 42, "sizes": 36, "cifar": 6, "tables": 18}
    trials = cell_trials(CELL_SETS["tables"], ["hybrid", "mcgrad"])
    assert len(trials) == 18 * 3 * 10
    assert not any(t.method == "mcgrad" for t in cell_trials(CELL_SETS["cifar"], ["mcgrad"]))
    assert is_development(("fashion-mnist", "RF", 200))
    assert not is_development(("fashion-mnist", "RF", 1000))
    assert not is_development(("bank-marketing", "LR", 300))
