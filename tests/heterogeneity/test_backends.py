"""The joblib backend that the user names does the work, and changes no bit of the result."""

from __future__ import annotations

import logging
import os
from functools import partial

import numpy as np
import pandas as pd
import pytest
from joblib import cpu_count, parallel_config
from sklearn.linear_model import LogisticRegression

from hetcal import (
    HiddenHeterogeneity,
    LocallyCalibratedClassifier,
    SimilarityCalibrator,
    compare,
    get_calibrator,
)
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.kernels import forest_fit, parallel


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(100, n_features=4, heterogeneity=0.9, random_state=0)


@pytest.fixture(scope="module")
def cluster():
    """Two processes on this machine."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",  # any free port: another run may have the usual one
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


PROCESSES = [pytest.param(name, marks=pytest.mark.processes) for name in ("loky", "dask")]


@pytest.fixture(params=["threading", *PROCESSES])
def backend(request):
    """Return a context in which joblib's work goes to other workers, and whether by processes."""
    if request.param == "dask":
        request.getfixturevalue("cluster")
        return partial(parallel_config, "dask"), True
    return partial(parallel_config, request.param, n_jobs=2), request.param == "loky"


@pytest.fixture
def tasks(monkeypatch):
    """Count the pieces of work that were handed to workers."""
    counted = []
    spread = parallel.spread

    def counting(function, arguments, n_jobs):
        arguments = list(arguments)
        counted.append(len(arguments))
        return spread(function, arguments, n_jobs)

    import hetcal.kernels.local_forests

    for module in (hetcal.kernels.local_forests, forest_fit):
        monkeypatch.setattr(module, "spread", counting)
    return counted


def numbers_of(hidden: HiddenHeterogeneity, P) -> list:
    means = [getattr(hidden, f"{name}_", None) for name in ("hh_mean", "statistic", "p_value")]
    return [hidden.frame(P), *means]


def test_hidden_heterogeneity(data, backend, tasks):
    def fitted():
        hidden = HiddenHeterogeneity(estimate="paper", radius=0.3, n_estimators=8)
        hidden.fit(data.X, data.y, y_proba=data.y_proba)
        return numbers_of(hidden, data.y_proba[:20])

    alone = fitted()
    assert not tasks
    context, by_processes = backend
    with context():
        spread = fitted()
    assert bool(tasks) == by_processes
    assert not by_processes or max(tasks) > 1
    pd.testing.assert_frame_equal(spread[0], alone[0], check_exact=True)
    np.testing.assert_array_equal(np.array(spread[1:], float), np.array(alone[1:], float))


@pytest.mark.parametrize(("splitter", "bootstrap"), [("best", True), ("random", False)])
def test_forests(data, backend, tasks, monkeypatch, splitter, bootstrap):
    monkeypatch.setattr(forest_fit, "_WORTH_SPREADING", 1)
    options = {"n_estimators": 11, "splitter": splitter, "bootstrap": bootstrap, "n_jobs": None}

    def grown():
        return forest_fit.fit_forest(data.X, data.y, 2, **options)

    alone = grown()
    context, by_processes = backend
    with context():
        spread = grown()
    if parallel.native() is not None:
        assert bool(tasks) == by_processes
    for name in ("feature", "threshold", "left", "right", "tree_offset"):
        if hasattr(alone, name):
            np.testing.assert_array_equal(getattr(spread, name), getattr(alone, name))
    np.testing.assert_array_equal(forest_fit_apply(spread, data.X), forest_fit_apply(alone, data.X))
    if bootstrap:
        np.testing.assert_array_equal(spread.in_bag, alone.in_bag)


def forest_fit_apply(forest, X):
    from hetcal.kernels.forest_vote import apply

    return apply(forest, np.asarray(X, dtype=np.float32))


def test_calibrators_folds_and_comparisons(data, backend):
    def results():
        X, P = data.X, data.y_proba
        hidden = HiddenHeterogeneity(estimate="paper", n_estimators=5)
        swc_hh = SimilarityCalibrator(heterogeneity=hidden).fit(X, data.y, y_proba=P)
        model = LogisticRegression()
        folds = LocallyCalibratedClassifier(model, get_calibrator("swc"), random_state=0)
        compared = compare(
            X, data.y, y_proba=P, methods=["platt", "swc"], baselines=False, cv=3
        ).frame()
        return (
            swc_hh.predict_proba(X[:10], y_proba=P[:10]),
            folds.fit(X, data.y).predict_proba(X[:10]),
            compared.drop(columns=[c for c in compared if "second" in c]),
        )

    alone = results()
    with backend[0]():
        spread = results()
    for mine, theirs in zip(spread[:2], alone[:2], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    pd.testing.assert_frame_equal(spread[2], alone[2], check_exact=True)


def test_a_large_cluster_is_no_reason_for_many_threads(monkeypatch):
    assert parallel.n_threads(3) == min(3, cpu_count())
    assert parallel.n_workers(3) == 1
    with parallel_config("loky", n_jobs=500):
        assert parallel.n_threads(None) == cpu_count()
        assert parallel.n_workers(None) == 500
        assert parallel.n_threads(1) == parallel.n_workers(1) == 1
    with parallel_config("threading", n_jobs=5):
        assert parallel.n_threads(None) == min(5, cpu_count())
        assert parallel.n_workers(None) == 1


def thread_counts(_: int) -> tuple[int, int, int]:
    return parallel.n_threads(None), parallel.n_workers(None), os.getpid()


def test_a_task_has_one_core(backend):
    from joblib import Parallel, delayed

    context, by_processes = backend
    with context():
        found = Parallel()(delayed(thread_counts)(k) for k in range(4))
    assert {(threads, workers) for threads, workers, _ in found} == {(1, 1)}
    assert ({pid for *_, pid in found} == {os.getpid()}) != by_processes


def test_workers_with_another_core_are_refused(monkeypatch):
    monkeypatch.setattr(parallel, "native", lambda: None)
    with pytest.raises(RuntimeError, match="the results would differ"):
        parallel._in_worker(len, True, [])
    assert parallel._in_worker(len, False, []) == 0
