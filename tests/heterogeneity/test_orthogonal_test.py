"""heterogeneity_test: its level under many maps, its power, its bound, and bad input."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit, ndtr, softmax
from sklearn.linear_model import LinearRegression

from hetcal.data import CalibrationSet, Folds
from hetcal.datasets import make_problem
from hetcal.heterogeneity import HiddenHeterogeneity, heterogeneity_test, learning
from hetcal.heterogeneity.dictionary import Dictionary, uncorrelated
from hetcal.heterogeneity.feature_columns import FeatureColumns
from hetcal.heterogeneity.functions_of_p import (
    _LEAST_STEP,
    FunctionsOfP,
    _steps,
    fit_global,
    label_free_spaces,
    log_odds,
)
from hetcal.heterogeneity.learning import Learning
from hetcal.heterogeneity.orthogonal_test import strongest_cuts
from hetcal.heterogeneity.residual_learners import LEARNERS, Task, _ridge
from hetcal.heterogeneity.score_test import (
    Outcomes,
    _accumulate,
    _standardised,
    _without_heavy_tail,
    harmonic_p_value,
)

DRAWS, MOST = 10, 3  # 5 % of 10 draws; four rejections or more have a chance of .001


def binary(p):
    return np.column_stack([1 - p, p])


def draw(Q, rng):
    return (rng.random((len(Q), 1)) >= np.cumsum(Q, axis=1)[:, :-1]).sum(axis=1)


def atoms(rng, n=300):
    """A black box with fifteen values, each far from what happens there."""
    X = rng.normal(size=(n, 6))
    leaf = np.minimum((expit(1.5 * X[:, 0]) * 15).astype(int), 14)
    fixed = np.random.default_rng(5)
    said = fixed.beta(1, 1, 15)
    happens = np.clip(said + fixed.normal(0, 0.2, 15), 0.03, 0.97)
    return X, binary(said[leaf]), binary(happens[leaf]), None


def steps(rng, n=300):
    """A map with jumps."""
    X = rng.normal(size=(n, 6))
    p = expit(X[:, 0] + 0.7 * X[:, 1])
    return (
        X,
        binary(p),
        binary(np.array([0.35, 0.15, 0.75, 0.45])[np.digitize(p, [0.3, 0.5, 0.8])]),
        None,
    )


def matrix_scaling(rng, n=300):
    """Three classes of which each leans on another's log-probability."""
    Z = rng.normal(size=(n, 3))
    mixed = Z @ np.array([[1, 0, -0.4], [-0.4, 1, 0], [0, -0.4, 1]])
    return np.hstack([Z, rng.normal(size=(n, 3))]), softmax(Z, 1), softmax(mixed, 1), None


