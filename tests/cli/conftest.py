"""Tables and calibrators that the commands' tests share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from hetcal.cli import main


@pytest.fixture
def call() -> Callable[..., int]:
    """Return a function that runs a command and returns its exit code."""

    def run(*arguments: object) -> int:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return ended.value.code or 0

    return run


def make_loans(n: int = 150, seed: int = 0) -> pd.DataFrame:
    """Return a table whose model is right on average and wrong in either region."""
    rng = np.random.default_rng(seed)
    north = rng.random(n) < 0.5
    said = rng.uniform(0.1, 0.9, n)
    truth = np.clip(said + np.where(north, 0.25, -0.25), 0.02, 0.98)
    return pd.DataFrame(
        {
            "loan_id": np.arange(n) + 1000,
            "opened": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
            "age": rng.integers(20, 70, n),
            "region": np.where(north, "north", "south east"),
            "p_paid back": 1 - said,
            "p_default": said,
            "outcome": np.where(rng.random(n) < truth, "default", "paid back"),
        }
    )


@pytest.fixture(scope="session")
def loans() -> pd.DataFrame:
    return make_loans()


@pytest.fixture(scope="session")
def later_loans() -> pd.DataFrame:
    """Return rows that no calibrator was fitted on."""
    return make_loans(seed=1).drop(columns="opened")


@pytest.fixture(scope="session")
def folder(tmp_path_factory, loans):
    """Return a folder with a table and two calibrators fitted on it: ``swc`` and ``global``."""
    place = tmp_path_factory.mktemp("loans")
    loans.to_csv(place / "loans.csv", index=False)
    for name, method in (("swc", "swc"), ("global", "temperature")):
        with pytest.raises(SystemExit) as ended:
            main(
                f"fit {place / 'loans.csv'} --label outcome --proba p_* --quiet "
                f"--method {method} -o {place / name}.hetcal".split()
            )
        assert not ended.value.code
    return place
