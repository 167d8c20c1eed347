"""`from_confidence`: a predicted class and its confidence."""

import numpy as np
import pandas as pd
import pytest

import hetcal
from hetcal import from_confidence
from hetcal.tables import read_labelled


def test_two_classes_get_a_column_each():
    y, P, classes = from_confidence(
        pd.Series(["no", "yes", "no"]), ["yes", "yes", "no"], [0.6, 0.9, 0.3]
    )
    assert classes.tolist() == ["no", "yes"]
    assert y.tolist() == ["no", "yes", "no"]
    np.testing.assert_allclose(P, [[0.4, 0.6], [0.1, 0.9], [0.3, 0.7]])


def test_new_items_are_read_as_the_calibration_items_were():
    _, P, order = from_confidence(None, ["yes"], [0.75], classes=["yes", "no"])
    assert order.tolist() == ["yes", "no"]
    np.testing.assert_allclose(P, [[0.75, 0.25]])
    with pytest.raises(ValueError, match="predicted holds labels that are not in classes"):
        from_confidence(None, ["maybe"], [0.75], classes=["yes", "no"])


def test_of_three_classes_the_probability_of_being_right_is_left():
    y, P, classes = from_confidence([0, 1, 2, 2], [0, 2, 2, 1], [0.5, 0.6, 0.7, 0.8])
    assert y.tolist() == [True, False, True, False]
    assert classes.tolist() == [False, True]
    np.testing.assert_allclose(P[:, 1], [0.5, 0.6, 0.7, 0.8])
    # New items that happen to be predicted 0 and 1 are no truth values.
    _, new, _ = from_confidence(None, [0, 1], [0.9, 0.9], classes=classes)
    np.testing.assert_allclose(new, [[0.1, 0.9], [0.1, 0.9]])


def test_truth_values_are_two_classes_themselves():
    y, P, classes = from_confidence([True, False], [False, False], [0.9, 0.8])
    assert (y.tolist(), classes.tolist()) == ([True, False], [False, True])
    np.testing.assert_allclose(P, [[0.9, 0.1], [0.8, 0.2]])
    _, new, _ = from_confidence(None, np.array([False]), [0.7], classes=classes)
    np.testing.assert_allclose(new, [[0.7, 0.3]])


def test_it_is_what_a_calibrator_takes():
    data = hetcal.datasets.make_hidden_heterogeneity(300, n_classes=3, random_state=0)
    predicted, confidence = data.y_proba.argmax(axis=1), data.y_proba.max(axis=1)
    y, P, classes = from_confidence(data.y, predicted, confidence)
    calibrator = hetcal.PlattScaling(classes=classes).fit(None, y, y_proba=P)
    assert calibrator.classes_.tolist() == [False, True]
    assert calibrator.predict_proba(y_proba=P)[:, 1].mean() == pytest.approx(y.mean(), abs=0.02)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ((None, ["a"], [0.5]), "neither y nor classes"),
        ((["a", "b"], ["a"], [0.5]), "y has 2 rows but predicted has 1"),
        ((["high", "low"], ["class0", "class1"], [0.5, 0.6]), "no labels of y"),
        ((["a", "b"], ["a", "b"], [80, 90]), "confidence is 80.*predicted class.*divide by 100"),
        ((["a", "b"], ["a", "b"], [-0.1, -2.5]), r"confidence is -0\.1.*np\.exp"),
        ((["a", "b"], ["a", "b"], [-0.1, 2.5]), r"in \[0, 1\]\. Pass probabilities"),
        ((["a", "b"], ["a", None], [0.5, 0.6]), "predicted has 1 missing label"),
        ((["a", "b"], ["a", "b"], np.ma.masked_array([0.5, 0.6], [1, 0])), "masked values"),
    ],
)
def test_what_cannot_be_read_is_refused(given, error):
    with pytest.raises((ValueError, TypeError), match=error):
        from_confidence(*given)


def test_spellings_are_folded_as_in_tables():
    t, said = ["New York", "b", "c", "b"] * 20, ["new_york", "B ", "c", "c"] * 20
    right, _, classes = from_confidence(t, said, [0.7] * 80)
    assert right.tolist() == [True, True, True, False] * 20
    table = pd.DataFrame({"t": t, "said": said, "sure": 0.7})
    read = read_labelled(table, label="t", predicted="said", confidence="sure")
    assert [name == "right" for name in read.y] == right.tolist()
    assert classes.tolist() == [False, True]


@pytest.mark.parametrize(
    ("y", "predicted", "classes"),
    [
        (["Yes", "no", "yes"], ["YES", "No", "no"], ["Yes", "no"]),
        ([1, 0, 1], ["1.0", "0", "0"], [0, 1]),
        ([True, False, True], [1, 0, 0], [False, True]),
        (["NA", "b", "NA"], ["NA", "b", "b"], ["NA", "b"]),
    ],
)
def test_two_classes_in_other_words(y, predicted, classes):
    labels, P, order = from_confidence(y, predicted, [0.75, 0.75, 0.75])
    assert order.tolist() == classes
    first = order[0] == labels[0]
    expected = [[0.75, 0.25], [0.25, 0.75], [0.25, 0.75]]
    np.testing.assert_array_equal(P if first else P[:, ::-1], expected)
    assert (labels == labels[0]).tolist() == [True, False, True]


def test_classes_that_differ_in_case_only_stay_apart_where_they_are_named():
    _, P, _ = from_confidence(None, ["a", "A"], [0.75, 0.75], classes=["A", "a"])
    np.testing.assert_array_equal(P, [[0.25, 0.75], [0.75, 0.25]])
    with pytest.raises(ValueError, match=r"not in classes: \['maybe'\]"):
        from_confidence(None, ["maybe", "NO"], [0.7, 0.7], classes=["no", "yes"])
