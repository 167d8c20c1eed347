"""``hetcal apply`` from outside: every row once, in order, whatever the batches and the format."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from hetcal import SupportMonitor, load
from hetcal.persistence import describe
from hetcal.tables import TableWriter, read_table

HETCAL = [sys.executable, "-c", "import sys; from hetcal.cli import main; main(sys.argv[1:])"]
NEW = ["q_paid back", "q_default", "predicted_class", "support", "effective_size", "flags"]


def make_loans(n: int, seed: int) -> pd.DataFrame:
    """Return rows like those of the calibrator's table."""
    rng = np.random.default_rng(seed)
    said = rng.uniform(0.1, 0.9, n)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "region": rng.choice(["north", "south east"], n),
            "p_paid back": 1 - said,
            "p_default": said,
        }
    )


@pytest.fixture
def new(loans) -> pd.DataFrame:
    """Return rows to calibrate, without what happened, in another order of columns."""
    return loans.drop(columns="outcome").iloc[::-1][sorted(loans.columns.drop("outcome"))]


def as_pandas(table) -> pd.DataFrame:
    return table if isinstance(table, pd.DataFrame) else table.to_pandas()


def test_the_columns_are_what_the_calibrator_says(call, folder, new, tmp_path, capsys):
    new.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    assert call("apply", folder / "swc.hetcal", tmp_path / "new.csv", "-o", out) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "150 rows to" in shown.err
    written = pd.read_csv(out, keep_default_na=False)
    assert written.columns.tolist() == [*new.columns, *NEW]
    assert written["loan_id"].tolist() == new["loan_id"].tolist()
    calibrator = load(folder / "swc.hetcal")
    X = new[["age", "region"]].astype({"age": float})
    P = new[["p_paid back", "p_default"]].to_numpy()
    Q, support = calibrator.predict_proba(X, y_proba=P, return_support=True)
    # pandas 2 reads the last digit wrongly.
    np.testing.assert_allclose(written[NEW[:2]], Q, rtol=1e-13)
    np.testing.assert_allclose(written["support"], support, rtol=1e-13)
    expected = calibrator.effective_sample_size(X, y_proba=P)
    np.testing.assert_allclose(written["effective_size"], expected, rtol=1e-13)
    assert written["predicted_class"].tolist() == calibrator.classes_[Q.argmax(axis=1)].tolist()
    changed = written["flags"].str.contains("label_changed")
    np.testing.assert_array_equal(changed, Q.argmax(axis=1) != P.argmax(axis=1))


@pytest.mark.parametrize("source", ["csv", "csv.gz", "parquet", "feather"])
@pytest.mark.parametrize("target", ["csv", "tsv", "csv.gz", "parquet", "arrow"])
def test_every_format_to_every_format(call, folder, new, tmp_path, source, target):
    path, out = tmp_path / f"new.{source}", tmp_path / f"out.{target}"
    with TableWriter(path) as table:
        table.write({name: new[name].to_numpy() for name in new.columns})
    arguments = ("--batch-rows", 37, "--quiet")
    assert call("apply", folder / "global.hetcal", path, "-o", out, *arguments) == 0
    written = as_pandas(read_table(out))
    assert written["loan_id"].astype(int).tolist() == new["loan_id"].tolist()
    assert written["opened"].tolist() == new["opened"].tolist()
    assert written["age"].astype(float).tolist() == new["age"].tolist()
    Q = load(folder / "global.hetcal").predict_proba(
        y_proba=new[["p_paid back", "p_default"]].to_numpy()
    )
    np.testing.assert_array_equal(written[NEW[:2]].to_numpy(dtype=float), Q)


@pytest.mark.parametrize("batch_rows", [4, 7, 1000])
def test_batches_change_nothing(call, folder, new, tmp_path, batch_rows):
    new.to_parquet(tmp_path / "new.parquet", index=False)
    outs = [tmp_path / "whole.csv", tmp_path / "parts.csv"]
    for out, rows in zip(outs, (50_000, batch_rows), strict=True):
        arguments = ("apply", folder / "swc.hetcal", tmp_path / "new.parquet", "-o", out, "-q")
        assert call(*arguments, "--batch-rows", rows) == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()


