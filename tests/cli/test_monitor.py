"""``hetcal monitor`` from outside: what it says, what it remembers, and how it ends."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest

from hetcal import load


def make_new(n: int, seed: int, age: int = 0) -> pd.DataFrame:
    """Return rows like those of the calibrator's table, older by some years."""
    rng = np.random.default_rng(seed)
    said = rng.uniform(0.1, 0.9, n)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 70, n) + age,
            "region": rng.choice(["north", "south east"], n),
            "p_paid back": 1 - said,
            "p_default": said,
            "branch": rng.choice(["Bonn", "Rome"], n),
        }
    )


@pytest.fixture
def tables(tmp_path):
    """Return a folder with a quiet table and one of much older people."""
    make_new(200, 1).to_csv(tmp_path / "quiet.csv", index=False)
    make_new(200, 2, age=400).to_csv(tmp_path / "old.csv", index=False)
    return tmp_path


def test_history_goes_on_and_an_alarm_is_an_exit_code(call, folder, tables, capsys):
    model, past = folder / "swc.hetcal", tables / "h.hetcal"
    first = (tables / "quiet.csv", "--history", past, "--fail-on-alarm")
    loans = pd.read_csv(folder / "loans.csv").assign(branch="Bonn")
    loans.to_csv(tables / "loans.csv", index=False)
    begin = ("--calibration", tables / "loans.csv", "--by", "branch")
    assert call("monitor", model, *first, *begin) == 0
    assert "No alarm" in capsys.readouterr().out
    then = ("monitor", model, tables / "old.csv", "--history", past, "--by", "branch")
    assert call(*then, "--fail-on-alarm", "--json") == 3
    facts = json.loads(capsys.readouterr().out)
    assert facts["seen"] == 400
    assert facts["alarm"]["who"] == "all items"
    assert 200 < facts["alarm"]["time"] < 240
    assert facts["alarm"]["score"] == "distance"
    assert {row["name"] for row in facts["groups"] if row["kind"] == "by"} == {"Bonn", "Rome"}
    assert load(past).frame()["seen"].tolist() == [200, 400]
    assert call("monitor", model, tables / "quiet.csv", "--history", past) == 0
    assert "ALARM at item 2" in capsys.readouterr().out
    again = (
        "monitor",
        model,
        tables / "quiet.csv",
        "--history",
        past,
        "--reset",
        "--fail-on-alarm",
    )
    assert call(*again) == 0
    assert load(past).n_seen_ == 800


def test_without_calibration_items_it_says_what_it_cannot_see(call, folder, tables, capsys):
    assert call("monitor", folder / "swc.hetcal", tables / "quiet.csv") == 0
    assert "cannot see items far outside" in " ".join(capsys.readouterr().err.split())


