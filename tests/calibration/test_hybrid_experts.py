"""The hybrid's experts: out of sample, of any kind, and asked only where they have a weight."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from hetcal import HybridCalibrator, VectorScaling, get_calibrator
from hetcal.calibration.hybrid import kernel_machine, library
from hetcal.calibration.hybrid.families import GlobalFamily
from hetcal.calibration.hybrid.forests import ForestVoteFamily, ProximityFamily
from hetcal.calibration.hybrid.kernel_machine import KernelFamily
from hetcal.calibration.hybrid.library import Library
from hetcal.calibration.hybrid.nearest import NeighbourFamily
from hetcal.calibration.hybrid.retrained import (
    BoostingFamily,
    CalibratorFamily,
    ModelFamily,
    WideBoostingFamily,
)
from hetcal.calibration.hybrid.space import LogSpace
from hetcal.calibration.uncalibrated import Uncalibrated
from hetcal.data import CalibrationSet, Folds, Scores
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.kernels.forest import out_of_bag_leaves
from hetcal.metrics.scores import brier_losses

pytestmark = pytest.mark.filterwarnings("ignore:The calibration set has become a training set")


def items_of(n=120, n_classes=3, seed=0, X=None, **named):
    data = make_hidden_heterogeneity(n, n_classes=n_classes, random_state=seed)
    return CalibrationSet.check(
        np.asarray(data.X, dtype=float) if X is None else X,
        np.searchsorted(data.classes, data.y),
        y_proba=data.y_proba,
        caller="test",
        **named,
    )


def folds_of(items):
    return Folds.make(items.n_items, 5, seed=0, groups=items.groups)


def with_label(items, row, label):
    codes = items.codes.copy()
    codes[row] = label
    return items.with_codes(codes)


@pytest.mark.parametrize(
    "family",
    [
        KernelFamily(with_model=False),
        NeighbourFamily(((5, 3.0), (10, 1.0)), logs=False),
        BoostingFamily("boosting-small"),
        WideBoostingFamily(),
        WideBoostingFamily(with_model=False),
        ModelFamily("model", LogisticRegression()),
        CalibratorFamily("swc", get_calibrator("swc")),
        CalibratorFamily("vector", VectorScaling()),
        GlobalFamily("uncalibrated", Uncalibrated()),
        ProximityFamily(n_estimators=10),
        ProximityFamily(n_estimators=10, with_model=False),
        ForestVoteFamily(n_estimators=10),
        ForestVoteFamily(5, n_estimators=10, with_model=False),
    ],
    ids=lambda family: family.names[0],
)
def test_an_items_own_label_does_not_reach_its_out_of_sample_prediction(family, monkeypatch):
    # Width, ridge and frequencies of the kernel are common to all; one label moves them a little.
    monkeypatch.setattr(kernel_machine, "_WIDTHS", (1.0,))
    monkeypatch.setattr(kernel_machine, "_RIDGES", (1.0,))
    items = items_of()
    before = family.fit(items).out_of_sample(items, folds_of(items))
    changed = with_label(items, 7, (items.codes[7] + 1) % 3)
    after = family.fit(changed).out_of_sample(changed, folds_of(items))
    assert len(before) == len(family.names)
    slack = 0.02 if isinstance(family, KernelFamily) else 1e-12
    for one, two in zip(before, after, strict=True):
        np.testing.assert_allclose(one[7], two[7], atol=slack)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_leaves_items_and_groups_out_exactly(weighted, grouped, monkeypatch):
    monkeypatch.setattr(kernel_machine, "_WIDTHS", (1.0,))
    monkeypatch.setattr(kernel_machine, "_RIDGES", (0.3,))
    monkeypatch.setattr(kernel_machine, "_JITTER", 1e-10)
    monkeypatch.setattr(kernel_machine, "_LARGEST_SHARE", 1.0)
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, 40).astype(float) if weighted else np.ones(40)
    groups = rng.integers(0, 15, 40) if grouped else None
    items = items_of(40, 2, sample_weight=weight, groups=groups)
    family = KernelFamily(with_model=False).fit(items)
    Z = family.space_.transform(items.features(), items.scores)
    K = np.exp(-family.width_ * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    start = family.frequencies_
    for i in range(5):
        rest = np.arange(40) != i if groups is None else groups != groups[i]
        gram = K[np.ix_(rest, rest)] + 0.3 * np.diag(1 / weight[rest])
        value = start + K[i, rest] @ np.linalg.solve(gram, items.onehot[rest] - start)
        naive = np.maximum(value, 1e-4) ** 2
        np.testing.assert_allclose(family.left_out_[i], naive / naive.sum(), atol=1e-5)


def test_kernel_predicts_blockwise(monkeypatch):
    items = items_of(100)
    family = KernelFamily().fit(items)
    whole = family.predict(items.features(), items.scores)[0]
    monkeypatch.setattr(kernel_machine, "_BLOCK_ROWS", 7)
    np.testing.assert_allclose(family.predict(items.features(), items.scores)[0], whole)


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_kernel_chooses_its_ridge_among_as_many_items_as_it_fits(seed, monkeypatch):
    """Among few items no two are alike, and they cannot tell how far to believe one that is."""
    monkeypatch.setattr(kernel_machine, "_TUNING_ITEMS", 60)
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(200, 10)), 3, axis=0) + 0.05 * rng.normal(size=(600, 10))
    y = rng.integers(0, 2, 600)  # nothing to learn: a Brier score of 0.5
    items = CalibrationSet.check(X, y, y_proba=np.full(600, 0.5), caller="test")
    family = KernelFamily(with_model=False).fit(items)
    assert brier_losses(family.left_out_, items.codes).mean() < 0.55


def test_forests_that_vote_themselves_have_half_as_many_trees():
    hybrid = HybridCalibrator(["proximity", "forests"], n_estimators=7).fit_set(items_of(60))
    trees = {type(f): f.forest_.n_trees for f in hybrid.families_ if hasattr(f, "forest_")}
    assert trees == {ProximityFamily: 7, ForestVoteFamily: 4}


def test_kernel_chooses_its_ridge_by_whole_groups():
    groups = np.array([3, 0, 0, 1, 3, 2, 1])
    order = np.array([5, 4, 1, 0, 2, 3, 6])
    rows = kernel_machine._with_their_groups
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_machine, "_TUNING_ITEMS", 3)
        assert rows(order, groups).tolist() == [0, 4, 5]
        assert rows(order, None).tolist() == [5, 4, 1]


def test_kernel_with_fewer_landmarks_than_items_still_learns(monkeypatch):
    monkeypatch.setattr(kernel_machine, "_LANDMARKS", 60)
    monkeypatch.setattr(kernel_machine, "_MOST_WORK", 60)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    codes = (X[:, 0] * X[:, 1] > 0).astype(np.int64)
    items = CalibrationSet.check(X, codes, y_proba=np.full((400, 2), 0.5), caller="test")
    family = KernelFamily().fit(items)
    predicted = family.out_of_sample(items, folds_of(items))[0]
    assert (predicted.argmax(axis=1) == codes).mean() > 0.85
    fresh = rng.normal(size=(2000, 2))
    said = family.predict(fresh, Scores.from_proba(np.full((2000, 2), 0.5), 1e-9))[0]
    right = said.argmax(axis=1) == (fresh[:, 0] * fresh[:, 1] > 0)
    assert abs(right.mean() - (predicted.argmax(axis=1) == codes).mean()) < 0.05


def spirals(n, turns=1.5, *, mixed=0.0):
    """Two classes that wind around each other: the more often, the more landmarks it takes."""
    rng = np.random.default_rng(0)
    radius = np.sqrt(rng.uniform(0.02, 1, n))
    codes = rng.integers(0, 2, n)
    angle = 2 * np.pi * turns * radius + np.pi * codes
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    codes = np.where(rng.random(n) < mixed, 1 - codes, codes)
    return CalibrationSet.check(X, codes, y_proba=np.full((n, 2), 0.5), caller="test")


@pytest.mark.parametrize(("turns", "mixed", "n_landmarks"), [(0.1, 0.4, 40), (1.5, 0.0, 89)])
def test_kernel_takes_more_landmarks_where_half_of_them_lose(
    turns, mixed, n_landmarks, monkeypatch
):
    """The most are as many as make the work that of 200 items which are all landmarks."""
    monkeypatch.setattr(kernel_machine, "_LANDMARKS", 40)
    monkeypatch.setattr(kernel_machine, "_MOST_WORK", 200)
    items = spirals(1000, turns, mixed=mixed)
    family = KernelFamily(with_model=False).fit(items)
    assert len(family.landmarks_) == n_landmarks


def test_kernel_with_all_items_as_landmarks_is_the_one_that_any_landmarks_give():
    items = spirals(300)
    Z = LogSpace(with_model=False, metric=True).fit(items).transform(items.X, items.scores)
    gram = kernel_machine._gaussian(Z, Z, 3.0)
    gram[np.diag_indices_from(gram)] += kernel_machine._JITTER
    root = np.linalg.cholesky(gram)
    solved = kernel_machine._features(np.vstack([Z, Z[:1]]), Z, root, 3.0)[:, :-1]
    known = kernel_machine._features(Z, Z, root, 3.0)
    np.testing.assert_allclose(known.T @ known, solved.T @ solved, atol=1e-5)


def fitted(data, experts, **fit_params):
    hybrid = HybridCalibrator(experts, n_estimators=20)
    return hybrid.fit(data.X, data.y, y_proba=data.y_proba, **fit_params)


def test_experts_by_name_calibrator_and_classifier():
    data = make_hidden_heterogeneity(200, n_classes=3, random_state=0)
    experts = [
        "neighbours",
        "vector",
        get_calibrator("sbaw"),
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(10, random_state=0),
    ]
    hybrid = fitted(data, experts)
    names = set(hybrid.experts_.index)
    assert {"5-nearest-log", "5-nearest-p", "10-nearest-p", "vector", "3:Pipeline"} <= names
    assert "4:RandomForestClassifier" in names
    assert not {"boosting", "kernel", "proximity^8-x"} & names
    assert hybrid.predict_proba(data.X[:5], y_proba=data.y_proba[:5]).shape == (5, 3)
    # Support and evidence need a similarity, whoever is asked.
    assert (hybrid.support(data.X[:5], y_proba=data.y_proba[:5]) > 0).all()


def test_a_single_expert_needs_no_list():
    data = make_hidden_heterogeneity(100, random_state=0)
    assert "0:LogisticRegression" in fitted(data, LogisticRegression()).experts_.index
    assert "kernel" in fitted(data, "kernel").experts_.index


@pytest.mark.parametrize("wrong", ["boostign", LinearSVC(), RandomForestClassifier, 3])
def test_what_is_no_expert_is_named(wrong):
    data = make_hidden_heterogeneity(100, random_state=0)
    with pytest.raises(ValueError, match=r"experts\[1\] is .* Pass 'auto', or a sequence of"):
        fitted(data, ["kernel", wrong])


@pytest.mark.parametrize("wrong", [None, 3])
def test_what_is_no_sequence_of_experts_is_named(wrong):
    data = make_hidden_heterogeneity(100, random_state=0)
    with pytest.raises(ValueError, match=r"experts\[0\] is .* Pass 'auto', or a sequence of"):
        fitted(data, wrong)


def test_a_users_classifier_respects_groups():
    # Each row stands ten times with one random label: a nearest neighbour gives it away.
    rng = np.random.default_rng(0)
    X, groups = np.repeat(rng.normal(size=(60, 3)), 10, axis=0), np.repeat(np.arange(60), 10)
    y, P = np.repeat(rng.integers(0, 2, 60), 10), np.full((600, 2), 0.5)
    brier = {}
    for key, known in {"groups": groups, "none": None}.items():
        hybrid = HybridCalibrator(RandomForestClassifier(10, random_state=0), n_estimators=10)
        hybrid.fit(X, y, y_proba=P, groups=known)
        brier[key] = hybrid.experts_.loc["0:RandomForestClassifier", "brier"]
    assert brier["groups"] > 0.45
    assert brier["none"] < 0.1


def test_logits_reach_calibrators_as_logits():
    data = make_hidden_heterogeneity(200, n_classes=3, random_state=0)
    logits = np.log(np.maximum(data.y_proba, 1e-300)) + 5.0
    one = HybridCalibrator(["vector"], n_estimators=10).fit(data.X, data.y, logits=logits)
    two = HybridCalibrator(["vector"], n_estimators=10).fit(data.X, data.y, y_proba=data.y_proba)
    np.testing.assert_allclose(
        one.predict_proba(data.X, logits=logits),
        two.predict_proba(data.X, y_proba=data.y_proba),
        atol=1e-6,
    )


def test_who_has_no_say_is_not_asked(monkeypatch):
    data = make_hidden_heterogeneity(150, random_state=0)
    hybrid = fitted(data, "kernel")
    hybrid.share_ = 0.0
    monkeypatch.setattr(KernelFamily, "predict", lambda *_: pytest.fail("asked"))
    hybrid.predict_proba(data.X, y_proba=data.y_proba)


def test_hard_zeros_with_many_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 26, 400)
    X = rng.normal(size=(26, 5))[y] * 2 + rng.normal(size=(400, 5))
    said = np.where(rng.random(400) < 0.6, y, rng.integers(0, 26, 400))
    P = np.eye(26)[said]
    hybrid = HybridCalibrator(n_estimators=30).fit(X, y, y_proba=P)
    loss = ((hybrid.out_of_sample_proba_ - np.eye(26)[y]) ** 2).sum(axis=1).mean()
    assert np.isfinite(hybrid.predict_proba(X, y_proba=P)).all()
    assert loss < 0.8 * ((P - np.eye(26)[y]) ** 2).sum(axis=1).mean()


def wide(n_features, n_classes=2, n=80, seed=0):
    data = make_hidden_heterogeneity(n, n_classes=n_classes, random_state=seed)
    more = np.random.default_rng(seed).normal(size=(n, n_features - data.X.shape[1]))
    return np.hstack([data.X, more]), data


@pytest.mark.parametrize(
    ("n_features", "n_classes", "expected"),
    [
        (300, 2, {"boosting", "boosting-small"}),
        (301, 2, {"wide-boosting", "wide-boosting-x"}),
        (301, 3, {"wide-boosting-x"}),
        (301, 11, set()),
    ],
)
def test_the_kind_of_boosting_follows_the_number_of_columns(n_features, n_classes, expected):
    items = items_of(80, n_classes, X=np.zeros((80, n_features)), classes=np.arange(n_classes))
    families = Library(items, 5, 0, None).wanted("auto")
    names = {name: family.uses_model for family in families for name in family.names}
    assert {name for name in names if "boosting" in name} == expected
    assert not any(names[name] for name in expected if name.endswith("-x"))


def test_wide_boosting_is_left_out_where_it_would_take_minutes(monkeypatch):
    monkeypatch.setattr(library, "_WIDE_BOOSTING_COST", 2080 * 302 * 2 - 1)
    X, data = wide(302)
    hybrid = HybridCalibrator(n_estimators=5).fit(X, data.y, y_proba=data.y_proba)
    assert not any("boosting" in name for name in hybrid.experts_.index)


def test_wide_boosting_on_shuffled_labels_has_no_say():
    weight = []
    for seed in range(2):
        X, data = wide(310, n=200, seed=seed)
        y = np.random.default_rng(seed).permutation(data.y)
        hybrid = HybridCalibrator("wide-boosting", n_estimators=5)
        table = hybrid.fit(X, y, y_proba=data.y_proba).experts_
        weight.append(table.loc[["wide-boosting", "wide-boosting-x"], "weight"].sum())
    assert np.mean(weight) < 0.1


def test_wide_boosting_with_a_class_that_nobody_has():
    X, data = wide(310, n=60)
    P = np.column_stack([data.y_proba, np.zeros(60)])
    hybrid = HybridCalibrator("wide-boosting", n_estimators=5, classes=[0, 1, 2])
    Q = hybrid.fit(X, data.y, y_proba=P).predict_proba(X[:4], y_proba=P[:4])
    assert Q.shape == (4, 3)
    np.testing.assert_allclose(Q.sum(axis=1), 1)


@pytest.mark.parametrize("groups", [None, np.arange(60) // 2])
def test_support_of_calibration_items_is_on_the_scale_of_new_ones(groups):
    """Where all items are alike, each counts once for all: out of sample as well."""
    data = make_hidden_heterogeneity(60, random_state=0)
    X, P = np.zeros((60, 2)), np.tile([[0.4, 0.6]], (60, 1))
    hybrid = HybridCalibrator(["proximity"], n_estimators=5)
    hybrid.fit(X, data.y, y_proba=P, groups=groups)
    np.testing.assert_allclose(hybrid.support(X[:3], y_proba=P[:3]), 60)
    support, n_trees = hybrid.out_of_sample_support(return_n_trees=True)
    seen_by_all = np.zeros(60, bool) if n_trees is None else n_trees == 0
    np.testing.assert_allclose(support[~seen_by_all], 60)


EVERY_FAMILY = [
    KernelFamily(with_model=False),
    NeighbourFamily(((5, 1.0),)),
    BoostingFamily("boosting-small"),
    WideBoostingFamily(),
    ModelFamily("model", LogisticRegression()),
    CalibratorFamily("vector", VectorScaling()),
    GlobalFamily("vector", VectorScaling()),
    ProximityFamily(n_estimators=10),
    ForestVoteFamily(n_estimators=10),
]
every_family = pytest.mark.parametrize("family", EVERY_FAMILY, ids=lambda f: type(f).__name__)


@every_family
def test_experts_learn_from_weights(family):
    """Where one class weighs a hundred times as much, it is expected everywhere."""
    whole = items_of(120, 2)
    half = np.arange(120) < 60
    items, new = whole.take(half), whole.take(~half)
    weight = np.where(items.codes == 1, 100.0, 1.0)
    weight /= weight.mean()  # as the hybrid hands them on
    weighted = replace(items, weight=weight, counts=weight)
    plain = family.fit(items).predict(new.features(), new.scores)
    heavy = family.fit(weighted).predict(new.features(), new.scores)
    for one, two in zip(plain, heavy, strict=True):
        assert np.nanmean(two[:, 1]) > np.nanmean(one[:, 1]) + 0.02


@pytest.mark.parametrize(
    "family",
    [*EVERY_FAMILY, CalibratorFamily("swc", get_calibrator("swc"))],
    ids=lambda f: type(f).__name__,
)
def test_experts_leave_out_whole_groups(family, monkeypatch):
    """No label of an item's group reaches its out-of-sample prediction."""
    monkeypatch.setattr(kernel_machine, "_WIDTHS", (1.0,))
    monkeypatch.setattr(kernel_machine, "_RIDGES", (1.0,))
    groups = np.arange(60) // 3
    items = items_of(60, 2, groups=groups)
    before = family.fit(items).out_of_sample(items, folds_of(items))
    own = np.flatnonzero(groups == 4)
    flipped = with_label(items, own, 1 - items.codes[own])
    after = family.fit(flipped).out_of_sample(flipped, folds_of(items))
    for one, two in zip(before, after, strict=True):
        np.testing.assert_allclose(one[own], two[own], atol=1e-12)
        assert not np.allclose(one, two, equal_nan=True)


