"""Rows that belong together are found, and independent rows are left in peace."""

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hetcal
from hetcal.cli._app import app
from hetcal.data import CalibrationSet
from hetcal.datasets import list_problems, make_problem
from hetcal.diagnosis.checks import check_dependence
from hetcal.diagnosis.dependence import (
    Cluster,
    Dependence,
    _agreement,
    _by_copies,
    _Forests,
    _is_sorted,
    _mapped,
    _with_groups,
    find_dependence,
)

DATA = os.environ.get("HETCAL_DATA")

pytestmark = pytest.mark.usefixtures("with_small_hybrids")


def panel(seed=0, n_events=60, n_days=15, *, order="day"):
    """Forecasts of some events day by day: the outcome of an event is the same on all its days."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=n_events)
    outcome = rng.random(n_events) < 1 / (1 + np.exp(-strength))
    day, event = (grid.ravel() for grid in np.mgrid[:n_days, :n_events])
    stated = 1 / (1 + np.exp(-strength[event] - 0.1 * rng.normal(size=len(day))))
    table = pd.DataFrame(
        {
            "event": event,
            "day": day,
            "strength": strength[event] + 0.05 * rng.normal(size=len(day)),
            "other": rng.normal(size=len(day)),
            "y": outcome[event].astype(int),
            "p": stated,
        }
    )
    if order == "event":
        table = table.sort_values(["event", "day"], kind="stable")
    elif order == "none":
        table = table.sample(frac=1, random_state=seed)
    return table.reset_index(drop=True)


def items_of(table, features, groups=None):
    given = None if groups is None else table[groups]
    return CalibrationSet.check(
        table[features], table["y"], y_proba=table["p"], groups=given, caller="test"
    )


@pytest.mark.parametrize("seed", range(3))
def test_an_identifier_that_was_left_out_is_named(seed):
    table = panel(seed, order="none")
    items = items_of(table, ["strength", "other"])
    found = find_dependence(items, {"event": table["event"], "day": table["day"]})
    assert found.columns == ("event",)
    assert found.n_clusters == 60
    # The gain was made of rows of the same event.
    assert found.gain > 0.03
    assert found.gain_apart < 0.02


def test_a_feature_that_numbers_events_is_named():
    table = panel(1, order="none")
    assert find_dependence(items_of(table, ["event", "strength", "other"])).columns == ("event",)


def test_the_smooth_function_reads_a_column_with_missing_values():
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = (X[:, 0] > 0).astype(int)
    X[::10, 0] = np.nan
    items = CalibrationSet.check(X, y, y_proba=np.full(120, 0.5), caller="test")
    said = _Forests(items, 0, 1)._smooth(np.arange(120) // 3)[:, 1]
    known = np.isfinite(X[:, 0])
    assert np.mean((said > 0.5)[known] == y[known]) > 0.9


def test_rows_without_weight_say_nothing_of_events():
    table = panel(0, order="none")
    names, others = ["strength", "other"], {"event": table["event"]}
    weight = (table["event"] < 40).astype(float)
    items = CalibrationSet.check(
        table[names], table["y"], y_proba=table["p"], sample_weight=weight, caller="test"
    )
    kept = table[weight > 0]
    alone = find_dependence(items_of(kept, names), {"event": kept["event"]})
    assert find_dependence(items, others) == alone
    assert alone.n_clusters == 40


@pytest.mark.filterwarnings("ignore:.*so uneven:hetcal.WeightWarning")
def test_a_heavy_item_leaves_nothing_to_ask_of_dependence():
    """One item with nearly all the weight is a warning of its own; what is lost hangs on it."""
    table = panel(order="none")
    items = items_of(table, ["event", "strength", "other"])
    assert find_dependence(items) is not None
    weight = np.ones(len(table))
    for heavy, asked in ((1e12, False), (2.0, True)):
        weight[0] = heavy
        weighted = CalibrationSet.check(
            items.X, table["y"], y_proba=table["p"], sample_weight=weight, caller="test"
        )
        assert (find_dependence(weighted) is not None) is asked


@pytest.mark.parametrize("seed", range(3))
def test_weights_by_class_are_no_dependence(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3))
    p = 1 / (1 + np.exp(-2 * X[:, 0]))
    y = (rng.random(300) < p).astype(int)
    weight = np.where(y == 1, 5.0, 1.0)
    items = CalibrationSet.check(X, y, y_proba=p, sample_weight=weight, caller="test")
    assert find_dependence(items) is None


def test_the_smooth_function_says_probabilities_where_a_fold_lacks_a_class():
    events = np.arange(60) // 3
    y = np.where(events == 7, 2, events % 2)
    X = np.random.default_rng(0).normal(size=(60, 2))
    P = np.full((60, 3), 1 / 3)
    items = CalibrationSet.check(X, y, y_proba=P, caller="test")
    said = _Forests(items, 0, 1)._smooth(events)
    np.testing.assert_allclose(said.sum(axis=1), 1)


def test_labels_that_features_explain_do_not_agree_behind_them():
    """Neighbours in x have labels alike; the probabilities do not know x, the forest does."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, 600))
    y = (rng.random(600) < 1 / (1 + np.exp(-2 * x))).astype(int)
    shuffled = rng.permutation(600)
    features = np.column_stack([x, rng.normal(size=600)])[shuffled]
    items = CalibrationSet.check(features, y[shuffled], y_proba=np.full(600, 0.5), caller="test")
    shelf = (np.arange(600) // 5)[shuffled]
    assert _agreement(items.onehot - 0.5, shelf)[1] > 8
    assert find_dependence(items, {"shelf": shelf}) is None


def test_a_feature_tells_events_only_as_far_as_a_smooth_function_agrees(monkeypatch):
    cluster = Cluster(("x0",), np.arange(60) // 3, of_features=True)
    by_forest = Dependence(("x0",), 20, 0.1, 0.0, 5.0, 0.4, 9.0, by_gain=True)
    by_smooth = Dependence(("x0",), 20, 0.1, 0.09, 0.5, 0.1, 1.0, by_gain=False)
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    forests = _Forests(CalibrationSet.check(X, y, y_proba=y * 0.2 + 0.4, caller="test"), 0, 1)

    def compared(*measured):
        left = iter(measured)
        monkeypatch.setattr(forests, "_measured", lambda *_: next(left))
        monkeypatch.setattr(forests, "_other_trees", forests, raising=False)
        return forests.compare(cluster)

    assert compared(by_forest, by_forest, by_smooth) == by_smooth
    assert compared(by_forest, by_smooth) == by_smooth  # other trees do not find it
    assert compared(by_smooth, by_forest) == by_smooth  # nothing was found that could be doubted


@pytest.mark.parametrize("predict", ["_smooth", "_out_of_bag"])
def test_no_label_of_an_items_cluster_tells_of_the_item(predict):
    rng = np.random.default_rng(0)
    X, y, clusters = rng.normal(size=(90, 2)), rng.integers(0, 2, 90), np.arange(90) // 9
    first = clusters == 0
    said = []
    for labels in (y, np.where(first, 1 - y, y)):
        items = CalibrationSet.check(X, labels, y_proba=np.full(90, 0.5), caller="test")
        said.append(getattr(_Forests(items, 0, 1), predict)(clusters))
    assert not np.array_equal(said[0], said[1])
    np.testing.assert_array_equal(said[0][first], said[1][first])


def test_two_columns_that_number_events_together_are_named():
    table = panel(2, n_events=63, order="none")
    table["region"], table["office"] = table["event"] // 3 % 21, table["event"] % 3
    found = find_dependence(items_of(table, ["region", "office", "strength", "other"]))
    assert set(found.columns) <= {"region", "office"}
    assert "region" in found.columns


@pytest.mark.parametrize("copy_of_label", [True, False])
def test_columns_that_spell_the_label_out_number_no_events(copy_of_label):
    """The log of a language model has the truth beside the answer, or whether it was right."""
    rng = np.random.default_rng(0)
    n = 600
    topic, answer, truth = rng.integers(0, [7, 3, 3], (n, 3)).T
    truth = np.where(rng.random(n) < 0.3, answer, truth)
    table = pd.DataFrame({"topic": topic, "answer": answer, "other": rng.normal(size=n)})
    table["y"], table["p"] = (answer == truth).astype(int), 0.5
    items = items_of(table, ["topic", "answer", "other"])
    beside = {"right": table["y"]} if copy_of_label else {"truth": truth}
    assert find_dependence(items, beside) is None


def test_categories_are_no_events_behind_a_model_that_is_far_too_sure():
    rng = np.random.default_rng(0)
    n = 1500
    a, b, seen = rng.integers(0, 8, n), rng.integers(0, 8, n), rng.normal(size=n)
    truth = 1 / (1 + np.exp(-seen - rng.normal(size=(8, 8))[a, b]))
    table = pd.DataFrame({"a": a, "b": b, "other": seen})
    table["y"], table["p"] = (rng.random(n) < truth).astype(int), np.where(seen > 0, 0.999, 0.001)
    assert find_dependence(items_of(table, ["a", "b", "other"])) is None


def test_four_columns_that_number_events_together_are_named():
    table = panel(4, n_events=60, n_days=5, order="none")
    codes = np.random.default_rng(0).choice(4**4, 60, replace=False)[table["event"]]
    names = [*"abcd"]
    for j, name in enumerate(names):
        table[name] = codes // 4**j % 4
    assert find_dependence(items_of(table, [*names, "other"])).columns == tuple(names)


@pytest.mark.parametrize("seed", range(2))
def test_a_rule_on_four_categories_is_no_list_of_events(seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.integers(0, 3, (300, 4)), columns=[*"abcd"])
    table["other"], table["p"] = rng.normal(size=300), 0.5
    table["y"] = (table[[*"abcd"]].sum(axis=1) % 2).astype(int)
    assert find_dependence(items_of(table, [*"abcd", "other"])) is None


def test_neighbouring_rows_of_one_event_are_noticed():
    table = panel(3, order="event")
    found = find_dependence(items_of(table, ["strength", "other"]))
    assert found.columns == ()


def test_known_groups_are_no_news():
    table = panel(4, order="none")
    items = items_of(table, ["strength", "other"], groups="event")
    assert find_dependence(items, {"event": table["event"]}) is None


def test_labels_that_agree_are_noticed_where_nothing_can_be_learned_from_it():
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(120), 5)
    shift = rng.normal(size=120)[unit] * 1.5
    p = rng.uniform(0.2, 0.8, size=600)
    y = (rng.random(600) < 1 / (1 + np.exp(-np.log(p / (1 - p)) - shift))).astype(int)
    items = CalibrationSet.check(rng.normal(size=(600, 2)), y, y_proba=p, caller="test")
    found = find_dependence(items, {"unit": unit})
    assert found.columns == ("unit",)
    assert found.agreement > 0.1


@pytest.mark.parametrize("order", ["as drawn", "label", "probability", "feature"])
def test_independent_rows_are_left_in_peace_however_they_are_sorted(order):
    alarms = []
    for name in list_problems(half="develop")[::4]:
        problem = make_problem(name, 300, random_state=len(alarms))
        X, y, P = problem.X, problem.y, problem.y_proba
        rows = {
            "as drawn": np.arange(len(y)),
            "label": np.argsort(y, kind="stable"),
            "probability": np.argsort(P[:, 0], kind="stable"),
            "feature": pd.DataFrame(X).iloc[:, 0].reset_index(drop=True).sort_values().index,
        }[order]
        items = CalibrationSet.check(
            X.iloc[rows] if hasattr(X, "iloc") else X[rows],
            y[rows],
            y_proba=P[rows],
            groups=None if problem.groups is None else problem.groups[rows],
            classes=np.arange(P.shape[1]),
            caller="test",
        )
        alarms.append(find_dependence(items) is not None)
    assert sum(alarms) == 0
    assert len(alarms) >= 9


def test_advice_on_dependent_rows_recommends_nothing_and_names_the_column():
    table = panel(5, order="none")
    given = {"y_proba": table["p"], "identifiers": table[["event"]]}
    advice = hetcal.advise(table[["strength", "other"]], table["y"], **given)
    (warning,) = [w for w in advice.warnings if w.code == "dependent-rows"]
    assert "'event'" in warning.text
    assert "--groups event" in warning.text
    assert advice.verdict == "collect more data"
    assert str(advice).startswith("Verdict: group the rows that belong together first")
    assert advice.recommended == "uncalibrated"
    assert advice.expected_gain is None
    assert (advice.certainty.state, advice.certainty.items_to_settle) == ("open", None)
    grouped = hetcal.advise(
        table[["strength", "other"]], table["y"], y_proba=table["p"], groups=table["event"]
    )
    assert "dependent-rows" not in {w.code for w in grouped.warnings}


def test_the_order_of_rows_alone_does_not_void_advice_where_groups_are_given():
    by_order = Dependence((), 120, 0.032, 0.024, 3.3, 0.03, 2.0, by_gain=True)
    assert check_dependence(by_order).voids
    assert "--groups COLUMN; one value per row" in check_dependence(by_order).text
    assert not check_dependence(by_order, grouped=True).voids
    by_column = replace(by_order, columns=("race",))
    assert check_dependence(by_column, grouped=True).voids
    assert check_dependence(replace(by_order, near_copies=True), grouped=True).voids


@pytest.mark.skipif(not DATA, reason="HETCAL_DATA does not name a data folder")
def test_elections_are_recognised_without_the_column_that_numbers_them():
    """One row per day, candidate and version of the model: 72 races in all."""
    table = pd.read_csv(Path(DATA) / "forecasts-governors.csv.gz").sample(1000, random_state=0)
    features = ["state", "party", "special", "days_before", "projected_voteshare", "year"]
    items = CalibrationSet.check(
        table[features], table["y_win"], y_proba=table["p_win"], caller="test"
    )
    warning = check_dependence(find_dependence(items))
    assert warning.voids
    assert "'state'" in warning.text
    # Both gains are shown: with rows of the same race, and without.
    assert re.search(r"gains 0\.\d+ .* seen such rows, and (gains|loses) 0\.\d+", warning.text)


def test_a_loss_of_the_forest_is_called_a_loss():
    found = Dependence(("event",), 20, -0.005, -0.02, 4.0, 0.1, 1.0, by_gain=True)
    text = check_dependence(found).text
    assert "loses 0.005 in Brier score over the probabilities when it has seen such rows" in text
    assert "and loses 0.020 when it has not" in text


def test_identifiers_are_those_of_the_rows_that_count(monkeypatch):
    asked = lambda items, **given: given["identifiers"]  # noqa: E731
    monkeypatch.setattr(sys.modules["hetcal.diagnosis.advise"], "advise_on", asked)
    table = panel(6, n_events=10, n_days=5)
    weight = (table["event"] >= 4).astype(float)
    given = {"y_proba": table["p"], "sample_weight": weight, "identifiers": table[["event"]]}
    found = hetcal.advise(table[["strength"]], table["y"], **given)["event"]
    kept = table["event"][weight > 0]
    assert pd.crosstab(found, kept.to_numpy()).gt(0).sum().tolist() == [1] * 6


def test_identifiers_are_a_table_or_columns_by_name():
    table = panel(6)
    with pytest.raises(TypeError, match="identifiers must be a table or a dict"):
        hetcal.advise(table[["strength"]], table["y"], y_proba=table["p"], identifiers=[1, 2])
    with pytest.raises(ValueError, match="event"):
        hetcal.advise(
            table[["strength"]], table["y"], y_proba=table["p"], identifiers={"event": [1, 2]}
        )


def test_the_command_tries_columns_that_are_no_features(tmp_path):
    file = tmp_path / "panel.csv"
    panel(7, order="none").to_csv(file, index=False)
    arguments = ["diagnose", str(file), "--label", "y", "--proba", "p", "--drop", "event,day"]
    result = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "report.html")])
    assert result.exit_code == 0, result.output
    shown = result.output
    assert "How sure: open" in shown
    first = shown.split("Do this first:")[1].split()
    assert first[:2] == ["hetcal", "diagnose"]
    assert first[first.index("--groups") + 1] == "event"
    assert "uncalibrated" not in shown  # no table of figures that rest on independence


