"""``hetcal diagnose`` from outside: a table in, a verdict, a page and numbers out."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest

from hetcal import Report
from hetcal.cli import main
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.metrics import brier_score

pytestmark = pytest.mark.usefixtures("with_small_hybrids")


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code or 0


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A log: features, an id, the day, the model's probabilities, and what happened."""
    data = make_hidden_heterogeneity(300, heterogeneity=1.0, classes=["no", "yes"], random_state=1)
    frame = data.frame()
    frame["customer_id"] = range(1000, 1300)
    frame["day"] = [f"2024-{1 + k // 30:02d}-{1 + k % 28:02d}" for k in range(300)]
    frame["region"] = ["north", "south"] * 150
    frame["p_no"], frame["p_yes"] = data.y_proba.T
    frame["outcome"] = data.y
    path = tmp_path_factory.mktemp("log") / "loans.csv"
    frame.to_csv(path, index=False)
    # New rows, of which forty have a label.
    new = data.sample(50, random_state=1)
    later = new.frame().assign(region="north")
    later["p_no"], later["p_yes"] = new.y_proba.T
    later["outcome"] = [*new.y[:40], *[""] * 10]
    later.to_csv(path.with_name("new.csv"), index=False)
    return path


@pytest.fixture(scope="module")
def ran(table):
    """Run once with everything; the tests look at what came of it."""
    numbers = table.with_name("loans.json")
    code = call(
        *("diagnose", table, "--label", "outcome", "--proba", "p_*", "--by", "region"),
        *("--test", table.with_name("new.csv"), "--cost", "fp=1,fn=4", "--json", numbers, "-q"),
    )
    return code, Report.from_json(numbers)


