"""Every map gives the same probabilities as ONNX model, Python function and SQL expression."""

from __future__ import annotations

import json
import math
import runpy
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from tests.export.maps import MAPS, NAMES, drawn, fitted

from hetcal import (
    HistogramBinning,
    HybridCalibrator,
    IsotonicCalibration,
    LabelPreserving,
    LocallyCalibratedClassifier,
    PrecomputedProba,
    SupportMonitor,
)
from hetcal.export import to_onnx, to_python, to_sql
from hetcal.export.values import merged_steps, tolerant_edges

every_map = pytest.mark.parametrize(("name", "preset"), MAPS, ids=NAMES)
both_kinds = pytest.mark.parametrize("kind", ["y_proba", "logits"])


def new_output(n_classes, kind):
    """Return calibration items (exact ties), new items and, of probabilities, certain ones."""
    parts = [drawn(n_classes, kind)[1], drawn(n_classes, kind, seed=5)[1]]
    certain = np.eye(n_classes) if kind == "y_proba" else 800 * np.eye(n_classes)
    return np.vstack([*parts, certain])


def of_second(output, kind):
    return (output[:, 1] if kind == "y_proba" else output[:, 1] - output[:, 0]).tolist()


def run_onnx(model, output, kind):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.SerializeToString())
    return session.run(None, {kind: output})[0]


def run_sqlite(expression, values, name="p"):
    quoted = name.replace('"', '""')
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute("SELECT LN(2e0), EXP(1e0)")
        except sqlite3.OperationalError:
            pytest.skip("this SQLite was built without mathematical functions")
        database.execute(f'CREATE TABLE t ("{quoted}" REAL)')
        database.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
        return [row[0] for row in database.execute(f"SELECT {expression} FROM t")]


@every_map
@both_kinds
@pytest.mark.parametrize("n_classes", [2, 4])
def test_onnx_gives_the_same_probabilities(name, preset, kind, n_classes):
    pytest.importorskip("onnx")
    calibrator, output = fitted(name, preset, n_classes, kind), new_output(n_classes, kind)
    found = run_onnx(to_onnx(calibrator), output, kind)
    assert np.abs(found - calibrator.predict_proba(**{kind: output})).max() < 1e-6
    narrow = run_onnx(to_onnx(calibrator, dtype="float32"), output[:1].astype(np.float32), kind)
    assert narrow.dtype == np.float32


@every_map
@both_kinds
def test_python_gives_the_same_probabilities(name, preset, kind):
    calibrator, output = fitted(name, preset, 2, kind), new_output(2, kind)
    space = {}
    exec(to_python(calibrator), space)
    found = [space["calibrate"](value) for value in of_second(output, kind)]
    assert np.abs(found - calibrator.predict_proba(**{kind: output})[:, 1]).max() < 1e-12


@every_map
@pytest.mark.parametrize(
    ("database", "kind"), [("sqlite", "y_proba"), ("sqlite", "logits"), ("duckdb", "y_proba")]
)
def test_sql_gives_the_same_probabilities(name, preset, kind, database):
    calibrator, output = fitted(name, preset, 2, kind), new_output(2, kind)
    expression, values = to_sql(calibrator, column="p"), of_second(output, kind)
    if database == "sqlite":
        found = run_sqlite(expression, values)
    else:
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect() as connection:
            table = "(SELECT unnest(?::DOUBLE[]) AS p)"
            found = connection.execute(f"SELECT {expression} AS q FROM {table}", [values])
            found = found.fetchnumpy()["q"]
    assert np.abs(found - calibrator.predict_proba(**{kind: output})[:, 1]).max() < 1e-12


def test_lines_that_rise_at_both_ends_are_followed_to_their_ends():
    """Isotonic maps of many items end in steps; the first and the last of these levels differ."""
    calibrator = IsotonicCalibration().fit(None, [0, 1, 0, 1], y_proba=[0.1, 0.2, 0.3, 0.4])
    p = np.array([0.02, 0.1, 0.15, 0.25, 0.35, 0.39, 0.4, 0.7])
    expected = calibrator.predict_proba(y_proba=p)[:, 1]
    assert expected[2] - expected[1] > 0.05
    assert expected[5] - expected[4] > 0.02
    space = {}
    exec(to_python(calibrator), space)
    np.testing.assert_allclose([space["calibrate"](value) for value in p.tolist()], expected)
    np.testing.assert_allclose(run_sqlite(to_sql(calibrator, column="p"), p.tolist()), expected)
    pytest.importorskip("onnx")
    both = np.column_stack([1 - p, p])
    np.testing.assert_allclose(run_onnx(to_onnx(calibrator), both, "y_proba")[:, 1], expected)


