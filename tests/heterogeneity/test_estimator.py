"""HiddenHeterogeneity: values against plain computations, invariances, containers, errors."""

import warnings

import numpy as np
import pandas as pd
import pytest

from hetcal import HybridCalibrator, advise, get_calibrator, load, save
from hetcal._exceptions import HetcalWarning, WeightWarning
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.heterogeneity import HiddenHeterogeneity

COLUMNS = [
    "hh",
    "hh_raw",
    "hh_global",
    "hh_local",
    "hh_local_low",
    "standard_error",
    "p_value",
    "q_value",
    "n_neighbors",
    "status",
]


def quick(**options):
    return HiddenHeterogeneity(**({"learners": ["linear"]} | options))


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(400, heterogeneity=0.9, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return quick().fit(data.X, data.y, y_proba=data.y_proba)


def test_frame_has_the_documented_columns_and_adds_up(data, fitted):
    table = fitted.frame(data.y_proba)
    assert list(table.columns) == COLUMNS
    assert list(table.index) == list(range(400))
    known = table.dropna()
    np.testing.assert_allclose(known["hh"], known["hh_global"] + known["hh_local"])
    assert known["hh"].between(-2, 2).all()
    assert known["p_value"].between(0, 1).all()
    assert (known["q_value"] >= known["p_value"]).all()
    np.testing.assert_array_equal(fitted.score_samples(data.y_proba), table["hh"])


def test_values_do_not_depend_on_order_or_company(data, fitted):
    P = data.y_proba[:50]
    together = fitted.frame(P)
    order = np.random.default_rng(0).permutation(50)
    pd.testing.assert_frame_equal(
        fitted.frame(P[order]), together.take(order).reset_index(drop=True)
    )
    pd.testing.assert_frame_equal(fitted.frame(P[7:8]), together.iloc[7:8].reset_index(drop=True))


def test_predictions_far_from_the_net_get_their_own_ball(data, fitted):
    lonely = np.array([[1e-9, 1 - 1e-9], [0.5, 0.5]])
    lonely_first = fitted.frame(lonely)
    assert list(lonely_first.columns) == COLUMNS
    pd.testing.assert_frame_equal(
        fitted.frame(lonely[::-1]).iloc[::-1].reset_index(drop=True), lonely_first
    )


@pytest.mark.parametrize("kind", ["net", "overlap", "item"])
def test_kinds_of_neighbourhoods_agree(data, kind):
    hidden = HiddenHeterogeneity(neighborhoods=kind).fit(data.X, data.y, y_proba=data.y_proba)
    hh = hidden.score_samples(data.y_proba)
    assert np.isfinite(hh).mean() > 0.9
    assert abs(np.nanmean(hh) - data.true_local_gain) < 0.05


def test_relabelled_classes_give_the_same_values(data, fitted):
    names = np.array(["yes", "no"])  # reverses the sorted order
    other = quick().fit(data.X, names[data.y], y_proba=data.y_proba[:, ::-1])
    assert list(other.classes_) == ["no", "yes"]
    assert other.hh_mean_ == pytest.approx(fitted.hh_mean_, abs=0.03)
    assert other.hh_global_mean_ == pytest.approx(fitted.hh_global_mean_, abs=0.01)
    named = quick(classes=names).fit(data.X, names[data.y], y_proba=data.y_proba)
    assert named.hh_mean_ == fitted.hh_mean_


def test_tables_weights_and_groups(data):
    frame = data.frame()
    groups = np.arange(400) // 2
    hidden = quick().fit(frame, data.y, y_proba=data.y_proba, groups=groups)
    assert 0 <= hidden.p_value_ <= 1
    assert hidden.score_samples(data.y_proba).shape == (400,)
    weight = np.ones(400)
    weight[:100] = 0
    part = quick().fit(frame, data.y, y_proba=data.y_proba, sample_weight=weight)
    without = quick().fit(frame[100:], data.y[100:], y_proba=data.y_proba[100:])
    pd.testing.assert_frame_equal(part.cells_, without.cells_)
    double = quick().fit(frame, data.y, y_proba=data.y_proba, sample_weight=np.full(400, 2.0))
    assert double.statistic_ == pytest.approx(
        quick().fit(frame, data.y, y_proba=data.y_proba).statistic_, abs=0.2
    )


def test_missing_class_and_several_classes():
    data = make_hidden_heterogeneity(300, n_classes=4, heterogeneity=0.5, random_state=0)
    rows = data.y != 3
    hidden = quick(classes=[0, 1, 2, 3], radius="auto")
    hidden.fit(data.X[rows], data.y[rows], y_proba=data.y_proba[rows])
    assert hidden.radius_ > 0.1
    assert hidden.frame(data.y_proba)["status"].isin(["ok", "too few neighbours"]).mean() > 0.9


def test_status_says_why_there_is_no_value():
    rng = np.random.default_rng(0)
    P = np.vstack([np.tile([0.5, 0.5], (60, 1)), np.tile([0.99, 0.01], (60, 1)), [[0.05, 0.95]]])
    y = np.concatenate([rng.integers(0, 2, 60), np.zeros(60, int), [1]])
    hidden = quick().fit(rng.normal(size=(121, 2)), y, y_proba=P)
    found = hidden.frame([[0.5, 0.5], [0.99, 0.01], [0.05, 0.95], [0.2, 0.8]])
    assert found["status"].tolist() == ["ok", "one class", "too few neighbours", "no neighbours"]
    assert found["hh"].isna().tolist() == [False, False, True, True]
    assert found["n_neighbors"].tolist() == [60, 60, 1, 0]
    assert hidden.covered_ == pytest.approx(120 / 121)


def test_without_draws_there_are_values_and_no_tests(data, fitted):
    hidden = quick(n_null=0).fit(data.X, data.y, y_proba=data.y_proba)
    assert np.isnan(hidden.p_value_)
    assert hidden.regions_["p_value"].isna().all()
    assert (hidden.hh_mean_, hidden.hh_local_low_) == (fitted.hh_mean_, 0.0)


def test_means_are_those_of_the_items_and_the_bound_is_below(data, fitted):
    assert fitted.hh_mean_ == pytest.approx(fitted.hh_global_mean_ + fitted.hh_local_mean_)
    assert 0 < fitted.hh_local_low_ == fitted.test().grouping_loss_low < data.true_local_gain
    everyone = quick(radius=1.0).fit(data.X, data.y, y_proba=data.y_proba)
    one = everyone.frame([[0.5, 0.5]]).iloc[0]
    assert one["hh"] == pytest.approx(fitted.hh_mean_)
    assert one["standard_error"] == pytest.approx(fitted.standard_error_, rel=0.01)


def test_the_region_of_p_that_hides_something_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4))
    z = 1.2 * X[:, 0]
    middle = (z > 0.3) & (z < 1.0)
    q = 1 / (1 + np.exp(-z - 2.5 * X[:, 1] * middle))
    p = 1 / (1 + np.exp(-z))
    y = (rng.random(1000) < q).astype(int)
    hidden = HiddenHeterogeneity().fit(X, y, y_proba=np.column_stack([1 - p, p]))
    assert hidden.regions_["n"].tolist() == [200] * 5
    assert (hidden.regions_["q_value"] < 0.05).tolist() == [False, False, False, True, False]
    table = hidden.frame(np.column_stack([1 - p, p]))
    assert (table["q_value"][middle] < 0.05).mean() > 0.8
    assert (table.loc[table["q_value"] > 0.05, "hh_local_low"] == 0).all()


