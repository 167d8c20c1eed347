"""What every global map must do, whatever it is fed."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

from hetcal import WeightWarning
from hetcal.calibration import (
    BiasCorrectedTemperatureScaling,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
    get_calibrator,
)
from hetcal.calibration import platt as platt_module

# Labels and probabilities here are made up, also the wrong way round.
pytestmark = pytest.mark.filterwarnings("ignore::hetcal._exceptions.ColumnOrderWarning")

DEFAULTS = [
    "uncalibrated",
    "platt",
    "temperature",
    "bcts",
    "vector",
    "matrix",
    "ets",
    "beta",
    "quadratic",
    "spline",
    "isotonic",
    "venn-abers",
    "histogram",
    "atoms",
]
PAPER = ["platt", "temperature", "isotonic", "histogram"]
VARIANTS = [(name, None) for name in DEFAULTS] + [(name, "paper") for name in PAPER]
MONOTONE = ["uncalibrated", "platt", "temperature", "bcts", "vector", "ets", "beta"]
MONOTONE += ["quadratic", "spline", "isotonic", "venn-abers"]

every_variant = pytest.mark.parametrize(("name", "preset"), VARIANTS)
every_default = pytest.mark.parametrize("name", DEFAULTS)


@st.composite
def problems(draw):
    """Draw (P, codes, weight): few rows, ties, hard zeros, probabilities down to 1e-300."""
    K = draw(st.integers(2, 4))
    n = draw(st.integers(2, 25))
    counts = np.array(draw(st.lists(st.integers(0, 4), min_size=n * K, max_size=n * K)))
    P = counts.reshape(n, K).astype(float)
    if draw(st.booleans()):
        P = np.where(P > 0, 10.0 ** (-100.0 * (P - 1)), 0.0)
    P[P.sum(axis=1) == 0] = 1.0
    codes = np.array(draw(st.lists(st.integers(0, K - 1), min_size=n, max_size=n)))
    assume(np.unique(codes).shape[0] > 1)
    weight = np.array(draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), dtype=float)
    return P / P.sum(axis=1, keepdims=True), codes, weight


def fitted(name, preset, P, codes, weight=None, **params):
    calibrator = get_calibrator(name, preset=preset, classes=np.arange(P.shape[1]), **params)
    return calibrator.fit(None, codes, y_proba=P, sample_weight=weight)


def probe(K):
    """Return probabilities that no calibration set has seen, corners included."""
    rng = np.random.default_rng(0)
    inside = softmax(rng.normal(size=(6, K)) * 4, axis=1)
    return np.vstack([np.eye(K), np.full((1, K), 1 / K), inside])


def sample(n=300, K=3, seed=0, temperature=2.0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, K)) * 3
    truth = softmax(logits / temperature, axis=1)
    codes = (truth.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, K - 1)
    return logits, softmax(logits, axis=1), codes


@every_variant
@settings(max_examples=12)
@given(problem=problems())
def test_always_k_columns_on_the_simplex(name, preset, problem):
    P, codes, weight = problem
    calibrator = fitted(name, preset, P, codes, weight)
    for new in (P, probe(P.shape[1])):
        Q = calibrator.predict_proba(y_proba=new)
        assert Q.shape == new.shape
        assert np.isfinite(Q).all()
        assert (Q >= 0).all()
        if (name, preset) != ("histogram", "paper"):
            np.testing.assert_allclose(Q.sum(axis=1), 1.0, atol=1e-9)


@every_variant
@settings(max_examples=8)
@given(problem=problems())
def test_weight_two_equals_the_row_twice(name, preset, problem):
    P, codes, weight = problem
    times = weight.astype(int)
    weighted = fitted(name, preset, P, codes, weight)
    repeated = fitted(name, preset, np.repeat(P, times, axis=0), np.repeat(codes, times))
    new = probe(P.shape[1])
    # A mixture with a map that is nearly the identity has a flat optimum.
    atol = 2e-4 if name == "ets" else 5e-5
    np.testing.assert_allclose(
        weighted.predict_proba(y_proba=new), repeated.predict_proba(y_proba=new), atol=atol
    )


@every_variant
@settings(max_examples=8)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_the_order_of_rows_does_not_matter(name, preset, problem, seed):
    P, codes, weight = problem
    order = np.random.default_rng(seed).permutation(codes.shape[0])
    new = probe(P.shape[1])
    one = fitted(name, preset, P, codes, weight).predict_proba(y_proba=new)
    other = fitted(name, preset, P[order], codes[order], weight[order]).predict_proba(y_proba=new)
    np.testing.assert_allclose(one, other, atol=5e-5)


@every_variant
@settings(max_examples=8)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_relabelling_the_classes_relabels_the_columns(name, preset, problem, seed):
    P, codes, weight = problem
    order = np.random.default_rng(seed).permutation(P.shape[1])
    place = np.argsort(order)
    new = probe(P.shape[1])
    one = fitted(name, preset, P, codes, weight).predict_proba(y_proba=new)
    other = fitted(name, preset, P[:, order], place[codes], weight)
    np.testing.assert_allclose(one[:, order], other.predict_proba(y_proba=new[:, order]), atol=5e-5)


@pytest.mark.parametrize("name", MONOTONE)
@settings(max_examples=12)
@given(problem=problems())
def test_binary_maps_never_reverse_the_ranking(name, problem):
    P, codes, weight = problem
    assume(P.shape[1] == 2)
    p = np.linspace(0, 1, 41)
    Q = fitted(name, None, P, codes, weight).predict_proba(y_proba=p)
    assert (np.diff(Q[:, 1]) >= -1e-12).all()


@every_variant
def test_a_missing_class_keeps_its_column(name, preset):
    _, P, codes = sample(K=4)
    seen = codes != 2
    calibrator = fitted(name, preset, P[seen], codes[seen])
    Q = calibrator.predict_proba(y_proba=P)
    assert Q.shape == P.shape
    if name not in ("uncalibrated", "temperature", "ets"):
        # These learn the frequencies, so a class never seen becomes improbable.
        assert Q[:, 2].mean() < P[:, 2].mean() / 2


@every_default
def test_defaults_never_say_impossible(name):
    """A calibrated zero is an infinite log loss waiting to happen."""
    if name == "uncalibrated":
        return
    P = np.array([[1.0, 0.0], [0.0, 1.0]] * 10)
    codes = np.array([0, 1] * 10)
    Q = fitted(name, None, P, codes).predict_proba(y_proba=P)
    assert Q.min() > 0.001
    assert Q[np.arange(20), codes].min() > 0.85


@every_variant
@pytest.mark.parametrize("row", [[0.5, 0.5], [1.0, 0.0], [0.7, 0.3]])
def test_constant_probabilities(name, preset, row):
    P = np.tile(row, (40, 1))
    codes = np.array([0] * 30 + [1] * 10)
    Q = fitted(name, preset, P, codes).predict_proba(y_proba=P)
    assert np.isfinite(Q).all()
    if name in ("platt", "beta", "isotonic", "histogram"):
        np.testing.assert_allclose(Q[:, 1], 0.25, atol=0.02)


@pytest.mark.parametrize("name", ["bcts", "vector"])
def test_free_biases_learn_the_frequencies_from_constant_probabilities(name):
    P = np.tile([0.5, 0.5], (400, 1))
    codes = np.array([0] * 300 + [1] * 100)
    Q = fitted(name, None, P, codes, bias_penalty=0.0).predict_proba(y_proba=P)
    np.testing.assert_allclose(Q[:, 1], 0.25, atol=0.01)


@every_default
def test_logits_and_their_softmax_agree(name):
    logits, P, codes = sample()
    from_logits = get_calibrator(name).fit(None, codes, logits=logits)
    from_proba = get_calibrator(name).fit(None, codes, y_proba=P)
    np.testing.assert_allclose(
        from_logits.predict_proba(logits=logits), from_proba.predict_proba(y_proba=P), atol=1e-6
    )


@every_default
def test_logits_that_saturate_keep_their_ranking(name):
    logits = np.column_stack([np.zeros(60), np.linspace(50, 900, 60)])
    codes = (np.arange(60) >= 30).astype(int)
    calibrator = get_calibrator(name).fit(None, codes, logits=logits)
    Q = calibrator.predict_proba(logits=logits)
    if name in ("platt", "bcts", "vector", "beta", "isotonic", "histogram"):
        # softmax(logits) is (0, 1) in every row; the logits still tell the classes apart.
        assert Q[:20, 1].mean() < 0.5 < Q[-20:, 1].mean()
    assert np.isfinite(Q).all()


@every_default
def test_a_calibrated_classifier_stays_nearly_as_it_is(name):
    _, P, codes = sample(n=20_000, temperature=1.0)
    Q = fitted(name, None, P, codes).predict_proba(y_proba=P)
    assert np.abs(Q - P).mean() < 0.02


@every_default
def test_an_overconfident_classifier_is_repaired(name):
    if name == "uncalibrated":
        return
    _, P, codes = sample(n=4000, temperature=3.0)
    _, P_new, codes_new = sample(n=4000, temperature=3.0, seed=1)
    Q = fitted(name, None, P, codes).predict_proba(y_proba=P_new)
    rows = np.arange(4000)
    assert -np.log(Q[rows, codes_new]).mean() < 0.8 * -np.log(P_new[rows, codes_new]).mean()


@every_default
def test_many_classes_and_few_items(name):
    _, P, codes = sample(n=90, K=60)
    Q = fitted(name, None, P, codes).predict_proba(y_proba=P)
    np.testing.assert_allclose(Q.sum(axis=1), 1.0)


@every_variant
def test_clone_and_parameters_survive(name, preset):
    calibrator = get_calibrator(name, preset=preset, classes=["b", "a"])
    assert clone(calibrator).get_params() == calibrator.get_params()


def test_hard_zeros_of_a_tree_do_not_decide_the_map():
    """A fully grown tree says 0 and 1 only; its calibrated confidence must be its accuracy."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = (rng.random(2000) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)
    tree = DecisionTreeClassifier(random_state=0).fit(X[:500], y[:500])
    P, codes = tree.predict_proba(X[500:]), y[500:]
    accuracy = (P.argmax(axis=1) == codes).mean()
    for name in ("platt", "temperature", "bcts", "vector", "beta", "isotonic"):
        Q = fitted(name, None, P, codes).predict_proba(y_proba=P)
        assert Q.max(axis=1).mean() == pytest.approx(accuracy, abs=0.01)


