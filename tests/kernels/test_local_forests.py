import os
import signal
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from hetcal.kernels import native, use_core
from hetcal.kernels.local_forests import PAPER_ALPHAS, LocalForestScores, local_forest_scores
from hetcal.kernels.neighbourhoods import hellinger_balls, take_neighbourhoods

with use_core("auto"):
    COMPILED = native() is not None
needs_native = pytest.mark.skipif(not COMPILED, reason="the compiled core was not built")
CORES = ["pure", pytest.param("native", marks=needs_native)]
N_TREES = 8
FLOATS = ("hh", "brier_model", "brier_local", "brier_oob", "alpha", "oob_score")


def brier(proba, y):
    return np.mean([((p - np.eye(len(p))[c]) ** 2).sum() for p, c in zip(proba, y, strict=True)])


def plain_forests(X, y, n_classes, P, members, n_trees=N_TREES, seed=0):
    """Algorithm 1 with a scikit-learn forest per complexity: hh, alpha, score, oob predictions."""
    y, P, X = y[members], P[members], X[members]
    if len(np.unique(y)) < 2:
        return 0.0, np.nan, np.nan, None
    best, result = 0.0, (0.0, np.nan, np.nan, None)
    for alpha in PAPER_ALPHAS:
        forest = RandomForestClassifier(
            n_trees, max_features=None, oob_score=True, ccp_alpha=alpha, random_state=seed
        ).fit(X, y)
        if forest.oob_score_ > best:
            best = forest.oob_score_
            proba, oob = np.zeros((2, len(y), n_classes))
            proba[:, forest.classes_] = forest.predict_proba(X)
            oob[:, forest.classes_] = forest.oob_decision_function_
            oob[oob.sum(axis=1) == 0] = np.nan
            result = max(brier(P, y) - brier(proba, y), 0), alpha, best, oob
    return result


