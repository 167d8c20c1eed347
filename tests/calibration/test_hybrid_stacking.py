"""Weights, share and last step of the hybrid, on predictions made by hand."""

import numpy as np
import pytest

from hetcal import HybridCalibrator
from hetcal.calibration import BetaCalibration
from hetcal.calibration.hybrid import stacking
from hetcal.calibration.hybrid.recalibration import Recalibration
from hetcal.calibration.hybrid.recipe import predicted_without_fold
from hetcal.calibration.hybrid.stacking import (
    cautious_share,
    convex_weights,
    cross_fitted_blend,
    learned_weights,
    reliance,
)
from hetcal.calibration.hybrid.trust import _brier_evidence, likelihood_gain, trust
from hetcal.data import CalibrationSet, Folds

FOLDS = 5


def items_of(codes, n_classes=2, **named):
    P = np.full((len(codes), n_classes), 1 / n_classes)
    classes = np.arange(n_classes)
    return CalibrationSet.check(
        np.zeros((len(codes), 1)), codes, y_proba=P, classes=classes, caller="test", **named
    )


def folds_of(items):
    return Folds.make(items.n_items, FOLDS, seed=0, groups=items.groups)


def sure(codes, confidence, n_classes=2):
    """Give each code this confidence and share the rest."""
    rest = (1 - confidence) / (n_classes - 1)
    return np.where(np.eye(n_classes)[codes] > 0, confidence, rest)


def test_experts_that_say_the_same_keep_the_weights_they_start_with():
    codes = np.arange(60) % 2
    said = np.tile(sure(codes, 0.7), (5, 1, 1))
    w = learned_weights(said, np.eye(2)[codes], np.ones(60))
    np.testing.assert_allclose(w, [1 / 3, *[1 / 6] * 4], atol=1e-3)


def test_a_loss_in_brier_score_is_evidence_against_a_change():
    codes = (np.arange(80) % 10 > 0).astype(int)  # nine of ten are of class 1
    better, worse = (
        _brier_evidence(sure(np.full(80, favoured), 0.8), items_of(codes)) for favoured in (1, 0)
    )
    assert better > 1
    assert worse < -1


def test_convex_weights_beat_a_grid():
    rng = np.random.default_rng(0)
    truth = np.eye(3)[rng.integers(0, 3, 200)]
    said = np.stack([0.5 * truth + 0.5 * rng.dirichlet(np.ones(3), 200) for _ in range(2)])
    weight = rng.random(200)

    def score(w):
        return weight @ ((np.tensordot(w, said, axes=1) - truth) ** 2).sum(axis=1)

    best = score(convex_weights(said, truth, weight))
    assert all(best <= score(np.array([a, 1 - a])) + 1e-9 for a in np.linspace(0, 1, 101))


def test_a_gain_within_noise_is_not_taken():
    rng = np.random.default_rng(0)
    items = items_of(rng.integers(0, 2, 40))
    base = np.full((40, 2), 0.5)
    noise = np.clip(base + rng.normal(0, 0.2, (40, 1)) * [1, -1], 0, 1)
    assert cautious_share(noise, base, items, 1.0) == 0.0
    assert cautious_share(0.9 * items.onehot + 0.05, base, items, 1.0) > 0.9


def test_copies_in_one_group_do_not_make_the_share_bolder():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 60)
    blend = sure(np.where(rng.random(60) < 0.2, 1 - codes, codes), 0.8)
    base = np.full((60, 2), 0.5)
    copies = np.repeat(np.arange(60), 4)
    alone = cautious_share(blend, base, items_of(codes), 3.0)
    grouped = items_of(codes[copies], groups=copies)
    ungrouped = items_of(codes[copies])
    assert cautious_share(blend[copies], base[copies], grouped, 3.0) <= alone + 0.05
    assert cautious_share(blend[copies], base[copies], ungrouped, 3.0) > alone + 0.05