def test_zeros_of_a_small_forest_rank_below_its_smallest_vote():
    """With 10 trees a zero is 'less than a tenth', not 'impossible', and never above 0.1."""
    rng = np.random.default_rng(0)
    P1 = rng.integers(0, 11, 2000) / 10
    codes = (rng.random(2000) < 0.05 + 0.9 * P1).astype(int)
    for name in ("platt", "beta", "bcts", "vector"):
        calibrator = fitted(name, None, np.column_stack([1 - P1, P1]), codes)
        q = calibrator.predict_proba(y_proba=np.array([0.0, 0.01, 0.1, 0.5, 0.9, 1.0]))[:, 1]
        assert (np.diff(q) >= 0).all()
        assert 0.01 < q[0] < 0.12
        assert q[3] == pytest.approx(0.5, abs=0.05)


def test_a_reversed_classifier_gets_the_frequencies_unless_asked():
    P1 = np.linspace(0.05, 0.95, 200)
    codes = (np.arange(200) < 100).astype(int)
    P = np.column_stack([1 - P1, P1])
    Q = PlattScaling(prior_mass=0).fit(None, codes, y_proba=P).predict_proba(y_proba=P)
    np.testing.assert_allclose(Q, 0.5, atol=1e-6)
    free = PlattScaling(monotone=False, prior_mass=0).fit(None, codes, y_proba=P)
    assert free.slope_[0] < 0
    assert TemperatureScaling().fit(None, codes, y_proba=P).temperature_ == np.inf


