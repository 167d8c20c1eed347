"""The reliability diagram: its numbers against a loop, its picture against its numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from hetcal.metrics import expected_calibration_error
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
    assert one.event == "of class b"


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
