"""Probabilities, logits, labels, weights, groups: what is accepted, and what each error says."""

from __future__ import annotations

import enum

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from hetcal._validation import (
    PASS_LOGITS,
    check_columns_match_classes,
    check_groups,
    check_labels,
    check_logits,
    check_one_kind,
    check_proba,
    check_same_rows,
    check_sample_weight,
    check_two_classes,
)
from hetcal.metrics import evaluate

P = [[0.25, 0.75], [0.5, 0.5]]
CONTAINERS = {
    "list": lambda rows: rows,
    "numpy": np.array,
    "float32": lambda rows: np.array(rows, dtype=np.float32),
    "object": lambda rows: np.array(rows, dtype=object),
    "fortran": np.asfortranarray,
    "pandas": pd.DataFrame,
    "polars": lambda rows: pl.DataFrame(rows, schema=["a", "b"], orient="row"),
    "nullable": lambda rows: pd.DataFrame(rows, dtype="Float64"),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("check", [check_proba, check_logits])
def test_containers(container, check):
    result = check(CONTAINERS[container](P))
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, P)


def test_read_only_input_is_left_alone():
    rows = np.array(P)
    rows.setflags(write=False)
    np.testing.assert_array_equal(check_proba(rows), P)


@pytest.mark.parametrize(
    "column",
    [[0.25, 0.5], np.array([[0.25], [0.5]]), pd.Series([0.25, 0.5]), pl.Series([0.25, 0.5])],
)
def test_one_column_is_the_second_class(column):
    np.testing.assert_array_equal(check_proba(column), [[0.75, 0.25], [0.5, 0.5]])
    np.testing.assert_array_equal(check_logits(column), [[0, 0.25], [0, 0.5]])


def test_rounded_rows_are_scaled_and_noise_is_left():
    np.testing.assert_allclose(check_proba([[0.33, 0.33, 0.33]]), 1 / 3)
    rows = np.array([[0.1, 0.2, 0.7 + 1e-9]])
    np.testing.assert_array_equal(check_proba(rows), rows)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.5, 0.5], [0.9, 0.47]], "Row 1 of y_proba sums to 1.37.*divide every row"),
        ([[0.4, 0.4, 0.3]], "sums to 1.1.*Rounded probabilities.*by the sum of their row first"),
        ([[0.5, 0.5], [0.4, 1.1]], r"sums to 1.5.*logits, turn them.*softmax\(..., axis=1\)"),
        ([[0.5, 0.5], [60, 40]], "Row 1 of y_proba sums to 100.*divide by 100"),
        ([[-0.1, 1.1]], "Row 0 of y_proba holds -0.1; .* negative.*logits"),
        ([[-3.0, 2.0]], "negative.*logits, turn them into probabilities.*softmax"),
        ([-3.0, 2.0], "negative.*logits, turn them into probabilities.*expit"),
        ([[np.nan, 1.0]], r"Row 0 of y_proba holds NaN \(1 such rows\).*Drop the rows"),
        ([[np.inf, 0.0]], "Row 0 of y_proba"),
        ([0.5, 1.5], "Row 1 of y_proba is 1.5; a single column.*percentages"),
        ([0.5, 150.0], "Row 1 of y_proba is 150.*logits, turn them into.*expit"),
        ([["a", "b"]], "y_proba must hold numbers; got values such as 'a'.*Convert"),
        (np.zeros((0, 2)), "y_proba is empty.*at least one row"),
        (np.zeros((2, 0)), "one column per class"),
        (np.zeros((2, 2, 2)), "one column per class"),
        (None, "y_proba is missing. Pass y_proba="),
        (0.5, "one row per item"),
        (np.array([[0.5 + 1j, 0.5]]), "Complex data not supported"),
    ],
)
def test_bad_probabilities(rows, message):
    with pytest.raises(ValueError, match=message):
        check_proba(rows)


def test_a_metric_takes_no_logits_and_says_how_to_make_probabilities_of_them():
    with pytest.raises(ValueError, match="If these are logits, turn them into probabilities"):
        evaluate([0, 1], [[-3.0, 2.0], [1.0, 0.0]])


