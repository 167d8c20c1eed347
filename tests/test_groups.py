"""Every number with an error knows groups: copies in one group make nothing surer.

Each row is repeated nine times, the copies being one group. What is said of the copies must then
be what is said of the rows; who counts copies as independent items gets a third of the error.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import hetcal
from hetcal.calibration.hybrid.recalibration import Recalibration
from hetcal.calibration.hybrid.stacking import cautious_share, reliance
from hetcal.cli import main
from hetcal.data import CalibrationSet, Folds
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.diagnosis import summaries
from hetcal.diagnosis.measurements import Gain
from hetcal.diagnosis.prior_shift import measure_prior_shift
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.heterogeneity.detectable import detectable_size
from hetcal.kernels.intervals import effective_size
from hetcal.metrics import bootstrap_interval, brier_score, evaluate

TIMES = 9
COST = np.array([[0.0, 1.0], [5.0, 0.0]])


def sample(n, times=1, seed=0):
    """Return rows, each so many times, with the name of its group."""
    data = make_hidden_heterogeneity(n, heterogeneity=1.0, random_state=seed)
    rows = np.repeat(np.arange(n), times)
    return SimpleNamespace(
        X=data.frame().iloc[rows].reset_index(drop=True),
        y=data.y[rows],
        P=data.y_proba[rows],
        groups=np.char.zfill(rows.astype(str), 4),  # numbered in the order of the rows
        codes=rows,
    )


@pytest.fixture(scope="module")
def once():
    return sample(90)


@pytest.fixture(scope="module")
def copied():
    return sample(90, TIMES)


def both(function, *samples):
    return [function(s) for s in samples]


# -- hidden heterogeneity ------------------------------------------------------------------------


def test_errors_of_hidden_heterogeneity(once, copied):
    # Without learners the gains are those of the global map, which copies leave as they are.
    def measured(s):
        hidden = HiddenHeterogeneity(
            radius=0.4, n_null=0, learners=[], neighborhoods="net", min_neighbors=5
        )
        return hidden.fit(s.X, s.y, y_proba=s.P, groups=s.groups)

    one, many = both(measured, once, copied)
    assert one.standard_error_ > 0
    assert many.standard_error_ == pytest.approx(one.standard_error_)
    errors = [hidden.cells_["standard_error"].to_numpy() for hidden in (one, many)]
    np.testing.assert_allclose(errors[1], errors[0], rtol=1e-5)
    frames = [hidden.frame(once.P)["standard_error"].to_numpy() for hidden in (one, many)]
    np.testing.assert_allclose(frames[1], frames[0], rtol=1e-5)


def test_test_of_hidden_heterogeneity(once, copied):
    def tested(s):
        hidden = HiddenHeterogeneity(radius=1.0, learners=[], neighborhoods="net")
        return hidden.fit(s.X, s.y, y_proba=s.P, groups=s.groups).statistic_

    one, many = both(tested, once, copied)
    assert many == pytest.approx(one, rel=0.5)  # three times as much, were copies independent


def test_groups_of_the_user(once, copied):
    def by(s):
        hidden = HiddenHeterogeneity(n_null=0, learners=[], radius=1.0)
        hidden.fit(s.X, s.y, y_proba=s.P, groups=s.groups)
        return hidden.subgroups(by="x0").set_index("rule")

    one, many = both(by, once, copied)
    shown = ["predicted", "observed", "low", "high", "gain", "p_value", "adjusted_p_value"]
    pd.testing.assert_frame_equal(many[shown], one[shown])


def test_effective_size_lies_between_groups_and_trials():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 5)
    share = np.full(200, 1 / 200)
    independent = rng.integers(0, 2, 200).astype(float)
    assert effective_size(independent, share, groups) > 100
    alike = np.repeat(rng.integers(0, 2, 40), 5).astype(float)
    assert effective_size(alike, share, groups) == pytest.approx(40)
    assert effective_size(np.zeros(200), share, groups) == pytest.approx(40)
    assert effective_size(independent, share, np.zeros(200, dtype=int)) == pytest.approx(1)
    halved = np.where(np.arange(200) < 100, 0.01, 0.0)
    assert effective_size(alike, halved, groups) == pytest.approx(20)


def test_a_share_of_groups_is_worth_as_many_items_as_have_its_variance():
    """That of the mean of twelve group means, over that of one item."""
    rng = np.random.default_rng(0)
    chance = np.repeat(rng.uniform(0.3, 0.7, 12), 10)
    happened, groups = (rng.random(120) < chance).astype(float), np.arange(120) // 10
    of_groups = happened.reshape(12, 10).mean(axis=1)
    of_item = happened.mean() * (1 - happened.mean())
    expected = of_item / (of_groups.var(ddof=1) / 12)
    assert 12 < expected < 120
    assert effective_size(happened, np.full(120, 1 / 120), groups) == pytest.approx(expected)


# -- metrics -------------------------------------------------------------------------------------


def test_intervals_of_metrics(once, copied):
    def table(s):
        methods = {"sharp": s.P, "vague": 0.5 * s.P + 0.25}
        options = {"groups": s.groups, "baseline": "sharp", "cost_matrix": COST}
        found = evaluate(s.y, methods, n_bootstrap=40, **options).set_index("method", append=True)
        # What debiasing takes off depends on the number of rows; that is no matter of the error.
        return found[~found.index.get_level_values(0).str.contains("debiased")]

    one, many = both(table, once, copied)
    pd.testing.assert_frame_equal(many, one)
    assert (one["high"] > one["low"]).all()


def test_interval_of_any_function(once, copied):
    def interval(s):
        def score(y, y_proba):
            return brier_score(y, y_proba)

        return bootstrap_interval(score, s.y, s.P, groups=s.groups, n_bootstrap=30)

    one, many = both(interval, once, copied)
    assert many == pytest.approx(one)
    assert one.low < one.value < one.high


# -- comparisons and advice ----------------------------------------------------------------------


def test_errors_of_comparisons(once, copied):
    def table(s):
        found = hetcal.compare(
            s.X,
            s.y,
            y_proba=s.P,
            groups=s.groups,
            methods=["uncalibrated", "temperature"],
            baselines=False,
            cv=3,
            n_repeats=1,
        )
        return found.frame().set_index(["method", "metric"]).sort_index()

    one, many = both(table, once, copied)
    of = ("uncalibrated", ["brier", "log_loss", "accuracy"])
    shown = ["value", "standard_error", "low", "high"]
    pd.testing.assert_frame_equal(many.loc[of, shown], one.loc[of, shown])
    # Folds differ a little, and copies outweigh the prior of a map.
    np.testing.assert_allclose(many["standard_error"], one["standard_error"], rtol=0.35)
    others = one["difference_se"] > 0
    np.testing.assert_allclose(
        many["difference_se"][others], one["difference_se"][others], rtol=0.5
    )


def test_errors_of_learning_curves(once, copied):
    def curve(s, size):
        return hetcal.learning_curve(
            s.X,
            s.y,
            y_proba=s.P,
            groups=s.groups,
            methods=["uncalibrated"],
            sizes=[size],
            cv=3,
            n_repeats=1,
        ).frame()["standard_error"]

    one, many = curve(once, 40), curve(copied, 40 * TIMES)
    np.testing.assert_allclose(many, one, rtol=0.35)


def items_of(s, grouped=True):
    groups = s.groups if grouped else None
    return CalibrationSet.check(s.X, s.y, y_proba=s.P, groups=groups, caller="test")


def test_gains_and_bounds_of_the_advice(once, copied):
    def gain(s):
        return Gain.between(s.P, 0.8 * s.P + 0.1, items_of(s))

    one, many = both(gain, once, copied)
    assert (many.value, many.low, many.high) == pytest.approx((one.value, one.low, one.high))
    assert one.low < one.value < one.high


def test_what_would_have_been_found(once, copied):
    one, many = both(lambda s: detectable_size(items_of(s), power=0.5), once, copied)
    assert many == pytest.approx(one, rel=0.5)


def test_interval_of_a_shift_of_classes(once, copied):
    new = make_hidden_heterogeneity(90, random_state=0).sample(4000, random_state=1).y_proba
    one, many = both(lambda s: measure_prior_shift(items_of(s), new), once, copied)
    assert many.half_width == pytest.approx(one.half_width, rel=0.3)


def test_costs_and_reliability_of_the_report(once, copied):
    def shown(s):
        items = items_of(s)
        rows = np.arange(items.n_items)
        evaluated = SimpleNamespace(rows=rows, proba=lambda name: s.P)
        (cost,) = summaries.cost(items, COST, evaluated, ["uncalibrated"]).rows
        bins = summaries.reliability(items, s.P, rows, "as it is").bins
        by = summaries.groups_by(items, "x0")
        return [
            *(cost.low, cost.cost, cost.high),
            *((b.low, b.observed, b.high) for b in bins),
            *((g.low, g.observed, g.high) for g in by),
        ]

    one, many = (np.hstack(found) for found in both(shown, once, copied))
    np.testing.assert_allclose(many, one)


# -- the hybrid ----------------------------------------------------------------------------------


def test_errors_of_the_hybrids_experts(once, copied):
    def experts(s):
        hybrid = hetcal.HybridCalibrator(["uncalibrated"], n_estimators=2)
        table = hybrid.fit(s.X, s.y, y_proba=s.P, groups=s.groups).experts_
        return table[~table.index.duplicated()]

    one, many = both(experts, once, copied)
    shown = ["brier", "standard_error"]
    pd.testing.assert_frame_equal(
        many.loc[["uncalibrated"], shown], one.loc[["uncalibrated"], shown]
    )
    many = many.loc[one.index]  # more items, more maps
    np.testing.assert_allclose(many["standard_error"], one["standard_error"], rtol=0.35)


def folds_of(groups):
    """Return the folds of the rows, the same ones for their copies."""
    return Folds(Folds.make(90, 5, seed=0).number[groups])


def hesitant(s, truth):
    """Return a blend that is a little better than the probabilities, but not beyond noise."""
    towards = np.random.default_rng(3).normal(0.04, 0.25, 90)[s.codes][:, None]
    return np.clip(s.P + towards * (truth - s.P), 0, 1)


def test_share_of_the_hybrid(once, copied):
    def share(s, caution):
        blend = hesitant(s, items_of(s).onehot)
        return [cautious_share(blend, s.P, items_of(s, g), caution) for g in (True, False)]

    for caution in (0.25, 0.5, 1.0):
        (one, _), (many, surer) = share(once, caution), share(copied, caution)
        assert many == one
        assert surer >= one
    assert surer > one


def reliance_of(times, errors):
    """Return the reliance where the gain over class frequencies is so many standard errors."""
    rows = np.repeat(np.arange(90), times)
    codes = rows % 2
    P = np.full((len(rows), 2), 0.5)
    items = CalibrationSet.check(None, codes, y_proba=P, groups=rows, caller="test")

    def gaining(gain):
        # Brier of the frequencies is 1 / 2, that of q on the truth 2 (1 - q)^2.
        wrong = np.sqrt((0.5 - gain) / 2)[:, None]
        return np.where(items.onehot > 0, 1 - wrong, wrong)

    blend = gaining(0.2 * (errors / np.sqrt(89) + np.where(rows // 2 % 2, 1.0, -1.0)))
    alone = gaining(0.1 * (errors / np.sqrt(89) + np.where(rows // 4 % 2, 1.0, -1.0)))
    return reliance([alone], blend, items, folds_of(rows), 0.0)


def test_reliance_of_the_hybrid():
    one, many = reliance_of(1, 8.0), reliance_of(TIMES, 8.0)
    assert one[1] > 0.01
    assert many == pytest.approx(one, rel=0.25)
    assert np.isnan([reliance_of(1, 1.2), reliance_of(TIMES, 1.2)]).all()


def test_last_step_of_the_hybrid():
    def takes_a_map(s, grouped=True):
        odds = s.P * [1.0, 3.0]
        lopsided = odds / odds.sum(axis=1, keepdims=True)
        return (
            Recalibration().fit(lopsided, items_of(s, grouped), folds_of(s.codes), 2.0).beta_
            is not None
        )

    one, many = sample(90, seed=1), sample(90, TIMES, seed=1)
    assert [takes_a_map(one), takes_a_map(many), takes_a_map(many, grouped=False)] == [
        False,
        False,
        True,
    ]


# -- the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["temperature", "swc"])
def test_printed_errors_of_fit(once, copied, tmp_path, capsys, method):
    def error(s):
        table = s.X[["x0"]].assign(p_a=s.P[:, 0], p_b=s.P[:, 1], patient=s.groups)
        table["outcome"] = np.where(s.y == s.y.max(), "b", "a")
        table.to_csv(tmp_path / "table.csv", index=False)
        files = [str(tmp_path / "table.csv"), "-o", str(tmp_path / "m.hetcal"), "--overwrite"]
        roles = ["--label", "outcome", "--proba", "p_*", "--groups", "patient"]
        with pytest.raises(SystemExit):
            main(["fit", *files, *roles, "--method", method, "--json"])
        found = json.loads(capsys.readouterr().out)
        return found["gain_high"] - found["gain_low"]

    one, many = both(error, once, copied)
    assert many == pytest.approx(one, rel=0.5)
