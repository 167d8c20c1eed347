"""The reliability diagram: its numbers against a loop, its picture against its numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from hetcal.data import CalibrationSet
from hetcal.metrics import expected_calibration_error, smooth_calibration_error
from hetcal.metrics.reliability import smooth_reliability
from hetcal.metrics.smooth import ReflectedKernel
from hetcal.plotting import ReliabilityDisplay

RNG = np.random.default_rng(0)
P = RNG.dirichlet([1, 1, 1], 300)
Y = np.array(["a", "b", "c"])[[RNG.choice(3, p=p) for p in P]]
P2 = P[:, 1] / (P[:, 0] + P[:, 1])
Y2 = (RNG.random(300) < P2).astype(int)


@pytest.mark.parametrize("binning", ["equal-mass", "equal-width"])
def test_weighted_gaps_add_up_to_the_ece(binning):
    table = ReliabilityDisplay.from_predictions(Y, P, binning=binning).frame()
    gaps = (table["predicted"] - table["observed"]).abs()
    ece = expected_calibration_error(Y, P, binning=binning)
    assert np.average(gaps, weights=table["weight"]) == pytest.approx(ece)


def test_rows_against_a_loop():
    table = ReliabilityDisplay.from_predictions(Y2, P2, n_bins=10, binning="equal-width").frame()
    rows = iter(table.itertuples())
    for b in range(10):
        inside = (np.ceil(P2 * 10) - 1).astype(int) == b
        row = next(rows)
        assert row.count == inside.sum()
        assert row.predicted == pytest.approx(P2[inside].mean())
        assert row.observed == pytest.approx(Y2[inside].mean())
        exact = binomtest(int(Y2[inside].sum()), int(inside.sum())).proportion_ci(method="wilson")
        assert (row.low, row.high) == pytest.approx((exact.low, exact.high))


def test_one_class_against_the_rest_is_the_binary_diagram():
    one = ReliabilityDisplay.from_predictions(Y, P, pos_label="b")
    binary = ReliabilityDisplay.from_predictions(Y == "b", P[:, 1])
    pd.testing.assert_frame_equal(one.frame(), binary.frame())
    assert one.events == ["of class b"]


def test_integer_weights_count_like_rows_except_in_the_band():
    weight = RNG.integers(0, 3, 300)
    weighted = ReliabilityDisplay.from_predictions(Y2, P2, sample_weight=weight).frame()
    repeated = ReliabilityDisplay.from_predictions(
        np.repeat(Y2, weight), np.repeat(P2, weight)
    ).frame()
    columns = ["predicted", "observed", "weight", "smallest", "largest"]
    pd.testing.assert_frame_equal(weighted[columns], repeated[columns])
    assert (weighted["high"] - weighted["low"] >= repeated["high"] - repeated["low"]).all()


def test_counts_hold_every_item():
    counts = ReliabilityDisplay.from_predictions(Y, P).frame("counts")
    assert counts["count"].sum() == 300
    assert counts["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pos_label": "d"}, r"pos_label='d' is not one of the classes \['a', 'b', 'c'\]"),
        ({"binning": "quantile"}, "binning must be one of 'equal-mass', 'equal-width'"),
        ({"n_bins": 0}, "n_bins must be an integer of at least 1; got 0"),
        ({"confidence": 95}, "confidence must lie between 0 and 1 .* got 95"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_predictions(Y, P, **options)


def test_frame_is_a_copy_of_a_known_part():
    display = ReliabilityDisplay.from_predictions(Y, P)
    table = display.frame()
    table.loc[0, "observed"] = -1
    assert display.frame().loc[0, "observed"] >= 0
    with pytest.raises(ValueError, match="part must be one of 'curve', 'counts'; got 'bars'"):
        display.frame("bars")


def test_what_is_drawn_is_the_frame():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    display = ReliabilityDisplay.from_predictions(Y2, P2, name="first")
    assert display.plot(ax) is ax
    curve = ax.lines[-1]
    np.testing.assert_array_equal(curve.get_xdata(), display.frame()["predicted"])
    np.testing.assert_array_equal(curve.get_ydata(), display.frame()["observed"])
    display.plot(ax, name="second")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["first", "second"]
    assert ax.lines[-1].get_color() != curve.get_color()


def test_a_new_figure_when_none_is_given():
    import matplotlib.pyplot as plt

    ax = ReliabilityDisplay.from_predictions(Y, P).plot()
    assert ax.get_xlabel() == "predicted probability of the predicted class"
    plt.close(ax.figure)


def test_several_models_are_the_single_ones_side_by_side():
    both = ReliabilityDisplay.from_predictions(Y2, {"before": P2, "after": P2**2})
    table = both.frame()
    assert "event" not in table
    for name, p in (("before", P2), ("after", P2**2)):
        own = table[table["name"] == name].drop(columns="name").reset_index(drop=True)
        pd.testing.assert_frame_equal(own, ReliabilityDisplay.from_predictions(Y2, p).frame())


def test_a_panel_per_class():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    display = ReliabilityDisplay.from_predictions(Y, P, per_class=True)
    assert display.events == ["of class a", "of class b", "of class c"]
    table = display.frame()
    own = table[table["event"] == "of class b"].drop(columns="event").reset_index(drop=True)
    expected = ReliabilityDisplay.from_predictions(Y, P, pos_label="b").frame()
    pd.testing.assert_frame_equal(own, expected)
    axes = display.plot(Figure().subplots(1, 3))
    assert [ax.get_xlabel()[-7:] for ax in axes] == ["class a", "class b", "class c"]
    np.testing.assert_array_equal(axes[1].lines[-1].get_ydata(), expected["observed"])
    with pytest.raises(ValueError, match="has 3 panels, and ax holds 2"):
        display.plot(Figure().subplots(1, 2))


def test_a_grid_of_new_axes_has_as_many_as_there_are_panels():
    plt = pytest.importorskip("matplotlib.pyplot")
    Q = RNG.dirichlet(np.ones(5), 200)
    y = np.array([RNG.choice(5, p=q) for q in Q])
    axes = ReliabilityDisplay.from_predictions(y, Q, per_class=True).plot()
    assert len(axes) == len(axes[0].figure.axes) == 5
    plt.close(axes[0].figure)


def test_groups_are_overlaid_and_named():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    by = np.where(np.arange(300) % 3, "many", "few")
    weight = np.where(np.arange(300) < 10, 0.0, 1.0)
    display = ReliabilityDisplay.from_predictions(Y2, P2, by=by, sample_weight=weight, n_bins=5)
    inside = (by == "few") & (weight > 0)
    few = display.frame().query("name == 'few'").drop(columns="name").reset_index(drop=True)
    expected = ReliabilityDisplay.from_predictions(Y2[inside], P2[inside], n_bins=5).frame()
    pd.testing.assert_frame_equal(few, expected)
    ax = display.plot(Figure().subplots())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["few", "many"]
    with pytest.raises(ValueError, match="those of a single curve"):
        display.plot(Figure().subplots(), color="red")


@pytest.mark.parametrize("curve", ["binned", "smooth"])
def test_simultaneous_bands_are_wider_and_what_is_drawn(curve):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    display = ReliabilityDisplay.from_predictions(Y2, P2, curve=curve)
    table = display.frame()
    assert (table["low_simultaneous"] <= table["low"]).all()
    assert (table["high_simultaneous"] >= table["high"]).all()
    assert (table["high_simultaneous"] > table["high"]).mean() > 0.5
    tops = {}
    for band in ("pointwise", "simultaneous", None):
        ax = Figure().subplots()
        display.plot(ax, band=band, counts=False)
        ends = [v[:, 1].max() for c in ax.collections for v in [c.get_paths()[0].vertices]]
        tops[band] = ends
    assert tops[None] == []
    if curve == "binned":
        assert tops["simultaneous"][0] == pytest.approx(table["high_simultaneous"][0])
        assert tops["pointwise"][0] == pytest.approx(table["high"][0])
    else:
        assert tops["simultaneous"][0] == pytest.approx(table["high_simultaneous"].max())
    with pytest.raises(ValueError, match="band must be one of 'pointwise', 'simultaneous'"):
        display.plot(Figure().subplots(), band="wide")


def test_bins_hold_together_as_often_as_they_say():
    """Eight bins at 90 %: pointwise bands all hold in 43 % of samples, simultaneous in 90 %."""
    rng = np.random.default_rng(3)
    p = np.repeat(np.linspace(0.15, 0.85, 8), 60)
    held = {"": 0, "_simultaneous": 0}
    for _ in range(100):
        table = ReliabilityDisplay.from_predictions(
            (rng.random(480) < p).astype(int), p, n_bins=8, confidence=0.9
        ).frame()
        for kind in held:
            inside = table["predicted"].between(table[f"low{kind}"], table[f"high{kind}"])
            held[kind] += inside.all()
    assert held["_simultaneous"] >= 82
    assert held[""] <= 62


def test_simultaneous_bands_are_exact_ones():
    """A single event of 40 in a bin where 0.05 are expected: Wilson's interval leaves it out."""
    p = np.repeat([0.001, 0.5], 40)
    y = np.concatenate([[1], np.zeros(39, dtype=int), [0, 1] * 20])
    row = ReliabilityDisplay.from_predictions(y, p, n_bins=2).frame().iloc[0]
    exact = binomtest(1, 40).proportion_ci(0.95**0.5, method="exact")
    assert row["low_simultaneous"] == pytest.approx(exact.low)
    assert row["low_simultaneous"] < 0.001 < row["low"]
    assert row["high_simultaneous"] == pytest.approx(exact.high)


