"""Weights and groups of the table reach every figure of ``hetcal refresh``."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tests.cli.conftest import make_loans

import hetcal
from hetcal.calibration.out_of_sample_support import low_support
from hetcal.metrics import brier_score
from hetcal.persistence import describe

P = ["p_paid back", "p_default"]


@pytest.fixture
def run(call, tmp_path, capsys):
    """Return a function that writes tables, calls a command and returns what it tells as JSON."""

    def run(*arguments):
        words = []
        for number, word in enumerate(arguments):
            if isinstance(word, pd.DataFrame):
                word.to_csv(tmp_path / f"{number}.csv", index=False)
                word = tmp_path / f"{number}.csv"
            words.append(word)
        assert call(*words, "--json") == 0
        return json.loads(capsys.readouterr().out)

    return run


def fitted(run, folder, *words, table=None, method="swc"):
    table = make_loans(100) if table is None else table
    roles = ("--label", "outcome", "--proba", "p_*", "--drop", "loan_id,opened,weight,who")
    roles = [word.replace(",weight,who", "") if "weight" not in table else word for word in roles]
    run("fit", table, *roles, "--method", method, *words, "-o", folder / "m.hetcal")
    return folder / "m.hetcal"


def weighted(table, weight):
    return table.assign(weight=weight, who=[f"g{k}" for k in range(len(table))])


@pytest.mark.parametrize("method", ["swc", "temperature"])
def test_rows_of_next_to_no_weight_change_no_figure(run, tmp_path, method):
    """Nor do they say that the columns are in another order."""
    first = weighted(make_loans(100), 1.0)
    model = fitted(run, tmp_path, "--weight", "weight", table=first, method=method)
    good, bad = weighted(make_loans(40, seed=1), 1.0), weighted(make_loans(120, seed=2), 1e-9)
    bad["outcome"] = np.where(bad["p_default"] > 0.5, "paid back", "default")
    before = () if method == "swc" else ("--calibration", first)
    alone = run("refresh", model, good, *before)
    both = run("refresh", model, pd.concat([good, bad]), *before)
    for name in ("brier_model", "brier_before", "brier_after"):
        assert both[name] == pytest.approx(alone[name], abs=0.03)
    assert both["notes"] == alone["notes"] == []
    known = good["outcome"].to_numpy()
    assert both["brier_model"] == pytest.approx(brier_score(known, good[P[::-1]]), abs=1e-3)


def test_rows_of_one_group_make_no_gain_surer(run, tmp_path):
    first = weighted(make_loans(100), 1.0)
    model = fitted(run, tmp_path, "--groups", "who", table=first, method="temperature")
    new = weighted(make_loans(40, seed=1), 1.0)
    new["who"] = [f"new {k}" for k in range(40)]
    widths = []
    for rows in (np.arange(40), np.repeat(np.arange(40), 9)):
        facts = run("refresh", model, new.iloc[rows], "--calibration", first)
        widths.append(facts["gain_high"] - facts["gain_low"])
    assert widths[1] == pytest.approx(widths[0], rel=0.5)


def test_copies_in_one_group_give_nothing_away_in_a_fit_anew(run, tmp_path):
    first = weighted(make_loans(60), 1.0)
    new = weighted(make_loans(30, seed=1), 1.0).iloc[np.repeat(np.arange(30), 9)]
    after = []
    for words in (("--groups", "who"), ()):
        model = fitted(run, tmp_path, *words, "--overwrite", table=first)
        facts = run("refresh", model, new.assign(who="new " + new["who"]), "--calibration", first)
        after.append(facts["brier_after"])
    assert after[0] > 0.3 > 0.2 > after[1]


def test_a_half_life_and_a_window_reach_a_fit_anew(run, tmp_path):
    first, new = make_loans(100), make_loans(60, seed=1)
    new["outcome"] = np.where(np.arange(60) % 10, "default", "paid back")
    model = fitted(run, tmp_path, table=first, method="bcts")
    before = ("--calibration", first)
    plain, fading, cut = (
        run("refresh", model, new, *before, *words)
        for words in ((), ("--half-life", "10"), ("--window", "60"))
    )
    assert (plain["items"], cut["items"]) == (160, 60)
    assert fading["brier_after"] < plain["brier_after"] - 0.02
    assert cut["brier_after"] < plain["brier_after"] - 0.02


def test_a_refreshed_file_knows_its_own_low_support_and_forgets_as_before(run, tmp_path):
    model, out = fitted(run, tmp_path, "--forget-features"), tmp_path / "new.hetcal"
    run("refresh", model, make_loans(120, seed=1), "--calibration", make_loans(100), "-o", out)
    before, after = describe(model), describe(out)
    low = low_support(hetcal.load(out))
    assert after["metadata"]["fit"]["low_support"] == pytest.approx(low)
    assert before["metadata"]["fit"]["low_support"] != pytest.approx(low)
    assert after["calibrator"]["forget_features"]
