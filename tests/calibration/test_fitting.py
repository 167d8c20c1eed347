"""Any calibrator on a checked set: what reaches it, and what it may be asked about."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge

from hetcal import (
    HybridCalibrator,
    LocallyCalibratedClassifier,
    TemperatureScaling,
    get_calibrator,
)
from hetcal.calibration import LabelPreserving
from hetcal.calibration.fitting import (
    cross_fitted,
    fitted_to,
    out_of_sample_proba,
    predicted_by,
    shared_folds,
)
from hetcal.calibration.out_of_sample_support import support_of_new_groups, without_own
from hetcal.data import CalibrationSet, Folds
from hetcal.datasets import make_hidden_heterogeneity


def items_of(n=60, **named):
    data = make_hidden_heterogeneity(n, random_state=0)
    return CalibrationSet.check(data.X, data.y, y_proba=data.y_proba, caller="test", **named)


class Remembering(BaseEstimator):
    """Says of an item whether it, or one of its group, was learned from."""

    def __init__(self, classes=None):
        self.classes = classes

    def fit(self, X, y, *, y_proba, sample_weight=None, groups=None):
        self.known_ = set(np.asarray(X)[:, 0].tolist())
        self.got_ = {"y": y, "sample_weight": sample_weight, "groups": groups}
        return self

    def predict_proba(self, X, *, y_proba):
        known = np.array([x in self.known_ for x in np.asarray(X)[:, 0].tolist()], dtype=float)
        return np.column_stack([1 - known, known])


class Plain(Remembering):
    """Takes neither weights nor groups."""

    def fit(self, X, y, *, y_proba):
        return super().fit(X, y, y_proba=y_proba)


def test_a_calibrator_of_a_user_gets_what_its_fit_takes():
    weight, groups = np.linspace(1, 2, 60), np.arange(60) // 3
    data = make_hidden_heterogeneity(60, random_state=0)
    items = CalibrationSet.check(
        data.X,
        np.array(["a", "b"])[data.y],
        y_proba=data.y_proba[:, ::-1],
        classes=["b", "a"],
        sample_weight=weight,
        groups=groups,
        caller="test",
    )
    fitted = fitted_to(Remembering(), items)
    np.testing.assert_array_equal(fitted.got_["y"], items.labels)
    np.testing.assert_array_equal(fitted.got_["sample_weight"], weight)
    np.testing.assert_array_equal(fitted.got_["groups"], items.groups)
    assert list(fitted.classes) == ["b", "a"]
    assert fitted_to(Plain(), items).got_["sample_weight"] is None


def test_a_fit_that_a_subclass_changed_is_the_one_that_counts():
    class Careful(TemperatureScaling):
        def fit(self, X, y, **named):
            self.was_here_ = True
            return super().fit(X, y, **named)

    assert fitted_to(Careful(), items_of()).was_here_


def test_cross_fitted_predictions_are_those_of_a_loop():
    items = items_of()
    folds = shared_folds(items, 0)
    expected = np.empty((60, 2))
    for train, test in folds:
        fitted = get_calibrator("platt").fit(None, items.labels[train], y_proba=items.proba[train])
        expected[test] = fitted.predict_proba(y_proba=items.proba[test])
    found = cross_fitted(get_calibrator("platt"), items, folds)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    fitted = fitted_to(get_calibrator("platt"), items)
    np.testing.assert_array_equal(out_of_sample_proba(fitted, items), found)


def test_cross_fitting_keeps_groups_whole():
    data = make_hidden_heterogeneity(20, random_state=0)
    rows = np.repeat(np.arange(20), 3)
    items = CalibrationSet.check(
        data.X[rows], data.y[rows], y_proba=data.y_proba[rows], groups=rows, caller="test"
    )
    assert (cross_fitted(Remembering(), items, shared_folds(items, 0))[:, 1] == 0).all()


def test_out_of_sample_predictions_are_never_of_items_learned_from():
    items = items_of()
    assert (out_of_sample_proba(fitted_to(Remembering(), items), items)[:, 1] == 0).all()
    own = fitted_to(get_calibrator("swc"), items)
    np.testing.assert_array_equal(out_of_sample_proba(own, items), own.out_of_sample_proba_)


def test_a_class_of_weight_zero_is_no_class():
    codes, fold = np.array([0, 1, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 1])
    weight = np.array([1.0, 0, 1, 1, 1, 1])  # the first fold holds nothing but zeros that count
    items = CalibrationSet.check(
        None, codes, y_proba=np.full((6, 2), 0.5), sample_weight=weight, caller="test"
    )
    found = cross_fitted(TemperatureScaling(), items, Folds(fold))
    assert np.isnan(found[3:]).all()
    assert np.isfinite(found[:3]).all()


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_support_grows_as_fast_as_it_was_seen_to(power):
    """Support of n items that grows as a power of n, and twice as fast where it is high."""
    groups = np.arange(1000)
    base = np.where(groups < 500, 1.0, 10.0) + groups / 1000
    powers = np.where(groups < 500, power / 2, power)

    def support(folds):
        share = np.empty(1000)
        for train, test in folds:
            share[test] = len(train) / 1000
        return base * share**powers, share

    found = support_of_new_groups(support, groups)
    away = np.abs(groups - 500) > 100  # between low and high there is a bend
    np.testing.assert_allclose(found[away], base[away], rtol=0.01)


def test_support_without_a_group_is_scaled_by_the_weight_that_was_left():
    weight = np.where(np.arange(6) < 2, 2.0, 1.0)
    groups = np.array([0, 1, 0, 2, 2, 3])
    np.testing.assert_allclose(
        without_own(np.ones(6), weight, groups), 8 / np.array([5.0, 6.0, 5.0, 6.0, 6.0, 7.0])
    )
    np.testing.assert_allclose(without_own(np.ones(6), None), 6 / 5)


class HalfWay(BaseEstimator):
    """A calibrator that knows nothing of hetcal: no base class, no parameter ``classes``."""

    def fit(self, X, y, *, y_proba):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.frequencies_ = counts / counts.sum()
        return self

    def predict_proba(self, X, *, y_proba):
        return (np.asarray(y_proba) + self.frequencies_) / 2


def test_a_calibrator_of_ones_own_works_in_the_wrapper_and_in_the_hybrid():
    data = make_hidden_heterogeneity(120, random_state=0)
    model = FrozenEstimator(LogisticRegression().fit(data.X, data.y))
    own = HalfWay().fit(data.X, data.y, y_proba=None)
    expected = own.predict_proba(None, y_proba=model.predict_proba(data.X))
    wrapped = LocallyCalibratedClassifier(model, HalfWay()).fit(data.X, data.y)
    np.testing.assert_allclose(wrapped.predict_proba(data.X), expected)
    hybrid = HybridCalibrator([HalfWay()], n_estimators=5)
    hybrid.fit(data.X, data.y, y_proba=data.y_proba)
    assert any("HalfWay" in name or "halfway" in name for name in hybrid.experts_.index)


@pytest.mark.parametrize(
    ("theirs", "ours"), [("sigmoid", "platt"), ("temp-scaling", "temperature")]
)
def test_names_of_other_libraries_are_understood(theirs, ours):
    with pytest.raises(ValueError, match=f"Did you mean {ours!r}"):
        get_calibrator(theirs)


def test_a_regressor_is_refused_by_name():
    with pytest.raises(TypeError, match="Ridge is a regressor.*classifier"):
        LocallyCalibratedClassifier(Ridge(), "platt").fit(np.eye(6), list("ababab"))


def test_prefit_is_called_frozen():
    classifier = LocallyCalibratedClassifier(LogisticRegression(), "platt", cv="prefit")
    with pytest.raises(ValueError, match=r"cv='prefit'.*FrozenEstimator\(model\)"):
        classifier.fit([[0.0], [1.0]], [0, 1])


def test_the_hybrid_names_its_columns():
    data = make_hidden_heterogeneity(100, random_state=0)
    hybrid = HybridCalibrator(["kernel"], n_estimators=5)
    hybrid.fit(data.frame(), data.y, y_proba=data.y_proba)
    table = data.frame()[data.frame().columns[::-1]]
    with pytest.raises(ValueError, match=r"X\[list\(calibrator.feature_names_in_\)\]"):
        hybrid.predict_proba(table, y_proba=data.y_proba)
    hybrid.predict_proba(table[list(hybrid.feature_names_in_)], y_proba=data.y_proba)
    hybrid.fit(data.X, data.y, y_proba=data.y_proba)
    assert not hasattr(hybrid, "feature_names_in_")


class Wrong(BaseEstimator):
    """Returns what is no probability of each class, in one way or another."""

    def __init__(self, how="sum"):
        self.how = how

    def fit(self, X, y, *, y_proba=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X, *, y_proba=None):
        P = np.full((len(X), 2), 0.5) if y_proba is None else np.asarray(y_proba)
        away = np.array([-1.0, 1.0])
        wrong = {"sum": 1.3 * P, "negative": P + away, "NaN": P * np.nan, "column": P[:, 1]}
        return wrong[self.how]


class WrongModel(Wrong):
    """The same as a classifier, which does not ask for probabilities."""

    def fit(self, X, y):
        return super().fit(X, y)


WRONG = {
    "sum": r"Wrong\w*\.predict_proba gave \[.*\] \(sum 1\.3\) in row 0.*dividing",
    "negative": r"Wrong\w*\.predict_proba gave \[-.*in \[0, 1\]",
    "NaN": r"Wrong\w*\.predict_proba gave \[nan, nan\].*must be finite",
    "column": r"Wrong\w*\.predict_proba gave an array of shape \(\d+,\) for \d+ items and 2",
}


@pytest.mark.parametrize(("how", "error"), WRONG.items())
def test_what_is_no_probability_is_not_handed_on(how, error):
    data, items = make_hidden_heterogeneity(60, random_state=0), items_of()
    model = FrozenEstimator(LogisticRegression().fit(data.X, data.y))
    with pytest.raises(ValueError, match=error):
        cross_fitted(Wrong(how), items, shared_folds(items, 0))
    with pytest.raises(ValueError, match=error):
        LabelPreserving(Wrong(how)).fit(data.X, data.y, y_proba=data.y_proba)
    with pytest.raises(ValueError, match=error):
        LocallyCalibratedClassifier(model, Wrong(how)).fit(data.X, data.y).predict_proba(data.X)
    for expert in (Wrong(how), WrongModel(how)):
        hybrid = HybridCalibrator(["temperature", expert], n_estimators=5)
        with pytest.raises(ValueError, match=error):
            hybrid.fit(data.X, data.y, y_proba=data.y_proba)


def test_out_of_sample_predictions_of_ones_own_are_checked():
    class Own(Wrong):
        @property
        def out_of_sample_proba_(self):
            return np.full((60, 2), 0.4)

    items = items_of()
    with pytest.raises(ValueError, match=r"Own\.predict_proba gave \[0\.4, 0\.4\] \(sum 0\.8\)"):
        out_of_sample_proba(fitted_to(Own(), items), items)
    hybrid = HybridCalibrator(["temperature", Own()], n_estimators=5)
    with pytest.raises(ValueError, match=r"Own\.predict_proba gave \[0\.4, 0\.4\]"):
        hybrid.fit_set(items)


def test_preserved_predictions_of_new_items_are_checked():
    class Late(Wrong):
        """Right out of sample, wrong of new items."""

        @property
        def out_of_sample_proba_(self):
            return np.full((60, 2), 0.5)

    data = make_hidden_heterogeneity(60, random_state=0)
    fitted = LabelPreserving(Late()).fit(data.X, data.y, y_proba=data.y_proba)
    with pytest.raises(ValueError, match=r"Late\.predict_proba gave .* \(sum 1\.3\)"):
        fitted.predict_proba(data.X, y_proba=data.y_proba)


def test_what_is_off_by_rounding_is_set_right():
    class Rounded(TemperatureScaling):
        def predict_proba(self, X=None, *, y_proba=None, logits=None):
            Q = super().predict_proba(X, y_proba=y_proba, logits=logits).round(3)
            return Q + np.array([-1e-9, 1e-3])

    items = items_of()
    Q = predicted_by(fitted_to(Rounded(), items), items)
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    assert Q.min() >= 0
