"""What `advise` must not be talked into: missing classes, swapped columns, perfect models."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

import hetcal
from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis import COLLECT_MORE, LEAVE_IT, learning_curve, measure_prior_shift
from hetcal.diagnosis.advise import judged
from hetcal.diagnosis.checks import (
    check_class_balance,
    check_column_order,
    check_telling_feature,
    check_unseen_classes,
)
from hetcal.diagnosis.measurements import Gain
from hetcal.diagnosis.sample_size import items_to_settle
from hetcal.heterogeneity.feature_columns import FeatureColumns

# Labels and probabilities here are made up, also the wrong way round.
pytestmark = pytest.mark.filterwarnings("ignore::hetcal._exceptions.ColumnOrderWarning")


def quick(X, y, P, classes=None, **options):
    """Advise with a small hybrid, which is most of the time otherwise."""
    hybrid = hetcal.HybridCalibrator("kernel", n_estimators=10, classes=classes)
    hybrid.fit(X, y, y_proba=P)
    return hetcal.advise(X, y, y_proba=P, classes=classes, hybrid=hybrid, **options)


def codes(advice):
    return [warning.code for warning in advice.warnings]


def said(advice):
    return " ".join(str(advice).split())


@pytest.fixture(scope="module")
def three():
    return make_hidden_heterogeneity(200, n_classes=3, heterogeneity=0.0, random_state=0)


@pytest.fixture(scope="module")
def two():
    """A small binary problem with its advice, to be judged with other evidence."""
    data = make_hidden_heterogeneity(120, heterogeneity=0.0, random_state=0)
    items = CalibrationSet.check(data.X, data.y, y_proba=data.y_proba, caller="test")
    return items, quick(data.X, data.y, data.y_proba)


def judge(two, share=0.02, shift=None, **evidence):
    items, advice = two
    found = replace(advice.evidence, **evidence)
    return judged(items, found, advice.certainty.detectable, shift, share, classes_given=False)


# -- a class without items ------------------------------------------------------------------------


def test_a_class_that_no_item_has_voids_the_advice(three):
    new, kept = three.sample(600, random_state=1), three.y != 2
    advice = quick(
        three.X[kept],
        three.y[kept],
        three.y_proba[kept],
        classes=[0, 1, 2],
        X_new=new.X,
        y_proba_new=new.y_proba,
    )
    assert codes(advice)[:2] == ["class-never-seen", "class-balance"]
    assert (advice.verdict, advice.recommended) == (COLLECT_MORE, "uncalibrated")
    assert advice.expected_brier == advice.evidence.brier  # no promise
    shift = advice.prior_shift
    assert shift.low[2] <= 0 < 0.3 < (new.y == 2).mean() + 0.1 < shift.high[2]
    assert not shift.shifted.any()
    assert "correct_prior" not in advice.call
    text = said(advice)
    assert "Class 2 is announced" in text
    assert "leave the column out" in text
    assert "Settle the first warning" in text
    assert "would settle it" not in text
    assert "Until then:" in text


def test_a_class_that_is_hardly_announced_is_only_named(three):
    P = np.hstack([three.y_proba, np.full((200, 1), 1e-4)])
    P /= P.sum(axis=1, keepdims=True)
    items = CalibrationSet.check(three.X, three.y, y_proba=P, classes=[0, 1, 2, 3], caller="test")
    warning = check_unseen_classes(items)
    assert warning.code == "class-never-seen"
    assert not warning.voids
    shift = measure_prior_shift(items, P)
    assert shift.low[3] <= 0 < shift.high[3] <= 0.02
    assert check_class_balance(shift, items) is None
    assert not check_unseen_classes(items, shift).voids
    assert check_unseen_classes(items, replace(shift, new=np.full(4, 0.25))).voids
    assert check_unseen_classes(replace(items, classes=items.classes[:3])) is None


def test_few_items_with_new_ones_say_that_those_were_not_looked_at(three):
    X, y, P = three.X[:30], three.y[:30] % 2, three.y_proba[:30]
    advice = hetcal.advise(X, y, y_proba=P, classes=[0, 1, 2], y_proba_new=P)
    assert codes(advice) == ["few-items", "class-never-seen"]
    assert "y_proba_new was not looked at" in said(advice)
    without = hetcal.advise(X, y, y_proba=P, classes=[0, 1, 2])
    assert "y_proba_new was" not in said(without)


# -- columns in another order ---------------------------------------------------------------------


def test_swapped_columns_are_noticed_and_no_constant_is_recommended():
    data = make_hidden_heterogeneity(150, heterogeneity=0.0, signal=5, random_state=0)
    advice = quick(data.X, data.y, data.y_proba[:, ::-1])
    assert codes(advice)[0] == "column-order"
    assert advice.recommended == "uncalibrated"
    text = said(advice)
    assert "with the columns read as 1, 0. Are" in text
    assert (advice.certainty.state, advice.certainty.items_to_settle) == ("open", None)
    assert "would settle it" not in text


@pytest.mark.parametrize("order", [[1, 2, 0], [0, 2, 1, 3, 4], [3, 0, 1, 2]])
def test_the_order_that_would_fit_is_named(order):
    K = len(order)
    data = make_hidden_heterogeneity(400, n_classes=K, heterogeneity=0.0, signal=5, random_state=1)
    right = CalibrationSet.check(data.X, data.y, y_proba=data.y_proba, caller="test")
    assert check_column_order(right) is None
    wrong = CalibrationSet.check(data.X, data.y, y_proba=data.y_proba[:, order], caller="test")
    assert f"read as {', '.join(map(str, order))}. Are" in check_column_order(wrong).text
    assert check_column_order(wrong).voids
    # A model that features alone replace may be as wrong as it likes.
    assert not check_column_order(wrong, still_needed=False).voids


def test_swapped_columns_of_a_rare_class():
    rng = np.random.default_rng(0)
    y = (np.arange(1500) < 22).astype(int)
    p = 1 / (1 + np.exp(-(2 * y - 1 + rng.normal(size=1500))))  # tells the classes well
    items = CalibrationSet.check(
        np.zeros((1500, 1)), y, y_proba=np.column_stack([p, 1 - p]), caller="test"
    )
    assert check_column_order(items).voids
    right = CalibrationSet.check(
        np.zeros((1500, 1)), y, y_proba=np.column_stack([1 - p, p]), caller="test"
    )
    assert check_column_order(right) is None


@pytest.mark.parametrize("K", [2, 3, 20])
def test_models_that_know_nothing_or_always_say_the_same_are_not_swapped(K):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = np.r_[np.arange(K), rng.integers(0, K, 100)]
        noise = rng.dirichlet(np.ones(K), y.shape[0])
        constant = np.tile(np.eye(K)[0], (y.shape[0], 1))
        for P in (noise, constant):
            items = CalibrationSet.check(np.zeros((y.shape[0], 1)), y, y_proba=P, caller="test")
            assert check_column_order(items) is None


# -- what a local map must beat, and what proves that it does --------------------------------------


def test_the_reference_is_the_better_of_the_map_and_no_map():
    for seed in (101, 102):
        data = make_hidden_heterogeneity(80, heterogeneity=0.0, random_state=seed)
        e = quick(data.X, data.y, data.y_proba).evidence
        assert e.reference_brier == min(e.brier, e.best_map_brier)


def test_a_clear_gain_counts_where_the_test_misses_it(two):
    nothing = {"retraining_gain": Gain(-0.1, -0.2, -0.05)}
    gain = Gain(0.09, 0.05, 0.13)
    advice = judge(two, local_p_value=0.5, local_gain=gain, hybrid_gain=gain, **nothing)
    assert (advice.verdict, advice.certainty.state) == ("go local", "real")
    assert "gain of more than 3 standard errors shows it" in said(advice)
    gain = Gain(0.09, 0.01, 0.17)
    advice = judge(two, local_p_value=0.5, local_gain=gain, hybrid_gain=gain, **nothing)
    assert (advice.verdict, advice.certainty.state) == ("go local", "open")
    gain = Gain(0.09, -0.1, 0.28)
    advice = judge(two, local_p_value=0.5, local_gain=gain, hybrid_gain=gain, **nothing)
    assert (advice.verdict, advice.certainty.state) == (COLLECT_MORE, "open")


@pytest.mark.slow
def test_among_many_features_the_test_misses_what_the_hybrid_gains():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    centres = rng.normal(size=(2, 3, 400))
    X = centres[y, rng.integers(0, 3, 600)] + 5 * rng.normal(size=(600, 400))
    P = GaussianNB().fit(X[:100], y[:100]).predict_proba(X[100:300])
    X, y = X[100:300, :320], y[100:300]
    hybrid = hetcal.HybridCalibrator(n_estimators=50).fit(X, y, y_proba=P)
    advice = hetcal.advise(X, y, y_proba=P, hybrid=hybrid)
    assert advice.evidence.local_p_value > 0.1
    assert advice.verdict == "go local"
    assert "gain of more than 3 standard errors shows it" in said(advice)


# -- a model that is never wrong ------------------------------------------------------------------


@pytest.mark.parametrize("sure", [1.0, 1 - 1e-7])
def test_a_perfect_model_is_left_as_it_is(sure):
    data = make_hidden_heterogeneity(150, heterogeneity=0.9, random_state=0)
    advice = quick(data.X, data.y, np.where(np.eye(2)[data.y] == 1, sure, 1 - sure))
    assert advice.verdict == LEAVE_IT
    assert "few-errors" in codes(advice)
    assert advice.certainty.items_to_settle is None


def test_nobody_is_asked_for_more_than_a_million_items(two):
    items, advice = two
    assert items_to_settle(items, 0.1, 1e-15) == 1_000_000
    advice = judged(items, advice.evidence, np.inf, None, 1e-7, classes_given=False)
    assert advice.certainty.items_to_settle == 1_000_000
    assert "1,000,000 items or more" in said(advice)


# -- the words ------------------------------------------------------------------------------------


def test_the_text_names_the_number_that_each_question_is_decided_on(two):
    e = two[1].evidence
    advice = judge(two, share=0.004, brier=2 * e.reference_brier)
    assert advice.worthwhile == pytest.approx(0.008 * e.reference_brier)
    assert advice.worthwhile_locally == pytest.approx(0.004 * e.reference_brier)
    text = said(advice)
    assert f"{advice.worthwhile:.4f} (0.4 % of it)" in text
    assert f"from {advice.worthwhile_locally:.4f} where the features add" in text
    assert f"leaves {e.reference_brier:.4f}" in text
    row = advice.frame().loc["worthwhile_locally"]
    assert row["value"] == advice.worthwhile_locally == advice.to_dict()["worthwhile_locally"]


def test_more_items_are_judged_on_the_scale_of_what_a_map_leaves(two):
    e = two[1].evidence
    between = 0.02 * 1.5 * e.reference_brier
    advice = judge(two, brier=2 * e.reference_brier, doubling_gain=Gain(0.0, -between, between))
    assert advice.worthwhile_locally < between < advice.worthwhile
    assert "whether more rows would help it is open" in said(advice)


def test_the_reference_of_the_local_gain_is_named(two):
    text = said(two[1])
    assert "over the better of that map and the probabilities as they are" in text
    assert "over the best global map" not in text


def test_another_class_balance_is_in_the_verdict_and_in_what_to_expect(two):
    shift = hetcal.diagnosis.prior_shift.PriorShift(
        np.array([0.5, 0.5]), np.array([0.8, 0.2]), np.array([0.2, -0.4]), np.array([0.4, -0.2])
    )
    nothing = dict.fromkeys(["global_gain", "local_gain", "hybrid_gain"], Gain(0.0, -0.1, 0.1))
    nothing |= {"retraining_gain": Gain(-0.1, -0.2, -0.05)}
    advice = judge(two, shift=shift, **nothing)
    text = said(advice)
    assert "another class balance: the code below corrects for it" in text
    assert "correct_prior" in advice.call
    assert "another class balance" not in said(judge(two, **nothing))


def test_a_learning_curve_prints_in_a_line():
    data = make_hidden_heterogeneity(60, random_state=0)
    curve = learning_curve(
        data.X, data.y, y_proba=data.y_proba, methods=["temperature"], cv=2, n_repeats=1
    )
    assert repr(curve) == f"LearningCurve(n_items=60, sizes={curve.sizes}, methods=['temperature'])"


# -- features that show nothing that the probabilities do not ------------------------------------


@pytest.mark.parametrize("which", ["constant", "the probabilities", "one level per row"])
def test_no_number_of_items_is_asked_for_where_none_would_help(which):
    data = make_hidden_heterogeneity(120, heterogeneity=0.0, random_state=0)
    X = {
        "constant": np.ones((120, 2)),
        "the probabilities": np.log(data.y_proba),
        "one level per row": pd.DataFrame({"id": pd.Categorical([f"a{i}" for i in range(120)])}),
    }[which]
    advice = quick(X, data.y, data.y_proba)
    assert (advice.verdict, advice.certainty.state) == (LEAVE_IT, "open")
    assert advice.certainty.items_to_settle is None
    assert "No number of items would settle it with these features" in said(advice)


def test_columns_that_could_show_more_are_told_from_those_that_could_not():
    p = np.array([0.1, 0.1, 0.3, 0.5, 0.9])
    P = np.column_stack([1 - p, p])

    def could(**columns):
        return FeatureColumns.read(pd.DataFrame(columns)).could_show_more_than(P)

    assert not could(score=100 * p, risky=p > 0.4, same=np.ones(5))
    assert could(score=p, x=[1, 2, 3, 4, 5])  # two values at one probability
    assert could(x=[1.0, 1.0, 3.0, 2.0, 4.0])
    assert could(x=[1.0, 1.0, 1.0, np.nan, 1.0])
    assert could(level=["a", "b", "a", "b", "a"])
    assert not could(level=list("abcde"), one=["a"] * 5)


@pytest.mark.parametrize("kind", ["number", "missing", "category"])
def test_a_feature_that_holds_the_label_is_named(two, kind):
    """The advice would count on it, and new items do not have it."""
    y = two[0].codes
    rng = np.random.default_rng(0)
    late = {
        "number": 0.05 * rng.normal(size=120) - y,
        "missing": np.where(y == 1, np.nan, rng.normal(size=120)),
        "category": np.where(y == 1, rng.choice(["late", "never"], 120), "paid"),
    }[kind]
    X = pd.DataFrame({"a": rng.normal(size=120), "late": late})
    items = CalibrationSet.check(X, y, y_proba=np.full(120, 0.5), caller="test")
    found = check_telling_feature(items)
    assert "Column 'late' alone tells class" in found.text
    assert not found.voids
    # What the classifier knows as well is no surprise, and a feature that is often right is none.
    known = CalibrationSet.check(X, y, y_proba=0.1 + 0.8 * y, caller="test")
    assert check_telling_feature(known) is None
    X["late"] = np.where(rng.random(120) < 0.9, y, 1 - y)
    often = CalibrationSet.check(X, y, y_proba=np.full(120, 0.5), caller="test")
    assert check_telling_feature(often) is None


@pytest.mark.filterwarnings("ignore::hetcal.TrainingSetWarning")
def test_a_feature_that_holds_the_label_is_warned_of():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    X = np.column_stack([rng.normal(size=100), y])
    assert "telling-feature" in codes(quick(X, y, 0.3 + 0.4 * rng.random(100)))


def test_levels_of_few_rows_tell_nothing():
    """The frequency in a level of one row is its label."""
    y = np.arange(100) % 2
    X = pd.DataFrame({"shop": pd.Categorical([f"shop {k}" for k in range(100)])})
    items = CalibrationSet.check(X, y, y_proba=np.full(100, 0.5), caller="test")
    assert check_telling_feature(items) is None


def test_where_nothing_is_left_of_the_brier_score_no_share_of_it_is_named(two):
    e = two[1].evidence
    nothing = dict.fromkeys(["global_gain", "local_gain", "hybrid_gain"], Gain(0.0, 0.0, 0.0))
    nothing |= {"retraining_gain": Gain(-0.1, -0.2, -0.05)}
    for left in (0.0, 1e-300):
        advice = judge(two, brier=left, reference_brier=left, local_p_value=0.9, **nothing)
        sure = advice.certainty
        assert (sure.state, advice.to_dict()["certainty"]["detectable_share"]) == (
            "not found",
            None,
        )
        assert f"nor is there room for it: a Brier score of {left:.2g} is left" in said(advice)
        assert "A difference worth" not in said(advice)
    assert e.reference_brier > 0.01
    assert judge(two).certainty.detectable_share > 0


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (0.3, "Nothing hidden was found (p = 0.3)"),
        (0.045, "Nothing hidden was clearly found (p = 0.045; the advice asks for 0.02)"),
        (0.0204, "Nothing hidden was clearly found (p = 0.0204; the advice asks for 0.02)"),
    ],
)
def test_between_the_levels_of_test_and_advice_the_text_names_both(two, p, words):
    """The test alone rejects at its own 5 %: no finding, but not nothing either."""
    nothing = dict.fromkeys(["global_gain", "local_gain", "hybrid_gain"], Gain(0.0, -0.1, 0.0))
    items, advice = two
    found = replace(advice.evidence, local_p_value=p, **nothing)
    for detectable, state in ((1e-4, "not found"), (0.1, "open")):
        advice = judged(items, found, detectable, None, 0.02, classes_given=False)
        assert advice.certainty.state == state
        expected = words
        if state == "open":
            expected = words.replace("Nothing hidden was clearly found", "Something may be hidden")
        assert expected in said(advice)
