"""``hetcal refresh`` from outside."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from tests.cli.conftest import make_loans

import hetcal
from hetcal.cli import _refresh
from hetcal.data import CalibrationSet
from hetcal.metrics.gains import Gain
from hetcal.persistence import describe


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return a folder with rows as before, and rows of a world that has changed."""
    place = tmp_path_factory.mktemp("newer")
    same = make_loans(120, seed=1)
    same.to_csv(place / "same.csv", index=False)
    changed = make_loans(120, seed=2)
    swapped = {"default": "paid back", "paid back": "default"}
    changed["outcome"] = changed["outcome"].map(swapped)
    changed.to_csv(place / "changed.csv", index=False)
    return place


@pytest.fixture
def refreshed(call, folder, tables, tmp_path, capsys):
    """Return a function that refreshes the model and returns what is told as JSON."""

    def run(*arguments, model=folder / "swc.hetcal", table=tables / "changed.csv"):
        assert call("refresh", model, table, *arguments, "--json") == 0
        return json.loads(capsys.readouterr().out)

    return run


def items_of(table, classes):
    return CalibrationSet.check(
        table[["age", "region"]],
        table["outcome"],
        y_proba=table[["p_paid back", "p_default"]].to_numpy(),
        classes=classes,
        caller="test",
        order_is_known=True,
    )


def test_the_gain_is_that_of_extend_out_of_sample(refreshed, folder, tables, tmp_path):
    out = tmp_path / "new.hetcal"
    facts = refreshed("--half-life", 60, "-o", out)
    swc, new = hetcal.load(folder / "swc.hetcal"), pd.read_csv(tables / "changed.csv")
    items = items_of(new, swc.classes_)
    before = swc.predict_proba(items.X, y_proba=items.output)
    swc.extend(items.X, items.labels, y_proba=items.output, half_life=60)
    gain = Gain.between(before, swc.out_of_sample_proba_[-120:], items)
    assert facts["brier_before"] - facts["brier_after"] == pytest.approx(gain.value)
    assert (facts["gain_low"], facts["gain_high"]) == pytest.approx((gain.low, gain.high))
    assert facts["gain_low"] > 0
    assert facts["items"] == 270
    assert [note[:45] for note in facts["notes"]] == [
        "y_proba ranks the labels the wrong way round "
    ]
    np.testing.assert_array_equal(
        hetcal.load(out).predict_proba(items.X, y_proba=items.output),
        swc.predict_proba(items.X, y_proba=items.output),
    )


def test_the_file_keeps_its_history_and_inspect_shows_it(
    refreshed, call, folder, tables, tmp_path, capsys
):
    first, second = tmp_path / "first.hetcal", tmp_path / "second.hetcal"
    refreshed("-o", first, "--half-life", "90")
    refreshed("-o", second, "--window", "200", model=first, table=tables / "same.csv")
    fitted, metadata = describe(folder / "swc.hetcal"), describe(second)["metadata"]
    assert metadata["fit"]["source"] == fitted["metadata"]["fit"]["source"] == "loans.csv"
    one, two = metadata["refreshes"]
    assert one["from"] == {"file": "swc.hetcal", "made": fitted["made"]}
    assert two["from"] == {"file": "first.hetcal", "made": describe(first)["made"]}
    assert (one["source"], two["source"]) == ("changed.csv", "same.csv")
    assert metadata["fit"]["low_support"] != fitted["metadata"]["fit"]["low_support"]
    assert call("inspect", second) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"fitted {fitted['made']['date']}" in shown
    assert "by 120 rows of changed.csv, 270 items then, half-life 90 rows: Brier score" in shown
    assert "by 120 rows of same.csv, 200 items then, window 200 rows: Brier score" in shown
    assert "refreshes" not in shown
    assert call("apply", second, tables / "same.csv", "-o", tmp_path / "q.csv", "--quiet") == 0


def test_rows_that_were_learned_are_refused(refreshed, call, tables, tmp_path, capsys):
    out = tmp_path / "new.hetcal"
    refreshed("-o", out)
    assert call("refresh", out, tables / "changed.csv") == 2
    assert "holds the rows of refresh 1 (changed.csv)" in capsys.readouterr().err


