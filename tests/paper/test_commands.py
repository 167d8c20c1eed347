"""``hetcal paper`` as a user runs it, also when it is killed."""

import json
import os
import signal

import pytest
from tests.faults import processes
from tests.patience import PATIENCE

from hetcal.cli._app import run
from hetcal.paper.store import load_results

CELLS = ["table", "moons", "--n-cal", "300", "--jobs", "1"]


def paper(*arguments):
    run(["paper", *map(str, arguments)])


def printed(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        paper(*arguments)
    out, err = capsys.readouterr()
    return end.value.code, out, err


def files(folder):
    return {path: path.stat().st_mtime_ns for path in folder.glob("trials/*/[!.]*.json")}


@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_killed_and_started_again_it_gives_the_same_figures(tmp_path, capsys, started):
    wanted = ("--trials", "2", "--classifiers", "DT,NB", "--methods", "Uncal.,Platt,Iso Reg,SBA-10")
    n_trials = 2 * 2 * 4
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    command = ["paper", *CELLS, *wanted, "--results", str(broken)]
    killed = started(processes.run_and_die, 5, command)
    killed.join(PATIENCE)
    assert killed.exitcode == -signal.SIGKILL
    before = files(broken)
    assert len(before) == 5
    again = printed(capsys, *CELLS, *wanted, "--results", broken)
    # Nothing that was there was computed again, nothing is missing, nothing is there twice.
    after = files(broken)
    assert len(after) == n_trials
    assert all(after[path] == changed for path, changed in before.items())
    assert again[:2] == printed(capsys, *CELLS, *wanted, "--results", whole)[:2]
    tables = [load_results(folder).drop(columns="seconds") for folder in (broken, whole)]
    assert tables[0].equals(tables[1])
    assert not tables[0].duplicated(["classifier", "seed", "method"]).any()


@pytest.mark.processes
def test_two_at_the_same_time_share_a_store(tmp_path, started):
    wanted = ("--trials", "2", "--classifiers", "NB", "--methods", "Uncal.,Platt,Iso Reg,SBA-10")
    command = ["paper", *CELLS, *wanted, "--results", str(tmp_path)]
    runs = [started(processes.run, command) for _ in range(2)]
    for process in runs:
        process.join(PATIENCE)
    assert [process.exitcode for process in runs] == [0, 0]
    assert len(load_results(tmp_path)) == 2 * 4


def test_table_in_words_and_as_json(tmp_path, capsys):
    wanted = (
        *CELLS,
        "--classifiers",
        "NB",
        "--trials",
        2,
        "--methods",
        "uncal.,swc-hh",
        "--with",
        "beta",
        "--results",
        tmp_path,
    )
    code, out, _ = printed(capsys, *wanted)
    assert code == 0
    assert "moons, 300 calibration items, 2 trials" in out
    for word in ("Brier score", "Accuracy", "Uncal.", "SWC-HH", "beta", "HH"):
        assert word in out
    code, out, _ = printed(capsys, *wanted, "--json")
    records = json.loads(out)
    assert {record["method"] for record in records} == {"Uncal.", "SWC-HH", "beta"}
    assert {record["metric"] for record in records} == {"brier", "accuracy"}
    assert all(record["trials"] == 2 for record in records)


def test_a_run_that_is_no_terminal_says_what_is_finished(tmp_path, capsys):
    wanted = (*CELLS, "--classifiers", "NB,DT", "--trials", 2, "--methods", "Uncal.,Platt")
    _, _, err = printed(capsys, *wanted, "--results", tmp_path)
    first, *lines = err.splitlines()
    assert first == f"8 trials to run; results go to {tmp_path}"
    assert [line.split(": ")[0] for line in lines] == ["2 of 8", "4 of 8", "6 of 8", "8 of 8"]
    assert "moons NB, 300 items, trial 1: 2 methods" in err
    assert printed(capsys, *wanted, "--results", tmp_path)[2] == ""
    more = (*wanted, "--trials", 3, "--quiet", "--results", tmp_path)
    assert printed(capsys, *more)[2] == ""
    assert len(load_results(tmp_path)) == 12


def test_status_export_and_the_exported_table(tmp_path, capsys):
    store, csv = tmp_path / "store", tmp_path / "csv"
    wanted = (*CELLS, "--classifiers", "NB", "--trials", 1, "--methods", "Uncal.")
    printed(capsys, *wanted, "--results", store)
    code, out, _ = printed(capsys, "status", "--trials", 1, "--results", store)
    assert code == 0
    assert "processor time" in out
    code, out, _ = printed(capsys, "export", csv, "--results", store)
    assert out.strip().endswith("moons.csv")
    first = printed(capsys, *wanted, "--results", store)
    assert printed(capsys, *wanted, "--results", csv) == first
    assert not (csv / "trials").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table", "mnist"), "choose from mnist-1v7"),
        (("table", "moons", "--with", "hybird"), "Did you mean 'hybrid'?"),
        (("table", "moons", "--classifiers", "XGB"), "choose from DT"),
        (("table", "letter", "--methods", "Platt"), "letter has more"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(arguments, message, capsys, tmp_path):
    code, _, err = printed(capsys, *arguments, "--results", tmp_path)
    assert code == 1
    assert err.startswith("error:")
    assert message in err


def test_all_leaves_out_data_that_cannot_be_had(tmp_path, capsys, monkeypatch):
    from hetcal.paper import data, plan
    from hetcal.paper.settings import make_trials

    def two_sets(*_):
        options = {"classifiers": ["NB"], "seeds": [0], "n_cal": 100}
        return [
            *make_trials("moons", ["Uncal."], **options),
            *make_trials("letter", ["Uncal."], **options),
        ]

    monkeypatch.setattr(plan, "everything", two_sets)
    reasons = {"letter": "no file letter.npz", "moons": None}
    monkeypatch.setattr(data, "why_unavailable", reasons.get)
    code, _, err = printed(capsys, "all", "--jobs", 1, "--no-figures", "--results", tmp_path)
    assert code == 0
    assert err.splitlines()[0] == "Left out: no file letter.npz"
    assert load_results(tmp_path)["dataset"].tolist() == ["moons"]