@pytest.mark.parametrize("seed", range(4))
def test_noise_that_many_groups_share_is_no_event(seed):
    """Groups link its values to nearly all rows, of which a forest may then see nothing."""
    problem = hetcal.datasets.make_hidden_heterogeneity(600, heterogeneity=0.5, random_state=seed)
    rng = np.random.default_rng(seed)
    items = CalibrationSet.check(
        problem.X,
        problem.y,
        y_proba=problem.y_proba,
        groups=rng.integers(0, 200, 600),
        caller="test",
    )
    assert find_dependence(items, {"day": rng.integers(0, 300, 600)}) is None


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_agreement_of_independent_labels_is_about_one_standard_error(n_classes):
    """Columns of a row's residuals sum to 0: they are no further evidence."""
    rng = np.random.default_rng(0)
    clusters = rng.integers(0, 60, 300)
    chances = rng.dirichlet(np.ones(n_classes), 300)
    errors = []
    for _ in range(400):
        labels = (rng.random((300, 1)) > chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
        errors.append(_agreement(np.eye(n_classes)[labels] - chances, clusters)[1])
    assert np.std(errors) == pytest.approx(1, abs=0.15)
    assert abs(np.mean(errors)) < 0.2


def test_a_value_of_most_rows_is_no_event():
    """Capital gains are 0 for nine of ten: a forest without those rows has seen next to nothing."""
    numbers = np.r_[np.zeros(900, dtype=int), np.repeat(np.arange(1, 51), 2)]
    assert Cluster(("capital gains",), numbers).rows_per_value == np.inf
    assert Cluster(("event",), np.repeat(np.arange(50), 20)).rows_per_value == 20


@pytest.mark.parametrize(
    ("column", "is_sorted"),
    [
        (np.arange(100) ** 2, True),
        (-np.arange(100.0), True),
        (np.random.default_rng(0).normal(size=100), False),
        (np.repeat([1, 2, 0, 4, 3], 20), True),
        (np.repeat([1, 2, 0, 4, 3, 1], 20), True),  # one value in two stretches
        (np.repeat([1, 2, 0, 4, 3, 1, 2], 20), False),
        (np.where(np.arange(100) < 50, np.nan, np.arange(100)), True),
        (np.ones(100), False),
    ],
)
def test_rows_in_the_order_of_a_column_or_with_its_values_in_stretches_are_sorted(
    column, is_sorted
):
    assert _is_sorted(column.astype(float)) == is_sorted


def test_a_large_part_of_the_rows_may_be_one_event_unless_groups_link_it_to_more():
    cluster = Cluster(("event",), np.r_[np.zeros(60, dtype=int), np.arange(1, 241)])
    own = np.arange(300)
    np.testing.assert_array_equal(_with_groups(cluster, own).numbers, cluster.numbers)
    assert _with_groups(cluster, np.where(own % 2, own, 0)) is None


def test_probabilities_are_read_as_how_often_each_class_came_with_them():
    stated, often = np.repeat([0.45, 0.55], 100), np.repeat([0.03, 0.98], 100)
    y = np.r_[np.arange(100) < 3, np.arange(100) < 98].astype(int)
    items = CalibrationSet.check(None, y, y_proba=stated, caller="test")
    np.testing.assert_allclose(_mapped(items), np.column_stack([1 - often, often]))


@pytest.mark.parametrize(("outcome", "is_event"), [("of the event", True), ("of the place", False)])
def test_copies_are_events_where_labels_agree_more_than_those_of_the_next_rows(outcome, is_event):
    rng = np.random.default_rng(0)
    place = np.repeat(rng.uniform(-1, 1, (200, 2)), 3, axis=0)
    X = place + 1e-4 * rng.normal(size=(600, 2))
    y = np.repeat(rng.integers(0, 2, 200), 3)
    if outcome == "of the place":
        y = (rng.random(600) < 1 / (1 + np.exp(-20 * X[:, 0]))).astype(int)
    items = CalibrationSet.check(X, y, y_proba=np.full(600, 0.5), caller="test")
    assert bool(_by_copies(items, 0)) == is_event


@pytest.mark.parametrize("n", [500, 1500])
@pytest.mark.parametrize("seed", range(3))
def test_a_category_with_a_strong_effect_is_no_event(seed, n):
    rng = np.random.default_rng([seed, n])
    level, seen = rng.integers(0, 60, n), rng.normal(size=n)
    truth = 1 / (1 + np.exp(-seen - 2 * rng.normal(size=60)[level]))
    table = pd.DataFrame({"shop": [f"shop {k}" for k in level], "other": seen})
    table["y"], table["p"] = (rng.random(n) < truth).astype(int), 1 / (1 + np.exp(-seen))
    assert find_dependence(items_of(table, ["shop", "other"])) is None


@pytest.mark.parametrize("n", [500, 1500])
@pytest.mark.parametrize("seed", range(3))
def test_counts_with_a_steep_effect_are_no_events(seed, n):
    rng = np.random.default_rng([seed, n])
    table = pd.DataFrame(
        rng.poisson(np.exp(rng.normal(size=(n, 1)) / 2), (n, 4)), columns=[*"abcd"]
    )
    truth = 1 / (1 + np.exp(-4.0 * (table["a"] - table["b"])))
    table["y"], table["p"] = (rng.random(n) < truth).astype(int), 0.5
    assert find_dependence(items_of(table, [*"abcd"])) is None


@pytest.mark.parametrize("seed", [21, 32])
def test_the_chance_of_the_trees_is_no_dependence(seed):
    """Rows in random order; the forest of one seed loses by blocks of rows, that of others not."""
    rng = np.random.default_rng(seed)
    often = 1 / np.arange(1, 301)
    level, seen = rng.choice(300, 1000, p=often / often.sum()), rng.normal(size=1000)
    truth = 1 / (1 + np.exp(-seen - 4 * rng.normal(size=300)[level]))
    table = pd.DataFrame({"shop": pd.Categorical(level.astype(str)), "other": seen})
    table["noise"] = rng.normal(size=1000)
    table["y"], table["p"] = (rng.random(1000) < truth).astype(int), 1 / (1 + np.exp(-seen))
    assert find_dependence(items_of(table, ["shop", "other", "noise"])) is None


@pytest.mark.parametrize("seed", [10, 11, 12])
def test_a_rounded_number_with_a_bent_effect_is_no_event(seed):
    rng = np.random.default_rng([seed, 300])
    table = pd.DataFrame(rng.normal(size=(300, 4)).round(1), columns=[*"abcd"])
    truth = 1 / (1 + np.exp(-5 * np.sin(3 * table["a"]) - 2 * table["b"]))
    table["y"] = (rng.random(300) < truth).astype(int)
    table["p"] = 1 / (1 + np.exp(-table["b"]))
    assert find_dependence(items_of(table, [*"abcd"])) is None


@pytest.mark.filterwarnings("ignore::hetcal.ColumnOrderWarning")
def test_rows_that_belong_together_are_the_first_warning():
    """The order of the columns is judged as if rows were independent."""
    table = panel(5, order="none")
    given = {"y_proba": 1 - table["p"], "identifiers": table[["event"]]}
    advice = hetcal.advise(table[["strength", "other"]], table["y"], **given)
    codes = [warning.code for warning in advice.warnings]
    assert codes[0] == "dependent-rows"
    assert "column-order" in codes