def test_the_report_stands_beside_the_table(ran, table):
    code, report = ran
    assert code == 0
    text = table.with_name("report.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert report.title in text


def test_what_it_says(ran, table):
    _, report = ran
    assert report.verdict.verdict == "go local"
    assert report.data.n_test == 50
    assert report.cost.matrix == [[0, 1], [4, 0]]
    assert {group.rule for group in report.by} == {"region = north", "region = south"}
    assert "customer_id" not in report.data.features
    assert any("customer_id" in note for note in report.notes)


def test_labels_of_the_test_table_are_scored(ran, table):
    _, report = ran
    new = pd.read_csv(table.with_name("new.csv"))[:40]
    assert report.data.n_test_scored == 40
    [raw] = [row for row in report.test if row.method == "uncalibrated"]
    proba = new[["p_no", "p_yes"]].to_numpy()
    assert raw.scores["brier"].value == pytest.approx(brier_score(new["outcome"], proba))
    assert "On 40 labelled rows" in report.text()


def test_the_commands_can_be_copied(ran, table):
    _, report = ran
    assert report.command.startswith(f"hetcal diagnose {table} --label outcome --proba 'p_*'")
    assert "--cost fp=1,fn=4" in report.command
    fit, apply = report.verdict.command.splitlines()
    assert fit == f"hetcal fit {table} --label outcome --proba 'p_*' -o loans.hetcal"
    assert apply.startswith("hetcal apply loans.hetcal")


@pytest.fixture
def asked(ran, monkeypatch):
    """Let the command hand out the report that is there; return what it asked for."""
    given = {}

    def remembered(items, **named):
        given.update(named, items=items)
        return replace(ran[1], weakest=[])  # these are of a test table, which is not read here

    monkeypatch.setattr("hetcal.report.diagnose", remembered)
    return given


def test_in_order_of_time_to_standard_output(ran, asked, table, tmp_path, capsys):
    code = call(
        *("diagnose", table, "--label", "outcome", "--proba", "p_*", "--time", "day"),
        *("--features", "x0,x1", "--learning-curve", "-o", tmp_path / "time.html", "--json", "-"),
    )
    printed = capsys.readouterr()
    assert code == 0
    report = Report.from_json(printed.out)
    assert report.comparison == ran[1].comparison
    assert report.command.endswith("--learning-curve")
    assert asked["time"].tolist() == pd.read_csv(table)["day"].tolist()
    assert asked["learning_curve"] is True
    assert list(asked["items"].X.columns) == ["x0", "x1"]


def test_the_terminal_shows_the_verdict(asked, table, tmp_path, capsys):
    arguments = (
        *("diagnose", table, "--label", "outcome", "--proba", "p_*", "--features", "x0,x1"),
        *("-o", tmp_path / "short.html"),
    )
    code = call(*arguments)
    shown = capsys.readouterr().out
    assert code == 0
    assert asked["worthwhile"] == 0.02
    assert "The numbers:" not in shown
    assert call(*arguments, "--verbose", "--worthwhile", "0.01") == 0
    assert asked["worthwhile"] == 0.01
    again = capsys.readouterr().out
    assert "The numbers:" in again
    assert "short.html (the earlier one is replaced)" in again
    assert "replaced" not in shown
    assert shown.startswith(f"Diagnosing {table}")
    for words in (
        "300 items, 2 features, classes no, yes.",
        "Verdict: ",
        "How sure: real",
        "measured on the other half",
        "Do this:",
        "uncalibrated",
        "On 40 labelled rows of the test table",
        "Test table: ",
        "Report: ",
    ):
        assert words in shown
    prose = shown.split("Report: ")[0].splitlines()
    assert max(len(line) for line in prose[1:] if not line.startswith("    hetcal")) <= 80


@pytest.mark.parametrize(
    ("verdict", "void", "title"),
    [
        ("leave it", False, "Nothing to run now. When there are new labelled rows"),
        ("collect more data", False, "When there are more labelled rows"),
        ("collect more data", True, "When the warning is settled"),
    ],
)
def test_there_is_always_a_command_to_type(
    verdict, void, title, ran, monkeypatch, table, tmp_path, capsys
):
    said = replace(ran[1].verdict, verdict=verdict, recommended="uncalibrated", void=void)
    report = replace(ran[1], weakest=[], verdict=said)
    monkeypatch.setattr("hetcal.report.diagnose", lambda items, **named: report)
    arguments = ("diagnose", table, "--label", "outcome", "--proba", "p_*")
    assert call(*arguments, "-o", tmp_path / "r.html") == 0
    shown = capsys.readouterr().out
    assert f"{title}:\n    hetcal diagnose {table} --label outcome --proba 'p_*'" in shown
    assert "q_new" not in shown  # Python is of no use here


def test_the_terminal_says_where_code_to_retrain_is(ran, monkeypatch, table, tmp_path, capsys):
    arguments = ("diagnose", table, "--label", "outcome", "--proba", "p_*", "-o", tmp_path / "r")
    for code in (None, "model.fit(X, y)"):
        said = replace(ran[1].verdict, retraining_call=code)
        report = replace(ran[1], weakest=[], verdict=said)
        monkeypatch.setattr("hetcal.report.diagnose", lambda items, r=report, **named: r)
        assert call(*arguments) == 0
        shown = capsys.readouterr().out
        assert ("To retrain:\n    No command trains a model; code" in shown) == (code is not None)


def test_groups_that_were_found_are_named_in_the_command(ran, monkeypatch, table, tmp_path, capsys):
    log = pd.read_csv(table)
    log.loc[3, "day"] = None
    log.to_csv(tmp_path / "log.csv", index=False)

    def shown(*columns):
        said = replace(ran[1].verdict, recommended="uncalibrated", void=True)
        said = replace(said, belong_together=list(columns))
        report = replace(ran[1], weakest=[], verdict=said)
        monkeypatch.setattr("hetcal.report.diagnose", lambda items, **named: report)
        arguments = ("--label", "outcome", "--proba", "p_*", "--groups", "x0")
        assert call("diagnose", tmp_path / "log.csv", *arguments) == 0
        return capsys.readouterr().out

    complete = shown("region", "customer_id")
    assert "--groups region,customer_id" in complete.split("Do this first:")[1]
    assert "--groups x0" not in complete.split("Do this first:")[1]
    assert "Do this first, when the empty values of day are filled in:" in shown("day")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--label", "outcom"], "outcom"),
        (["--label", "outcome", "--cost", "fp"], "--cost"),
        (["--label", "outcome", "--cost", "fp=x"], "'fp=x' is not understood"),
        (["--label", "outcome", "--cost", "maybe:no=1"], "classes among no, yes"),
        (["--label", "outcome", "--time", "nothing"], "nothing"),
        (["--label", "outcome", "-o", "missing/folder/x.html"], "there is no folder"),
        (["--label", "outcome", "--json", "missing/folder/x.json"], "there is no folder"),
    ],
)
def test_what_cannot_be_read_is_one_line(arguments, words, table, capsys):
    assert call("diagnose", table, "--proba", "p_*", *arguments) == 2
    printed = capsys.readouterr()
    assert words in " ".join(printed.err.split())
    assert "Traceback" not in printed.err


