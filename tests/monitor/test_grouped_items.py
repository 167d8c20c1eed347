"""Calibration items that belong together say less of what is usual."""

from __future__ import annotations

import numpy as np
import pytest

import hetcal
from hetcal.monitor import SupportMonitor
from hetcal.monitor.groups import ALL
from hetcal.monitor.labels import LabelSums
from hetcal.similarity import ForestProximity

EVENTS, COPIES = 80, 4


def repeated(fit, **given):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(EVENTS, 3))
    p = 1 / (1 + np.exp(-X[:, 0]))
    y, P = (rng.random(EVENTS) < p).astype(int), np.column_stack([1 - p, p])
    rows = np.repeat(np.arange(EVENTS), COPIES)
    groups = rows if given.pop("grouped") else None
    calibrator = fit().fit(X[rows], y[rows], y_proba=P[rows], groups=groups)
    monitor = SupportMonitor(calibrator).fit()
    expected = monitor.expected_performance(X, y_proba=P).brier
    stream = monitor.counts_.streams.by_group[ALL]
    evidence = stream.label_evidence
    return stream.usual.n, evidence.high - evidence.low, expected.high - expected.low


@pytest.mark.filterwarnings("ignore::hetcal.TrainingSetWarning")
@pytest.mark.parametrize(
    "fit",
    [
        lambda: hetcal.SimilarityCalibrator(ForestProximity(40)),
        lambda: hetcal.HybridCalibrator(["proximity"], n_estimators=40),
    ],
    ids=["swc", "hybrid"],
)
def test_copies_of_an_event_count_as_one_label(fit):
    n, band, width = repeated(fit, grouped=True)
    n_apart, band_apart, width_apart = repeated(fit, grouped=False)
    assert (n, n_apart) == (EVENTS, EVENTS * COPIES)
    assert (band >= band_apart).all()
    assert band.mean() > 1.4 * band_apart.mean()
    assert width > width_apart


def test_sums_are_those_of_as_many_items_as_they_are_worth():
    rng = np.random.default_rng(0)
    Q, codes = rng.dirichlet(np.ones(3), EVENTS), rng.integers(0, 3, EVENTS)
    rows, weight = np.repeat(np.arange(EVENTS), COPIES), np.full(EVENTS * COPIES, 7.0)
    whole = LabelSums.over(Q, codes)
    copied = LabelSums.over(Q[rows], codes[rows], weight, lambda _: EVENTS + 0.2)
    for part in ("n", "excess", "variance", "expected"):
        np.testing.assert_allclose(getattr(copied, part), getattr(whole, part), atol=1e-9)
