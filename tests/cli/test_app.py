"""The command line from outside: text, exit codes, and a quick start."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys

import numpy as np
import pytest
from tests.patience import PATIENCE

import hetcal
from hetcal._version import __version__
from hetcal.cli import _app, _demo, main
from hetcal.kernels import core_name, native


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code or 0


def in_new_process(code: str, *options: str) -> str:
    """Run the code where nothing is loaded yet, and return what it wrote to stderr."""
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_show_versions_is_what_python_prints(capsys):
    assert call("--show-versions") == 0
    shown = capsys.readouterr().out
    hetcal.show_versions()
    assert shown == capsys.readouterr().out
    assert f"hetcal: {__version__} ({core_name()} core)" in shown
    assert f"numpy: {np.__version__}" in shown


def test_version_names_the_core_and_the_libraries(capsys):
    assert call("--version") == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"hetcal {__version__} (")
    assert {"native": "compiled core", "pure": "pure Python core"}[core_name()] in shown
    for name in ("Python", "numpy", "scipy", "scikit-learn"):
        assert name in shown


def test_help_shows_commands_and_where_to_start(capsys):
    assert call("--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in ("demo", "--version", "Start with hetcal demo", "Exit codes: 0 done"):
        assert words in shown


def test_demo_help(capsys):
    assert call("demo", "-h") == 0
    shown = capsys.readouterr().out
    for option in ("--seed", "--out", "--quiet"):
        assert option in shown


def test_no_command_shows_the_help(capsys):
    assert call() in {0, 2}
    printed = capsys.readouterr()
    assert "Usage: hetcal" in printed.out + printed.err


@pytest.mark.parametrize("arguments", [["nonsense"], ["demo", "--seed", "x"], ["--nonsense"]])
def test_a_command_that_is_not_understood(arguments, capsys):
    assert call(*arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_error_is_one_line_with_the_remedy(monkeypatch, capsys):
    monkeypatch.setattr(_demo, "run_demo", raising(ValueError("no [such]\n  thing. Remedy: rest.")))
    assert call("demo") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "error: no [such] thing. Remedy: rest.\n"


def test_debug_shows_the_traceback(monkeypatch, capsys):
    monkeypatch.setattr(_demo, "run_demo", raising(ValueError("deep inside")))
    monkeypatch.setenv("HETCAL_DEBUG", "")  # restored afterwards, since --debug sets it
    assert call("--debug", "demo") == 1
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert shown.endswith("ValueError: deep inside\n")


def test_interruption(monkeypatch):
    monkeypatch.setattr(_demo, "run_demo", raising(KeyboardInterrupt()))
    assert call("demo") == _app.EXIT_INTERRUPTED


def test_wrong_core_is_one_line_too(monkeypatch, capsys):
    monkeypatch.setenv("HETCAL_CORE", "fast")
    assert call("--version") == 1
    assert "HETCAL_CORE must be one of auto, pure, native" in capsys.readouterr().err


def test_starts_quickly_because_heavy_libraries_wait():
    code = """
import sys
from hetcal.cli import main
try:
    main(["--version"])
except SystemExit as ended:
    heavy = {"sklearn", "pandas", "scipy", "matplotlib"} & set(sys.modules)
    assert ended.code in (None, 0) and not heavy, heavy
"""
    in_new_process(code, "-W", "error")


def test_nobody_waits_for_calibrators_to_hear_of_a_typing_error(folder):
    """A mistyped column, and a look into a file, come without scikit-learn."""
    code = f"""
import sys
from hetcal.cli import main
for arguments, expected in (
    (["inspect", {str(folder / "swc.hetcal")!r}], 0),
    (["fit", {str(folder / "loans.csv")!r}, *"--label outcom --proba p_* -o x.hetcal".split()], 2),
):
    try:
        main(arguments)
    except SystemExit as ended:
        assert (ended.code or 0) == expected, arguments
    assert "sklearn" not in sys.modules, arguments
"""
    assert "Did you mean 'outcome'?" in in_new_process(code)


@pytest.mark.skipif(native() is None, reason="scikit-learn does what the core does not")
def test_apply_loads_what_predictions_need_and_no_more(folder, call):
    """Most of the start is other libraries: those that learn and test wait until someone does."""
    table, model, out = (folder / name for name in ("loans.csv", "hybrid.hetcal", "out.csv"))
    assert not call(*f"fit {table} --label outcome --proba p_* --quiet -o {model}".split())
    code = f"""
import sys
from hetcal.cli import main
try:
    main([*"apply {model} {table} --quiet -o {out}".split()])
except SystemExit as ended:
    assert not ended.code
unused = "scipy.stats._stats_py scipy.optimize._optimize scipy.fft sklearn.ensemble "
unused += "sklearn.model_selection numpy.f2py.rules"
assert not set(unused.split()) & set(sys.modules), set(unused.split()) & set(sys.modules)
# What was put off is there on demand, in every way of asking for it.
import scipy
assert scipy.stats.norm.cdf(0) == 0.5
import scipy.stats._stats_py
from scipy.stats import mode
assert sys.modules["scipy.stats"].mode is mode is scipy.stats.mode
assert scipy.optimize.nnls([[1.0]], [2.0])[0] == 2
import numpy
assert numpy.f2py.get_include() and sys.modules["numpy.f2py"].rules is numpy.f2py.rules
"""
    in_new_process(code, "-W", "error")


@pytest.mark.processes
def test_the_collector_stays_out_of_the_start():
    """Looking for unused objects among modules that have just been loaded finds none."""
    code = """
import gc
from hetcal.cli import main
looks = []
gc.callbacks.append(lambda phase, info: looks.append(phase))
try:
    main(["inspect", "--help"])
except SystemExit:
    pass
import numpy, pandas, sklearn.base
assert not looks, len(looks)
"""
    in_new_process(code)


def test_python_m_hetcal(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["hetcal", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("hetcal", run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out.startswith("hetcal ")


def raising(error: BaseException):
    def replacement(**_: object) -> None:
        raise error

    return replacement


@pytest.mark.parametrize(
    "words",
    [
        ("monitor", "swc.hetcal", "loans.csv", "--html", "-"),
        ("monitor", "swc.hetcal", "loans.csv", "--history", "-"),
        ("refresh", "swc.hetcal", "loans.csv", "-o", "-"),
        ("fit", "loans.csv", "--label", "outcome", "--proba", "p_*", "-o", "-"),
        ("diagnose", "loans.csv", "--label", "outcome", "--proba", "p_*", "-o", "-"),
    ],
)
def test_no_file_is_named_after_standard_output(folder, tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    files = {"swc.hetcal", "loans.csv"}
    assert call(*(str(folder / word) if word in files else word for word in words)) == 2
    assert "'-' is standard output, where this cannot be written" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
