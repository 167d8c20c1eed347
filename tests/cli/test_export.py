"""``hetcal export`` from outside."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import hetcal


def test_python_on_standard_output(call, folder, capfdbinary):
    assert call("export", folder / "global.hetcal", "--format", "python") == 0
    space = {}
    exec(capfdbinary.readouterr().out.decode(), space)
    expected = hetcal.load(folder / "global.hetcal").predict_proba(y_proba=[0.3])[0, 1]
    assert abs(space["calibrate"](0.3) - expected) < 1e-12


def test_sql_reads_the_column_of_the_second_class(call, folder, tmp_path, loans):
    out = tmp_path / "q.sql"
    assert call("export", folder / "global.hetcal", "--format", "sql", "-o", out) == 0
    with closing(sqlite3.connect(":memory:")) as database:
        loans.to_sql("loans", database)
        found = [row[0] for row in database.execute(f"SELECT {out.read_text()} FROM loans")]
    P = loans[["p_paid back", "p_default"]].to_numpy()
    expected = hetcal.load(folder / "global.hetcal").predict_proba(y_proba=P)[:, 1]
    assert max(abs(expected - found)) < 1e-12
    assert call("export", folder / "global.hetcal", "--format", "sql", "-o", out) == 2


def test_sql_names_the_class_when_the_columns_are_the_other_way_round(
    call, tmp_path, loans, capsys
):
    table, model = tmp_path / "loans.csv", tmp_path / "m.hetcal"
    loans.to_csv(table, index=False)
    columns = ("--proba", "p_default,p_paid back", "--label", "outcome")
    assert call("fit", table, *columns, "--method", "temperature", "-o", model) == 0
    capsys.readouterr()
    assert call("export", model, "--format", "sql", "-o", tmp_path / "q.sql") == 0
    text = (tmp_path / "q.sql").read_text()
    assert text.startswith("/* probability of class 'paid back' (against 'default')")
    assert '"p_paid back"' in text


def test_onnx_file(call, folder, tmp_path):
    onnx = pytest.importorskip("onnx")
    out = tmp_path / "model.onnx"
    assert call("export", folder / "global.hetcal", "--format", "onnx", "-o", out) == 0
    assert onnx.load(out).producer_name == "hetcal"


def test_what_cannot_be_exported_is_said(call, folder, tmp_path, capsys):
    assert call("export", folder / "swc.hetcal", "--format", "python") == 1
    assert "by its features" in capsys.readouterr().err
    platt = hetcal.PlattScaling().fit(None, [0, 0, 1], y_proba=[0.1, 0.2, 0.9])
    hetcal.save(platt, tmp_path / "p.hetcal")
    assert call("export", tmp_path / "p.hetcal", "--format", "sql") == 2
    assert "--column NAME" in capsys.readouterr().err
    # No column is asked for where none would help.
    three = hetcal.TemperatureScaling().fit(None, [0, 1, 2], y_proba=[[0.4, 0.3, 0.3]] * 3)
    hetcal.save(three, tmp_path / "t.hetcal")
    assert call("export", tmp_path / "t.hetcal", "--format", "sql") == 1
    assert "maps of two classes" in capsys.readouterr().err
    assert call("export", tmp_path / "p.hetcal", "--format", "sql", "--column", "p") == 0


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"percent": True}, "percentages"),
        ({"predicted": "said", "output_kind": "y_proba"}, "confidence"),
        ({"output_kind": "logits", "output": ["a", "b"]}, "log-odds"),
    ],
)
def test_columns_that_are_no_probability_must_be_named(facts, words):
    from hetcal.cli._export import _second_class_column

    with pytest.raises(ValueError, match=words):
        _second_class_column(facts)


def test_the_calibrator_is_not_replaced_by_its_export(call, tmp_path, capsys):
    platt = hetcal.PlattScaling().fit(None, [0, 0, 1], y_proba=[0.1, 0.2, 0.9])
    hetcal.save(platt, tmp_path / "p.hetcal")
    (tmp_path / "link").symlink_to("p.hetcal")
    words = ("export", tmp_path / "p.hetcal", "--format", "python", "--overwrite", "--out")
    for out in ("p.hetcal", "link"):
        assert call(*words, tmp_path / out) == 2
        assert "is the calibrator itself" in capsys.readouterr().err
    assert isinstance(hetcal.load(tmp_path / "p.hetcal"), hetcal.PlattScaling)
