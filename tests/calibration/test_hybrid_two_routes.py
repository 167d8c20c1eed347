"""Parts of the hybrid by two routes: weights, folds, seeds and variances by hand."""

import numpy as np
import pytest

from hetcal import HybridCalibrator
from hetcal.calibration.hybrid.kernel_machine import KernelFamily, _tuned
from hetcal.calibration.hybrid.library import Library
from hetcal.calibration.hybrid.trust import likelihood_gain, trust
from hetcal.data import CalibrationSet
from hetcal.datasets import make_hidden_heterogeneity

pytestmark = pytest.mark.filterwarnings("ignore:The calibration set has become a training set")


def items_of(n=50, rows=None, codes=None, **named):
    data = make_hidden_heterogeneity(n, heterogeneity=1.0, random_state=0)
    rows = np.arange(n) if rows is None else rows
    codes = data.y if codes is None else codes
    return CalibrationSet.check(
        data.X[rows], codes[rows], y_proba=data.y_proba[rows], caller="test", **named
    )


def test_weight_two_is_two_items_of_likelihood():
    rng = np.random.default_rng(0)
    P, Q = rng.dirichlet(np.ones(2), (2, 50))
    codes = (rng.random(50) < Q[:, 1]).astype(int)
    weight = rng.integers(1, 4, 50)
    rows = np.repeat(np.arange(50), weight)
    once = CalibrationSet.check(
        None, codes, y_proba=P, sample_weight=weight.astype(float), caller="test"
    )
    often = CalibrationSet.check(None, codes[rows], y_proba=P[rows], caller="test")
    gains = likelihood_gain(Q, P, once), likelihood_gain(Q[rows], P[rows], often)
    assert gains[0] == pytest.approx(gains[1])


def test_a_few_heavy_items_are_not_many():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 150)
    y, P = (rng.random(150) < p).astype(int), np.column_stack([1 - p, p])
    weight = np.r_[np.full(5, 100.5), np.full(145, 0.1)]
    Q = P.copy()
    Q[:5] = np.eye(2)[y[:5]] * 0.4 + 0.3  # suits the heavy items
    named = {"y_proba": P, "sample_weight": weight, "caller": "test"}
    assert trust(Q, CalibrationSet.check(None, y, **named), 1.0) < 0.5


def test_what_is_worse_is_trusted_less_than_what_is_the_same():
    rng = np.random.default_rng(0)
    P, Q = rng.dirichlet(np.ones(2), (2, 100))
    codes = (rng.random(100) < P[:, 1]).astype(int)
    items = CalibrationSet.check(None, codes, y_proba=P, caller="test")
    assert trust(Q, items, 1.0) < 1e-6 < trust(P, items, 1.0) < 0.5


def test_an_items_own_label_does_not_reach_where_the_kernel_starts():
    codes = items_of().codes
    before = KernelFamily()._fit_start(items_of())
    flipped = codes.copy()
    flipped[7] = 1 - codes[7]
    after = KernelFamily()._fit_start(items_of(codes=flipped))
    np.testing.assert_array_equal(after[7], before[7])
    assert not np.allclose(after, before)


def test_items_of_next_to_no_weight_do_not_tune_the_kernel():
    """Half of the items say nothing but noise, and weigh nothing."""
    light = np.arange(60) % 2 == 0
    codes, rng = items_of(60).codes, np.random.default_rng(0)
    weight = np.where(light, 1e-9, 1.0)
    found = set()
    for _ in range(2):
        noise = np.where(light, rng.integers(0, 2, 60), codes)
        items = items_of(60, codes=noise, sample_weight=weight)
        Z = np.asarray(items.features())
        found.add(_tuned((Z - Z.mean(0)) / Z.std(0), np.full((60, 2), 0.5), items))
    assert len(found) == 1
    start = [
        KernelFamily(with_model=False)._fit_start(items_of(60, codes=c, sample_weight=weight))
        for c in (codes, np.where(light, 1, codes))
    ]
    np.testing.assert_allclose(*start, atol=1e-6)


def test_the_seed_reaches_the_experts():
    kinds = ["proximity", "forests", "kernel"]
    for seed in (0, 5):
        library = Library(items_of(), 5, seed, None)
        assert {family.seed for kind in kinds for family in library.family(kind)} == {seed}


def test_disagreement_is_the_variance_of_the_experts_around_their_blend():
    items = items_of()
    hybrid = HybridCalibrator(["kernel", "uncalibrated"], n_estimators=4).fit_set(items)
    weights = np.array([0.2, 0.0, 0.3, 0.1, 0.4])
    assert len(hybrid.weights_) == len(weights)
    hybrid.weights_, hybrid.share_ = weights, 0.5
    said = [Q for f in hybrid.families_ for Q in f.predict(items.features(), items.scores)]
    said = np.stack([said[0], *said])  # the base is the mean of the global maps: the first
    shares = 0.5 * weights + 0.5 * (np.arange(5) == 0)
    blend, squares = hybrid._mix(items.features(), items.scores)
    np.testing.assert_allclose(blend, np.tensordot(shares, said, 1))
    np.testing.assert_allclose(
        squares - blend**2, np.tensordot(shares, (said - blend) ** 2, 1), atol=1e-12
    )


def test_weights_of_the_experts_are_all_of_the_blend():
    for caution in (0.0, 100.0):
        hybrid = HybridCalibrator(["kernel"], n_estimators=4, caution=caution).fit_set(items_of())
        assert hybrid.experts_["weight"].sum() == pytest.approx(1.0)
        assert hybrid.experts_["weight"].iloc[0] >= 1 - hybrid.share_ - 1e-12


def test_caution_reaches_the_recipe():
    bold, careful = (
        HybridCalibrator(["kernel"], n_estimators=4, caution=caution).fit_set(items_of())
        for caution in (0.0, 3.0)
    )
    assert bold.share_ > careful.share_
    assert bold.trust_ == 1.0 > careful.trust_


def test_votes_of_a_group_are_worth_one_vote_in_an_interval(monkeypatch):
    rows = np.repeat(np.arange(50), 10)
    hybrid = HybridCalibrator("proximity", n_estimators=5).fit_set(items_of(rows=rows, groups=rows))
    hybrid.share_, seen = 0.5, []

    def share_of_vote(effective_size):
        seen.append(effective_size)
        return np.zeros_like(effective_size)

    monkeypatch.setattr("hetcal.calibration.hybrid.calibrator.share_of_vote", share_of_vote)
    new = items_of()
    hybrid.predict_interval(new.X, y_proba=new.proba)
    _, votes = hybrid._proximity().smooth_vote(new.features(), new.scores)
    np.testing.assert_allclose(seen[0], votes / 10)
