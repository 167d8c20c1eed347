"""Metrics of groups: each against the same metric of the group's rows, and bounds that hold."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hetcal.metrics import (
    accuracy,
    brier_score,
    evaluate,
    expected_cost,
    log_loss,
    smooth_calibration_error,
)
from hetcal.metrics.bootstrap import resample_counts

RNG = np.random.default_rng(0)
N = 300
P = RNG.uniform(size=N)
LETTER = RNG.choice(["a", "b", "c"], size=N)
Y = (RNG.random(N) < np.where(LETTER == "b", 0.5 * P, P)).astype(int)
W = RNG.uniform(0.5, 2, N)
QUICK = {"n_bootstrap": 30}
SMOOTH = "smooth_calibration_error_binary"


def rows(table, part, metric):
    return table[table["part"] == part].loc[[metric]].set_index("group")


def test_groups_have_the_metrics_of_their_rows():
    cost = [[0, 1], [5, 0]]
    table = evaluate(Y, P, sample_weight=W, groups_by=LETTER, cost_matrix=cost, **QUICK)
    assert table.columns.tolist() == ["by", "part", "group", "n", "value", "low", "high"]
    singles = {
        "brier_score": brier_score,
        "log_loss": log_loss,
        "accuracy": accuracy,
        "expected_cost": lambda *a, **k: expected_cost(*a, cost_matrix=cost, **k),
        SMOOTH: lambda *a, **k: smooth_calibration_error(*a, kind="binary", **k),
        "observed_minus_predicted": lambda y, p, sample_weight: np.average(
            y - p, weights=sample_weight
        ),
    }
    for name, metric in singles.items():
        of_groups, everyone = rows(table, "group", name), rows(table, "overall", name)
        for letter in "abc":
            inside = letter == LETTER
            found = of_groups.loc[letter]
            expected = metric(Y[inside], P[inside], sample_weight=W[inside])
            assert found["value"] == pytest.approx(expected), name
            assert 0 <= found["low"] < found["value"] < found["high"] or "minus" in name
            assert found["n"] == inside.sum()
        assert everyone["value"].item() == pytest.approx(metric(Y, P, sample_weight=W))
    assert set(table.index) == {*singles, "minimum_detectable_error"}


def test_worst_and_gap_are_read_off_the_groups():
    table = evaluate(Y, P, groups_by=pd.Series(LETTER, name="letter"), **QUICK)
    assert set(table["by"]) == {"", "letter"}
    for name, worst_of in (("brier_score", "idxmax"), ("accuracy", "idxmin")):
        of_groups = rows(table, "group", name)
        worst = rows(table, "worst", name)
        assert worst.index.item() == getattr(of_groups["value"], worst_of)()
        assert worst["value"].item() == of_groups["value"][worst.index.item()]
        for end in ("low", "high"):
            assert worst[end].item() == getattr(of_groups[end], worst_of[3:])()
    off = rows(table, "group", "observed_minus_predicted")["value"]
    worst = rows(table, "worst", "observed_minus_predicted")
    assert (worst.index.item(), worst["value"].item()) == ("b", off.abs().max())
    gap = rows(table, "gap", "observed_minus_predicted")
    assert gap["value"].item() == pytest.approx(off.max() - off.min())
    assert gap.index.item() == f"{off.idxmax()} - {off.idxmin()}"
    assert 0 < gap["low"].item() < gap["value"].item() < gap["high"].item()


def test_smooth_errors_of_two_groups_may_both_be_noise():
    table = evaluate(Y, P, groups_by=LETTER == "b", **QUICK)
    of_groups, gap = (rows(table, part, SMOOTH) for part in ("group", "gap"))
    halves = of_groups["high"] - of_groups["value"]
    assert (gap["high"] - gap["value"]).item() == pytest.approx(halves.sum())


def test_bounds_against_a_loop_over_resamples():
    """Labels that are alike in a group vary less than the probabilities say, costs do not."""
    p, cost = 0.7 + 0.2 * P, np.array([[0, 1], [0.25, 0]])
    group = np.where(LETTER == "c", "a", LETTER)
    y = (group == "b").astype(int)
    decided = (np.column_stack([1 - p, p]) @ cost).argmin(axis=1)
    losses = {"expected_cost": cost[y, decided], "brier_score": 2 * (y - p) ** 2}
    table = evaluate(y, p, groups_by=group, cost_matrix=cost, n_bootstrap=40)
    counts = np.hstack(list(resample_counts(np.arange(N), 40, 0)))
    for name, loss in losses.items():
        drawn, error, hidden = [], [], 0.0
        for letter in "ab":
            inside = np.flatnonzero(group == letter)
            times, n = counts[inside], len(inside)
            drawn.append(loss[inside] @ times / times.sum(axis=0))
            of_resamples = drawn[-1].std(ddof=1) * np.sqrt(n / (n - 1))
            error.append(max(of_resamples, error_if_right(p[inside]) * (name == "brier_score")))
            hidden += error[-1] ** 2 - of_resamples**2
        farthest = np.max([farness(one) for one in drawn], axis=0)
        found, gap = rows(table, "group", name), rows(table, "gap", name)
        width = found["high"] - found["value"]
        np.testing.assert_allclose(width, np.quantile(farthest, 0.95) * np.array(error))
        between = drawn[0] - drawn[1]
        width = np.quantile(farness(between), 0.95) * np.sqrt(between.var(ddof=1) + hidden)
        assert (gap["high"] - gap["value"]).item() == pytest.approx(width)


def farness(drawn):
    return np.abs(drawn - drawn.mean()) / drawn.std(ddof=1)


def error_if_right(p):
    """Return the standard error of the Brier score, were p right."""
    share, losses = np.stack([1 - p, p]), 2 * np.stack([p**2, (1 - p) ** 2])
    mean = (share * losses).sum() / len(p)
    return np.sqrt((share * (losses - mean) ** 2).sum()) / len(p)


def test_bounds_count_how_many_groups_are_looked_at(monkeypatch):
    without_smooth_errors(monkeypatch)
    few = evaluate(Y, P, groups_by=LETTER, n_bootstrap=300)
    columns = {"letter": LETTER} | {f"noise {j}": RNG.permutation(LETTER) for j in range(5)}
    many = evaluate(Y, P, groups_by=columns, n_bootstrap=300)
    alone, among = (
        rows(t[t["by"].isin(["group", "letter"])], part, "observed_minus_predicted")
        for t, part in ((few, "group"), (many, "group"))
    )
    assert (among["high"] - among["low"] > 1.1 * (alone["high"] - alone["low"])).all()
    assert (among["value"] == alone["value"]).all()


def test_minimum_detectable_error_is_found_in_four_of_five_samples():
    p = np.full(400, 0.3)
    table = evaluate([0, 1] * 200, p, groups_by=np.arange(400) % 2, n_bootstrap=0)
    error = rows(table, "group", "minimum_detectable_error").loc[0, "value"]
    happened = np.random.default_rng(1).binomial(200, 0.3 + error, size=4000) / 200
    found = np.abs(happened - 0.3) / np.sqrt(0.3 * 0.7 / 200) > 1.96
    assert found.mean() == pytest.approx(0.8, abs=0.03)


def test_repeated_rows_as_one_group_of_rows_say_what_the_rows_say():
    five = np.repeat(np.arange(N), 5)
    alone = evaluate(Y, P, groups_by=LETTER, n_bootstrap=50)
    grouped = evaluate(Y[five], P[five], groups=five, groups_by=LETTER[five], n_bootstrap=50)
    columns = ["value", "low", "high"]
    smooth = alone.index.str.startswith("smooth") | (alone.index == "minimum_detectable_error")
    # The same resamples in another order of the groups of rows ("10" comes before "2").
    np.testing.assert_allclose(grouped[columns][~smooth], alone[columns][~smooth], atol=0.06)
    one, other = (t.loc["minimum_detectable_error", "value"] for t in (alone, grouped))
    np.testing.assert_allclose(one, other, rtol=0.2)


def test_a_group_in_which_nothing_happened_is_not_certain():
    """Its resamples vary by the spread of p alone, a hundredth of the truth."""
    p = np.concatenate([np.full(30, 0.02), P])
    y = np.concatenate([np.zeros(30, dtype=int), Y])
    table = evaluate(y, p, groups_by=["silent"] * 30 + ["other"] * N, n_bootstrap=100)
    silent = rows(table, "group", "observed_minus_predicted").loc["silent"]
    assert silent["value"] == pytest.approx(-0.02)
    assert silent["high"] > 0.02
    assert rows(table, "group", "accuracy").loc["silent", "low"] < 0.97
    # One event of thirty would have made the Brier score 0.065.
    assert rows(table, "group", "brier_score").loc["silent", "high"] > 0.065


def test_small_groups_have_values_and_no_bounds():
    group = np.where(np.arange(N) < 19, "few", LETTER)
    table = evaluate(Y, P, groups_by=group, **QUICK)
    few = rows(table, "group", "brier_score").loc["few"]
    assert np.isfinite(few["value"])
    assert np.isnan([few["low"], few["high"]]).all()
    summary = table[table["part"].isin(["worst", "gap"])]
    assert not summary["group"].str.contains("few").any()
    assert np.isfinite(summary[["low", "high"]]).all(axis=None)


def test_groups_of_one_row_that_no_resample_holds():
    group = np.where(np.arange(N) < 5, np.arange(N).astype(str), LETTER)
    table = evaluate(Y, P, groups_by=group, n_bootstrap=2)
    alone = table[(table["part"] == "group") & (table["n"] == 1)].loc["brier_score"]
    np.testing.assert_allclose(sorted(alone["value"]), sorted(2 * (Y - P)[:5] ** 2))
    assert evaluate(Y, P, groups_by=group, n_bootstrap=0)[["low", "high"]].isna().all(axis=None)


def test_several_columns_methods_containers_and_missing_values():
    letters = [None, *LETTER[1:]]
    frame = pl.DataFrame({"letter": letters, "half": P > 0.5})
    table = evaluate(Y, {"one": P, "other": P**2}, groups_by=frame, **QUICK)
    assert set(table["method"]) == {"one", "other"}
    assert set(table["by"]) == {"", "letter", "half"}
    assert "(missing)" in set(table["group"])
    as_dict = evaluate(Y, P, groups_by={"letter": letters, "half": P > 0.5}, **QUICK)
    one = table[table["method"] == "one"].drop(columns="method")
    pd.testing.assert_frame_equal(one, as_dict)


def test_rows_of_weight_zero_leave_no_trace():
    weight = np.where(LETTER == "c", 0.0, 1.0)
    kept = weight > 0
    table = evaluate(Y, P, sample_weight=weight, groups_by=LETTER, **QUICK)
    pd.testing.assert_frame_equal(
        table, evaluate(Y[kept], P[kept], groups_by=LETTER[kept], **QUICK)
    )


def test_many_classes_look_at_the_predicted_class():
    Q = RNG.dirichlet([1, 1, 1], N)
    y = np.array([RNG.choice(3, p=q) for q in Q])
    table = evaluate(y, Q, groups_by=LETTER, **QUICK)
    inside = LETTER == "a"
    found = rows(table, "group", "observed_minus_predicted").loc["a", "value"]
    assert found == pytest.approx(accuracy(y[inside], Q[inside]) - Q[inside].max(axis=1).mean())
    expected = smooth_calibration_error(y[inside], Q[inside])
    found = rows(table, "group", "smooth_calibration_error").loc["a", "value"]
    assert found == pytest.approx(expected)


def without_smooth_errors(monkeypatch):
    """Leave out what takes the time, where it is not what is tested."""
    nothing = lambda *_: lambda residuals: np.zeros(residuals.shape[1])  # noqa: E731
    monkeypatch.setattr("hetcal.metrics.by_group.smooth_error_of_residuals", nothing)


def test_gap_and_worst_hold_the_truth(monkeypatch):
    """In 60 samples of which each bound holds in 95 %, fewer than 52 are held once in 400 times."""
    without_smooth_errors(monkeypatch)
    rng = np.random.default_rng(5)
    held = {"worst": 0, "gap": 0}
    group = rng.choice(4, size=400, p=[0.4, 0.3, 0.2, 0.1])
    shift = np.array([0.0, 0.05, -0.1, 0.1])
    for _ in range(60):
        p = rng.uniform(0.2, 0.8, 400)
        y = (rng.random(400) < p + shift[group]).astype(int)
        table = evaluate(y, p, groups_by=group, n_bootstrap=60)
        for part, truth in (("worst", 0.1), ("gap", 0.2)):
            found = rows(table, part, "observed_minus_predicted").iloc[0]
            held[part] += found["low"] <= truth <= found["high"]
    assert min(held.values()) >= 52


def test_noise_alone_is_no_calibration_error():
    """Right probabilities have errors above 0 in every sample, and more so in small groups."""
    rng = np.random.default_rng(6)
    held = 0
    for _ in range(10):
        y = (rng.random(N) < P).astype(int)
        table = evaluate(y, P, groups_by=np.arange(N) < 60, n_bootstrap=40)
        assert (rows(table, "group", SMOOTH)["value"] > 0).all()
        held += (table[table["part"] != "overall"].loc[SMOOTH, "low"] == 0).all()
    assert held >= 8
    table = evaluate(P > 0.5, np.full(N, 0.5), groups_by=P > 0.5, n_bootstrap=40)
    assert rows(table, "worst", SMOOTH)["low"].item() > 0.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups_by": LETTER[:-1]}, "'group'.* has 299 values but there are 300 rows"),
        ({"groups_by": P}, "has 300 different values; at most 100 .*pandas.qcut"),
        ({"groups_by": {}}, "groups_by is empty"),
        ({"groups_by": LETTER, "baseline": "one"}, "only one of them can be given"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        evaluate(Y, {"one": P}, **options)


def test_errors_name_the_method():
    with pytest.raises(ValueError, match=r"Row 1 of y_proba\['after'\]"):
        evaluate([0, 1], {"before": [0.4, 0.6], "after": [0.4, 1.6]})


@pytest.mark.parametrize(
    "twice",
    [
        pd.DataFrame(zip(LETTER, LETTER, strict=True), columns=["a", "a"]),
        pd.DataFrame(zip(LETTER, LETTER, strict=True), columns=[1, "1"]),
        {1: LETTER, "1": LETTER},
    ],
)
def test_columns_of_the_same_name_are_refused(twice):
    with pytest.raises(ValueError, match=r"evaluate: groups_by has several columns called '[a1]'"):
        evaluate(Y, P, groups_by=twice, **QUICK)


def test_a_name_is_not_a_column():
    with pytest.raises(TypeError, match=r"groups_by is the string 'region'.*table\['region'\]"):
        evaluate(Y, P, groups_by="region", **QUICK)


def test_a_group_called_missing_is_not_the_rows_without_a_value():
    letters = [None, None, "(missing)", *LETTER[3:]]
    table = evaluate(Y, P, groups_by=letters, **QUICK)
    sizes = table[table["part"] == "group"].loc["brier_score"].set_index("group")["n"]
    assert (sizes["(missing)"], sizes["(no value, not '(missing)')"]) == (1, 2)
