"""Bootstrap intervals and the table of all metrics."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from hetcal.metrics import (
    accuracy,
    bootstrap_interval,
    brier_score,
    evaluate,
    expected_calibration_error,
    expected_cost,
    log_loss,
    smooth_calibration_error,
)
from hetcal.metrics.bootstrap import resample_counts
from hetcal.metrics.standard_errors import interval_of_mean

COST = [[0, 1], [5, 0]]


def sample(n=200, seed=0, slope=1.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=1.5, size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return y, 1 / (1 + np.exp(-slope * z))


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (brier_score, {}),
        (log_loss, {"eps": 1e-3}),
        (accuracy, {}),
        (expected_cost, {"cost_matrix": COST}),
        (expected_calibration_error, {"binning": "equal-width", "n_bins": 5}),
        (expected_calibration_error, {"binning": "equal-width", "norm": "max", "n_bins": 4}),
        (smooth_calibration_error, {}),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_all_resamples_at_once_equal_one_by_one(metric, options, weighted):
    y, p = sample()
    weight = np.random.default_rng(3).uniform(0.5, 2, 200) if weighted else None
    common = {"n_bootstrap": 30, "interval": "percentile", "sample_weight": weight, **options}
    at_once = bootstrap_interval(metric, y, p, **common)
    one_by_one = bootstrap_interval(lambda *a, **k: metric(*a, **k), y, p, **common)
    assert at_once == pytest.approx(one_by_one, abs=1e-6)


def test_the_interval_of_a_mean_is_that_of_the_central_limit():
    y, p = sample(n=2000)
    value, low, high = bootstrap_interval(brier_score, y, p, n_bootstrap=2000)
    error = 1.96 * (2 * (p - y) ** 2).std() / np.sqrt(2000)
    assert value == brier_score(y, p)
    assert low == pytest.approx(value - error, abs=0.1 * error)
    assert high == pytest.approx(value + error, abs=0.1 * error)


def test_groups_widen_the_interval_of_repeated_rows():
    y, p = sample(n=100)
    nine = np.repeat(np.arange(100), 9)
    alone = bootstrap_interval(brier_score, y, p)
    naive = bootstrap_interval(brier_score, y[nine], p[nine])
    grouped = bootstrap_interval(brier_score, y[nine], p[nine], groups=nine.astype(str))
    assert naive.high - naive.low < 0.5 * (alone.high - alone.low)
    assert grouped.high - grouped.low == pytest.approx(alone.high - alone.low, rel=0.2)


def test_groups_of_one_row_are_rows():
    y, p = sample()
    assert bootstrap_interval(accuracy, y, p, groups=np.arange(200)) == bootstrap_interval(
        accuracy, y, p
    )


def test_rows_of_weight_zero_are_not_drawn():
    y, p = sample()
    half = (np.arange(200) < 100).astype(float)
    assert bootstrap_interval(brier_score, y, p, sample_weight=half) == pytest.approx(
        bootstrap_interval(brier_score, y[:100], p[:100])
    )


def test_counts_draw_as_many_units_as_there_are_in_any_block_size(monkeypatch):
    units = np.array([0, 0, 1, 2, 2, 2])
    whole = np.hstack(list(resample_counts(units, 50, 0)))
    assert whole.shape == (6, 50)
    assert (whole[[0, 2, 3]].sum(axis=0) == 3).all()
    assert (whole[0] == whole[1]).all()
    monkeypatch.setattr("hetcal.metrics.bootstrap._BLOCK", 42)
    blocks = list(resample_counts(units, 50, 0))
    assert [block.shape[1] for block in blocks] == [7] * 7 + [1]
    assert (np.hstack(blocks) == whole).all()


def test_the_interval_of_a_calibration_error_holds_the_error_of_the_law():
    """Noise makes the error of right probabilities positive; percentiles exclude even that."""
    y, p = sample(n=1000)
    resampled = bootstrap_interval(
        expected_calibration_error, y, p, interval="percentile", n_bins=40
    )
    assert resampled.value < resampled.low
    for metric, options in (
        (expected_calibration_error, {"n_bins": 40}),
        (expected_calibration_error, {"n_bins": 40, "debias": True}),
        (expected_calibration_error, {"norm": "l2", "debias": True}),
        (expected_calibration_error, {"norm": "max"}),
        (expected_calibration_error, {"kind": "class-wise", "binning": "equal-width"}),
        (smooth_calibration_error, {}),
    ):
        value, low, high = bootstrap_interval(metric, y, p, **options)
        assert low == 0 <= value <= high, options
        # The second class happens half as often as it is said to.
        value, low, high = bootstrap_interval(metric, y * (np.arange(len(y)) % 2), p, **options)
        assert 0 < low <= value <= high, options


def test_a_calibration_error_is_never_said_to_be_below_zero():
    """An error of exactly 0: resamples centred on it lie on both sides."""
    y, p = [0, 1] * 20, [0.5] * 40
    for metric in (expected_calibration_error, smooth_calibration_error):
        value, low, high = bootstrap_interval(metric, y, p, n_bootstrap=50)
        assert (value, low) == pytest.approx((0.0, 0.0), abs=1e-12)
        assert low >= 0
        assert high > 0.01
    rows = evaluate(y, p, n_bootstrap=50).filter(regex="^ece|^smooth", axis=0)
    assert (rows["low"] >= 0).all()
    assert len(rows) == 6


def test_a_difference_of_calibration_errors_may_be_below_zero():
    y, p = sample(n=300)
    table = evaluate(y, {"right": p, "shy": 0.5 * p + 0.25}, baseline="shy", n_bootstrap=50)
    right = table[table["method"] == "right"].loc["ece_top_label"]
    assert right["difference_low"] < right["difference_high"] < 0


def test_debiased_l2_interval_covers_the_truth():
    def covered(slope, truth):
        found = 0
        for seed in range(20):
            y, p = sample(n=500, seed=seed, slope=slope)
            _, low, high = bootstrap_interval(
                expected_calibration_error, y, p, norm="l2", debias=True, n_bootstrap=200
            )
            found += low <= truth <= high
        return found

    y, p = sample(n=300_000, seed=99, slope=2.0)
    truth = expected_calibration_error(y, p, norm="l2", debias=True)
    # With 20 samples and 95 % coverage, fewer than 16 happens once in 400 times.
    assert covered(1.0, 0.0) >= 16
    assert covered(2.0, truth) >= 16


def test_any_function_gets_labels_and_a_matrix():
    y, p = sample()
    names = np.array(["no", "yes"])[y]

    def area(y, y_proba):
        return roc_auc_score(y == "yes", y_proba[:, 1])

    value, low, high = bootstrap_interval(area, names, p, n_bootstrap=100)
    assert value == pytest.approx(roc_auc_score(y, p))
    assert low < value < high


def test_one_row_has_no_interval():
    value, low, high = bootstrap_interval(brier_score, [1], [0.5], classes=[0, 1])
    assert value == 0.5
    assert np.isnan([low, high]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bootstrap": -1}, "n_bootstrap must be"),
        ({"n_bootstrap": 1.5}, "n_bootstrap must be"),
        ({"confidence": 1.0}, "confidence must lie between"),
        ({"interval": "basic"}, "interval must be one of"),
        ({"groups": [1, 2]}, "groups has 2 values but there are 200 rows"),
    ],
)
def test_bad_options(options, message):
    y, p = sample()
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(brier_score, y, p, **options)


def test_table_of_one_method_agrees_with_the_single_functions():
    y, p = sample()
    table = evaluate(y, p, cost_matrix=COST, n_bootstrap=150)
    assert table.columns.tolist() == ["value", "low", "high"]
    assert table.index.name == "metric"
    assert table.index.is_unique
    means = {
        "brier_score": (brier_score, {}),
        "log_loss": (log_loss, {}),
        "accuracy": (accuracy, {}),
        "expected_cost": (expected_cost, {"cost_matrix": COST}),
    }
    for name, (metric, options) in means.items():
        each = [metric([yi], [pi], classes=[0, 1], **options) for yi, pi in zip(y, p, strict=True)]
        expected = (metric(y, p, **options), *interval_of_mean(np.array(each)))
        assert tuple(table.loc[name]) == pytest.approx(expected), name
    singles = {
        "ece_top_label": (expected_calibration_error, {}),
        "ece_top_label_debiased": (expected_calibration_error, {"debias": True}),
        "ece_top_label_debiased_l2": (expected_calibration_error, {"debias": True, "norm": "l2"}),
        "ece_top_label_equal_width": (expected_calibration_error, {"binning": "equal-width"}),
        "ece_class_wise": (expected_calibration_error, {"kind": "class-wise"}),
        "smooth_calibration_error": (smooth_calibration_error, {}),
    }
    for name, (metric, options) in singles.items():
        single = bootstrap_interval(metric, y, p, n_bootstrap=150, **options)
        assert tuple(table.loc[name]) == pytest.approx(single), name
    parts = table.loc[["brier_calibration", "brier_refinement"], "value"]
    assert parts.sum() == pytest.approx(table.loc["brier_score", "value"])
    assert set(table.index) == {*means, *singles, *parts.index, "brier_uncertainty"}


def test_an_error_and_its_debiased_form_share_an_interval_that_holds_both_values():
    y, p = sample(slope=2.0)
    plain, debiased = evaluate(y, p).loc[["ece_top_label", "ece_top_label_debiased"]].to_numpy()
    assert plain[1] <= debiased[0] < plain[0] <= plain[2]
    assert tuple(plain[1:]) == tuple(debiased[1:])


def test_methods_share_their_resamples():
    y, p = sample(slope=2.0)
    table = evaluate(y, {"one": p, "same": p, "other": np.sqrt(p)}, baseline="one")
    one, same = (table[table["method"] == name].drop(columns="method") for name in ("one", "same"))
    pd.testing.assert_frame_equal(one, same)
    assert (same[["difference", "difference_low", "difference_high"]] == 0).all(axis=None)
    other = table[table["method"] == "other"].loc["brier_score"]
    assert other["difference"] == pytest.approx(other["value"] - one.loc["brier_score", "value"])
    paired, own = (
        other["difference_high"] - other["difference_low"],
        other["high"] - other["low"],
    )
    assert paired < 0.7 * own


def test_table_takes_tables_weights_groups_and_names():
    y, p = sample()
    names = np.array(["no", "yes"])[y]
    frame = pl.DataFrame({"no": 1 - p, "yes": p})
    groups = np.arange(200) // 4
    table = evaluate(names, frame, sample_weight=pl.Series(p + 1), groups=groups, n_bootstrap=50)
    assert table.notna().all(axis=None)
    again = evaluate(names, frame, sample_weight=p + 1, groups=groups, n_bootstrap=50)
    pd.testing.assert_frame_equal(table, again)


def test_table_of_rows_that_do_not_sum_to_one():
    y, p = sample()
    P = np.column_stack([0.9 * (1 - p), p])
    table = evaluate(y, P, normalized=False, n_bootstrap=20)
    assert table.loc["brier_score", "value"] == brier_score(y, P, normalized=False)


def test_table_without_bootstrap_and_of_one_row():
    y, p = sample()
    assert evaluate(y, p, n_bootstrap=0)[["low", "high"]].isna().all(axis=None)
    single = evaluate([1], [0.5], classes=[0, 1])
    assert single.loc["brier_score", "value"] == 0.5
    assert single[["low", "high"]].isna().all(axis=None)


def test_bad_methods():
    y, p = sample()
    with pytest.raises(ValueError, match="empty dict"):
        evaluate(y, {})
    with pytest.raises(ValueError, match="baseline must name one of"):
        evaluate(y, {"a": p}, baseline="b")
    with pytest.raises(ValueError, match=r"y_proba\['b'\] has 199"):
        evaluate(y, {"a": p, "b": p[:-1]})


def test_a_thousand_resamples_of_many_items_fit_in_blocks():
    """Not timed: the point is that it ends at once and in bounded memory."""
    y, p = sample(n=20_000)
    value, low, high = bootstrap_interval(expected_calibration_error, y, p, n_bootstrap=1000)
    assert low < value < high


def test_intervals_hold_the_parts_and_errors_of_the_law():
    """Of 40 draws few miss it, though the values themselves are biased."""
    rows = ["brier_calibration", "brier_refinement", "ece_top_label", "ece_class_wise"]
    truth = evaluate(*sample(n=100_000, seed=99, slope=1.5), n_bootstrap=0)["value"][rows]
    held = pd.Series(0, index=rows)
    for seed in range(40):
        found = evaluate(*sample(n=200, seed=seed, slope=1.5), n_bootstrap=100).loc[rows]
        held += (found["low"] <= truth) & (truth <= found["high"])
    assert (held >= 35).all(), held
