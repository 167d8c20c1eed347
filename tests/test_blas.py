"""Threads of products of matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - it brings a BLAS of its own
from threadpoolctl import threadpool_info, threadpool_limits

from hetcal import HybridCalibrator, _blas, heterogeneity_test
from hetcal._blas import one_blas_thread
from hetcal.calibration.hybrid import calibrator


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    for name in _blas._DECIDE:
        monkeypatch.delenv(name, raising=False)
    with threadpool_limits(2, user_api="blas"):
        yield


def n_threads():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def test_small_matrices_get_one_thread_for_a_while():
    with one_blas_thread(20):
        assert n_threads() == {1}
        with one_blas_thread(20):
            pass
        assert n_threads() == {1}
    assert n_threads() == {2}


def test_nothing_changes_after_an_error():
    with pytest.raises(ZeroDivisionError), one_blas_thread(20):
        _ = 1 / 0
    assert n_threads() == {2}


def test_wide_matrices_keep_their_threads():
    with one_blas_thread(500):
        assert n_threads() == {2}


@pytest.mark.parametrize("name", _blas._DECIDE)
def test_the_user_decides(monkeypatch, name):
    monkeypatch.setenv(name, "2")
    with one_blas_thread(20):
        assert n_threads() == {2}


def test_fits_and_tests_use_it(monkeypatch):
    seen = []
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    given = {"y": rng.integers(2, size=60), "y_proba": rng.uniform(0.2, 0.8, 60)}

    class Watching:
        def fit(self, X, y):
            seen.append(n_threads())
            self.coef_ = np.linalg.lstsq(X, y, rcond=None)[0]
            return self

        def predict(self, X):
            return X @ self.coef_

        def get_params(self, deep=True):
            return {}

    heterogeneity_test(X, learners=[Watching()], **given)
    kept = calibrator.Library.global_maps
    monkeypatch.setattr(
        calibrator.Library, "global_maps", lambda self: seen.append(n_threads()) or kept(self)
    )
    HybridCalibrator(n_estimators=5).fit(X, **given)
    assert len(seen) > 1
    assert all(threads == {1} for threads in seen)
    assert n_threads() == {2}
