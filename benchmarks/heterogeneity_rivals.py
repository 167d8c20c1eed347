"""Tests of hidden heterogeneity by name, the package's own and those it is measured against.

Each is a function (X, y, P, groups, weight, seed) -> dict with ``p`` (a p-value) and, where it has
them, ``low`` (lower bound of the grouping loss), ``found`` (estimate) and ``q`` (per item). Tests
that need another source tree or other packages run in a process of their own::

    python benchmarks/heterogeneity_rivals.py NAME    # reads pickled calls, writes pickled answers
"""

from __future__ import annotations

import atexit
import pickle
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.stats import chi2, norm

N_NULL_OF_GLEST = 19
N_REDRAWN = 39


def new(X, y, P, groups, weight, seed):
    """Run the package's test as it is now."""
    from hetcal.heterogeneity import heterogeneity_test

    found = heterogeneity_test(
        X, y, y_proba=P, classes=classes(P), groups=groups, sample_weight=weight, random_state=seed
    )
    return {
        "p": found.p_value,
        "low": found.grouping_loss_low,
        "found": found.grouping_loss_found,
    }


def old(X, y, P, groups, weight, seed):
    """`HiddenHeterogeneity` of the source tree on the path (commit f65c7c8: one forest)."""
    hidden = fit_hidden_heterogeneity(X, y, P, groups, weight, seed)
    return {"p": hidden.p_value_, "found": hidden.hh_local_mean_}


def cells(X, y, P, groups, weight, seed):
    """`HiddenHeterogeneity` of the source tree on the path, with q-values per item."""
    hidden = fit_hidden_heterogeneity(X, y, P, groups, weight, seed)
    return {"p": hidden.p_value_, "q": hidden.frame(P)["q_value"].to_numpy()}


def fit_hidden_heterogeneity(X, y, P, groups, weight, seed):
    from hetcal import HiddenHeterogeneity

    hidden = HiddenHeterogeneity(random_state=seed)
    return hidden.fit(
        X.toarray() if sparse.issparse(X) else X, y, y_proba=P, groups=groups, sample_weight=weight
    )


def prototype(X, y, P, groups, weight, seed):
    """Run a prototype of an orthogonal test (`recipe.analyse`), which knows no weights."""
    import recipe

    if not isinstance(X, pd.DataFrame) or X.isna().any(axis=None):
        X = numbers(X)
    found = recipe.analyse(X, y, P, groups, seed=seed, flops=4e8, repeats=1, bound=False)
    return {"p": found["p"]}


def prototype_with_bound(X, y, P, groups, weight, seed):
    """Prototype, with its lower bound."""
    import recipe

    if not isinstance(X, pd.DataFrame) or X.isna().any(axis=None):
        X = numbers(X)
    found = recipe.analyse(X, y, P, groups, seed=seed, flops=4e8, repeats=1)
    return {"p": found["p"], "low": found["gl_lower"], "found": found["gl_found"]}


