"""The demo as a person sees it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from hetcal._exceptions import HetcalWarning
from hetcal.calibration.registry import list_calibrators
from hetcal.cli import _demo
from hetcal.cli._demo_example import calibrate, left_out, make_example, method_names, score
from hetcal.kernels import use_core


@pytest.fixture(scope="module")
def example():
    return make_example(seed=0)


@pytest.fixture
def few_methods(monkeypatch):
    """Two methods are enough to test how results are shown."""
    monkeypatch.setattr(_demo, "method_names", lambda: ["uncalibrated", "temperature"])


def test_every_registered_calibrator_takes_part():
    names = method_names()
    assert names[0] == "uncalibrated"
    assert sorted(names + left_out()) == sorted(list_calibrators())


def test_the_pure_core_leaves_out_what_takes_minutes_and_says_so(few_methods, capsys, tmp_path):
    with use_core("pure"):
        assert left_out() == ["swc-hh"]
        assert "swc-hh" not in method_names()
        _demo.run_demo(out=tmp_path / "demo.png")
    assert "Left out: swc-hh, which takes minutes on the pure core." in capsys.readouterr().out


def test_global_calibration_helps_and_leaves_the_heterogeneity(example):
    predictions = {name: calibrate(example, name) for name in ("uncalibrated", "temperature")}
    scores = score(example, predictions)
    before, after, truth = (
        scores.loc[name] for name in ("uncalibrated", "temperature", "the truth")
    )
    assert after["ece"] < before["ece"] / 2
    assert truth["brier"] < after["brier"] < before["brier"]
    assert truth["distance"] == 0
    # The Brier score above that of the truth is the squared distance, summed over both classes.
    excess = example.test.expected_brier(predictions["temperature"][0]) - (
        example.test.expected_brier(example.test.true_proba)
    )
    assert 2 * after["distance"] ** 2 == pytest.approx(excess)


def test_another_seed_is_another_example(example):
    other = make_example(seed=1)
    assert not np.array_equal(other.test.X, example.test.X)
    assert np.array_equal(make_example(seed=1).P_test, other.P_test)


def test_output_and_picture(few_methods, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _demo.run_demo()
    shown, progress = capsys.readouterr()
    for word in ("Brier", "log loss", "ECE", "accuracy", "distance to truth", "temperature"):
        assert word in shown
    assert "hidden heterogeneity" in shown
    assert "Picture: hetcal-demo.png" in shown
    assert progress == ""
    picture = (tmp_path / "hetcal-demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 200_000


def test_warnings_become_notes(monkeypatch, tmp_path, capsys):
    def calibrate_with_a_word(example, name):
        warnings.warn("Few items are near.", HetcalWarning, stacklevel=2)
        return calibrate(example, name)

    monkeypatch.setattr(_demo, "method_names", lambda: ["uncalibrated"])
    monkeypatch.setattr(_demo, "calibrate", calibrate_with_a_word)
    _demo.run_demo(out=tmp_path / "demo.png")
    printed = capsys.readouterr()
    assert "note: Few items are near." in printed.out
    assert "Warning" not in printed.out + printed.err


def test_quiet_prints_the_table_only(few_methods, tmp_path, capsys):
    _demo.run_demo(out=tmp_path / "here.svg", quiet=True)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert [line.split()[0] for line in lines] == ["method", "uncalibrated", "temperature", "the"]
    assert (tmp_path / "here.svg").exists()


def test_without_matplotlib_it_says_how_to_get_it(few_methods, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_demo, "find_spec", lambda name: None)
    _demo.run_demo()
    assert "pip install 'hetcal[plot]'" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ImportError, match=r"pip install 'hetcal\[plot\]', or leave --out away"):
        _demo.run_demo(out=tmp_path / "picture.png")


@pytest.mark.parametrize(
    ("name", "message"),
    [("demo.bmp", "must end in .png, .svg or .pdf"), ("nowhere/demo.png", "there is no folder")],
)
def test_a_picture_that_cannot_be_written_is_refused_first(name, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        _demo.run_demo(out=tmp_path / name)