def test_labels_are_compared_where_they_are(call, folder, tables, later_loans, capsys):
    later_loans.to_csv(tables / "labelled.csv", index=False)
    assert call("monitor", folder / "swc.hetcal", tables / "labelled.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["labels"]["n"] == len(later_loans)


def test_labels_that_come_later_count_no_rows(call, folder, tables, later_loans, capsys):
    model, past = folder / "swc.hetcal", tables / "h.hetcal"
    later_loans.drop(columns="outcome").to_csv(tables / "rows.csv", index=False)
    later_loans.to_csv(tables / "labels.csv", index=False)
    words = ("--history", past, "--json")
    told, late = [], ["--labels-only"]
    for table, more in (("rows", ()), ("labels", late), ("labels", [*late, "--again"])):
        assert call("monitor", model, tables / f"{table}.csv", *words, *more) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert [facts["seen"] for facts in told] == [150, 150, 150]
    assert [facts["labels"]["n"] for facts in told] == [0, 150, 300]
    twice = [[note for note in facts["notes"] if "count twice" in note] for facts in told]
    assert [len(notes) for notes in twice] == [0, 0, 1]
    assert f"holds labels that {past} has counted before" in twice[2][0]
    more = [[note for note in facts["notes"] if "labels for 150 items" in note] for facts in told]
    assert [len(notes) for notes in more] == [0, 0, 1]
    assert call("monitor", model, tables / "rows.csv", *words) == 0
    assert "rows.csv holds rows that" in " ".join(capsys.readouterr().out.split())
    assert call("monitor", model, tables / "rows.csv", "--labels-only") == 2
    assert "--labels-only needs the column 'outcome'" in capsys.readouterr().err
    assert call("monitor", model, tables / "labels.csv", "--labels-only") == 0
    shown = capsys.readouterr()
    assert "150 labels now, 0 items in all" in shown.out
    assert "150 labels for 0 items counted" in " ".join(shown.err.split())
    (row,) = (line for line in shown.out.splitlines() if "all items" in line)
    assert " 150 " in row


def test_labels_are_counted_a_second_time_only_on_request(
    call, folder, tables, later_loans, capsys
):
    past = tables / "h.hetcal"
    later_loans.to_csv(tables / "labels.csv", index=False)
    ask = ("monitor", folder / "swc.hetcal", tables / "labels.csv", "--history", past)
    assert call(*ask) == 0  # rows and labels
    before = past.read_bytes()
    assert call(*ask, "--labels-only") == 2
    assert "Pass the rows whose labels are new, or --again" in capsys.readouterr().err
    assert past.read_bytes() == before
    assert call(*ask, "--again") == 2
    assert "--again is for --labels-only" in capsys.readouterr().err


def test_a_table_without_rows_counts_nothing(call, folder, tables, capsys):
    make_new(3, 1).head(0).to_csv(tables / "none.csv", index=False)
    words = ("monitor", folder / "swc.hetcal", tables / "none.csv", "--history", tables / "h")
    for _ in range(2):
        assert call(*words) == 0
        assert "0 items now, 0 items in all" in capsys.readouterr().out


def test_what_has_changed_is_said_while_there_is_an_alarm(call, folder, tables, capsys):
    more = ("--calibration", folder / "loans.csv")
    rows = make_new(200, 2, age=400)
    rows["p_default"] = rows["p_default"] / 3
    rows["p_paid back"] = 1 - rows["p_default"]
    rows.to_csv(tables / "sure.csv", index=False)
    assert call("monitor", folder / "swc.hetcal", tables / "sure.csv", *more) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "What has changed most: age (median 4" in shown
    assert "100% of the rows hold values never seen before" in shown
    assert "paid back is the most probable class of 100% of the rows, " in shown
    assert call("monitor", folder / "swc.hetcal", tables / "sure.csv", *more, "--json") == 0
    assert json.loads(capsys.readouterr().out)["changes"][0]["feature"] == "age"
    assert call("monitor", folder / "swc.hetcal", tables / "quiet.csv", *more) == 0
    assert "What has changed" not in capsys.readouterr().out


@pytest.mark.parametrize("fault", ["gone", "changed"])
def test_an_alarm_is_told_without_the_calibration_table(call, folder, tables, capsys, fault):
    table, past, page = tables / "loans.csv", tables / "h.hetcal", tables / "page.html"
    rows = pd.read_csv(folder / "loans.csv")
    rows.to_csv(table, index=False)
    words = ("--calibration", table, "--history", past, "--fail-on-alarm")
    assert call("monitor", folder / "swc.hetcal", tables / "quiet.csv", *words) == 0
    if fault == "gone":
        table.unlink()
    else:
        rows[::-1].to_csv(table, index=False)
    capsys.readouterr()
    again = ("monitor", folder / "swc.hetcal", tables / "old.csv", *words)
    assert call(*again, "--html", page) == 2
    assert load(past).n_seen_ == 200
    assert not page.exists()
    capsys.readouterr()
    assert call(*again, "--json") == 3
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any(note.startswith("What has changed cannot be said: ") for note in notes)
    assert load(past).n_seen_ == 400


def test_a_calibration_table_from_a_pipe_is_read_once(call, folder, tables, capsys, monkeypatch):
    given = io.BufferedReader(io.BytesIO((folder / "loans.csv").read_bytes()))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(given))
    words = ("monitor", folder / "swc.hetcal", tables / "old.csv", "--calibration", "-")
    assert call(*words, "--fail-on-alarm") == 3
    assert "What has changed most: age" in " ".join(capsys.readouterr().out.split())


def test_what_has_changed_is_said_of_the_rows_of_this_run(call, folder, tables, capsys):
    history = ("--history", tables / "h.hetcal", "--calibration", folder / "loans.csv")
    rows = make_new(200, 2, age=400)
    rows["p_default"] = rows["p_default"] / 3
    rows["p_paid back"] = 1 - rows["p_default"]
    rows.to_csv(tables / "sure.csv", index=False)
    page = ("--html", tables / "page.html")
    told = []
    for name in ("quiet", "sure", "quiet", "sure"):
        words = (folder / "swc.hetcal", tables / f"{name}.csv", *history)
        assert call("monitor", *words, *page) == 0
        told.append(" ".join(capsys.readouterr().out.split()))
    assert all("ALARM" in text for text in told[1:])
    for text in told[::2]:
        assert "What has changed" not in text
        assert "most probable class" not in text
    for text in told[1::2]:
        assert "What has changed most: age" in text
        assert "paid back is the most probable class of 100% of the rows" in text


def test_an_alarm_that_the_order_of_rows_explains_says_so(call, folder, tables, capsys):
    rows = make_new(400, 1).sort_values("age")
    rows.to_csv(tables / "sorted.csv", index=False)
    rows.sample(frac=1, random_state=0).to_csv(tables / "mixed.csv", index=False)
    notes = {}
    for name in ("sorted", "mixed"):
        ask = ("monitor", folder / "swc.hetcal", tables / f"{name}.csv", "--json")
        assert call(*ask, "--calibration", folder / "loans.csv") == 0
        facts = json.loads(capsys.readouterr().out)
        notes[name] = facts["alarm"] is not None, " ".join(facts["notes"])
    assert notes["mixed"][0] is False
    assert "alike" not in notes["mixed"][1]
    assert notes["sorted"][0] is True
    assert "begin another file with --dependence" in notes["sorted"][1]


