"""Files of every format version so far stay loadable and keep their predictions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hetcal
from hetcal.calibration import get_calibrator, list_calibrators
from hetcal.persistence import describe
from hetcal.persistence.container import VERSION

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
FILES = sorted(GOLDEN.glob("v*/*.hetcal"))


def features(path: Path, said: dict) -> np.ndarray | pd.DataFrame:
    X = np.array(said["X"])
    if not path.stem.startswith("table"):
        return X
    table = pd.DataFrame(X, columns=["age", "income", "colour"])
    table["colour"] = np.where(X[:, 2] > 0, "red", "blue")
    return table


@pytest.mark.filterwarnings("ignore::hetcal._exceptions.HetcalWarning")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_files_stay_loadable(path):
    said = json.loads((path.parent / "expected.json").read_text())
    calibrator = hetcal.load(path)
    Q = calibrator.predict_proba(features(path, said), y_proba=np.array(said["y_proba"]))
    expected = [[float.fromhex(value) for value in row] for row in said["expected"][path.stem]]
    # Exponentials and matrix products may differ by a rounding error on other machines.
    np.testing.assert_allclose(Q, expected, rtol=1e-9, atol=1e-12)
    assert describe(path)["calibrator"]["classes"] == calibrator.classes_.tolist()


def test_there_are_golden_files_of_every_version():
    versions = {int(path.parent.name[1:]) for path in FILES}
    assert versions == set(range(1, VERSION + 1))
    assert all(path.stat().st_size < 100_000 for path in FILES)


def test_there_are_golden_files_of_every_global_map():
    names = list_calibrators()
    maps = {name for name in names if not get_calibrator(name).uses_features}
    assert len(maps) > 10
    assert maps <= {path.stem for path in FILES}
