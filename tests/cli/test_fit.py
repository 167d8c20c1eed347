"""``hetcal fit`` from outside."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from hetcal import load
from hetcal.calibration.registry import get_calibrator, list_calibrators
from hetcal.cli import _fit
from hetcal.data import CalibrationSet
from hetcal.metrics.gains import Gain
from hetcal.persistence import describe

ROLES = ("--label", "outcome", "--proba", "p_*")


def test_says_what_was_found_and_what_to_type_next(call, folder, tmp_path, capsys):
    out = tmp_path / "m.hetcal"
    assert call("fit", folder / "loans.csv", *ROLES, "--method", "swc", "-o", out) == 0
    shown = capsys.readouterr()
    assert "150 items, 2 features, 2 classes (paid back, default)" in shown.out
    assert re.search(r"Brier score 0\.\d{4} before, 0\.\d{4} after, each", shown.out)
    assert re.search(r"gain \+0\.\d{4} \(95 % interval", " ".join(shown.out.split()))
    assert f"hetcal apply {out} new.csv -o calibrated.csv" in shown.out
    assert "with --overwrite where that output is there already" in shown.out
    assert "note: Not used as features: loan_id (an id), opened (a date)." in shown.err
    assert load(out).classes_.tolist() == ["paid back", "default"]


def test_the_file_knows_the_table(folder):
    metadata = describe(folder / "swc.hetcal")["metadata"]
    assert metadata["table"]["output"] == ["p_paid back", "p_default"]
    assert metadata["table"]["features"] == [["age", "number"], ["region", "text"]]
    assert metadata["fit"]["items"] == 150
    assert metadata["fit"]["source"] == "loans.csv"
    assert 0 < metadata["fit"]["low_support"] < 150


def test_json_is_one_object_on_stdout(call, folder, tmp_path, capsys):
    out = tmp_path / "m.hetcal"
    assert call("fit", folder / "loans.csv", *ROLES, "--method", "sba", "-o", out, "--json") == 0
    shown = capsys.readouterr()
    facts = json.loads(shown.out)
    assert shown.err == ""
    assert facts["classes"] == ["paid back", "default"]
    assert facts["features"] == ["age", "region"]
    assert facts["left_out"] == {"loan_id": "an id", "opened": "a date"}
    assert facts["brier_after"] == pytest.approx(facts["brier_before"], abs=0.2)


def test_hybrid_is_the_default_and_shows_its_experts(call, folder, tmp_path, capsys, monkeypatch):
    from hetcal import HybridCalibrator

    fit = HybridCalibrator.fit
    monkeypatch.setattr(  # fewer trees: what is tested is what is printed
        HybridCalibrator,
        "fit",
        lambda self, *a, **k: fit(self.set_params(n_estimators=20, experts="proximity"), *a, **k),
    )
    assert call("fit", folder / "loans.csv", *ROLES, "-o", tmp_path / "m.hetcal") == 0
    shown = capsys.readouterr().out
    assert "method hybrid" in shown
    assert re.search(r"expert +weight +Brier alone +± error +uses the model", shown)
    assert describe(tmp_path / "m.hetcal")["metadata"]["fit"]["low_support"] > 0


def test_preserve_states_its_price(call, folder, tmp_path, capsys):
    arguments = ("--method", "isotonic", "--preserve", "label", "-o", tmp_path / "m.hetcal")
    assert call("fit", folder / "loans.csv", *ROLES, *arguments) == 0
    assert "keeping every label costs" in capsys.readouterr().out


def test_a_global_method_needs_no_features(call, folder, loans, tmp_path, capsys):
    out = tmp_path / "m.hetcal"
    assert call("fit", folder / "loans.csv", *ROLES, "--method", "platt", "-o", out) == 0
    shown = capsys.readouterr()
    assert "150 items, features not used, 2 classes" in shown.out
    assert shown.err == ""
    loans[["p_default", "p_paid back"]].to_csv(tmp_path / "new.csv", index=False)
    assert call("apply", out, tmp_path / "new.csv", "-o", tmp_path / "out.csv", "-q") == 0


def test_quiet_is_one_line(call, folder, tmp_path, capsys):
    arguments = ("--method", "beta", "-o", tmp_path / "m.hetcal", "--quiet")
    assert call("fit", folder / "loans.csv", *ROLES, *arguments) == 0
    shown = capsys.readouterr()
    assert shown.out.count("\n") == 1
    assert shown.err == ""


def test_global_out_of_sample_figures_are_not_those_of_the_fit(call, loans, tmp_path, capsys):
    few = loans.head(40)
    few.to_csv(tmp_path / "few.csv", index=False)
    out = tmp_path / "m.hetcal"
    assert call("fit", tmp_path / "few.csv", *ROLES, "--method", "histogram", "-o", out, "-q") == 0
    out_of_sample = describe(out)["metadata"]["fit"]["brier_after"]
    calibrator = load(out)
    P = few[["p_paid back", "p_default"]].to_numpy()
    truth = few["outcome"].to_numpy()[:, None] == calibrator.classes_[None, :]
    seen = ((calibrator.predict_proba(y_proba=P) - truth) ** 2).sum(axis=1).mean()
    assert out_of_sample > seen + 0.02


@pytest.mark.parametrize("role", ["weight", "groups"])
def test_printed_figures_know_weights_and_groups(call, loans, tmp_path, capsys, role):
    table = loans.head(90).assign(own=np.arange(90) // 3 + 1)
    table.to_csv(tmp_path / "table.csv", index=False)
    out = tmp_path / "m.hetcal"
    options = ["--features", "age,region", "--method", "swc", f"--{role}", "own", "-q", "-o", out]
    assert call("fit", tmp_path / "table.csv", *ROLES, *options) == 0
    printed = [float(number) for number in re.findall(r"[-+]?0\.\d{4}", capsys.readouterr().out)]
    calibrator = load(out)
    truth = table["outcome"].to_numpy()[:, None] == calibrator.classes_[None, :]
    P = table[["p_paid back", "p_default"]].to_numpy()
    before = ((P - truth) ** 2).sum(axis=1)
    after = ((calibrator.out_of_sample_proba_ - truth) ** 2).sum(axis=1)
    share = table["own"].to_numpy(float) if role == "weight" else np.ones(90)
    share /= share.sum()
    units = table["own"].to_numpy() - 1 if role == "groups" else None
    items = CalibrationSet.check(
        None,
        table["outcome"],
        y_proba=P,
        classes=calibrator.classes_,
        caller="test",
        sample_weight=share if role == "weight" else None,
        groups=units,
    )
    gain = Gain.between(P, calibrator.out_of_sample_proba_, items)
    expected = [share @ before, share @ after, gain.value, gain.low, gain.high]
    assert printed == pytest.approx(expected, abs=6e-5)


def loans_with(n, seed, shift):
    """Return a table whose probabilities are right, but for a shift of what happened."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, n)
    happened = rng.random(n) < np.clip(p + shift, 0, 1)
    return pd.DataFrame({"p_no": 1 - p, "p_yes": p, "outcome": np.where(happened, "yes", "no")})


