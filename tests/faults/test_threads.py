"""One calibrator, one monitor, many threads."""

from __future__ import annotations

import contextlib
import copy
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.calibration.kinds import alike
from tests.faults.estimators import CASES, PARTS, SIMILARITIES, SLOW, extended, same
from tests.patience import PATIENCE

import hetcal
from hetcal.similarity import ForestProximity

N_THREADS, N_CALLS = 8, 24


def at_once(work, n_calls=N_CALLS):
    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(work, range(n_calls)))


def in_time(*works):
    """Run each in a thread of its own, and fail where one of them waits for ever."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=PATIENCE)
        assert not thread.is_alive(), "a thread waits for ever"


def wrong_answers(ask, change, n_changes, *, seconds=0.06, n_readers=3):
    """Return what goes wrong in threads that repeat ``ask`` while ``change(i)`` is called.

    ``ask`` returns the names of wrong answers.
    """
    wrong, over = [], threading.Event()

    def read():
        try:
            while not over.is_set():
                wrong.extend(ask())
        except Exception as error:
            wrong.append(repr(error))

    def write():
        end, i = time.monotonic() + seconds, 0
        try:
            while i < n_changes or time.monotonic() < end:
                change(i)
                i += 1
        except Exception as error:
            wrong.append(repr(error))
        finally:
            over.set()

    in_time(write, *[read] * n_readers)
    return wrong


def asker(shared, asks, states):
    """Return a function that asks everything and names the answers that belong to no state."""

    def ask():
        found = {name: one(shared) for name, one in asks.items()}
        return [
            name
            for name, answer in found.items()
            if not any(same(answer, state[name]) for state in states)
        ]

    return ask


@pytest.fixture
def watch(data, calibrators):
    def make(name="swc"):
        monitor = hetcal.SupportMonitor(calibrators[name])
        return monitor.fit(data.cal.X, y_proba=data.cal.y_proba)

    return make


@pytest.mark.parametrize("name", ["platt", "isotonic", "swc", "swc-hh", "hybrid"])
def test_a_calibrator(name, data, calibrators, eager, reached_for_filters):
    """The first calls come at once too: nobody may see half of what is computed on first use."""
    fresh = pickle.loads(pickle.dumps(calibrators[name]))
    n_calls = N_THREADS if name in ("swc-hh", "hybrid") else N_CALLS
    parts = [slice(10 * i, 10 * i + 60) for i in range(n_calls)]

    def predict(calibrator):
        return lambda i: calibrator.predict_proba(
            data.new.X[parts[i]], y_proba=data.new.y_proba[parts[i]]
        )

    expected = [predict(calibrators[name])(i) for i in range(n_calls)]
    reached_for_filters.clear()
    assert same(tuple(at_once(predict(fresh), n_calls)), tuple(expected))
    assert not reached_for_filters


@pytest.mark.parametrize("name", ["swc", "hybrid"])
def test_p_values_and_support(name, data, watch, eager, reached_for_filters):
    monitor = watch(name)
    parts = [slice(10 * i, 10 * i + 60) for i in range(N_CALLS)]

    def ask(i):
        new = data.new.X[parts[i]], data.new.y_proba[parts[i]]
        support = monitor.calibrator_.support(new[0], y_proba=new[1])
        return np.concatenate([support, monitor.p_values(new[0], y_proba=new[1])])

    expected = [ask(i) for i in range(N_CALLS)]
    reached_for_filters.clear()
    assert same(tuple(at_once(ask)), tuple(expected))
    assert not reached_for_filters


def test_unknown_levels_leave_the_filters_of_warnings_alone(eager, reached_for_filters):
    """A monitor keeps quiet about them without touching what belongs to all threads."""
    import pandas as pd

    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1], 120)
    X = pd.DataFrame({"age": rng.normal(size=120), "region": rng.choice(["a", "b"], 120)})
    swc = hetcal.SimilarityCalibrator().fit(X, rng.integers(0, 2, 120), y_proba=P)
    monitor = hetcal.SupportMonitor(swc).fit(X, y_proba=P)
    strange = X.assign(region="elsewhere")
    reached_for_filters.clear()
    seen = at_once(lambda i: monitor.scorer_.distances(strange, None, None).sum())
    assert len(set(seen)) == 1
    assert not reached_for_filters


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
    assert int(monitor.counts_.streams.all.past[0].sum()) == 10 * n_calls


def test_the_first_call_may_come_from_all_threads(data, calibrators, eager):
    monitor = hetcal.SupportMonitor(calibrators["swc"])
    new = data.new.X[:20], data.new.y_proba[:20]
    found = at_once(lambda i: monitor.p_values(new[0], y_proba=new[1]))
    expected = hetcal.SupportMonitor(calibrators["swc"]).p_values(new[0], y_proba=new[1])
    assert all(same(one, expected) for one in found)


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
        assert int(saved.counts_.streams.all.past[0].sum()) == n
        assert len(saved.frame()) == n // 10

    at_once(work)
    assert monitor.n_seen_ == 180


def test_two_merges_in_opposite_directions_do_not_wait_for_ever(data, watch, eager):
    one, two = watch(), watch()
    one.update(data.new.X[:10], y_proba=data.new.y_proba[:10])

    def merge(monitor, other):
        for _ in range(5):
            with contextlib.suppress(ValueError):  # the second time: it would count twice
                monitor.merge(other)

    in_time(lambda: merge(one, two), lambda: merge(two, one))
    assert one.n_seen_ + two.n_seen_ == 20


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_a_copy_has_a_lock_of_its_own(copied, data, watch):
    monitor = watch()
    other = copied(monitor)
    assert other.lock is not monitor.lock
    with monitor.lock:
        in_time(other.frame)


def test_copies_of_a_monitor_beside_updates_are_whole(data, watch, eager):
    """Pickles, copies and shards are of one moment, and count on their own."""
    monitor, rows = watch(), slice(0, 10)

    def whole(copied):
        seen = copied.n_seen_
        groups = copied.groups()
        parts = groups.loc[groups["kind"] == "class", "seen"].sum()
        past = int(copied.counts_.streams.all.past[0].sum())
        return [] if seen == parts == past == 10 * len(copied.frame()) else ["half a count"]

    def ask():
        empty = monitor.shard(0, 2)
        found = whole(pickle.loads(pickle.dumps(monitor))) + whole(copy.copy(monitor))
        empty.update(data.new.X[rows], y_proba=data.new.y_proba[rows])
        return found + whole(empty) + ([] if empty.n_seen_ == 10 else ["a shard counts others"])

    def update(_):
        monitor.update(data.new.X[rows], y_proba=data.new.y_proba[rows])

    assert not wrong_answers(ask, update, 20, seconds=0.3)
    assert whole(monitor) == []


def test_shards_that_are_merged_beside_updates_all_count(data, watch, eager):
    monitor = watch()
    shards = [monitor.shard(i, 4) for i in range(4)]
    new = data.new.X[:10], data.new.y_proba[:10]
    for shard in shards:
        shard.update(new[0], y_proba=new[1])

    def count():
        for _ in range(6):
            monitor.update(new[0], y_proba=new[1])

    in_time(count, *[lambda s=shard: monitor.merge(s) for shard in shards], count)
    assert monitor.n_seen_ == 160
    assert int(monitor.counts_.streams.all.past[0].sum()) == 160


def test_a_monitor_beside_its_own_extend_and_fit(data, eager):
    """P-values compare new items with calibrator and reference of the same moment."""
    cal, new = data.cal, data.new
    given = {"X": new.X[:40], "y_proba": new.y_proba[:40]}

    def made():
        swc = hetcal.SimilarityCalibrator(ForestProximity(20))
        return hetcal.SupportMonitor(swc.fit(cal.X, cal.y, y_proba=cal.y_proba)).fit()

    def grow(monitor, i):
        rows = slice(20 * i, 20 * i + 20)
        monitor.extend(new.X[rows], new.y[rows], y_proba=new.y_proba[rows])
        monitor.fit()  # the same calibrator, the same reference

    asks = {"p_values": lambda m: m.p_values(**given)}
    states, alone = [], made()
    for i in range(6):
        states.append({"p_values": alone.p_values(**given)})
        grow(alone, i)
    states.append({"p_values": alone.p_values(**given)})
    shared = made()
    ask = asker(shared, asks, states)

    def read():
        shared.update(**given)
        shared.summary()
        return ask()

    assert not wrong_answers(read, lambda i: grow(shared, i), 6, seconds=0)
    assert same(shared.p_values(**given), states[-1]["p_values"])


def test_an_extend_of_a_monitor_that_fails_leaves_its_calibrator_too(data, watch, monkeypatch):
    monitor = watch()
    calibrator, before = monitor.calibrator_, pickle.dumps(monitor)
    n_items = calibrator.similarity_.n_items_

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("hetcal.monitor.fitted.start_streams", fail)
    for _ in range(2):
        with pytest.raises(MemoryError):
            monitor.extend(data.new.X[:9], data.new.y[:9], y_proba=data.new.y_proba[:9])
    assert calibrator.similarity_.n_items_ == n_items
    assert pickle.dumps(monitor) == before


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(map(alike, CASES)))
def test_predictions_beside_fits(name, answers, eager, filters):
    case = CASES[name]
    shared = case.make()
    case.fit(shared, 0)
    ask = asker(shared, case.asks, answers(name))
    n_changes = 1 if name in SLOW else 4
    assert not wrong_answers(ask, lambda i: case.fit(shared, 1 - i % 2), n_changes)


@pytest.mark.parametrize("name", ["forest", "out-of-bag", "euclidean", "combined"])
def test_predictions_beside_extend(name, eager):
    X, y, P = PARTS[0]
    shared = hetcal.SimilarityCalibrator(SIMILARITIES[name]).fit(X, y, y_proba=P)
    few = {"X": X[:9], "y_proba": P[:9]}
    asks = {
        "predict_proba": lambda c: c.predict_proba(**few),
        "support": lambda c: c.support(**few),
        "evidence": lambda c: c.evidence(**few),
        "predict_smoothed_interval": lambda c: c.predict_smoothed_interval(**few),
        "out_of_sample_support": lambda c: c.out_of_sample_support(),
        "pickle": lambda c: pickle.loads(pickle.dumps(c)).predict_proba(**few),
    }
    parts = [slice(i, i + 5) for i in range(0, 60, 15)]
    states, alone = [], copy.deepcopy(shared)
    for rows in [None, *parts]:
        alone = alone if rows is None else extended(alone, rows)
        states.append({question: ask(alone) for question, ask in asks.items()})
    ask = asker(shared, asks, states)
    assert not wrong_answers(ask, lambda i: extended(shared, parts[i]), len(parts), seconds=0)
    assert all(same(ask(shared), states[-1][question]) for question, ask in asks.items())


def test_extends_side_by_side_all_count(eager):
    X, y, P = PARTS[0]
    swc = hetcal.SimilarityCalibrator(ForestProximity(20)).fit(X, y, y_proba=P)

    def work():
        for _ in range(8):
            swc.extend(X[:5], y[:5], y_proba=P[:5])

    in_time(*[work] * 6)
    labels = swc.calibration_labels()
    assert np.array_equal(labels, np.append(y, np.tile(y[:5], 48)))
    assert swc.similarity_.n_items_ == len(labels)


def test_parameters_are_set_in_one_step(eager):
    X, y, P = PARTS[0]
    settings = ({"power": 1.0, "n_neighbors": None}, {"power": 3.0, "n_neighbors": 3})
    made = [hetcal.SimilarityCalibrator(ForestProximity(20), **s) for s in settings]
    states = [{"Q": c.fit(X, y, y_proba=P).predict_proba(X, y_proba=P)} for c in made]
    shared = made[0]
    ask = asker(shared, {"Q": lambda c: c.predict_proba(X, y_proba=P)}, states)
    assert not wrong_answers(ask, lambda i: shared.set_params(**settings[1 - i % 2]), 4)


def test_a_saved_calibrator_is_of_one_moment(tmp_path, answers, eager):
    case = CASES["swc"]
    shared = case.make()
    case.fit(shared, 0)

    def saved(calibrator):
        path = tmp_path / f"{threading.get_ident()}.hetcal"
        hetcal.save(calibrator, path)
        return case.asks["predict_proba"](hetcal.load(path))

    ask = asker(shared, {"predict_proba": saved}, answers("swc"))
    assert not wrong_answers(ask, lambda i: case.fit(shared, 1 - i % 2), 4, n_readers=2)
