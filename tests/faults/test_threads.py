"""One calibrator, one monitor, many threads."""

from __future__ import annotations

import contextlib
import copy
import pickle
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import hetcal

N_THREADS, N_CALLS = 8, 24


@pytest.fixture
def eager():
    """Switch between threads as often as possible, so that what can go wrong does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work, n_calls=N_CALLS):
    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(work, range(n_calls)))


def same(found, expected):
    return all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.fixture
def watch(data, calibrators):
    def make(name="swc"):
        monitor = hetcal.SupportMonitor(calibrators[name])
        return monitor.fit(data.cal.X, y_proba=data.cal.y_proba)

    return make


@pytest.mark.parametrize("name", ["platt", "isotonic", "swc", "swc-hh", "hybrid"])
def test_a_calibrator(name, data, calibrators, eager):
    """The first calls come at once too: nobody may see half of what is computed on first use."""
    fresh = pickle.loads(pickle.dumps(calibrators[name]))
    n_calls = N_THREADS if name in ("swc-hh", "hybrid") else N_CALLS
    parts = [slice(10 * i, 10 * i + 60) for i in range(n_calls)]

    def predict(calibrator):
        return lambda i: calibrator.predict_proba(
            data.new.X[parts[i]], y_proba=data.new.y_proba[parts[i]]
        )

    expected = [predict(calibrators[name])(i) for i in range(n_calls)]
    filters = list(warnings.filters)
    assert same(at_once(predict(fresh), n_calls), expected)
    if name not in ("swc-hh", "hybrid"):  # scikit-learn itself touches the filters there
        assert warnings.filters == filters


@pytest.mark.parametrize("name", ["swc", "hybrid"])
def test_p_values_and_support(name, data, watch, eager):
    monitor = watch(name)
    parts = [slice(10 * i, 10 * i + 60) for i in range(N_CALLS)]

    def ask(i):
        new = data.new.X[parts[i]], data.new.y_proba[parts[i]]
        support = monitor.calibrator_.support(new[0], y_proba=new[1])
        return np.concatenate([support, monitor.p_values(new[0], y_proba=new[1])])

    expected = [ask(i) for i in range(N_CALLS)]
    filters = list(warnings.filters)
    assert same(at_once(ask), expected)
    if name != "hybrid":
        assert warnings.filters == filters


def test_unknown_levels_leave_the_filters_of_warnings_alone(eager):
    """A monitor keeps quiet about them without touching what belongs to all threads."""
    import pandas as pd

    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1], 120)
    X = pd.DataFrame({"age": rng.normal(size=120), "region": rng.choice(["a", "b"], 120)})
    swc = hetcal.SimilarityCalibrator().fit(X, rng.integers(0, 2, 120), y_proba=P)
    monitor = hetcal.SupportMonitor(swc).fit(X, y_proba=P)
    filters = list(warnings.filters)
    strange = X.assign(region="elsewhere")
    seen = at_once(lambda i: monitor.scorer_._encoded(strange).sum())
    assert len(set(seen)) == 1
    assert warnings.filters == filters


def test_updates_are_all_counted(data, watch, eager):
    monitor, n_calls = watch(), 60

    def update(i):
        rows = slice(5 * i, 5 * i + 10)
        monitor.update(data.new.X[rows], y_proba=data.new.y_proba[rows])
        facts = monitor.summary()  # reads while others count
        inside = sum(row["seen"] for row in facts["groups"] if row["kind"] == "class")
        assert inside == facts["seen"], "a count was seen half done"

    at_once(update, n_calls)
    assert monitor.n_seen_ == 10 * n_calls
    assert monitor.frame()["seen"].tolist() == [10 * (i + 1) for i in range(n_calls)]
    assert int(monitor.stream_.past[0].sum()) == 10 * n_calls


def test_the_first_call_may_come_from_all_threads(data, calibrators, eager):
    monitor = hetcal.SupportMonitor(calibrators["swc"])
    new = data.new.X[:20], data.new.y_proba[:20]
    found = at_once(lambda i: monitor.p_values(new[0], y_proba=new[1]))
    expected = hetcal.SupportMonitor(calibrators["swc"]).p_values(new[0], y_proba=new[1])
    assert same(found, [expected] * N_CALLS)


def test_saving_beside_updates_gives_whole_states(data, watch, tmp_path, eager):
    monitor = watch()

    def work(i):
        if i % 4:
            monitor.update(data.new.X[:10], y_proba=data.new.y_proba[:10])
            return
        path = tmp_path / f"{i}.hetcal"
        hetcal.save(monitor, path)
        saved = hetcal.load(path)
        n = saved.n_seen_
        assert int(saved.stream_.past[0].sum()) == n
        assert len(saved.frame()) == n // 10

    at_once(work)
    assert monitor.n_seen_ == 180


def test_two_merges_in_opposite_directions_do_not_wait_for_ever(data, watch, eager):
    one, two = watch(), watch()
    one.update(data.new.X[:10], y_proba=data.new.y_proba[:10])
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(a.merge, b) for a, b in ((one, two), (two, one)) for _ in range(5)]
        for merged in both:
            with contextlib.suppress(ValueError):  # the second time: it would count twice
                merged.result(timeout=30)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_a_copy_has_a_lock_of_its_own(copied, data, watch):
    monitor = watch()
    other = copied(monitor)
    assert other.turn is not monitor.turn
    with monitor.turn, ThreadPoolExecutor(1) as pool:
        pool.submit(other.frame).result(timeout=10)
