"""Scores on the labels of a test table, which nothing has learned from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from hetcal._typing import Matrix
from hetcal.calibration import get_calibrator
from hetcal.data import CalibrationSet
from hetcal.diagnosis import CrossValidated
from hetcal.diagnosis.advise import Advice
from hetcal.diagnosis.cross_validation import MethodRun
from hetcal.report import model, parts
from hetcal.report.honest import Honest

_HOW = "fitted to all calibration items"


def with_test_scores(
    report: model.Report,
    items: CalibrationSet,
    advice: Advice,
    test: tuple[Any, Matrix],
    codes: NDArray[np.int64],
    seed: int,
) -> model.Report:
    """Return the report with scores of the new items that have a label (code >= 0)."""
    if advice.evidence is None:
        return report
    known = np.flatnonzero(codes >= 0)
    X, output = _safe_indexing(test[0], known), test[1][known]
    given: dict[str, Any] = {items.kind: output}
    new = CalibrationSet.check(
        X, items.classes[codes[known]], classes=items.classes, caller="diagnose", **given
    )
    said = {"uncalibrated": new.proba}
    best_map = advice.evidence.best_map
    if best_map != "uncalibrated":
        said[best_map] = get_calibrator(best_map).fit_set(items).predict_set(new)
    hybrid = advice.evidence.hybrid
    said["hybrid"] = hybrid.predict_proba(X, **given)
    everyone = np.arange(len(known))
    runs = {name: MethodRun(proba=[Q]) for name, Q in said.items()}
    how = dict.fromkeys(runs, _HOW) | {"uncalibrated": "the model's own probabilities"}
    honest = Honest(CrossValidated(new, [(everyone[:0], everyone)], runs), how)
    return replace(
        report,
        data=replace(report.data, n_test_scored=len(known)),
        test=parts.comparison(honest, seed),
        test_reliability=[
            parts.reliability(new, Q, everyone, parts.label_of(name)) for name, Q in said.items()
        ],
    )