def test_scores_to_expect_without_labels(call, folder, tables, capsys):
    quiet, old = (make_new(200, seed, age) for seed, age in ((1, 0), (2, 400)))
    pd.concat([quiet, old]).to_csv(tables / "both.csv", index=False)
    ask = ("monitor", folder / "swc.hetcal", tables / "both.csv", "--expected")
    begin = ("--calibration", folder / "loans.csv")
    assert call(*ask, *begin, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    expected = facts["expected"]
    assert expected["items"] == 400
    assert expected["flagged"] == facts["flagged"] / 400 > 0.4
    assert expected["accuracy"]["low"] < expected["accuracy"]["value"]
    assert any("not to be trusted" in note for note in facts["notes"])
    assert call(*ask, *begin) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"accuracy {expected['accuracy']['value']:.3f} (" in said


def test_labels_alone_raise_an_alarm_with_an_exit_code_of_its_own(
    call, folder, tables, later_loans, capsys
):
    wrong = later_loans.copy()
    label = next(name for name in wrong if set(wrong[name]) == {"paid back", "default"})
    wrong[label] = wrong[label].map({"paid back": "default", "default": "paid back"})
    pd.concat([wrong] * 3).to_csv(tables / "wrong.csv", index=False)
    ask = ("monitor", folder / "swc.hetcal", tables / "wrong.csv", "--fail-on-alarm")
    assert call(*ask) == 4
    said = " ".join(capsys.readouterr().out.split())
    assert "ALARM at label" in said
    assert "likely since label" in said
    assert "than the calibrated probabilities say (evidence 10^" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("global.hetcal", "loans.csv"), "no calibration support"),
        (("swc.hetcal", "loans.csv", "--by", "nobody"), "lacks the column 'nobody'"),
        (("swc.hetcal", "loans.csv", "--history", "global.hetcal"), "holds no history"),
    ],
)
def test_what_cannot_be_done_is_said(call, folder, arguments, words, capsys):
    given = [folder / a if "." in a else a for a in arguments]
    assert call("monitor", *given) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_history_of_another_calibrator_is_refused(call, folder, tables, loans, capsys):
    past, other = tables / "h.hetcal", tables / "other.hetcal"
    loans.iloc[:100].to_csv(tables / "some.csv", index=False)
    fit = ("--label", "outcome", "--proba", "p_*", "--method", "swc", "--quiet", "-o", other)
    assert call("fit", tables / "some.csv", *fit) == 0
    assert call("monitor", other, tables / "quiet.csv", "--history", past) == 0
    assert call("monitor", folder / "swc.hetcal", tables / "quiet.csv", "--history", past) == 2
    assert "another calibrator" in " ".join(capsys.readouterr().err.split())


def test_a_page_says_when_and_what_has_changed(call, folder, tables, capsys):
    model, page = folder / "swc.hetcal", tables / "report.html"
    more = "--calibration", folder / "loans.csv", "--expected", "--html", page
    assert call("monitor", model, tables / "old.csv", *more) == 0
    assert f"Report in {page}." in " ".join(capsys.readouterr().out.split())
    text = page.read_text(encoding="utf-8")
    assert "Alarm of support" in text
    for section in ("support", "expected", "changes", "groups"):
        assert f'<section id="{section}"' in text
    assert '<section id="labels"' not in text
    assert text.index("age</th>") < text.index("region</th>")


def test_a_page_replaces_no_table_and_no_history(call, folder, tables, tmp_path, capsys):
    table, history = tmp_path / "mine.csv", tmp_path / "h.hetcal"
    table.write_text("a,b\n1,2\n", encoding="utf-8")
    command = "monitor", folder / "swc.hetcal", tables / "quiet.csv", "--history", history
    for page in (table, history):
        assert call(*command, "--html", page) == 2
        assert "Choose another name" in " ".join(capsys.readouterr().err.split())
    assert table.read_text(encoding="utf-8") == "a,b\n1,2\n"
    assert not history.exists()


def test_a_history_named_like_a_table_goes_on_but_none_is_begun(call, folder, tables, capsys):
    past, words = tables / "h.csv", ("monitor", folder / "swc.hetcal", tables / "quiet.csv")
    assert call(*words, "--history", past) == 2
    assert "is the name of a table" in " ".join(capsys.readouterr().err.split())
    assert call(*words, "--history", tables / "h.hetcal") == 0
    (tables / "h.hetcal").rename(past)
    assert call(*words, "--history", past) == 0
    assert load(past).n_seen_ == 400
    rows = (tables / "quiet.csv").read_bytes()
    assert call(*words, "--history", tables / "quiet.csv") != 0
    assert (tables / "quiet.csv").read_bytes() == rows