@pytest.mark.parametrize("rows", [[[-3.0, 2.0]], [[3.0, 2.0]], [-3.0], [150.0]])
def test_who_takes_logits_says_so_of_what_may_be_some(rows):
    with pytest.raises(ValueError, match="If these are logits, pass them as logits="):
        check_proba(rows, if_logits=PASS_LOGITS)


def test_sparse_probabilities():
    with pytest.raises(TypeError, match=r"y_proba is a sparse matrix; pass a dense"):
        check_proba(sparse.csr_array(np.array(P)))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[np.nan, 1.0]], "holds NaN"),
        ([[1.0, 2.0], [np.inf, 0.0]], "Row 1 of logits holds infinity. Clip the logits"),
        ([[1.0, 2.0], [0.0, -1e308]], "Row 1 of logits holds -1e.308. Clip the logits"),
    ],
)
def test_bad_logits(rows, message):
    with pytest.raises(ValueError, match=message):
        check_logits(rows)


@pytest.mark.parametrize(
    ("labels", "classes", "codes"),
    [
        (["cat", "bird", "cat"], ["bird", "cat"], [1, 0, 1]),
        ([10, 3, 7], [3, 7, 10], [2, 0, 1]),
        ([True, False], [False, True], [1, 0]),
        ([1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [1, 0, 2]),
        (np.array([[1], [0]]), [0, 1], [1, 0]),
        (np.array(["b", "a"], dtype=object), ["a", "b"], [1, 0]),
        (pd.Series(["b", "a"], dtype="category"), ["a", "b"], [1, 0]),
        (pd.Series(["b", "a"], dtype="string"), ["a", "b"], [1, 0]),
        (pd.Series([5, 2], dtype="Int64"), [2, 5], [1, 0]),
        (pd.Series([True, False], dtype="boolean"), [False, True], [1, 0]),
        (pl.Series(["b", "a"]), ["a", "b"], [1, 0]),
        (pl.Series(["b", "a"], dtype=pl.Categorical), ["a", "b"], [1, 0]),
        (pd.DataFrame({"y": [1, 0]}), [0, 1], [1, 0]),
    ],
)
def test_labels_of_any_kind(labels, classes, codes):
    found_codes, found = check_labels(labels)
    assert found.tolist() == classes
    assert found_codes.tolist() == codes


def test_classes_fix_the_order_and_may_be_missing():
    codes, classes = check_labels(["b", "c", "b"], classes=["c", "a", "b"])
    assert codes.tolist() == [2, 0, 2]
    assert classes.tolist() == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        (["a", "z"], ["a", "b"], r"not in classes: \['z'\].*Add them to classes"),
        ([0, 1], ["0", "1"], r"not in classes: \['0', '1'\].*fix the labels"),
        (["a", "b"], ["a"], "at least two classes"),
        (["a", "b"], ["a", "b", "a"], "'a' more than once"),
        ([0.2, 0.8], None, "Unknown label type.*pass them as y_proba"),
        ([0.0, np.inf], None, "infinity"),
        ([0.0, np.nan], None, "1 missing label.*row 1.*Drop the rows"),
        (["a", None], None, "1 missing label.*row 1.*Drop the rows"),
        ([], None, "y is empty.*at least one label"),
        (np.zeros((2, 2)), None, "1d array.*argmax"),
        (None, None, "y is missing"),
    ],
)
def test_bad_labels(labels, classes, message):
    with pytest.raises(ValueError, match=message):
        check_labels(labels, classes)


@pytest.mark.parametrize("labels", [["a", 1], np.array(["a", 1.5], dtype=object)])
def test_mixed_labels(labels):
    if isinstance(labels, list):
        labels = np.array(labels, dtype=object)
    with pytest.raises(TypeError, match=r"mixes labels of different types.*astype\(str\)"):
        check_labels(labels)


class Colour(enum.Enum):
    RED = 0
    BLUE = 1


