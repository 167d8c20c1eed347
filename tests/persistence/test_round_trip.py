"""What is loaded is what was saved: every answer, to the bit, in this process and in another."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from tests.patience import PATIENCE

import hetcal
from hetcal._validation.vectors import spread_vectors
from hetcal.kernels import core_name, use_core
from hetcal.persistence import describe
from hetcal.persistence.budget import Budget
from hetcal.persistence.tree import Decoder, Encoder
from hetcal.similarity import EuclideanSimilarity, ForestProximity

#: A hybrid without boosting; boosted trees have tests of their own.
LIGHT = {"n_estimators": 6, "experts": ("proximity", "forests", "neighbours", "kernel")}

pytestmark = pytest.mark.filterwarnings("ignore::hetcal._exceptions.HetcalWarning")


def answers(calibrator, X, P) -> dict:
    """Return everything that a calibrator can say about new items."""
    said = {"proba": calibrator.predict_proba(X, y_proba=P)}
    for name in ("support", "effective_sample_size"):
        if hasattr(calibrator, name):
            said[name] = getattr(calibrator, name)(X, y_proba=P)
    for kind in ("", "smoothed_", "frequency_"):
        if hasattr(calibrator, f"predict_{kind}interval"):
            ends = getattr(calibrator, f"predict_{kind}interval")(X, y_proba=P)
            said[f"{kind}low"], said[f"{kind}high"] = ends
    if hasattr(calibrator, "evidence"):
        said["evidence"] = calibrator.evidence(X, y_proba=P, top=4)
    if hasattr(calibrator, "out_of_sample_proba_"):
        said["out of sample"] = calibrator.out_of_sample_proba_
    return said


def assert_same(one: dict, two: dict) -> None:
    assert one.keys() == two.keys()
    for name, value in one.items():
        if isinstance(value, pd.DataFrame):
            pd.testing.assert_frame_equal(value, two[name], check_exact=True)
        else:
            np.testing.assert_array_equal(value, two[name], err_msg=name)


def reloaded(calibrator, folder, **options):
    hetcal.save(calibrator, folder / "c.hetcal", **options)
    return hetcal.load(folder / "c.hetcal")


def test_answers_are_the_same_to_the_bit(kind, calibrators, data, tmp_path):
    loaded = reloaded(calibrators[kind], tmp_path)
    before = answers(calibrators[kind], data.X_new, data.P_new)
    assert_same(before, answers(loaded, data.X_new, data.P_new))
    assert type(loaded) is type(calibrators[kind])
    assert repr(loaded) == repr(calibrators[kind])


def test_a_loaded_calibrator_can_be_saved_again(kind, calibrators, tmp_path):
    loaded = reloaded(calibrators[kind], tmp_path, date=None)
    hetcal.save(loaded, tmp_path / "again.hetcal", date=None)
    twice = hetcal.load(tmp_path / "again.hetcal")
    hetcal.save(twice, tmp_path / "thrice.hetcal", date=None)
    content = (tmp_path / "again.hetcal").read_bytes()
    assert content == (tmp_path / "thrice.hetcal").read_bytes()


_CHILD = """
import sys, warnings
from pathlib import Path
import numpy as np
import hetcal
warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
new = np.load(folder / "new.npz")
np.savez(folder / "said.npz", **{
    path.stem: hetcal.load(path).predict_proba(new["X"], y_proba=new["P"])
    for path in folder.glob("*.hetcal")
})
"""


@pytest.mark.parametrize("core", ["native", pytest.param("pure", marks=pytest.mark.processes)])
def test_predictions_in_another_process(core, calibrators, data, tmp_path):
    if core == "native" and core_name() == "pure":
        pytest.skip("the compiled core is not there, or switched off")
    # Local forests, which SWC-HH grows, take the pure core too long.
    kinds = [name for name in data.kinds if core == "native" or not name.startswith("swc-hh")]
    expected = {}
    np.savez(tmp_path / "new.npz", X=data.X_new, P=data.P_new)
    with use_core(core):
        for name in kinds:
            hetcal.save(calibrators[name], tmp_path / f"{name}.hetcal")
            expected[name] = calibrators[name].predict_proba(data.X_new, y_proba=data.P_new)
    subprocess.run(
        [sys.executable, "-c", _CHILD, str(tmp_path)],
        check=True,
        env=os.environ | {"HETCAL_CORE": core},
        timeout=PATIENCE,
    )
    said = np.load(tmp_path / "said.npz")
    assert set(said) == set(expected)
    for name, proba in expected.items():
        np.testing.assert_array_equal(proba, said[name], err_msg=name)


@pytest.mark.parametrize(
    "labels", [["no", "yes"], [3, 70], [False, True], [0.0, 2.0], ["ä \U0001f600", "b"]]
)
def test_classes_of_any_type(labels, data, tmp_path):
    y = np.array(labels)[data.y]
    swc = data.fitted(hetcal.SimilarityCalibrator(ForestProximity(5)), y=y)
    loaded = reloaded(swc, tmp_path)
    assert loaded.classes_.dtype == swc.classes_.dtype
    assert loaded.classes_.tolist() == swc.classes_.tolist()
    assert_same(answers(swc, data.X_new, data.P_new), answers(loaded, data.X_new, data.P_new))


@pytest.mark.parametrize("name", ["temperature", "isotonic", "vector", "swc", "hybrid"])
def test_many_classes(name, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 3)), rng.integers(0, 6, 150)
    P = rng.dirichlet(np.ones(6), 150)
    options = LIGHT if name == "hybrid" else {}
    calibrator = hetcal.get_calibrator(name, **options).fit(X, y, y_proba=P)
    loaded = reloaded(calibrator, tmp_path)
    assert_same(answers(calibrator, X[:9], P[:9]), answers(loaded, X[:9], P[:9]))


@pytest.mark.parametrize("name", ["temperature", "swc", "hybrid"])
def test_logits(name, data, tmp_path):
    logits = np.log(np.clip(data.P, 1e-6, 1))
    options = LIGHT if name == "hybrid" else {}
    calibrator = hetcal.get_calibrator(name, **options).fit(data.X, data.y, logits=logits)
    loaded = reloaded(calibrator, tmp_path)
    new = {"logits": logits[:7]}
    np.testing.assert_array_equal(
        calibrator.predict_proba(data.X[:7], **new), loaded.predict_proba(data.X[:7], **new)
    )


@pytest.mark.parametrize("name", ["swc", "sbaw", "hybrid"])
def test_tables_with_categories_and_names(name, data, tmp_path):
    options = LIGHT if name == "hybrid" else {}
    calibrator = data.fitted(hetcal.get_calibrator(name, **options), X=data.table)
    loaded = reloaded(calibrator, tmp_path)
    assert_same(
        answers(calibrator, data.table_new, data.P_new),
        answers(loaded, data.table_new, data.P_new),
    )
    with pytest.raises(ValueError, match="another order"):
        loaded.predict_proba(data.table_new[data.table_new.columns[::-1]], y_proba=data.P_new)


@pytest.mark.parametrize("levels", [[1, 2], [1.5, 2.5], [True, False], ["x", None]])
def test_levels_of_any_type(levels, data, tmp_path):
    table = data.table.drop(columns="colour")
    table["level"] = pd.Categorical([levels[i % 2] for i in range(len(table))])
    swc = data.fitted(hetcal.SimilarityCalibrator(ForestProximity(5)), X=table)
    loaded = reloaded(swc, tmp_path)
    assert loaded.space_.encoder.levels_ == swc.space_.encoder.levels_
    np.testing.assert_array_equal(
        swc.predict_proba(table[:9], y_proba=data.P[:9]),
        loaded.predict_proba(table[:9], y_proba=data.P[:9]),
    )


@pytest.mark.parametrize("computed", [False, True])
def test_groups_and_weights(computed, data, tmp_path):
    swc = hetcal.SimilarityCalibrator(ForestProximity(5))
    weight = np.linspace(0, 2, len(data.y))
    data.fitted(swc, groups=np.arange(len(data.y)) // 3, sample_weight=weight)
    if computed:
        _ = swc.out_of_sample_proba_
    loaded = reloaded(swc, tmp_path)
    assert_same(answers(swc, data.X_new, data.P_new), answers(loaded, data.X_new, data.P_new))


def test_sparse_features(data, tmp_path):
    X = sparse.csr_array(np.where(data.X > 0.5, data.X, 0.0))
    sba = data.fitted(hetcal.SimilarityCalibrator(EuclideanSimilarity(), n_neighbors=5), X=X)
    loaded = reloaded(sba, tmp_path)
    assert_same(answers(sba, X[:9], data.P[:9]), answers(loaded, X[:9], data.P[:9]))


def test_missing_values(data, tmp_path):
    X = np.where(data.X > 1.2, np.nan, data.X)
    for name in ("swc", "hybrid"):
        options = LIGHT if name == "hybrid" else {}
        calibrator = data.fitted(hetcal.get_calibrator(name, **options), X=X)
        loaded = reloaded(calibrator, tmp_path)
        assert_same(answers(calibrator, X[:9], data.P[:9]), answers(loaded, X[:9], data.P[:9]))


def test_precomputed_similarities(data, tmp_path):
    S = np.exp(-((data.X[:, None] - data.X[None]) ** 2).sum(axis=2))
    swc = data.fitted(hetcal.SimilarityCalibrator("precomputed", augment=None), X=S)
    loaded = reloaded(swc, tmp_path)
    assert_same(answers(swc, S[:9], data.P[:9]), answers(loaded, S[:9], data.P[:9]))


@pytest.mark.parametrize("similarity", [ForestProximity(6), EuclideanSimilarity()])
def test_a_loaded_calibrator_can_be_extended(similarity, data, tmp_path):
    swc = data.fitted(hetcal.SimilarityCalibrator(similarity, n_neighbors=5))
    loaded = reloaded(swc, tmp_path)
    for calibrator in (swc, loaded):
        calibrator.extend(data.X_new, data.y_new, y_proba=data.P_new)
    assert_same(answers(swc, data.X_new, data.P_new), answers(loaded, data.X_new, data.P_new))


def test_a_log_with_its_own_probabilities(data, tmp_path):
    log = data.table.assign(p_0=data.P[:, 0], p_1=data.P[:, 1])
    model = hetcal.LocallyCalibratedClassifier(hetcal.PrecomputedProba("p_*"), "swc")
    model.fit(log, data.y)
    loaded = reloaded(model, tmp_path)
    np.testing.assert_array_equal(model.predict_proba(log), loaded.predict_proba(log))
    assert describe(tmp_path / "c.hetcal")["calibrator"]["method"] == "SimilarityCalibrator"


@pytest.mark.parametrize(
    ("features", "library"),
    [
        (["colour", "age"], pd.DataFrame),
        (pd.Index(["years"]), pd.DataFrame),
        ([3, 1], pd.DataFrame),
        (range(1, 3), np.asarray),
        ([2, 0], lambda table: pd.DataFrame(table).set_axis([3, 2, 1, 0], axis=1)),
        ([7], lambda table: pd.DataFrame(table).set_axis([9, 8, 7, 6], axis=1)),
    ],
    ids=["names", "index", "places", "array", "numbers-as-names", "numbers-beyond"],
)
def test_chosen_columns(features, library, data, tmp_path):
    X, X_new = (library(table) for table in (data.table, data.table_new))
    if library is not pd.DataFrame:
        X, X_new = library(data.X[:, :4]), library(data.X_new[:, :4])
    swc = hetcal.SimilarityCalibrator(ForestProximity(5), features=features)
    loaded = reloaded(data.fitted(swc, X=X), tmp_path)
    assert_same(answers(swc, X_new, data.P_new), answers(loaded, X_new, data.P_new))
    assert list(loaded.features) == list(features)
    monitor = hetcal.SupportMonitor(swc).fit(X, y_proba=data.P)
    reloaded(monitor, tmp_path).update(X_new, y_proba=data.P_new)


def _check_log(log, features, data, tmp_path):
    """A classifier around a log says the same once it was saved and loaded."""
    calibrator = hetcal.SimilarityCalibrator(ForestProximity(5))
    model = hetcal.LocallyCalibratedClassifier(
        hetcal.PrecomputedProba("p_*"), calibrator, features=features
    ).fit(log, data.y)
    loaded = reloaded(model, tmp_path)
    np.testing.assert_array_equal(model.predict_proba(log), loaded.predict_proba(log))


@pytest.mark.parametrize("features", [["colour", "age"], ["years"], (1, 0)])
def test_a_log_of_which_columns_are_chosen(features, data, tmp_path):
    log = data.table.assign(p_0=data.P[:, 0], p_1=data.P[:, 1]).iloc[:, ::-1]
    _check_log(log, features, data, tmp_path)


def _with_vectors(table, X):
    return table.drop(columns="income").assign(text=list(X[:, 3:6]))


@pytest.mark.parametrize("features", [["text"], ["colour", "text"], ["text[1]", "years"], PCA(2)])
def test_chosen_columns_of_vectors(features, data, tmp_path):
    X, X_new = _with_vectors(data.table, data.X), _with_vectors(data.table_new, data.X_new)
    if isinstance(features, PCA):
        X, X_new = X[["age", "text"]], X_new[["age", "text"]]
    plain = [spread_vectors(table) for table in (X, X_new)]
    chosen = [f"text[{j}]" for j in range(3)] if features == ["text"] else features
    expected, found = (
        data.fitted(hetcal.SimilarityCalibrator(ForestProximity(5), features=by), X=table)
        for by, table in ((chosen, plain[0]), (features, X))
    )
    want = answers(expected, plain[1], data.P_new)
    assert_same(want, answers(found, X_new, data.P_new))
    if not isinstance(features, PCA):
        assert_same(want, answers(reloaded(found, tmp_path), X_new, data.P_new))


@pytest.mark.parametrize("features", [None, ["text", "colour"]])
def test_a_log_with_vectors(features, data, tmp_path):
    log = _with_vectors(data.table, data.X).iloc[:, ::-1]
    log = log.assign(p_0=data.P[:, 0], p_1=data.P[:, 1])
    _check_log(log, features, data, tmp_path)


def test_every_float_survives(data, tmp_path):
    platt = data.fitted(hetcal.PlattScaling())
    odd = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 2 / 3, np.pi]
    for value in odd:
        platt.prior_mass = value
        assert (
            np.float64(reloaded(platt, tmp_path).prior_mass).tobytes()
            == np.float64(value).tobytes()
        )
    temperature = data.fitted(hetcal.TemperatureScaling(bounds=(0.05, np.inf)))
    assert reloaded(temperature, tmp_path).bounds == (0.05, np.inf)


def test_the_file_describes_itself(data, tmp_path):
    path = tmp_path / "loans.hetcal"
    swc = data.fitted(hetcal.SimilarityCalibrator(ForestProximity(5)), X=data.table)
    hetcal.save(swc, path, metadata={"data": "loans of May", "n": 3}, date="2026-01-01")
    told = describe(path)
    json.dumps(told)
    assert told["format_version"] == 1
    assert told["file_bytes"] == path.stat().st_size
    assert told["made"]["hetcal"] == hetcal.__version__
    assert told["made"]["date"] == "2026-01-01"
    assert told["metadata"] == {"data": "loans of May", "n": 3}
    about = told["calibrator"]
    assert about["kind"] == "SimilarityCalibrator"
    assert about["n_items"] == len(data.y)
    assert about["classes"] == [0, 1]
    assert about["features"][3] == {"name": "colour", "kind": "category", "levels": 2}
    assert about["settings"]["power"] == 1.0
    assert not about["forget_features"]


def test_equal_calibrators_give_equal_files(data, tmp_path):
    for name in ("one", "two"):
        swc = data.fitted(hetcal.SimilarityCalibrator(ForestProximity(5)))
        hetcal.save(swc, tmp_path / name, date=None)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_date_can_be_given_from_outside(data, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    hetcal.save(data.fitted(hetcal.PlattScaling()), tmp_path / "c")
    assert describe(tmp_path / "c")["made"]["date"] == "1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("family", "expert", "n_features"),
    [("wide-boosting", "wide-boosting-x", 310), ("boosting", "boosting-small", 4)],
)
def test_boosting(family, expert, n_features, n_classes, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 90)
    X = rng.normal(size=(90, n_features)) + y[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    P = rng.dirichlet(np.ones(n_classes), 90)
    hybrid = hetcal.HybridCalibrator(family, n_estimators=4).fit(X, y, y_proba=P)
    assert hybrid.experts_.loc[expert, "weight"] > 0
    loaded = reloaded(hybrid, tmp_path)
    assert_same(answers(hybrid, X[:7], P[:7]), answers(loaded, X[:7], P[:7]))
    without = reloaded(hybrid, tmp_path, forget_features=True)
    np.testing.assert_array_equal(
        without.predict_proba(X, y_proba=P), hybrid.predict_proba(X, y_proba=P)
    )


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, -0.0, 1e-320])
def test_single_floats_of_any_kind_survive(value):
    there = Encoder()
    tree = json.loads(json.dumps(there.encode([value, (value,), {"a": value}], "values")))
    np.testing.assert_equal(
        Decoder(there.arrays, Budget()).decode(tree), [value, (value,), {"a": value}]
    )