@every_family
def test_a_class_that_nobody_has_keeps_its_column(family):
    items = items_of(60, 3)
    items = items.with_codes(np.where(items.codes == 1, 0, items.codes))
    for Q in family.fit(items).predict(items.features(), items.scores):
        assert Q.shape == (60, 3)
        assert np.nanmean(Q[:, 2]) == pytest.approx(np.mean(items.codes == 2), abs=0.2)
        assert np.nanmean(Q[:, 1]) < 0.1


@pytest.mark.parametrize(
    "family",
    [
        KernelFamily(with_model=False),
        WideBoostingFamily(with_model=False),
        ProximityFamily(n_estimators=10, with_model=False),
        ForestVoteFamily(n_estimators=10, with_model=False),
    ],
    ids=lambda f: type(f).__name__,
)
def test_experts_without_the_model_do_not_see_it(family):
    items = items_of(60, 2)
    assert not family.uses_model
    other = Scores.from_proba(np.random.default_rng(0).dirichlet([1, 1], 60), 1e-9)
    one = family.fit(items).predict(items.features(), items.scores)
    two = family.fit(replace(items, scores=other)).predict(items.features(), other)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_best_place_is_found_on_either_side():
    for best in range(6):
        for start in range(6):
            found = kernel_machine._descend(
                lambda new, old, best=best: abs(new - best) < abs(old - best), start, 6
            )
            assert found == best


