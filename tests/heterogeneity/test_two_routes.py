"""Parts of the test by two routes: copies as groups, weights next to nothing, levels, words."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from scipy.stats import ncx2

from hetcal.data import CalibrationSet, Folds
from hetcal.heterogeneity import HiddenHeterogeneity, heterogeneity_test
from hetcal.heterogeneity.average_test import average_p_value
from hetcal.heterogeneity.block_directions import _Search, block_directions
from hetcal.heterogeneity.dictionary import Dictionary
from hetcal.heterogeneity.feature_columns import FeatureColumns
from hetcal.heterogeneity.functions_of_p import fit_global, label_free_spaces, log_odds
from hetcal.heterogeneity.grouping_loss import FoundPart, found_part, size_along
from hetcal.heterogeneity.learning import Learning
from hetcal.heterogeneity.multiplicity import benjamini_hochberg, holm
from hetcal.heterogeneity.residual_learners import LEARNERS, Task, stacked

N = 120


@pytest.fixture(scope="module")
def data():
    """Return features, labels and probabilities; the second feature says more than p."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    p = expit(X[:, 0])
    y = (rng.random(N) < expit(X[:, 0] + 1.5 * X[:, 1])).astype(int)
    return X, y, np.column_stack([1 - p, p])


def items_of(data, rows=None, groups=None, weight=None):
    X, y, P = data
    rows = np.arange(N) if rows is None else rows
    return CalibrationSet.check(
        X[rows], y[rows], y_proba=P[rows], groups=groups, sample_weight=weight, caller="test"
    )


def residuals_and_direction():
    rng = np.random.default_rng(1)
    d = 0.3 * rng.normal(size=(N, 1))
    return d + 0.4 * rng.normal(size=(N, 1)), d


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_bounds_of_copies_are_those_of_the_rows(level):
    R, d = residuals_and_direction()
    rows = np.repeat(np.arange(N), 9)
    once = size_along(R, d, np.ones(N), None, level)
    assert size_along(R[rows], d[rows], np.ones(9 * N), rows, level) == pytest.approx(once)
    assert 0 < once[0] < once[1]
    part = found_part(R, d, np.ones(N), np.arange(N), level)
    copies = found_part(R[rows], d[rows], np.ones(9 * N), rows, level)
    assert (copies.z, copies.low) == pytest.approx((part.z, part.low))
    alone = found_part(R, d, np.ones(N), None, level)
    assert (alone.z, alone.low) == pytest.approx((part.z, part.low), rel=0.02)


def test_the_bound_in_a_region_has_the_error_of_the_delta_method():
    """By what a little more weight of each item changes, wider by what folds teach each other."""
    R, d = residuals_and_direction()
    product, square = (R * d)[:, 0], (d**2)[:, 0]

    def root(weight):
        return (weight @ product) / np.sqrt((weight @ square) * weight.sum())

    step = 1e-5 * np.eye(N)
    slopes = [(root(1 + more) - root(1 - more)) / 2e-5 for more in step]
    part = found_part(R, d, np.ones(N), None, 0.05)
    error = np.linalg.norm(slopes) * np.sqrt(1 + 4 / (4 + part.z**2))
    assert part.low == pytest.approx(2 * (root(np.ones(N)) - 1.644854 * error) ** 2, rel=1e-4)


def test_the_bound_of_all_items_is_the_least_excess_that_chance_may_hide():
    """The square of a direction that learned noise too holds a chi-square of its freedom."""
    R, d = residuals_and_direction()
    d = d + 0.2 * np.random.default_rng(2).normal(size=(N, 1))
    found, length = (R * d).sum(), (d**2).sum()
    noise = ((R * d) ** 2).sum() / length
    freedom = (length - found) / noise
    assert freedom > 5
    low, part = size_along(R, d, np.ones(N), None, 0.05)
    assert part == pytest.approx(2 * found / N)
    seen = ncx2(freedom, low * N / 2 / noise).sf(found / noise + freedom)
    assert seen == pytest.approx(0.05, rel=0.05)


