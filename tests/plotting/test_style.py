"""One look per method, in colours that everyone can tell apart."""

from itertools import combinations

import numpy as np
import pytest

from hetcal.calibration import list_calibrators
from hetcal.paper.settings import PAPER_METHODS
from hetcal.plotting.style import METHOD_STYLES, MethodStyle

# Machado, Oliveira and Fernandes (2009), severity 1: what is seen, in linear RGB.
VISION = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
RGB_TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def lab(color: str, vision: np.ndarray) -> np.ndarray:
    """Return a colour as seen, in CIELAB, where distances are about equally visible."""
    rgb = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = RGB_TO_XYZ @ np.clip(vision @ linear, 0, 1) / np.array([0.95047, 1, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(first: MethodStyle, second: MethodStyle, vision: str) -> float:
    """Return how different two colours look; 2 can just be seen."""
    seen = lab(first.color, VISION[vision]) - lab(second.color, VISION[vision])
    return float(np.linalg.norm(seen))


def test_every_calibrator_has_its_own_look():
    assert set(METHOD_STYLES) == set(list_calibrators())
    assert set(PAPER_METHODS.values()) <= set(METHOD_STYLES)


@pytest.mark.parametrize("vision", VISION)
def test_methods_with_one_marker_differ_in_colour(vision):
    for (a, first), (b, second) in combinations(METHOD_STYLES.items(), 2):
        assert first.label != second.label
        if first.marker == second.marker:
            assert distance(first, second, vision) > 12, (a, b)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("scaling", ["platt", "temperature"])
def test_methods_of_one_table_can_be_told_apart(scaling, vision):
    shown = ["uncalibrated", scaling, "isotonic", "histogram", "sba", "sbaw", "swc", "swc-hh"]
    for a, b in combinations([*shown, "hybrid"], 2):
        first, second = METHOD_STYLES[a], METHOD_STYLES[b]
        assert distance(first, second, vision) > 12, (a, b)
        assert first.marker != second.marker
