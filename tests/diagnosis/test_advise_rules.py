"""The rules, one by one, against the table in docs/user/advise.md."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetcal.calibration import HybridCalibrator
from hetcal.data import CalibrationSet, Folds
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis import advise
from hetcal.diagnosis.candidates import best_of, retrained
from hetcal.diagnosis.measurements import Gain, Potential
from hetcal.diagnosis.measurements import _right_on_average as right_on_average
from hetcal.diagnosis.sample_size import enough_items
from hetcal.diagnosis.snippet import recommended_call
from hetcal.diagnosis.verdicts import (
    COLLECT_MORE,
    GLOBAL_IS_ENOUGH,
    GO_LOCAL,
    LEAVE_IT,
    RETRAIN,
    VERDICTS,
    Answer,
    Case,
    decide,
    too_little_to_start,
)

YES, NO, UNSURE = Answer.YES, Answer.NO, Answer.UNSURE


@pytest.mark.parametrize(
    ("global_map", "local", "verdict"),
    [
        (NO, NO, LEAVE_IT),
        (YES, NO, GLOBAL_IS_ENOUGH),
        (UNSURE, NO, COLLECT_MORE),
        (NO, UNSURE, COLLECT_MORE),
        (YES, UNSURE, COLLECT_MORE),
        (UNSURE, UNSURE, COLLECT_MORE),
        (NO, YES, GO_LOCAL),
        (YES, YES, GO_LOCAL),
        (UNSURE, YES, GO_LOCAL),
    ],
)
def test_the_table(global_map, local, verdict):
    assert decide(global_map, local, retraining_wins=False) == verdict


def test_retraining_goes_first_and_every_verdict_can_be_reached():
    answers = list(product(Answer, Answer))
    assert {decide(*pair, retraining_wins=True) for pair in answers} == {RETRAIN}
    reached = {decide(*pair, retraining_wins=False) for pair in answers} | {RETRAIN}
    assert reached == set(VERDICTS)


numbers = st.floats(-1, 1)


@given(st.floats(0, 1), numbers, st.floats(0, 1), st.floats(0.001, 1), st.booleans())
def test_a_case_has_one_answer(p_value, gain, most, worthwhile, rising):
    answer = Case(p_value, gain, most, worthwhile, rising).answer
    assert (answer is NO) == (most < worthwhile and not (p_value <= 0.05 and rising))
    if answer is YES:
        assert p_value <= 0.05
        assert gain > 0


def test_a_gain_that_proves_itself_needs_no_test():
    assert Case(0.5, gain=0.05, most=0.09, worthwhile=0.01).answer is UNSURE
    assert Case(0.5, gain=0.05, most=0.09, worthwhile=0.01, sure=True).answer is YES


def test_what_is_not_known_is_open():
    assert Case(np.nan, 0.1, np.nan, 0.01).answer is UNSURE


def test_enough_items_hold_enough_of_the_second_most_frequent_class():
    y = np.repeat([0, 1, 2], [180, 15, 5])
    items = items_of(y, np.full((200, 3), 1 / 3))
    assert enough_items(items, share=100.0) == 670  # 50 of 15 in 200
    frequent = items_of(np.repeat([0, 1, 2], [90, 80, 30]), np.full((200, 3), 1 / 3))
    assert enough_items(frequent, share=100.0) == 400  # twice as many as there are
    # So that a gain of this share is found, and its absence seen: (2 * 1.645)^2 * 2 / share.
    assert enough_items(frequent, share=0.01) == 2200


def test_the_least_that_is_measured():
    assert too_little_to_start(39, 19)
    assert too_little_to_start(1000, 4)
    assert not too_little_to_start(40, 5)


def items_of(y, P, groups=None):
    return CalibrationSet.check(np.zeros((len(y), 1)), y, y_proba=P, groups=groups, caller="test")


def test_gain_against_a_naive_loop():
    rng = np.random.default_rng(0)
    items = items_of(rng.integers(0, 2, 50), np.full(50, 0.5))
    a, b = rng.uniform(size=50), rng.uniform(size=50)
    gain = Gain.between(a, b, items)
    difference = [x - y for x, y in zip(a, b, strict=True)]
    of_items = np.std(difference, ddof=1) / np.sqrt(50)
    of_fit = 4 * min(np.mean(a), np.mean(b)) / 50
    error = np.sqrt(of_items**2 + of_fit**2)
    quantile = 2.0096  # Student's, 49 degrees of freedom
    assert gain.value == pytest.approx(np.mean(difference))
    assert gain.high - gain.value == pytest.approx(quantile * error, rel=1e-4)
    assert gain.less(1.0) == pytest.approx(gain.value - error * quantile / 1.96, rel=1e-4)


def test_potential_is_the_best_step_in_the_direction():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.2, 0.8, 400)
    y = (rng.uniform(size=400) < p + 0.15).astype(int)
    P = np.column_stack([1 - p, p])
    direction = np.tile([-0.1, 0.1], (400, 1))
    potential = Potential.towards(direction, P, items_of(y, P))
    truth = np.eye(2)[y]

    def brier(a):
        return ((P + a * direction - truth) ** 2).sum(axis=1).mean()

    steps = np.linspace(-5, 5, 20001)
    best = brier(0.0) - min(brier(a) for a in steps)
    assert potential.z**2 * potential.unit == pytest.approx(best, rel=1e-4)
    assert potential.most > best
    assert potential.z > 3


def test_a_direction_without_meaning_has_a_standard_normal_z():
    rng = np.random.default_rng(2)
    alarms, too_small = 0, 0
    for _ in range(300):
        p = rng.uniform(0.05, 0.95, 200)
        y = (rng.uniform(size=200) < p).astype(int)
        P = np.column_stack([1 - p, p])
        direction = rng.normal(size=(200, 1)) * [[-1.0, 1.0]]
        potential = Potential.towards(direction, P, items_of(y, P))
        alarms += potential.z >= 1.645
        too_small += potential.most <= 0
    assert 5 <= alarms <= 27  # 15 on average
    assert too_small == 0


def p_values_where_all_is_right(n_draws):
    """Return p-values of the test that the probabilities are right on average, where they are."""
    p_values = []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        P = rng.dirichlet(np.ones(4), 120)
        y = (rng.uniform(size=(120, 1)) > P.cumsum(axis=1)).sum(axis=1)
        p_values.append(right_on_average(items_of(y, P), seed)[2])
    return np.array(p_values)


def test_the_test_of_calibration_on_average_keeps_its_level():
    assert (p_values_where_all_is_right(30) <= 0.05).sum() <= 4  # 1.5 on average


@pytest.mark.slow
def test_the_test_of_calibration_on_average_is_exact():
    p_values = p_values_where_all_is_right(600)
    for level in (0.05, 0.2, 0.5):
        error = np.sqrt(level * (1 - level) / 600)
        assert abs((p_values <= level).mean() - level) < 3.5 * error


def test_hard_zeros_have_a_finite_potential():
    y = np.array([0, 1] * 20)
    P = np.eye(2)[np.array([0, 1] * 19 + [1, 0])]
    potential = Potential.towards(0.5 - P, P, items_of(y, P))
    assert np.isfinite(potential.most)
    assert potential.z > 0


def test_the_best_is_chosen_without_the_item():
    truth = np.eye(2)[np.array([0, 0, 1, 1])]
    items = items_of([0, 0, 1, 1], np.full((4, 2), 0.5))
    folds = Folds(np.array([0, 0, 1, 1]))
    # Each is perfect on one fold and useless on the other: chosen there, it is useless here.
    first, second = truth.copy(), truth.copy()
    first[:2], second[2:] = 1 - truth[:2], 1 - truth[2:]
    _, chosen = best_of({"a": first, "b": second}, items, folds)
    np.testing.assert_array_equal(chosen, 1 - truth)


@pytest.mark.parametrize("best", ["forest", "boosting"])
def test_the_call_to_retrain_takes_columns_of_text(best):
    table = pd.DataFrame({"a": ["x", "y"] * 20, "b": np.arange(40.0)})
    y, weight = np.array([0, 1] * 20), np.ones(40)
    items = CalibrationSet.check(
        table, y, y_proba=np.full(40, 0.5), sample_weight=weight, caller="test"
    )
    call = recommended_call(best, items, shift=None, classes_given=False)
    names = {"X": table, "y": y, "X_new": table.head(3), "sample_weight": weight}
    exec(call, names)
    assert names["q_new"].shape == (3, 2)


@pytest.mark.parametrize("best", ["forest", "boosting"])
def test_the_call_to_retrain_keeps_the_order_of_classes(best):
    """A model sorts its columns and has none for a class without items."""
    X, classes = np.repeat([[0.0], [1.0]], 20, axis=0), ["no", "maybe", "gone"]
    y = np.repeat(["no", "maybe"], 20)
    P = np.full((40, 3), 1 / 3)
    items = CalibrationSet.check(X, y, y_proba=P, classes=classes, caller="test")
    call = recommended_call(best, items, shift=None, classes_given=True)
    names = {"X": X, "y": y, "X_new": X, "classes": np.array(classes)}
    exec(call, names)
    assert names["q_new"].shape == (40, 3)
    np.testing.assert_array_equal(np.array(classes)[names["q_new"].argmax(axis=1)], y)


def test_boosting_meets_a_column_that_a_fold_has_no_value_of():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    X[1:, 1] = np.nan
    items = CalibrationSet.check(X, y, y_proba=np.full(60, 0.5), caller="test")
    said = retrained(items, Folds(np.arange(60) % 5), with_boosting=True, seed=0, n_jobs=None)
    np.testing.assert_allclose(said["boosting"].sum(axis=1), 1)


@pytest.mark.parametrize("best", ["forest", "boosting"])
@pytest.mark.parametrize("kind", ["Int64", "boolean", "string", "names", "numbers and names"])
def test_the_call_to_retrain_takes_what_scikit_learn_does_not(best, kind):
    """Columns that mark missing values by pandas.NA, maybe among new items only; mixed names."""
    table = pd.DataFrame({"a": ["x", "y"] * 20, "b": [0, 1, 1, 0] * 10})
    new = table.head(4).copy()
    if kind == "string":
        table["a"], new["a"] = table["a"].astype(kind), new["a"].astype(kind)
        table.loc[3, "a"] = pd.NA
    elif kind in ("Int64", "boolean"):
        table["b"], new["b"] = table["b"].astype(kind), new["b"].astype(kind)
        new.loc[2, "b"] = pd.NA
    else:
        first = table if kind == "names" else table.assign(a=np.arange(40.0))
        table, new = (t.set_axis([0, "b"], axis=1) for t in (first, first.head(4)))
    y = np.array([0, 1] * 20)
    items = CalibrationSet.check(table, y, y_proba=np.full(40, 0.5), caller="test")
    call = recommended_call(best, items, shift=None, classes_given=False)
    names = {"X": table, "y": y, "X_new": new}
    exec(call, names)
    assert names["q_new"].shape == (4, 2)
    assert list(table.columns) == list(new.columns)  # the user's own tables are left alone


@pytest.mark.parametrize("best", ["forest", "boosting"])
@pytest.mark.parametrize("kind", ["array", "pandas", "numbered", "polars", "words"])
def test_the_call_to_retrain_leaves_out_empty_columns(best, kind):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), np.full(60, np.nan), np.arange(60.0)])
    if kind != "array":
        X = pd.DataFrame(X, columns=None if kind == "numbered" else ["a", "b", "c"])
    if kind == "words":
        X["c"] = ["u", "v"] * 30
    if kind == "polars":
        X = pytest.importorskip("polars").DataFrame({name: X[name].tolist() for name in X})
    y = np.arange(60) % 2
    items = CalibrationSet.check(X, y, y_proba=np.full(60, 0.5), caller="test")
    call = recommended_call(best, items, shift=None, classes_given=False)
    names = {"X": X, "y": y, "X_new": X[:4]}
    exec(call, names)
    assert names["q_new"].shape == (4, 2)


@given(
    st.integers(2, 3000),
    st.integers(1, 50),
    st.floats(0.005, 0.2),
    st.floats(1.0, 3.0),
)
def test_more_items_never_lower_what_is_needed(n, rare, share, factor):
    """With the same share of the second class; and a smaller gain never asks for fewer items."""

    def needed(times, share):
        y = np.tile(np.r_[np.zeros(rare * n // 50 + 1), np.ones(n)].astype(int), times)
        return enough_items(items_of(y, np.full(len(y), 0.5)), share)

    assert needed(1, share) <= needed(2, share) <= needed(3, share)
    assert needed(1, share) <= needed(1, share / factor)
    assert needed(1, share) >= 2 * n


def test_what_is_needed_does_not_jump_where_measuring_starts():
    """39 items are not measured, 41 are."""
    data = make_hidden_heterogeneity(60, random_state=0)

    def needed(n):
        X, y, P = data.X[:n], data.y[:n], data.y_proba[:n]
        hybrid = None
        if n >= 40:
            hybrid = HybridCalibrator("kernel", n_estimators=5).fit(X, y, y_proba=P)
        return advise(X, y, y_proba=P, hybrid=hybrid).n_needed

    assert needed(20) <= needed(39) <= needed(41) <= needed(60)
