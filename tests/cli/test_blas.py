"""Threads of BLAS in commands."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from hetcal.cli import _blas


def n_threads():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def test_commands_start_with_one_thread():
    environment = {"PATH": "somewhere"}
    _blas.start_with_one_thread(environment)
    assert environment["OPENBLAS_NUM_THREADS"] == environment["MKL_NUM_THREADS"] == "1"
    assert "OMP_NUM_THREADS" not in environment


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"])
def test_the_user_decides(name):
    environment = {name: "3"}
    _blas.start_with_one_thread(environment)
    assert environment == {name: "3"}


def test_the_main_program_asks_before_numpy_is_loaded():
    script = (
        "import sys, hetcal.cli\n"
        "assert 'numpy' not in sys.modules\n"
        "try: hetcal.cli.main(['--version'])\n"
        "except SystemExit: pass\n"
        "import os, numpy; print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    mine = {name: value for name, value in os.environ.items() if name not in _blas._DECIDE}
    done = subprocess.run(
        [sys.executable, "-c", script], env=mine, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "1"


@pytest.mark.parametrize(
    ("n_columns", "ours", "expected"), [(500, True, 2), (20, True, 1), (500, False, 1)]
)
def test_wide_tables_get_threads(monkeypatch, n_columns, ours, expected):
    np.eye(2) @ np.eye(2)
    monkeypatch.setattr("os.environ", {_blas._OURS: "1"} if ours else {})
    with threadpool_limits(1, user_api="blas"):
        _blas.allow_threads(n_columns, 2)
        assert n_threads() == {expected}