def test_what_is_no_probability_has_no_answer():
    calibrator = fitted("venn-abers")  # steps: comparisons with NaN would answer something
    space = {}
    exec(to_python(calibrator), space)
    assert all(math.isnan(space["calibrate"](p)) for p in (math.nan, -0.01, 1.01))
    assert run_sqlite(to_sql(calibrator, column="p"), [None, -0.01, 1.01]) == [None] * 3
    pytest.importorskip("onnx")
    bad = np.array([[math.nan, 0.5], [-0.1, 1.1], [0.5, 0.6], [0.5, 0.5]])
    found = run_onnx(to_onnx(calibrator), bad, "y_proba")
    assert np.isnan(found).all(axis=1).tolist() == [True, True, True, False]


@pytest.mark.parametrize("name", ["histogram", "quadratic"])  # steps; squares
def test_logits_that_are_refused_have_no_answer(name):
    calibrator, bad = fitted(name, kind="logits"), [math.nan, math.inf, -math.inf, 1e101, -1e308]
    space = {}
    exec(to_python(calibrator), space)
    assert all(math.isnan(space["calibrate"](z)) for z in bad)
    assert run_sqlite(to_sql(calibrator, column="p"), bad) == [None] * 5
    for z in (-1e100, 1e100):
        assert space["calibrate"](z) == calibrator.predict_proba(logits=[[0.0, z]])[0, 1]
    pytest.importorskip("onnx")
    found = run_onnx(to_onnx(calibrator), np.column_stack([np.zeros(5), bad]), "logits")
    assert np.isnan(found).all()


def test_bins_with_a_single_value_are_one_number():
    calibrator = HistogramBinning().fit(None, [0, 1, 1], y_proba=[0.3, 0.3, 0.3])
    space = {}
    exec(to_python(calibrator), space)
    assert space["calibrate"](0.9) == pytest.approx(calibrator.predict_proba(y_proba=[0.9])[0, 1])


def test_onnx_scales_rows_that_a_log_has_rounded():
    pytest.importorskip("onnx")
    calibrator, rounded = fitted("beta", n_classes=4), np.array([[0.333, 0.333, 0.333, 0.0]])
    found = run_onnx(to_onnx(calibrator), rounded, "y_proba")
    assert np.abs(found - calibrator.predict_proba(y_proba=rounded)).max() < 1e-6


def test_onnx_nodes_have_names_of_their_own():
    """ONNX Runtime 1.18 refuses the logits' graph otherwise, after its own optimisation."""
    pytest.importorskip("onnx")
    names = [node.name for node in to_onnx(fitted("platt", kind="logits")).graph.node]
    assert all(names)
    assert len(set(names)) == len(names) > 5


def test_onnx_knows_the_classes():
    pytest.importorskip("onnx")
    facts = {entry.key: entry.value for entry in to_onnx(fitted("platt")).metadata_props}
    assert json.loads(facts["classes"]) == [0, 1]
    assert facts["calibrator"] == "PlattScaling"


@pytest.mark.parametrize("dialect", ["ansi", "mysql"])
@pytest.mark.parametrize(
    "column", ['p" >= 0 OR 1=1; DROP TABLE t; --', "`p`", "p'; --", "two words", "select", "\\"]
)
def test_a_column_name_is_never_more_than_a_name(column, dialect):
    expression = to_sql(fitted("platt"), column=column, dialect=dialect)
    found = run_sqlite(expression, [0.2, None], name=column)
    assert abs(found[0] - fitted("platt").predict_proba(y_proba=[0.2])[0, 1]) < 1e-12
    assert found[1] is None


@pytest.mark.parametrize("column", ["", "a\0b", "a\nb", None])
def test_impossible_column_names_are_refused(column):
    with pytest.raises(ValueError, match="to_sql: column must be the name of a column"):
        to_sql(fitted("platt"), column=column)


@pytest.mark.parametrize("name", ["x(): pass\nimport os", "class", "2x", "", None, 3])
def test_impossible_function_names_are_refused(name):
    with pytest.raises(ValueError, match="to_python: name must be"):
        to_python(fitted("platt"), name=name)


@pytest.mark.parametrize(
    "name", ["_sigmoid", "math", "bisect_left", "_interpolate", "_TABLE_0", "min", "\u1d50ath"]
)
def test_functions_cannot_hide_what_they_use(name):
    with pytest.raises(ValueError, match="to_python: name must not be one that the source"):
        to_python(fitted("platt"), name=name)


