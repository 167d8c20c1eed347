"""LabelPreserving: the smallest change that keeps every decision, and its price."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from hetcal import HybridCalibrator, LabelPreserving, LocallyCalibratedClassifier, get_calibrator
from hetcal.calibration.registry import list_calibrators
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.kernels.preserve import keep_top
from hetcal.metrics import brier_score
from hetcal.similarity import ForestProximity

# Labels and probabilities here are made up, also the wrong way round.
pytestmark = pytest.mark.filterwarnings("ignore::hetcal._exceptions.ColumnOrderWarning")


@given(st.integers(0, 10_000), st.integers(2, 6))
@settings(max_examples=40)
def test_keep_top_is_the_projection(seed, K):
    rng = np.random.default_rng(seed)
    Q, top = rng.dirichlet(np.ones(K), 1), rng.integers(K, size=1)
    kept = keep_top(Q, top)[0]
    above = [
        {"type": "ineq", "fun": lambda q, j=j: q[top[0]] - q[j]} for j in range(K) if j != top[0]
    ]
    whole = {"type": "eq", "fun": lambda q: q.sum() - 1}
    found = minimize(
        lambda q: ((q - Q[0]) ** 2).sum(), Q[0], constraints=[*above, whole], tol=1e-12
    )
    assert kept.argmax() == top[0]
    assert kept.sum() == pytest.approx(1)
    np.testing.assert_allclose(kept, found.x, atol=1e-5)


def test_rows_that_agree_are_untouched_to_the_bit():
    Q = np.random.default_rng(0).dirichlet(np.ones(4), 500)
    np.testing.assert_array_equal(keep_top(Q, Q.argmax(axis=1)), Q)


def test_ties_go_to_the_classifiers_choice():
    Q = np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])
    top = np.array([1, 0, 1])
    kept = keep_top(Q, top)
    np.testing.assert_array_equal(kept.argmax(axis=1), top)
    np.testing.assert_allclose(kept, 0.5)


@pytest.mark.parametrize("name", [n for n in list_calibrators() if n != "swc-hh"])
@pytest.mark.parametrize("kind", ["y_proba", "logits"])
def test_no_calibrator_changes_a_decision(name, kind):
    data = make_hidden_heterogeneity(200, n_classes=3, heterogeneity=1.0, random_state=0)
    new = data.sample(300, random_state=1)

    def output(part):
        return {kind: part.y_proba if kind == "y_proba" else np.log(part.y_proba)}

    options = {"n_estimators": 30} if name == "hybrid" else {}
    calibrator = get_calibrator(name, preserve="label", **options)
    Q = calibrator.fit(data.X, data.y, **output(data)).predict_proba(new.X, **output(new))
    np.testing.assert_array_equal(Q.argmax(axis=1), new.y_proba.argmax(axis=1))
    np.testing.assert_array_equal(
        calibrator.predict(new.X, **output(new)), data.classes[new.y_proba.argmax(axis=1)]
    )
    assert calibrator.price_error_ >= 0


def test_the_price_is_what_fresh_items_pay():
    data = make_hidden_heterogeneity(2000, heterogeneity=1.0, random_state=3)
    new = data.sample(20_000, random_state=4)
    free = get_calibrator("swc").fit(data.X, data.y, y_proba=data.y_proba)
    kept = get_calibrator("swc", preserve="label").fit(data.X, data.y, y_proba=data.y_proba)
    paid = brier_score(new.y, kept.predict_proba(new.X, y_proba=new.y_proba)) - brier_score(
        new.y, free.predict_proba(new.X, y_proba=new.y_proba)
    )
    assert kept.changed_ > 0.02
    assert kept.price_ > 2 * kept.price_error_
    assert abs(kept.price_ - paid) < 3 * kept.price_error_


def test_copies_in_one_group_do_not_make_the_price_surer():
    data = make_hidden_heterogeneity(300, heterogeneity=1.0, random_state=3)
    rows = np.tile(np.arange(300), 4)

    def price(rows, **groups):
        kept = get_calibrator("swc", preserve="label")
        return kept.fit(data.X[rows], data.y[rows], y_proba=data.y_proba[rows], **groups)

    once, copied = price(np.arange(300)), price(rows, groups=rows)
    assert copied.price_error_ > 0.9 * once.price_error_  # half of it, were copies independent


def test_price_of_a_global_map_is_cross_fitted():
    data = make_hidden_heterogeneity(400, miscalibration=1.0, random_state=0)
    kept = get_calibrator("isotonic", preserve="label")
    kept.fit(None, data.y, y_proba=data.y_proba)
    assert not hasattr(kept, "out_of_sample_proba_")
    assert np.isfinite(kept.price_)
    assert 0 <= kept.changed_ <= 1


def test_too_few_items_for_a_price():
    kept = get_calibrator("temperature", preserve="label")
    kept.fit(None, [0, 0, 1], y_proba=[[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]])
    assert kept.predict_proba(y_proba=[[0.4, 0.6]]).argmax() == 1


def test_support_and_evidence_pass_through():
    data = make_hidden_heterogeneity(300, heterogeneity=1.0, random_state=0)
    plain = get_calibrator("swc").fit(data.X, data.y, y_proba=data.y_proba)
    kept = LabelPreserving(get_calibrator("swc")).fit(data.X, data.y, y_proba=data.y_proba)
    new = {"X": data.X[:5], "y_proba": data.y_proba[:5]}
    np.testing.assert_array_equal(kept.support(**new), plain.support(**new))
    _, support = kept.predict_proba(**new, return_support=True)
    np.testing.assert_array_equal(support, plain.support(**new))
    assert not hasattr(LabelPreserving(get_calibrator("platt")), "support")
    predicted = kept.out_of_sample_proba_
    np.testing.assert_array_equal(predicted.argmax(axis=1), data.y_proba.argmax(axis=1))


@pytest.mark.parametrize(
    ("calibrator", "method"),
    [
        (HybridCalibrator(["kernel"]), "predict_interval"),
        (get_calibrator("swc", similarity=ForestProximity(50)), "predict_smoothed_interval"),
    ],
    ids=["hybrid", "swc"],
)
def test_intervals_are_about_the_truth_and_stay(calibrator, method):
    data = make_hidden_heterogeneity(200, heterogeneity=1.0, random_state=0)
    fitted = {"X": data.X, "y": data.y, "y_proba": data.y_proba}
    new = {"X": data.X[:5], "y_proba": data.y_proba[:5]}
    plain, kept = clone(calibrator).fit(**fitted), LabelPreserving(calibrator).fit(**fitted)
    np.testing.assert_array_equal(getattr(kept, method)(**new), getattr(plain, method)(**new))
    assert not hasattr(LabelPreserving(get_calibrator("platt")), method)


def test_a_calibrator_of_your_own_keeps_decisions_too():
    class ClassFrequencies(BaseEstimator):
        def fit(self, X, y, *, y_proba):
            self.frequencies_ = np.bincount(y) / len(y)
            return self

        def predict_proba(self, X, *, y_proba):
            return np.tile(self.frequencies_, (len(y_proba), 1))

    data = make_hidden_heterogeneity(200, heterogeneity=1.0, random_state=0)
    model = GaussianNB().fit(data.X[:100], data.y[:100])
    wrapped = LocallyCalibratedClassifier(
        FrozenEstimator(model), ClassFrequencies(), preserve="label"
    ).fit(data.X[100:], data.y[100:])
    np.testing.assert_array_equal(wrapped.predict(data.X), model.predict(data.X))


@pytest.mark.parametrize("calibrator", ["swc", "isotonic"])
def test_the_wrapper_keeps_the_decisions_of_the_model(calibrator):
    data = make_hidden_heterogeneity(600, heterogeneity=1.0, random_state=0)
    model = GaussianNB().fit(data.X[:200], data.y[:200])
    wrapped = LocallyCalibratedClassifier(FrozenEstimator(model), calibrator, preserve="label")
    wrapped.fit(data.X[200:], data.y[200:])
    np.testing.assert_array_equal(wrapped.predict(data.X), model.predict(data.X))
    assert np.isfinite(wrapped.calibrator_.price_)


def test_unknown_preserve_names_the_remedy():
    with pytest.raises(ValueError, match="preserve='label'"):
        get_calibrator("swc", preserve="accuracy")


def test_what_the_calibrator_cannot_do_is_told_in_words():
    keeps = get_calibrator("temperature", preserve="label")
    text = "predict_interval where its calibrator has it, and TemperatureScaling has not.*: hybrid"
    with pytest.raises(AttributeError, match=text):
        keeps.predict_interval(None, y_proba=[0.5])
    with pytest.raises(AttributeError, match="TemperatureScaling has not.*: swc, .*hybrid"):
        LocallyCalibratedClassifier(calibrator=keeps).support([[0.0]])
    assert not hasattr(keeps, "support")


def test_the_venn_abers_pair_is_that_of_the_calibrator():
    data = make_hidden_heterogeneity(80, random_state=0)
    keeps = get_calibrator("venn-abers", preserve="label").fit(None, data.y, y_proba=data.y_proba)
    for kept, plain in zip(
        keeps.predict_venn_abers_pair(y_proba=data.y_proba),
        keeps.calibrator_.predict_venn_abers_pair(y_proba=data.y_proba),
        strict=True,
    ):
        np.testing.assert_array_equal(kept, plain)