def test_convex_weights_follow_the_items_that_count():
    # Weight 2 is the item twice, with and without a pull towards equal weights.
    rng = np.random.default_rng(0)
    truth = np.eye(2)[rng.integers(0, 2, 60)]
    said = rng.dirichlet(np.ones(2), (3, 60))
    weight = rng.integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weight)
    for prior in (0.0, 5.0):
        np.testing.assert_allclose(
            convex_weights(said, truth, weight.astype(float), prior_items=prior),
            convex_weights(said[:, rows], truth[rows], np.ones(len(rows)), prior_items=prior),
            atol=1e-6,
        )


def test_few_items_leave_the_weights_near_equal():
    rng = np.random.default_rng(0)
    spread = {}
    for n in (20, 2000):
        codes = rng.integers(0, 2, n)
        truth = np.eye(2)[codes]
        noisy = np.where(rng.random(n) < 0.1, 1 - codes, codes)
        said = np.stack([sure(noisy, 0.9), np.full((n, 2), 0.5), sure(codes, 0.6)])
        spread[n] = np.ptp(learned_weights(said, truth, np.ones(n)))
    assert spread[20] < spread[2000]


def test_who_has_hardly_a_say_is_not_asked(monkeypatch):
    found = np.array([0.5, 0.4, 0.06, 0.025, 0.015])
    monkeypatch.setattr(stacking, "convex_weights", lambda *_, **__: found)
    weights = learned_weights(np.zeros((5, 9, 2)), np.zeros((9, 2)), np.ones(9))
    np.testing.assert_allclose(weights, np.array([0.5, 0.4, 0.06, 0.025, 0]) / 0.985)


def test_a_perfect_record_on_few_items_is_not_believed():
    # Neither makes a mistake on 50 items; the blend is only surer of itself.
    codes = np.random.default_rng(0).integers(0, 2, 2000)
    shares = {
        n: cautious_share(sure(codes[:n], 0.999), sure(codes[:n], 0.93), items_of(codes[:n]), 1.0)
        for n in (50, 2000)
    }
    assert shares[50] < 0.2
    assert shares[2000] > 0.8


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_large_gain_is_taken_on_few_items_too(n_classes):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, n_classes, 50)
    wrong = np.where(rng.random(50) < 0.1, (codes + 1) % n_classes, codes)
    base = sure(rng.integers(0, n_classes, 50), 0.6, n_classes)
    blend = sure(wrong, 0.9, n_classes)
    assert cautious_share(blend, base, items_of(codes, n_classes), 1.0) > 0.6


def last_step(blend, items, caution=1.0):
    return Recalibration().fit(blend, items, folds_of(items), caution)


def test_last_step_keeps_to_a_temperature_where_that_is_enough():
    rng = np.random.default_rng(0)
    p = rng.beta(0.6, 0.6, 3000)
    codes = (rng.random(3000) < p).astype(np.int64)
    timid = 1 / (1 + ((1 - p) / p) ** 0.5)
    step = last_step(np.column_stack([1 - timid, timid]), items_of(codes))
    assert step.inverse_temperature_ == pytest.approx(2.0, rel=0.1)
    assert step.beta_ is None


def test_last_step_corrects_what_is_lopsided():
    rng = np.random.default_rng(0)
    p = rng.beta(0.6, 0.6, 3000)
    codes = (rng.random(3000) < p).astype(np.int64)
    shifted = 1 / (1 + np.e * (1 - p) / p)
    step = last_step(np.column_stack([1 - shifted, shifted]), items_of(codes))
    assert step.beta_ is not None
    after = step.apply(np.column_stack([1 - shifted, shifted]))[:, 1]
    assert np.mean((after - p) ** 2) < 0.1 * np.mean((shifted - p) ** 2)


def test_reliance_is_none_where_others_know_as_much_and_full_where_they_know_nothing():
    codes = np.random.default_rng(0).integers(0, 2, 200)
    items, final = items_of(codes), sure(codes, 0.9)
    assert reliance([final], final, items, folds_of(items), 0.0)[0] < 0.1
    assert reliance([np.full((200, 2), 0.5)], final, items, folds_of(items), 1.0)[0] > 0.95
    assert reliance([np.full((200, 2), np.nan)], final, items, folds_of(items), 1.0)[0] > 0.95