def test_temperature_bounds_hold():
    P = np.array([[0.6, 0.4], [0.4, 0.6]] * 20)
    codes = np.array([0, 1] * 20)
    calibrator = get_calibrator("temperature", preset="paper").fit(None, codes, y_proba=P)
    assert calibrator.temperature_ == pytest.approx(0.05)


def test_platt_with_two_classes_is_a_plain_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    _, P, codes = sample(n=2000, K=2)
    calibrator = PlattScaling(prior_mass=0).fit(None, codes, y_proba=P)
    score = np.log(P[:, 1] / P[:, 0])[:, None]
    reference = LogisticRegression(C=1e8, tol=1e-10).fit(score, codes)
    np.testing.assert_allclose(calibrator.slope_, reference.coef_[0], rtol=0.02)
    np.testing.assert_allclose(calibrator.intercept_, reference.intercept_, atol=0.02)


def test_isotonic_rows_without_mass_fall_back_to_the_classifier():
    P = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    codes = np.array([0, 1, 2])
    calibrator = get_calibrator("isotonic", preset="paper").fit(None, codes, y_proba=P)
    calibrator.levels_ = [np.zeros_like(levels) for levels in calibrator.levels_]
    np.testing.assert_array_equal(calibrator.predict_proba(y_proba=P), P)


def test_an_optimiser_that_fails_says_so(monkeypatch):
    from hetcal.kernels.binary_maps import LogisticMap

    stuck = [LogisticMap(np.ones(1), 0.0, False)]
    monkeypatch.setattr(platt_module, "fit_one_vs_rest", lambda *args, **kwargs: stuck)
    _, P, codes = sample(K=2)
    with pytest.warns(ConvergenceWarning, match=r"PlattScaling did not converge.*isotonic"):
        PlattScaling().fit(None, codes, y_proba=P)


