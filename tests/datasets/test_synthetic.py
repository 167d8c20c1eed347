"""The synthetic law keeps its promises: exactly where it is exact, in the limit where it is not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from hetcal.datasets import make_hidden_heterogeneity

N_LARGE = 100_000


def dials(n_classes_max=6):
    return st.fixed_dictionaries(
        {
            "n_classes": st.integers(2, n_classes_max),
            "n_features": st.integers(5, 12),
            "heterogeneity": st.floats(0, 1),
            "miscalibration": st.floats(-0.5, 3),
            "n_noise_features": st.integers(0, 3),
            "imbalance": st.floats(0, 0.9),
            "pattern": st.sampled_from(["rules", "smooth"]),
            "random_state": st.integers(0, 1000),
        }
    )


@given(dials())
@settings(max_examples=40)
def test_every_probability_is_on_the_simplex(options):
    data = make_hidden_heterogeneity(50, **options)
    for P in (data.y_proba, data.recalibrated_proba, data.true_proba):
        assert P.shape == (50, options["n_classes"])
        assert (P >= 0).all()
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    assert data.X.shape == (50, options["n_features"] + options["n_noise_features"])
    assert len(data.feature_names) == data.X.shape[1]
    assert set(data.y) <= set(data.classes)


@given(dials())
@settings(max_examples=40)
def test_homogeneous_truth_is_a_temperature_map_of_p(options):
    data = make_hidden_heterogeneity(50, **(options | {"heterogeneity": 0.0}))
    np.testing.assert_array_equal(data.true_proba, data.recalibrated_proba)
    temperature = 1 + options["miscalibration"]
    expected = softmax(np.log(data.y_proba) / temperature, axis=1)
    np.testing.assert_allclose(data.true_proba, expected, atol=1e-9)
    assert data.true_local_gain == 0


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_with_both_dials_at_zero_p_is_the_truth_exactly(n_classes):
    data = make_hidden_heterogeneity(
        200, n_classes=n_classes, heterogeneity=0, miscalibration=0, imbalance=0.3, random_state=0
    )
    np.testing.assert_array_equal(data.true_proba, data.y_proba)
    assert data.true_global_gain == data.true_local_gain == 0


@pytest.mark.parametrize("pattern", ["rules", "smooth"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_mean_over_sub_populations_at_fixed_p_is_h(n_classes, pattern):
    # Fix the features that the black box sees, draw the others: p is one value, and the mean of
    # the truth must be h(p) whatever the value.
    data = make_hidden_heterogeneity(
        40_000,
        n_classes=n_classes,
        heterogeneity=1,
        miscalibration=1,
        pattern=pattern,
        random_state=0,
    )
    for row in range(3):
        X = data.X.copy()
        X[:, 3:] = X[row, 3:]
        truth = data.law.true_proba(X)
        h = data.law.recalibrated_proba(X[:1])[0]
        assert truth.std(axis=0).max() > 0.01
        np.testing.assert_allclose(truth.mean(axis=0), h, atol=0.01)


def test_effects_of_the_rules_cancel_exactly_by_their_shares():
    # x0 and x1 halves and quarters, x2 codes: a grid that weighs every cell as the law does.
    data = make_hidden_heterogeneity(8, n_features=4, heterogeneity=0.7, random_state=0)
    x0, x1, x2 = np.meshgrid([-0.5, 0.5], [-0.75, -0.25, 0.25, 0.75], [0, 1, 2, 3])
    grid = np.column_stack([x0.ravel(), x1.ravel(), x2.ravel(), np.full(32, 0.4)])
    truth = data.law.true_proba(grid)
    np.testing.assert_allclose(
        truth.mean(axis=0), data.law.recalibrated_proba(grid[:1])[0], atol=1e-15
    )
    assert np.bincount(data.law.group(grid)).tolist() == [8, 12, 12]


def test_rules_are_what_they_say():
    data = make_hidden_heterogeneity(500, heterogeneity=0.6, random_state=1)
    frame = data.frame().assign(x2=lambda table: table["x2"].astype(int))
    for group, rule in data.subgroups.items():
        np.testing.assert_array_equal(frame.eval(rule).to_numpy(), data.group == group)
    raised = data.true_proba[:, 1] - data.recalibrated_proba[:, 1]
    assert (raised[data.group == 1] > 0).all()
    assert (raised[data.group == 2] < 0).all()
    assert (raised[data.group == 0] == 0).all()


def test_labels_follow_the_true_probabilities():
    data = make_hidden_heterogeneity(
        N_LARGE, n_classes=4, heterogeneity=0.9, miscalibration=0.5, imbalance=0.3, random_state=3
    )
    onehot = data.y[:, None] == data.classes
    for group in (0, 1, 2):
        inside = data.group == group
        np.testing.assert_allclose(
            onehot[inside].mean(axis=0), data.true_proba[inside].mean(axis=0), atol=0.01
        )
    realised = ((data.y_proba - onehot) ** 2).sum(axis=1).mean()
    assert realised == pytest.approx(data.expected_brier(data.y_proba), abs=0.01)


@given(dials())
@settings(max_examples=20)
def test_local_gain_is_the_squared_distance_from_h_to_the_truth(options):
    data = make_hidden_heterogeneity(200, **options)
    distance = ((data.recalibrated_proba - data.true_proba) ** 2).sum(axis=1).mean()
    assert data.true_local_gain == pytest.approx(distance, abs=1e-12)


def test_global_gain_tends_to_the_squared_distance_from_p_to_h():
    data = make_hidden_heterogeneity(
        N_LARGE, n_classes=3, heterogeneity=0.8, miscalibration=1.0, random_state=0
    )
    distance = ((data.y_proba - data.recalibrated_proba) ** 2).sum(axis=1).mean()
    assert data.true_global_gain == pytest.approx(distance, abs=0.002)
    assert distance > 0.02


def test_dials_move_what_they_name_and_nothing_else():
    options = {"n_samples": 20_000, "random_state": 0}
    plain = make_hidden_heterogeneity(heterogeneity=0.2, miscalibration=0.2, **options)
    mixed = make_hidden_heterogeneity(heterogeneity=0.8, miscalibration=0.2, **options)
    loud = make_hidden_heterogeneity(heterogeneity=0.2, miscalibration=1.5, **options)
    np.testing.assert_array_equal(plain.y_proba, mixed.y_proba)
    np.testing.assert_array_equal(plain.true_proba, loud.true_proba)
    assert mixed.true_local_gain == pytest.approx(16 * plain.true_local_gain)
    assert loud.true_global_gain > 3 * plain.true_global_gain > 0
    # over-confident: further from one half than the truth
    assert (np.abs(loud.y_proba - 0.5) >= np.abs(loud.recalibrated_proba - 0.5)).all()


@pytest.mark.parametrize("n_classes", [2, 3, 4, 10])
@pytest.mark.parametrize("n_features", [5, 6, 14])
def test_classes_are_balanced_unless_tilted(n_classes, n_features):
    options = {"n_classes": n_classes, "n_features": n_features, "random_state": 0}
    even = make_hidden_heterogeneity(40_000, heterogeneity=0, **options)
    np.testing.assert_allclose(even.true_proba.mean(axis=0), 1 / n_classes, rtol=0.06)
    tilted = make_hidden_heterogeneity(40_000, heterogeneity=0, imbalance=0.5, **options)
    assert (np.diff(tilted.true_proba.mean(axis=0)) < 0).all()


def test_noise_features_carry_nothing_and_signal_features_all_matter():
    data = make_hidden_heterogeneity(300, n_noise_features=4, random_state=0)
    X = data.X.copy()
    X[:, 6:] = 99.0
    np.testing.assert_array_equal(data.law.true_proba(X), data.true_proba)
    for column in range(3, 6):
        moved = data.X.copy()
        moved[:, column] += 1
        assert np.abs(data.law.black_box_proba(moved) - data.y_proba).max() > 0.05
    for column in range(3):
        moved = data.X.copy()
        moved[:, column] = moved[::-1, column]
        np.testing.assert_array_equal(data.law.black_box_proba(moved), data.y_proba)


def test_signal_sets_the_spread_of_the_logits():
    data = make_hidden_heterogeneity(50_000, heterogeneity=0, signal=1.7, random_state=0)
    logit = np.log(data.y_proba[:, 1] / data.y_proba[:, 0])
    assert logit.std() == pytest.approx(1.7, rel=0.02)


def test_seed_decides_the_draw_and_sample_keeps_the_law():
    first = make_hidden_heterogeneity(30, classes=["no", "yes"], random_state=5)
    again = make_hidden_heterogeneity(30, classes=["no", "yes"], random_state=5)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    fresh = first.sample(30, random_state=6)
    assert fresh.law == first.law
    assert not np.array_equal(fresh.X, first.X)
    assert set(first.y) <= {"no", "yes"}
    np.testing.assert_array_equal(first.law.true_proba(first.X), first.true_proba)
    assert "SyntheticDataset" in repr(first)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, "n_samples must be at least 1; got 0"),
        ({"n_classes": 1}, "n_classes must be at least 2"),
        ({"n_features": 3}, "n_features must be at least 4"),
        ({"n_classes": 3, "n_features": 4}, "n_features must be at least 5"),
        ({"heterogeneity": 1.2}, r"heterogeneity must be in \[0, 1\]; got 1.2"),
        ({"miscalibration": -1}, "miscalibration must be above -1"),
        ({"n_noise_features": -1}, "n_noise_features must be 0 or more"),
        ({"imbalance": 1}, r"imbalance must be in \[0, 1\)"),
        ({"signal": -1}, "signal must be 0 or more"),
        ({"pattern": "stripes"}, "pattern must be one of"),
        ({"classes": ["a", "a"]}, "classes must be 2 different labels"),
    ],
)
def test_bad_dials_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_hidden_heterogeneity(**options)
