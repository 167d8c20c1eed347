"""`from_logprobs`: what a language model gave to the options of a question."""

import numpy as np
import pandas as pd
import pytest

import hetcal
from hetcal import from_logprobs


def test_columns_are_shares_of_what_the_options_got():
    P = np.array([[0.6, 0.2, 0.1], [0.05, 0.05, 0.4]])
    y, shares, classes = from_logprobs(["a", "c"], np.log(P), classes=["a", "b", "c"])
    assert (y.tolist(), classes.tolist()) == (["a", "c"], ["a", "b", "c"])
    np.testing.assert_allclose(shares, P / P.sum(axis=1, keepdims=True))
    table = pd.DataFrame(np.log(P), columns=["b", "c", "a"])
    y, named, classes = from_logprobs(["a", "c"], table)
    assert (y.tolist(), classes.tolist()) == (["a", "c"], ["b", "c", "a"])
    np.testing.assert_array_equal(named, shares)


def test_tokens_that_read_the_same_are_added_up():
    tokens = {"A": np.log(0.3), " A": np.log(0.1), "B\n": np.log(0.1), "The": np.log(0.5)}
    _, P, _ = from_logprobs(None, [tokens], classes=["A", "B"])
    np.testing.assert_allclose(P, [[0.8, 0.2]])
    y, P, classes = from_logprobs([0, 1], [{"0": -0.1, "1": -2.0}, {"1": -0.1, "0": -2.0}])
    assert (y.tolist(), classes.tolist()) == ([0, 1], [0, 1])
    np.testing.assert_array_equal(P[0], P[1, ::-1])


def test_an_option_is_known_in_every_spelling():
    """Else the spelling that the model prefers is lost, and the answer turns round."""
    tokens = {"Yes": np.log(0.6), "yes": np.log(0.1), "\nNO": np.log(0.1), "1": np.log(0.1)}
    _, P, _ = from_logprobs(None, [tokens], classes=["no", "yes"])
    np.testing.assert_allclose(P, [[1 / 8, 7 / 8]])
    truths = [{"True": np.log(0.6), "1": np.log(0.1), "false": np.log(0.1), "0.0": np.log(0.2)}]
    for classes in ([0, 1], [0.0, 1.0], [False, True], ["0", "1"]):
        np.testing.assert_allclose(from_logprobs(None, truths, classes=classes)[1], [[0.3, 0.7]])


def test_case_counts_where_two_options_differ_by_nothing_else():
    tokens = {"a": np.log(0.4), " A": np.log(0.2), "b": np.log(0.2), "B": np.log(0.2)}
    _, P, _ = from_logprobs(None, [tokens], classes=["A", "a", "B"])
    np.testing.assert_allclose(P, [[0.2, 0.4, 0.4]])


def test_an_option_that_is_not_listed_gets_its_bound():
    # 0.1 is left for both, and the least that is listed is 0.3.
    _, P, _ = from_logprobs(None, np.log([[0.6, 0.3, np.nan, np.nan]]), classes=list("ABCD"))
    np.testing.assert_allclose(P, [[0.6, 0.3, 0.05, 0.05]])
    # More is left than the least that is listed: nobody who is unlisted had more than that.
    _, P, _ = from_logprobs(None, [{"A": np.log(0.3), "B": np.log(0.1)}], classes=list("ABC"))
    np.testing.assert_allclose(P, [[0.6, 0.2, 0.2]])
    # What went to other tokens is not left.
    some = {"A": np.log(0.3), "B": np.log(0.1), "So": np.log(0.55)}
    _, P, _ = from_logprobs(None, [some], classes=list("ABC"))
    np.testing.assert_allclose(P, np.array([[0.3, 0.1, 0.05]]) / 0.45)


