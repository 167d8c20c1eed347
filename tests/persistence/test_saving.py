"""Writing in one step, refusing what has no place in a file, and leaving features out."""

from __future__ import annotations

import errno
import io
import os
import pickle
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

import hetcal
from hetcal.persistence import describe
from hetcal.similarity import CombinedSimilarity, ForestProximity, RBFSimilarity

pytestmark = pytest.mark.filterwarnings("ignore::hetcal._exceptions.HetcalWarning")


def test_a_full_disk_leaves_the_old_file(data, tmp_path, monkeypatch):
    path = tmp_path / "c.hetcal"
    hetcal.save(data.fitted(hetcal.PlattScaling()), path)
    before = path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        hetcal.save(data.fitted(hetcal.BetaCalibration()), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_save_writes_nothing(data, tmp_path):
    swc = data.fitted(hetcal.SimilarityCalibrator(lambda A, B: np.ones((len(A), len(B)))))
    with pytest.raises(TypeError):
        hetcal.save(swc, tmp_path / "c.hetcal")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Unix permissions and links")
def test_permissions_and_links_stay(data, tmp_path):
    path, link = tmp_path / "c.hetcal", tmp_path / "link"
    platt = data.fitted(hetcal.PlattScaling())
    mask = os.umask(0o022)
    try:
        hetcal.save(platt, path)
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o644
    path.chmod(0o640)
    link.symlink_to(path)
    hetcal.save(platt, link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("calibrator", "said"),
    [
        (hetcal.SimilarityCalibrator(lambda A, B: np.ones((len(A), len(B)))), "holds no code"),
        (hetcal.SimilarityCalibrator(features=PCA(2)), "transform X before"),
        (
            hetcal.SimilarityCalibrator(ForestProximity(5, random_state=np.random.RandomState(0))),
            "integer as random_state",
        ),
        (
            hetcal.HybridCalibrator([LogisticRegression(), "proximity"], n_estimators=5),
            "LogisticRegression",
        ),
    ],
)
def test_what_has_no_place_in_a_file(calibrator, said, data, tmp_path):
    with pytest.raises(TypeError, match=said):
        hetcal.save(data.fitted(calibrator), tmp_path / "c.hetcal")


def test_the_classifier_inside_is_not_ours(data, tmp_path):
    model = hetcal.LocallyCalibratedClassifier(LogisticRegression(), "temperature")
    model.fit(data.X, data.y)
    with pytest.raises(TypeError, match=r"Save classifier\.calibrator_"):
        hetcal.save(model, tmp_path / "c.hetcal")
    hetcal.save(model.calibrator_, tmp_path / "c.hetcal")
    P = model.estimator_.predict_proba(data.X_new)
    np.testing.assert_array_equal(
        hetcal.load(tmp_path / "c.hetcal").predict_proba(data.X_new, y_proba=P),
        model.predict_proba(data.X_new),
    )


def test_only_fitted_calibrators(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        hetcal.save(hetcal.PlattScaling(), tmp_path / "c")
    with pytest.raises(TypeError, match="stores calibrators; got LogisticRegression"):
        hetcal.save(LogisticRegression(), tmp_path / "c")


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_notes_are_refused(depth, calibrators, tmp_path):
    notes: list = []
    for _ in range(depth):
        notes = [notes]
    with pytest.raises(TypeError, match="nested more than 99 levels deep"):
        hetcal.save(calibrators["platt"], tmp_path / "c", metadata={"deep": notes})
    assert list(tmp_path.iterdir()) == []


def test_a_name_of_255_characters(calibrators, tmp_path):
    path = tmp_path / ("c" * 248 + ".hetcal")
    hetcal.save(calibrators["platt"], path)
    assert list(tmp_path.iterdir()) == [path]
    hetcal.load(path)


def test_a_history_that_is_put_back_counts_the_same_again(calibrators, data, tmp_path):
    monitor = hetcal.SupportMonitor(calibrators["swc"]).fit(data.X, y_proba=data.P)
    hetcal.save(monitor, tmp_path / "old")
    monitor.update(data.X_new, y_proba=data.P_new)
    again = hetcal.load(tmp_path / "old")  # knows nothing of the batch
    assert again.n_seen_ == 0
    again.update(data.X_new, y_proba=data.P_new)
    assert again.summary() == monitor.summary()
    with pytest.raises(ValueError, match="same reference|same items"):
        monitor.merge(hetcal.load(tmp_path / "old").merge(monitor))


def test_notes_must_be_json(data, tmp_path):
    with pytest.raises(TypeError, match="metadata must be JSON"):
        hetcal.save(data.fitted(hetcal.PlattScaling()), tmp_path / "c", metadata={"x": {1, 2}})


# -- forgetting features -------------------------------------------------------------------------


def arrays_of(path: Path) -> list:
    from hetcal.persistence.container import read

    return read(path)[1]


@pytest.mark.parametrize("voters", ["all", "out-of-bag"])
def test_a_forest_forgets_who_is_in_its_leaves(voters, data, tmp_path):
    path = tmp_path / "c.hetcal"
    swc = data.fitted(hetcal.SimilarityCalibrator(ForestProximity(40, voters=voters)))
    hetcal.save(swc, path, forget_features=True)
    loaded = hetcal.load(path)
    Q, support = swc.predict_proba(data.X_new, y_proba=data.P_new, return_support=True)
    new = loaded.predict_proba(data.X_new, y_proba=data.P_new, return_support=True)
    np.testing.assert_array_equal(Q, new[0])
    np.testing.assert_array_equal(support, new[1])
    np.testing.assert_array_equal(swc.out_of_sample_proba_, loaded.out_of_sample_proba_)
    assert isinstance(loaded, hetcal.SimilarityCalibrator)
    for name in ("evidence", "effective_sample_size", "predict_smoothed_interval"):
        with pytest.raises(ValueError, match="not available.*forget_features"):
            getattr(loaded, name)(data.X_new, y_proba=data.P_new)
    with pytest.raises(ValueError, match="extend is not available"):
        loaded.extend(data.X_new, data.y_new, y_proba=data.P_new)
    # Nothing in the file has a row per item but labels and probabilities.
    n, K = len(data.y), 2
    assert all(a.shape in {(n,), (n, K)} for a in arrays_of(path) if n in a.shape)
    about = describe(path)["calibrator"]
    assert (about["kind"], about["forget_features"], about["leaf_numbers"]) == (
        "SimilarityCalibrator",
        True,
        False,
    )
    assert len(swc.evidence(data.X_new, y_proba=data.P_new))  # the original is as it was
    data.fitted(loaded)  # and a new fit knows its items
    assert len(loaded.evidence(data.X_new, y_proba=data.P_new))


@pytest.mark.parametrize(
    "calibrator",
    [
        hetcal.SimilarityCalibrator(ForestProximity(9), n_neighbors=5),
        hetcal.SimilarityCalibrator(ForestProximity(40, voters="out-of-bag"), power=2.0),
        hetcal.SimilarityCalibrator(CombinedSimilarity(ForestProximity(5), RBFSimilarity())),
        hetcal.HybridCalibrator(("proximity", "forests"), n_estimators=6),
        hetcal.LabelPreserving(hetcal.SimilarityCalibrator(ForestProximity(9), n_neighbors=5)),
    ],
    ids=lambda calibrator: type(calibrator).__name__,
)
def test_item_by_item_votes_keep_leaf_numbers_only(calibrator, data, tmp_path):
    path = tmp_path / "c.hetcal"
    data.fitted(calibrator)
    hetcal.save(calibrator, path, forget_features=True)
    loaded = hetcal.load(path)
    np.testing.assert_array_equal(
        calibrator.predict_proba(data.X_new, y_proba=data.P_new),
        loaded.predict_proba(data.X_new, y_proba=data.P_new),
    )
    with pytest.raises(ValueError, match="evidence is not available"):
        loaded.evidence(data.X_new, y_proba=data.P_new)
    assert describe(path)["calibrator"]["leaf_numbers"]
    columns = {value.tobytes() for value in data.X.T}
    for array in arrays_of(path):
        stored = {np.ascontiguousarray(column).tobytes() for column in np.atleast_2d(array.T)}
        assert not columns & stored


@pytest.mark.parametrize(
    ("calibrator", "said"),
    [
        (hetcal.get_calibrator("sba"), "EuclideanSimilarity compares new items"),
        (hetcal.SimilarityCalibrator("rbf"), "similarity='forest'"),
        (
            hetcal.SimilarityCalibrator(
                heterogeneity=hetcal.HiddenHeterogeneity(learners=[], n_null=2, n_estimators=3)
            ),
            "heterogeneity=None",
        ),
    ],
)
def test_what_cannot_be_forgotten(calibrator, said, data, tmp_path):
    with pytest.raises(ValueError, match=said):
        hetcal.save(data.fitted(calibrator), tmp_path / "c", forget_features=True)


def test_an_expert_with_a_say_cannot_forget(data, tmp_path):
    hybrid = data.fitted(hetcal.HybridCalibrator(("neighbours", "proximity"), n_estimators=5))
    place = [name for f in hybrid.families_ for name in f.names].index("5-nearest-log")
    for weight, refused in ((0.0, False), (0.5, True)):
        hybrid.share_ = 1.0
        hybrid.weights_[:] = 0.0
        hybrid.weights_[1 + place], hybrid.weights_[0] = weight, 1 - weight
        if refused:
            with pytest.raises(ValueError, match="5-nearest-log.*experts="):
                hetcal.save(hybrid, tmp_path / "c", forget_features=True)
        else:
            hetcal.save(hybrid, tmp_path / "c", forget_features=True)
            np.testing.assert_array_equal(
                hetcal.load(tmp_path / "c").predict_proba(data.X_new, y_proba=data.P_new),
                hybrid.predict_proba(data.X_new, y_proba=data.P_new),
            )


def test_global_maps_have_nothing_to_forget(data, tmp_path):
    hetcal.save(data.fitted(hetcal.PlattScaling()), tmp_path / "c", forget_features=True)
    assert isinstance(hetcal.load(tmp_path / "c"), hetcal.PlattScaling)


# -- other ways to store -------------------------------------------------------------------------


def test_pickle_and_joblib(kind, calibrators, data):
    calibrator = calibrators[kind]
    expected = calibrator.predict_proba(data.X_new, y_proba=data.P_new)
    stream = io.BytesIO()
    joblib.dump(calibrator, stream)
    stream.seek(0)
    for copied in (pickle.loads(pickle.dumps(calibrator)), joblib.load(stream)):
        said = copied.predict_proba(data.X_new, y_proba=data.P_new)
        np.testing.assert_array_equal(said, expected)


def test_skops(kind, calibrators, data):
    import skops.io as sio

    calibrator = calibrators[kind]
    dumped = sio.dumps(calibrator)
    loaded = sio.loads(dumped, trusted=sio.get_untrusted_types(data=dumped))
    np.testing.assert_array_equal(
        loaded.predict_proba(data.X_new, y_proba=data.P_new),
        calibrator.predict_proba(data.X_new, y_proba=data.P_new),
    )


def test_a_loaded_calibrator_can_be_pickled(kind, calibrators, data, tmp_path):
    hetcal.save(calibrators[kind], tmp_path / "c")
    loaded = hetcal.load(tmp_path / "c")
    copied = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(
        copied.predict_proba(data.X_new, y_proba=data.P_new),
        loaded.predict_proba(data.X_new, y_proba=data.P_new),
    )


def test_a_name_as_long_as_the_system_permits(tmp_path):
    from hetcal.persistence.atomic_file import write_atomic

    for name in ("n" * 255, "é" * 127):
        write_atomic(tmp_path / name, "all of it")
        assert (tmp_path / name).read_text() == "all of it"
    assert len(list(tmp_path.iterdir())) == 2


def test_what_could_not_be_loaded_again_is_not_written(data, tmp_path):
    path = tmp_path / "c.hetcal"
    hetcal.save(data.fitted(hetcal.PlattScaling()), path)
    before = path.read_bytes()
    pairs = pd.Categorical([(1, "a") if x > 0 else (2, "b") for x in data.X[:, 0]])
    table = pd.DataFrame({"x": data.X[:, 0], "pair": pairs})
    calibrator = hetcal.SimilarityCalibrator(ForestProximity(3)).fit(table, data.y, y_proba=data.P)
    with pytest.raises(ValueError, match=r"could not be loaded again.*wrong levels.*pickle"):
        hetcal.save(calibrator, path)
    assert path.read_bytes() == before


def test_a_save_leaves_the_calibrator_as_it_is(data, tmp_path):
    calibrator = data.fitted(hetcal.IsotonicCalibration())
    hetcal.save(calibrator, tmp_path / "c.hetcal")
    assert all(levels.flags.writeable for levels in calibrator.levels_)


def test_text_that_is_no_unicode_comes_back(data, tmp_path):
    path = tmp_path / "c.hetcal"
    labels = np.array(["no", "\udcff"])[data.y]
    calibrator = hetcal.PlattScaling().fit(None, labels, y_proba=data.P)
    hetcal.save(calibrator, path, metadata={"table": "loans\udcff.csv"})
    assert hetcal.load(path).classes_.tolist() == ["no", "\udcff"]
    assert describe(path)["metadata"] == {"table": "loans\udcff.csv"}