@pytest.mark.parametrize(
    ("table", "method", "gains", "said"),
    [
        (loans_with(300, 0, 0.4), "vector", (0, 1), ""),
        (loans_with(60, 6, 0.0), "vector", (0, 1), "No clear gain"),
        (loans_with(60, 1, 0.0), "isotonic", (-1, 0), "No clear gain"),
        (loans_with(60, 5, 0.0), "histogram", (-1, 0), "The probabilities get worse"),
    ],
    ids=["gain", "no clear gain", "hardly worse", "worse"],
)
def test_a_verdict_needs_an_interval_without_zero(
    call, tmp_path, capsys, table, method, gains, said
):
    table.to_csv(tmp_path / "table.csv", index=False)
    out = tmp_path / "m.hetcal"
    assert call("fit", tmp_path / "table.csv", *ROLES, "--method", method, "-o", out) == 0
    shown = " ".join(capsys.readouterr().out.split())
    figures = re.search(r"gain (.0\.\d+) \(95 % interval (.0\.\d+) to (.0\.\d+)\)", shown).groups()
    gain, low, high = map(float, figures)
    assert gains[0] < gain < gains[1]
    assert (low <= 0 <= high) == (said == "No clear gain")
    for verdict in ("No clear gain", "The probabilities get worse"):
        assert (verdict in shown) == (verdict == said)