def shuffled(table, to):
    pd.read_csv(table).sample(frac=1, random_state=0).to_csv(to, index=False)
    return to


def test_new_rows_among_those_of_calibration_are_refused(call, folder, tables, tmp_path, capsys):
    tables_of_before = (
        "--calibration",
        folder / "loans.csv",
        "--calibration",
        tables / "changed.csv",
    )
    for model in ("swc.hetcal", "global.hetcal"):
        newer = shuffled(tables / "changed.csv", tmp_path / "newer.csv")
        assert call("refresh", folder / model, newer, *tables_of_before) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert "most of the new rows are among these. Pass the tables of before" in told


def test_the_table_of_fit_is_refused_in_any_order(call, folder, tmp_path, capsys):
    known = shuffled(folder / "loans.csv", tmp_path / "known.csv")
    assert call("refresh", folder / "swc.hetcal", known) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "most of the new rows are among its calibration items" in told


def test_learned_rows_are_known_again_in_another_order(call, folder, tables, tmp_path, capsys):
    out, before = tmp_path / "new.hetcal", ("--calibration", folder / "loans.csv", "-q")
    changed = tables / "changed.csv"
    assert call("refresh", folder / "global.hetcal", changed, *before, "-o", out) == 0
    assert call("refresh", out, shuffled(changed, tmp_path / "again.csv"), *before) == 2
    assert "holds the rows of refresh 1 (changed.csv)" in " ".join(capsys.readouterr().err.split())


def test_some_known_rows_among_new_ones_are_no_error(refreshed, folder, tables, tmp_path):
    parts = pd.read_csv(tables / "same.csv"), pd.read_csv(folder / "loans.csv").head(50)
    pd.concat(parts).to_csv(tmp_path / "mixed.csv", index=False)
    assert refreshed(table=tmp_path / "mixed.csv")["new_items"] == 170


def test_rows_of_few_values_are_equal_by_chance(call, folder, tmp_path):
    first, newer, model = tmp_path / "first.csv", tmp_path / "newer.csv", tmp_path / "few.hetcal"
    for seed, path in enumerate((first, newer)):
        rows = make_loans(200, seed=seed).assign(age=40)
        rows["p_default"] = rows["p_default"].round(1)
        rows["p_paid back"] = 1 - rows["p_default"]
        rows.to_csv(path, index=False)
    roles = "--label", "outcome", "--proba", "p_*", "--method", "swc", "-q"
    assert call("fit", first, *roles, "-o", model) == 0
    assert call("refresh", model, newer, "-q") == 0
    assert call("refresh", model, newer, "--calibration", first, "-q") == 0


def test_says_so_where_nothing_is_gained(call, folder, tables, tmp_path, capsys):
    out = tmp_path / "new.hetcal"
    rows = pd.read_csv(tables / "same.csv").head(40)
    rows.to_csv(tmp_path / "few.csv", index=False)
    arguments = "refresh", folder / "swc.hetcal", tmp_path / "few.csv"
    assert call(*arguments) == 0
    shown = capsys.readouterr().out
    assert "No clear gain" in shown
    assert "Nothing written; name a file with -o" in shown
    assert call(*arguments, "-o", out, "--only-if-better") == 0
    assert f"Nothing written to {out}: --only-if-better" in " ".join(
        capsys.readouterr().out.split()
    )
    assert not out.exists()
    assert call(*arguments, "-o", out) == 0
    shown = capsys.readouterr().out
    assert f"hetcal apply {out}" in shown
    assert "with --only-if-better nothing is written without a gain" in shown


def test_a_gain_of_nothing_has_no_minus():
    record = {"brier_model": 0.2, "brier_before": 0.2, "brier_after": 0.200_001}
    record |= {"from": {"file": "m.hetcal"}, "gain_low": -0.000_01, "gain_high": 0.000_01}
    said = _refresh._Shown(record, None, None, 0.0).scores()
    assert said.endswith("gain +0.0000 (95 % interval +0.0000 to +0.0000)")


