"""``hetcal inspect`` from outside."""

from __future__ import annotations

import json

import hetcal


def test_says_what_is_in_it_and_how_it_was_made(call, folder, capsys):
    assert call("inspect", folder / "swc.hetcal") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in (
        "format version 1",
        f"with hetcal {hetcal.__version__}",
        "swc (SimilarityCalibrator)",
        "classes paid back, default",
        "150 items of loans.csv",
        "probabilities p_paid back, p_default",
        "label outcome",
        "2: age, region (2 levels)",
        "loan_id (an id)",
    ):
        assert words in shown


def test_json(call, folder, capsys):
    assert call("inspect", folder / "global.hetcal", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["calibrator"]["kind"] == "TemperatureScaling"
    assert facts["metadata"]["fit"]["method"] == "temperature"


def test_files_from_python_and_files_of_others(call, tmp_path, capsys):
    P = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    platt = hetcal.PlattScaling().fit(None, ["[a]", "[a]", "b", "[a]"], y_proba=P)
    hetcal.save(platt, tmp_path / "p.hetcal", metadata={"made by": "[red]Ann"})
    assert call("inspect", tmp_path / "p.hetcal") == 0
    shown = capsys.readouterr().out
    assert "[a], b" in shown
    assert "[red]Ann" in shown
    (tmp_path / "x.hetcal").write_bytes(b"PK\x03\x04")
    assert call("inspect", tmp_path / "x.hetcal") == 1
    assert capsys.readouterr().err.startswith("error: x.hetcal: ")
    assert call("inspect", tmp_path / "nowhere.hetcal") == 2
    assert "hetcal fit" in capsys.readouterr().err


def test_lines_in_a_pipe_end_with_their_text(call, folder, capsys):
    assert call("inspect", folder / "swc.hetcal") == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line != line.rstrip()] == []


def test_a_history_says_how_many_tables_it_counted(call, folder, later_loans, tmp_path, capsys):
    history, new = tmp_path / "watch.hetcal", tmp_path / "new.csv"
    later_loans.to_csv(new, index=False)
    watched = ("monitor", folder / "swc.hetcal", new, "--history", history)
    assert call(*watched, "--quiet") == 0
    capsys.readouterr()
    assert call("inspect", history) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "counted items of 1 table counted labels of 1 table" in shown
    assert "counted_" not in shown
