"""Every calibrator by name: what it accepts, what it refuses, and the remedy that it names."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from tests.calibration.kinds import alike

import hetcal
from hetcal import HiddenHeterogeneity, SimilarityCalibrator
from hetcal._exceptions import HetcalWarning
from hetcal.calibration.base import GlobalCalibrator
from hetcal.calibration.registry import get_calibrator, list_calibrators
from hetcal.similarity import ForestProximity

NAMES = list_calibrators()
LOCAL = [name for name in NAMES if not isinstance(get_calibrator(name), GlobalCalibrator)]
N = 40

pytestmark = pytest.mark.filterwarnings("ignore::hetcal._exceptions.SupportWarning")


def make(seed=0, n=N, K=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    P = rng.dirichlet(np.ones(K), size=n)
    y = np.array([rng.choice(K, p=row) for row in P])
    y[:K] = np.arange(K)
    return X, y, P


@pytest.fixture
def data():
    return make()


def quick(name):
    """A calibrator by name, with fewer trees where the default takes seconds per fit."""
    few = {
        "hybrid": {"n_estimators": 10, "experts": ("proximity", "neighbours")},
        "swc-hh": {
            "similarity": ForestProximity(20),
            "heterogeneity": HiddenHeterogeneity(learners=[], n_estimators=3, n_null=2),
        },
    }
    return get_calibrator(name, **few.get(name, {}))


@cache
def plain(name, K=2):
    """What the calibrator of that name predicts after a fit to arrays as they come."""
    X, y, P = make(K=K)
    return quick(name).fit(X, y, y_proba=P).predict_proba(X, y_proba=P)


@pytest.fixture(params=NAMES)
def calibrator(request):
    return quick(request.param)


@pytest.fixture(params=[alike(name) for name in NAMES])
def one_of_each(request):
    """One calibrator of each kind: for what is done before its own fit, the same in all."""
    return quick(request.param)


@pytest.fixture(params=LOCAL)
def local(request):
    return quick(request.param)


def assert_simplex(Q, n, K):
    assert Q.shape == (n, K)
    assert np.isfinite(Q).all()
    assert (Q >= 0).all()
    np.testing.assert_allclose(Q.sum(axis=1), 1, atol=1e-9)


# What is refused, one by one.


def _changed(P, row, values):
    P = P.copy()
    P[row] = values
    return P


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda P: _changed(P, 17, [0.9, 0.47]), "Row 17 of y_proba sums to 1.37.*divide every"),
        (lambda P: _changed(P, 3, [-0.2, 1.2]), "Row 3 of y_proba holds -0.2.*negative.*logits="),
        (lambda P: _changed(P, 5, [np.nan, 0.5]), "Row 5 of y_proba holds NaN.*Drop the rows"),
        (lambda P: _changed(P, 5, [np.inf, 0.5]), "Row 5 of y_proba.*rows must be probability"),
        (lambda P: np.log(P), "negative.*pass them as logits="),
        (lambda P: 3 + np.log(P / P[:, ::-1]), "pass them as logits="),
        (lambda P: 100 * P, "sums to 100.*divide by 100"),
        (lambda P: np.hstack([P, P]) / 2, r"4 columns but 2 classes were found.*Pass classes="),
        (lambda P: P[:-1], "40 rows but y_proba has 39.*select the same rows"),
        (lambda P: P[:0], "y_proba has 0|empty"),
        (lambda P: P.astype(str).astype(object) + "%", "y_proba must hold numbers.*Convert"),
        (lambda P: P[:, :, None], "one column per class"),
        (lambda P: 0.5, "y_proba is a single value.*as an array"),
        (lambda P: P + 0j, "Complex data not supported"),
    ],
    ids=[
        "sum",
        "negative",
        "nan",
        "infinite",
        "log",
        "logits",
        "percent",
        "columns",
        "rows",
        "empty",
        "text",
        "3d",
        "scalar",
        "complex",
    ],
)
def test_probabilities_that_are_none(one_of_each, data, spoil, message):
    X, y, P = data
    with pytest.raises(ValueError, match=message):
        one_of_each.fit(X, y, y_proba=spoil(P))


def test_the_same_at_predict(one_of_each, data):
    X, y, P = data
    one_of_each.fit(X, y, y_proba=P)
    with pytest.raises(ValueError, match="Row 17 of y_proba sums to 1.37"):
        one_of_each.predict_proba(X, y_proba=_changed(P, 17, [0.9, 0.47]))
    with pytest.raises(ValueError, match="3 columns but 2 classes were named.*one column"):
        one_of_each.predict_proba(X, y_proba=np.full((N, 3), 1 / 3))
    with pytest.raises(ValueError, match="select the same rows"):
        one_of_each.predict_proba(X, y_proba=P[:-1])
    with pytest.raises(ValueError, match="empty|minimum of 1"):
        one_of_each.predict_proba(X[:0], y_proba=P[:0])


def test_the_output_is_missing(one_of_each, data):
    X, y, P = data
    with pytest.raises(ValueError, match=r"pass y_proba= \(probabilities\) or logits="):
        one_of_each.fit(X, y)
    with pytest.raises(ValueError, match="both y_proba and logits. Pass exactly one"):
        one_of_each.fit(X, y, y_proba=P, logits=np.log(P))
    one_of_each.fit(X, y, y_proba=P)
    with pytest.raises(
        ValueError, match="was fitted with y_proba; predict_proba needs y_proba for the new samples"
    ):
        one_of_each.predict_proba(X)
    with pytest.raises(ValueError, match="but got logits. Pass y_proba="):
        one_of_each.predict_proba(X, logits=np.log(P))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda y: y[:-1], "y has 39.*select the same rows"),
        (lambda y: np.zeros(N, dtype=int), "one class only.*another class|columns but 1 classes"),
        (lambda y: np.where(np.arange(N) == 4, np.nan, y), "missing label.*row 4.*Drop the rows"),
        (lambda y: y + 0.5, "Unknown label type.*y_proba"),
        (lambda y: np.column_stack([y, y]), "1d array.*argmax"),
        (lambda y: None, "requires y to be passed.*Pass the observed labels"),
        (lambda y: np.arange(N), "2 columns but 40 classes were found.*Pass classes="),
        (lambda y: 1, "y is a single value"),
    ],
    ids=["rows", "one class", "missing", "float", "2d", "none", "many", "scalar"],
)
def test_labels_that_are_none(one_of_each, data, labels, message):
    X, y, P = data
    with pytest.raises(ValueError, match=message):
        one_of_each.fit(X, labels(y), y_proba=P)


def test_mixed_labels(one_of_each, data):
    X, y, P = data
    mixed = y.astype(object)
    mixed[3] = "three"
    with pytest.raises(TypeError, match="mixes labels of different types.*astype"):
        one_of_each.fit(X, mixed, y_proba=P)


def test_one_class_although_two_are_named(one_of_each, data):
    X, _, P = data
    one_of_each.set_params(classes=["a", "b"])
    with pytest.raises(ValueError, match=r"one class only \('a', 40 rows\).*another class"):
        one_of_each.fit(X, ["a"] * N, y_proba=P)


def test_one_class_is_left_after_weighting(calibrator, data):
    X, y, P = data
    with pytest.raises(ValueError, match="one class only.*another class"):
        calibrator.fit(X, y, y_proba=P, sample_weight=(y == 1).astype(float))


def test_an_unknown_label(one_of_each, data):
    X, y, P = data
    one_of_each.set_params(classes=[0, 2])
    with pytest.raises(ValueError, match=r"not in classes: \['1'\].*Add them to classes"):
        one_of_each.fit(X, y, y_proba=P)


def test_one_row(one_of_each):
    with pytest.raises(ValueError, match="one class only|1 classes were found"):
        one_of_each.fit([[1.0, 2.0]], [1], y_proba=[[0.5, 0.5]])


def test_no_row(one_of_each):
    with pytest.raises(ValueError, match=r"0 sample\(s\).*at least one row"):
        one_of_each.fit(np.zeros((0, 3)), [], y_proba=np.zeros((0, 2)))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), "3 values but there are 40 rows"),
        (-np.ones(N), "not negative"),
        (np.full(N, np.nan), "finite"),
        (np.zeros(N), "zero for every row"),
    ],
)
def test_weights_that_are_none(one_of_each, data, weight, message):
    X, y, P = data
    with pytest.raises(ValueError, match=message):
        one_of_each.fit(X, y, y_proba=P, sample_weight=weight)


def test_not_fitted(one_of_each, data):
    X, _, P = data
    with pytest.raises(NotFittedError):
        one_of_each.predict_proba(X, y_proba=P)


# Features: only methods that look at them can object.


def test_rows_of_features(one_of_each, data):
    X, y, P = data
    with pytest.raises(ValueError, match="X has 39 rows but y has 40.*select the same rows"):
        one_of_each.fit(X[:-1], y, y_proba=P)


def test_infinite_features(local, data):
    X, y, P = data
    spoiled = X.copy()
    spoiled[2, 1] = np.inf
    with pytest.raises(ValueError, match="infinity in row 2, column 1.*Clip such values"):
        local.fit(spoiled, y, y_proba=P)
    local.fit(X, y, y_proba=P)
    with pytest.raises(ValueError, match="infinity in row 2, column 1.*Clip such values"):
        local.predict_proba(spoiled, y_proba=P)


def test_text_without_encoding(local, data):
    X, y, P = data
    with pytest.raises(ValueError, match=r"text such as .*Pass a pandas or polars table"):
        local.fit(X.astype(str), y, y_proba=P)
    notes = pd.DataFrame(X).assign(note=[f"note {i}" for i in range(N)])
    many = pd.concat([notes.assign(note=[f"{k} {i}" for i in range(N)]) for k in range(3)])
    with pytest.raises(ValueError, match="text with 120 distinct.*Drop it, encode it"):
        local.fit(many, np.tile(y, 3), y_proba=np.tile(P, (3, 1)))


def test_dates(local, data):
    X, y, P = data
    table = pd.DataFrame({"x": X[:, 0], "day": pd.date_range("2020-01-01", periods=N)})
    with pytest.raises(TypeError, match="'day' of X.*Leave it out"):
        local.fit(table, y, y_proba=P)


def test_features_are_missing(local, data):
    X, y, P = data
    with pytest.raises(ValueError, match=r"X is None. Pass X, or use a global method"):
        local.fit(None, y, y_proba=P)
    local.fit(X, y, y_proba=P)
    with pytest.raises(ValueError, match=r"X is None. Pass X"):
        local.predict_proba(None, y_proba=P)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_other_columns_at_predict(local, data, library):
    X, y, P = data
    table = library(dict(zip("abc", X.T, strict=True)))
    local.fit(table, y, y_proba=P)
    with pytest.raises(ValueError, match="another order.*column 0 was 'a' and is 'b'. Reorder"):
        local.predict_proba(table[["b", "a", "c"]], y_proba=P)
    with pytest.raises(ValueError, match=r"differ.*missing: \['c'\].*same columns"):
        local.predict_proba(table[["a", "b"]], y_proba=P)
    with pytest.raises(ValueError, match="2 features, but .* expecting 3"):
        local.predict_proba(X[:, :2], y_proba=P)


def test_sparse_features_work_or_are_refused(local, data):
    X, y, P = data
    thin = sparse.csr_array(np.where(X > 0.5, X, 0))
    if get_tags(local).input_tags.sparse:
        local.fit(thin, y, y_proba=P)
        assert_simplex(local.predict_proba(thin, y_proba=P), N, 2)
    else:
        with pytest.raises(TypeError, match=r"X is a sparse matrix.*X\.toarray\(\)"):
            local.fit(thin, y, y_proba=P)


def test_missing_features_work(local, data):
    X, y, P = data
    X = X.copy()
    X[::5, 1] = np.nan
    assert_simplex(local.fit(X, y, y_proba=P).predict_proba(X, y_proba=P), N, 2)


def test_flat_features(local, data):
    X, y, P = data
    with pytest.raises(ValueError, match=r"Expected 2D array.*reshape\(-1, 1\)"):
        local.fit(X[:, 0], y, y_proba=P)


# What is accepted.


def _polars(X):
    return pl.DataFrame(np.asarray(X), schema=list("abcdefgh")[: np.shape(X)[1]], orient="row")


def _read_only(A):
    A = np.array(A)
    A.setflags(write=False)
    return A


@pytest.mark.parametrize(
    "convert",
    [
        lambda A: A.tolist(),
        _read_only,
        np.asfortranarray,
        lambda A: A.astype(object),
        lambda A: pd.DataFrame(A) if A.ndim == 2 else pd.Series(A, index=np.arange(N, 0, -1)),
        lambda A: _polars(A) if A.ndim == 2 else pl.Series(A),
        lambda A: np.repeat(A, 2, axis=0)[::2],
    ],
    ids=["list", "read-only", "fortran", "object", "pandas", "polars", "strided"],
)
@pytest.mark.parametrize("name", [alike(name) for name in NAMES])
def test_containers_agree(name, convert):
    X, y, P = make(K=3)
    got = quick(name).fit(convert(X), convert(y), y_proba=convert(P))
    Q = got.predict_proba(convert(X), y_proba=convert(P))
    np.testing.assert_array_equal(Q, plain(name, K=3))
    assert_simplex(Q, N, 3)


def test_single_precision(calibrator, data):
    X, y, P = (array.astype(np.float32) for array in data)
    Q = calibrator.fit(X, y, y_proba=P).predict_proba(X, y_proba=P)
    assert_simplex(Q, N, 2)
    assert Q.dtype == np.float64


@pytest.mark.parametrize(
    "names", [["no", "yes"], [10, 30], [False, True], [-1.0, 1.0], ["a long name", "z"]]
)
@pytest.mark.parametrize("name", [alike(name) for name in NAMES])
def test_labels_change_nothing_but_names(name, data, names):
    X, y, P = data
    calibrator = quick(name).fit(X, np.array(names)[y], y_proba=P)
    assert calibrator.classes_.tolist() == names
    np.testing.assert_array_equal(calibrator.predict_proba(X, y_proba=P), plain(name))
    assert set(calibrator.predict(X, y_proba=P).tolist()) <= set(names)


def test_the_order_of_classes_is_that_of_the_columns(calibrator, data):
    X, y, P = data
    names = np.array(["zebra", "ant"])
    calibrator.set_params(classes=names).fit(X, names[y], y_proba=P)
    assert calibrator.classes_.tolist() == ["zebra", "ant"]
    Q = calibrator.predict_proba(X, y_proba=P)
    right = np.array_equal(calibrator.predict(X, y_proba=P), names[Q.argmax(axis=1)])
    assert right


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_missing_class_keeps_its_column(calibrator, missing):
    X, y, P = make(K=3)
    seen = y != missing
    calibrator.set_params(classes=[0, 1, 2]).fit(X[seen], y[seen], y_proba=P[seen])
    assert_simplex(calibrator.predict_proba(X, y_proba=P), N, 3)


@pytest.mark.parametrize("name", NAMES)
def test_one_column_for_two_classes(name, data):
    X, y, P = data
    columns = (P[:, 1], P[:, 1:], pd.Series(P[:, 1]), P[:, 1].tolist())
    for column in columns if name not in LOCAL else columns[:1]:
        Q = quick(name).fit(X, y, y_proba=column).predict_proba(X, y_proba=column)
        np.testing.assert_allclose(Q, plain(name), atol=1e-9)


def test_one_new_row(calibrator, data):
    X, y, P = data
    calibrator.fit(X, y, y_proba=P)
    whole = calibrator.predict_proba(X, y_proba=P)
    np.testing.assert_allclose(calibrator.predict_proba(X[:1], y_proba=P[:1]), whole[:1])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda P: np.full_like(P, 0.5),
        lambda P: np.eye(2)[P.argmax(axis=1)],
        lambda P: np.tile([1.0, 0.0], (N, 1)),
        lambda P: np.where(P > 0.5, 1 - 1e-15, 1e-15),
        lambda P: np.round(P, 1),
    ],
    ids=["constant", "hard", "always the first", "saturated", "ties"],
)
def test_extreme_probabilities(calibrator, data, spoil):
    X, y, P = data
    P = spoil(P)
    assert_simplex(calibrator.fit(X, y, y_proba=P).predict_proba(X, y_proba=P), N, 2)
    other = np.random.default_rng(1).dirichlet([1, 1], N)
    assert_simplex(calibrator.predict_proba(X, y_proba=other), N, 2)


def test_logits(calibrator, data):
    X, y, P = data
    L = np.log(P) + 5
    assert_simplex(calibrator.fit(X, y, logits=L).predict_proba(X, logits=L), N, 2)
    with pytest.raises(ValueError, match="logits holds infinity. Clip the logits"):
        calibrator.fit(X, y, logits=np.where(P > 0.9, np.inf, L))


# Whatever comes: an error that helps, or a valid result.


@np.errstate(all="ignore")
def _spoil(rng, X, y, P):
    """Damage one to three of the inputs at random places; deterministic for a given ``rng``."""
    X, y, P = X.copy(), y.astype(object), P.copy()
    values = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 1e300, 1e-300, 2.0, -0.0]
    for _ in range(rng.integers(1, 4)):
        i = int(rng.integers(len(X)))
        match int(rng.integers(12)):
            case 0:
                X[i, rng.integers(X.shape[1])] = rng.choice(values)
            case 1:
                P[i, rng.integers(P.shape[1])] = rng.choice(values)
            case 2:
                y[i] = [None, "x", 3, 0.5, np.nan, -1, True][rng.integers(7)]
            case 3:
                keep = int(rng.integers(0, 3))
                X, y, P = X[:keep], y[:keep], P[:keep]
                if keep == 0:
                    break
            case 4:
                P = P[:, : rng.integers(0, P.shape[1] + 1)]
                if P.shape[1] == 0:
                    break
            case 5:
                X = X[:, : rng.integers(0, X.shape[1] + 1)]
                if X.shape[1] == 0:
                    break
            case 6:
                X = X * 10.0 ** rng.integers(-200, 200)
            case 7:
                X[:] = X[0]
            case 8:
                P[:] = P[0]
            case 9:
                y[:] = y[0]
            case 10:
                P = P * rng.choice([0.0, 1e-3, 1.0001, 100.0])
            case 11:
                X[:, 0] = np.nan
    containers = [
        lambda A: A,
        lambda A: A.tolist(),
        lambda A: A.astype(object),
        lambda A: pd.DataFrame(A).convert_dtypes(),
        lambda A: A[0] if len(A) else A,
        lambda A: A.astype(np.float32),
    ]
    chances = [0.4, 0.2, 0.1, 0.2, 0.05, 0.05]
    X, P = (containers[rng.choice(6, p=chances)](A) for A in (X, P))
    return X, y, P


@pytest.mark.parametrize("name", NAMES)
def test_random_accidents(name):
    n_accidents, results = 24 if name in ("global", *LOCAL) else 40, 0
    for seed in range(n_accidents):
        rng = np.random.default_rng([seed, 2023])
        X, y, P = make(seed, n=20, K=2 + seed % 2)
        bad_X, bad_y, bad_P = _spoil(rng, X, y, P)
        at_fit = seed % 4 != 3
        calibrator = quick(name)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HetcalWarning)
                if at_fit:
                    calibrator.fit(bad_X, bad_y, y_proba=bad_P)
                else:
                    calibrator.fit(X, y, y_proba=P)
                Q = calibrator.predict_proba(bad_X, y_proba=bad_P)
        except (ValueError, TypeError) as error:
            text = str(error)
            assert len(text) > 40, (seed, text)
            assert any(word in text for word in REMEDIES), (seed, text)
        else:
            results += 1
            assert_simplex(Q, np.shape(bad_P)[0], len(calibrator.classes_))
    assert 0.05 * n_accidents < results < 0.95 * n_accidents  # both outcomes were exercised


REMEDIES = (
    "Pass ",
    "pass ",
    "Drop ",
    "Clip ",
    "Convert ",
    "Collect ",
    "Reshape ",
    "divide ",
    "Encode ",
    "select the same rows",
    "needs a positive weight",
    "in this order",
)


def test_features_that_are_no_transformer():
    X, P, y = np.zeros((4, 1)), np.full((4, 2), 0.5), [0, 1, 0, 1]
    with pytest.raises(TypeError, match=r"SimilarityCalibrator: features must be.*got 3\.5"):
        SimilarityCalibrator(features=3.5).fit(X, y, y_proba=P)
    with pytest.raises(ValueError, match=r"\['x'\]\. X has 1 columns without names"):
        SimilarityCalibrator(features="x").fit(X, y, y_proba=P)


@pytest.mark.parametrize(
    ("who", "call"),
    [
        ("SimilarityCalibrator.fit", SimilarityCalibrator().fit),
        ("TemperatureScaling.fit", get_calibrator("temperature").fit),
        ("HiddenHeterogeneity.fit", HiddenHeterogeneity().fit),
        ("heterogeneity_test", hetcal.heterogeneity_test),
        ("advise", hetcal.advise),
        ("diagnose", hetcal.diagnose),
        ("compare", hetcal.compare),
        ("learning_curve", hetcal.learning_curve),
    ],
)
def test_output_that_is_passed_by_place_is_asked_for_by_name(who, call):
    """The first thing that anybody types is fit(X, y, P)."""
    X, P, y = np.zeros((4, 1)), np.full((4, 2), 0.5), [0, 1, 0, 1]
    with pytest.raises(TypeError, match=f"^{who} takes 2 arguments by place, got 3.*y_proba="):
        call(X, y, P)
