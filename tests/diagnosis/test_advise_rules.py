"""The rules, one by one, against the table in docs/how-to/advise.md."""

import dataclasses
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hetcal
import hetcal.datasets
from hetcal.calibration import HybridCalibrator
from hetcal.data import CalibrationSet, Folds
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis import advise
from hetcal.diagnosis.advise import _retraining_wins, judged
from hetcal.diagnosis.candidates import best_of, retrained
from hetcal.diagnosis.certainty import certainty_of
from hetcal.diagnosis.dependence import Dependence
from hetcal.diagnosis.measurements import Gain
from hetcal.diagnosis.pipeline import _collected
from hetcal.diagnosis.render import what_to_do
from hetcal.diagnosis.sample_size import items_to_settle, items_to_start
from hetcal.diagnosis.snippet import recommended_call
from hetcal.diagnosis.verdicts import (
    AS_IT_IS,
    COLLECT_MORE,
    GLOBAL_IS_ENOUGH,
    GO_LOCAL,
    HYBRID,
    LEAVE_IT,
    RETRAIN,
    State,
    best_action,
    decide,
    state_of,
    too_little_to_start,
)
from hetcal.heterogeneity.average_test import average_p_value


def gain(value, error=0.01):
    return Gain(value, value - 1.96 * error, value + 1.96 * error)


NOTHING = gain(0.0)


def action(global_gain=NOTHING, local_gain=NOTHING, hybrid_gain=NOTHING, **changed):
    options = {"matters": (0.02, 0.02), "caution": 1.0} | changed
    return best_action("isotonic", global_gain, local_gain, hybrid_gain, **options)


@pytest.mark.parametrize(
    ("found", "does"),
    [
        ({}, AS_IT_IS),
        ({"global_gain": gain(0.05)}, "isotonic"),
        ({"local_gain": gain(0.05), "hybrid_gain": gain(0.05)}, HYBRID),
        ({"global_gain": gain(0.05), "local_gain": gain(0.05), "hybrid_gain": gain(0.1)}, HYBRID),
        # A gain within one standard error is none, nor one that does not matter.
        ({"local_gain": gain(0.05, 0.06), "hybrid_gain": gain(0.05, 0.06)}, AS_IT_IS),
        ({"local_gain": gain(0.015), "hybrid_gain": gain(0.015)}, AS_IT_IS),
        # ... unless it is sure.
        ({"local_gain": gain(0.008, 0.001), "hybrid_gain": gain(0.008, 0.001)}, HYBRID),
        ({"global_gain": gain(0.008, 0.001)}, "isotonic"),
        # Neither step pays by itself, both together do.
        ({"global_gain": gain(0.015, 0.02), "hybrid_gain": gain(0.03)}, HYBRID),
        # Better than a bad map is not good enough.
        ({"local_gain": gain(0.05), "hybrid_gain": gain(-0.01)}, AS_IT_IS),
    ],
)
def test_what_to_do_has_the_best_expected_loss(found, does):
    assert action(**found) == does


@given(st.floats(1e-6, 0.5), st.floats(1e-6, 1), st.floats(0.001, 0.5))
def test_a_sure_gain_is_never_left_where_it_is(error, more, matters):
    """Eight standard errors, whatever is called worthwhile."""
    sure = gain((8 + more) * error, error)
    assert action(local_gain=sure, hybrid_gain=sure, matters=(matters, matters)) == HYBRID
    assert action(hybrid_gain=sure, matters=(matters, matters)) == HYBRID


@pytest.mark.parametrize(
    ("p_value", "local_gain", "detectable", "state"),
    [
        (0.01, NOTHING, 0.5, State.REAL),
        (0.9, gain(0.04), 0.5, State.REAL),
        (0.3, NOTHING, 0.01, State.NOT_FOUND),
        (0.3, NOTHING, 0.03, State.OPEN),
        (0.3, NOTHING, np.inf, State.OPEN),
        (0.3, gain(0.025), 0.01, State.OPEN),  # an interval above 0: the test may have missed it
        (np.nan, NOTHING, np.nan, State.OPEN),
    ],
)
def test_what_is_known(p_value, local_gain, detectable, state):
    assert state_of(p_value, local_gain, detectable, matters=0.02) is state


