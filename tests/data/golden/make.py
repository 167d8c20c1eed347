"""Write those golden files of the current format version that are not there yet.

    python tests/data/golden/make.py

Files that are there stay as they are: they show that what older code has written can be read.

Each file is a tiny calibrator; ``expected.json`` holds the new items and what every one of them
said about these when it was saved, floating-point numbers in hexadecimal. Later versions of hetcal
must load all files and say the same.
"""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import hetcal
from hetcal.calibration import get_calibrator, list_calibrators
from hetcal.datasets import make_hidden_heterogeneity
from hetcal.persistence.container import VERSION
from hetcal.similarity import (
    CombinedSimilarity,
    CosineSimilarity,
    EuclideanSimilarity,
    ForestProximity,
    IsolationProximity,
    RBFSimilarity,
)

FOLDER = Path(__file__).parent / f"v{VERSION}"
MAPS = [name for name in list_calibrators() if not get_calibrator(name).uses_features]


def calibrators() -> dict:
    """Return unfitted calibrators, few trees each."""
    similar, hidden = hetcal.SimilarityCalibrator, hetcal.HiddenHeterogeneity
    small = {"radius": 0.5, "n_estimators": 3, "min_neighbors": 5}
    made = {name: get_calibrator(name) for name in MAPS}
    return made | {
        "swc": similar(ForestProximity(3)),
        "swc-extra-out-of-bag": similar(ForestProximity(9, trees="extra", voters="out-of-bag")),
        "swc-nearest": similar(ForestProximity(3), n_neighbors=5, power=2.0),
        "swc-hh": similar(ForestProximity(3), heterogeneity=hidden(n_null=2, **small)),
        "swc-hh-paper": similar(
            ForestProximity(3), heterogeneity=hidden(estimate="paper", **small)
        ),
        "isolation": similar(IsolationProximity(3)),
        "euclidean": similar(EuclideanSimilarity(), n_neighbors=5),
        "cosine": similar(CosineSimilarity()),
        "rbf": similar(RBFSimilarity()),
        "combined": similar(CombinedSimilarity(ForestProximity(3), RBFSimilarity())),
        "hybrid": hetcal.HybridCalibrator(n_estimators=2, caution=0.0),
        "hybrid-all": hetcal.HybridCalibrator(n_estimators=2),
        "preserving": hetcal.LabelPreserving(get_calibrator("isotonic")),
    }


def as_hex(matrix: np.ndarray) -> list:
    """Return floating-point numbers so that every bit is kept."""
    return [[float(value).hex() for value in row] for row in matrix]


def write_monitor() -> dict:
    """Write a monitor that has counted, and return what it says of the items that come next."""
    data = make_hidden_heterogeneity(120, heterogeneity=1.0, random_state=0)
    by = np.where(data.X[:, 0] > 0, "north", "south")
    swc = hetcal.SimilarityCalibrator(ForestProximity(9)).fit(data.X, data.y, y_proba=data.y_proba)
    monitor = hetcal.SupportMonitor(swc, window=4).fit(data.X, y_proba=data.y_proba, by=by)
    before, after = data.sample(40, random_state=2), data.sample(40, random_state=3)
    for shift in (0.0, 3.0):
        monitor.update(before.X + shift, y_proba=before.y_proba, y=before.y, by=["north"] * 40)
    path = FOLDER / "monitor.hetcal"
    hetcal.save(monitor, path, date=None)
    # Counts in fixed bins, nearly all of them 0.
    path.with_suffix(".hetcal.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()
    X, P = after.X.round(3), after.y_proba
    items = monitor.update(X, y_proba=P, y=after.y, by=["west"] * 40)
    return {
        "X": X.tolist(),
        "y_proba": as_hex(P),
        "y": after.y.tolist(),
        "items": as_hex(items.to_numpy(dtype=float)),
        "evidence": as_hex(monitor.groups()[["log10_evidence"]].to_numpy()),
        "groups": monitor.groups()[["kind", "name", "seen", "flagged", "labels"]].to_dict("list"),
        "alarms": monitor.alarms_,
    }


def main() -> None:
    """Write all files."""
    warnings.simplefilter("ignore")  # about calibration sets this small
    FOLDER.mkdir(exist_ok=True)
    data = make_hidden_heterogeneity(30, heterogeneity=1.0, random_state=0)
    new = data.sample(5, random_state=1)
    X, X_new = np.round(data.X[:, :3], 3), np.round(new.X[:, :3], 3)
    P, P_new = np.round(data.y_proba, 3), np.round(new.y_proba, 3)
    known = FOLDER / "expected.json"
    expected = json.loads(known.read_text())["expected"] if known.exists() else {}
    for name, calibrator in calibrators().items():
        if name in expected:
            continue
        # The atoms of a classifier that says five different things, which it says again.
        calibrator.fit(X, data.y, y_proba=np.tile(P_new, (6, 1)) if name == "atoms" else P)
        if name == "hybrid-all":  # every expert has a say, and so its place in the file
            calibrator.share_ = 1.0
            calibrator.weights_[:] = 1 / len(calibrator.weights_)
        hetcal.save(calibrator, FOLDER / f"{name}.hetcal", date=None)
        expected[name] = as_hex(calibrator.predict_proba(X_new, y_proba=P_new))
    table = pd.DataFrame(X, columns=["age", "income", "colour"])
    table["colour"] = np.where(X[:, 2] > 0, "red", "blue")
    swc = hetcal.SimilarityCalibrator(ForestProximity(3))
    swc.fit(table, np.array(["no", "yes"])[data.y], y_proba=P)
    table_new = pd.DataFrame(X_new, columns=["age", "income", "colour"])
    table_new["colour"] = np.where(X_new[:, 2] > 0, "red", "blue")
    for name, forget in (("table", False), ("table-forgotten", True)):
        if name in expected:
            continue
        hetcal.save(swc, FOLDER / f"{name}.hetcal", forget_features=forget, date=None)
        expected[name] = as_hex(swc.predict_proba(table_new, y_proba=P_new))
    if not (FOLDER / "monitor.json").exists():
        (FOLDER / "monitor.json").write_text(json.dumps(write_monitor(), indent=1) + "\n")
    said = {"X": X_new.tolist(), "y_proba": P_new.tolist(), "expected": expected}
    known.write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main()