def test_two_classes_as_one_column_count_twice():
    R, d = residuals_and_direction()
    both = np.hstack([-R, R]), np.hstack([-d, d])
    assert size_along(R, d, np.ones(N), None) == pytest.approx(size_along(*both, np.ones(N), None))
    one, two = found_part(R, d, np.ones(N), None), found_part(*both, np.ones(N), None)
    assert (one.z, one.low) == pytest.approx((two.z, two.low))


def test_a_lower_level_bounds_less():
    R, d = residuals_and_direction()
    for bound in (
        lambda level: size_along(R, d, np.ones(N), None, level)[0],
        lambda level: found_part(R, d, np.ones(N), None, level).low,
    ):
        assert bound(0.001) < bound(0.05) < bound(0.5)


def test_the_level_reaches_the_bound_and_the_bound_needs_the_test(data, monkeypatch):
    X, y, P = data
    monkeypatch.setattr(Learning, "size", lambda self, seed, alpha: (1.0, alpha))
    p = heterogeneity_test(X, y, y_proba=P, learners=["linear"]).p_value
    for alpha in (2 * p, p / 2):
        found = heterogeneity_test(X, y, y_proba=P, learners=["linear"], alpha=alpha)
        assert found.grouping_loss_low == (alpha > p)
        assert found.grouping_loss_found == alpha


def test_a_bound_in_a_region_needs_the_test_of_the_region(monkeypatch):
    rng = np.random.default_rng(3)
    X, p = rng.normal(size=(300, 2)), rng.uniform(0.1, 0.9, 300)
    y = (rng.random(300) < p).astype(int)
    monkeypatch.setattr(Learning, "found", lambda self, local, alpha: FoundPart(0.0, 1.0))
    regions = HiddenHeterogeneity(learners=["linear"]).fit(X, y, y_proba=p).regions_
    assert (regions["p_value"] > 0.05).any()
    assert regions["hh_local_low"].tolist() == (regions["p_value"] <= 0.05).tolist()


def test_regions_are_those_of_the_second_class_with_adjusted_p_values():
    rng = np.random.default_rng(3)
    p = rng.beta(1, 4, 500)
    y = (rng.random(500) < p).astype(int)
    found = HiddenHeterogeneity(learners=[]).fit(rng.normal(size=(500, 2)), y, y_proba=p)
    np.testing.assert_allclose(
        found.regions_["to"][:-1], np.quantile(p, [0.2, 0.4, 0.6, 0.8]), atol=1e-9
    )
    by_p = found.regions_.sort_values("p_value")
    assert by_p["q_value"].iloc[-1] == pytest.approx(by_p["p_value"].iloc[-1])
    assert by_p["q_value"].iloc[0] > by_p["p_value"].iloc[0]
    assert by_p["q_value"].is_monotonic_increasing


def learning(items):
    return Learning(items, fit_global(items), None, None, None, {})


def test_gains_of_copies_are_those_of_the_rows(data):
    rows = np.repeat(np.arange(N), 9)
    local = 0.1 * data[0][:, 1:2]
    one = learning(items_of(data, groups=np.arange(N))).gains(local)
    many = learning(items_of(data, rows, groups=rows)).gains(local[rows])
    np.testing.assert_allclose(many[::9], one, rtol=1e-5, atol=1e-9)


def test_gains_of_two_classes_are_those_of_both_columns(data):
    """A local model that moves p by d moves the other class by -d."""
    found = learning(items_of(data))
    local = 0.1 * data[0][:, 1:2]
    R, d = found.fit.residuals, found.fit.space.residual(local)
    gain = found.gains(local)[:, 1]
    f = gain.sum() / (2 * (2 * (R[:, 1] @ d[:, 0])))  # the gain is about half of 2 f R d
    both = (R**2).sum(axis=1) - ((R - np.hstack([-d, d]) * f) ** 2).sum(axis=1)
    assert gain.sum() == pytest.approx(both.sum(), rel=0.35)


