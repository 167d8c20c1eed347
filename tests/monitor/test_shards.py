"""Monitors in several processes: empty shards, their counts, and what a merge makes of them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import hetcal
from hetcal._stored.reader import declared
from hetcal.monitor.origins import MOST_ORIGINS, Origins
from hetcal.monitor.shards import ShardCounts


def stream(monitor):
    """Return the stream of all items."""
    return monitor.counts_.streams.all


def log_bound(monitor):
    return monitor._alarm_rule().log_bound()


def halves(data, n=2):
    return [(data.new.X[i::n], data.new.y_proba[i::n], data.new_by[i::n]) for i in range(n)]


def updated(monitor, n=2, *, data, shift=0.0):
    shards = [monitor.shard(i, n) for i in range(n)]
    for shard, (X, P, by) in zip(shards, halves(data, n), strict=True):
        shard.update(X + shift, y_proba=P, by=by)
    return shards


def test_a_shard_begins_empty_and_leaves_the_monitor_alone(watch, data):
    monitor = watch()
    monitor.update(data.new.X, y_proba=data.new.y_proba)
    evidence, past = (
        stream(monitor).martingale.log_value,
        stream(monitor).past.copy(),
    )
    shard = monitor.shard(0, 3)
    assert (shard.n_seen_, len(shard.frame()), shard.alarms_) == (0, 0, [])
    assert stream(shard).martingale.log_value == pytest.approx(0.0)
    shard.update(data.new.X + 4.0, y_proba=data.new.y_proba, by=["new"] * 400)
    assert (monitor.n_seen_, stream(monitor).martingale.log_value) == (400, evidence)
    np.testing.assert_array_equal(stream(monitor).past, past)
    assert monitor.alarm_ is None
    assert "new" not in monitor.counts_.streams.of_kind("by")
    assert stream(shard).base is stream(monitor).base


def test_a_shard_counts_as_a_monitor_with_its_seed_does(watch, data):
    """A shard is nothing else than the monitor anew, with another seed and another alarm rate."""
    monitor = watch()
    shard = monitor.shard(1, 2)
    again = watch(random_state=0)
    again.random_state = shard.random_state
    X, P, by = halves(data)[1]
    items = shard.update(X, y_proba=P, by=by)
    expected = again.update(X, y_proba=P, by=by)
    np.testing.assert_array_equal(items, expected)
    assert shard.groups().drop(columns="alarm").equals(again.groups().drop(columns="alarm"))


def test_shards_draw_their_own_numbers_and_the_same_again(watch, data):
    monitor = watch()
    X, P, by = halves(data)[0]
    first, second, again = (
        monitor.shard(number, 2).update(X, y_proba=P, by=by)["p"] for number in (0, 1, 0)
    )
    assert first.equals(again)
    assert not first.equals(second)


def test_the_alarm_rate_is_divided(watch):
    monitor = watch(alarm_rate=0.04)
    shard = monitor.shard(0, 10)
    assert log_bound(shard) == pytest.approx(log_bound(monitor) + np.log(20))
    assert shard._alarm_rule().window_bound() > monitor._alarm_rule().window_bound()
    assert shard.alarm_rate == monitor.alarm_rate


def test_merged_into_the_monitor_shards_add_to_what_it_had(watch, data):
    monitor = watch()
    before = monitor.update(data.new.X, y_proba=data.new.y_proba)
    shards = updated(monitor, data=data)
    capital = [np.exp(stream(m).martingale.log_value) for m in (monitor, *shards)]
    flagged = [stream(m).n_flagged for m in shards]
    tree = shards[0].merge(shards[1])
    monitor.merge(tree)
    assert monitor.n_seen_ == 800
    assert stream(monitor).n_flagged == before["flag"].sum() + sum(flagged)
    assert np.exp(stream(monitor).martingale.log_value) == pytest.approx(np.mean(capital))
    assert stream(monitor).martingale.n_processes == 3


def test_merging_raises_nothing_that_no_shard_has_raised(watch, data):
    """The mean of capitals reaches the shards' bound only where one of them has."""
    monitor = watch()
    shards = updated(monitor, 4, data=data, shift=4.0)
    told = {(alarm["who"], alarm["test"]) for shard in shards for alarm in shard.alarms_}
    assert ("all items", "evidence") in told
    tree = shards[0].merge(shards[1]).merge(shards[2].merge(shards[3]))
    assert {(alarm["who"], alarm["test"]) for alarm in tree.alarms_} == told
    quiet = updated(monitor, 4, data=data)
    tree = quiet[0].merge(quiet[1]).merge(quiet[2].merge(quiet[3]))
    assert watch().merge(tree).alarm_ is None


