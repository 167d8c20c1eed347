"""Tests of calibration: statistics against loops, p-values against all possible labels."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad

from hetcal.metrics import brier_score, calibration_test
from hetcal.metrics.calibration_tests import (
    _TESTS,
    CalibrationTestResult,
    _KolmogorovSmirnov,
    _Kuiper,
)

RNG = np.random.default_rng(0)
P3 = RNG.dirichlet([1, 2, 3], 60)
Y3 = np.array([RNG.choice(3, p=p) for p in P3])
P2 = np.round(RNG.uniform(size=60), 1)  # with ties
Y2 = (RNG.random(60) < P2).astype(int)
W = RNG.uniform(0.5, 2, 60)


def cumulative(y, p, weight):
    total, path = 0.0, [0.0]
    for value in np.unique(p):
        total += sum(w * (o - s) for o, s, w in zip(y, p, weight, strict=True) if s == value)
        path.append(total)
    return np.array(path), np.sqrt(sum(weight**2 * p * (1 - p)))


@pytest.mark.parametrize("weight", [np.ones(60), W])
def test_cumulative_differences_against_a_loop(weight):
    path, deviation = cumulative(Y2, P2, weight)
    found = calibration_test(Y2, P2, test="kolmogorov-smirnov", sample_weight=weight)
    assert found.statistic == pytest.approx(np.abs(path).max() / deviation)
    assert found.effect == pytest.approx(np.abs(path).max() / weight.sum())
    found = calibration_test(Y2, P2, test="kuiper", sample_weight=weight)
    assert found.statistic == pytest.approx((path.max() - path.min()) / deviation)
    assert found.effect == pytest.approx((path.max() - path.min()) / weight.sum())


def test_spiegelhalter_is_the_brier_score_against_its_expectation():
    expected = brier_score(Y3, P3) - np.mean(1 - (P3**2).sum(axis=1))
    found = calibration_test(Y3, P3, test="spiegelhalter")
    assert found.effect == pytest.approx(expected)
    top, below = Y2 - P2, 1 - 2 * P2
    z = (top * below).sum() / np.sqrt((below**2 * P2 * (1 - P2)).sum())
    assert calibration_test(Y2, P2, test="spiegelhalter").statistic == pytest.approx(z)


@pytest.mark.parametrize(("y", "P"), [(Y3, P3), (Y2, np.column_stack([1 - P2, P2]))])
def test_score_is_a_quadratic_form_in_the_covariance_of_its_parts(y, P):
    K, inside = P.shape[1], (P > 0).all(axis=1)  # the logarithm of 0 is a convention
    y, P, weight = y[inside], P[inside], W[inside]
    sums, covariance = np.zeros(2 * K), np.zeros((2 * K, 2 * K))
    for label, p, w in zip(y, P, weight, strict=True):
        design = w * np.vstack([np.eye(K), np.diag(np.log(p))])
        sums += design @ (np.eye(K)[label] - p)
        covariance += design @ (np.diag(p) - np.outer(p, p)) @ design.T
    found = calibration_test(y, P, test="score", sample_weight=weight, null="asymptotic")
    assert found.statistic == pytest.approx(sums @ np.linalg.pinv(covariance, rcond=1e-9) @ sums)
    assert _TESTS["score"].statistic(P, weight)._rank == 2 * K - 1


@pytest.mark.parametrize("test", list(_TESTS))
def test_p_value_against_all_possible_labels(test):
    """Six rows of rare events: the limit for many rows would be far off."""
    p = np.array([0.02, 0.02, 0.02, 0.1, 0.1, 0.5])
    y = np.array([0, 0, 1, 0, 0, 1])
    value = abs(calibration_test(y, p, test=test).statistic)
    exact = 0.0
    for labels in itertools.product([0, 1], repeat=6):
        other = calibration_test(labels, p, test=test, classes=[0, 1], n_draws=19).statistic
        chance = np.prod(np.where(labels, p, 1 - p))
        exact += chance * (abs(other) >= value * (1 - 1e-9))
    drawn = calibration_test(y, p, test=test, n_draws=20_000).p_value
    assert drawn == pytest.approx(exact, abs=4 * np.sqrt(exact / 20_000))


@pytest.mark.parametrize("test", list(_TESTS))
def test_limit_and_draws_agree_where_rows_are_many(test):
    p = RNG.uniform(0.05, 0.95, 3000)
    y = RNG.random(3000) < p**1.05
    drawn, limit = (
        calibration_test(y, p, test=test, null=null).p_value
        for null in ("monte-carlo", "asymptotic")
    )
    assert drawn == pytest.approx(limit, abs=0.06)


def test_limits_of_brownian_motion():
    ks, kuiper = (kind(np.full((4, 2), 0.5), np.ones(4)) for kind in (_KolmogorovSmirnov, _Kuiper))
    assert ks.limit(2.241402) == pytest.approx(0.05, abs=1e-6)
    assert quad(kuiper.limit, 0, 10)[0] == pytest.approx(np.sqrt(8 / np.pi), abs=1e-6)
    assert quad(ks.limit, 0, 10)[0] == pytest.approx(np.sqrt(np.pi / 2), abs=1e-6)


@pytest.mark.parametrize("test", list(_TESTS))
def test_size_with_rare_events_and_few_values(test):
    p = np.repeat([0.01, 0.05], 50)
    rng = np.random.default_rng(1)
    found = [
        calibration_test(labels, p, test=test, classes=[False, True], n_draws=99).p_value
        for labels in rng.random((200, 100)) < p
    ]
    # Of 200 exact tests at 5 % more than 20 reject once in 600 times.
    assert np.mean(np.array(found) <= 0.05) <= 0.1


@pytest.mark.parametrize("test", list(_TESTS))
@pytest.mark.parametrize(("y", "P"), [(Y3, P3), (Y2, P2)])
def test_order_of_rows_and_scale_of_weights_do_not_matter(test, y, P):
    found = calibration_test(y, P, test=test, sample_weight=W)
    order = RNG.permutation(60)
    again = calibration_test(y[order], P[order], test=test, sample_weight=7 * W[order])
    assert (again.statistic, again.effect) == pytest.approx((found.statistic, found.effect))


@pytest.mark.parametrize("test", list(_TESTS))
def test_repeated_rows_as_one_group_say_what_the_rows_say(test):
    nine = np.repeat(np.arange(60), 9)
    alone = calibration_test(Y3, P3, test=test, groups=np.arange(60))
    grouped = calibration_test(Y3[nine], P3[nine], test=test, groups=nine)
    assert grouped.p_value == alone.p_value
    assert grouped.null == "group signs"
    assert grouped.effect == pytest.approx(alone.effect)


@pytest.mark.parametrize("test", list(_TESTS))
def test_certain_probabilities(test):
    P = np.eye(2)[[0, 1] * 10]
    right = calibration_test([0, 1] * 10, P, test=test)
    assert (right.statistic, right.p_value) == (0, 1)
    wrong = calibration_test([1, 1] + [0, 1] * 9, P, test=test)
    assert wrong.p_value == 0.001
    assert np.isinf(wrong.statistic)


def test_equally_probable_classes_say_nothing_about_confidence():
    found = calibration_test(Y3, np.full((60, 3), 1 / 3), test="spiegelhalter")
    assert (found.statistic, found.p_value) == (0, 1)


@pytest.mark.parametrize(
    ("p_value", "n_draws", "words"),
    [
        (1.0, 999, " 100 % of samples"),
        (0.997, None, " 100 % of samples"),
        (0.034, 999, " 3.4 % of samples"),
        (0.001, 999, " at most 0.1 % of samples"),
        (0.002, 999, "right, 0.2 % of samples"),
        (0.001, None, "right, 0.1 % of samples"),
        (3e-7, None, " less than 0.001 % of samples"),
        (1e-12, None, " next to no sample"),
    ],
)
def test_words_give_shares_without_exponents(p_value, n_draws, words):
    assert words in CalibrationTestResult("score", 1.0, p_value, 0.1, "", "", n_draws).words


def test_the_words_know_the_least_p_value_of_the_draws():
    far = calibration_test([0, 1] * 100, np.full(200, 0.1), n_draws=99)
    assert "at most 1 % of samples" in far.words


def test_one_class_against_the_rest():
    for test in _TESTS:
        one = calibration_test(Y3, P3, test=test, pos_label=2)
        binary = calibration_test(Y3 == 2, P3[:, 2], test=test)
        assert one.statistic == pytest.approx(binary.statistic)
    assert one.event == "of class 2"
    assert "probabilities of class 2 were right" in one.words
    assert repr(one).startswith("CalibrationTestResult('score', statistic=")


def test_draws_only_while_they_are_quick(monkeypatch):
    assert calibration_test(Y2, P2).null == "monte-carlo"
    monkeypatch.setattr("hetcal.metrics.calibration_tests._MOST_CELLS", 1000)
    assert calibration_test(Y2, P2).null == "monte-carlo"  # too few events
    many = np.tile(np.arange(60), 20)
    assert calibration_test(Y2[many], P2[many]).null == "asymptotic"
    heavy = np.where(many == 0, 1000.0, 1.0)  # nearly all the weight is that of twenty rows
    assert calibration_test(Y2[many], P2[many], sample_weight=heavy).null == "monte-carlo"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": "hosmer"}, "test must be one of 'kuiper', "),
        ({"null": "exact"}, "null must be one of 'auto', "),
        ({"n_draws": 10}, "n_draws must be an integer of at least 19"),
        ({"groups": np.arange(60) % 5}, "5 groups are too few"),
        ({"groups": np.arange(60), "null": "asymptotic"}, "takes rows to be independent"),
        ({"pos_label": "x"}, "pos_label='x' is not one of the classes"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        calibration_test(Y2, P2, **options)
