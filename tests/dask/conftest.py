"""A real cluster of processes, a table in parts and a model of it, shared by the tests of dask."""

from __future__ import annotations

import contextlib
import logging
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from tests.patience import PATIENCE

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


class Cluster:
    """Two worker processes that are restarted when they die, replaced as a whole where that fails.

    Of two workers that are killed at once, `distributed` sometimes closes one for good while it
    restarts it.
    """

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self._client = None

    def start(self):
        """Return the client of a new cluster."""
        import distributed

        self._client = None
        self._open.close()
        cluster = distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
        self._open.enter_context(cluster)
        self._client = self._open.enter_context(distributed.Client(cluster, set_as_default=False))
        return self._client

    def client(self):
        """Return a client with two workers that run."""
        if self._client is None:
            return self.start()
        try:
            self._client.wait_for_workers(2, timeout=20)
        except TimeoutError:
            return self.start()
        return self._client

    def close(self) -> None:
        self._open.close()


@pytest.fixture(scope="session")
def cluster():
    found = Cluster()
    yield found
    found.close()


@pytest.fixture
def client(cluster, monkeypatch):
    """Return the client of two workers that are restarted when they die."""
    from hetcal.dask import apply
    from hetcal.dask.cluster import connected

    # Commands that are told its address: they may wait longer than a person would.
    monkeypatch.setattr(apply, "connected", partial(connected, patience=PATIENCE))
    return cluster.client()
