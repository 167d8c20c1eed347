"""``hetcal.dask.predict_proba``: lazily, by partitions, the calibrator once per process."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from tests.patience import PATIENCE

import hetcal
from hetcal.batches.packed import times_unpacked
from hetcal.dask import predict_proba
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.similarity import ForestProximity


@pytest.fixture(scope="module")
def data():
    return make_hidden_heterogeneity(200, heterogeneity=1.0, random_state=0)


@pytest.fixture(scope="module")
def new(data):
    return data.sample(330, random_state=1)


@pytest.fixture(scope="module")
def swc(data):
    return hetcal.SimilarityCalibrator(ForestProximity(20)).fit(
        data.X, data.y, y_proba=data.y_proba
    )


def chunked(array, rows=100, columns=-1):
    return da.from_array(array, chunks=(rows, columns)[: array.ndim])


def frames(new, npartitions=4):
    X = pd.DataFrame(new.X).add_prefix("x").set_index(np.arange(len(new.X)) * 2 + 7)
    P = pd.DataFrame(new.y_proba, index=X.index).add_prefix("p")
    both = dd.from_pandas(pd.concat([X, P], axis=1), npartitions=npartitions)
    return X, P, both[list(X.columns)], both[list(P.columns)]


def on(client, lazy):
    return client.compute(lazy).result(timeout=PATIENCE)


@pytest.mark.parametrize("columns", [-1, 1])
def test_arrays_are_what_one_process_says(client, swc, new, columns):
    lazy = predict_proba(
        swc, chunked(new.X, columns=columns), y_proba=chunked(new.y_proba, columns=columns)
    )
    assert lazy.chunks == ((100, 100, 100, 30), (2,))
    assert lazy.dtype == np.float64
    assert isinstance(lazy._meta, np.ndarray)
    np.testing.assert_array_equal(on(client, lazy), swc.predict_proba(new.X, y_proba=new.y_proba))


def test_frames_are_what_one_process_says(client, data, new):
    named = pd.DataFrame(data.X).add_prefix("x")
    swc = hetcal.SimilarityCalibrator(ForestProximity(20))
    swc.fit(named, np.where(data.y == 1, "yes", "no"), y_proba=data.y_proba)
    X, P, lazy_X, lazy_P = frames(new)
    lazy = predict_proba(swc, lazy_X, y_proba=lazy_P)
    assert list(lazy.columns) == ["no", "yes"]
    assert lazy.divisions == lazy_X.divisions
    Q = on(client, lazy)
    pd.testing.assert_index_equal(Q.index, X.index)
    np.testing.assert_array_equal(Q, swc.predict_proba(X, y_proba=P.to_numpy()))
    assert Q.dtypes.tolist() == lazy.dtypes.tolist()


def test_maps_without_features(client, data, new):
    platt = hetcal.PlattScaling().fit(None, data.y, y_proba=data.y_proba)
    lazy = predict_proba(platt, None, y_proba=chunked(new.y_proba))
    np.testing.assert_array_equal(on(client, lazy), platt.predict_proba(y_proba=new.y_proba))
    lazy = predict_proba(platt, None, y_proba=frames(new)[3])
    np.testing.assert_array_equal(on(client, lazy), platt.predict_proba(y_proba=new.y_proba))


def test_logits(client, data, new):
    logits, later = np.log(data.y_proba), np.log(new.y_proba)
    scaling = hetcal.TemperatureScaling().fit(None, data.y, logits=logits)
    lazy = predict_proba(scaling, None, logits=chunked(later))
    np.testing.assert_array_equal(on(client, lazy), scaling.predict_proba(logits=later))


def test_nothing_is_computed_before_it_is_asked_for(swc, new):
    computed = []

    def remember(block):
        computed.append(len(block))
        return block

    X = chunked(new.X).map_blocks(remember, meta=np.empty((0, 0)))
    lazy = predict_proba(swc, X, y_proba=chunked(new.y_proba))
    assert computed == []
    assert lazy[:5].compute(scheduler="sync").shape == (5, 2)
    assert computed == [100]  # and then only what is needed


def test_the_calibrator_is_unpacked_once_per_process(client, data, new):
    swc = hetcal.SimilarityCalibrator(ForestProximity(21)).fit(data.X, data.y, y_proba=data.y_proba)
    before = client.run(times_unpacked)
    for _ in range(2):
        lazy = predict_proba(swc, chunked(new.X, 10), y_proba=chunked(new.y_proba, 10))
        on(client, lazy.sum())
    after = client.run(times_unpacked)
    counts = [after[worker] - before.get(worker, 0) for worker in after]
    assert max(counts) == 1, counts  # of 66 tasks


def test_the_graph_holds_the_calibrator_once(swc, new):
    from hetcal.batches.packed import pack

    lazy = predict_proba(swc, chunked(new.X, 1), y_proba=chunked(new.y_proba, 1))
    import cloudpickle

    size = len(cloudpickle.dumps(lazy.dask.layers[lazy.name]))
    assert size < len(pack(swc).content) / 10


def test_a_file_needs_not_be_where_the_workers_are(client, swc, new, tmp_path):
    hetcal.save(swc, tmp_path / "swc.hetcal")
    X, P = chunked(new.X), chunked(new.y_proba)
    lazy = predict_proba(tmp_path / "swc.hetcal", X, y_proba=P)
    (tmp_path / "swc.hetcal").unlink()
    np.testing.assert_array_equal(on(client, lazy), swc.predict_proba(new.X, y_proba=new.y_proba))


def test_later_changes_of_the_calibrator_do_not_matter(data, new):
    swc = hetcal.SimilarityCalibrator(ForestProximity(20))
    swc.fit(data.X, data.y, y_proba=data.y_proba)
    before = swc.predict_proba(new.X, y_proba=new.y_proba)
    lazy = predict_proba(swc, chunked(new.X), y_proba=chunked(new.y_proba))
    swc.extend(data.X[:50], 1 - data.y[:50], y_proba=data.y_proba[:50])
    assert (swc.predict_proba(new.X, y_proba=new.y_proba) != before).any()
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), before)


def test_empty_partitions_and_unknown_lengths(swc, new):
    X, P = chunked(new.X), chunked(new.y_proba)
    keep = X[:, 0] > 0
    rows = new.X[:, 0] > 0
    lazy = predict_proba(swc, X[keep], y_proba=P[keep])
    expected = swc.predict_proba(new.X[rows], y_proba=new.y_proba[rows])
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), expected)
    nobody = X[:, 0] > X[:, 0].max()
    assert predict_proba(swc, X[nobody], y_proba=P[nobody]).compute(scheduler="sync").shape == (
        0,
        2,
    )
    wrong = predict_proba(swc, X[keep], y_proba=P[~keep])
    with pytest.raises(ValueError, match="Make both from one table"):
        wrong.compute(scheduler="sync")


def test_what_does_not_belong_together_is_refused(swc, new):
    X, P = chunked(new.X), chunked(new.y_proba)
    with pytest.raises(ValueError, match=r"y_proba.rechunk\({0: X.chunks\[0\]}\)"):
        predict_proba(swc, X, y_proba=chunked(new.y_proba, 50))
    _, _, frame, probabilities = frames(new)
    with pytest.raises(TypeError, match="X is a dask frame but y_proba a dask array"):
        predict_proba(swc, frame, y_proba=P)
    with pytest.raises(ValueError, match="X has 4 partitions and y_proba 2"):
        predict_proba(swc, frame, y_proba=probabilities.repartition(npartitions=2))
    moved = probabilities.repartition(divisions=[7, 100, 200, 300, 665])
    with pytest.raises(ValueError, match=r"y_proba.repartition\(divisions=X.divisions\)"):
        predict_proba(swc, frame, y_proba=moved)
    with pytest.raises(TypeError, match="got ndarray"):
        predict_proba(swc, X, y_proba=new.y_proba)
    with pytest.raises(TypeError, match="y_proba or logits"):
        predict_proba(swc, X)


def test_rows_in_another_order_are_refused(swc, new):
    frame, probabilities = frames(new)[2:]
    turned = probabilities.map_partitions(lambda part: part.iloc[::-1], meta=probabilities._meta)
    with pytest.raises(ValueError, match="different indexes"):
        predict_proba(swc, frame, y_proba=turned).compute(scheduler="sync")