def clustered(rng, n=300):
    """Groups of five with an effect of their own, and features that groups share."""
    group = np.repeat(np.arange(n // 5), 5)
    X = np.column_stack([rng.normal(size=(n // 5, 3))[group], rng.normal(size=(n, 3))])
    z = 1.5 * X[:, 3]
    return X, binary(expit(z)), binary(expit(z + rng.normal(size=n // 5)[group])), group


@pytest.mark.parametrize("null", [atoms, steps, matrix_scaling, clustered])
def test_the_level_is_kept_under_any_map(null):
    rejected = 0
    for seed in range(DRAWS):
        rng = np.random.default_rng([seed, 1])
        X, P, Q, groups = null(rng)
        found = heterogeneity_test(
            X, draw(Q, rng), y_proba=P, classes=range(P.shape[1]), groups=groups, learners=[]
        )
        rejected += found.p_value <= 0.05
    assert rejected <= MOST


def hidden(effect, *, n=600, d=8, seed=0, category=False):
    """Return features, labels and p = expit(1.2 x0), from which the log-odds differ by effect."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if category:
        X = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
        X["region"] = pd.Categorical(np.array(["north", "south", "east"])[rng.integers(0, 3, n)])
        z = 1.2 * X["x0"].to_numpy()
    else:
        z = 1.2 * X[:, 0]
    q = expit(z + effect(X))
    return X, (rng.random(n) < q).astype(int), binary(expit(z)), q


@pytest.mark.parametrize(
    ("effect", "word", "category"),
    [
        (lambda X: 1.2 * np.sign(X[:, 1] * X[:, 2]), "x1 times x2", False),
        (lambda X: 0.7 * X[:, 3], "x3", False),
        (lambda X: 1.2 * np.sin(4 * X[:, 1]), "x1", False),
        (lambda X: -1.5 * (X["region"] == "north"), "region = north", True),
        (lambda X: X[:, 1] * 1.2 * X[:, 0], "x0 times x1", False),
    ],
    ids=["xor", "linear", "wave", "category", "slope"],
)
def test_what_is_hidden_is_found_bounded_and_named(effect, word, category):
    X, y, P, q = hidden(effect, category=category)
    found = heterogeneity_test(X, y, y_proba=P)
    assert found.p_value < 0.01
    assert word in found.directions["direction"][0]
    truth = 2 * np.mean((q - P[:, 1]) ** 2)  # no more than this is behind p
    assert 0 < found.grouping_loss_low < truth
    assert found.grouping_loss_low <= found.grouping_loss_found <= 1.3 * truth
    assert found.shares["grouping_loss_low"] == found.grouping_loss_low / found.brier


def test_a_learner_finds_what_no_direction_of_the_dictionary_says():
    X, y, P, _ = hidden(
        lambda X: -3.0 * ((X[:, 1] > 0.2) & (X[:, 2] > 0.2) & (np.abs(X[:, 3]) < 1)), n=1500, d=16
    )
    found = heterogeneity_test(X, y, y_proba=P, learners=["boosting", LinearRegression()])
    assert found.parts["boosting"] < 0.001
    assert "LinearRegression 1" in found.parts


def test_nothing_is_claimed_where_nothing_is_hidden():
    X, y, P, _ = hidden(lambda X: 0.0)
    found = heterogeneity_test(X, y, y_proba=P)
    assert found.p_value > 0.05
    assert found.grouping_loss_low == 0
    low, high = found.global_part_interval
    assert low < 0 < high


def test_the_global_part_is_what_a_map_gains():
    X, _, P, _ = hidden(lambda X: 0.0, n=3000)
    h = 0.1 + 0.5 * P[:, 1]
    y = (np.random.default_rng(1).random(3000) < h).astype(int)
    found = heterogeneity_test(X, y, y_proba=P, learners=[])
    low, high = found.global_part_interval
    assert low < 2 * np.mean((h - P[:, 1]) ** 2) < high
    assert low > 0


def test_a_map_gains_nothing_over_eight_calibrated_classes():
    covered = 0
    for seed in range(4):
        problem = make_problem("calibrated-eight", 600, random_state=seed)
        found = heterogeneity_test(problem.X, problem.y, y_proba=problem.y_proba, learners=[])
        low, high = found.global_part_interval
        covered += low <= 0 <= high
    assert covered >= 3


def test_p_hardly_depends_on_the_seed():
    X, y, P, _ = hidden(lambda X: 0.55 * X[:, 3], n=400, seed=1)
    p = [heterogeneity_test(X, y, y_proba=P, random_state=seed).p_value for seed in range(4)]
    assert 0.001 < min(p) < 0.05
    assert max(p) <= 1.4 * min(p)


@pytest.mark.parametrize(("effect", "rounds"), [(0.0, [4]), (0.6, [4, 8]), (2.0, [4])])
def test_an_unclear_p_value_is_averaged_over_more_splits(effect, rounds, monkeypatch):
    """Where nothing is to be seen, or it is plain, more splits would change nothing."""
    X, y, P, _ = hidden(lambda X: effect * X[:, 3], n=400, seed=1)
    asked = []
    tasks = Learning._tasks

    def recorded(self, seed, repeats):
        asked.append(len(repeats))
        return tasks(self, seed, repeats)

    monkeypatch.setattr(Learning, "_tasks", recorded)
    monkeypatch.setattr(learning, "_REPEATS_TESTED", ((np.inf, 4),))
    monkeypatch.setattr(learning, "_REPEATS", ((np.inf, 1),))
    heterogeneity_test(X, y, y_proba=P, learners=["boosting"])
    assert asked == rounds


@pytest.mark.parametrize("grouped", [False, True])
def test_null_moments_are_those_of_the_draws(grouped):
    """Rare events in few items: scores are far from normal, and draws show it."""
    rng = np.random.default_rng(0)
    X, groups = rng.exponential(size=(200, 3)), np.repeat(np.arange(40), 5)
    P = binary(rng.uniform(0.02, 0.1, 200))
    y, weight = (rng.random(200) < P[:, 1]).astype(int), rng.uniform(0.5, 2, 200)
    items = CalibrationSet.check(X, y, y_proba=P, sample_weight=weight, caller="test")
    fit = fit_global(items)
    columns = FeatureColumns.read(items.X)
    dictionary = Dictionary(columns, log_odds(items.scores.log_proba), fit.space)
    outcomes = Outcomes.of(fit, items.proba)
    sums = _accumulate(fit, outcomes, dictionary, groups if grouped else None, rng, True)
    known = np.isfinite(sums.variance[:, 0])
    z = sums.drawn[known, 0] / np.sqrt(sums.variance[known])
    fourth = (z**4).mean(axis=1)
    error = (z**4).std(axis=1) / np.sqrt(z.shape[1])
    assert (z**2).mean(axis=1) == pytest.approx(1, abs=0.25)
    assert np.abs(sums.excess[known, 0]).max() > 0.3
    assert np.abs((3 + sums.excess[known, 0] - fourth) / error).max() < 6
    standard, lacking = _standardised(sums.drawn, sums.excess)
    assert (standard[known] ** 2).mean(axis=2) == pytest.approx(1, abs=1e-4)
    assert np.isfinite(lacking).all()


def space_and_labels(h, *, seed=0, n=400, weight=None):
    """Functions of p without jumps, and labels of a map of p."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    y = (rng.random(n) < h(p)).astype(int)
    items = CalibrationSet.check(None, y, y_proba=binary(p), sample_weight=weight, caller="test")
    return items, label_free_spaces(items)[1]


def test_the_first_step_is_the_one_that_explains_most():
    """Running sums say what least squares with each step says."""
    weight = np.random.default_rng(1).uniform(0.5, 1.5, 400)
    items, space = space_and_labels(lambda p: np.where(p > 0.4, 0.9, 0.1), weight=weight)
    odds, residual = log_odds(items.scores.log_proba)[:, 0], space.residual(items.onehot)[:, 1]
    steps = _steps(space, odds, residual, np.full(400, 0.02), 400)
    left = []
    for step in np.sort(odds)[1:]:
        wider = space.joined_by((odds >= step)[:, None] * 1.0)
        told_apart = (space.weight @ space.residual((odds >= step)[:, None] * 1.0) ** 2)[0]
        enough = told_apart > _LEAST_STEP * (weight @ weight) / (weight.sum() * weight.mean())
        left.append(space.weight @ wider.residual(items.onehot)[:, 1] ** 2 if enough else np.inf)
    best = np.sort(odds)[1:][np.argmin(left)]
    np.testing.assert_array_equal(steps[:, 0], odds >= best)
    assert _steps(space, odds, residual, np.full(400, 9.0), 400).shape == (400, 0)  # none pays


def test_a_map_with_many_jumps_leaves_little_to_find():
    """Of the squared length of h, in variances of a label, the jumps' share is followed."""
    for seed in range(3):

        def teeth(p):
            return 0.15 + 0.7 * (5 * p % 1)

        items, space = space_and_labels(teeth, seed=seed, n=3000)
        h = teeth(items.proba[:, 1])[:, None]
        without = ((space.residual(h) ** 2) / (h * (1 - h))).sum()
        left = ((fit_global(items).space.residual(h) ** 2) / (h * (1 - h))).sum()
        assert without > 60
        assert left < 0.5 * without


def test_a_sharp_step_is_found_where_hinges_nearly_follow_it():
    """A model that is always right and says 0.6: what hinges left was found behind p."""
    for seed in range(5):
        items, space = space_and_labels(lambda p: 1.0 * (p > 0.5), seed=seed, n=300)
        assert (space.residual(items.onehot) ** 2).sum() > 1
        assert (fit_global(items).residuals ** 2).sum() < 1e-9


def test_single_events_make_no_step():
    sizes = []
    for seed in range(10):
        items, space = space_and_labels(lambda p: 0.01 + 0.0 * p, seed=seed, n=400)
        sizes.append(fit_global(items).space.size - space.size - 1)
    assert np.mean(sizes) < 0.5


def test_a_smooth_map_gets_hardly_any_jump():
    sizes = []
    for seed in range(8):
        items, space = space_and_labels(lambda p: p, seed=seed, n=2000)
        sizes.append(fit_global(items).space.size - space.size - 1)  # a logistic fit joins
    assert np.mean(sizes) < 1


def test_a_weight_is_as_good_as_a_row_repeated_as_one_group():
    X, y, P, _ = hidden(lambda X: X[:, 3], n=400, seed=3)
    twice = np.arange(400) % 4 == 0
    weighted = heterogeneity_test(X, y, y_proba=P, sample_weight=1.0 + twice, learners=["linear"])
    rows = np.sort(np.concatenate([np.arange(400), np.flatnonzero(twice)]))
    repeated = heterogeneity_test(
        X[rows], y[rows], y_proba=P[rows], groups=rows, learners=["linear"]
    )
    assert abs(weighted.statistic - repeated.statistic) < 1
    assert repeated.grouping_loss_found == pytest.approx(weighted.grouping_loss_found, rel=0.5)


def test_scale_of_weights_and_items_without_weight_do_not_matter():
    X, y, P, _ = hidden(lambda X: 0.5 * X[:, 3], n=200)
    weight = np.random.default_rng(0).uniform(0.5, 2, 200)
    weight[:50] = 0
    one = heterogeneity_test(X, y, y_proba=P, sample_weight=weight, learners=[])
    other = heterogeneity_test(
        X[50:], y[50:], y_proba=P[50:], sample_weight=7 * weight[50:], learners=[]
    )
    assert one.p_value == pytest.approx(other.p_value)


def test_missing_values_are_a_direction_of_their_own():
    X, y, P, _ = hidden(lambda X: 1.5 * (X[:, 4] > 0.8))
    X[X[:, 4] > 0.8, 4] = np.nan
    found = heterogeneity_test(X, y, y_proba=P, learners=[])
    assert found.directions["direction"][0] == "x4 missing"


def test_columns_asked_for_count_more():
    X, y, P, _ = hidden(lambda X: 0.0, n=400)
    asked = np.random.default_rng(2).integers(0, 4, 400)
    y = np.where((asked == 1) & (np.random.default_rng(3).random(400) < 0.5), 1, y)
    plain = heterogeneity_test(X, y, y_proba=P, learners=[])
    found = heterogeneity_test(
        X, y, y_proba=P, by=pd.Series(asked.astype(str), name="site").to_frame(), learners=[]
    )
    assert found.p_value < 0.01 < plain.p_value
    assert found.directions["direction"][0] == "site = 1"
    by = {"site": asked.astype(str)}  # as diagnose and evaluate take it
    assert heterogeneity_test(X, y, y_proba=P, by=by, learners=[]).p_value == found.p_value


def test_names_of_columns_asked_for_must_be_known():
    X, y, P, _ = hidden(lambda X: 0.0, category=True)
    assert heterogeneity_test(X, y, y_proba=P, by="region", learners=[]).p_value > 0.01
    with pytest.raises(ValueError, match=r"does not have: \['regoin'\]"):
        heterogeneity_test(X, y, y_proba=P, by="regoin")
    with pytest.raises(ValueError, match="by has 3 rows, but X has 600"):
        heterogeneity_test(X, y, y_proba=P, by=np.array([1, 2, 3]))
    with pytest.raises(ValueError, match="y has 600 rows but ward has 3"):
        heterogeneity_test(X, y, y_proba=P, by={"site": [0] * 600, "ward": [0] * 3})


def test_a_wide_sparse_table_takes_little_memory():
    rng = np.random.default_rng(0)
    n, d, filled = 400, 50_000, 10_000
    cells = rng.integers(0, n, filled), rng.integers(0, d, filled)
    X = sparse.csr_array((rng.random(filled), cells), shape=(n, d))
    X = sparse.hstack([X, sparse.csr_array((rng.random((n, 1)) < 0.4) * 1.0)]).tocsr()
    p = rng.uniform(0.1, 0.9, n)
    q = expit(np.log(p / (1 - p)) + 1.5 * X[:, [d]].toarray().ravel() - 0.6)
    found = heterogeneity_test(X, (rng.random(n) < q).astype(int), y_proba=binary(p), learners=[])
    assert found.p_value < 0.05
    assert f"x{d} above" in found.directions["direction"][0]


def quietly(*arguments, **options):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = heterogeneity_test(*arguments, **options)
    return found, " ".join(str(warning.message) for warning in said)


def test_where_nothing_can_be_tested_it_says_so_and_p_is_one():
    X, y, P, _ = hidden(lambda X: 0.0, n=200)
    found, said = quietly(X[:39], y[:39], y_proba=P[:39])
    assert (found.p_value, found.grouping_loss_low) == (1.0, 0.0)
    assert "39 items are too few" in said
    with pytest.raises(ValueError, match="y holds one class only"):
        heterogeneity_test(X, np.zeros(200, int), y_proba=P, classes=[0, 1])
    found, said = quietly(np.ones((200, 3)), y, y_proba=P)
    assert found.p_value == 1.0
    assert "no column of X takes two values" in said
    found, said = quietly(X, y, y_proba=P, groups=np.arange(200) % 2)
    assert found.p_value == 1.0
    assert "2 groups are too few" in said


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_a_table_without_columns_is_refused(container):
    _, y, P, _ = hidden(lambda X: 0.0, n=200)
    X = container(np.empty((200, 0)))
    for ask in (heterogeneity_test, HiddenHeterogeneity().fit):
        with pytest.raises(ValueError, match="X has no columns. Pass at least one feature"):
            ask(X, y, y_proba=P)


def test_a_table_without_any_value_gives_no_finding():
    _, y, P, _ = hidden(lambda X: 0.0, n=200)
    found, said = quietly(pd.DataFrame({"a": [None] * 200}), y, y_proba=P)
    assert found.p_value == 1.0
    assert "no column of X takes two values" in said


@pytest.mark.parametrize("column", ["identifier", "p itself"])
def test_columns_that_can_say_nothing_give_no_finding(column):
    _, y, P, _ = hidden(lambda X: 0.0, n=200)
    values = [f"item {k}" for k in range(200)] if column == "identifier" else P[:, 1]
    X = pd.DataFrame({column: values})
    found, said = quietly(X, y, y_proba=P)
    items = CalibrationSet.check(X, y, y_proba=P, caller="test")
    assert (found.p_value, found.grouping_loss_low) == (1.0, 0.0)
    assert "nothing that could be hidden" in said
    assert strongest_cuts(items) == []


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_copies_and_a_heavy_item_are_noted(container):
    rng = np.random.default_rng(0)
    X, p = rng.normal(size=(100, 2)), rng.uniform(0.2, 0.8, 100)
    y, P = (rng.random(100) < p).astype(int), np.column_stack([1 - p, p])
    rows = np.append(np.arange(100), np.arange(30))
    given = {"learners": [], "y_proba": P[rows]}
    with pytest.warns(UserWarning, match="30 of 130 rows repeat another.*global part are too sure"):
        heterogeneity_test(container(X[rows]), y[rows], **given)
    heterogeneity_test(container(X[rows]), y[rows], **given, groups=rows)
    weight = np.append(np.ones(99), 20.0)
    with pytest.warns(UserWarning, match="one item has 17% of all weight: the global part"):
        heterogeneity_test(container(X), y, y_proba=P, learners=[], sample_weight=weight)


def test_few_groups_bound_the_p_value():
    X, y, P, _ = hidden(lambda X: 3.0 * X[:, 1], n=300)
    found, said = quietly(X, y, y_proba=P, groups=np.arange(300) % 6)
    assert found.p_value >= 2.0**-5
    assert "with 6 groups no p-value can be below 0.031" in said


@pytest.mark.parametrize("case", ["constant p", "more levels than rows", "two distinct p", "rare"])
def test_odd_input_gives_a_p_value_that_is_not_wild(case):
    rng = np.random.default_rng(0)
    n = 120
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    p = rng.uniform(0.2, 0.8, n)
    if case == "constant p":
        p[:] = 0.5
    if case == "more levels than rows":
        X["id"] = pd.Categorical(
            [f"item {i}" for i in range(n)], categories=[f"item {i}" for i in range(999)]
        )
    if case == "two distinct p":
        p = np.where(p > 0.5, 1.0, 0.0)
    if case == "rare":
        p = np.full(n, 0.02)
    y = (rng.random(n) < np.clip(p, 0.02, 0.9)).astype(int)
    found = heterogeneity_test(X, y, y_proba=binary(p), classes=[0, 1])
    assert 0.01 < found.p_value <= 1.0


def test_learners_must_be_known():
    X, y, P, _ = hidden(lambda X: 0.0, n=100)
    with pytest.raises(ValueError, match="learners must be 'auto' or a list of"):
        heterogeneity_test(X, y, y_proba=P, learners=["magic"])
    with pytest.raises(ValueError, match="needs X of the labelled items"):
        heterogeneity_test(None, y, y_proba=P)


@pytest.mark.parametrize("learner", ["linear", "boosting", "forest"])
def test_an_items_own_label_does_not_reach_its_direction(learner):
    X, y, P, _ = hidden(lambda X: X[:, 1], n=150, d=3)

    def directions(codes):
        items = CalibrationSet.check(X, codes, y_proba=P, caller="test")
        _, space = label_free_spaces(items)
        odds = log_odds(items.scores.log_proba)
        dictionary = Dictionary(FeatureColumns.read(X), odds, space)
        residuals = space.residual(items.onehot[:, 1:])
        folds = Folds.make(150, 3, seed=0)
        return LEARNERS[learner](
            Task(residuals, folds, np.ones(150), dictionary, odds, residuals, space, [])
        )

    before = directions(y)
    for row in (4, 50):
        flipped = y.copy()
        flipped[row] = 1 - y[row]
        after = directions(flipped)
        np.testing.assert_allclose(after[row], before[row], atol=1e-9)
        assert not np.allclose(after, before, atol=1e-6)


def test_p_values_of_next_to_nothing_are_combined():
    assert 0 < harmonic_p_value(1e-300, 0.5, 0.8) < 1e-100


def test_categories_that_matter_only_together_are_found():
    rng = np.random.default_rng(0)
    n = 500
    X = pd.DataFrame({"x0": rng.normal(size=n)})
    shop, kind = rng.integers(0, 6, n), rng.integers(0, 5, n)
    X["shop"], X["kind"] = pd.Categorical(shop.astype(str)), pd.Categorical(kind.astype(str))
    z = 1.2 * X["x0"].to_numpy()
    sign = np.where((shop + 2 * kind) % 5 < 2, 1, -1)
    y = (rng.random(n) < expit(z + 1.0 * sign)).astype(int)
    found = heterogeneity_test(X, y, y_proba=binary(expit(z)), learners=[])
    assert found.parts["shop and kind"] < 0.001
    assert found.p_value < 0.01
    assert found.directions["direction"].str.contains("shop = . and kind = .").any()


def test_products_of_columns_and_of_levels_are_what_their_words_say():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=120), "b": rng.normal(size=120)})
    X["c"], X["d"] = (pd.Categorical(rng.choice(["u", "v"], 120)) for _ in range(2))
    columns = FeatureColumns.read(X)
    odds = rng.normal(size=(120, 1))
    bare = np.empty((120, 0))
    space = FunctionsOfP(np.full(120, -1), np.empty(0), bare, np.ones(120))
    dictionary = Dictionary(columns, odds, space.joined_by(np.ones((120, 1))))
    words = [dictionary.words(number) for number in range(len(dictionary))]
    values = dictionary.values(slice(None))
    together = values[:, words.index("c = u and d = v")]
    assert (together == ((X["c"] == "u") & (X["d"] == "v")).to_numpy()).all()
    first = next(k for k, d in enumerate(dictionary.directions) if d.kind == "curved pair")
    i, j, a, b = dictionary.directions[first].columns
    ranks = X[["a", "b"]].rank().to_numpy() / 120 - 0.5 / 120
    expected = np.cos(np.pi * a * ranks[:, i]) * np.cos(np.pi * b * ranks[:, j])
    np.testing.assert_allclose(values[:, first], expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore:heterogeneity_test. with 5 groups")
@pytest.mark.parametrize(("share", "true"), [(1.0, 0.0), (0.7, 0.054)])
@pytest.mark.parametrize("n_groups", [5, 100])
def test_groups_that_mean_nothing_do_not_move_the_global_part(n_groups, share, true):
    rng = np.random.default_rng(1)
    n = 1000
    X, p = rng.normal(size=(n, 3)), rng.uniform(0.1, 0.9, n)
    y = (rng.random(n) < share * p).astype(int)
    found = heterogeneity_test(X, y, y_proba=p, groups=np.arange(n) % n_groups, learners=[])
    assert found.global_part == pytest.approx(true, abs=0.02)


def test_what_a_group_shares_is_not_taken_for_a_global_gain():
    """Labels of a group lean one way together; over the groups p is right."""
    rng = np.random.default_rng(2)
    n, groups = 1000, np.arange(1000) % 100
    X, p = rng.normal(size=(n, 3)), rng.uniform(0.1, 0.9, n)
    z = np.sqrt(0.5) * (rng.normal(size=100)[groups] + rng.normal(size=n))
    y = (ndtr(z) < p).astype(int)
    low, high = heterogeneity_test(X, y, y_proba=p, groups=groups, learners=[]).global_part_interval
    assert low < 0 < high < 0.05


def test_a_difference_of_like_columns_is_found():
    """Neither column tells much by itself: what matters is how they differ."""
    rng = np.random.default_rng(0)
    common, difference = rng.normal(size=(2, 600))
    X = np.column_stack([common + 0.2 * difference, common - 0.2 * difference])
    p = rng.uniform(0.2, 0.8, 600)
    y = (rng.random(600) < expit(np.log(p / (1 - p)) + 0.6 * difference)).astype(int)
    found = heterogeneity_test(X, y, y_proba=binary(p), learners=[])
    assert found.parts["linear, together"] < 1e-4
    assert found.parts["linear"] > 0.01
    assert found.p_value < 1e-3
    assert not found.directions["direction"].str.contains("component").any()


@pytest.mark.parametrize("n", [400, 60])
def test_components_are_uncorrelated_and_no_more_than_items_can_tell(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 12)) @ rng.normal(size=(12, 12))
    X[:, 3] = X[:, 2]
    weight = rng.uniform(0.5, 2, n)
    Z = X @ uncorrelated(X, weight)
    assert Z.shape[1] == min(11, n // 10)
    np.testing.assert_allclose(
        Z.T @ (weight[:, None] * Z) / weight.sum(), np.eye(Z.shape[1]), atol=1e-3
    )


def test_a_tail_that_is_too_heavy_is_stretched_and_no_other():
    """Log p-values of draws fall one for one, unless a sum hangs on a few items."""
    rng = np.random.default_rng(0)
    log_p = -rng.exponential(size=2999)
    seen = np.array([-1.0, -12.0])
    same = _without_heavy_tail((seen, log_p))
    np.testing.assert_array_equal(same[0], seen)
    heavy = np.where(log_p < -2.3, 4 * (log_p + 2.3) - 2.3, log_p)
    seen_now, drawn_now = _without_heavy_tail((seen, heavy))
    assert seen_now[0] == -1.0
    assert -2.3 - 9.7 / 4 * 1.3 < seen_now[1] < -2.3 - 9.7 / 4
    assert -np.quantile(drawn_now, 0.001) == pytest.approx(np.log(1000), rel=0.2)


def test_scores_that_hang_on_half_an_event_are_left_out():
    """Of five items with a chance of 2 % each, one event would be a surprise beyond measure."""
    n = 400
    p = np.full(n, 0.5)
    p[:5] = 0.02
    x = np.zeros(n)
    x[:5] = 1.0
    x[5:12] = 1.0
    rng = np.random.default_rng(0)
    y = (rng.random(n) < p).astype(int)
    X = np.column_stack([x, np.arange(n) < 5, rng.normal(size=n)])
    items = CalibrationSet.check(X, y, y_proba=binary(p), caller="test")
    fit = fit_global(items)
    space = replace(
        fit.space, atom=np.full(n, -1), atom_mass=np.empty(0), basis=np.ones((n, 1)) / np.sqrt(n)
    )
    fit = replace(fit, space=space, proba=binary(p), residuals=space.residual(items.onehot))
    dictionary = Dictionary(FeatureColumns.read(X), log_odds(items.scores.log_proba), space)
    sums = _accumulate(fit, Outcomes.of(fit, items.proba), dictionary, None, rng, False)
    known = {dictionary.words(k): np.isfinite(sums.variance[k, 0]) for k in range(3)}
    assert sum(known.values()) == 2
    assert np.isfinite(sums.squares).sum() == np.isfinite(sums.variance).any(axis=1).sum()


def test_more_columns_than_rows_have_the_ridge_of_the_plain_equations(monkeypatch):
    rng = np.random.default_rng(0)
    A, R, weight = rng.normal(size=(30, 50)), rng.normal(size=(30, 2)), rng.random(30)
    monkeypatch.setattr("hetcal.heterogeneity.residual_learners._RIDGES", np.array([0.3]))
    plain = np.linalg.solve(A.T @ (A * weight[:, None]) + 9 * np.eye(50), (A.T * weight) @ R)
    np.testing.assert_allclose(_ridge(A, R, weight), plain, atol=1e-10)


@pytest.mark.parametrize("alpha", [0, -0.1, 0.5, 1, float("nan")])
def test_levels_that_bound_nothing_are_refused(alpha):
    data = make_problem("calibrated-eight", 50, random_state=0)
    with pytest.raises(ValueError, match="alpha must lie between 0 and 0.5"):
        heterogeneity_test(data.X, data.y, y_proba=data.y_proba, alpha=alpha)
