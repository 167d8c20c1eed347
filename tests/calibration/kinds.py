"""Calibrators of which the everyday suite takes one of each kind."""

from __future__ import annotations

import pytest

from hetcal.calibration.registry import list_calibrators

#: A map that fits nothing, one of a parameter, one of steps, all maps at once, and local ones.
ONE_OF_EACH = ("uncalibrated", "temperature", "isotonic", "global", "swc", "hybrid")
_ALIKE = {*list_calibrators()} - {*ONE_OF_EACH}


def alike(name: str):
    """Return the name as a parameter of tests that ask nothing of a calibrator's own map."""
    return pytest.param(name, marks=pytest.mark.repeats) if name in _ALIKE else name
