"""Tables larger than ``--max-rows``: what is drawn is stated wherever results are."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from hetcal import load
from hetcal.persistence import describe

pytestmark = pytest.mark.usefixtures("with_small_hybrids")

ROLES = ("--label", "outcome", "--proba", "p_*")
SAID = "60 of 150 rows, drawn at random (--seed 3)"


@pytest.fixture
def loans_path(folder):
    return folder / "loans.csv"


def test_fit_says_that_rows_were_drawn(call, loans_path, tmp_path, capsys):
    out = tmp_path / "m.hetcal"
    options = ("--method", "swc", "--max-rows", 60, "--seed", 3)
    assert call("fit", loans_path, *ROLES, *options, "-o", out) == 0
    shown = capsys.readouterr()
    assert "60 items drawn from 150 rows, 2 features" in shown.out
    assert SAID in " ".join(shown.err.split())
    assert load(out).predict_proba(
        pd.DataFrame({"age": [30], "region": ["north"]}), y_proba=[[0.5, 0.5]]
    ).shape == (1, 2)
    record = describe(out)["metadata"]["fit"]
    assert (record["rows_read"], record["items"]) == (150, 60)
    assert record["drawn"]["overall"]["rows"] == 150
    assert call("inspect", out) == 0
    assert SAID in " ".join(capsys.readouterr().out.split())
    assert call("fit", loans_path, *ROLES, *options, "-o", out, "--overwrite", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["drawn"]["from_rows"] == 150
    assert facts["notes"][0].startswith(SAID)


def test_all_rows_by_default(call, loans_path, tmp_path, capsys):
    out = tmp_path / "m.hetcal"
    assert call("fit", loans_path, *ROLES, "--method", "platt", "-o", out, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["items"], facts["drawn"]) == (150, None)


def test_compare_says_that_rows_were_drawn(call, loans_path, capsys):
    options = ("--max-rows", 60, "--seed", 3, "--methods", "platt", "--no-baselines", "--jobs", 1)
    assert call("compare", loans_path, *ROLES, *options) == 0
    shown = capsys.readouterr()
    assert "60 items" in shown.out
    assert SAID in " ".join(shown.err.split())
    assert call("compare", loans_path, *ROLES, *options, "--json", "-") == 0
    rows = json.loads(capsys.readouterr().out)
    assert {(row["items"], row["rows_read"]) for row in rows} == {(60, 150)}


def test_diagnose_says_that_rows_were_drawn(call, loans, loans_path, tmp_path, capsys):
    new = tmp_path / "new.csv"
    loans[::-1].to_csv(new, index=False)
    code = call(
        *("diagnose", loans_path, *ROLES, "--max-rows", 60, "--seed", 3, "--test", new),
        *("-o", tmp_path / "report.html", "--json", tmp_path / "report.json", "--jobs", 1),
    )
    assert code == 0
    shown = capsys.readouterr()
    assert "60 items drawn from 150 rows" in shown.out
    assert SAID in shown.err
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["notes"][0].startswith(SAID)
    assert f"Of the 150 rows of {new}, 60 were drawn at random." in report["notes"]
    assert report["settings"]["items"] == "60 drawn from 150 rows"
    assert "--max-rows 60 --seed 3" in report["command"]
    rows = [item["row"] for item in report["weakest"]]
    assert max(rows) >= 60  # places in the table, not in the sample
    assert "drawn at random" in (tmp_path / "report.html").read_text()
