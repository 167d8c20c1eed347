"""The scale of the weights says nothing."""

import numpy as np
import pandas as pd
import pytest

from hetcal import HiddenHeterogeneity
from hetcal.datasets import make_hidden_heterogeneity


def test_p_value_does_not_depend_on_the_scale_of_the_weights():
    data = make_hidden_heterogeneity(200, heterogeneity=0.5, random_state=0)
    weight = np.random.default_rng(0).random(200)
    p_values = [
        HiddenHeterogeneity(learners=[])
        .fit(data.X, data.y, y_proba=data.y_proba, sample_weight=scale * weight)
        .p_value_
        for scale in (1e-9, 1.0, 1e9)
    ]
    np.testing.assert_allclose(p_values, p_values[1], rtol=1e-6)


def test_columns_named_in_another_order_are_refused():
    data = make_hidden_heterogeneity(60, classes=("no", "yes"), random_state=0)
    table = pd.DataFrame(data.y_proba, columns=["yes", "no"])
    with pytest.raises(ValueError, match="order"):
        HiddenHeterogeneity(n_null=0).fit(data.X, data.y, y_proba=table)