def problem(seed, n=60, d=4, n_classes=3, decimals=None, n_hoods=2, radius=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if decimals is not None:
        X = np.round(X, decimals)
    y = rng.integers(0, n_classes, n)
    y[X[:, 0] > 0.4] = 0
    P = rng.dirichlet(np.full(n_classes, 3.0), n)
    return X, y, n_classes, P, *hellinger_balls(P, P[:n_hoods], radius)


def assert_same(a: LocalForestScores, b: LocalForestScores, atol=1e-12):
    for name in (*FLOATS, "n_neighbors", "status", "oob_proba"):
        np.testing.assert_allclose(
            getattr(a, name), getattr(b, name), rtol=0, atol=atol, err_msg=name
        )


CASES = {
    "two classes": {"n_classes": 2},
    "continuous": {},
    "many ties": {"decimals": 0, "d": 6},
    "one feature": {"d": 1, "decimals": 1},
    "round size": {"n": 100, "n_classes": 2, "radius": np.inf, "decimals": 1, "n_hoods": 1},
    "many features": {"n": 40, "d": 70, "decimals": 0, "n_classes": 4, "n_hoods": 2},
    "tiny": {"n": 12, "radius": 0.25, "n_hoods": 4},
    "sorting": {"n": 300, "radius": 0.12, "n_hoods": 2},
}


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("case", CASES)
def test_equals_one_scikit_learn_forest_per_complexity(case):
    data = X, y, n_classes, P, indptr, indices = problem(seed=7, **CASES[case])
    found = []
    for core in ("pure", "native") if COMPILED else ("pure",):
        with use_core(core):
            found.append(local_forest_scores(*data, n_estimators=N_TREES))
    for j, (low, high) in enumerate(pairwise(indptr)):
        hh, alpha, score, oob = plain_forests(X, y, n_classes, P, indices[low:high])
        for scores in found:
            assert scores.hh[j] == pytest.approx(hh, abs=1e-10)
            np.testing.assert_allclose([scores.alpha[j], scores.oob_score[j]], [alpha, score])
            if oob is not None:
                np.testing.assert_allclose(scores.oob_proba[low:high], oob, rtol=0, atol=1e-12)


@needs_native
@settings(max_examples=30)
@given(
    seed=st.integers(0, 100_000),
    n=st.integers(1, 90),
    d=st.integers(1, 9),
    n_classes=st.integers(2, 6),
    decimals=st.sampled_from([None, 0, 1]),
    select=st.sampled_from(["accuracy", "brier"]),
)
def test_both_cores_agree(seed, n, d, n_classes, decimals, select):
    data = problem(seed, n, d, n_classes, decimals)
    options = {"n_estimators": 6, "select": select, "random_state": seed}
    with use_core("pure"):
        pure = local_forest_scores(*data, **options)
    with use_core("native"):
        compiled = local_forest_scores(*data, **options)
    assert_same(pure, compiled)


@needs_native
def test_values_closer_than_scikit_learn_can_see_are_equal():
    rng = np.random.default_rng(0)
    X = 1.0 + rng.integers(0, 40, (80, 3)) * 6e-8  # steps of one half to one unit in the last place
    X[:, 2] = rng.integers(0, 3, 80) + rng.integers(0, 4, 80) * 4e-8
    y, P = rng.integers(0, 2, 80), np.full((80, 2), 0.5)
    data = (X, y, 2, P, np.array([0, 80]), np.arange(80))
    with use_core("pure"):
        pure = local_forest_scores(*data, n_estimators=N_TREES)
    with use_core("native"):
        assert_same(local_forest_scores(*data, n_estimators=N_TREES), pure)


@pytest.mark.parametrize("core", CORES)
def test_rules_without_a_forest(core):
    X = np.arange(6.0)[:, None]
    y = np.array([0, 0, 0, 1, 2, 2])
    P = np.tile([0.2, 0.3, 0.5], (6, 1))
    indptr = np.array([0, 0, 3, 4, 6])
    with use_core(core):
        scores = local_forest_scores(X, y, 3, P, indptr, [0, 1, 2, 3, 3, 4], n_estimators=20)
    assert scores.status.tolist() == [1, 2, 2, 3]
    assert scores.hh.tolist() == [0, 0, 0, 0]
    assert scores.n_neighbors.tolist() == [0, 3, 1, 2]
    assert np.isnan(scores.alpha).all()
    np.testing.assert_allclose(scores.brier_model, [np.nan, 0.98, 0.78, (0.78 + 0.38) / 2])
    assert scores.oob_proba[:3].tolist() == [[1, 0, 0]] * 3
    assert np.isnan(scores.oob_proba[3]).all()


@pytest.mark.parametrize("core", CORES)
def test_several_label_vectors_are_several_calls(core):
    X, y, n_classes, P, indptr, indices = problem(3)
    draws = np.stack([y, y[::-1], np.zeros_like(y), np.roll(y, 1)])
    with use_core(core):
        together = local_forest_scores(X, draws, n_classes, P, indptr, indices, n_estimators=5)
        for i, codes in enumerate(draws):
            alone = local_forest_scores(X, codes, n_classes, P, indptr, indices, n_estimators=5)
            for name in (*FLOATS, "status", "oob_proba"):
                np.testing.assert_array_equal(getattr(together, name)[i], getattr(alone, name))


@pytest.mark.parametrize("core", CORES)
def test_equal_neighbourhoods_get_equal_results_in_place(core):
    X, y, n_classes, P, indptr, indices = problem(4, n_hoods=3)
    twice = take_neighbourhoods(indptr, indices, np.array([1, 0, 1, 2, 0]))
    with use_core(core):
        once = local_forest_scores(X, y, n_classes, P, indptr, indices, n_estimators=4)
        scores = local_forest_scores(X, y, n_classes, P, *twice, n_estimators=4)
    for name in (*FLOATS, "status", "n_neighbors"):
        np.testing.assert_array_equal(getattr(scores, name), getattr(once, name)[[1, 0, 1, 2, 0]])
    _, members = take_neighbourhoods(indptr, np.arange(len(indices)), np.array([1, 0, 1, 2, 0]))
    np.testing.assert_array_equal(scores.oob_proba, once.oob_proba[members])


@needs_native
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("decimals", [None, 0])
def test_wide_data_searched_in_lanes_equal_the_pure_path(n_classes, decimals):
    rng = np.random.default_rng(0)
    X = np.maximum(rng.normal(size=(150, 60)), 0)  # half of the entries hold the commonest value
    X[:, 1] = 1.0 + rng.integers(0, 30, 150) * 6e-8
    if decimals is not None:
        X = np.round(X, decimals)
    y = (X[:, 0] + rng.normal(size=150) > 0.5) + rng.integers(0, n_classes - 1, 150)
    P = np.full((150, n_classes), 1 / n_classes)
    data = (X, y, n_classes, P, np.array([0, 150]), rng.permutation(150))
    with use_core("pure"):
        pure = local_forest_scores(*data, n_estimators=20)
    with use_core("native"):
        assert_same(local_forest_scores(*data, n_estimators=20), pure)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_result_does_not_depend_on_threads(core, mode):
    data = problem(5, n_hoods=8)
    with use_core(core):
        one = local_forest_scores(*data, n_estimators=5, mode=mode)
        assert_same(local_forest_scores(*data, n_estimators=5, mode=mode, n_jobs=3), one, atol=0)


def test_select_brier_takes_the_smallest_out_of_bag_brier():
    X, y, n_classes, P, indptr, indices = problem(11, n=90, n_classes=2, n_hoods=4)
    chosen = local_forest_scores(X, y, n_classes, P, indptr, indices, select="brier")
    single = [
        local_forest_scores(X, y, n_classes, P, indptr, indices, alphas=[a], select="brier")
        for a in PAPER_ALPHAS
    ]
    by_alpha = np.array([s.brier_oob for s in single])
    np.testing.assert_array_equal(chosen.alpha, PAPER_ALPHAS[by_alpha.argmin(axis=0)])
    np.testing.assert_allclose(chosen.brier_oob, by_alpha.min(axis=0))
    for j, (low, high) in enumerate(pairwise(indptr)):
        own = brier(chosen.oob_proba[low:high], y[indices[low:high]])
        assert chosen.brier_oob[j] == pytest.approx(own)


@needs_native
def test_fast_mode_differs_from_exact_only_as_another_seed_does():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(250, 12)))
    y = (rng.random(250) < np.where(X[:, 0] > 0, 0.8, 0.3)).astype(int)
    P = np.full((250, 2), 0.5)
    members = [rng.choice(250, 60, replace=False) for _ in range(40)]
    data = (X, y, 2, P, np.arange(41) * 60, np.concatenate(members))
    with use_core("native"):
        exact, other = (local_forest_scores(*data, random_state=s) for s in (0, 1))
        fast = local_forest_scores(*data, mode="fast")
    for name in ("hh", "brier_oob"):
        difference = abs(np.mean(getattr(fast, name) - getattr(exact, name)))
        noise = np.std(getattr(other, name) - getattr(exact, name)) / np.sqrt(40)
        assert difference <= 3 * noise


