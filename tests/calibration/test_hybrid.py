"""The hybrid: without leaks, never far from the global maps, better where it can be."""

import numpy as np
import pytest

import hetcal
from hetcal import HybridCalibrator
from hetcal._exceptions import HetcalWarning
from hetcal.data import Folds
from hetcal.datasets import make_hidden_heterogeneity

pytestmark = pytest.mark.filterwarnings("ignore:The calibration set has become a training set")


def brier_per_item(Q, data):
    return ((Q - (np.asarray(data.y)[:, None] == data.classes)) ** 2).sum(axis=1)


# Boosting takes half of the time of a small fit; the tests of leaks ask it, the others need not.
QUICK = ["proximity", "forests", "neighbours", "kernel"]


def fitted(data, experts=QUICK, **params):
    hybrid = HybridCalibrator(experts, n_estimators=60, **params)
    return hybrid.fit(data.X, data.y, y_proba=data.y_proba)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_rows_are_probabilities_and_both_calls_agree(n_classes):
    data = make_hidden_heterogeneity(150, n_classes=n_classes, heterogeneity=0.8, random_state=0)
    hybrid, new = fitted(data), data.sample(50, random_state=1)
    Q, support = hybrid.predict_proba(new.X, y_proba=new.y_proba, return_support=True)
    np.testing.assert_allclose(Q.sum(axis=1), 1, atol=1e-12)
    assert Q.shape == (50, n_classes)
    assert (Q > 0).all()
    np.testing.assert_allclose(support, hybrid.support(new.X, y_proba=new.y_proba))
    assert ((support >= 0) & (support <= 150)).all()
    np.testing.assert_allclose(hybrid.experts_["weight"].sum(), 1)


def test_shuffled_labels_give_local_experts_no_weight():
    # Labels drawn without regard to x: whatever a local expert finds is noise. A gain of one
    # standard error is believed, which noise makes in a sixth of all draws.
    local = []
    for seed in range(6):
        data = make_hidden_heterogeneity(200, heterogeneity=0.9, random_state=seed)
        y = np.random.default_rng(seed).permutation(data.y)
        hybrid = HybridCalibrator(n_estimators=30).fit(data.X, y, y_proba=data.y_proba)
        table = hybrid.experts_
        is_local = ~table.index.isin(["base", "global"])
        local.append(table.loc[is_local, "weight"].sum())
    assert np.mean(local) < 0.2


def test_out_of_sample_brier_equals_brier_on_fresh_items():
    gap, error = [], []
    for seed in range(3):
        data = make_hidden_heterogeneity(
            400, heterogeneity=0.8, miscalibration=0.5, random_state=seed
        )
        hybrid, new = fitted(data, "auto"), data.sample(2000, random_state=100 + seed)
        own = brier_per_item(hybrid.out_of_sample_proba_, data)
        fresh = brier_per_item(hybrid.predict_proba(new.X, y_proba=new.y_proba), new)
        gap.append(own.mean() - fresh.mean())
        error.append(np.sqrt(own.var() / 400 + fresh.var() / 2000))
    assert abs(np.mean(gap)) < 2 * np.sqrt(np.mean(np.square(error)) / len(error))


def test_gains_where_there_is_something_to_gain_and_keeps_still_where_not():
    gains = {}
    for heterogeneity in (0.0, 1.0):
        data = make_hidden_heterogeneity(600, heterogeneity=heterogeneity, random_state=0)
        hybrid, new = fitted(data), data.sample(1000, random_state=1)
        Q = hybrid.predict_proba(new.X, y_proba=new.y_proba)
        gains[heterogeneity] = new.expected_brier(new.recalibrated_proba) - new.expected_brier(Q)
    assert gains[1.0] > 0.03
    assert gains[0.0] > -0.005


def test_groups_keep_related_rows_apart():
    # Each row stands five times with one random label: neighbours give it away, groups must not.
    rng = np.random.default_rng(0)
    base = rng.normal(size=(60, 3))
    X, groups = np.repeat(base, 5, axis=0), np.repeat(np.arange(60), 5)
    y = np.repeat(rng.integers(0, 2, 60), 5)
    P = np.full((300, 2), 0.5)
    grouped = HybridCalibrator(QUICK, n_estimators=30).fit(X, y, y_proba=P, groups=groups)
    assert ((grouped.out_of_sample_proba_ - np.eye(2)[y]) ** 2).sum(axis=1).mean() > 0.45
    leaking = HybridCalibrator(QUICK, n_estimators=30).fit(X, y, y_proba=P)
    assert ((leaking.out_of_sample_proba_ - np.eye(2)[y]) ** 2).sum(axis=1).mean() < 0.2


def test_says_when_the_calibration_set_has_become_a_training_set():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    hybrid = HybridCalibrator(["proximity", "kernel"], n_estimators=30)
    with pytest.warns(HetcalWarning, match="retraining"):
        hybrid.fit(X, y, y_proba=rng.random(300))
    assert hybrid.reliance_on_model_ < 0.01


