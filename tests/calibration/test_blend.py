"""The average of global maps: what few items leave alone, and what many decide."""

import numpy as np
import pytest
from scipy.special import softmax
from tests.calibration.test_global import sample

from hetcal.calibration import GlobalBlend, get_calibrator
from hetcal.calibration.blend import candidates
from hetcal.data import CalibrationSet, Folds
from hetcal.metrics.scores import brier_losses, log_losses

pytestmark = pytest.mark.filterwarnings("ignore::hetcal._exceptions.ColumnOrderWarning")


def checked(P, codes, **named):
    return CalibrationSet.check(
        None, codes, y_proba=P, classes=np.arange(P.shape[1]), caller="test", **named
    )


def drawn(rng, P):
    return (P.cumsum(axis=1) < rng.random(len(P))[:, None]).sum(axis=1).clip(0, P.shape[1] - 1)


def blend(P, codes, **named):
    return GlobalBlend(classes=np.arange(P.shape[1])).fit(None, codes, y_proba=P, **named)


@pytest.mark.parametrize("n", [2, 3, 5, 10])
@pytest.mark.parametrize("K", [2, 4])
def test_few_items_change_nothing_much(n, K):
    rng = np.random.default_rng([n, K])
    moved = []
    while len(moved) < 8:
        P = rng.dirichlet(np.ones(K), n)
        codes = drawn(rng, P)
        if np.unique(codes).shape[0] == 1:
            continue
        new = rng.dirichlet(np.ones(K), 50)
        moved.append(np.abs(blend(P, codes).predict_proba(y_proba=new) - new).mean())
    assert np.mean(moved) < 0.03


@pytest.mark.parametrize("K", [2, 4])
def test_sixty_items_behind_a_perfect_model_cost_half_a_percent(K):
    rng = np.random.default_rng(K)
    cost = []
    for _ in range(15):
        P, new = rng.dirichlet(np.ones(K), 60), rng.dirichlet(np.ones(K), 500)
        Q = blend(P, drawn(rng, P)).predict_proba(y_proba=new)
        cost.append(((Q - new) ** 2).sum(axis=1).mean() / (new * (1 - new)).sum(axis=1).mean())
    assert np.mean(cost) < 0.007


def test_many_items_find_the_map_that_is_needed():
    _, P, codes = sample(n=3000, temperature=3.0)
    _, new, codes_new = sample(n=3000, temperature=3.0, seed=1)
    calibrator = blend(P, codes)
    loss = log_losses(calibrator.predict_proba(y_proba=new), codes_new).mean()
    temperature = get_calibrator("temperature").fit(None, codes, y_proba=P)
    assert loss < 1.005 * log_losses(temperature.predict_proba(y_proba=new), codes_new).mean()
    assert calibrator.weights_[0] < 0.05


def test_confusion_that_no_curve_repairs_calls_for_the_matrix():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(2000, 3)) * 2
    P, truth = softmax(Z, axis=1), softmax(Z[:, [1, 0, 2]], axis=1)
    calibrator = blend(P, drawn(rng, truth))
    weights = dict(zip(calibrator.names_, calibrator.weights_, strict=True))
    assert weights["matrix"] > 0.8


def test_a_coarse_classifier_gets_a_frequency_per_value():
    rng = np.random.default_rng(0)
    said, rates = np.array([0.1, 0.3, 0.5, 0.7]), np.array([0.3, 0.1, 0.8, 0.5])
    place = rng.integers(0, 4, 2000)
    P = np.column_stack([1 - said, said])
    calibrator = blend(P[place], (rng.random(2000) < rates[place]).astype(int))
    np.testing.assert_allclose(calibrator.predict_proba(y_proba=P)[:, 1], rates, atol=0.05)
    assert calibrator.weights_[calibrator.names_.index("atoms")] > 0.8