def test_reliance_is_measured_with_the_same_caution():
    codes = np.random.default_rng(0).integers(0, 2, 200)
    items, final = items_of(codes), sure(codes, 0.9)
    assert reliance([final], final, items, folds_of(items), np.inf)[0] == 1.0


def test_reliance_is_unknown_where_nothing_is_known():
    rng = np.random.default_rng(0)
    codes, noise = rng.integers(0, 2, 200), rng.uniform(0.45, 0.55, 200)
    items, said = items_of(codes), np.column_stack([noise, 1 - noise])
    assert np.isnan(reliance([said], said, items, folds_of(items), 1.0)).all()


def test_reliance_counts_groups():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 80)
    final, other = sure(codes, 0.8), sure(np.where(rng.random(80) < 0.3, 1 - codes, codes), 0.8)
    alone = items_of(codes)
    copies = np.repeat(np.arange(80), 3)
    grouped = items_of(codes[copies], groups=copies)
    folds = folds_of(alone)
    many = Folds(folds.number[copies])
    _, error = reliance([other], final, alone, folds, 0.0)
    _, error_of_copies = reliance([other[copies]], final[copies], grouped, many, 0.0)
    # The pull towards equal weights counts items, so the blend differs a little.
    assert error_of_copies == pytest.approx(error, rel=0.15)


def bound_of(share, blend, base, truth, caution):
    """Mean plus errors of the difference to the base, with one imagined mistake, by a loop."""
    mixed = (1 - share) * base + share * blend
    differences = [
        ((q - t) ** 2).sum() - ((b - t) ** 2).sum()
        for q, b, t in zip(mixed, base, truth, strict=True)
    ]
    imagined = []
    for q, b in zip(blend, base, strict=True):
        label = b.argmax()
        other = max((k for k in range(len(q)) if k != label), key=lambda k: q[k])
        mistaken = q.copy()
        mistaken[label], mistaken[other] = sorted((q[label], q[other]))
        right = np.eye(len(q))[label]
        new = (1 - share) * b + share * mistaken
        imagined.append(((new - right) ** 2).sum() - ((b - right) ** 2).sum())
    differences = np.array([*differences, np.mean(imagined)])
    return differences.mean() + caution * differences.std() / np.sqrt(len(differences))


@pytest.mark.parametrize("caution", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_share_is_that_of_a_loop(caution, n_classes):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_classes, 80)
    truth = np.eye(n_classes)[codes]
    base = rng.dirichlet(np.ones(n_classes), 80)
    blend = np.clip(base + rng.normal(0.15, 0.3, (80, 1)) * (truth - base), 0, 1)
    shares = np.linspace(0, 1, 41)
    bounds = [bound_of(share, blend, base, truth, caution) for share in shares]
    found = cautious_share(blend, base, items_of(codes, n_classes), caution)
    assert found == pytest.approx(shares[np.argmin(bounds)])


def test_the_share_does_not_grow_with_caution():
    rng = np.random.default_rng(1)
    items = items_of(rng.integers(0, 2, 60))
    base = np.full((60, 2), 0.5)
    blend = np.clip(base + rng.normal(0.15, 0.5, (60, 1)) * (items.onehot - base), 0, 1)
    shares = [cautious_share(blend, base, items, c) for c in (0, 0.5, 1, 2, 4)]
    assert shares == sorted(shares, reverse=True)
    assert len(set(shares)) > 3


def test_an_items_own_label_does_not_reach_its_blend():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 50)
    items = items_of(codes)
    folds = folds_of(items)
    said = rng.dirichlet(np.ones(2), (4, 50))
    before = cross_fitted_blend(said, items, folds)
    for row in (3, 20):
        flipped = codes.copy()
        flipped[row] = 1 - codes[row]
        after = cross_fitted_blend(said, items.with_codes(flipped), folds)
        own = folds.number == folds.number[row]
        np.testing.assert_array_equal(before[own], after[own])
        assert not np.allclose(before[~own], after[~own])