def test_smooth_curve_against_a_loop_over_all_items():
    table = ReliabilityDisplay.from_predictions(Y2, P2, curve="smooth").frame()
    error = smooth_calibration_error(Y2, P2, kind="binary")
    width = max(error, 1.06 * P2.std() * 300**-0.2)
    for place, observed in table[["predicted", "observed"]].to_numpy()[::10]:
        images = [place, -place, 2 - place]
        weight = sum(np.exp(-((P2 - image) ** 2) / (2 * width**2)) for image in images)
        assert observed == pytest.approx(place + np.average(Y2 - P2, weights=weight), abs=1e-3)


@pytest.mark.parametrize("n", [1, 5])
def test_a_few_items_have_a_smooth_curve_too(n):
    p = np.full(n, 0.8)
    display = ReliabilityDisplay.from_predictions([1] * n, p, classes=[0, 1], curve="smooth")
    assert display.frame()["observed"].to_numpy() == pytest.approx(1.0)
    assert display.frame()["predicted"].to_numpy() == pytest.approx(0.8, abs=1e-3)


def test_smooth_band_holds_the_smoothed_truth():
    """Of 30 samples whose bands hold in 95 %, fewer than 25 are held once in 300 times."""
    rng = np.random.default_rng(4)
    p = rng.uniform(0.02, 0.98, 500)
    truth = 0.5 * p + 0.2
    held = 0
    for _ in range(30):
        y = (rng.random(500) < truth).astype(int)
        items = CalibrationSet.to_score(y, p)
        table = smooth_reliability(p, y.astype(float), items)
        kernel = ReflectedKernel(p, y - p, np.ones(500), 500)
        target = np.interp(
            table["predicted"],
            kernel.places,
            kernel.places + kernel.mean((truth - p)[:, None])[:, 0],
        )
        held += (
            (table["low_simultaneous"] <= target) & (target <= table["high_simultaneous"])
        ).all()
    assert held >= 25


