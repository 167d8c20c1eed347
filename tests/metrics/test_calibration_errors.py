"""Binned and smooth calibration errors against naive loops and known answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm as normal

from hetcal.data import CalibrationSet
from hetcal.metrics import expected_calibration_error, smooth_calibration_error
from hetcal.metrics.ece import bin_of, ece_statistic


def binary_sample(n=200, seed=0, slope=1.0):
    """Labels follow a logistic model; slope 1 is calibrated, larger is over-confident."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=1.5, size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    y[:2] = 0, 1
    return y, 1 / (1 + np.exp(-slope * z))


def three_classes(n=150, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), size=n)
    y = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    y[:3] = 0, 1, 2
    return y, P, rng.uniform(0.5, 2.0, n)


def naive_bins(score, n_bins, binning):
    """Bin numbers of distinct scores, without weights: equal counts, or equal width."""
    if binning == "equal-mass":
        rank = np.argsort(np.argsort(score))
        return [int((2 * r + 1) * n_bins // (2 * len(score))) for r in rank]
    edges = [(b + 1) / n_bins for b in range(n_bins)]
    return [next(b for b in range(n_bins) if s <= edges[b] + 1e-12) for s in score]


def naive_error(score, outcome, bins, weight, norm):
    gaps, shares = [], []
    for b in sorted(set(bins)):
        inside = [i for i, own in enumerate(bins) if own == b]
        mass = sum(weight[i] for i in inside)
        gaps.append(abs(sum(weight[i] * (score[i] - outcome[i]) for i in inside)) / mass)
        shares.append(mass / sum(weight))
    if norm == "max":
        return max(gaps)
    power = 2 if norm == "l2" else 1
    return sum(m * g**power for m, g in zip(shares, gaps, strict=True)) ** (1 / power)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("binning", ["equal-mass", "equal-width"])
def test_top_label_error_against_a_loop(norm, binning):
    y, P, _ = three_classes()
    score, outcome = P.max(axis=1), P.argmax(axis=1) == y
    bins = naive_bins(score, 7, binning)
    expected = naive_error(score, outcome, bins, np.ones(150), norm)
    ours = expected_calibration_error(y, P, n_bins=7, norm=norm, binning=binning)
    assert ours == pytest.approx(expected)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_class_wise_error_with_weights_against_a_loop(norm):
    y, P, w = three_classes()
    errors = np.array(
        [
            naive_error(P[:, k], y == k, naive_bins(P[:, k], 5, "equal-width"), w, norm)
            for k in range(3)
        ]
    )
    together = {"l1": errors.mean(), "l2": np.sqrt((errors**2).mean()), "max": errors.max()}
    ours = expected_calibration_error(
        y, P, kind="class-wise", binning="equal-width", n_bins=5, norm=norm, sample_weight=w
    )
    assert ours == pytest.approx(together[norm])


def test_binary_error_is_that_of_the_second_column():
    y, p = binary_sample()
    bins = naive_bins(p, 10, "equal-mass")
    expected = naive_error(p, y, bins, np.ones(len(p)), "l1")
    assert expected_calibration_error(y, p, kind="binary", n_bins=10) == pytest.approx(expected)


def test_debiased_l2_against_the_formula_of_kumar():
    y, p = binary_sample(slope=1.5)
    bins = np.array(naive_bins(p, 10, "equal-mass"))
    total = 0.0
    for b in range(10):
        inside = bins == b
        observed, size = y[inside].mean(), inside.sum()
        total += inside.mean() * (
            (p[inside].mean() - observed) ** 2 - observed * (1 - observed) / (size - 1)
        )
    ours = expected_calibration_error(y, p, kind="binary", n_bins=10, norm="l2", debias=True)
    assert ours == pytest.approx(np.sqrt(total))


def test_bias_of_groups_against_a_loop():
    """The variance of a bin's gap is that of sums over whole groups, around the bin's own gap."""
    y, P, weight = three_classes()
    groups = np.arange(150) // 4
    items = CalibrationSet.to_score(y, P, sample_weight=weight, groups=groups)
    raw, _, debiased, _ = ece_statistic(items, norm="l2", n_bins=5).parts(np.ones((150, 1)))
    residual = P.max(axis=1) - (P.argmax(axis=1) == y)
    bins = bin_of(P.max(axis=1), weight, "equal-mass", 5)
    bias = 0.0
    for b in range(5):
        inside = bins == b
        mass = weight[inside].sum()
        gap = weight[inside] @ residual[inside] / mass
        together = [inside & (groups == g) for g in np.unique(groups[inside])]
        squares = sum((weight[rows] @ (residual[rows] - gap)) ** 2 for rows in together)
        n = len(together)
        bias += mass / weight.sum() * squares * n / (n - 1) / mass**2
    assert debiased.item() ** 2 == pytest.approx(max(raw.item() ** 2 - bias, 0.0))
    assert debiased.item() > 0


def test_debiased_l1_against_simulation():
    y, p = binary_sample(slope=1.5)
    bins = np.array(naive_bins(p, 10, "equal-mass"))
    rng = np.random.default_rng(0)
    plain = simulated = 0.0
    for b in range(10):
        inside = bins == b
        observed, size = y[inside].mean(), inside.sum()
        gap = p[inside].mean() - observed
        drawn = rng.normal(gap, np.sqrt(observed * (1 - observed) / (size - 1)), 100_000)
        plain += inside.mean() * abs(gap)
        simulated += inside.mean() * np.abs(drawn).mean()
    ours = expected_calibration_error(y, p, kind="binary", n_bins=10, debias=True)
    assert ours == pytest.approx(2 * plain - simulated, abs=5e-4)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_debiasing_brings_a_calibrated_classifier_nearer_to_zero(norm):
    samples = [binary_sample(n=500, seed=seed) for seed in range(20)]
    plain = [expected_calibration_error(y, p, norm=norm) for y, p in samples]
    debiased = [expected_calibration_error(y, p, norm=norm, debias=True) for y, p in samples]
    assert np.mean(debiased) < 0.7 * np.mean(plain)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_debiasing_does_not_depend_on_the_scale_of_weights(norm):
    y, P, w = three_classes()
    one, other = (
        expected_calibration_error(y, P, norm=norm, debias=True, n_bins=5, sample_weight=weight)
        for weight in (w, w / w.sum())
    )
    assert one == pytest.approx(other)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_bins_with_one_item_are_left_uncorrected(norm):
    y, p = binary_sample(n=12)
    plain = expected_calibration_error(y, p, n_bins=12, norm=norm)
    assert expected_calibration_error(y, p, n_bins=12, norm=norm, debias=True) == plain


@settings(max_examples=50)
@given(
    levels=st.lists(st.integers(0, 5), min_size=1, max_size=60),
    n_bins=st.integers(1, 20),
    seed=st.integers(0, 1000),
)
def test_equal_scores_share_a_bin_and_bins_follow_the_score(levels, n_bins, seed):
    score = np.array(levels) / 5
    weight = np.random.default_rng(seed).uniform(0.1, 3, len(score))
    bins = bin_of(score, weight, "equal-mass", n_bins)
    assert bins.min() >= 0
    assert bins.max() < n_bins
    for level in np.unique(score):
        assert np.unique(bins[score == level]).shape[0] == 1
    assert (np.diff(bins[np.argsort(score)]) >= 0).all()


@settings(max_examples=30)
@given(n=st.integers(1, 80), n_bins=st.integers(1, 20))
def test_bins_without_ties_are_balanced(n, n_bins):
    sizes = np.bincount(
        bin_of(np.linspace(0, 1, n), np.ones(n), "equal-mass", n_bins), minlength=n_bins
    )
    assert sizes.max() - sizes.min() <= 1


def test_equal_width_bins_are_closed_on_the_right():
    bins = bin_of(np.array([0.0, 0.1, 0.3, 0.7, 0.71, 1.0]), np.ones(6), "equal-width", 10)
    assert bins.tolist() == [0, 0, 2, 6, 7, 9]


def test_one_bin_is_the_difference_of_means():
    y, p = binary_sample()
    for binning in ("equal-mass", "equal-width"):
        ours = expected_calibration_error(y, p, kind="binary", binning=binning, n_bins=1)
        assert ours == pytest.approx(abs(p.mean() - y.mean()))


def direct_smooth_error(score, outcome, weight, width, cells=1500):
    """smECE at one width by summing the kernel and its mirror images over all pairs."""
    t = (np.arange(cells) + 0.5) / cells
    kernel = sum(
        normal.pdf(t[:, None], 2 * turn + sign * score, width)
        for turn in range(-4, 5)
        for sign in (-1, 1)
    )
    return np.abs(kernel @ (weight * (outcome - score)) / weight.sum()).mean()


@pytest.mark.parametrize("slope", [0.3, 1.0, 4.0])
def test_smooth_error_against_all_pairs(slope):
    y, p = binary_sample(n=150, slope=slope)
    weight = np.random.default_rng(1).uniform(0.5, 2, 150)
    expected = brentq(lambda s: direct_smooth_error(p, y, weight, s) - s, 5e-3, 1, xtol=1e-7)
    ours = smooth_calibration_error(y, p, kind="binary", sample_weight=weight)
    assert ours == pytest.approx(expected, abs=2e-5)


def test_smooth_error_of_a_class_and_of_its_complement_agree():
    y, p = binary_sample()
    binary = smooth_calibration_error(y, p, kind="binary")
    assert smooth_calibration_error(y, p, kind="class-wise") == pytest.approx(binary, abs=1e-6)


def test_smooth_error_of_a_constant_score_is_its_gap():
    y = np.repeat([0, 1], [30, 70])
    assert smooth_calibration_error(y, np.full(100, 0.9)) == pytest.approx(0.2, abs=1e-6)
    assert smooth_calibration_error(y, np.full(100, 0.7)) == pytest.approx(0.0, abs=1e-6)


def test_smooth_error_of_certain_and_right_is_zero_and_of_wrong_is_one():
    y = np.array([0, 1] * 10)
    assert smooth_calibration_error(y, y.astype(float)) == 0.0
    assert smooth_calibration_error(y, 1.0 - y, kind="binary") > 0.4
    assert smooth_calibration_error(y, 1.0 - y, kind="top-label") == pytest.approx(1, abs=1e-6)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), step=st.floats(0, 1e-4))
def test_smooth_error_moves_continuously(seed, step):
    y, p = binary_sample(n=50, seed=seed)
    moved = smooth_calibration_error(y, np.clip(p + step, 0, 1), kind="binary")
    assert moved == pytest.approx(
        smooth_calibration_error(y, p, kind="binary"), abs=20 * step + 1e-6
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "top"}, "kind must be one of"),
        ({"binning": "quantile"}, "binning must be one of"),
        ({"norm": "l3"}, "norm must be one of"),
        ({"n_bins": 0}, "n_bins must be an integer"),
        ({"n_bins": 2.5}, "n_bins must be an integer"),
        ({"norm": "max", "debias": True}, "not for the maximum"),
        ({"kind": "binary"}, "needs two classes; got 3"),
    ],
)
def test_bad_options(options, message):
    y, P, _ = three_classes()
    with pytest.raises(ValueError, match=message):
        expected_calibration_error(y, P, **options)


def test_bad_options_of_the_smooth_error():
    y, P, _ = three_classes()
    with pytest.raises(ValueError, match="smooth_calibration_error: kind must be one of"):
        smooth_calibration_error(y, P, kind="top")
