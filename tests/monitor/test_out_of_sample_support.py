"""New items and calibration items are treated alike: their support has one distribution."""

from __future__ import annotations

import numpy as np
import pytest

import hetcal
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.similarity import ForestProximity


def test_out_of_sample_support_is_that_of_a_loop(swc):
    support, n_trees = swc.out_of_sample_support(return_n_trees=True)
    leaves, in_bag = swc.similarity_.leaves_, swc.similarity_.forest_.in_bag
    for item in (0, 17, 499):
        unseen = in_bag[:, item] == 0
        meet = leaves[:, unseen] == leaves[item, unseen]
        meet[item] = False
        assert n_trees[item] == unseen.sum()
        assert support[item] == pytest.approx(meet.mean(axis=1).sum() * 500 / 499)


def test_some_trees_are_as_many_as_asked_for(data, swc, hybrid):
    X, P = data.new.X, data.new.y_proba
    for calibrator in (swc, hybrid):
        plain = calibrator.support(X, y_proba=P)
        every = calibrator.support(X, y_proba=P, n_trees=np.full(400, 30), random_state=0)
        np.testing.assert_allclose(every, plain)
        few = np.mean(
            [
                calibrator.support(X, y_proba=P, n_trees=np.full(400, 10), random_state=seed)
                for seed in range(60)
            ],
            axis=0,
        )
        np.testing.assert_allclose(few, plain, rtol=0.35)
        assert few.mean() == pytest.approx(plain.mean(), rel=0.02)


@pytest.mark.parametrize(
    "similarity",
    [ForestProximity(40), ForestProximity(40, trees="extra"), "rbf"],
    ids=["forest", "extra", "rbf"],
)
def test_the_rate_is_right_over_redrawn_sets(similarity):
    shares = []
    for seed in range(25):
        cal = make_hidden_heterogeneity(150, heterogeneity=1.0, random_state=seed)
        new = cal.sample(200, random_state=1000 + seed)
        swc = hetcal.SimilarityCalibrator(similarity).fit(cal.X, cal.y, y_proba=cal.y_proba)
        monitor = hetcal.SupportMonitor(swc, distance=None)
        p = monitor.p_values(new.X, y_proba=new.y_proba)
        shares.append([(p <= level).mean() for level in (0.05, 0.2, 0.5)])
    errors = np.std(shares, axis=0) / 5
    assert (np.abs(np.mean(shares, axis=0) - (0.05, 0.2, 0.5)) < 3 * errors + 0.01).all()


def test_groups_stay_together_and_weights_count(data):
    cal = data.cal
    groups = np.arange(500) // 5
    grouped = hetcal.SimilarityCalibrator(ForestProximity(20)).fit(
        cal.X, cal.y, y_proba=cal.y_proba, groups=groups
    )
    values, n_trees = grouped.out_of_sample_support(return_n_trees=True)
    assert n_trees is None
    fresh = grouped.support(data.new.X, y_proba=data.new.y_proba)
    assert np.median(values) == pytest.approx(np.median(fresh), rel=0.25)
    double = hetcal.SimilarityCalibrator("rbf").fit(
        cal.X, cal.y, y_proba=cal.y_proba, sample_weight=np.full(500, 2.0)
    )
    single = hetcal.SimilarityCalibrator("rbf").fit(cal.X, cal.y, y_proba=cal.y_proba)
    np.testing.assert_allclose(double.out_of_sample_support(), 2 * single.out_of_sample_support())


def test_a_similarity_without_trees_says_so(data):
    cal = data.cal
    rbf = hetcal.SimilarityCalibrator("rbf").fit(cal.X, cal.y, y_proba=cal.y_proba)
    with pytest.raises(ValueError, match="counts no trees"):
        rbf.support(cal.X[:2], y_proba=cal.y_proba[:2], n_trees=[3, 3])


def test_extended_items_are_new_to_every_tree(data):
    cal, new = data.cal, data.new
    swc = hetcal.SimilarityCalibrator(ForestProximity(10)).fit(cal.X, cal.y, y_proba=cal.y_proba)
    assert len(swc.out_of_sample_support()) == 500
    swc.extend(new.X, new.y, y_proba=new.y_proba)
    support, n_trees = swc.out_of_sample_support(return_n_trees=True)
    assert len(support) == 900
    assert (n_trees[500:] == 10).all()


@pytest.mark.filterwarnings("ignore::hetcal._exceptions.HetcalWarning")
@pytest.mark.parametrize("forget", [False, True])
def test_files_keep_it(swc, hybrid, data, tmp_path, forget):
    for calibrator in (swc, hybrid):
        hetcal.save(calibrator, tmp_path / "c.hetcal", forget_features=forget)
        loaded = hetcal.load(tmp_path / "c.hetcal")
        np.testing.assert_array_equal(
            loaded.out_of_sample_support(), calibrator.out_of_sample_support()
        )
        X, P = data.new.X[:20], data.new.y_proba[:20]
        one, two = (hetcal.SupportMonitor(c).p_values(X, y_proba=P) for c in (loaded, calibrator))
        np.testing.assert_array_equal(one, two)


def grouped_items(n, rng):
    """Return items in groups of one to five, alike within a group."""
    groups = np.repeat(np.arange(n), rng.integers(1, 6, n))[:n]
    X = rng.normal(size=(n, 5))[groups] + 0.4 * rng.normal(size=(n, 5))
    p = 1 / (1 + np.exp(-X[:, 0]))
    y = (rng.random(n) < p).astype(int)
    return X, y, np.column_stack([1 - p, p]), groups


@pytest.mark.parametrize("kind", ["swc", "hybrid"])
def test_new_items_are_flagged_at_the_rate_where_items_come_in_groups(kind, tmp_path):
    flagged = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        (X, y, P, groups), (X_new, _, P_new, _) = (grouped_items(n, rng) for n in (300, 600))
        options = {} if kind == "swc" else {"experts": ["proximity"], "n_estimators": 40}
        calibrator = hetcal.get_calibrator(kind, **options).fit(X, y, y_proba=P, groups=groups)
        hetcal.save(calibrator, tmp_path / "c.hetcal")
        loaded = hetcal.load(tmp_path / "c.hetcal")
        low = np.quantile(loaded.out_of_sample_support(), 0.05)
        flagged.append(np.mean(loaded.support(X_new, y_proba=P_new) < low))
    # Scaled by the number of items, as if support grew with it, a fifth and more are flagged.
    assert 0.01 < np.mean(flagged) < 0.12