@pytest.mark.parametrize(
    ("several", "shown"),
    [((1, 0), r"\(1, 0\)"), (frozenset({1}), "frozenset"), ({"a": 1}, "{'a': 1}")],
)
def test_labels_of_several_values(several, shown):
    labels = np.empty(2, dtype=object)
    labels[:] = [several, several]
    with pytest.raises(TypeError, match=f"y holds labels of several values such as .{shown}"):
        check_labels(labels)
    with pytest.raises(TypeError, match="classes holds labels of several values.*one name"):
        check_labels([0, 1], classes=labels)


def test_labels_without_an_order():
    with pytest.raises(TypeError, match=r"y holds labels that cannot be sorted.*\[str\(label\)"):
        check_labels([Colour.RED, Colour.BLUE])
    with pytest.raises(TypeError, match="classes holds labels that cannot be sorted"):
        check_labels([Colour.RED, Colour.BLUE], classes=[Colour.BLUE, Colour.RED])


@pytest.mark.parametrize("classes", [[0, 1, None], [0.0, np.nan]])
def test_classes_without_a_name(classes):
    with pytest.raises(ValueError, match="classes holds a missing value.*Name every column"):
        check_labels([0, 1], classes=classes)


def test_labels_in_the_byte_order_of_another_machine():
    codes, classes = check_labels(np.array([3, 5], ">i4"), classes=np.array([5, 3], ">i8"))
    assert codes.tolist() == [1, 0]
    assert classes.dtype.isnative
    P = np.array([[0.75, 0.25], [0.5, 0.5]], ">f8")
    by = evaluate([0, 1], P, groups_by=np.array([3, 5], ">i8"), n_bootstrap=0)
    assert set(by["group"].astype(str)) >= {"3", "5"}


def test_one_class_only():
    with pytest.raises(ValueError, match="one class only.*Collect items of another class"):
        check_two_classes(np.array([1, 1]), np.array(["a", "b"]))


def test_rows_must_match():
    assert check_same_rows(X=None, y=[1, 2], y_proba=np.array(P)) == 2
    with pytest.raises(ValueError, match="X has 3 rows but y has 2.*select the same rows"):
        check_same_rows(X=np.zeros((3, 1)), y=[1, 2])
    with pytest.raises(ValueError, match="X is empty.*at least one row"):
        check_same_rows(X=np.zeros((0, 1)), y=[])


def test_columns_and_classes():
    classes = np.array(["bird", "cat"])
    with pytest.raises(ValueError, match=r"3 columns but 2 classes were found.*Pass classes="):
        check_columns_match_classes(3, classes)
    with pytest.raises(ValueError, match="3 columns but 2 classes were named.*one column"):
        check_columns_match_classes(3, classes, given=True)


def test_exactly_one_kind_of_output():
    assert check_one_kind(P, None, caller="c") == "y_proba"
    assert check_one_kind(None, P, caller="c", fitted="logits") == "logits"
    with pytest.raises(ValueError, match="both y_proba and logits. Pass exactly one"):
        check_one_kind(P, P, caller="c")
    with pytest.raises(ValueError, match="pass y_proba= .* or logits="):
        check_one_kind(None, None, caller="c")
    with pytest.raises(ValueError, match=r"c was fitted with y_proba; predict_proba needs y_proba"):
        check_one_kind(None, None, caller="c", fitted="y_proba")
    with pytest.raises(ValueError, match="but got logits. Pass y_proba="):
        check_one_kind(None, P, caller="c", fitted="y_proba")


