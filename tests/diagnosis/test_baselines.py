"""The forest beside the calibrators is as good as scikit-learn's, and treats weights as it does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from hetcal.diagnosis.baselines import BinnedForestClassifier
from hetcal.metrics.scores import brier_losses


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


def test_a_forest_on_bins_is_as_good_as_one_on_values():
    loss = np.zeros(2)
    for seed in range(8):  # a single draw may differ by 4 %
        Z, codes = draw(seed)
        models = (RandomForestClassifier(60, random_state=seed), BinnedForestClassifier(60))
        for place, model in enumerate(models):
            Q = model.fit(Z[:500], codes[:500]).predict_proba(Z[500:])
            np.testing.assert_array_equal(model.classes_, [3, 5, 9])
            np.testing.assert_allclose(Q.sum(axis=1), 1.0)
            loss[place] += brier_losses(Q, np.searchsorted([3, 5, 9], codes[500:])).mean()
    assert loss[1] == pytest.approx(loss[0], rel=0.02)


def test_items_without_weight_have_no_part(drawn):
    Z, codes = drawn
    weight = (np.arange(500) < 400).astype(float)
    all_items = BinnedForestClassifier(20).fit(Z[:500], codes[:500], sample_weight=weight)
    some = BinnedForestClassifier(20).fit(Z[:400], codes[:400])
    np.testing.assert_array_equal(all_items.predict_proba(Z), some.predict_proba(Z))


def test_heavy_items_count_more(drawn):
    Z, codes = drawn
    weight = np.where(codes == 9, 5.0, 1.0)
    plain, weighted = (
        BinnedForestClassifier(50).fit(Z[:500], codes[:500], sample_weight=w).predict_proba(Z[500:])
        for w in (None, weight[:500])
    )
    assert weighted[:, 2].mean() > 1.2 * plain[:, 2].mean()