def test_errors_say_what_to_do(data):
    fit = {"X": data.X, "y": data.y, "y_proba": data.y_proba}
    for options, words in [
        ({"estimate": "loo"}, "estimate must be one of"),
        ({"radius": -1}, "radius must be in"),
        ({"neighborhoods": "grid"}, "neighborhoods must be"),
        ({"learners": ["magic"]}, "learners must be"),
        ({"n_null": -1}, "n_null must be"),
        ({"n_estimators": 0}, "n_estimators must be"),
    ]:
        with pytest.raises(ValueError, match=words):
            HiddenHeterogeneity(**options).fit(**fit)
    paper = HiddenHeterogeneity(estimate="paper").fit(**fit)
    with pytest.raises(ValueError, match="has no test"):
        paper.test()
    with pytest.raises(ValueError, match="3 columns"):
        paper.frame(np.full((2, 3), 1 / 3))


def test_the_whole_set_test_is_an_object(fitted):
    test = fitted.test()
    assert (test.statistic, test.p_value) == (fitted.statistic_, fitted.p_value_)
    assert test.n_null >= 499


def test_merged_cells_serve_every_item():
    """Many classes with sure predictions: merged cells lie far apart, and nobody is forgotten."""
    rng = np.random.default_rng(0)
    P = np.maximum(rng.dirichlet(np.full(5, 0.1), 200), 1e-12)
    P /= P.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(5, p=p) for p in P])
    hidden = HiddenHeterogeneity(
        radius="auto", neighborhoods="overlap", n_null=0, random_state=0
    ).fit(rng.normal(size=(200, 3)), y, y_proba=P)
    assert hidden.covered_ == pytest.approx(1.0)
    assert np.isfinite(hidden.hh_mean_)