@pytest.mark.parametrize("preset", ["platt", "isotonic", "spline", "beta"])
def test_every_name_that_the_source_uses_is_refused(preset):
    source = to_python(fitted(preset))
    code = compile(source, "map", "exec")
    functions = [code, *(part for part in code.co_consts if hasattr(part, "co_names"))]
    used = {name for part in functions for name in part.co_names} - {"calibrate"}
    attributes = {"exp", "log", "log1p", "inf", "nan", "bisect"}
    for name in used - attributes:
        with pytest.raises(ValueError, match="to_python: name must not be one that the source"):
            to_python(fitted(preset), name=name)


def test_labels_cannot_say_how_the_file_is_encoded(tmp_path):
    y, P = drawn(2)
    wicked = np.array(["a", "coding: utf-7 +AAo-raise SystemExit +ACM-"])
    path = tmp_path / "map.py"
    path.write_text(to_python(fitted_to_labels(wicked[y], P, wicked)))
    assert 0 < runpy.run_path(str(path))["calibrate"](0.4) < 1


def test_labels_cannot_leave_their_comment():
    y, P = drawn(2)
    wicked = np.array(["a\nraise SystemExit", 'b"""\u2028raise SystemExit'])
    space = {}
    exec(to_python(fitted_to_labels(wicked[y], P, wicked)), space)
    assert 0 < space["calibrate"](0.4) < 1


@pytest.mark.parametrize(
    "second", ["yes", "*/ DROP TABLE t; --", "/* open", "a\nb", "*/*", "%s :a ?"]
)
def test_sql_says_whose_probability_it_is_and_labels_cannot_leave_the_comment(second):
    y, P = drawn(2)
    classes = np.array(["no", second])
    calibrator = fitted_to_labels(classes[y], P, classes)
    expression = to_sql(calibrator, column="p")
    comment, rest = expression[2:].split("*/", maxsplit=1)
    assert "/*" not in comment
    assert not set(comment) & set("\n*%:?;")
    assert comment.startswith(" probability of class '")
    assert rest.startswith(" CASE WHEN")
    expected = calibrator.predict_proba(y_proba=[0.2])[0, 1]
    assert abs(run_sqlite(expression, [0.2])[0] - expected) < 1e-12


def fitted_to_labels(y, P, classes):
    from hetcal import TemperatureScaling

    return TemperatureScaling(classes=classes).fit(None, y, y_proba=P)


def test_a_calibrated_classifier_is_exported_by_its_map():
    y, P = drawn(2)
    classifier = LocallyCalibratedClassifier(PrecomputedProba(), "platt").fit(P, y)
    assert to_python(classifier) == to_python(classifier.calibrator_)


@pytest.mark.parametrize("export", [to_onnx, to_python, lambda c: to_sql(c, column="p")])
def test_local_calibrators_say_why_they_cannot_be_exported(export):
    y, P = drawn(2)
    local = HybridCalibrator(experts=("proximity",)).fit(P, y, y_proba=P)
    with pytest.raises(TypeError, match=r"compares every item .* hetcal apply.*'global'"):
        export(local)
    keeps = LabelPreserving(fitted("platt")).fit(None, y, y_proba=P)
    for other in (None, "platt", SupportMonitor(local)):
        with pytest.raises(TypeError, match=r"exports fitted calibrators; got .*its calibrator_"):
            export(other)
    with pytest.raises(TypeError, match="LabelPreserving .* calibrator_"):
        export(keeps)


@pytest.mark.parametrize("export", [to_python, lambda c: to_sql(c, column="p")])
def test_more_than_two_classes_are_sent_to_onnx(export):
    with pytest.raises(ValueError, match=r"two classes; this one has 4.*to_onnx"):
        export(fitted("platt", n_classes=4))


def test_onnx_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("hetcal.export.onnx_model.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'hetcal\[onnx\]'"):
        to_onnx(fitted("platt"))


def test_scores_on_a_step_stay_there_whatever_the_last_digit():
    edges = np.array([-1.0, 2.0, 2.0 + 1e-15])
    for upwards in (True, False):
        moved = tolerant_edges(edges, upwards=upwards, least=1.0)
        assert (np.diff(moved) > 0).all()
        assert ((moved >= edges) if upwards else (moved < edges)).all()
    assert tolerant_edges(edges, upwards=True, least=1.0)[0] > -1.0


def test_steps_between_equal_levels_go():
    edges, levels = merged_steps(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.1, 0.5, 0.5]))
    assert edges.tolist() == [2.0]
    assert levels.tolist() == [0.1, 0.5]
