"""Short names and presets."""

import pytest

import hetcal.calibration.registry as registry
from hetcal.calibration import Uncalibrated, get_calibrator, list_calibrators, register_calibrator

NAMES = ["uncalibrated", "platt", "temperature", "bcts", "vector", "beta", "isotonic", "histogram"]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_takes_the_paper_preset(name):
    assert name in list_calibrators()
    assert type(get_calibrator(name, preset="paper")) is type(get_calibrator(name))


def test_parameters_win_over_the_preset():
    calibrator = get_calibrator("histogram", preset="paper", n_bins=7)
    assert calibrator.n_bins == 7
    assert calibrator.normalize is False


def test_unknown_name_lists_names_and_the_closest():
    with pytest.raises(ValueError, match=r"Did you mean 'isotonic'\? Known names: .*platt.*beta"):
        get_calibrator("isotonik")
    with pytest.raises(ValueError, match=r"Unknown calibrator 'xyz'\. Known names"):
        get_calibrator("xyz")


def test_unknown_preset():
    with pytest.raises(ValueError, match="Unknown preset 'papr'"):
        get_calibrator("platt", preset="papr")


def test_new_names_can_be_added_once(monkeypatch):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    register_calibrator("mine", Uncalibrated, paper={"classes": ["a", "b"]})
    assert get_calibrator("mine").classes is None
    assert get_calibrator("mine", preset="paper").classes == ["a", "b"]
    with pytest.raises(ValueError, match="registered already"):
        register_calibrator("mine", Uncalibrated)