def test_a_cautious_hybrid_is_no_training_set():
    """It uses p alone, whatever its items could do without; warnings are errors here."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0).astype(int)
    p = np.where(y == 1, 0.7, 0.3) + rng.normal(0, 0.15, 200).clip(-0.25, 0.25)
    hybrid = HybridCalibrator("kernel", n_estimators=10, caution=np.inf).fit(X, y, y_proba=p)
    assert hybrid.reliance_on_model_ == 1.0


def test_reliance_is_unknown_where_neither_model_nor_features_know_anything(tmp_path):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    hybrid = HybridCalibrator("kernel", n_estimators=10).fit(X, y, y_proba=np.full(200, 0.5))
    assert np.isnan(hybrid.reliance_on_model_)
    hetcal.save(hybrid, tmp_path / "noise.hetcal")
    assert np.isnan(hetcal.load(tmp_path / "noise.hetcal").reliance_on_model_)


def test_relies_on_a_model_that_knows_what_the_features_do_not_tell():
    data = make_hidden_heterogeneity(500, heterogeneity=0.0, random_state=0)
    X = np.random.default_rng(0).normal(size=(500, 3))
    hybrid = HybridCalibrator(QUICK, n_estimators=30).fit(X, data.y, y_proba=data.y_proba)
    assert hybrid.reliance_on_model_ > 0.8


def test_missing_class_keeps_its_column_and_evidence_names_voters():
    data = make_hidden_heterogeneity(300, n_classes=3, random_state=0)
    seen = np.asarray(data.y) != 1
    hybrid = HybridCalibrator(QUICK, n_estimators=30, classes=data.classes).fit(
        data.X[seen], data.y[seen], y_proba=data.y_proba[seen]
    )
    Q = hybrid.predict_proba(data.X[:5], y_proba=data.y_proba[:5])
    assert Q.shape == (5, 3)
    table = hybrid.evidence(data.X[:2], y_proba=data.y_proba[:2], top=3)
    assert table["item"].tolist() == [0, 0, 0, 1, 1, 1]
    assert (np.asarray(data.y[seen])[table["calibration_item"]] == table["label"]).all()


def test_same_result_for_any_number_of_threads():
    data = make_hidden_heterogeneity(300, random_state=0)
    one, two = fitted(data, n_jobs=1), fitted(data, n_jobs=2)
    np.testing.assert_array_equal(
        one.predict_proba(data.X, y_proba=data.y_proba),
        two.predict_proba(data.X, y_proba=data.y_proba),
    )


def test_relative_weights_count_as_items():
    data = make_hidden_heterogeneity(300, miscalibration=1.0, random_state=0)
    plain = fitted(data, experts=())
    relative = HybridCalibrator((), n_estimators=60).fit(
        data.X, data.y, y_proba=data.y_proba, sample_weight=np.full(300, 1 / 300)
    )
    np.testing.assert_allclose(
        relative.predict_proba(data.X, y_proba=data.y_proba),
        plain.predict_proba(data.X, y_proba=data.y_proba),
        atol=1e-9,
    )


def test_a_column_without_values_does_no_harm():
    data = make_hidden_heterogeneity(200, random_state=0)
    X = np.hstack([data.X, np.full((200, 1), np.nan)])
    hybrid = HybridCalibrator(n_estimators=10).fit(X, data.y, y_proba=data.y_proba)
    assert np.isfinite(hybrid.predict_proba(X, y_proba=data.y_proba)).all()


def test_folds_hold_whole_groups():
    groups = np.repeat(np.arange(21), 2)
    folds = Folds.make(42, 5, seed=0, groups=groups).number
    assert all(len(set(folds[groups == g])) == 1 for g in range(21))


def test_two_groups_suffice():
    data = make_hidden_heterogeneity(80, random_state=0)
    hybrid = HybridCalibrator(QUICK, n_estimators=10)
    hybrid.fit(data.X, data.y, y_proba=data.y_proba, groups=np.arange(80) % 2)
    assert np.isfinite(hybrid.out_of_sample_proba_).all()


def test_a_forest_needs_trees():
    data = make_hidden_heterogeneity(40, random_state=0)
    with pytest.raises(ValueError, match="n_estimators must be a positive integer; got 0"):
        HybridCalibrator(n_estimators=0).fit(data.X, data.y, y_proba=data.y_proba)


@pytest.mark.parametrize("grouped", [False, True])
def test_weight_zero_means_not_there(grouped):
    data = make_hidden_heterogeneity(240, heterogeneity=0.8, random_state=0)
    new = data.sample(40, random_state=1)
    there = np.random.default_rng(0).random(240) < 0.6
    groups = np.arange(240) // 4
    options = {"groups": groups} if grouped else {}
    part = {"groups": groups[there]} if grouped else {}
    weighted = HybridCalibrator(QUICK, n_estimators=20).fit(
        data.X, data.y, y_proba=data.y_proba, sample_weight=there.astype(float), **options
    )
    dropped = HybridCalibrator(QUICK, n_estimators=20).fit(
        data.X[there], data.y[there], y_proba=data.y_proba[there], **part
    )
    ask = {"X": new.X, "y_proba": new.y_proba}
    np.testing.assert_allclose(weighted.predict_proba(**ask), dropped.predict_proba(**ask))
    np.testing.assert_allclose(weighted.out_of_sample_proba_[there], dropped.out_of_sample_proba_)
    rest = {"X": data.X[~there], "y_proba": data.y_proba[~there]}
    np.testing.assert_allclose(weighted.out_of_sample_proba_[~there], dropped.predict_proba(**rest))
    named = weighted.evidence(**ask)["calibration_item"].to_numpy()
    assert there[named].all()
    np.testing.assert_array_equal(data.y[named], weighted.evidence(**ask)["label"].to_numpy())
