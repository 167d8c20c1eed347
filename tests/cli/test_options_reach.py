"""Every option of a command reaches what it is for."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tests.cli.conftest import make_loans

import hetcal
from hetcal.persistence import describe
from hetcal.tables import read_table

ROLES = ("--label", "outcome", "--proba", "p_*")


class _StopError(RuntimeError):
    """Ends a command when what is asked about is known."""


@pytest.fixture
def handed_on(monkeypatch, call, capsys):
    """Return a function that runs a command and returns what it hands on to the library."""

    def run(where, *words):
        found = {}

        def remember(*given, **named):
            found.update(named, given=given)
            raise _StopError("known")

        with monkeypatch.context() as patch:
            patch.setattr(where, remember)
            assert call(*words) != 0
        assert found, capsys.readouterr().err
        return found

    return run


def test_options_of_diagnose(handed_on, folder, tmp_path):
    make_loans(70, seed=5).to_csv(tmp_path / "new.csv", index=False)
    words = ("diagnose", folder / "loans.csv", *ROLES, "-o", tmp_path / "r.html")
    run = "hetcal.report.diagnose"
    usual = handed_on(run, *words)
    assert usual["time"] is usual["by"] is usual["costs"] is None
    assert (usual["random_state"], usual["worthwhile"]) == (0, 0.02)
    given = handed_on(
        run,
        *(*words, "--time", "opened", "--drop", "loan_id", "--by", "region", "--seed", "7"),
        *("--worthwhile", "0.3", "--cost", "fp=2,fn=3", "--learning-curve", "--jobs", "3"),
        *("--test", tmp_path / "new.csv", "--max-rows", "50"),
    )
    assert (given["random_state"], given["worthwhile"], given["n_jobs"]) == (7, 0.3, 3)
    assert len(given["time"]) == given["given"][0].n_items == 50
    assert "loan_id" in given["identifiers"]
    assert list(given["by"]) == ["region"]
    assert given["learning_curve"]
    assert given["name"] == "loans"
    # Rows are the truth, columns the decision; the first class is "paid back", in that order.
    classes = given["given"][0].classes.tolist()
    expected = np.zeros((2, 2))
    expected[0, 1], expected[1, 0] = 2, 3
    np.testing.assert_array_equal(given["costs"], expected)
    assert len(given["X_test"]) == len(given["y_test"]) == 50
    other = handed_on(
        run, *words, "--test", tmp_path / "new.csv", "--max-rows", "50", "--seed", "8"
    )
    assert not other["X_test"].equals(given["X_test"])
    named = f"{classes[1]}:{classes[0]}=4"
    costs = handed_on(run, *words, "--cost", named)["costs"]
    assert (costs[1, 0], costs.sum()) == (4, 4)


def test_the_test_table_of_diagnose_is_read_as_the_table_is(handed_on, tmp_path):
    for name, seed in (("t.csv", 0), ("new.csv", 1)):
        table = make_loans(60, seed=seed)
        table["ä"] = np.where(table["age"] > 40, "ö", "ü")
        form = {"sep": ";", "decimal": ",", "encoding": "latin-1"}
        table.to_csv(tmp_path / name, index=False, **form)
    words = ("diagnose", tmp_path / "t.csv", *ROLES, "-o", tmp_path / "r.html")
    words += ("--test", tmp_path / "new.csv", "--decimal", ",", "--encoding", "latin-1")
    new = handed_on("hetcal.report.diagnose", *words)
    np.testing.assert_allclose(new["y_proba_test"][:, 1], make_loans(60, seed=1)["p_default"])
    assert set(new["X_test"]["ä"]) == {"ö", "ü"}


def test_options_of_compare(handed_on, folder):
    words = ("compare", folder / "loans.csv", *ROLES)
    run = "hetcal.diagnosis.compare"
    usual = handed_on(run, *words)
    shown = ("methods", "baselines", "cv", "n_repeats", "random_state")
    assert [usual[name] for name in shown] == ["all", True, None, 1, 0]
    given = handed_on(
        run,
        *(*words, "--methods", "swc, platt", "--no-baselines", "--folds", "4", "--repeats", "2"),
        *("--seed", "9", "--jobs", "3"),
    )
    assert [given[name] for name in shown] == [["swc", "platt"], False, 4, 2, 9]
    assert given["n_jobs"] == 3


def test_options_of_fit(handed_on, call, folder, tmp_path, capsys):
    words = ("fit", folder / "loans.csv", *ROLES, "-o", tmp_path / "m.hetcal", "--overwrite")
    look = "hetcal.diagnosis.dependence.find_dependence"
    found = handed_on(look, *words, "--method", "swc", "--drop", "loan_id,opened", "--seed", "4")
    assert set(found["given"][1]) == {"loan_id", "opened"}
    assert found["random_state"] == 4
    after = []
    for seed in (0, 1):
        assert call(*words, "--method", "temperature", "--seed", seed, "--json") == 0
        after.append(json.loads(capsys.readouterr().out)["brier_after"])
    assert after[0] != after[1]  # other folds
    for more in ((), ("--forget-features",)):
        assert call(*words, "--method", "swc", "-q", *more) == 0
        assert describe(tmp_path / "m.hetcal")["calibrator"]["forget_features"] == bool(more)


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_the_format_and_the_names_of_what_apply_writes(call, folder, tmp_path, kind):
    words = ("apply", folder / "global.hetcal", folder / "loans.csv", "-q", "--prefix", "r_")
    assert call(*words, "-o", tmp_path / "out", "--out-format", kind) == 0
    read = read_table(tmp_path / "out", format=kind)
    assert len(read) == 150
    names = read.columns if kind == "csv" else read.column_names
    assert [name for name in names if name.startswith("r_")] == ["r_paid back", "r_default"]


def test_names_in_sql_are_quoted_as_asked(call, folder, capsys):
    for dialect, quoted in (("ansi", '"p_default"'), ("mysql", "`p_default`")):
        assert (
            call("export", folder / "global.hetcal", "--format", "sql", "--dialect", dialect) == 0
        )
        assert quoted in capsys.readouterr().out


def test_options_of_monitor(call, folder, tmp_path, capsys):
    new = make_loans(60, seed=3)
    new.to_csv(tmp_path / "new.csv", index=False)
    words = ("monitor", folder / "swc.hetcal", tmp_path / "new.csv", "--json")
    past = ("--history", tmp_path / "past.hetcal")
    given = ("--rate", "0.2", "--alarm-rate", "0.3", "--dependence", "5")
    assert call(*words, *past, *given) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rate"], facts["alarm_rate"]) == (0.2, 0.3)
    assert hetcal.load(tmp_path / "past.hetcal").dependence == 5
    new.assign(**{"p_default": new["p_default"].where(new.index != 3)}).to_csv(
        tmp_path / "new.csv", index=False
    )
    assert call(*words) == 2
    assert "row 4" in capsys.readouterr().err
    assert call(*words, "--leave-missing") == 0
    assert json.loads(capsys.readouterr().out)["seen"] == 59


def test_sub_populations_and_labels_are_those_of_the_rows_that_are_left(call, folder, tmp_path):
    """Rows without a probability are left out with their names and labels."""
    new = make_loans(60, seed=3)
    new.loc[:9, "p_default"] = None
    new["outcome"] = new["outcome"].where(new.index % 2 == 0)
    new.to_csv(tmp_path / "new.csv", index=False)
    past = tmp_path / "past.hetcal"
    words = ("monitor", folder / "swc.hetcal", tmp_path / "new.csv", "--history", past)
    begin = ("--calibration", folder / "loans.csv", "--by", "region", "--leave-missing", "-q")
    assert call(*words, *begin) == 0
    groups = hetcal.load(past).groups().set_index(["kind", "name"])
    kept = new[10:]
    for name, rows in kept.groupby("region"):
        assert groups.loc[("by", name), "seen"] == len(rows)
        assert groups.loc[("by", name), "labels"] == rows["outcome"].notna().sum()
    assert call(*words, "--labels-only", "--again", "--by", "region", "--leave-missing", "-q") == 0
    groups = hetcal.load(past).groups().set_index(["kind", "name"])
    for name, rows in kept.groupby("region"):
        assert groups.loc[("by", name), "seen"] == len(rows)
        assert groups.loc[("by", name), "labels"] == 2 * rows["outcome"].notna().sum()


def test_what_apply_expects_is_of_all_rows_that_have_a_probability(call, folder, tmp_path, capsys):
    new = make_loans(60, seed=3)
    words = ("apply", folder / "swc.hetcal", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    words += ("--expected", "--json", "--overwrite", "--leave-missing")

    def expected(table, *more):
        table.to_csv(tmp_path / "new.csv", index=False)
        assert call(*words, *more) == 0
        return json.loads(capsys.readouterr().out)["expected"]

    whole = expected(new)
    parts = expected(new, "--batch-rows", "25")
    assert parts["items"] == 60
    assert parts["brier"]["value"] == pytest.approx(whole["brier"]["value"])
    absent = pd.concat([new, new.assign(**{"p_default": None, "p_paid back": None})])
    assert expected(absent) == whole