def test_few_groups_make_a_learner_less_sure(data):
    p = [learning(items_of(data, groups=np.arange(N) % G))._p_value(4.0) for G in (5, 100)]
    assert p[0] > 5 * p[1]
    assert p[1] == pytest.approx(learning(items_of(data))._p_value(4.0), rel=0.5)


def test_the_dictionary_keeps_its_share_beside_any_number_of_learners(data):
    found = learning(items_of(data))
    for learners in (["a"], ["a", "b"], ["a", "b", "c"]):
        p = found.combined(1e-6, dict.fromkeys(learners, 1.0))
        assert p == pytest.approx(1e-6 / 0.8, rel=0.01)


def task_of(data, candidates=None):
    items = items_of(data)
    _, space = label_free_spaces(items)
    odds = log_odds(items.scores.log_proba)
    dictionary = Dictionary(FeatureColumns.read(items.X), odds, space)
    weight = np.ones(N)
    weight[7] = 1e-12
    space = replace(space, weight=weight, basis=space.basis[:, :0]).joined_by(
        np.column_stack([np.ones(N), odds])
    )
    which = np.arange(6) if candidates is None else candidates
    R = space.residual(items.onehot[:, 1:])
    law = items.proba[:, 1:]
    return Task(R, Folds.make(N, 3, seed=0), weight, dictionary, odds, law, space, [which] * 3)


@pytest.mark.parametrize("learner", [*LEARNERS.values(), block_directions])
def test_who_has_next_to_no_weight_teaches_nobody(data, learner):
    task = task_of(data)
    moved = task.residuals.copy()
    moved[7] += 5.0
    before, after = learner(task), learner(replace(task, residuals=moved))
    assert before.any()
    np.testing.assert_allclose(np.delete(after, 7, 0), np.delete(before, 7, 0), atol=1e-5)


def test_weights_of_learners_do_not_know_the_fold(data):
    """A fold's own residuals have no part in how the learners are put together for it."""
    task = task_of(data)
    directions = [LEARNERS["linear"](task), LEARNERS["boosting"](task)]
    before = stacked(directions, task)
    inside = task.folds.number == 0
    moved = np.where(inside[:, None], -3 * task.residuals, task.residuals)
    after = stacked(directions, replace(task, residuals=moved))
    np.testing.assert_allclose(after[inside], before[inside], atol=1e-12)
    assert not np.allclose(after, before)


def test_directions_that_stand_out_are_found_without_the_fold(data, monkeypatch):
    """Candidates for a fold are those that the scores of the other folds show."""
    asked = []
    monkeypatch.setattr(Learning, "stand_out", lambda self, sums: asked.append(sums))
    items = items_of(data)
    fit = fit_global(items)
    dictionary = Dictionary(
        FeatureColumns.read(items.X), log_odds(items.scores.log_proba), fit.space
    )
    parts = np.random.default_rng(0).normal(size=(len(dictionary), 1, 3))
    monkeypatch.setattr("hetcal.heterogeneity.learning.scores_by_fold", lambda *_: [parts])
    Learning(items, fit, dictionary, None, None, {})._tasks_on([Folds.make(N, 3, seed=0)])
    for j, sums in enumerate(asked):
        np.testing.assert_allclose(sums, np.delete(parts, j, axis=2).sum(axis=2))


def test_what_carries_it_has_its_class_its_sign_and_its_cut():
    rng = np.random.default_rng(0)
    n = 600
    X = pd.DataFrame({"x": rng.normal(size=n), "site": rng.permutation(np.arange(n))})
    Z = np.zeros((n, 3))
    Z[:, 0] = X["x"]
    P = softmax(Z, axis=1)
    Z[:, 1] -= 2.5 * (X["site"] >= 480)
    U = rng.random((n, 1))
    y = np.array(["a", "b", "c"])[(softmax(Z, axis=1).cumsum(axis=1)[:, :-1] <= U).sum(axis=1)]
    first = heterogeneity_test(X, y, y_proba=P, learners=[]).directions.iloc[0]
    assert first["direction"].startswith("site above 4")
    assert first["class"] == "b"
    assert first["z"] < -3