def test_bars_are_shares_of_the_weight():
    p, weight = np.array([0.1, 0.1, 0.9]), np.array([1.0, 1.0, 6.0])
    display = ReliabilityDisplay.from_predictions([0, 1, 1], p, sample_weight=weight)
    bars = display.frame("counts")
    bars = bars[bars["count"] > 0]
    assert bars["count"].tolist() == [2, 1]
    assert bars["share"].tolist() == [0.25, 0.75]


def test_where_nothing_happened_the_smooth_band_is_not_of_no_width():
    p = np.linspace(0.05, 0.06, 200)
    y = np.zeros(200)
    table = smooth_reliability(p, y, CalibrationSet.to_score(y, p, classes=[0, 1]))
    assert table["observed"].max() < 0.02
    assert (table["high"] - table["observed"]).min() > 0.01


@pytest.mark.parametrize("curve", ["binned", "smooth"])
def test_repeated_rows_as_one_group_have_the_bands_of_the_rows(curve):
    five = np.repeat(np.arange(300), 5)
    options = {"curve": curve, "n_bins": 5}
    alone = ReliabilityDisplay.from_predictions(Y2, P2, **options).frame()
    grouped = ReliabilityDisplay.from_predictions(Y2[five], P2[five], groups=five, **options)
    naive = ReliabilityDisplay.from_predictions(Y2[five], P2[five], **options).frame()
    width, group_width, naive_width = (
        (table["high"] - table["low"]).mean() for table in (alone, grouped.frame(), naive)
    )
    np.testing.assert_allclose(grouped.frame()["observed"], alone["observed"], atol=1e-6)
    assert group_width == pytest.approx(width, rel=0.15)
    assert naive_width < 0.7 * width


