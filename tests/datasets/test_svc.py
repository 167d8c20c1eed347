"""The machine that outlives SVC(probability=True) gives what it gave."""

import inspect

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from hetcal.datasets import _svc, paper_classifier
from hetcal.datasets._svc import PlattSVC

needs_sklearn_platt = pytest.mark.skipif(
    "probability" not in inspect.signature(SVC).parameters,
    reason="this scikit-learn no longer has SVC(probability=True) to compare with",
)


def problem(n_classes, n_samples=150):
    return make_classification(
        n_samples,
        n_features=8,
        n_informative=5,
        n_classes=n_classes,
        flip_y=0.1,
        class_sep=0.7,
        random_state=0,
    )


@needs_sklearn_platt
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_own_probabilities_equal_those_of_libsvm(kernel, n_classes):
    X, y = problem(n_classes)
    theirs = PlattSVC(kernel=kernel, random_state=0, backend="sklearn").fit(X, y)
    ours = PlattSVC(kernel=kernel, random_state=0, backend="own").fit(X, y)
    # Observed 3e-7; the sigmoid is fitted by another optimiser, so not to the last digit.
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_without_sklearns_the_paper_classifier_still_runs(monkeypatch):
    monkeypatch.setattr(_svc, "_sklearn_has_probability", lambda: False)
    X, y = problem(3)
    proba = paper_classifier("SVM").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (proba.argmax(axis=1) == y).mean() > 0.5


def test_coupling_recovers_probabilities_from_consistent_pairs():
    P = np.random.default_rng(0).dirichlet(np.ones(4), size=50)
    R = P[:, :, None] / (P[:, :, None] + P[:, None, :])
    R[:, np.arange(4), np.arange(4)] = 0
    np.testing.assert_allclose(_svc._couple(R), P, atol=0.02)


def test_permutation_is_one_and_depends_on_the_seed():
    first, second = _svc._libsvm_permutation(100, 1), _svc._libsvm_permutation(100, 2)
    np.testing.assert_array_equal(np.sort(first), np.arange(100))
    assert not np.array_equal(first, second)


def test_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="backend must be"):
        PlattSVC(backend="gpu").fit(*problem(2))


@parametrize_with_checks([PlattSVC(random_state=0, backend="own")])
def test_estimator_checks(estimator, check):
    check(estimator)