def test_a_measure_that_found_nothing_to_test_can_be_saved(data, tmp_path):
    same = np.zeros_like(data.X)
    calibrator = get_calibrator("swc-hh", random_state=0)
    calibrator.fit(same, data.y, y_proba=data.y_proba)
    save(calibrator, tmp_path / "c.hetcal")
    expected = calibrator.predict_proba(same, y_proba=data.y_proba)
    loaded = load(tmp_path / "c.hetcal")
    assert (loaded.predict_proba(same, y_proba=data.y_proba) == expected).all()


def _limited(data, case):
    """Return arguments of fit of which the test has something to say, and what."""
    X, y, P, n = data.X, data.y, data.y_proba, len(data.y)
    return {
        "constant": ((np.ones_like(X), y), {"y_proba": P}, "no column of X takes two values"),
        "two groups": ((X, y), {"y_proba": P, "groups": np.arange(n) % 2}, "2 groups are too few"),
        "few groups": ((X, y), {"y_proba": P, "groups": np.arange(n) % 5}, "with 5 groups no p"),
        "few rows": ((X[:39], y[:39]), {"y_proba": P[:39]}, "39 items are too few"),
        "heavy": (
            (X, y),
            {"y_proba": P, "sample_weight": np.append(np.ones(n - 1), n)},
            "one item has 50% of all weight",
        ),
    }[case]


@pytest.mark.parametrize("case", ["constant", "two groups", "few groups", "few rows", "heavy"])
def test_what_limits_the_test_is_said_once_at_the_line_that_fits(data, case):
    given, named, note = _limited(data, case)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hidden = quick().fit(*given, **named)
    [told] = [one for one in caught if not issubclass(one.category, WeightWarning)]
    assert str(told.message).startswith(f"HiddenHeterogeneity: {note}")
    assert str(told.message).removeprefix("HiddenHeterogeneity: ") in hidden.test_.notes
    assert issubclass(told.category, HetcalWarning)
    assert told.filename == __file__


def test_who_asks_for_no_test_is_not_told_what_limits_it(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(n_null=0).fit(np.ones_like(data.X), data.y, y_proba=data.y_proba)


def test_advice_says_what_limits_the_test_in_its_own_warnings_only(data):
    P, groups = data.y_proba, np.arange(len(data.y)) % 5
    hybrid = HybridCalibrator("kernel", n_estimators=5)
    hybrid.fit(data.X, data.y, y_proba=P, groups=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = advise(data.X, data.y, y_proba=P, groups=groups, hybrid=hybrid, n_jobs=1)
    assert [warning.code for warning in found.warnings].count("few-groups") == 1