@pytest.mark.parametrize(("detectable", "size"), [(0.1, 0.1), (5.0, 0.2), (np.inf, 0.2)])
def test_what_is_asked_for_shows_what_was_found_less_its_error(detectable, size):
    """And nothing can be larger than what is left of the Brier score."""
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
    items = CalibrationSet.check(X, y, y_proba=np.full(200, 0.5), caller="test")
    for found, target in ((0.032, 0.022), (0.01, 0.005)):
        evidence = SimpleNamespace(
            reference_brier=0.2,
            local_p_value=0.5,
            local_gain=NOTHING,
            hh_local=found,
            hh_standard_error=0.01,
        )
        certainty = certainty_of(items, evidence, detectable, 0.005, void=False)
        assert certainty.state is State.OPEN
        assert certainty.items_to_settle == items_to_settle(items, size, target)
        assert certainty.detectable_share == pytest.approx(detectable / 0.2)


@pytest.mark.parametrize(
    ("retraining", "more", "model", "wins"),
    [
        (gain(0.05), NOTHING, NOTHING, True),
        (gain(0.05, 0.03), NOTHING, NOTHING, False),  # its interval holds 0
        (gain(0.015, 0.001), NOTHING, NOTHING, False),  # too little to matter
        (gain(0.05), gain(0.03), NOTHING, False),  # the hybrid gains more for sure
        (gain(0.05), gain(0.015, 0.001), NOTHING, True),  # but not so much that it matters
        (gain(0.05), NOTHING, gain(0.03), False),  # the classifier says what features do not
        (gain(0.5), NOTHING, gain(0.03), True),  # a tenth of what retraining brings is nothing
    ],
)
def test_when_a_model_of_the_calibration_items_alone_wins(retraining, more, model, wins):
    evidence = SimpleNamespace(
        retraining_gain=retraining, hybrid_over_retrained=more, model_gain=model
    )
    assert _retraining_wins(evidence, 0.02) == wins


@pytest.mark.parametrize(
    ("action", "state", "verdict"),
    [
        (AS_IT_IS, State.NOT_FOUND, LEAVE_IT),
        (AS_IT_IS, State.OPEN, COLLECT_MORE),
        (AS_IT_IS, State.REAL, COLLECT_MORE),  # something is there, and cannot be used yet
        ("isotonic", State.NOT_FOUND, GLOBAL_IS_ENOUGH),
        ("isotonic", State.OPEN, GLOBAL_IS_ENOUGH),
        (HYBRID, State.OPEN, GO_LOCAL),
        (HYBRID, State.REAL, GO_LOCAL),
    ],
)
def test_the_verdict_is_what_to_do_now(action, state, verdict):
    assert decide(action, state, retraining_wins=False) == verdict
    assert decide(action, state, retraining_wins=True) == RETRAIN


def test_enough_items_hold_enough_of_the_second_most_frequent_class():
    y = np.repeat([0, 1, 2], [180, 15, 5])
    items = items_of(y, np.full((200, 3), 1 / 3))
    assert items_to_start(items, share=1.0) == 670  # 50 of 15 in 200
    frequent = items_of(np.repeat([0, 1, 2], [90, 80, 30]), np.full((200, 3), 1 / 3))
    assert items_to_start(frequent, share=1.0) == 400  # twice as many as there are
    assert items_to_start(frequent, share=0.01) == 3500


def test_a_number_that_follows_from_the_rarer_class_says_so():
    y = np.repeat([0, 1], [100, 4])
    for share, rule in ((0.5, True), (0.02, False)):
        X, p = np.arange(104)[:, None], np.full(104, 0.1)
        advice = advise(X, y, y_proba=p, worthwhile=share)
        said = " ".join(str(advice).split())
        among = "would settle it: 50 of the second most frequent class are among so many."
        assert (among in said) is rule


@given(st.integers(2, 500), st.floats(1e-4, 1), st.floats(1e-4, 1), st.floats(1, 5))
def test_more_items_are_asked_for_the_less_there_is_to_see(n, detectable, target, factor):
    items = items_of(np.tile([0, 1], n), np.full(2 * n, 0.5))
    asked = items_to_settle(items, detectable, target)
    assert 2 * n < asked <= 1_100_000
    if detectable > target:
        assert asked >= min(0.99 * 2 * n * detectable / target, 1_000_000)
        assert asked <= items_to_settle(items, detectable, target / factor)