def test_a_page_that_is_not_ours_is_not_replaced(tmp_path, table, capsys):
    copy = tmp_path / "loans.csv"
    copy.write_text(table.read_text(encoding="utf-8"), encoding="utf-8")
    other = tmp_path / "report.html"
    other.write_text("my own page", encoding="utf-8")
    assert call("diagnose", copy, "--label", "outcome", "--proba", "p_*") == 2
    assert "is not a report of hetcal" in " ".join(capsys.readouterr().err.split())
    assert other.read_text(encoding="utf-8") == "my own page"
    before = copy.read_bytes()
    for option in ("-o", "--json"):
        assert call("diagnose", copy, "--label", "outcome", "--proba", "p_*", option, copy) == 2
        assert "Choose another name" in " ".join(capsys.readouterr().err.split())
        assert copy.read_bytes() == before


def test_compare_prints_and_writes(table, tmp_path, capsys):
    target = tmp_path / "methods.csv"
    code = call(
        *("compare", table, "--label", "outcome", "--proba", "p_*", "--features", "x*"),
        *("--methods", "uncalibrated,temperature,swc", "--no-baselines", "--folds", "3"),
        *("-o", target, "--jobs", "1"),
    )
    shown = capsys.readouterr().out
    assert code == 0
    for words in ("temperature", "swc", "Brier", "300 items, 3 splits"):
        assert words in shown
    assert len(target.read_text(encoding="utf-8").splitlines()) == 1 + 3 * 4


def test_a_table_without_features_is_sent_to_the_global_maps(table, tmp_path, capsys):
    bare, roles = tmp_path / "bare.csv", ("--label", "outcome", "--proba", "p_*", "--jobs", "1")
    pd.read_csv(table).filter(regex="outcome|p_").to_csv(bare, index=False)
    assert call("diagnose", bare, *roles) == 2
    assert "hetcal compare" in " ".join(capsys.readouterr().err.split())
    assert call("compare", bare, *roles) == 0
    shown = capsys.readouterr().out
    assert "temperature" in shown
    assert "swc" not in shown
    assert call("compare", bare, *roles, "--methods", "platt,swc") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "swc: failed: ValueError: SimilarityCalibrator compares items by their features" in told


def test_large_weights_are_told_once_and_in_the_words_of_the_command(table, tmp_path, capsys):
    weighted = tmp_path / "weighted.csv"
    pd.read_csv(table).assign(amount=5000.0).to_csv(weighted, index=False)
    roles = ("--label", "outcome", "--proba", "p_*", "--features", "x*", "--weight", "amount")
    few = ("--methods", "temperature", "--no-baselines")
    for command in (("compare", weighted, *roles, *few), ("diagnose", weighted, *roles)):
        assert call(*command, "--jobs", "1") == 0
        shown = capsys.readouterr()
        told = " ".join((shown.out + shown.err).split())
        assert told.count("sample_weight (--weight) is 5,000 on average") == 1
        assert "(for --weight: in the table)" in told
        assert "WeightWarning" not in told
        assert ".py:" not in told
        assert ("X: the features" in told) == (command[0] == "diagnose")


def test_lines_of_a_comparison_fit_a_terminal(table, capsys):
    roles = ("--label", "outcome", "--proba", "p_*", "--features", "x*")
    assert call("compare", table, *roles, "--methods", "platt", "--jobs", "1") == 0
    shown = capsys.readouterr().out.splitlines()
    assert max(map(len, shown)) <= 80
    assert "X: the features, P: the model's probabilities" in shown


def test_compare_for_machines(table, capsys):
    code = call(
        *("compare", table, "--label", "outcome", "--proba", "p_*", "--features", "x*"),
        *("--methods", "uncalibrated,platt", "--no-baselines", "--folds", "2", "--json", "-"),
        *("--jobs", "1"),
    )
    rows = json.loads(capsys.readouterr().out)
    assert code == 0
    assert {row["method"] for row in rows} == {"uncalibrated", "platt"}


def test_one_outcome_is_called_so(call, tmp_path, capsys):
    table = tmp_path / "one.csv"
    table.write_text("age,score,outcome\n" + "40,0.5,yes\n41,0.6,yes\n" * 30)
    options = ("--label", "outcome", "--proba", "score", "--positive", "yes")
    assert call("diagnose", table, *options) == 2
    assert "Only one outcome occurs: every label in 'outcome' is 'yes'" in capsys.readouterr().err
