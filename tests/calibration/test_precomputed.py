"""PrecomputedProba: a log of any model as a classifier."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from hetcal.calibration.precomputed import PrecomputedProba


@pytest.fixture
def log():
    return pd.DataFrame(
        {
            "p_yes": [0.9, 0.2, 0.6, 0.3],
            "age": [31, 58, 44, 20],
            "p_no": [0.1, 0.8, 0.4, 0.7],
            "region": ["north", "south", "south", "north"],
        }
    )


LABELS = ["yes", "no", "no", "yes"]
IN_SORTED_ORDER = np.array([[0.1, 0.9], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3]])


@pytest.mark.parametrize(
    ("columns", "classes"),
    [
        ("p_*", None),
        ("p_*", ["yes", "no"]),
        (["p_yes", "p_no"], None),
        (["p_no", "p_yes"], None),
        (["p_yes", "p_no"], ["yes", "no"]),
        ([2, 0], None),
        ([0, -2], ["yes", "no"]),
        ("p_yes", None),
        ("p_no", None),
        (["p_no"], None),
        (0, None),
        (2, ["yes", "no"]),
        ("p_y*", None),
    ],
)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_every_way_to_name_the_columns_gives_sorted_classes(log, columns, classes, library):
    table = library(log.to_dict(orient="list"))
    model = PrecomputedProba(columns, classes).fit(table, LABELS)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(model.predict_proba(table), IN_SORTED_ORDER)
    assert model.predict(table).tolist() == ["yes", "no", "yes", "no"]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_features_are_the_other_columns_in_the_same_container(log, library):
    table = library(log.to_dict(orient="list"))
    rest = PrecomputedProba("p_*").fit(table, LABELS).features(table)
    assert isinstance(rest, library)
    assert list(rest.columns) == ["age", "region"]


def test_arrays_by_number():
    X = np.array([[5.0, 0.2, 0.8], [6.0, 0.7, 0.3]])
    model = PrecomputedProba([1, 2]).fit(X, [0, 1])
    np.testing.assert_array_equal(model.predict_proba(X), X[:, 1:])
    np.testing.assert_array_equal(model.features(X), X[:, :1])


def test_a_class_missing_from_the_labels_keeps_its_column():
    table = pd.DataFrame(
        {"p_10": [0.2, 0.3], "p_2": [0.5, 0.5], "p_7": [0.3, 0.2], "x": [1.0, 2.0]}
    )
    for columns in ["p_*", ["p_10", "p_2", "p_7"]]:
        model = PrecomputedProba(columns).fit(table, [2, 7])
        assert model.classes_.tolist() == [2, 7, 10]
        np.testing.assert_array_equal(model.predict_proba(table)[0], [0.5, 0.3, 0.2])


def test_boolean_labels():
    table = pd.DataFrame({"p_True": [0.2, 0.3], "p_False": [0.8, 0.7]})
    model = PrecomputedProba("p_*").fit(table, [True, False])
    assert model.classes_.tolist() == [False, True]
    np.testing.assert_array_equal(model.predict_proba(table)[:, 1], table["p_True"])


def test_logits_are_said_so():
    X = np.array([[1.0, 3.0], [2.0, -1.0]])
    model = PrecomputedProba([0, 1], kind="logits").fit(X, ["a", "b"])
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(X[:, 0] - X[:, 1])))
    np.testing.assert_array_equal(model.read(X), X)
    with pytest.raises(ValueError, match="If these are logits, pass kind='logits'"):
        PrecomputedProba([0, 1]).fit(X, ["a", "b"])


def test_scorers_see_the_classes_in_their_order(log):
    table = pd.concat([log] * 4, ignore_index=True)
    labels = np.array(LABELS * 4)
    model = PrecomputedProba(["p_yes", "p_no"])
    scores = cross_val_score(model, table, labels, scoring="neg_log_loss", cv=2)
    expected = log_loss(labels, np.tile(IN_SORTED_ORDER, (4, 1)), labels=["no", "yes"])
    np.testing.assert_allclose(-scores.mean(), expected)


@pytest.mark.parametrize(
    ("columns", "classes", "message"),
    [
        ("q_*", None, "No column of X matches.*Fix the pattern"),
        ("quality", None, "X has no column 'quality'.*Fix columns"),
        ([0, 7], None, "X has 4 columns.*from 0"),
        ([0, 0], None, "one column twice"),
        ([], None, "names no column"),
        (["p_yes", "age"], None, r"do not end with the names.*Pass classes="),
        (["p_yes", "p_no", "age"], ["yes", "no"], "has 3 columns but 2 classes were named"),
        ("p_*", ["yes", "maybe"], r"labels that are not in classes: \['no'\]"),
        (["age", "p_no"], ["yes", "no"], "Row 0 of the probability columns sums to 31.1"),
    ],
)
def test_errors_name_the_remedy(log, columns, classes, message):
    with pytest.raises(ValueError, match=message):
        PrecomputedProba(columns, classes).fit(log, LABELS)


@pytest.mark.parametrize("columns", ["p_*", "p_no", ["p_no"]])
def test_a_single_column_belongs_to_the_class_in_its_name(columns):
    table = pd.DataFrame({"age": [31, 58], "p_no": [0.9, 0.2]})
    model = PrecomputedProba(columns).fit(table, ["no", "yes"])
    np.testing.assert_allclose(model.predict_proba(table), [[0.9, 0.1], [0.2, 0.8]])
    assert model.feature_columns_ == [0]


def test_a_pattern_needs_names(log):
    array = log[["p_yes", "p_no"]].to_numpy()
    with pytest.raises(ValueError, match="array without column names.*table"):
        PrecomputedProba("p_*").fit(array, LABELS)
    with pytest.raises(ValueError, match="array without column names.*table"):
        PrecomputedProba(["p_yes", "p_no"]).fit(array, LABELS)


def test_pattern_and_labels_that_do_not_meet(log):
    with pytest.raises(ValueError, match=r"not in classes: \[0, 1\].*Pass classes="):
        PrecomputedProba("p_*").fit(log, [0, 1, 0, 1])


def test_other_columns_at_predict(log):
    model = PrecomputedProba("p_*").fit(log, LABELS)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict_proba(log[["p_no", "p_yes", "age", "region"]])


def test_kind_is_checked(log):
    with pytest.raises(ValueError, match="kind must be 'proba' or 'logits'"):
        PrecomputedProba("p_*", kind="percent").fit(log, LABELS)


def test_clone_keeps_the_settings():
    model = clone(PrecomputedProba("p_*", ["a", "b"], kind="logits"))
    assert (model.columns, model.classes, model.kind) == ("p_*", ["a", "b"], "logits")


@pytest.mark.parametrize("prefix", ["p", "p_", "class ", ""])
def test_columns_end_with_the_classes_whatever_stands_before(prefix):
    table = pd.DataFrame({f"{prefix}1": [0.9, 0.2], f"{prefix}0": [0.1, 0.8]})
    read = PrecomputedProba([f"{prefix}1", f"{prefix}0"]).fit(table, [1, 0])
    np.testing.assert_array_equal(read.predict_proba(table), [[0.1, 0.9], [0.8, 0.2]])
