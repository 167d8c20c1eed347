"""The example behind ``hetcal demo``: data with known truth, a black box, every calibrator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier

from hetcal._typing import Matrix
from hetcal.calibration.base import GlobalCalibrator
from hetcal.calibration.registry import get_calibrator, list_calibrators
from hetcal.datasets import SyntheticDataset, make_hidden_heterogeneity
from hetcal.kernels import core_name
from hetcal.metrics import accuracy, brier_score, expected_calibration_error, log_loss

_N_TRAIN, _N_CAL, _N_TEST = 1000, 1500, 5000
_TRUTH = "the truth"
_MINUTES_WITHOUT_CORE = ("swc-hh",)
_TREES_WITHOUT_CORE = 40  # of the hybrid's forests, which would take minutes too
# The black box was built without x0, x1 and x2, which decide who is treated wrongly.
_SEEN = slice(3, None)


@dataclass(frozen=True)
class Example:
    """Calibration and test items, and what the black box says about them."""

    n_train: int
    cal: SyntheticDataset
    test: SyntheticDataset
    P_cal: Matrix
    P_test: Matrix

    def worst_group(self) -> tuple[str, float, float]:
        """Return the rule of a hidden group, what the model says there, and what happens."""
        inside = self.test.group == 1
        said = float(self.P_test[inside, 1].mean())
        happened = float((self.test.y[inside] == self.test.classes[1]).mean())
        return self.test.subgroups[1], said, happened


def make_example(seed: int = 0) -> Example:
    """Draw the data and train the black box."""
    train = make_hidden_heterogeneity(
        _N_TRAIN, heterogeneity=0.9, signal=2.5, random_state=3 * seed
    )
    cal = train.sample(_N_CAL, 3 * seed + 1)
    test = train.sample(_N_TEST, 3 * seed + 2)
    model = GradientBoostingClassifier(n_estimators=200, random_state=0)
    model.fit(train.X[:, _SEEN], train.y)
    return Example(
        n_train=_N_TRAIN,
        cal=cal,
        test=test,
        P_cal=model.predict_proba(cal.X[:, _SEEN]),
        P_test=model.predict_proba(test.X[:, _SEEN]),
    )


def method_names() -> list[str]:
    """Return every registered calibrator, the uncalibrated probabilities first.

    On the pure core those of :func:`left_out` are not among them.
    """
    names = [name for name in list_calibrators() if name not in left_out()]
    return sorted(names, key=lambda name: name != "uncalibrated")


def left_out() -> list[str]:
    """Return the methods that a demo cannot wait for without the compiled core."""
    if core_name() == "native":
        return []
    return [name for name in list_calibrators() if name in _MINUTES_WITHOUT_CORE]


def calibrate(example: Example, name: str) -> tuple[Matrix, str]:
    """Return the calibrated test probabilities, and whether the method is global or local."""
    calibrator: Any = get_calibrator(name)
    if name == "hybrid" and core_name() != "native":
        calibrator.set_params(n_estimators=_TREES_WITHOUT_CORE)
    calibrator.fit(example.cal.X, example.cal.y, y_proba=example.P_cal)
    Q = calibrator.predict_proba(example.test.X, y_proba=example.P_test)
    return Q, "global" if isinstance(calibrator, GlobalCalibrator) else "local"


def score(example: Example, predictions: dict[str, tuple[Matrix, str]]) -> pd.DataFrame:
    """Return one row of scores per method, and one for the truth itself."""
    y, truth = example.test.y, example.test.true_proba
    rows = {}
    for name, (Q, scope) in {**predictions, _TRUTH: (truth, "truth")}.items():
        rows[name] = {
            "scope": scope,
            "brier": brier_score(y, Q),
            "log_loss": log_loss(y, Q),
            "ece": expected_calibration_error(y, Q),
            "accuracy": accuracy(y, Q),
            "distance": float(np.sqrt(np.mean((Q - truth) ** 2))),
        }
    return pd.DataFrame.from_dict(rows, orient="index")