@pytest.mark.parametrize(
    ("calibrator", "message"),
    [
        (PlattScaling(score="logit"), "score must be one of 'log_odds', 'proba'; got 'logit'"),
        (PlattScaling(targets="hard"), "targets must be one of"),
        (PlattScaling(prior_mass=-1), "prior_mass must be a finite number >= 0; got -1"),
        (TemperatureScaling(bounds=(5, 0.05)), "0 < low <= high"),
        (TemperatureScaling(score="p"), "score must be one of"),
        (BiasCorrectedTemperatureScaling(bias_penalty="much"), "bias_penalty must be"),
        (VectorScaling(scale_penalty=np.inf), "scale_penalty must be"),
        (IsotonicCalibration(pseudo_errors=np.nan), "pseudo_errors must be"),
        (HistogramBinning(n_bins=0), "n_bins must be 'auto' or an integer >= 1; got 0"),
        (HistogramBinning(cut="width"), "cut must be one of"),
    ],
)
def test_bad_parameters_are_named(calibrator, message):
    _, P, codes = sample()
    with pytest.raises(ValueError, match=message):
        calibrator.fit(None, codes, y_proba=P)


def test_many_rows_are_what_few_of_more_weight_are():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    codes = (rng.random(1000) < p**2).astype(int)
    many = get_calibrator("temperature").fit(None, np.tile(codes, 200), y_proba=np.tile(p, 200))
    few = get_calibrator("temperature")
    with pytest.warns(WeightWarning, match="200,000 items"):
        few.fit(None, codes, y_proba=p, sample_weight=np.full(1000, 200.0))
    assert many.temperature_ == pytest.approx(few.temperature_, rel=1e-9)


def test_no_warning_on_extreme_but_valid_input():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, preset in VARIANTS:
            P = np.array([[1.0, 0.0], [1e-300, 1.0], [5e-324, 1.0], [0.5, 0.5]] * 3)
            fitted(name, preset, P, np.array([0, 1, 0, 1] * 3)).predict_proba(y_proba=P)


def test_the_beta_map_bends_at_both_ends():
    """logit q = a log p - b log(1 - p) + c, where each of a and b is recovered."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, 20_000)
    for a, b, c in ((2.0, 0.5, 0.3), (0.5, 2.0, -0.3)):
        truth = 1 / (1 + np.exp(-(a * np.log(p) - b * np.log(1 - p) + c)))
        codes = (rng.random(20_000) < truth).astype(int)
        fitted = get_calibrator("beta").fit(None, codes, y_proba=p)
        np.testing.assert_allclose(fitted.coef_, [[a, b]], atol=0.2)
        np.testing.assert_allclose(fitted.intercept_, [c], atol=0.3)


@pytest.mark.parametrize("name", ["beta", "platt"])
def test_few_items_of_a_class_lean_on_the_others(name):
    """The stronger the prior, the nearer the classes' maps."""
    rng = np.random.default_rng(0)
    P = softmax(rng.normal(size=(60, 3)), axis=1)
    codes = np.r_[rng.integers(0, 2, 57), 2, 2, 2]
    spread = []
    for prior_mass in (0.0, 1.0, 10.0, 1e6):
        fitted = get_calibrator(name).set_params(prior_mass=prior_mass)
        fitted.fit(None, codes, y_proba=P)
        spread.append(np.ptp(fitted.intercept_))
    assert spread == sorted(spread, reverse=True)
    assert spread[-1] < 1e-3 < spread[1] < 0.95 * spread[0]


def test_log_odds_are_taken_of_probabilities_and_not_of_logits():
    """The paper's score; logits are used as they are."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(80, 3)) * 2
    codes = rng.integers(0, 3, 80)
    by_score = {
        (score, kind): TemperatureScaling(score=score)
        .fit(None, codes, **{kind: Z if kind == "logits" else softmax(Z, axis=1)})
        .predict_proba(**{kind: Z if kind == "logits" else softmax(Z, axis=1)})
        for score in ("log_odds", "log_proba")
        for kind in ("logits", "y_proba")
    }
    plain = by_score["log_proba", "y_proba"]
    np.testing.assert_allclose(by_score["log_odds", "logits"], plain, atol=1e-6)
    assert not np.allclose(by_score["log_odds", "y_proba"], plain, atol=1e-3)