def test_counts_travel_without_calibrator_and_reference(watch, data):
    monitor = watch()
    shard = monitor.shard(0, 2)
    X, P, _ = halves(data)[0]
    names = np.repeat(["north", "new"], len(X) // 2)
    shard.update(X, y_proba=P, by=names, y=data.new.y[::2])
    sent = pickle.dumps(ShardCounts.from_shard(shard, 2))
    assert len(sent) < len(pickle.dumps(shard)) / 2
    back = pickle.loads(sent).to_shard(monitor)
    assert back.groups().equals(shard.groups())
    assert back.frame().equals(shard.frame())
    assert back.alarms_ == shard.alarms_
    assert list(back.counts_.streams.by_group) == list(shard.counts_.streams.by_group)
    for group, theirs in shard.counts_.streams.by_group.items():
        mine = back.counts_.streams.by_group[group]
        np.testing.assert_array_equal(mine.base, theirs.base)
        np.testing.assert_array_equal(mine.martingale.capital, theirs.martingale.capital)
    assert log_bound(back) == log_bound(shard)


@pytest.mark.parametrize("number", [-1, 2])
def test_a_shard_that_there_is_not_is_refused(watch, number):
    with pytest.raises(ValueError, match="from 0 to 1"):
        watch().shard(number, 2)


def test_a_shard_keeps_its_share_in_a_file(watch, data, tmp_path):
    monitor = watch()
    shard = monitor.shard(1, 4).shard(0, 2)
    hetcal.save(shard, tmp_path / "shard.hetcal")
    again = hetcal.load(tmp_path / "shard.hetcal")
    assert log_bound(again) == log_bound(shard) > log_bound(monitor)
    assert again._alarm_rule().window_bound() == shard._alarm_rule().window_bound()
    again.update(data.new.X, y_proba=data.new.y_proba)
    assert monitor.merge(again).n_seen_ == 400


def test_files_of_old_have_the_whole_rate_and_know_their_copies(watch, data):
    """They say nothing of shares and origins."""
    spec = declared(hetcal.SupportMonitor)
    state = spec.pack(watch())
    old = {name: state[name] for name in state if name not in ("alarm_share", "origins")}
    empty, other = (spec.unpack(copy.deepcopy(old)) for _ in range(2))
    assert empty._alarm_share == 1.0
    assert empty.counts_.origins.names == []
    empty.update(data.new.X, y_proba=data.new.y_proba)
    state = spec.pack(empty)
    old = {name: state[name] for name in old}
    copies = [spec.unpack(copy.deepcopy(old)) for _ in range(2)]
    with pytest.raises(ValueError, match="counted the same items"):
        copies[0].merge(copies[1])
    assert other.merge(copies[0]).n_seen_ == 400


def test_a_common_past_is_not_counted_twice(watch, data, tmp_path):
    X, P = data.new.X, data.new.y_proba
    monitor = watch()
    hetcal.save(monitor, tmp_path / "empty.hetcal")
    monitor.update(X[:50], y_proba=P[:50])
    hetcal.save(monitor, tmp_path / "used.hetcal")
    copies = [hetcal.load(tmp_path / "used.hetcal") for _ in range(2)]
    for number, one in enumerate(copies):
        one.update(X[number::2], y_proba=P[number::2])
    shard = monitor.shard(0, 1)
    shard.update(X, y_proba=P)
    for one, other in ((monitor, monitor), copies, (monitor, copies[0])):
        with pytest.raises(ValueError, match=r"counted the same items.*shard\(number, of\)"):
            one.merge(other)
    assert monitor.merge(shard).n_seen_ == 450
    for twice in (shard, monitor.shard(0, 1).merge(copies[1])):
        with pytest.raises(ValueError, match="counted the same items"):
            monitor.merge(twice)
    fresh = [hetcal.load(tmp_path / "empty.hetcal") for _ in range(2)]
    for one in fresh:
        one.update_labels(X, data.new.y, y_proba=P)
    with pytest.raises(ValueError, match="counted the same items"):
        fresh[0].merge(fresh[0])
    assert fresh[0].merge(fresh[1]).summary()["labels"]["n"] == 800


def test_origins_stay_few():
    many = Origins([str(number) for number in range(MOST_ORIGINS)])
    both = many.merged(Origins(["new"])).names
    assert len(both) == MOST_ORIGINS
    assert (both[0], both[-1]) == ("0", "new")


@pytest.mark.parametrize("max_history", [100, 3])
def test_the_history_counts_on_after_a_merge(watch, data, max_history):
    X, P, y = data.new.X, data.new.y_proba, data.new.y
    monitor = watch(max_history=max_history)
    shards = [monitor.shard(number, 2) for number in range(2)]
    for step in range(8):
        rows = slice(0, 10 * (step + 1))
        shards[step % 2].update(X[rows], y_proba=P[rows], y=y[rows])
    table = monitor.merge(shards[0]).merge(shards[1]).frame()
    expected = np.cumsum(10 * np.arange(1, 9))[-max_history:]
    assert table["seen"].tolist() == expected.tolist()
    assert table["seen"].iloc[-1] == monitor.n_seen_ == table["labels"].iloc[-1]