def test_smooth_bands_of_groups_are_of_what_is_left_behind_the_curve():
    """Random signs of residuals that are wrong on average would make the band wide."""
    p = np.linspace(0.1, 0.3, 300)
    y = (np.random.default_rng(0).random(300) < p + 0.6).astype(int)
    alone, grouped = (
        ReliabilityDisplay.from_predictions(y, p, curve="smooth", groups=groups).frame()
        for groups in (None, np.arange(300))
    )
    widths = [(table["high"] - table["low"]).mean() for table in (alone, grouped)]
    assert widths[1] == pytest.approx(widths[0], rel=0.2)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((Y, {}), {}, "empty dict of models"),
        ((Y, {"a": P}), {"by": Y}, "one diagram shows one of them"),
        ((Y, P), {"per_class": True, "pos_label": "a"}, "Pass one of the two"),
        ((Y, P), {"by": {"x": Y, "y": Y}}, "by has 2 columns"),
        ((Y, P), {"curve": "line"}, "curve must be one of 'binned', 'smooth'"),
        ((np.arange(31), np.eye(31)), {"per_class": True}, "would draw 31 panels"),
    ],
)
def test_layouts_that_cannot_be_drawn(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_predictions(*arguments, **options)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([[0.9, 0.47]] * 4, r"Row 0 of y_proba\['after'\] sums to"),
        ([0.2, 0.3, -0.1, 0.5], r"Row 2 of y_proba\['after'\]"),
        ([0.2, 0.3], r"y has 4 rows but y_proba\['after'\] has 2"),
        ([[0.2, 0.3, 0.5]] * 4, r"y_proba\['after'\] has 3 columns"),
        (["a", "b", "c", "d"], r"y_proba\['after'\]"),
    ],
)
def test_errors_name_the_model(bad, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ReliabilityDisplay.from_predictions([0, 1, 0, 1], {"before": [0.4] * 4, "after": bad})


def test_groups_keep_their_own_values():
    y, p = np.array([0, 1] * 20), np.linspace(0.1, 0.9, 40)
    by_number = ReliabilityDisplay.from_predictions(y, p, by=[7, 8] * 20, n_bins=2)
    assert set(by_number.frame()["name"]) == {7, 8}
    mixed = np.array([7, "7"] * 20, dtype=object)  # two groups that are written alike
    assert len(set(ReliabilityDisplay.from_predictions(y, p, by=mixed, n_bins=2).names)) == 2
