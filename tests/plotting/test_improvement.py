"""Improvement against hidden heterogeneity: correlations and what is drawn."""

import numpy as np
import pytest

from hetcal.plotting import ImprovementDisplay


def plain_correlation(a, b):
    a, b = a - a.mean(), b - b.mean()
    return (a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum())


def test_correlations_and_slope_against_their_definitions():
    rng = np.random.default_rng(0)
    hh = rng.uniform(size=40)
    gain = 2 * hh + rng.normal(scale=0.3, size=40)
    display = ImprovementDisplay.from_values(hh, gain)
    assert display.pearson == pytest.approx(plain_correlation(hh, gain))
    ranks = [np.argsort(np.argsort(values)).astype(float) for values in (hh, gain)]
    assert display.spearman == pytest.approx(plain_correlation(*ranks))
    centred = hh - hh.mean()
    assert display.slope == pytest.approx((centred * gain).sum() / (centred**2).sum())


def test_missing_values_are_left_out():
    display = ImprovementDisplay.from_values([0.1, np.nan, 0.3, 0.2], [0.1, 9.0, 0.3, 0.2])
    assert len(display.frame()) == 3
    assert display.pearson == pytest.approx(1)


@pytest.mark.parametrize("hh", [[0.1, 0.2], [0.1, 0.1, 0.1]])
def test_no_correlation_without_variation(hh):
    display = ImprovementDisplay.from_values(hh, np.arange(len(hh)))
    assert np.isnan([display.pearson, display.spearman, display.slope]).all()


def test_it_draws_a_group_per_colour():
    plt = pytest.importorskip("matplotlib.pyplot")
    display = ImprovementDisplay.from_values(
        [0.1, 0.2, 0.3], [0.0, 0.1, 0.1], groups=["NB", "DT", "NB"]
    )
    ax = display.plot(colors={"NB": "#000000", "DT": "#ffffff"}, markers={"NB": "s"})
    assert [len(points.get_offsets()) for points in ax.collections] == [2, 1]
    assert "r = 0.87" in ax.texts[0].get_text()
    plt.close(ax.figure)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="one of each per experiment"):
        ImprovementDisplay.from_values([0.1], [0.1, 0.2])