def test_overwrites_only_where_it_is_told_to(call, folder, tables, tmp_path, capsys):
    model = tmp_path / "model.hetcal"
    shutil.copy(folder / "swc.hetcal", model)
    assert call("refresh", model, tables / "changed.csv", "-o", model) == 2
    assert "exists already. Pass --overwrite" in capsys.readouterr().err
    assert call("refresh", model, tables / "changed.csv", "-o", model, "--overwrite", "-q") == 0
    assert len(hetcal.load(model).calibration_labels()) == 270
    assert "gain +0." in capsys.readouterr().out


def test_other_methods_are_fitted_anew_to_both_tables(refreshed, call, folder, tables, capsys):
    model = folder / "global.hetcal"
    assert call("refresh", model, tables / "changed.csv") == 2
    assert "Pass the table of hetcal fit with --calibration" in capsys.readouterr().err
    facts = refreshed("--calibration", folder / "loans.csv", "--half-life", "40", model=model)
    assert facts["items"] == 270
    assert facts["calibration"] == ["loans.csv"]
    assert facts["gain_low"] > 0
    half = refreshed("--calibration", folder / "loans.csv", model=model)
    assert half["brier_after"] > facts["brier_after"] + 0.01


def test_time_is_read_from_a_column_and_remembered(refreshed, tables, tmp_path):
    first = tmp_path / "first.hetcal"
    facts = refreshed("--time", "opened", "--window", "59.5 days", "-o", first)
    assert facts["items"] == facts["new_items"] == 60
    late = pd.read_csv(tables / "same.csv")
    late["opened"] = pd.date_range("2025-01-01", periods=120).strftime("%Y-%m-%d")
    late.loc[:9, "opened"] = None
    late.to_csv(tmp_path / "late.csv", index=False)
    facts = refreshed("--window", "365 days", model=first, table=tmp_path / "late.csv")
    assert facts["time"] == "opened"
    assert facts["new_items"] == 110
    assert facts["notes"] == ["10 rows without a time left out."]


def test_old_rows_in_a_table_are_told(call, folder, tables, tmp_path, capsys):
    first, late = tmp_path / "first.hetcal", tmp_path / "late.csv"
    rows = pd.read_csv(tables / "same.csv").assign(opened="2030-01-01")
    rows.to_csv(late, index=False)
    roles = "--time", "opened", "--window", "10 days"
    assert call("refresh", folder / "swc.hetcal", late, *roles, "-o", first, "-q") == 0
    assert call("refresh", first, tables / "changed.csv", *roles) == 2
    assert "The new rows are older than the window" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.drop(columns="outcome"), "lacks the column 'outcome' of the labels"),
        (lambda t: t.drop(columns="age"), "lacks the column 'age'"),
        (lambda t: t.assign(outcome="sold"), "holds 'sold'; the classes"),
        (lambda t: t.assign(outcome=None), "no row with a label and a probability"),
        (lambda t: t.head(0), "has no row"),
        (lambda t: t.assign(**{"p_default": None}), "Pass --drop-missing, which leaves such rows"),
    ],
)
def test_wrong_tables_are_told(call, folder, tables, tmp_path, capsys, change, told):
    change(pd.read_csv(tables / "same.csv")).to_csv(tmp_path / "bad.csv", index=False)
    assert call("refresh", folder / "swc.hetcal", tmp_path / "bad.csv") == 2
    assert told in capsys.readouterr().err