def test_the_least_that_is_measured():
    assert too_little_to_start(39, 19)
    assert too_little_to_start(1000, 4)
    assert not too_little_to_start(40, 5)


def items_of(y, P, groups=None):
    return CalibrationSet.check(np.zeros((len(y), 1)), y, y_proba=P, groups=groups, caller="test")


def p_values_where_all_is_right(n_draws):
    """Return p-values of the test that the probabilities are right on average, where they are."""
    p_values = []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        P = rng.dirichlet(np.ones(4), 120)
        y = (rng.uniform(size=(120, 1)) > P.cumsum(axis=1)).sum(axis=1)
        p_values.append(average_p_value(items_of(y, P), [seed, 2]))
    return np.array(p_values)


def test_the_test_of_calibration_on_average_keeps_its_level():
    assert (p_values_where_all_is_right(30) <= 0.05).sum() <= 4  # 1.5 on average


@pytest.mark.slow
def test_the_test_of_calibration_on_average_is_exact():
    p_values = p_values_where_all_is_right(600)
    for level in (0.05, 0.2, 0.5):
        error = np.sqrt(level * (1 - level) / 600)
        assert abs((p_values <= level).mean() - level) < 3.5 * error


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
        X = pl.DataFrame({name: X[name].tolist() for name in X})
    y = np.arange(60) % 2
    items = CalibrationSet.check(X, y, y_proba=np.full(60, 0.5), caller="test")
    call = recommended_call(best, items, shift=None, classes_given=False)
    names = {"X": X, "y": y, "X_new": X[:4]}
    exec(call, names)
    assert names["q_new"].shape == (4, 2)


def test_what_is_needed_does_not_jump_where_measuring_starts():
    """39 items are not measured, 41 are."""
    data = make_hidden_heterogeneity(60, random_state=0)

    def needed(n):
        X, y, P = data.X[:n], data.y[:n], data.y_proba[:n]
        hybrid = None
        if n >= 40:
            hybrid = HybridCalibrator("kernel", n_estimators=5).fit(X, y, y_proba=P)
        return advise(X, y, y_proba=P, hybrid=hybrid).certainty.items_to_settle

    assert needed(39) == needed(20)
    assert 0.3 * needed(39) < needed(41) < 3 * needed(39)


@pytest.fixture(scope="module")
def local():
    """Return items, and the advice to go local."""
    data = hetcal.datasets.make_hidden_heterogeneity(400, heterogeneity=1.0, random_state=0)
    items = CalibrationSet.check(data.X, data.y, y_proba=data.y_proba, caller="test")
    return items, hetcal.advise(items)


def test_rows_that_belong_together_leave_nothing_to_recommend(local):
    items, advice = local
    for dependence, verdict in (
        (None, RETRAIN),
        (Dependence(("x0",), 60, 0.05, 0.0, 5.0, 0.4, 9.0, by_gain=True), COLLECT_MORE),
    ):
        evidence = dataclasses.replace(
            advice.evidence,
            retraining_gain=gain(0.05),
            hybrid_over_retrained=NOTHING,
            model_gain=NOTHING,
            dependence=dependence,
        )
        found = judged(items, evidence, 0.5, None, 0.02, classes_given=False)
        assert found.verdict == verdict
        assert (found.retraining_call is None) == (dependence is not None)


def test_going_local_and_retraining_are_said_in_one_voice(local):
    _, advice = local
    assert advice.verdict == "go local"
    assert "retrain it" not in what_to_do(advice)
    needless = dataclasses.replace(advice.evidence, reliance_on_model=0.0)
    said = what_to_do(dataclasses.replace(advice, evidence=needless))
    assert said.index("Calibrate with the hybrid") < said.index("retrain it on data that include")
    caught = []
    with _collected(caught):
        warnings.warn("consider retraining", hetcal.TrainingSetWarning, stacklevel=1)
        warnings.warn("other", hetcal.HetcalWarning, stacklevel=1)
    assert caught == ["other"]  # the advice speaks of it