def boosting(X, y, P, groups, weight, seed):
    """Boosted trees learn residuals of a global map; z / sqrt 2 of their out-of-fold values."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression

    n, K = P.shape
    F, B = numbers(X), functions_of_p(P)
    Z = np.column_stack([F, B])
    Y = np.eye(K)[y]
    groups = np.arange(n) if groups is None else groups
    fold = np.random.default_rng(seed).integers(0, 5, groups.max() + 1)[groups]
    columns = [1] if K == 2 else list(range(K))
    R, D = np.zeros((n, K)), np.zeros((n, K))
    for f in range(5):
        learn, test = fold != f, fold == f
        if len(np.unique(y[learn])) < 2:
            continue
        # Not a weight of one each: boosting would bin by weighted quantiles, fifty times slower.
        w = None if weight is None else weight[learn]
        h = LogisticRegression(C=10, max_iter=300).fit(B[learn], y[learn], w)
        H = np.zeros((n, K))
        H[:, h.classes_] = h.predict_proba(B)
        R[test] = (Y - H)[test]
        for k in columns:
            trees = HistGradientBoostingRegressor(
                max_bins=255 if weight is None else 32,
                max_iter=60,
                learning_rate=0.08,
                max_leaf_nodes=8,
                min_samples_leaf=15,
                l2_regularization=5,
                early_stopping=False,
            )
            D[test, k] = trees.fit(Z[learn], (Y - H)[learn, k], w).predict(Z[test])
    C = np.column_stack([np.ones(n), B])
    D -= C @ np.linalg.lstsq(C, D, rcond=None)[0]
    each = (R * D)[:, columns].sum(axis=1)
    terms = np.bincount(groups, each if weight is None else weight * each)
    return {"p": norm.sf(terms.sum() / np.sqrt(2 * (terms**2).sum() + 1e-300))}


def likelihood_ratio(X, y, P, groups, weight, seed):
    """Logistic regression on functions of p against the same with the features added."""
    B, both, weight = nested_columns(X, P, weight)
    columns = [np.linalg.matrix_rank(A) for A in (both, B)]
    freedom = (columns[0] - columns[1]) * (len(np.unique(y)) - 1)
    return {"p": chi2.sf(2 * deviance(B, both, y, weight), freedom)}


def likelihood_ratio_redrawn(X, y, P, groups, weight, seed):
    """Rank the likelihood ratio among those of labels drawn from the regression on functions of p.

    The law of chi squared, which `likelihood_ratio` believes in, does not hold with many columns.
    """
    B, both, weight = nested_columns(X, P, weight)
    H = logistic_regression(B, y, weight).predict_proba(B).cumsum(axis=1)
    rng = np.random.default_rng(seed)
    drawn = [(rng.random((len(y), 1)) > H[:, :-1]).sum(axis=1) for _ in range(N_REDRAWN)]
    null = [deviance(B, both, labels, weight) for labels in drawn]
    return {"p": (1 + np.sum(np.array(null) >= deviance(B, both, y, weight))) / (1 + N_REDRAWN)}


def nested_columns(X, P, weight):
    """Functions of p, the same beside the features in standard units, and weights of mean 1."""
    B, F = functions_of_p(P), numbers(X)
    F = F[:, F.std(axis=0) > 0]
    F = (F - F.mean(axis=0)) / F.std(axis=0)
    return B, np.column_stack([B, F]), None if weight is None else weight / np.mean(weight)


def deviance(B, both, y, weight):
    return log_loss_sum(B, y, weight) - log_loss_sum(both, y, weight)


def glest(X, y, P, groups, weight, seed):
    """Estimate grouping loss with package glest (stumps); null: labels permuted among near p."""
    from glest import GLEstimator

    rng, F, p = np.random.default_rng(seed), numbers(X), P[:, 1]

    def loss(labels):
        estimator = GLEstimator(p, partitioner="decision_stump", random_state=seed)
        return estimator.fit(F, labels).GL("brier")

    observed = loss(y)
    null = [loss(permuted_among_near(y, p, rng)) for _ in range(N_NULL_OF_GLEST)]
    rank = (1 + np.sum(np.array(null) >= observed)) / (1 + N_NULL_OF_GLEST)
    return {"p": rank, "found": observed}


def mcgrad(X, y, P, groups, weight, seed):
    """Largest calibration error over segments, of package MCGrad, with its own p-value."""
    from mcgrad.metrics import MulticalibrationError

    F = numbers(X)
    names = [f"x{j}" for j in range(F.shape[1])]
    frame = pd.DataFrame(F, columns=names).assign(
        label=y, score=P[:, 1], weight=1.0 if weight is None else weight
    )
    error = MulticalibrationError(
        frame,
        "label",
        "score",
        "weight",
        numerical_segment_columns=names,
    )
    return {"p": float(error.mce_pvalue)}


Test = Callable[..., dict]
TESTS: dict[str, Test] = {
    "new": new,
    "old": old,
    "cells": cells,
    "prototype": prototype,
    "prototype-with-bound": prototype_with_bound,
    "boosting": boosting,
    "likelihood-ratio": likelihood_ratio,
    "likelihood-ratio-redrawn": likelihood_ratio_redrawn,
    "glest": glest,
    "mcgrad": mcgrad,
}
TWO_CLASSES_ONLY = ("glest", "mcgrad")


def classes(P: np.ndarray) -> np.ndarray:
    return np.arange(P.shape[1])


def numbers(X) -> np.ndarray:
    """Features as numbers: levels as 0 and 1, gaps as the median and a column of their own."""
    if sparse.issparse(X):
        return X.toarray()
    if not isinstance(X, pd.DataFrame):
        return np.asarray(X, dtype=float)
    gaps = X.loc[:, X.isna().any()].isna().add_suffix(" is missing").astype(float)
    coded = pd.get_dummies(X, dtype=float)
    return pd.concat([coded.fillna(coded.median()), gaps], axis=1).to_numpy(dtype=float)


def functions_of_p(P: np.ndarray) -> np.ndarray:
    """Logits against the first class, with five hinges each."""
    L = np.log(np.clip(P, 1e-6, None))
    L = L[:, 1:] - L[:, :1]
    knots = [np.unique(np.quantile(column, [0.1, 0.3, 0.5, 0.7, 0.9])) for column in L.T]
    hinges = [np.maximum(c[:, None] - k, 0) for c, k in zip(L.T, knots, strict=True)]
    return np.hstack([L, *hinges])


def logistic_regression(Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None):
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1e4, solver="newton-cholesky", max_iter=60).fit(Z, y, weight)


def log_loss_sum(Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> float:
    model = logistic_regression(Z, y, weight)
    codes = np.searchsorted(model.classes_, y)
    logs = model.predict_log_proba(Z)[np.arange(len(y)), codes]
    return -float(np.average(logs, weights=weight) * len(y))


def permuted_among_near(y: np.ndarray, p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels exchanged among items of nearly the same p (25 at a time)."""
    order = np.lexsort([rng.random(len(p)), p])
    shuffled = y.copy()
    for start in range(0, len(p), 25):
        rows = order[start : start + 25]
        shuffled[rows] = rng.permutation(y[rows])
    return shuffled


class Apart:
    """A test in a process of its own, with its own interpreter and path."""

    def __init__(self, name: str, python: str, path: str) -> None:
        self._process = subprocess.Popen(
            [python, str(Path(__file__).resolve()), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        atexit.register(self._close)

    def __call__(self, *call) -> dict:
        """Hand on the call and wait for its answer."""
        pickle.dump(call, self._process.stdin)
        self._process.stdin.flush()
        answer = pickle.load(self._process.stdout)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer

    def _close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve(name: str) -> None:
    """Answer calls until there are no more, with CPU seconds; an error with its text."""
    # What a library prints must not mix with the answers.
    calls, answers, sys.stdout = sys.stdin.buffer, sys.stdout.buffer, sys.stderr
    while True:
        try:
            call = pickle.load(calls)
        except EOFError:
            return
        start = time.process_time()
        try:
            answer = TESTS[name](*call) | {"cpu": time.process_time() - start}
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(sys.argv[1])
