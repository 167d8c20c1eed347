"""How often the advice is right, with few draws; benchmarks/advice.py is the full simulation."""

import importlib.util
from pathlib import Path

import pytest

from hetcal.datasets import list_problems

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "advice.py"


@pytest.fixture(scope="module")
def simulation():
    spec = importlib.util.spec_from_file_location("advice_simulation", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        "calibrated",
        "over-confident",
        "hidden",
        "hidden and over-confident",
        "calibrated, 200 items",
        "useless model",
        "weak model",
    ],
)
def test_clear_cases(simulation, case):
    # At 95 % right answers, four or more wrong ones of 10 have a probability of 0.1 %.
    right = sum(simulation.one_verdict(case, 2000 + seed)["right"] for seed in range(10))
    assert right >= 7


@pytest.mark.slow
def test_following_the_advice_does_no_harm(simulation):
    for seed, name in enumerate(list_problems("null", half="develop")[::3]):
        assert simulation.one_problem(name, seed, n=200)["right"], name


@pytest.mark.slow
@pytest.mark.parametrize("own_rows", [True, False])
@pytest.mark.parametrize("model", ["forest", "tree", "1-nn"])
def test_training_rows(simulation, model, own_rows):
    name = f"{model} 0.2 {'own rows' if own_rows else 'other rows'}"
    assert all(simulation.one_leak(name, 2000 + seed)["right"] for seed in range(5))


@pytest.mark.slow
def test_class_balance(simulation):
    for name in simulation.SHIFTS:
        right = sum(simulation.one_shift(name, 2000 + seed)["right"] for seed in range(20))
        assert right >= 16
