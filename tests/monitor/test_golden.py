"""A monitor saved before its parts were classes of their own goes on counting the same."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

import hetcal

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "v1"


def from_hex(rows):
    return np.array([[float.fromhex(value) for value in row] for row in rows])


def test_a_monitor_of_old_goes_on(tmp_path):
    said = json.loads((GOLDEN / "monitor.json").read_text())
    path = tmp_path / "monitor.hetcal"
    path.write_bytes(gzip.decompress((GOLDEN / "monitor.hetcal.gz").read_bytes()))
    monitor = hetcal.load(path)
    new = {"X": np.array(said["X"]), "y_proba": from_hex(said["y_proba"])}
    items = monitor.update(**new, y=said["y"], by=["west"] * len(said["y"]))
    # Exponentials and matrix products may differ by a rounding error on other machines.
    np.testing.assert_allclose(items.to_numpy(float), from_hex(said["items"]), rtol=1e-9)
    groups = monitor.groups()
    evidence = groups[["log10_evidence"]].to_numpy()
    np.testing.assert_allclose(evidence, from_hex(said["evidence"]), rtol=1e-9, atol=1e-12)
    assert groups[list(said["groups"])].to_dict("list") == said["groups"]
    assert monitor.alarms_ == said["alarms"]
    history = monitor.frame()
    assert history["accuracy"][:-1].isna().all()  # was not counted then
    assert history["expected_accuracy"].isna().all()  # nor since when the last ones are
    monitor.update(**new, y=said["y"])
    assert 0 < monitor.frame()["expected_accuracy"].iloc[-1] <= 1
