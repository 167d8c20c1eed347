"""What a user gives is checked once and encoded once; ``benchmarks/walks.py`` counts."""

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
N_ROWS = 60
# Validations, and encodings by way of treating missing values.
EXPECTED = {
    "hetcal diagnose": (1, {"keep": 1}),
    "HybridCalibrator.fit": (1, {"keep": 1}),
    "hetcal apply": (1, {"keep": 1}),
    "hetcal monitor": (1, {"keep": 1}),
    # The distance score has an encoding of its own.
    "SupportMonitor.update": (1, {"keep": 1, "impute": 1}),
    "SupportMonitor.extend": (1, {"keep": 1, "impute": 1}),
}


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        import walks
    actions = walks.prepare(tmp_path_factory.mktemp("walks"), N_ROWS)
    return {name: walks.Walk(N_ROWS).run(action) for name, action in actions.items()}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_given_is_checked_and_encoded_once(walked, name):
    walk = walked[name]
    assert (walk.validations, dict(walk.encodings)) == EXPECTED[name]


def test_a_diagnosis_ends_where_its_report_is_written(walked):
    """Reading, measuring, judging, and then the report, which calls nothing that measures."""
    packages = walked["hetcal diagnose"].packages
    assert packages[0] == "cli"
    assert packages.index("tables") < packages.index("diagnosis")
    last_measured = max(i for i, name in enumerate(packages) if name == "diagnosis")
    assert set(packages[last_measured + 1 :]) <= {"report", "persistence", "cli"}