def test_cells_of_csv_stay_as_they_are(call, folder, new, tmp_path):
    # A column that looks like numbers first and turns out to be text, odd numbers, quotes, blanks.
    strange = new.astype(str).assign(code=["007"] * 100 + ['a;"b"'] * 50, blank="", na="NA")
    strange["age"] = strange["age"] + ".00"
    strange.to_csv(tmp_path / "new.csv", index=False, sep=";")
    arguments = ("-o", tmp_path / "out.csv", "--batch-rows", 60, "-q")
    assert call("apply", folder / "global.hetcal", tmp_path / "new.csv", *arguments) == 0
    written = pd.read_csv(tmp_path / "out.csv", sep=";", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(
        written[strange.columns].astype(object), strange.reset_index(drop=True).astype(object)
    )


def test_parquet_types_survive(call, folder, new, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(new, preserve_index=False)
    table = table.append_column("small", pa.array([None, 1] * 75, pa.int8()))
    table = table.append_column("level", pa.array(["a", "b"] * 75).dictionary_encode())
    table = table.append_column("when", pa.array([0] * 150, pa.timestamp("us", "UTC")))
    pq.write_table(table, tmp_path / "new.parquet", row_group_size=40)
    arguments = ("-o", tmp_path / "out.parquet", "--batch-rows", 50, "-q")
    assert call("apply", folder / "global.hetcal", tmp_path / "new.parquet", *arguments) == 0
    written = pq.read_table(tmp_path / "out.parquet")
    for name in table.column_names:
        assert written.schema.field(name).type == table.schema.field(name).type
        assert written[name].to_pylist() == table[name].to_pylist()


def test_flags_row_by_row(call, folder, new, tmp_path):
    strange = new.head(6).astype({"age": float}).reset_index(drop=True)
    strange.loc[1, "region"] = "west"
    strange.loc[2, "age"] = np.nan
    strange.loc[3, ["p_paid back", "p_default"]] = [np.nan, 0.3]
    strange.loc[4, "region"] = None
    strange.to_csv(tmp_path / "new.csv", index=False)
    arguments = ("-o", tmp_path / "out.csv", "-q")
    assert call("apply", folder / "swc.hetcal", tmp_path / "new.csv", *arguments) == 2
    assert not (tmp_path / "out.csv").exists()
    assert (
        call("apply", folder / "swc.hetcal", tmp_path / "new.csv", *arguments, "--leave-missing")
        == 0
    )
    written = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    flags = [set(filter(None, cell.split(";"))) - {"label_changed"} for cell in written["flags"]]
    assert "unknown_category" in flags[1]
    assert "missing_features" in flags[2]
    assert flags[3] == {"no_probability"}
    assert written.loc[3, NEW[:5]].tolist() == [""] * 5
    assert "missing_features" in flags[4]
    assert not {"unknown_category", "missing_features", "no_probability"} & (flags[0] | flags[5])


def test_low_support_is_what_hardly_any_calibration_item_has(call, folder, tmp_path):
    make_loans(2000, seed=1).to_csv(tmp_path / "new.csv", index=False)
    arguments = ("apply", folder / "swc.hetcal", tmp_path / "new.csv", "-o", tmp_path / "o.csv")
    assert call(*arguments, "-q") == 0
    written = pd.read_csv(tmp_path / "o.csv")
    low = written["flags"].str.contains("low_support", na=False)
    limit = describe(folder / "swc.hetcal")["metadata"]["fit"]["low_support"]
    np.testing.assert_array_equal(low, written["support"] < limit)
    assert 0 < low.mean() < 0.05  # one in a hundred, as far as 150 items can tell


def test_no_rows_give_a_table_without_rows(call, folder, new, tmp_path):
    for name in ("new.csv", "new.parquet"):
        with TableWriter(tmp_path / name) as table:
            table.write({column: new[column].to_numpy()[:0] for column in new.columns})
        out = tmp_path / f"out-{name}"
        assert call("apply", folder / "swc.hetcal", tmp_path / name, "-o", out, "-q") == 0
        written = as_pandas(read_table(out))
        assert written.columns.tolist() == [*new.columns, *NEW]
        assert len(written) == 0


def test_one_row(call, folder, new, tmp_path):
    new.head(1).to_csv(tmp_path / "new.csv", index=False)
    arguments = ("-o", tmp_path / "out.csv", "-q", "--only-new", "--columns", "q,class")
    assert call("apply", folder / "swc.hetcal", tmp_path / "new.csv", *arguments) == 0
    written = pd.read_csv(tmp_path / "out.csv")
    assert written.columns.tolist() == NEW[:3]
    assert len(written) == 1


def test_json_counts_flags(call, folder, new, tmp_path, capsys):
    new.to_csv(tmp_path / "new.csv", index=False)
    arguments = ("apply", folder / "swc.hetcal", tmp_path / "new.csv", "--json", "-o")
    assert call(*arguments, tmp_path / "out.csv") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["rows"] == 150
    assert facts["columns"] == NEW
    assert facts["flags"]["no_probability"] == 0
    assert call(*arguments, "-") == 2


def test_flags_are_counted_over_all_batches(call, folder, new, tmp_path, capsys):
    new = new.reset_index(drop=True)
    new.loc[[0, 1, 140], "region"] = "west"
    new.loc[[3, 50], "age"] = np.nan
    new.to_csv(tmp_path / "new.csv", index=False)
    found = []
    for batch_rows in (1000, 20):
        out = tmp_path / f"{batch_rows}.csv"
        arguments = ("--json", "--batch-rows", batch_rows, "-o", out)
        assert call("apply", folder / "swc.hetcal", tmp_path / "new.csv", *arguments) == 0
        facts = json.loads(capsys.readouterr().out)
        written = pd.read_csv(out, keep_default_na=False)["flags"]
        assert facts["flags"] == {f: written.str.contains(f).sum() for f in facts["flags"]}
        found.append(facts["flags"])
    assert found[0] == found[1]
    assert (found[0]["unknown_category"], found[0]["missing_features"]) == (3, 2)


def test_rows_are_numbered_through_all_batches(call, folder, new, tmp_path, capsys):
    new = new.reset_index(drop=True)
    new.loc[44, ["p_paid back", "p_default"]] = np.nan
    new.to_csv(tmp_path / "new.csv", index=False)
    arguments = (tmp_path / "new.csv", "--batch-rows", 20, "-o", tmp_path / "out.csv")
    assert call("apply", folder / "global.hetcal", *arguments) == 2
    assert "nothing in row 45 (counted from 1)" in " ".join(capsys.readouterr().err.split())


def test_what_does_not_fit_is_refused(call, folder, new, tmp_path, capsys):
    path, out = tmp_path / "new.csv", tmp_path / "out.csv"
    arguments = ("apply", folder / "swc.hetcal", path, "-o", out)

    def refused(table: pd.DataFrame, *more: object) -> str:
        table.to_csv(path, index=False)
        assert call(*arguments, *more) == 2
        shown = capsys.readouterr().err
        assert shown.startswith("error: ")
        assert shown.count("\n") == 1
        assert not out.exists()
        return shown

    assert "'q_default' already" in refused(new.assign(q_default=0.5))
    assert "--prefix" in refused(new.assign(q_default=0.5))
    assert "--prefix" not in refused(new.assign(flags="", q_default=0.5))  # it would not help
    lacking = refused(new.rename(columns={"age": "aeg"}))
    assert "lacks the column 'age'" in lacking
    assert "Did you mean 'aeg'?" in lacking
    assert "choose from q, class" in refused(new, "--columns", "q,wealth")
    assert "Fit with --method hybrid" in refused(new, "--interval")
    percent = new.assign(**{name: 100 * new[name] for name in ("p_default", "p_paid back")})
    assert "divide by 100" in refused(percent)
    row = refused(new.assign(age=[30] * 149 + ["old"]), "--batch-rows", "40")
    assert "row 150 (counted from 1) holds 'old'" in row
    new.assign(q_default=0.5).to_csv(path, index=False)
    assert call(*arguments, "--prefix", "r_", "-q") == 0
    assert call(*arguments, "--prefix", "r_") == 2
    assert "--overwrite" in capsys.readouterr().err


def test_a_calibrator_from_python_says_where_it_belongs(call, folder, tmp_path, capsys):
    import hetcal

    hetcal.save(load(folder / "global.hetcal"), tmp_path / "p.hetcal")
    assert call("apply", tmp_path / "p.hetcal", folder / "loans.csv", "-o", tmp_path / "o.csv") == 2
    assert "saved from Python" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["swc", "platt"])
def test_forgotten_features_give_the_same_probabilities(call, folder, tmp_path, method):
    roles = ("--label", "outcome", "--proba", "p_*", "--method", method, "-q")
    outs = []
    for name, more in (("full", ()), ("less", ("--forget-features",))):
        model, out = tmp_path / f"{name}.hetcal", tmp_path / f"{name}.csv"
        assert call("fit", folder / "loans.csv", *roles, *more, "-o", model) == 0
        assert call("apply", model, folder / "loans.csv", "-o", out, "-q") == 0
        outs.append(pd.read_csv(out))
    pd.testing.assert_frame_equal(outs[0][NEW[:2]], outs[1][NEW[:2]])


def test_logits_and_one_column(call, loans, tmp_path):
    table = loans.assign(z=np.log(loans["p_default"] / loans["p_paid back"]))
    table = table.drop(columns=["p_default", "p_paid back"])
    table.to_csv(tmp_path / "t.csv", index=False)
    roles = ("--label", "outcome", "--logits", "z", "--positive", "default", "-q")
    model = tmp_path / "m.hetcal"
    assert call("fit", tmp_path / "t.csv", *roles, "--method", "temperature", "-o", model) == 0
    assert call("apply", model, tmp_path / "t.csv", "-o", tmp_path / "o.csv", "-q") == 0
    written = pd.read_csv(tmp_path / "o.csv")
    np.testing.assert_allclose(written[["q_paid back", "q_default"]].sum(axis=1), 1)
    ranks = written["q_default"].rank().tolist()
    assert ranks == table["z"].rank().tolist()


@pytest.mark.processes
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_pipes(folder, new, tmp_path, format):
    with TableWriter(tmp_path / "new", format=format) as table:
        table.write({name: new[name].to_numpy() for name in new.columns})
    done = subprocess.run(
        [*HETCAL, "apply", str(folder / "global.hetcal"), "-", "-o", "-", "--format", format],
        input=(tmp_path / "new").read_bytes(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "out").write_bytes(done.stdout)
    written = as_pandas(read_table(tmp_path / "out", format=format))
    assert written["loan_id"].tolist() == new["loan_id"].tolist()
    assert b"150 rows to standard output" in done.stderr


@pytest.mark.processes
def test_a_reader_that_has_seen_enough(folder, new, tmp_path):
    pd.concat([new] * 200).to_csv(tmp_path / "new.csv", index=False)
    arguments = ["apply", str(folder / "global.hetcal"), str(tmp_path / "new.csv"), "-o", "-"]
    with subprocess.Popen(
        [*HETCAL, *arguments, "--batch-rows", "500"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 1
    assert b"Traceback" not in errors
    assert b"Exception" not in errors


@pytest.mark.slow
def test_two_million_rows_in_bounded_memory(folder, new, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = pa.Table.from_pandas(pd.concat([new] * 100), preserve_index=False)
    with pq.ParquetWriter(tmp_path / "new.parquet", part.schema) as table:
        n_rows = 0
        while n_rows < 2_000_000:
            table.write_table(part)
            n_rows += part.num_rows
    code = (
        "import resource, sys; from hetcal.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    arguments = ["apply", str(folder / "swc.hetcal"), str(tmp_path / "new.parquet"), "-q"]
    out = tmp_path / "out.parquet"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "-o", str(out)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert pq.ParquetFile(out).metadata.num_rows == n_rows
    assert int(done.stdout) < 700_000  # kilobytes; the table alone takes far more


def test_labels_and_levels_like_formulas_survive_apply_and_monitor(loans, call, tmp_path, capsys):
    """Defused in the output for spreadsheets, and the same again when hetcal reads it."""
    table = loans.replace({"region": {"north": "-5 to 0"}, "outcome": {"default": "=bad"}})
    table = table.rename(columns={"p_default": "p_=bad", "age": "@age"})
    source, model, out = tmp_path / "t.csv", tmp_path / "m.hetcal", tmp_path / "out.csv"
    table.to_csv(source, index=False)
    fitting = ("--label", "outcome", "--proba", "p_*", "--method", "swc", "-q")
    assert call("fit", source, *fitting, "-o", model) == 0
    assert call("apply", model, source, "-o", out) == 0
    written = pd.read_csv(out)
    assert set(written["region"]) == {"'-5 to 0", "south east"}
    assert {"'=bad"} < set(written["predicted_class"])
    assert "'@age" in written.columns
    capsys.readouterr()
    written.assign(**{"'@age": written["'@age"] + 1}).to_csv(out, index=False)  # other rows
    assert call("monitor", model, out, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert not [note for note in facts["notes"] if "no class" in note]
    assert call("apply", model, out, "-o", tmp_path / "again.csv", "--prefix", "r_",
                "--columns", "q,flags", "--only-new", "--json") == 0  # fmt: skip
    assert json.loads(capsys.readouterr().out)["flags"]["unknown_category"] == 0
    assert call("apply", model, source, "-o", out, "--overwrite", "--verbatim", "-q") == 0
    assert set(pd.read_csv(out)["outcome"]) == {"=bad", "paid back"}


def test_intervals_on_request(call, folder, new, tmp_path):
    model = tmp_path / "hybrid.hetcal"
    roles = ("--label", "outcome", "--proba", "p_*", "--method", "hybrid")
    assert call("fit", folder / "loans.csv", *roles, "-o", model, "-q") == 0
    new.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    options = ("--only-new", "--columns", "q", "--interval", "--batch-rows", "40")
    assert call("apply", model, tmp_path / "new.csv", "-o", out, *options, "-q") == 0
    written = pd.read_csv(out)
    ends = [f"q_{name}_{end}" for name in ("paid back", "default") for end in ("low", "high")]
    assert written.columns.tolist() == ["q_paid back", "q_default", *ends]
    calibrator = load(model)
    X = new[["age", "region"]].astype({"age": float})
    P = new[["p_paid back", "p_default"]].to_numpy()
    low, high = calibrator.predict_interval(X, y_proba=P, level=0.9)
    np.testing.assert_allclose(written[ends].to_numpy(), np.stack([low, high], 2).reshape(-1, 4))


def test_what_to_expect_is_what_the_monitor_expects(call, folder, loans, tmp_path, capsys):
    model, out = folder / "swc.hetcal", tmp_path / "out.csv"
    new = loans.drop(columns="outcome").assign(age=loans["age"] + 300)
    new.to_csv(tmp_path / "new.csv", index=False)
    arguments = "apply", model, tmp_path / "new.csv", "-o", out, "--expected", "--overwrite"
    assert call(*arguments, "--batch-rows", "40", "--json") == 0
    facts = json.loads(capsys.readouterr().out)["expected"]
    swc = load(model)
    P = new[["p_paid back", "p_default"]].to_numpy()
    monitor = SupportMonitor(swc).fit()
    wanted = monitor.expected_performance(new[["age", "region"]], y_proba=P)
    assert facts["accuracy"] == pytest.approx(wanted.accuracy._asdict())
    assert facts["brier"] == pytest.approx(wanted.brier._asdict())
    assert call(*arguments) == 0
    shown = capsys.readouterr().err
    said = f"as they used to: accuracy {wanted.accuracy.value:.3f} ("
    assert said in " ".join(shown.split())
    model = folder / "global.hetcal"
    assert call("apply", model, tmp_path / "new.csv", "-o", out, "--expected", "--overwrite") == 2
    assert "Fit with --method hybrid or swc" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["apply", "-o", "out.csv"], ["monitor"], ["inspect"]])
def test_a_table_in_place_of_a_model_is_named_as_such(call, folder, capsys, command):
    table = folder / "loans.csv"
    tables = [table] if command == ["inspect"] else [table, table]
    assert call(command[0], *tables, *command[1:]) == 2
    assert "The first argument is the file that hetcal fit wrote" in capsys.readouterr().err


def test_a_column_of_vectors_goes_through_the_commands(call, loans, tmp_path, capsys):
    table, model, out = (tmp_path / name for name in ("t.parquet", "m.hetcal", "o.parquet"))
    loans.assign(text=[[age, 1.5] for age in loans["age"] / 70]).to_parquet(table)
    roles = ("--label", "outcome", "--proba", "p_*", "--features", "region,text")
    assert call("fit", table, *roles, "--method", "swc", "--max-rows", "100", "-o", model) == 0
    assert "3 features" in capsys.readouterr().out
    assert call("apply", model, table, "-o", out, "-q") == 0
    assert pd.read_parquet(out)["q_default"].notna().all()
    pd.read_parquet(table).assign(region="south east").to_parquet(out)
    assert call("monitor", model, out, "--calibration", table, "-q") == 0
    assert call("compare", table, *roles, "--methods", "swc,temperature", "-q") == 0