def test_of_a_large_table_the_last_rows_are_taken(refreshed):
    facts = refreshed("--max-rows", "50")
    assert (facts["rows_read"], facts["new_items"], facts["items"]) == (120, 50, 200)
    assert facts["notes"][0] == "The last 50 of 120 rows; --max-rows 50 takes no more."


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--time", "opened", "--half-life", "30"],
            "The half-life must be a duration with its unit",
        ),
        (["--time", "opened", "--window", "-1 days"], "such as '30 days', since the times are"),
        (
            ["--time", "loan_id", "--window", "soon"],
            "The window must be a number above 0 in the unit",
        ),
        (["--time", "loan_id", "--window", "30 days"], "since these are numbers; got '30 days'"),
        (["--window", "0"], "The window must be a number of rows above 0"),
        (["--window", "30 days"], "(a duration needs the times of the rows); got '30 days'"),
    ],
)
def test_wrong_spans_are_told(call, folder, tables, capsys, options, told):
    assert call("refresh", folder / "swc.hetcal", tables / "changed.csv", *options) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_window_of_one_class_is_told_in_the_words_of_the_table(call, folder, tables, capsys):
    for model, before in (("swc", ()), ("global", ("--calibration", folder / "loans.csv"))):
        words = (folder / f"{model}.hetcal", tables / "changed.csv", *before, "--window", "1")
        assert call("refresh", *words) == 1
        told = " ".join(capsys.readouterr().err.split())
        assert "leave 1 calibration item of a single class ('default'). Choose a longer" in told


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({4: "soon"}, "'opened' of --time expected a date in each row"),
        ({4: "12"}, "got '12' in row 5"),
        ({i: str(i) for i in range(120)} | {7: "2024-01-01"}, "a number in each row"),
        (dict.fromkeys(range(120), "05/03/2024"), "do not show what is the day and what the month"),
    ],
)
def test_a_cell_that_is_no_time_is_named(call, folder, tables, tmp_path, capsys, cells, told):
    rows = pd.read_csv(tables / "same.csv")
    rows["opened"] = [cells.get(i, text) for i, text in enumerate(rows["opened"])]
    rows.to_csv(tmp_path / "bad.csv", index=False)
    words = ("--time", "opened", "--half-life", "30 days")
    assert call("refresh", folder / "swc.hetcal", tmp_path / "bad.csv", *words) == 2
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("written", ["%d.%m.%Y", "%d/%m/%Y", "%d %b %Y", "%m-%d-%Y"])
def test_dates_are_read_as_diagnose_reads_them(refreshed, tables, tmp_path, written):
    words = ("--time", "opened", "--window", "59.5 days")
    rows = pd.read_csv(tables / "same.csv")
    rows["opened"] = pd.to_datetime(rows["opened"]).dt.strftime(written)
    rows.to_csv(tmp_path / "same.csv", index=False)
    assert refreshed(*words, table=tmp_path / "same.csv")["items"] == 60


def test_what_is_the_month_is_read_off_all_rows_of_the_table(refreshed, tables, tmp_path):
    """Also off those that nothing is learned from."""
    rows = pd.read_csv(tables / "same.csv")
    rows["opened"] = [f"04.{day:02d}.2024" for day in range(1, 13)] * 9 + ["04.20.2024"] * 12
    rows.loc[108:, "outcome"] = None
    rows.to_csv(tmp_path / "same.csv", index=False)
    words = ("--time", "opened", "--window", "5.5 days")
    assert refreshed(*words, table=tmp_path / "same.csv")["items"] == 9 * 6


def test_times_of_a_parquet_table(refreshed, tables, tmp_path):
    rows = pd.read_csv(tables / "same.csv", parse_dates=["opened"])
    rows.to_parquet(tmp_path / "same.parquet")
    words = ("--time", "opened", "--window", "59.5 days")
    assert refreshed(*words, table=tmp_path / "same.parquet")["items"] == 60


def test_a_number_is_in_the_unit_of_a_column_of_numbers(refreshed):
    assert refreshed("--time", "loan_id", "--window", "60")["items"] == 60


def test_one_row_has_no_interval(call, folder, tables, tmp_path, capsys):
    one, out = tmp_path / "one.csv", tmp_path / "one.hetcal"
    pd.read_csv(tables / "same.csv").head(1).to_csv(one, index=False)
    arguments = "refresh", folder / "swc.hetcal", one
    assert call(*arguments, "--json") == 0
    facts = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert facts["gain_low"] is facts["gain_high"] is None
    assert facts["brier_after"] is not None
    assert call(*arguments, "-o", out) == call("inspect", out) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "1 new row of 1 learned" in told
    assert told.count("too few rows for an interval") == 2
    assert "nan" not in told


def test_labels_of_one_class_are_told(refreshed, tables, tmp_path):
    rows = pd.read_csv(tables / "same.csv").query("outcome == 'default'")
    rows.to_csv(tmp_path / "defaults.csv", index=False)
    assert refreshed(table=tmp_path / "defaults.csv")["notes"] == [
        "Labels of one class only (default): the gain says little about the others."
    ]
