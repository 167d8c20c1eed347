"""What `advise` must not be talked into: missing classes, swapped columns, perfect models."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import hetcal
from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis import COLLECT_MORE, LEAVE_IT, learning_curve, measure_prior_shift
from hetcal.diagnosis.advise import judged
from hetcal.diagnosis.checks import check_class_balance, check_column_order, check_unseen_classes
from hetcal.diagnosis.measurements import Gain
from hetcal.diagnosis.sample_size import enough_items

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
    return judged(items, replace(advice.evidence, **evidence), shift, share, classes_given=False)


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
    assert "is open" not in text.split("Settle")[0].split("Why:")[1]
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
    assert "is open. The" not in text
    assert "Collect about" not in text


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
    gain = Gain(0.09, 0.05, 0.13)
    advice = judge(two, local_p_value=0.5, local_gain=gain, local_tested=0.09, local_most=0.2)
    assert advice.verdict == "go local"
    assert "the gain, more than 3 standard errors, shows it" in said(advice)
    gain = Gain(0.09, 0.01, 0.17)
    advice = judge(two, local_p_value=0.5, local_gain=gain, local_tested=0.09, local_most=0.2)
    assert advice.verdict == COLLECT_MORE


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
    assert "the gain, more than 3 standard errors, shows it" in said(advice)


# -- a model that is never wrong ------------------------------------------------------------------


@pytest.mark.parametrize("sure", [1.0, 1 - 1e-7])
def test_a_perfect_model_is_left_as_it_is(sure):
    data = make_hidden_heterogeneity(150, heterogeneity=0.9, random_state=0)
    advice = quick(data.X, data.y, np.where(np.eye(2)[data.y] == 1, sure, 1 - sure))
    assert advice.verdict == LEAVE_IT
    assert "few-errors" in codes(advice)
    assert advice.n_needed is None


def test_nobody_is_asked_for_more_than_a_million_items(two):
    items, _ = two
    assert enough_items(items, 0.02, spread=1e15) == 1_000_000
    advice = judge(two, global_p_value=0.5, global_most=1.0, global_unit=1e9)
    assert advice.n_needed == 1_000_000
    assert "1000000 items or more" in said(advice)


# -- "no" is not said of what is not ruled out ----------------------------------------------------


def test_what_the_interval_holds_is_not_ruled_out_of_many_classes(three):
    evidence = quick(three.X, three.y, three.y_proba).evidence
    upper = evidence.local_gain.less(-1.645)
    assert evidence.local_most >= upper > evidence.local_gain.value


def test_what_is_not_ruled_out_is_open_and_never_a_reason_to_go_local(two):
    small = {"local_gain": Gain(1e-3, 5e-4, 1.5e-3), "local_p_value": 0.01, "local_tested": 1e-3}
    small |= {"doubling_gain": Gain(0.0, -1e-3, 1e-3), "retraining_gain": Gain(-0.1, -0.2, -0.05)}
    assert judge(two, local_most=1e-3, **small).local == "no"
    assert judge(two, local_most=0.1, **small).local == "unsure"
    assert judge(two, **small | {"local_most": 0.1, "local_tested": 0.1}).local == "yes"


def test_few_items_of_many_classes_do_not_say_leave_it():
    data = make_hidden_heterogeneity(150, n_classes=10, heterogeneity=0.6, random_state=1)
    advice = quick(data.X, data.y, data.y_proba)
    assert advice.local == "unsure"
    # 1.645^2 x 5 pairs of classes x Brier score / n: 3 % of it and more.
    assert advice.evidence.local_most > 0.03 * advice.evidence.reference_brier
    assert advice.n_needed > 2000  # 1100 are enough for two classes


# -- the words ------------------------------------------------------------------------------------


def test_the_text_names_the_number_that_each_question_is_decided_on(two):
    e = two[1].evidence
    advice = judge(two, share=0.004, brier=2 * e.reference_brier)
    assert advice.worthwhile == pytest.approx(0.008 * e.reference_brier)
    assert advice.worthwhile_locally == pytest.approx(0.004 * e.reference_brier)
    text = said(advice)
    assert f"{advice.worthwhile:.4f} (0.4% of it)" in text
    assert f"{advice.worthwhile_locally:.4f} (0.4% of the {e.reference_brier:.4f}" in text
    row = advice.frame().loc["worthwhile_locally"]
    assert row["value"] == advice.worthwhile_locally == advice.to_dict()["worthwhile_locally"]


def test_more_items_are_judged_on_the_scale_of_what_a_map_leaves(two):
    e = two[1].evidence
    between = 0.02 * 1.5 * e.reference_brier
    advice = judge(two, brier=2 * e.reference_brier, doubling_gain=Gain(0.0, -between, between))
    assert advice.worthwhile_locally < between < advice.worthwhile
    assert "whether more items would help it is open" in said(advice)


def test_the_reference_of_the_local_gain_is_named(two):
    text = said(two[1])
    assert "over the better of that map and the probabilities as they are" in text
    assert "over the best global map" not in text


def test_another_class_balance_is_in_the_verdict_and_in_what_to_expect(two):
    shift = hetcal.diagnosis.prior_shift.PriorShift(
        np.array([0.5, 0.5]), np.array([0.8, 0.2]), np.array([0.2, -0.4]), np.array([0.4, -0.2])
    )
    nothing = {"global_most": 0.0, "local_most": 0.0, "doubling_gain": Gain(0.0, -1e-3, 1e-3)}
    nothing |= {"retraining_gain": Gain(-0.1, -0.2, -0.05)}
    advice = judge(two, shift=shift, **nothing)
    assert advice.verdict == LEAVE_IT
    text = said(advice)
    assert "as they are: nothing" not in text
    assert "for them the probabilities need the correction below" in text
    assert "Do this (Brier score as it is, for the old class balance):" in text
    assert "another class balance" not in said(judge(two, **nothing))


def test_a_learning_curve_prints_in_a_line():
    data = make_hidden_heterogeneity(60, random_state=0)
    curve = learning_curve(
        data.X, data.y, y_proba=data.y_proba, methods=["temperature"], cv=2, n_repeats=1
    )
    assert repr(curve) == f"LearningCurve(n_items=60, sizes={curve.sizes}, methods=['temperature'])"
