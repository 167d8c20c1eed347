"""Named sub-populations: found where they are, measured on others, none where there is none."""

from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom, binomtest, norm

from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.heterogeneity import HiddenHeterogeneity, find_subgroups
from hetcal.heterogeneity.condition_pairs import ConditionPairs
from hetcal.heterogeneity.conditions import Condition, candidate_conditions, columns_of
from hetcal.heterogeneity.poisson_binomial import poisson_binomial
from hetcal.heterogeneity.subgroups import COLUMNS, _words, report_groups


def loans(n=3000, seed=0):
    """The model says 0.5 for everyone; young people of the north default more often."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "region": rng.choice(["north", "south", "east"], n),
            "income": rng.normal(30, 8, n),
        }
    )
    inside = (table["age"] <= 40) & (table["region"] == "north")
    y = np.where(rng.uniform(size=n) < np.where(inside, 0.9, 0.5), "default", "paid")
    return table, y, np.full(n, 0.5), inside


def test_the_planted_group_is_named():
    table, y, p, inside = loans()
    # "default" is the first class, so a single column is the probability of "paid".
    found = find_subgroups(table, y, y_proba=p)
    assert list(found.columns) == COLUMNS
    first = found.iloc[0]
    assert "region = north" in first["rule"]
    assert "age <= " in first["rule"]
    assert first["class"] == "paid"
    assert first["predicted"] == pytest.approx(0.5)
    assert first["low"] < first["observed"] < first["high"] < 0.25
    assert first["gap"] == pytest.approx(first["observed"] - 0.5)
    share = inside.mean()
    assert first["gain"] == pytest.approx(2 * share * 0.4**2, rel=0.35)
    assert found["gain"].is_monotonic_decreasing


def test_what_only_two_columns_together_show_is_named():
    """Neither condition says anything alone. Seeds that had no part in choosing the search."""
    found = 0
    for seed in range(200, 212):
        rng = np.random.default_rng(seed)
        X, p = rng.normal(size=(1000, 6)), rng.uniform(0.1, 0.9, 1000)
        odds = np.log(p / (1 - p)) + np.sign(X[:, 0] * X[:, 1])
        y = rng.random(1000) < 1 / (1 + np.exp(-odds))
        rules = find_subgroups(X, y, y_proba=p, random_state=seed)["rule"]
        found += any("x0" in rule and "x1" in rule for rule in rules)
    assert found >= 11


def test_pairs_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    n, K = 300, 3
    columns = columns_of(rng.normal(size=(n, 2)).round(1))
    conditions = candidate_conditions(columns, np.arange(n))
    masks = np.column_stack([condition.mask(columns) for condition in conditions])
    weight, spread = rng.uniform(0.5, 2, n), rng.uniform(0.1, 0.25, (n, K))
    residuals = rng.normal(0, 0.4, (n, K)) + 0.8 * (masks[:, [3]] & masks[:, [22]])
    found = ConditionPairs.of(conditions, masks, spread, weight, 20).standing_out(residuals)
    kinds = [(c.column, c.kind) for c in conditions]
    allowed = [
        (a, b)
        for a, b in combinations(range(len(conditions)), 2)
        if kinds[a] != kinds[b] and (masks[:, a] & masks[:, b]).sum() >= 20
    ]

    def surely(inside, k):
        total = abs(weight[inside] @ residuals[inside, k])
        error = np.sqrt(max(weight[inside] ** 2 @ spread[inside, k], 0.25))
        return total / error, max(total - 2 * error, 0) ** 2 / weight[inside].sum()

    alone = [max(surely(mask, k)[1] for k in range(K)) for mask in masks.T]
    expected = []
    for a, b in allowed:
        for k in range(K):
            z, repair = surely(masks[:, a] & masks[:, b], k)
            stands_out = z > np.sqrt(2 * np.log(K * len(allowed)))
            if stands_out and repair > 1.1 * max(alone[a], alone[b]):
                expected.append((repair, (a, b), k))
    expected = sorted(expected, reverse=True)[:12]
    assert len(expected) > 2
    assert [rule[1:] for rule in found] == [rule[1:] for rule in expected]
    np.testing.assert_allclose([rule[0] for rule in found], [rule[0] for rule in expected])


def test_measured_on_items_that_had_no_part_in_the_search():
    table, y, p, _ = loans()
    found = find_subgroups(table, y, y_proba=p)
    inside = table.eval(found["rule"][0].replace("region = north", "region == 'north'"))
    assert abs(found["n"][0] - inside.sum() / 2) < 4 * np.sqrt(inside.sum())
    assert found["n"][0] < inside.sum()


@pytest.mark.parametrize("K", [2, 4])
def test_none_when_there_is_none(K):
    alarms = 0
    for seed in range(8):
        data = make_hidden_heterogeneity(400, n_classes=K, heterogeneity=0, random_state=seed)
        alarms += len(find_subgroups(data.frame(), data.y, y_proba=data.y_proba)) > 0
    assert alarms <= 2


def test_what_a_global_map_repairs_is_flagged():
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    y = (rng.uniform(size=4000) < 0.3).astype(int)
    biased = find_subgroups(pd.DataFrame({"x": x}), y, y_proba=np.full(4000, 0.6))
    assert biased["global_map_repairs"].all()
    table, y, p, _ = loans()
    assert not find_subgroups(table, y, y_proba=p)["global_map_repairs"].iloc[0]


def test_what_a_global_map_leaves_is_tested_for_all_rules_at_once():
    """A strong shift gives many rules; that one of them sticks out by chance is no finding."""
    alarms = 0
    for seed in range(12):
        data = make_hidden_heterogeneity(400, heterogeneity=0, random_state=seed)
        odds = data.y_proba * [np.exp(6.0), 1.0]
        P = odds / odds.sum(axis=1, keepdims=True)
        found = find_subgroups(data.X, data.y, y_proba=P)
        assert len(found) > 1
        alarms += not found["global_map_repairs"].all()
    assert alarms <= 1


def test_by_reports_every_group_of_the_user(tmp_path):
    table, y, p, _ = loans(1000)
    hidden = HiddenHeterogeneity(n_null=0, learners=[], radius=1.0).fit(table, y, y_proba=p)
    report = hidden.subgroups(by="region")
    assert sorted(report["rule"]) == ["region = east", "region = north", "region = south"]
    for _, row in report.iterrows():
        inside = table["region"] == row["rule"].split(" = ")[1]
        assert row["n"] == inside.sum()
        assert row["observed"] == pytest.approx((y[inside] == "paid").mean())
    both = hidden.subgroups(by=["region", "age"])
    assert len(both) == 12
    assert both["n"].sum() == 1000
    with pytest.raises(ValueError, match=r"columns that X does not have: \['city'\]"):
        hidden.subgroups(by=["city"])


@pytest.mark.parametrize("K", [2, 3])
def test_numbers_of_a_group_by_hand(K):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"region": rng.choice(["north", "south"], 120)})
    P = rng.dirichlet(np.ones(K), 120)
    y = np.array([rng.choice(K, p=p) for p in P])
    hidden = HiddenHeterogeneity(n_null=0, learners=[], radius=1.0).fit(table, y, y_proba=P)
    report = hidden.subgroups(by="region").set_index(["rule", "class"])
    for (rule, k), row in report.iterrows():
        inside = (table["region"] == rule.split(" = ")[1]).to_numpy()
        residual = (y == k)[inside] - P[inside, k]
        said = P[inside, k]
        error = np.sqrt((said * (1 - said)).sum()) / inside.sum()
        repair = K / (K - 1) * inside.mean() * (residual.mean() ** 2 - error**2)
        assert row["gain"] == pytest.approx(repair)
        z = abs(residual.mean()) / error  # the p-value is exact; this is its limit
        assert row["p_value"] == pytest.approx(2 * norm.sf(z), abs=0.02)
        low, high = proportion_interval((y == k)[inside].sum(), inside.sum())
        assert (row["low"], row["high"]) == pytest.approx((low, high))


def proportion_interval(successes, n):
    found = binomtest(int(successes), int(n)).proportion_ci(method="wilson")
    return found.low, found.high


def test_estimator_takes_other_items_too():
    table, y, p, _ = loans(1500)
    hidden = HiddenHeterogeneity(n_null=0, learners=[], radius=1.0).fit(table, y, y_proba=p)
    again = hidden.subgroups(table, p)
    pd.testing.assert_frame_equal(again, hidden.subgroups())
    new_table, new_y, new_p, _ = loans(3000, seed=5)
    assert "region = north" in hidden.subgroups(new_table, new_p, new_y)["rule"][0]
    with pytest.raises(ValueError, match="Pass y for other items"):
        hidden.subgroups(new_table, new_p)


def test_groups_stay_in_one_half():
    table, y, p, _ = loans(1000)
    groups = np.arange(1000) // 500  # two groups: one searches, the other measures
    found = find_subgroups(table, y, y_proba=p, groups=groups)
    assert (found["n"] <= 500).all()


def test_conditions_cover_levels_thresholds_and_frequent_values():
    table = pd.DataFrame(
        {
            "kind": pd.Categorical(["a", "b", None, "a"] * 25),
            "gain": np.r_[np.zeros(80), np.arange(1, 21)],
            "flag": np.arange(100) % 2 == 0,
        }
    )
    columns = columns_of(table)
    conditions = candidate_conditions(columns, np.arange(100))
    words = {str(c) for c in conditions}
    assert {"kind = a", "kind = b", "flag = False", "gain > 0", "gain > 10"} <= words
    assert not any("gain > 20" in w for w in words)
    for condition in conditions:
        mask = condition.mask(columns)
        assert 0 < mask.sum() < 100
        if condition.kind == "=":
            there = (table[condition.name] == condition.value).to_numpy(bool)
            np.testing.assert_array_equal(mask, there)


def test_array_columns_are_called_x0_x1():
    assert [c.name for c in columns_of(np.zeros((3, 2)))] == ["x0", "x1"]


def test_two_cuts_of_one_column_read_as_a_range():
    conditions = (
        Condition(1, "age", "<=", 40.0, 40.0),
        Condition(0, "region", "=", "north", 2.0),
        Condition(1, "age", ">", 25.5, 25.5),
    )
    assert _words(conditions) == "region = north and 25.5 < age <= 40"


def test_the_number_of_events_has_its_exact_distribution():
    p = np.random.default_rng(0).uniform(size=9)
    law = np.zeros(10)
    for outcome in np.ndindex(*[2] * 9):
        law[sum(outcome)] += np.prod(np.where(outcome, p, 1 - p))
    np.testing.assert_allclose(poisson_binomial(p), law, atol=1e-14)
    many = poisson_binomial(np.full(500, 0.03))
    np.testing.assert_allclose(many, binom.pmf(np.arange(501), 500, 0.03), atol=1e-13)


def test_rare_events_are_no_finding():
    """Ten groups in which all is right, with two events in a hundred; it was 77 draws of 100."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = (rng.random(1000) < 0.02).astype(int)
        table = pd.DataFrame({"site": np.arange(1000) % 10}).astype(str)
        items = CalibrationSet.check(
            table, y, y_proba=np.tile([0.98, 0.02], (1000, 1)), classes=[0, 1], caller="test"
        )
        alarms += bool((report_groups(items, table, "site")["adjusted_p_value"] <= 0.05).any())
    assert alarms <= 8


def test_cuts_far_out_are_tried_where_the_test_points_there():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(4000, 3)), columns=list("abc"))
    q = np.where(X["b"] > 1.85, 0.95, 0.5)
    found = find_subgroups(X, (rng.random(4000) < q).astype(int), y_proba=np.full(4000, 0.5))
    assert float(found["rule"][0].removeprefix("b > ")) == pytest.approx(1.85, abs=0.1)


@pytest.mark.parametrize("as_table", [pd.DataFrame, pl.DataFrame, None])
def test_truth_values_are_levels(as_table):
    vip = np.array([True, False, True, True])
    table = vip[:, None] if as_table is None else as_table({"x0": vip})
    conditions = candidate_conditions(columns_of(table), np.arange(4))
    assert [str(condition) for condition in conditions] == ["x0 = False", "x0 = True"]
    masks = [condition.mask(columns_of(table)) for condition in conditions]
    np.testing.assert_array_equal(masks, [~vip, vip])