@pytest.mark.parametrize(
    ("tokens", "most"),
    [
        ({"A": 0.5, "\n": 0.02, "The": 0.01}, 0.01 / 0.51),
        ({"A": 0.9, "The": 0.001}, 0.001 / 0.901),
        ({"A": 0.5, " A": 0.01}, 0.01 / 0.52),  # each of the spellings is listed by itself
        ({"A": 0.5, "The": 0.01, "So": 0.0, "B": None}, 0.01 / 0.51),
    ],
)
def test_no_unlisted_option_had_more_than_the_least_token_that_is_listed(tokens, most):
    with np.errstate(divide="ignore"):
        logs = {token: None if p is None else np.log(p) for token, p in tokens.items()}
    _, P, _ = from_logprobs(None, [logs], classes=["A", "B"])
    np.testing.assert_allclose(P, [[1 - most, most]])


def test_an_option_that_does_not_exist_gets_nothing():
    with np.errstate(divide="ignore"):
        _, P, _ = from_logprobs(None, np.log([[0.6, 0.3, 0.0]]), classes=list("ABC"))
    np.testing.assert_allclose(P, [[2 / 3, 1 / 3, 0]])


def test_options_of_several_tokens():
    questions = [[[-0.5], [-0.4, -0.6, -0.2]], [(-1.0, -1.0), -0.4]]
    _, P, _ = from_logprobs(None, questions, classes=["no", "not at all"])
    np.testing.assert_allclose(np.log(P[:, 0] / P[:, 1]), [-0.5 + 1.2, -2.0 + 0.4])
    _, P, _ = from_logprobs(None, questions, classes=["no", "not at all"], tokens="mean")
    np.testing.assert_allclose(np.log(P[:, 0] / P[:, 1]), [-0.5 + 0.4, -1.0 + 0.4])


def test_it_is_what_calibrators_and_from_confidence_take():
    data = hetcal.datasets.make_hidden_heterogeneity(200, n_classes=3, random_state=0)
    y, P, classes = from_logprobs(data.y, np.log(data.y_proba))
    scaled = hetcal.TemperatureScaling(classes=classes).fit(None, y, y_proba=P)
    assert scaled.predict_proba(y_proba=P).shape == (200, 3)
    right, confidence, _ = hetcal.from_confidence(y, classes[P.argmax(axis=1)], P.max(axis=1))
    np.testing.assert_array_equal(right, data.y == data.y_proba.argmax(axis=1))
    np.testing.assert_allclose(confidence[:, 1], data.y_proba.max(axis=1))


@pytest.mark.parametrize(
    ("y", "given", "options", "error"),
    [
        (None, [[-1.0, -2.0]], {}, "neither y nor classes"),
        (["a"], [[-1.0, -2.0], [-1.0, -2.0]], {"classes": ["a", "b"]}, "y has 1 rows but logprobs"),
        (None, [[0.7, 0.3]], {"classes": ["a", "b"]}, "Row 0 of logprobs holds 0.7.*as y_proba="),
        (None, [[-1.0, -2.0, -3.0]], {"classes": ["a", "b"]}, "logprobs has 3 columns but 2"),
        (["c"], [[-1.0, -2.0]], {"classes": ["a", "b"]}, "labels that are not in classes"),
        (["a"], [[-1.0, -2.0]], {}, r"single option 'a'.*Pass all options, classes="),
        ([3], pd.DataFrame({"a": [-1.0], "b": [-2.0]}), {}, r"y holds \[3\].*order.*classes="),
        (None, [{"x": -1}, {"a": -1}], {"classes": ["a", "b"]}, "Row 0 .*none of the options"),
        (None, [{"a": [-1]}], {"classes": ["a", "b"], "tokens": "mean"}, "lacks option 'b'"),
        (None, [[-1.0, -2.0]], {"classes": ["a", "b"], "tokens": "max"}, "tokens must be one of"),
        (None, [["x", "y"]], {"classes": ["a", "b"]}, "must hold numbers.*got 'x'"),
        (
            None,
            [[{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": -2.0}]],
            {"classes": ["a", "b"]},
            r"as APIs return it, \{t\['token'\]: t\['logprob'\] for t in tokens\}",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(y, given, options, error):
    with pytest.raises(ValueError, match=error):
        from_logprobs(y, given, **options)


def test_columns_of_a_table_in_another_order_are_refused():
    table = pd.DataFrame({"b": [-1.0], "a": [-2.0]})
    with pytest.raises(ValueError, match="columns of logprobs are named"):
        from_logprobs(None, table, classes=["a", "b"])
