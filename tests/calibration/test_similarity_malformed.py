"""A hundred malformed inputs: an error in words or a valid result, never a NaN or a crash."""

import warnings

import numpy as np
import pandas as pd
import pytest

from hetcal import SimilarityCalibrator, get_calibrator
from hetcal._exceptions import HetcalWarning
from hetcal.similarity import CombinedSimilarity, ForestProximity, RBFSimilarity

CALIBRATORS = [
    lambda: SimilarityCalibrator(ForestProximity(5)),
    lambda: SimilarityCalibrator("isolation"),
    lambda: get_calibrator("sba"),
    lambda: get_calibrator("sbaw", preset="paper"),
    lambda: SimilarityCalibrator("euclidean", power=40.0),
    lambda: SimilarityCalibrator("rbf", augment="log-proba"),
    lambda: SimilarityCalibrator("cosine", augment=None),
    lambda: SimilarityCalibrator(CombinedSimilarity(ForestProximity(5), RBFSimilarity())),
]


def _poke(array, rng, values):
    spoiled = np.array(array, dtype=object if isinstance(values[0], str) else None)
    for _ in range(rng.integers(1, 4)):
        place = tuple(rng.integers(0, n) for n in spoiled.shape)
        spoiled[place] = values[rng.integers(len(values))]
    return spoiled


# Each takes (rng, X, y, P) and returns what a careless user might pass.
SPOILED = [
    lambda r, X, y, P: (_poke(X, r, [np.nan, np.inf, -np.inf]), y, P),
    lambda r, X, y, P: (_poke(X, r, [1e300, -1e308, 1e39, 5e-324]), y, P),
    lambda r, X, y, P: (_poke(X, r, ["a", "", "7"]), y, P),
    lambda r, X, y, P: (X * 10.0 ** r.integers(-300, 300), y, P),
    lambda r, X, y, P: (X + 10.0 ** r.integers(5, 17), y, P),
    lambda r, X, y, P: (np.repeat(X[:1], len(X), axis=0), y, P),
    lambda r, X, y, P: (X[:, 0], y, P),
    lambda r, X, y, P: (X[:, :0], y, P),
    lambda r, X, y, P: (X[: r.integers(0, len(X))], y, P),
    lambda r, X, y, P: (X[None], y, P),
    lambda r, X, y, P: (X + 1j, y, P),
    lambda r, X, y, P: (pd.DataFrame(X).assign(when=pd.Timestamp("2020-01-01")), y, P),
    lambda r, X, y, P: (pd.DataFrame(_poke(X, r, ["x", "y"])), y, P),
    lambda r, X, y, P: (np.full_like(X, np.nan), y, P),
    lambda r, X, y, P: (X, np.zeros_like(y), P),
    lambda r, X, y, P: (X, _poke(y.astype(float), r, [np.nan, np.inf, 0.5]), P),
    lambda r, X, y, P: (X, y + r.integers(1, 5), P),
    lambda r, X, y, P: (X, y[:-1], P),
    lambda r, X, y, P: (X, np.eye(3)[y], P),
    lambda r, X, y, P: (X, [None] * len(y), P),
    lambda r, X, y, P: (X, y, _poke(P, r, [np.nan, np.inf, -0.2, 3.0])),
    lambda r, X, y, P: (X, y, np.log(P)),
    lambda r, X, y, P: (X, y, 100 * P),
    lambda r, X, y, P: (X, y, P[:, :2]),
    lambda r, X, y, P: (X, y, np.eye(3)[P.argmax(axis=1)]),
    lambda r, X, y, P: (X, y, P[::-1][: r.integers(0, len(P))]),
    lambda r, X, y, P: (X, y, np.zeros_like(P)),
    lambda r, X, y, P: (X, y, P.astype(str)),
    lambda r, X, y, P: (X, y, None),
]
# Warnings that belong to others and say that numbers are too large for them.
FOREIGN = (RuntimeWarning, UserWarning)


@pytest.mark.parametrize("case", range(100))
def test_malformed_input(case):
    rng = np.random.default_rng(case)
    n, K = 24, 3
    X, P = rng.normal(size=(n, 3)), rng.dirichlet(np.ones(K), size=n)
    y = np.arange(n) % K
    make = CALIBRATORS[rng.integers(len(CALIBRATORS))]
    spoil = SPOILED[case % len(SPOILED)]
    weight = None
    if case % 5 == 4:
        weight = _poke(np.ones(n), rng, [0.0, -1.0, np.nan, 1e308])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HetcalWarning)
        for category in FOREIGN:
            warnings.simplefilter("ignore", category)
        X_bad, y_bad, P_bad = spoil(rng, X, y, P)
        at_fit, later = make(), make().fit(X, y, y_proba=P)
        fits = _in_words(lambda: at_fit.fit(X_bad, y_bad, y_proba=P_bad, sample_weight=weight))
        if fits:
            _assert_valid(at_fit, X_bad if np.shape(X_bad) == np.shape(P_bad) else X, P)
        if _in_words(lambda: later.predict_proba(X_bad, y_proba=P_bad)):
            _assert_valid(later, X_bad, P_bad)


def test_weights_and_features_too_large_are_refused_in_words():
    X, y, P = np.eye(4), np.array([0, 1, 0, 1]), np.full((4, 2), 0.5)
    with pytest.raises(ValueError, match="sample_weight holds 1e.308.*Divide all weights"):
        SimilarityCalibrator().fit(X, y, y_proba=P, sample_weight=[1, 1e308, 1, 1])
    unscaled = SimilarityCalibrator(RBFSimilarity(scale=False))
    with pytest.raises(ValueError, match="RBFSimilarity: X holds values too large.*Rescale"):
        unscaled.fit(X * 1e300, y, y_proba=P)


def _in_words(attempt):
    """Whether an attempt succeeds; a failure must say something."""
    try:
        attempt()
    except (ValueError, TypeError) as error:
        message = str(error)
    else:
        return True
    assert len(message) > 20
    return False


def _assert_valid(calibrator, X, P):
    try:
        Q, support = calibrator.predict_proba(X, y_proba=P, return_support=True)
    except (ValueError, TypeError):
        return
    predicted = calibrator.out_of_sample_proba_
    low, high = calibrator.predict_smoothed_interval(X, y_proba=P)
    for rows in (Q, predicted):
        assert np.isfinite(rows).all()
        assert (rows >= 0).all()
        np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-6)
    assert np.isfinite(support).all()
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()