def test_reliance_is_unknown_up_to_two_errors_of_the_gain():
    items = items_of(np.repeat([0, 1], 100))
    truth = items.onehot
    known = np.full((200, 2), 0.5)
    for errors in (1.0, 1.9, 2.1, 4.0):
        gain = 0.2 * (errors / np.sqrt(199) + np.tile([1.0, -1.0], 100))
        # Brier of the frequencies is 1 / 2, that of q on the truth 2 (1 - q)^2.
        wrong = np.sqrt((0.5 - gain) / 2)
        blend = truth * (1 - wrong)[:, None] + (1 - truth) * wrong[:, None]
        found = reliance([known], blend, items, folds_of(items), 1.0)
        assert np.isfinite(found).all() == (errors > 2)


def test_the_last_step_is_judged_out_of_sample():
    """What was fitted to labels fits them better than not; only other labels can tell."""
    taken = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.05, 0.95, 60)
        codes = (rng.random(60) < p).astype(np.int64)
        step = last_step(np.column_stack([1 - p, p]), items_of(codes), 0.0)
        taken += step.beta_ is not None
    assert taken <= 6


def test_the_last_step_is_a_temperature_then_a_map():
    rng = np.random.default_rng(0)
    p = rng.beta(0.6, 0.6, 2000)
    codes = (rng.random(2000) < p).astype(np.int64)
    odds = (p / (1 - p)) ** 0.5 / 3  # timid and lopsided
    said = np.column_stack([1 / (1 + odds), odds / (1 + odds)])
    step = last_step(said, items_of(codes))
    sharpened = said**step.inverse_temperature_
    sharpened /= sharpened.sum(axis=1, keepdims=True)
    beta = BetaCalibration().fit(None, codes, y_proba=sharpened)
    np.testing.assert_allclose(step.apply(said), beta.predict_proba(y_proba=sharpened), atol=1e-9)


def test_a_last_temperature_is_believed_as_far_as_it_exceeds_chance():
    """Behind a perfect model it stays near one; a clear need is met; caution 0 believes all."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(2), 60)
    found = {}
    for caution in (0.0, 1.0):
        scales = []
        for _ in range(30):
            codes = (rng.random(60) < P[:, 1]).astype(int)
            items = CalibrationSet.check(None, np.append(codes[:-2], [0, 1]), y_proba=P, caller="t")
            folds = Folds.make(60, 5, seed=0)
            scales.append(Recalibration().fit(P, items, folds, caution).inverse_temperature_)
        found[caution] = np.mean(np.log(scales) ** 2)
    assert found[1.0] < 0.6 * found[0.0]
    many = rng.dirichlet(np.ones(2), 2000)
    flat = many**0.5 / (many**0.5).sum(axis=1, keepdims=True)
    codes = (rng.random(2000) < many[:, 1]).astype(int)
    items = CalibrationSet.check(None, codes, y_proba=flat, caller="t")
    recalibration = Recalibration().fit(flat, items, Folds.make(2000, 5, seed=0), 1.0)
    assert 1.8 < recalibration.inverse_temperature_ < 2.2


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("n", [120, 600])
def test_no_part_of_the_recipe_has_seen_the_labels_that_it_predicts(grouped, n):
    rng = np.random.default_rng(0)
    groups = np.arange(n) // 2 if grouped else None
    P = rng.dirichlet(np.ones(2), size=n)
    codes = (rng.random(n) < P[:, 1]).astype(int)
    experts = np.stack([P, *rng.dirichlet(np.ones(2), size=(3, n))])
    folds = Folds.make(n, 5, seed=0, groups=groups)
    left_out = np.arange(n) // 2 == 3 if grouped else np.arange(n) == 7

    def predicted(codes):
        items = CalibrationSet.check(None, codes, y_proba=P, groups=groups, caller="test")
        return predicted_without_fold(experts, items, folds, caution=0.0, seed=0)

    (blend, final), (blend_else, final_else) = (
        predicted(codes),
        predicted(np.where(left_out, 1 - codes, codes)),
    )
    np.testing.assert_array_equal(final[left_out], final_else[left_out])
    np.testing.assert_array_equal(blend[left_out], blend_else[left_out])
    assert np.abs(final - final_else).max() > 1e-4  # the labels do matter to the others


def behind_a_perfect_model(seed, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    p = 1 / (1 + np.exp(-1.2 * X[:, 0] - 0.5 * X[:, 1]))
    return X, (rng.random(n) > 1 - p).astype(int), np.column_stack([1 - p, p])


def test_few_items_behind_a_perfect_model_change_little():
    """Draws in which base, blend or last step cost 7 to 13 % of the Brier score without trust."""
    X_new, _, P_new = behind_a_perfect_model(99, 500)
    costs = []
    for seed in (5002, 5003, 5021, 5050, 5054):
        X, y, P = behind_a_perfect_model(seed)
        hybrid = HybridCalibrator(n_estimators=30).fit(X, y, y_proba=P)
        Q = hybrid.predict_proba(X_new, y_proba=P_new)
        costs.append(((Q - P_new) ** 2).sum() / (P_new * (1 - P_new)).sum())
    assert np.mean(costs) < 0.02, costs
    assert max(costs) < 0.05, costs


def test_trust_is_a_posterior_probability():
    """With evidence as strong as here, nothing is cut off."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(2), 800)
    codes = (rng.random(800) < P[:, 1]).astype(int)
    timid = P**0.5 / (P**0.5).sum(axis=1, keepdims=True)
    items = CalibrationSet.check(None, codes, y_proba=timid, caller="test")
    gain = np.log(P[np.arange(800), codes] / timid[np.arange(800), codes]).sum()
    brier = 2 * ((timid[:, 0] - (codes == 0)) ** 2 - (P[:, 0] - (codes == 0)) ** 2)
    evidence = (gain + (brier.mean() / brier.std()) ** 2 * 800 / 2) / 2
    odds_against = np.expm1(1 + 30 / 800) * np.exp(-evidence)
    assert 1 / trust(P, items, 1.0) - 1 == pytest.approx(odds_against, rel=0.05)
    assert trust(P, items, 0.0) == 1.0
    assert trust(P, items, 1.0) > 0.9
    assert trust(P[100:120], items.take(np.arange(100, 120)), 1.0) < 0.5
    assert trust(P, items, np.inf) < 1e-100


