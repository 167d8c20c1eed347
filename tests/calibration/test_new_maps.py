"""Estimators around matrix, spline, ensemble, Venn-Abers and atom maps: what each is for."""

import numpy as np
import pytest
from scipy.special import expit, logit, softmax
from tests.calibration.test_global import fitted, sample

from hetcal.calibration import (
    AtomCalibration,
    HistogramBinning,
    MatrixScaling,
    SplineCalibration,
    VennAbersCalibration,
    get_calibrator,
)
from hetcal.data import Folds
from hetcal.metrics.scores import log_losses

pytestmark = pytest.mark.filterwarnings("ignore::hetcal._exceptions.ColumnOrderWarning")


@pytest.mark.parametrize("name", ["spline", "quadratic"])
def test_a_bend_in_the_log_odds_is_found(name):
    """Over-confident below even odds and under-confident above: no straight line does it."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, 20_000)
    truth = expit(x + 0.15 * x**2)
    codes = (rng.random(20_000) < truth).astype(int)
    grid = np.linspace(-2.5, 2.5, 21)
    q = fitted(name, None, np.column_stack([expit(-x), expit(x)]), codes).predict_proba(
        y_proba=expit(grid)
    )[:, 1]
    np.testing.assert_allclose(q, expit(grid + 0.15 * grid**2), atol=0.03)


def test_beyond_the_outer_knots_the_spline_is_straight():
    logits, _, codes = sample(n=500, K=2)
    calibrator = SplineCalibration().fit(None, codes, logits=logits)
    ends = np.array([14.0, 16.0, 18.0])
    for x in (ends, -ends):
        new = np.column_stack([np.zeros(3), x])
        z = logit(calibrator.predict_proba(logits=new))[:, 1]
        assert z[2] - z[1] == pytest.approx(z[1] - z[0], rel=1e-4)


def test_gross_errors_call_for_the_uniform_part():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 1, 4000)
    p = np.where(p > 0.5, 0.99 + 0.0099 * p, 0.01 * p)
    codes = np.where(rng.random(4000) < 0.2, rng.integers(0, 2, 4000), (p > 0.5).astype(int))
    P = np.column_stack([1 - p, p])
    ensemble = fitted("ets", None, P, codes)
    temperature = fitted("temperature", None, P, codes)
    assert ensemble.weights_[2] > 0.05
    losses = [log_losses(c.predict_proba(y_proba=P), codes).mean() for c in (ensemble, temperature)]
    assert losses[0] < losses[1]
    assert (ensemble.predict_proba(y_proba=P).argmax(axis=1) == P.argmax(axis=1)).all()


def test_many_classes_get_a_diagonal():
    _, P, codes = sample(n=60, K=250)
    calibrator = fitted("matrix", None, P, codes)
    off = calibrator.matrix_ - np.diag(np.diag(calibrator.matrix_))
    assert (off == 0).all()
    np.testing.assert_allclose(calibrator.predict_proba(y_proba=P).sum(axis=1), 1.0)


def test_heavy_shrinkage_leaves_the_temperature():
    _, P, codes = sample()
    heavy = MatrixScaling(shrinkage=1e9).fit(None, codes, y_proba=P)
    temperature = fitted("temperature", None, P, codes)
    np.testing.assert_allclose(
        heavy.predict_proba(y_proba=P), temperature.predict_proba(y_proba=P), atol=1e-5
    )


def test_intervals_hold_the_probability_and_narrow_with_items():
    _, P, codes = sample(n=2000, K=2)
    widths = []
    for n in (50, 2000):
        calibrator = VennAbersCalibration().fit(None, codes[:n], y_proba=P[:n])
        lower, upper = calibrator.predict_venn_abers_pair(y_proba=P)
        q = calibrator.predict_proba(y_proba=P)[:, 1]
        assert ((lower <= q) & (q <= upper)).all()
        widths.append((upper - lower).mean())
    assert widths[1] < widths[0] / 4


def test_cross_predictors_merge_their_parts():
    _, P, codes = sample(n=300, K=2)
    cross = VennAbersCalibration(n_folds=3).fit(None, codes, y_proba=P)
    assert len(cross.thresholds_) == 3
    assert sum(len(x) for x in cross.thresholds_) == 300
    lower, upper = cross.predict_venn_abers_pair(y_proba=P)
    assert (lower <= upper).all()
    tiny = VennAbersCalibration(n_folds=5).fit(None, [0, 1], y_proba=[0.2, 0.7])
    assert np.isfinite(tiny.predict_proba(y_proba=[0.5])).all()


def test_pairs_of_parts_are_averaged_and_rows_without_weight_are_in_none():
    _, P, codes = sample(n=90, K=2)
    weight = np.where(np.arange(90) % 4, 1.0, 0.0)
    used, new = np.flatnonzero(weight), np.linspace(0.05, 0.95, 7)
    parts = [used[Folds.make(len(used), 3, seed=0).number == fold] for fold in range(3)]
    alone = [
        VennAbersCalibration()
        .fit(None, codes[rows], y_proba=P[rows])
        .predict_venn_abers_pair(y_proba=new)
        for rows in parts
    ]
    cross = VennAbersCalibration(n_folds=3).fit(None, codes, y_proba=P, sample_weight=weight)
    np.testing.assert_allclose(cross.predict_venn_abers_pair(y_proba=new), np.mean(alone, axis=0))


def test_runs_are_no_more_than_the_scores_of_any_class():
    """All classes have one number of bins: that of the class with the fewest scores."""
    rng = np.random.default_rng(0)
    first = rng.choice([0.2, 0.5], 200)
    rest = rng.uniform(0.1, 0.9, 200) * (1 - first)
    P = np.column_stack([first, rest, 1 - first - rest])
    binned = HistogramBinning(n_bins=10, cut="runs").fit(None, np.arange(200) % 3, y_proba=P)
    assert [len(levels) for levels in binned.levels_] == [2, 2, 2]


def test_intervals_are_of_two_classes():
    _, P, codes = sample()
    calibrator = VennAbersCalibration().fit(None, codes, y_proba=P)
    with pytest.raises(ValueError, match=r"intervals are of two classes; this calibrator has 3"):
        calibrator.predict_venn_abers_pair(y_proba=P)


def test_atoms_count_and_new_values_get_the_smooth_map():
    rng = np.random.default_rng(0)
    values, rates = np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.5, 0.1, 0.9, 0.4])
    place = rng.integers(0, 4, 4000)
    P = np.column_stack([1 - values, values])[place]
    calibrator = fitted("atoms", None, P, (rng.random(4000) < rates[place]).astype(int))
    np.testing.assert_allclose(calibrator.predict_proba(y_proba=values)[:, 1], rates, atol=0.04)
    smooth = calibrator.prior_
    smooth.classes_, smooth.input_kind_ = calibrator.classes_, "y_proba"
    smooth.output_names_, smooth.zero_floor_ = None, calibrator.zero_floor_
    np.testing.assert_allclose(
        calibrator.predict_proba(y_proba=[0.7]), smooth.predict_proba(y_proba=[0.7])
    )


@pytest.mark.parametrize(
    ("calibrator", "message"),
    [
        (MatrixScaling(shrinkage=-1), "shrinkage must be a finite number >= 0"),
        (SplineCalibration(n_knots=1), "n_knots must be an integer >= 2; got 1"),
        (SplineCalibration(roughness="soft"), "roughness must be"),
        (VennAbersCalibration(n_folds=0), "n_folds must be an integer >= 1; got 0"),
    ],
)
def test_bad_parameters_are_named(calibrator, message):
    _, P, codes = sample()
    with pytest.raises(ValueError, match=message):
        calibrator.fit(None, codes, y_proba=P)


@pytest.mark.parametrize("name", ["venn-abers", "global"])
def test_one_column_says_what_two_columns_say(name):
    rng = np.random.default_rng(3)
    p = rng.uniform(0.02, 0.98, 150)
    y = (rng.random(150) < p**2).astype(int)
    both = np.column_stack([1 - p, p])
    fitted = get_calibrator(name).fit(None, y, y_proba=both)
    of_first_column = 1 - both[:, 0]  # the same probabilities, but for the last bit
    np.testing.assert_allclose(
        fitted.predict_proba(y_proba=of_first_column), fitted.predict_proba(y_proba=both), atol=1e-9
    )


def test_atoms_whose_logarithms_differ_do_not_depend_on_the_order():
    """1e-100 is zero as a probability, and far from it as a logarithm."""
    same = [[1 / 3] * 3] * 10
    P = np.array([*same, [1.0, 0.0, 0.0], [0.0, 1.0, 1e-200], [1.0, 0.0, 1e-100]])
    y = np.array([0] * 8 + [1, 1, 0, 0, 0])
    atoms = AtomCalibration(classes=range(3))
    one = atoms.fit(None, y, y_proba=P).predict_proba(y_proba=P)
    other = atoms.fit(None, y[::-1], y_proba=P[::-1]).predict_proba(y_proba=P)
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_ets_fits_temperature_and_weights_together():
    """Gross errors flatten the best temperature alone; beside a uniform part it stays right."""
    rng = np.random.default_rng(0)
    Z = 6 * rng.normal(size=(3000, 4))
    truth = softmax(Z / 2, axis=1)
    y = (truth.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1).clip(0, 3)
    wrong = rng.random(3000) < 0.1
    y[wrong] = rng.integers(0, 4, wrong.sum())
    ets, alone = (
        get_calibrator(name).fit(None, y, y_proba=softmax(Z, axis=1))
        for name in ("ets", "temperature")
    )
    assert alone.inverse_temperature_ < 0.35
    assert ets.inverse_temperature_ == pytest.approx(0.5, abs=0.07)
    assert ets.weights_[2] == pytest.approx(0.1, abs=0.04)
