import numpy as np
import pandas as pd
import pytest

from hetcal.paper.published import published_table
from hetcal.paper.tables import (
    compare_with_published,
    mark_best,
    mean_heterogeneity,
    summarise,
    summary_table,
)


@pytest.fixture
def results():
    generator = np.random.default_rng(0)
    rows = [
        {
            "dataset": "mnist-4v9",
            "n_cal": 3000,
            "classifier": "NB",
            "seed": seed,
            "method": method,
            "brier": level + generator.normal(0, 0.01),
            "accuracy": 1 - level,
            "hh": np.nan,
        }
        for method, level in [("SWC", 0.06), ("SWC-HH", 0.03), ("hybrid", 0.02)]
        for seed in range(10)
    ]
    hidden = [
        row | {"method": "hh", "hh": 0.5, "brier": np.nan, "accuracy": np.nan} for row in rows[:10]
    ]
    return pd.DataFrame([*rows, *hidden])


def test_means_and_standard_errors(results):
    table = summarise(results).set_index(["metric", "method"])
    values = results.loc[results["method"] == "SWC", "brier"].to_list()
    mean = sum(values) / 10
    error = (sum((value - mean) ** 2 for value in values) / 9) ** 0.5 / 10**0.5
    assert table.loc[("brier", "SWC"), "mean"] == pytest.approx(mean)
    assert table.loc[("brier", "SWC"), "standard_error"] == pytest.approx(error)
    assert table.loc[("brier", "SWC"), "trials"] == 10
    assert ("brier", "hh") not in table.index


def test_published_figures_stand_beside(results):
    table = compare_with_published(summarise(results)).set_index(["metric", "method"])
    cell = table.loc[("brier", "SWC")]
    assert cell["published"] == 0.0565
    assert cell["deviation"] == pytest.approx((cell["mean"] - 0.0565) / 0.003)
    assert pd.isna(table.loc[("brier", "hybrid"), "published"])


def test_more_accurate_is_better():
    row = {"dataset": "d", "n_cal": 1, "classifier": "NB", "metric": "accuracy"}
    cells = [("a", 0.90, 0.03), ("b", 0.99, 0.01), ("c", 0.985, 0.0)]
    table = pd.DataFrame([row | {"method": m, "mean": v, "standard_error": e} for m, v, e in cells])
    assert mark_best(table)["best"].tolist() == [False, True, True]


def test_the_rule_for_the_best_is_the_paper_s():
    """Applied to the printed figures it gives the printed marks, but for rounded errors."""
    table = published_table()
    marked = mark_best(table.drop(columns="best"))["best"]
    assert (marked == table["best"].astype(bool)).mean() > 0.97


def test_one_trial_has_no_error(results):
    table = summary_table(results[results["seed"] == 0])
    assert table["standard_error"].isna().all()
    assert table[table["metric"] == "brier"].set_index("method")["best"].sum() == 1


def test_measurements_are_no_methods(results):
    assert "hh" not in set(summary_table(results)["method"])
    assert mean_heterogeneity(results)["mean"].tolist() == [0.5]
