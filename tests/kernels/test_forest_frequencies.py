"""A forest's own prediction from leaf frequencies, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from hetcal.kernels import forest as kernel
from hetcal.kernels import native, use_core

CORES = [
    "pure",
    pytest.param(
        "native",
        marks=pytest.mark.skipif(native() is None, reason="the compiled core was not built"),
    ),
]


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("n_classes", [2, 6])
def test_equals_scikit_learn_in_and_out_of_bag(core, n_classes):
    X, y = make_classification(
        300, 8, n_informative=5, n_classes=n_classes, flip_y=0.2, random_state=0
    )
    oracle = RandomForestClassifier(40, min_samples_leaf=3, oob_score=True, random_state=0).fit(
        X[:200], y[:200]
    )
    with use_core(core):
        forest = kernel.fit_forest(
            X[:200], y[:200], n_classes, n_estimators=40, min_samples_leaf=3, random_state=0
        )
        leaves = kernel.apply(forest, X[:200])
        mass = kernel.leaf_frequencies(forest, leaves, y[:200], n_classes)
        new = kernel.vote(forest, X[200:], mass) / forest.n_trees
        unseen = kernel.vote_leaves(kernel.out_of_bag_leaves(forest, leaves), mass)
    np.testing.assert_allclose(new, oracle.predict_proba(X[200:]), atol=1e-12)
    np.testing.assert_allclose(
        unseen / unseen.sum(axis=1, keepdims=True), oracle.oob_decision_function_, atol=1e-12
    )
