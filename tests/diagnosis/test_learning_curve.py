"""Learning curves: nested parts, fixed tests, and gains of more data where they are known."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, TimeSeriesSplit

from hetcal import compare, get_calibrator, learning_curve
from hetcal.calibration import Uncalibrated
from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis.extrapolation import gain_of_more_data
from hetcal.diagnosis.learning_curves import _learning_chance
from hetcal.diagnosis.splits import nested_parts


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(300, heterogeneity=0.9, miscalibration=1.0, random_state=0)


@pytest.fixture(scope="module")
def curve(data):
    return learning_curve(
        data.X, data.y, y_proba=data.y_proba, methods=["uncalibrated", "temperature", "swc"]
    )


class NeedsForty(Uncalibrated):
    """Fails on fewer than forty items."""

    def fit(self, X, y, **options):
        if len(y) < 40:
            raise ValueError("too few")
        return super().fit(X, y, **options)


@pytest.mark.parametrize("grouped", [False, True])
def test_parts_are_nested_and_keep_their_classes(data, grouped):
    groups = np.arange(300) // 6 if grouped else None
    items = CalibrationSet.check(data.X, data.y, y_proba=data.y_proba, groups=groups, caller="test")
    train = np.arange(20, 260)
    sizes = [12, 30, 100, 240]
    parts = nested_parts(items, train, sizes, seed=1)
    assert [len(part) for part in parts] == sizes
    for smaller, larger in pairwise(parts):
        assert set(smaller) < set(larger)
    np.testing.assert_array_equal(parts[-1], train)
    for part in parts:
        if grouped:  # only the last group that joined may be cut
            inside = [g for g in np.unique(groups[part]) if (groups[train] == g).sum() == 6]
            cut = [g for g in inside if (groups[part] == g).sum() < 6]
            assert len(cut) <= 1
        else:
            share = data.y[train].mean()
            assert abs(data.y[part].sum() - share * len(part)) <= 1.5
    assert any((nested_parts(items, train, [12], seed=2)[0] != parts[0]).tolist())


def test_it_equals_a_loop_by_hand(data):
    folds = list(StratifiedKFold(3).split(data.X, data.y))
    got = learning_curve(
        data.X, data.y, y_proba=data.y_proba, methods=["temperature"], cv=folds, sizes=[200, 50]
    )
    assert got.sizes == [50, 200]
    items = CalibrationSet.check(data.X, data.y, y_proba=data.y_proba, caller="test")
    for place, size in enumerate(got.sizes):
        loss = np.empty(300)
        for number, (train, test) in enumerate(folds):
            part = nested_parts(items, train, got.sizes, seed=number)[place]
            map_ = get_calibrator("temperature").fit(None, data.y[part], y_proba=data.y_proba[part])
            Q = map_.predict_proba(None, y_proba=data.y_proba[test])
            loss[test] = ((Q - np.eye(2)[data.y[test]]) ** 2).sum(axis=1)
        frame = got.frame()
        [(_, row)] = frame[(frame["metric"] == "brier") & (frame["size"] == size)].iterrows()
        # What a probability of zero counts as is read off all items, not off each part.
        assert row["value"] == pytest.approx(loss.mean(), rel=1e-4)
        # Chance of what was learned from comes on top of the chance of the tested items.
        assert row["standard_error"] >= loss.std(ddof=1) / np.sqrt(300) * (1 - 1e-9)


def test_the_largest_size_is_plain_cross_validation(data, curve):
    whole = compare(
        data.X, data.y, y_proba=data.y_proba, methods=["temperature"], baselines=False, cv=5,
        n_repeats=2,
    ).table()  # fmt: skip
    last = curve.frame().query("method == 'temperature' and size == 240").set_index("metric")
    for metric in ("brier", "log_loss", "accuracy"):
        assert last.loc[metric, "value"] == pytest.approx(whole.loc["temperature", metric])


def test_the_curve_of_what_learns_nothing_is_flat(curve):
    flat = curve.frame().query("method == 'uncalibrated' and metric == 'brier'")["value"]
    np.testing.assert_allclose(flat, flat.iloc[0])
    more = curve.more_data_helps("uncalibrated")
    assert more.verdict == "no"
    assert (more.gain, more.gain_se) == (pytest.approx(0, abs=1e-12), pytest.approx(0, abs=1e-9))
    assert "-0.0000" not in str(more)


def test_the_last_doubling_is_paired(curve):
    more = curve.more_data_helps("swc")
    rows = curve.frame().query("method == 'swc' and metric == 'brier'").set_index("size")
    assert (more.from_size, more.to_size) == (120, 240)
    assert more.gain == pytest.approx(rows.loc[120, "value"] - rows.loc[240, "value"])
    unpaired = np.hypot(rows.loc[120, "standard_error"], rows.loc[240, "standard_error"])
    assert 0 < more.gain_se < 0.8 * unpaired
    assert more.n_items == 300
    assert "From 120 to 240 calibration items" in str(more)
    assert " in Brier score. " in str(more)
    higher = curve.more_data_helps("swc", "accuracy")
    share = curve.frame().query("method == 'swc' and metric == 'accuracy'").set_index("size")
    assert higher.gain == pytest.approx(share.loc[240, "value"] - share.loc[120, "value"])


@pytest.mark.parametrize("exponent", [0.5, 1.0])
def test_a_power_law_is_continued(exponent):
    sizes = np.array([50, 100, 200, 400, 800])
    values = 0.2 + 1.5 * sizes.astype(float) ** -exponent
    spread = 1e-4 + np.diag(1e-10 * 800 / sizes)  # a common error, and small ones of each size
    more = gain_of_more_data(sizes, values, spread, n_items=1000, method="m", metric="brier")
    truth = 1.5 * (1000.0**-exponent - 2000.0**-exponent)
    assert more.expected_gain == pytest.approx(truth, rel=1e-3)
    assert more.expected_low < truth < more.expected_high
    assert more.gain == pytest.approx(values[3] - values[4])
    assert more.gain_se < 1e-4
    assert more.verdict == ("yes" if truth > 0.002 else "no")


def test_half_of_the_largest_size_is_what_its_gain_starts_from():
    sizes, values = np.array([30, 60, 90, 110]), np.array([0.4, 0.3, 0.27, 0.26])
    more = gain_of_more_data(
        sizes, values, 1e-6 * np.eye(4), n_items=200, method="m", metric="brier"
    )
    assert (more.from_size, more.to_size) == (60, 110)
    assert more.gain == pytest.approx(0.04)


def test_the_interval_of_more_data_holds_19_of_20_draws(monkeypatch):
    drawn = np.append(0.3, np.linspace(0, 1, 2000))  # of the values themselves, and of draws
    monkeypatch.setattr("hetcal.diagnosis.extrapolation._next_doubling", lambda *_: drawn)
    sizes, values = np.array([50, 100, 200]), np.array([0.3, 0.2, 0.1])
    more = gain_of_more_data(sizes, values, np.eye(3), n_items=200, method="m", metric="brier")
    found = more.expected_gain, more.expected_low, more.expected_high
    assert found == pytest.approx((0.3, 0.025, 0.975))


def test_chance_of_what_was_learned_is_the_spread_of_splits_behind_their_items():
    rng = np.random.default_rng(0)
    p, y = rng.uniform(size=80), rng.integers(0, 2, 80)
    items = CalibrationSet.check(None, y, y_proba=p, caller="test")
    splits = [(np.empty(0, dtype=int), part) for part in np.split(np.arange(80), 4)]
    learned = rng.normal(size=(2, 4))  # what each split's training items cost, at two sizes
    stated = 2 * (y - p) ** 2
    curve = [
        SimpleNamespace(
            items=items,
            splits=splits,
            split_losses=lambda *_, own=own: [
                stated[test] + more for more, (_, test) in zip(own, splits, strict=True)
            ],
        )
        for own in learned
    ]
    np.testing.assert_allclose(_learning_chance(curve, "m", "brier"), np.cov(learned) / 4)


def test_noise_gives_no_verdict():
    sizes = np.array([50, 100, 200])
    values = np.array([0.31, 0.30, 0.305])
    spread = np.diag([0.02, 0.02, 0.02]) ** 2
    more = gain_of_more_data(sizes, values, spread, n_items=250, method="m", metric="brier")
    assert more.verdict == "unclear"
    assert more.expected_low < 0 < more.expected_high


def test_two_sizes_are_measured_but_not_continued(data):
    got = learning_curve(
        data.X, data.y, y_proba=data.y_proba, methods=["temperature"], sizes=[60, 120]
    )
    more = got.more_data_helps("temperature")
    assert np.isnan(more.expected_gain)
    assert more.verdict == "unclear"
    assert "Too few sizes" in str(more)


@pytest.mark.slow
def test_errors_and_intervals_are_right():
    """What the next doubling brings is known by simulation: fresh calibration and test sets."""
    law = make_hidden_heterogeneity(
        10, heterogeneity=1.0, miscalibration=0.5, signal=1.5, random_state=0
    ).law
    methods = ["temperature", "isotonic", "swc"]

    def true_losses(n, seed):
        cal, test = law.sample(n, 1000 + seed), law.sample(2000, 2000 + seed)
        fitted = [get_calibrator(m).fit(cal.X, cal.y, y_proba=cal.y_proba) for m in methods]
        return [
            test.expected_brier(map_.predict_proba(test.X, y_proba=test.y_proba)) for map_ in fitted
        ]

    at_n, at_2n = (np.mean([true_losses(n, s) for s in range(60)], axis=0) for n in (250, 500))
    found = []
    for seed in range(60):
        data = law.sample(250, seed)
        curve = learning_curve(
            data.X, data.y, y_proba=data.y_proba, methods=methods, random_state=seed
        )
        found.append([curve.more_data_helps(m) for m in methods])
    for method, truth, answers in zip(methods, at_n - at_2n, zip(*found, strict=True), strict=True):
        covered = sum(a.expected_low <= truth <= a.expected_high for a in answers)
        assert covered >= 52, f"{method}: {covered}"  # 95 % of 60, less three standard errors
        error = np.sqrt(np.mean([a.gain_se**2 for a in answers]))
        assert error == pytest.approx(np.std([a.gain for a in answers]), rel=0.35)
    verdicts = [[a.verdict for a in answers] for answers in zip(*found, strict=True)]
    assert verdicts[0].count("yes") <= 3  # temperature is settled at 250 items
    assert verdicts[2].count("no") <= 3  # SWC is not


def test_a_method_may_fail_at_small_sizes_only(data):
    got = learning_curve(
        data.X, data.y, y_proba=data.y_proba, methods={"needs": NeedsForty()}, n_repeats=1
    )
    rows = got.frame().query("metric == 'brier'").set_index("size")
    assert got.sizes == [30, 60, 120, 240]
    assert rows["value"].isna().tolist() == [True, False, False, False]
    assert rows.loc[30, "note"] == "ValueError: too few"
    assert got.more_data_helps("needs").to_size == 240


def test_splits_of_different_sizes_share_the_smallest(data):
    got = learning_curve(
        data.X, data.y, y_proba=data.y_proba, methods=["temperature"], cv=TimeSeriesSplit(4)
    )
    assert got.sizes == [30, 60]


def test_compare_measures_the_curves_that_matter(data):
    steps = []
    got = compare(
        data.X, data.y, y_proba=data.y_proba,
        methods=["uncalibrated", "temperature", "beta", "swc"], baselines=False,
        n_repeats=1, learning_curve=True, sizes=[60, 120, 240],
        progress=lambda *step: steps.append(step),
    )  # fmt: skip
    table = got.table()["brier"]
    best_map = table[["uncalibrated", "temperature", "beta"]].idxmin()
    assert set(got.learning_curve.methods) == {"uncalibrated", best_map, got.best()}
    assert got.learning_curve.sizes == [60, 120, 240]
    assert steps[-1][0] == steps[-1][1]
    named = compare(
        data.X, data.y, y_proba=data.y_proba, methods=["temperature"], baselines=False,
        n_repeats=1, learning_curve=["isotonic", "temperature"],
    )  # fmt: skip
    assert named.learning_curve.methods == ["isotonic", "temperature"]


def test_wrong_input_is_refused(data, curve):
    for sizes in ([10, 400], [1], [0.5], []):
        with pytest.raises(ValueError, match="between 2 and 240"):
            learning_curve(data.X, data.y, y_proba=data.y_proba, sizes=sizes)
    with pytest.raises(ValueError, match="holds the methods"):
        curve.more_data_helps("beta")
    one = learning_curve(
        data.X, data.y, y_proba=data.y_proba, methods=["temperature"], sizes=[100], n_repeats=1
    )
    with pytest.raises(ValueError, match="at least two are needed"):
        one.more_data_helps("temperature")
