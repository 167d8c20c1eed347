"""A real cluster of processes, a table in parts and a model of it, shared by the tests of dask."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from hetcal.cli import main


def make_loans(n: int, seed: int) -> pd.DataFrame:
    """Return a table whose model is right on average and wrong in either region."""
    rng = np.random.default_rng(seed)
    north = rng.random(n) < 0.5
    said = rng.uniform(0.1, 0.9, n)
    truth = np.clip(said + np.where(north, 0.25, -0.25), 0.02, 0.98)
    return pd.DataFrame(
        {
            "loan_id": np.arange(n) + 1000,
            "age": rng.integers(20, 70, n).astype(float),
            "region": np.where(north, "north", "south"),
            "p_paid": 1 - said,
            "p_default": said,
            "outcome": np.where(rng.random(n) < truth, "default", "paid"),
        }
    )


def run(*arguments: object) -> int:
    """Run a command and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code or 0


@pytest.fixture(scope="session")
def call():
    return run


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """Return a model, a table in twelve parts, and what one process makes of the table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("dask")
    make_loans(150, 0).to_csv(folder / "loans.csv", index=False)
    model = folder / "loans.hetcal"
    fitting = ("--label", "outcome", "--proba", "p_*", "--drop", "loan_id", "--method", "swc", "-q")
    assert run("fit", folder / "loans.csv", *fitting, "-o", model) == 0
    new = make_loans(6000, 1).drop(columns="outcome")
    (folder / "table").mkdir()
    for number in range(12):  # part.2 comes before part.10
        rows = pa.Table.from_pandas(new[number * 500 : (number + 1) * 500], preserve_index=False)
        pq.write_table(rows, folder / "table" / f"part.{number}.parquet", row_group_size=200)
    pq.write_table(pa.Table.from_pandas(new, preserve_index=False), folder / "whole.parquet")
    assert run("apply", model, folder / "whole.parquet", "-o", folder / "one.parquet", "-q") == 0
    expected = pq.read_table(folder / "one.parquet")
    return SimpleNamespace(folder=folder, model=model, table=folder / "table", expected=expected)


@pytest.fixture(scope="session")
def client():
    """Return the client of two worker processes that are restarted when they die."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found