def test_copies_do_not_make_an_average_surer():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 60)
    y = (rng.random(60) < 0.8 * p).astype(int)
    rows = np.repeat(np.arange(60), 9)

    def p_value(rows, groups):
        items = CalibrationSet.check(None, y[rows], y_proba=p[rows], groups=groups, caller="test")
        return average_p_value(items)

    one = p_value(np.arange(60), np.arange(60))
    assert 1e-4 < one < 0.5
    assert p_value(rows, rows) == pytest.approx(one)
    assert p_value(rows, None) < one / 1e6


def test_means_and_coverage_count_weights():
    """Weight two is a row twice: of the Brier score, of covered items, of a neighbourhood."""
    rng = np.random.default_rng(0)
    p = np.repeat([0.2, 0.5, 0.9], [60, 60, 3])
    y = (rng.random(123) < np.repeat([0.3, 0.7, 0.5], [60, 60, 3])).astype(int)
    X = rng.normal(size=(123, 2))
    weight = np.where(np.arange(123) % 3 == 0, 4.0, 1.0)
    rows = np.repeat(np.arange(123), weight.astype(int))

    def fit(X, y, p, **more):
        return HiddenHeterogeneity(learners=[], n_null=0, min_neighbors=5).fit(
            X, y, y_proba=p, **more
        )

    one = fit(X, y, p, sample_weight=weight)
    many = fit(X[rows], y[rows], p[rows], groups=rows)
    assert one.test().brier == pytest.approx(many.test().brier)
    assert one.covered_ == pytest.approx(1 - weight[120:].sum() / weight.sum())
    at = [[0.8, 0.2], [0.5, 0.5]]
    np.testing.assert_allclose(one.frame(at)["hh"], many.frame(at)["hh"], atol=0.01)
    assert one.hh_mean_ == pytest.approx(many.hh_mean_, abs=0.01)


def test_blocks_and_directions_of_a_kind_share_one_level(data, monkeypatch):
    task, seen = task_of(data), []
    monkeypatch.setattr(
        _Search, "best_score", lambda self, block, level: seen.append((block.family, level)) or 0.0
    )
    monkeypatch.setattr(_Search, "predict", lambda self, blocks, levels: None)
    block_directions(task)
    table = pd.DataFrame(seen, columns=["family", "level"])
    np.testing.assert_allclose(table.groupby("family")["level"].sum(), 0.01)
    kinds = pd.Series([direction.kind for direction in task.dictionary.directions])
    _, parts = _Search(task)._single_directions(0)
    for number, (_, level) in zip(task.candidates[0], parts[0], strict=True):
        assert level * (kinds == kinds[number]).sum() == pytest.approx(0.01)


def test_adjusted_p_values_are_those_of_a_loop():
    p = np.random.default_rng(0).random(12) ** 3
    ranked = np.argsort(p)
    down, up = np.empty(12), np.empty(12)
    for place, row in enumerate(ranked):
        down[row] = min(max(p[r] * (12 - k) for k, r in enumerate(ranked[: place + 1])), 1.0)
        up[row] = min(min(p[r] * 12 / (place + 1 + k) for k, r in enumerate(ranked[place:])), 1.0)
    np.testing.assert_allclose(holm(p), down)
    np.testing.assert_allclose(benjamini_hochberg(p), up)


def test_options_and_groups_reach_the_search_for_sub_populations(data, monkeypatch):
    X, y, P = data
    seen = []
    monkeypatch.setattr(
        "hetcal.heterogeneity.estimator.subgroups_of", lambda items, **o: seen.append((items, o))
    )
    hidden = HiddenHeterogeneity(learners=[], n_null=0, random_state=3).fit(X, y, y_proba=P)
    options = {"max_conditions": 2, "max_subgroups": 4, "min_count": 7, "level": 0.3}
    hidden.subgroups(**options)
    hidden.subgroups(X, P, y, groups=np.arange(N) // 2, **options)
    for _, given in seen:
        assert given == options | {"random_state": 3}
    assert seen[0][0].groups is None
    assert len(np.unique(seen[1][0].groups)) == N // 2