@pytest.mark.parametrize("core", CORES)
@settings(max_examples=10)
@given(seed=st.integers(0, 1000))
def test_ranges(core, seed):
    data = problem(seed, n=40, n_hoods=3)
    with use_core(core):
        scores = local_forest_scores(*data, n_estimators=4)
    assert ((scores.hh >= 0) & (scores.hh <= 2)).all()
    rows = scores.oob_proba[~np.isnan(scores.oob_proba).any(axis=1)]
    np.testing.assert_allclose(rows.sum(axis=1), 1)


@pytest.mark.parametrize("core", CORES)
def test_progress_ends_at_the_number_of_neighbourhoods_and_inputs_may_be_read_only(core):
    data = problem(1, n_hoods=4)
    for array in data:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    calls = []
    with use_core(core):
        local_forest_scores(
            *data, n_estimators=2, return_oob=False, progress=lambda *c: calls.append(c)
        )
    done, total = calls[-1]
    assert done == total <= 4


@pytest.fixture
def interruptible():
    """Let SIGINT interrupt, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@needs_native
@pytest.mark.usefixtures("interruptible")
def test_an_error_in_progress_and_an_interrupt_stop_the_work():
    rng = np.random.default_rng(0)
    X, y, P = rng.normal(size=(3000, 60)), rng.integers(0, 2, 3000), np.full((3000, 2), 0.5)
    data = (X, y, 2, P, np.arange(31) * 3000, np.tile(np.arange(3000), 30))

    calls, seen = [], []

    def fail(done, total):
        calls.append(done)
        raise RuntimeError("enough")

    with use_core("native"):
        with pytest.raises(RuntimeError, match="enough"):
            local_forest_scores(*data, progress=fail, return_oob=False)
        begun = threading.Event()

        def interrupt():
            begun.wait()
            os.kill(os.getpid(), signal.SIGINT)

        def note(*done):
            seen.append(done)
            begun.set()

        def work():
            local_forest_scores(*data, progress=note, return_oob=False)
            other.join()  # an interrupt that comes too late comes here

        other = threading.Thread(target=interrupt)
        other.start()
        with pytest.raises(KeyboardInterrupt):
            work()
    assert len(calls) == 1  # nothing was grown after the error
    assert all(done < total for done, total in seen)


@needs_native
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_missing_values_go_to_the_pure_path_and_say_so():
    X, y, n_classes, P, indptr, indices = problem(2)
    X[3, 1] = np.nan
    with use_core("native"), pytest.warns(RuntimeWarning, match="missing values in X"):
        scores = local_forest_scores(X, y, n_classes, P, indptr, indices, n_estimators=N_TREES)
    hh, *_ = plain_forests(X, y, n_classes, P, indices[: indptr[1]])
    assert scores.hh[0] == pytest.approx(hh, abs=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codes": np.full(60, 3)}, "codes must lie in range"),
        ({"P": np.ones((60, 2))}, "same items and classes"),
        ({"indptr": [0, 1]}, "indptr must rise"),
        ({"indices": [60], "indptr": [0, 1]}, "indices must lie"),
        ({"alphas": [0.1, 0.0]}, "strictly increasing"),
        ({"mode": "quick"}, "mode must be"),
        ({"select": "auc"}, "select must be"),
    ],
)
def test_errors_name_what_is_wrong(change, message):
    names = ("X", "codes", "n_classes", "P", "indptr", "indices")
    arguments = dict(zip(names, problem(0), strict=True)) | change
    with pytest.raises(ValueError, match=message):
        local_forest_scores(**arguments)
