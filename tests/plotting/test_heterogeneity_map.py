"""The map display: what it holds, what it draws."""

import numpy as np
import pytest

from hetcal.plotting import HeterogeneityMapDisplay


@pytest.fixture
def display():
    X = np.random.default_rng(0).normal(size=(30, 2))
    rows = {
        "first": {"p": lambda G: 1 / (1 + np.exp(-G[:, 0])), "HH": lambda G: np.abs(G[:, 1]) / 5},
        "second": {"p": np.linspace(0, 1, 16)},
    }
    return HeterogeneityMapDisplay.from_functions(X, rows, labels=np.arange(30) % 2, resolution=4)


def test_it_holds_what_the_functions_say(display):
    grid = display.grid
    assert grid.shape == (16, 2)
    frame = display.frame()
    assert len(frame) == 48
    part = frame[(frame["row"] == "first") & (frame["panel"] == "p")]
    np.testing.assert_allclose(part["value"], 1 / (1 + np.exp(-part["x"])))


def test_it_draws_every_panel_and_two_colour_bars(display):
    import matplotlib.pyplot as plt

    figure = display.plot()
    titles = [ax.get_title() for ax in figure.axes]
    assert titles[:2] == ["p", "HH"]
    assert len(figure.axes) == 4 + 2
    np.testing.assert_allclose(
        figure.axes[0].collections[0].get_array().ravel(), display.panels["first"]["p"].ravel()
    )
    plt.close(figure)


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="two features"):
        HeterogeneityMapDisplay.from_functions(np.zeros((5, 3)), {})
    with pytest.raises(ValueError, match="one value per grid point"):
        HeterogeneityMapDisplay.from_functions(np.eye(2), {"a": {"p": np.zeros(3)}}, resolution=4)