def test_a_smooth_vote_is_one_of_as_many_equal_votes():
    items, new = items_of(), items_of(20, seed=1)
    family = ProximityFamily(n_estimators=10).fit(items)
    place, similarity = family.nearest(new.features(), new.scores, items.n_items)
    cast = similarity**2
    votes, size = family.smooth_vote(new.features(), new.scores)
    np.testing.assert_allclose(size, cast.sum(axis=1) ** 2 / (cast**2).sum(axis=1))
    mass = np.stack([(cast * (items.codes[place] == k)).sum(axis=1) for k in range(3)], axis=1)
    np.testing.assert_allclose(votes, mass / mass.sum(axis=1, keepdims=True))


def test_support_is_counted_over_the_trees_that_have_not_drawn_the_item():
    items = items_of()
    family = ProximityFamily(n_estimators=10).fit(items)
    unseen = out_of_bag_leaves(family.forest_, family.leaves_) >= 0
    np.testing.assert_array_equal(family.out_of_sample_support(items).n_trees, unseen.sum(axis=1))


def test_one_large_group_is_too_much_to_leave_out():
    pairs = np.repeat(np.arange(50), 2)
    assert kernel_machine._can_leave_out(items_of(100))
    assert kernel_machine._can_leave_out(items_of(100, groups=pairs))
    assert not kernel_machine._can_leave_out(items_of(100, groups=np.maximum(pairs, 1)))