def test_weights():
    np.testing.assert_array_equal(check_sample_weight(None, 2), [1, 1])
    np.testing.assert_array_equal(check_sample_weight(pl.Series([1, 2]), 2), [1, 2])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2, 3], "has 3 values but there are 2 rows"),
        ([1, -1], "row 1 has .*-1.*weight to 0"),
        ([1, np.nan], "finite"),
        ([0, 0], "zero for every row"),
        (1.0, "one weight per row"),
        (["a", "b"], "must hold numbers"),
        (np.array([1, 2], "m8[D]"), r"must hold numbers; got an array of timedelta64\[D\]"),
        (np.ones((2, 2)), "1d array"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises((TypeError, ValueError), match=message):
        check_sample_weight(weight, 2)


def test_groups():
    assert check_groups(None, 2) is None
    assert check_groups(["b", "a", "b"], 3).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="single value 'a'.*groups=None"):
        check_groups(["a", "a"], 2)
    with pytest.raises(ValueError, match="has 3 values but there are 2 rows"):
        check_groups(["a", "b", "a"], 2)
    with pytest.raises(ValueError, match="missing"):
        check_groups(["a", None], 2)


@pytest.mark.parametrize(
    "groups",
    [
        [("ann", 1), ("bob", 1), ("ann", 1), ("ann", 2)],
        [("ann", 1), ("bob",), ("ann", 1), "ann"],
        [b"\xe4", b"b", b"\xe4", b"c"],
    ],
)
def test_groups_of_pairs_and_of_bytes(groups):
    column = pd.Series(groups, dtype=object)
    first, second, third, fourth = check_groups(column, 4)
    assert first == third
    assert len({first, second, fourth}) == 3


def test_zeros_of_both_signs_are_one_group():
    assert check_groups([0.0, -0.0, 1.0], 3).tolist() == [0, 0, 1]


# -- groups by several columns ---------------------------------------------------------------------


def test_columns_of_groups_are_read_one_by_one_and_together():
    table = pd.DataFrame({"id": [2**60, 2**60 + 1, 2**60], "x": [0.5, 0.5, 0.5]})
    assert check_groups(table, 3).tolist() == [0, 1, 0]  # one array of floats would not tell
    assert check_groups([["a", "b"], ["a", "c"], ["a", "b"]], 3).tolist() == [0, 1, 0]
    assert check_groups([["a", "bc"], ["ab", "c"]], 2).tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"groups\['x'\] has 1 missing value\(s\)"):
        check_groups(table.assign(x=[1.0, None, 2.0]), 3)
    with pytest.raises(ValueError, match="single value 'a', 'b'"):
        check_groups([["a", "b"], ["a", "b"]], 2)


def test_numbers_that_cannot_be_read_are_told_whatever_the_error_is_made_from():
    class Odd:
        def __float__(self):
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    with pytest.raises(ValueError, match="sample_weight must hold numbers.*invalid start byte"):
        check_sample_weight(np.array([Odd(), Odd()], dtype=object), 2)


def test_probabilities_with_decimal_commas_say_so():
    with pytest.raises(ValueError, match=r"such as '0,25'.*decimal points in place of commas"):
        check_proba([["0,25", "0,75"]])


def test_a_lazy_table_of_probabilities_is_to_be_collected():
    with pytest.raises(TypeError, match=r"y_proba is a lazy table. Pass y_proba.collect\(\)"):
        check_proba(pl.LazyFrame({"p": [0.5]}))


@pytest.mark.parametrize("X", [{"a": [1, 2]}, [{"a": 1}, {"a": 2}]])
def test_dicts_are_to_be_tables(X):
    with pytest.raises(TypeError, match=r"dict.*pandas\.DataFrame\(X\)"):
        check_same_rows(X=X, y=[0, 1])


def test_several_columns_of_labels_say_what_to_do_with_one_hot_rows_and_with_many_labels():
    with pytest.raises(ValueError, match=r"2 columns.*y\.argmax\(axis=1\).*one calibrator per col"):
        check_labels([[0, 1], [1, 0]])


def test_probabilities_that_are_passed_as_logits_are_noticed():
    P = np.random.default_rng(0).dirichlet([1, 1, 1], 10)
    with pytest.raises(ValueError, match=r"logits holds probabilities.*Pass them as y_proba="):
        check_logits(P)
    for Z in (P[:9], np.log(P), P + 0.1, P[:, :1]):  # too few to tell, or logits
        check_logits(Z)