def test_out_of_sample_predictions_are_made_without_the_fold():
    """The loss on labels of pure chance shows whether a map or weight has seen them."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(2), 200)
    losses, in_sample = [], []
    for _ in range(8):
        codes = rng.integers(0, 2, 200)
        calibrator = GlobalBlend(prior_items=0.0).fit(None, codes, y_proba=P)
        losses.append(brier_losses(calibrator.out_of_sample_proba_, codes).mean())
        in_sample.append(brier_losses(calibrator.predict_proba(y_proba=P), codes).mean())
    assert np.mean(in_sample) < 0.5 < np.mean(losses)


def test_weights_of_a_fold_do_not_know_its_labels():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(2), 60)
    predictions, folds = np.stack([P, P[:, ::-1]]), Folds.make(60, 4, seed=0)
    first, codes = folds.number == 0, drawn(rng, P)
    said = [
        GlobalBlend()._cross_fitted(predictions, checked(P, labels), folds)
        for labels in (codes, np.where(first, 1 - codes, codes))
    ]
    np.testing.assert_array_equal(said[0][first], said[1][first])
    assert not np.allclose(said[0][~first], said[1][~first])


def test_a_group_counts_as_one_item():
    """Repeated rows are told from new evidence where groups say so."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(2), 40)
    codes = drawn(rng, softmax(0.5 * np.log(P), axis=1))
    predictions = np.stack([P, softmax(0.5 * np.log(P), axis=1)])
    each, five = np.arange(40), np.repeat(np.arange(40), 5)
    calibrator = GlobalBlend()
    once = calibrator._weigh(predictions, checked(P, codes))
    grouped = checked(P[five], codes[five], groups=five)
    np.testing.assert_allclose(calibrator._weigh(predictions[:, five], grouped), once, atol=1e-6)
    repeated = checked(P[five], codes[five])
    assert calibrator._weigh(predictions[:, five], repeated)[0] < once[0] - 0.05
    assert blend(P[five], codes[five], groups=five).out_of_sample_proba_.shape == (200, 2)
    alone = blend(P, codes, groups=each)
    assert alone.weights_.sum() == pytest.approx(1.0)


def test_groups_are_left_out_whole():
    """Of groups that are classes apart nothing can be learned about one from the others."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 300)
    codes = np.repeat([0, 1, 2], 100)
    calibrator = blend(P, codes, groups=codes)
    assert log_losses(calibrator.out_of_sample_proba_, codes).mean() > 1.0
    assert calibrator.weights_[0] > 0.5


def test_items_of_weight_zero_are_predicted_as_new_ones():
    _, P, codes = sample(n=120)
    weight = np.ones(120)
    weight[::3] = 0.0
    some = weight > 0
    with_zeros = blend(P, codes, sample_weight=weight)
    without = blend(P[some], codes[some])
    np.testing.assert_allclose(with_zeros.weights_, without.weights_, atol=1e-9)
    np.testing.assert_allclose(
        with_zeros.out_of_sample_proba_[some], without.out_of_sample_proba_, atol=1e-9
    )
    np.testing.assert_allclose(
        with_zeros.out_of_sample_proba_[~some], without.predict_proba(y_proba=P[~some]), atol=1e-9
    )


def test_relabelling_the_classes_relabels_the_columns():
    _, P, codes = sample(n=150)
    order = np.array([2, 0, 1])
    one = blend(P, codes)
    other = blend(P[:, order], np.argsort(order)[codes])
    np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-4)
    np.testing.assert_allclose(
        one.predict_proba(y_proba=P)[:, order],
        other.predict_proba(y_proba=P[:, order]),
        atol=1e-4,
    )


def test_logits_missing_classes_and_a_fold_of_one_class():
    logits, P, codes = sample(n=150, K=4)
    seen = codes != 2
    from_logits = GlobalBlend(classes=range(4)).fit(None, codes[seen], logits=logits[seen])
    Q = from_logits.predict_proba(logits=logits)
    np.testing.assert_allclose(Q, blend(P[seen], codes[seen]).predict_proba(y_proba=P), atol=1e-6)
    assert Q[:, 2].mean() < P[:, 2].mean()
    rare = np.zeros(30, dtype=int)
    rare[0] = 1
    assert np.isfinite(blend(P[:30, :2] / P[:30, :2].sum(1)[:, None], rare).weights_).all()


def test_few_maps_are_tried_and_dear_ones_only_where_they_are_cheap():
    assert list(candidates(checked(*sample(n=60, K=2)[1:]))) == [
        *("uncalibrated", "temperature", "spline", "venn-abers")
    ]
    assert "matrix" in candidates(checked(*sample(n=60, K=26)[1:]))
    assert "vector" in candidates(checked(*sample(n=400, K=100)[1:]))
    assert "isotonic" in candidates(checked(*sample(n=400, K=3)[1:]))


def test_prior_items_are_checked_and_rule():
    _, P, codes = sample(n=100)
    with pytest.raises(ValueError, match="prior_items must be a finite number >= 0; got -1"):
        GlobalBlend(prior_items=-1).fit(None, codes, y_proba=P)
    stubborn = GlobalBlend(prior_items=1e9).fit(None, codes, y_proba=P)
    np.testing.assert_allclose(stubborn.predict_proba(y_proba=P), P, atol=1e-6)


def test_few_items_do_not_confirm_a_stated_certainty():
    y = np.array([0, 1] * 25)
    certain = np.column_stack([1.0 - y, y])
    few = blend(certain, y).predict_proba(None, y_proba=certain).min()
    many = blend(np.tile(certain, (40, 1)), np.tile(y, 40)).predict_proba(None, y_proba=certain)
    assert 1e-4 < few < 0.05
    assert many.min() < few / 5
