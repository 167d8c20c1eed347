"""Size and power with few draws; benchmarks/heterogeneity_test.py is the full simulation."""

import numpy as np
import pytest

from hetcal.datasets import make_hidden_heterogeneity
from hetcal.heterogeneity import HiddenHeterogeneity


def fit(data, **options):
    return HiddenHeterogeneity(**options).fit(data.X, data.y, y_proba=data.y_proba)


def test_strong_heterogeneity_is_found():
    data = make_hidden_heterogeneity(600, heterogeneity=1.0, miscalibration=1.0, random_state=0)
    hidden = fit(data)
    assert hidden.p_value_ < 0.01
    assert hidden.hh_local_mean_ > hidden.hh_global_mean_
    assert hidden.hh_mean_ > 3 * hidden.standard_error_


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 5])
@pytest.mark.parametrize("miscalibration", [0.0, 1.0])
def test_size_at_a_true_null(K, miscalibration):
    n_sets = 40
    alarms, found, hh_local = 0, 0, []
    for seed in range(n_sets):
        data = make_hidden_heterogeneity(
            400, n_classes=K, heterogeneity=0, miscalibration=miscalibration, random_state=seed
        )
        hidden = fit(data, radius="auto")
        alarms += hidden.p_value_ <= 0.05
        found += bool((hidden.regions_["q_value"] <= 0.05).any())
        hh_local.append(hidden.hh_local_mean_)
    # 5 % of 40 is 2; six or more have a probability of 1.4 %.
    assert alarms <= 5
    assert found <= 5
    assert abs(np.mean(hh_local)) < 0.02


@pytest.mark.slow
def test_power_and_the_value_itself():
    n_sets, found, gap = 20, 0, []
    for seed in range(n_sets):
        data = make_hidden_heterogeneity(1000, heterogeneity=0.7, random_state=seed)
        hidden = fit(data)
        found += hidden.p_value_ <= 0.05
        gap.append(hidden.hh_local_mean_ - data.true_local_gain)
    assert found >= 15
    assert abs(np.mean(gap)) < 0.02
