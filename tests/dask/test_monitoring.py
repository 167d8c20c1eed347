"""``hetcal.dask.update_monitor``: partitions are shards, merged as a tree."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from tests.patience import PATIENCE

import hetcal
from hetcal.dask import update_monitor
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.similarity import ForestProximity

ROWS = 60


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(200, heterogeneity=1.0, random_state=0)


@pytest.fixture(scope="module")
def new(data):
    return data.sample(280, random_state=1)  # five partitions, the last one shorter


@pytest.fixture
def monitor(data):
    swc = hetcal.SimilarityCalibrator(ForestProximity(20))
    swc.fit(data.X, data.y, y_proba=data.y_proba)
    return hetcal.SupportMonitor(swc).fit(data.X, y_proba=data.y_proba)


def lazily(monitor, new, shift=0.0):
    arrays = (new.X + shift, new.y_proba, new.y, np.where(new.X[:, 0] > 0, "north", "south"))
    X, P, y, by = (da.from_array(a, chunks=(ROWS, -1)[: a.ndim]) for a in arrays)
    return update_monitor(monitor, X, y_proba=P, y=y, by=by)


def in_one_process(monitor, new, shift=0.0):
    """Follow the rule in words: shards in order, neighbours merged, then pairs of pairs."""
    n = -(-len(new.X) // ROWS)
    by = np.where(new.X[:, 0] > 0, "north", "south")
    shards = [monitor.shard(number, n) for number in range(n)]
    for number, shard in enumerate(shards):
        own = slice(number * ROWS, (number + 1) * ROWS)
        shard.update(new.X[own] + shift, y_proba=new.y_proba[own], y=new.y[own], by=by[own])
    a, b, c, d, e = shards
    return monitor.merge(a.merge(b).merge(c.merge(d)).merge(e))


def assert_equal(found, expected):
    assert found.summary() == expected.summary()
    pd.testing.assert_frame_equal(found.groups(), expected.groups())
    columns = ["items", "flagged", "discoveries", "log10_evidence", "window", "alarms"]
    mine, theirs = (sorted(m.frame()[columns].to_numpy().tolist()) for m in (found, expected))
    assert mine == theirs
    streams = (m.counts_.streams.sorted() for m in (found, expected))
    for (_, one), (_, other) in zip(*streams, strict=True):
        np.testing.assert_array_equal(one.past, other.past)
        np.testing.assert_array_equal(one.martingale.capital, other.martingale.capital)


@pytest.mark.parametrize("shift", [0.0, 4.0])
def test_the_result_is_the_rule_to_the_bit(client, monitor, new, shift):
    found = client.compute(lazily(monitor, new, shift)).result(timeout=PATIENCE)
    assert monitor.n_seen_ == 0  # it stays as it was
    expected = in_one_process(monitor, new, shift)
    assert_equal(found, expected)
    assert found.n_seen_ == 280
    assert (found.alarm_ is not None) == (shift > 0)
    assert found.random_state == monitor.random_state


def test_it_goes_on_from_where_the_monitor_was(monitor, new):
    monitor.update(new.X[:50], y_proba=new.y_proba[:50])
    found = lazily(monitor, new).compute(scheduler="sync")
    assert_equal(found, in_one_process(monitor, new))
    assert found.n_seen_ == 330
    again = found.update(new.X[:50], y_proba=new.y_proba[:50])  # and goes on by itself
    assert len(again) == 50


def test_frames_count_like_arrays(monitor, new):
    table = pd.DataFrame(np.hstack([new.X, new.y_proba])).add_prefix("c")
    features, output = table.columns[:-2].tolist(), table.columns[-2:].tolist()
    lazy = dd.from_map(
        lambda start: table[start : start + ROWS], range(0, len(table), ROWS), meta=table[:0]
    )
    found = update_monitor(monitor, lazy[features], y_proba=lazy[output]).compute(scheduler="sync")
    X, P = (da.from_array(a, chunks=(ROWS, -1)) for a in (new.X, new.y_proba))
    assert_equal(found, update_monitor(monitor, X, y_proba=P).compute(scheduler="sync"))


def test_a_result_can_be_saved(monitor, new, tmp_path):
    found = lazily(monitor, new).compute(scheduler="sync")
    hetcal.save(found, tmp_path / "watch.hetcal")
    again = hetcal.load(tmp_path / "watch.hetcal")
    assert again.summary() == found.summary()
    assert again._alarm_rule() == found._alarm_rule() == monitor._alarm_rule()


def test_counts_are_small_beside_the_monitor(monitor, new):
    """What goes from worker to worker in the tree is counts, not calibrators."""
    import pickle

    from hetcal.batches.packed import pack
    from hetcal.dask.monitoring import _counted

    part = {"X": new.X[:ROWS], "y_proba": new.y_proba[:ROWS]}
    counts = _counted(pack(monitor), 0, 5, part)
    assert b"SimilarityCalibrator" not in pickle.dumps(counts)


def test_wrong_things_are_refused(monitor, new):
    X = da.from_array(new.X, chunks=(ROWS, -1))
    P = da.from_array(new.y_proba, chunks=(ROWS, -1))
    with pytest.raises(TypeError, match="needs a SupportMonitor; got SimilarityCalibrator"):
        update_monitor(monitor.calibrator_, X, y_proba=P)
    with pytest.raises(ValueError, match="different chunks"):
        update_monitor(monitor, X, y_proba=P, y=da.from_array(new.y, chunks=7))


@pytest.mark.parametrize("name", ["y", "by"])
def test_labels_and_groups_of_other_rows_are_refused(monitor, new, name):
    X, P = (dd.from_pandas(pd.DataFrame(a), npartitions=4) for a in (new.X, new.y_proba))
    turned = dd.from_pandas(pd.Series(new.y).iloc[::-1], npartitions=4, sort=False)
    lazy = update_monitor(monitor, X, y_proba=P, **{name: turned})
    with pytest.raises(ValueError, match=f"partition of {name} and of the classifier's output"):
        lazy.compute(scheduler="sync")


def test_without_features_the_monitor_says_what_it_needs(monitor, new):
    P = da.from_array(new.y_proba, chunks=(ROWS, -1))
    with pytest.raises(TypeError, match="needs X"):
        update_monitor(monitor, None, y_proba=P)
