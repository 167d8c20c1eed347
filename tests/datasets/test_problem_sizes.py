"""Sizes and the oracle of a problem by hand: weights and groups count."""

from dataclasses import replace

import numpy as np
import pytest

from hetcal.datasets import make_problem
from hetcal.datasets.problems import problem as module


def test_copies_in_one_group_make_the_oracle_no_surer():
    drawn = make_problem("linear", 60, random_state=0)
    p_values = []
    for rows in (np.arange(60), np.repeat(np.arange(60), 9)):
        parts = ("y", "y_proba", "true_proba", "recalibrated_proba")
        copies = {name: getattr(drawn, name)[rows] for name in parts}
        p_values.append(replace(drawn, **copies, groups=rows).oracle_p_value())
    assert p_values[1] == pytest.approx(p_values[0])
    assert p_values[0] == pytest.approx(drawn.oracle_p_value(), abs=0.1)


def test_sizes_are_weighted_means(monkeypatch):
    drawn = make_problem("linear", 50, random_state=0)
    weight = np.random.default_rng(0).uniform(0.1, 9, 50)
    monkeypatch.setattr(module, "N_LARGE", 50)
    monkeypatch.setattr(module, "N_CHUNK", 50)
    monkeypatch.setattr(module, "draw", lambda *_: replace(drawn, sample_weight=weight))
    truth, centre, said = drawn.true_proba, drawn.recalibrated_proba, drawn.y_proba
    expected = [np.average(((a - centre) ** 2).sum(axis=1), weights=weight) for a in (truth, said)]
    assert module._sizes.__wrapped__("linear") == pytest.approx(expected)
