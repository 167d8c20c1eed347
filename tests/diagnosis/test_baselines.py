"""Models beside the calibrators are as good as scikit-learn's, and treat weights as those do."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from hetcal.diagnosis.baselines import BinnedBoostingClassifier, BinnedForestClassifier
from hetcal.metrics.scores import brier_losses

MODELS = [BinnedForestClassifier(20), BinnedBoostingClassifier()]


def draw(seed):
    """Return features, a tenth of them missing, and labels 3, 5 and 9 that depend on them."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(1500, 5))
    codes = np.array([3, 5, 9])[(Z[:, 0] > 0).astype(int) + (Z[:, 1] * Z[:, 2] > 0.3)]
    Z[rng.random(Z.shape) < 0.1] = np.nan
    return Z, codes


@pytest.fixture(scope="module")
def drawn():
    return draw(4)


@pytest.mark.parametrize(
    ("theirs", "ours", "n_draws"),
    [
        (
            RandomForestClassifier(60, min_samples_leaf=3, random_state=0),
            BinnedForestClassifier(60),
            8,
        ),
        (HistGradientBoostingClassifier(random_state=0), BinnedBoostingClassifier(), 2),
    ],
    ids=["forest", "boosting"],
)
def test_a_model_on_bins_is_as_good_as_scikit_learns(theirs, ours, n_draws):
    loss = np.zeros(2)
    for seed in range(n_draws):  # forests may differ by 4 % in a single draw
        Z, codes = draw(seed)
        for place, model in enumerate((theirs, ours)):
            fitted = clone(model).fit(Z[:500], codes[:500])
            Q = fitted.predict_proba(Z[500:])
            np.testing.assert_array_equal(fitted.classes_, [3, 5, 9])
            np.testing.assert_allclose(Q.sum(axis=1), 1.0)
            loss[place] += brier_losses(Q, np.searchsorted([3, 5, 9], codes[500:])).mean()
    assert loss[1] < 1.02 * loss[0]


@pytest.mark.parametrize("model", MODELS, ids=["forest", "boosting"])
def test_items_without_weight_have_no_part(model, drawn):
    Z, codes = drawn
    weight = (np.arange(500) < 400).astype(float)
    all_items = clone(model).fit(Z[:500], codes[:500], sample_weight=weight).predict_proba(Z)
    some = clone(model).fit(Z[:400], codes[:400]).predict_proba(Z)
    np.testing.assert_array_equal(all_items, some)


@pytest.mark.parametrize("model", MODELS, ids=["forest", "boosting"])
def test_heavy_items_count_more(model, drawn):
    Z, codes = drawn
    weight = np.where(codes == 9, 5.0, 1.0)
    plain, weighted = (
        clone(model).fit(Z[:500], codes[:500], sample_weight=w).predict_proba(Z[500:])
        for w in (None, weight[:500])
    )
    heavy = codes[500:] == 9
    assert weighted[heavy, 2].mean() > 1.03 * plain[heavy, 2].mean()


@pytest.mark.parametrize("model", MODELS, ids=["forest", "boosting"])
def test_the_unit_of_weights_does_not_matter(model, drawn):
    Z, codes = drawn
    weight = np.where(codes == 9, 5.0, 1.0)[:500]
    once, thousandfold = (
        clone(model).fit(Z[:500], codes[:500], sample_weight=w).predict_proba(Z[500:])
        for w in (weight, 1024 * weight)
    )
    np.testing.assert_allclose(once, thousandfold)