HOSTILE = {
    "no such file": (["nowhere.csv", *ROLES], "There is no file nowhere.csv"),
    "label": (["{table}", "--label", "outcom", "--proba", "p_*"], "Did you mean 'outcome'?"),
    "proba": (["{table}", "--label", "outcome"], "--proba 'p_*'"),
    "pattern": (["{table}", "--label", "outcome", "--proba", "q_*"], "No column matches 'q_*'"),
    "percent": (["{percent}", *ROLES], "Pass --percent"),
    "no rows": (["{empty}", *ROLES], "The table has no rows"),
    "one row": (["{one}", *ROLES], "1 of 1 rows can be used"),
    "missing": (
        ["{missing}", *ROLES],
        "nothing in rows 2, 4 (counted from 1). Pass --drop-missing",
    ),
    "method": (["{table}", *ROLES, "--method", "hibrid"], "Did you mean 'hybrid'?"),
    "preserve": (["{table}", *ROLES, "--preserve", "labels"], "Pass --preserve label"),
    "features": (["{bare}", *ROLES], "No column is left"),
    "one class": (["{same}", *ROLES], "Every row of 'outcome' holds 'default'"),
    "format": (["{table}", *ROLES, "--format", "parquet"], "cannot be read"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_cannot_be_done_is_one_line_with_the_remedy(
    call, folder, loans, tmp_path, capsys, what
):
    arguments, said = HOSTILE[what]
    P = ["p_paid back", "p_default"]
    tables = {
        "table": loans,
        "percent": loans.assign(**{name: 100 * loans[name] for name in P}),
        "empty": loans.head(0),
        "one": loans.head(1),
        "missing": loans.assign(p_default=loans["p_default"].where(~loans.index.isin([1, 3]))),
        "bare": loans[[*P, "outcome"]],
        "same": loans.assign(outcome="default"),
    }
    paths = {}
    for name, table in tables.items():
        paths[name] = tmp_path / f"{name}.csv"
        table.to_csv(paths[name], index=False)
    arguments = [argument.format(**paths) for argument in arguments]
    code = call("fit", *arguments, "-o", tmp_path / "m.hetcal")
    shown = capsys.readouterr()
    assert code == 2
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1
    assert said in shown.err
    assert not (tmp_path / "m.hetcal").exists()


def test_percent_and_drop_missing_do_what_the_errors_promise(call, loans, tmp_path, capsys):
    P = ["p_paid back", "p_default"]
    table = loans.assign(**{name: 100 * loans[name] for name in P})
    table.loc[[1, 3], "p_default"] = np.nan
    table.loc[5, "outcome"] = None
    table.to_csv(tmp_path / "t.csv", index=False)
    options = ("--percent", "--drop-missing", "--method", "temperature", "--json")
    assert call("fit", tmp_path / "t.csv", *ROLES, *options, "-o", tmp_path / "m.hetcal") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows_read"], facts["items"]) == (150, 147)


def test_a_label_that_the_probabilities_do_not_rank_is_noted(call, loans, tmp_path, capsys):
    sex = np.random.default_rng(0).choice(["f", "m"], len(loans))
    loans.assign(sex=sex).to_csv(tmp_path / "t.csv", index=False)
    more = ("--method", "temperature", "-o", tmp_path / "m.hetcal", "--overwrite")
    for label, positive, noted in (("sex", "m", True), ("outcome", "default", False)):
        words = ("--label", label, "--proba", "p_default", "--positive", positive)
        assert call("fit", tmp_path / "t.csv", *words, *more) == 0
        said = " ".join(capsys.readouterr().err.split())
        question = "not rank the labels in 'sex' better than chance (AUC 0."
        assert (question in said) == noted


@pytest.mark.parametrize("more", [(), ("--max-rows", "40")], ids=["whole", "drawn"])
def test_fractions_in_place_of_percentages_are_refused(call, loans, tmp_path, capsys, more):
    one = ("--label", "outcome", "--proba", "p_default", "--positive", "default", "--percent")
    model, out = tmp_path / "m.hetcal", tmp_path / "out.csv"
    loans.to_csv(tmp_path / "fractions.csv", index=False)
    loans.assign(p_default=100 * loans["p_default"]).to_csv(tmp_path / "t.csv", index=False)
    options = (*one, *more, "--method", "temperature", "-q", "-o", model)
    assert call("fit", tmp_path / "fractions.csv", *options) == 2
    assert "Leave --percent" in capsys.readouterr().err
    assert not model.exists()
    assert call("fit", tmp_path / "t.csv", *options) == 0
    assert call("apply", model, tmp_path / "t.csv", "-o", out, "-q") == 0
    assert call("apply", model, tmp_path / "fractions.csv", "-o", tmp_path / "no.csv") == 2
    assert "multiply by 100" in capsys.readouterr().err
    assert not (tmp_path / "no.csv").exists()


@pytest.mark.parametrize("name", ["m.csv", "m.parquet", "m.csv.gz"])
@pytest.mark.parametrize(
    "command",
    [
        ["fit", "{t}", *ROLES, "-o"],
        ["refresh", "{m}", "{t}", "-o"],
        ["monitor", "{m}", "{t}", "--history"],
    ],
    ids=["fit", "refresh", "monitor"],
)
def test_a_calibrator_is_not_named_like_a_table(call, folder, tmp_path, capsys, command, name):
    files = {"t": folder / "loans.csv", "m": folder / "swc.hetcal"}
    arguments = [part.format(**files) for part in command]
    assert call(*arguments, tmp_path / name) == 2
    assert f"e.g. {tmp_path / 'm.hetcal'}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_kept(call, folder, tmp_path, capsys):
    out = tmp_path / "m.hetcal"
    out.write_text("precious")
    arguments = ("fit", folder / "loans.csv", *ROLES, "--method", "platt", "-o", out, "-q")
    assert call(*arguments) == 2
    assert "exists already. Pass --overwrite" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert call(*arguments, "--overwrite") == 0


@pytest.mark.processes
def test_the_table_may_come_by_a_pipe(folder, tmp_path):
    out = tmp_path / "m.hetcal"
    arguments = ["fit", "-", *ROLES, "--method", "temperature", "-o", str(out), "--json"]
    code = "import sys; from hetcal.cli import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=(folder / "loans.csv").read_bytes(),
        capture_output=True,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["items"] == 150
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("hetcal ins", {"inspect"}), ("hetcal fit t.csv --method sw", {"swc", "swc-hh"})],
)
def test_the_shell_completes_commands_and_methods(call, capsys, monkeypatch, typed, offered):
    monkeypatch.setenv("_HETCAL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    assert call() == 0
    assert offered <= set(capsys.readouterr().out.split())


def test_every_method_is_offered_for_completion():
    assert sorted(_fit._METHODS) == sorted(list_calibrators())
    for name in _fit._METHODS:
        assert get_calibrator(name).uses_features == (name in _fit._LOCAL), name


def test_rows_that_belong_together_are_noted_with_the_option(call, tmp_path, capsys):
    rng = np.random.default_rng(0)
    event = np.repeat(np.arange(60), 5)
    features = rng.normal(size=(60, 3))[event] + 0.01 * rng.normal(size=(300, 3))
    table = pd.DataFrame(features, columns=list("abc")).assign(
        event=event, p=rng.uniform(0.3, 0.7, 300), y=rng.integers(0, 2, 60)[event]
    )
    table = table.sample(frac=1.0, random_state=0)
    table.to_csv(tmp_path / "t.csv", index=False)
    roles = "--label", "y", "--proba", "p", "--positive", "1", "--features", "a,b,c"
    for more, told in (((), True), (("--groups", "event"), False)):
        out = tmp_path / f"{told}.hetcal"
        arguments = "fit", tmp_path / "t.csv", *roles, *more, "--method", "swc", "-o", out
        assert call(*arguments, "--json") == 0
        notes = json.loads(capsys.readouterr().out)["notes"]
        assert any("Fit again with --groups event." in note for note in notes) is told
    assert (
        call("fit", tmp_path / "t.csv", *roles, "--method", "beta", "-o", out, "--overwrite") == 0
    )
    assert "belong together" not in capsys.readouterr().err


def test_help_names_every_method(call, capsys):
    call("fit", "--help")
    shown = " ".join(capsys.readouterr().out.replace("\u2502", " ").split())
    assert f"map of the probability alone: {', '.join(_fit._GLOBAL)}." in shown


def test_rows_of_weight_zero_are_told_apart(call, folder, tmp_path, capsys):
    table = pd.read_csv(folder / "loans.csv").assign(weight=[0.0, 1.0, 2.0] * 50)
    table.to_csv(tmp_path / "weighted.csv", index=False)
    roles = (*ROLES, "--weight", "weight", "--features", "age", "--method", "sba")
    assert call("fit", tmp_path / "weighted.csv", *roles, "-o", tmp_path / "m.hetcal") == 0
    assert "100 items (50 more have weight 0), 1 feature, 2 cl" in capsys.readouterr().out


def test_weights_that_can_hardly_be_counts_are_noted(call, folder, tmp_path, capsys):
    table = pd.read_csv(folder / "loans.csv").assign(amount=[200.0, 1000.0, 3000.0] * 50)
    table.to_csv(tmp_path / "amounts.csv", index=False)
    roles = (*ROLES, "--weight", "amount", "--method", "platt")
    assert call("fit", tmp_path / "amounts.csv", *roles, "-o", tmp_path / "m.hetcal") == 0
    assert "1,400 on average" in capsys.readouterr().err


def test_a_seed_beyond_those_of_numpy_is_told_before_any_work(call, tmp_path, capsys):
    words = ("fit", tmp_path / "no.csv", "--label", "y", "--proba", "p_*", "-o", tmp_path / "m")
    assert call(*words, "--seed", 2**32) == 2
    assert "4294967295" in capsys.readouterr().err
