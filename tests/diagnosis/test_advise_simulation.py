"""How often the advice is right, with few draws; benchmarks/advice.py is the full simulation."""

import importlib.util
from pathlib import Path

import pytest

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
        "too little data",
        "useless model",
        "weak model",
    ],
)
def test_clear_cases(simulation, case):
    # At 95 % right answers, four or more wrong ones of 10 have a probability of 0.1 %.
    right = sum(simulation.one_verdict(case, 2000 + seed)["right"] for seed in range(10))
    assert right >= 7


@pytest.mark.slow
@pytest.mark.parametrize("case", ["calibrated, 200 items", "mildly over-confident, 400 items"])
def test_true_nulls_are_not_sent_to_local_maps(simulation, case):
    answers = [simulation.one_verdict(case, 2000 + seed)["answer"] for seed in range(20)]
    # At 5 %, five or more of 20 have a probability of 0.3 %.
    assert answers.count("go local") <= 4


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
