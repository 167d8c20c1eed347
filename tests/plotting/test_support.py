"""The histogram of calibration support: what it counts, what it draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetcal.plotting import SupportDisplay


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=50),
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
)
def test_every_item_is_counted_once(support, n_bins, seed):
    groups = np.random.default_rng(seed).choice(["old", "new"], len(support))
    display = SupportDisplay.from_support(support, groups=groups, n_bins=n_bins)
    frame = display.frame()
    assert frame["count"].sum() == len(support)
    for group, part in frame.groupby("group"):
        assert part["count"].sum() == (groups == group).sum()
    assert display.median == pytest.approx(np.median(support))


def test_bins_against_a_plain_loop():
    support = np.array([0.0, 1.0, 4.9, 5.0, 9.9, 10.0])
    display = SupportDisplay.from_support(support, n_bins=2)
    expected = [sum(value < 5 for value in support), sum(value >= 5 for value in support)]
    assert display.counts["items"].tolist() == expected


def test_the_peak_is_the_middle_of_the_fullest_bin_over_all_groups():
    display = SupportDisplay.from_support(
        [1, 1, 9, 9, 9], groups=["a", "a", "a", "b", "b"], n_bins=2, largest=10
    )
    assert display.peak == 7.5


def test_it_draws_stacked_bars():
    import matplotlib.pyplot as plt

    display = SupportDisplay.from_support(
        [1, 1, 9], groups=["a", "b", "b"], order=("b", "a", "never"), n_bins=2, largest=10
    )
    ax = display.plot()
    bars = ax.containers
    assert [container.get_label() for container in bars] == ["b", "a", "never"]
    assert [bar.get_y() for bar in bars[1]] == [1, 1]  # on top of b
    assert ax.get_xlim() == (0, 10)
    plt.close(ax.figure)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"support": []}, "0 values"),
        ({"support": [1, np.nan]}, "finite"),
        ({"support": [-1]}, "at least 0"),
        ({"support": [1, 2], "groups": ["a"]}, "one group per item"),
        ({"support": [1, 2], "largest": 1.5}, "Raise it"),
        ({"support": [1, 2], "groups": ["a", "b"], "order": ["a"]}, "Name every group"),
    ],
)
def test_wrong_input_is_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        SupportDisplay.from_support(**arguments)