def test_a_gain_that_only_one_score_sees_is_doubted():
    """One surprise less decides the likelihoods; the Brier score is the worse for the rest."""
    p, codes = np.full(60, 0.5), np.tile([0, 1], 30)
    p[0], q = 1 - 1e-5, np.append(0.5, np.full(59, 0.75))
    P, Q = np.column_stack([1 - p, p]), np.column_stack([1 - q, q])
    items = CalibrationSet.check(None, codes, y_proba=P, caller="test")
    assert likelihood_gain(Q, P, items) > 2.5
    assert trust(Q, items, 1.0) < 0.5


def test_trust_counts_groups():
    """Rows repeated as one group are one item."""
    rng = np.random.default_rng(0)
    P, Q = rng.dirichlet(np.ones(2), (2, 50))
    codes = (rng.random(50) < Q[:, 1]).astype(int)
    once = CalibrationSet.check(None, codes, y_proba=P, caller="test")
    rows = np.repeat(np.arange(50), 4)
    often = CalibrationSet.check(None, codes[rows], y_proba=P[rows], groups=rows, caller="test")
    assert trust(Q[rows], often, 1.0) == pytest.approx(trust(Q, once, 1.0))


@pytest.mark.parametrize(("n", "cut"), [(40, True), (400, False)])
def test_a_change_without_strong_evidence_costs_little_if_p_is_right(n, cut):
    """If p is right, what is lost is the mean squared change; strong evidence may move more."""
    codes = np.tile([0, 1, 1, 1, 1], n // 5)
    P, Q = np.full((n, 2), 0.5), np.tile([0.2, 0.8], (n, 1))
    items = CalibrationSet.check(np.zeros((n, 1)), codes, y_proba=P, caller="test")
    moved = trust(Q, items, 1.0)
    lost = moved**2 * np.mean(np.sum((Q - P) ** 2, axis=1)) / 0.5
    assert (lost == pytest.approx(0.03)) == cut
    assert (moved > 0.99) == (not cut)
    assert trust(Q, items, 0.0) == 1.0