@pytest.mark.parametrize(
    ("n", "leaves"), [(29, [1]), (30, [1, 3]), (99, [1, 3]), (100, [1, 3, 10])]
)
def test_forests_have_leaves_that_items_can_fill(n, leaves):
    *with_model, alone = Library(items_of(n), 10, 0, None).family("forests")
    assert [family.min_samples_leaf for family in with_model] == leaves
    assert (alone.min_samples_leaf, alone.with_model) == (1, False)


@pytest.mark.parametrize(("n_classes", "admitted"), [(2, True), (3, False)])
def test_boosting_grows_one_tree_for_two_classes(monkeypatch, n_classes, admitted):
    items = items_of(n_classes=n_classes)
    monkeypatch.setattr(library, "BOOSTING_COST", items.features().size)
    assert ("boosting" in Library(items, 10, 0, None)._admitted()) == admitted


def test_nearest_items_vote_by_how_much_farther_they_are_than_the_nearest():
    weight = np.random.default_rng(0).uniform(0.5, 4.0, 120)
    items, new = items_of(sample_weight=weight), items_of(10, seed=1)
    family = NeighbourFamily(((5, 3.0), (10, 1.0))).fit(items)
    known = family.space_.transform(items.features(), items.scores)
    asked = family.space_.transform(new.features(), new.scores)
    distance = np.linalg.norm(asked[:, None] - known, axis=2)
    order = np.argsort(distance, axis=1)
    for (k, power), said in zip(
        family.votes, family.predict(new.features(), new.scores), strict=True
    ):
        for row, near in enumerate(order[:, :k]):
            closeness = (distance[row, near[0]] / distance[row, near]) ** power
            mass = np.bincount(items.codes[near], closeness * weight[near], minlength=3)
            np.testing.assert_allclose(said[row], mass / mass.sum(), rtol=1e-6, atol=1e-9)
