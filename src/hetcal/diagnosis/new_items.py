"""Scores on the labels of a test table, which nothing has learned from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix
from hetcal._validation.containers import take_rows
from hetcal.calibration import get_calibrator
from hetcal.data import CalibrationSet
from hetcal.diagnosis import summaries
from hetcal.diagnosis.advise import Advice
from hetcal.diagnosis.cross_validation import Predictions
from hetcal.diagnosis.findings import Findings
from hetcal.diagnosis.predictions import Compared

_HOW = "fitted to all calibration items"


def with_test_scores(
    findings: Findings,
    items: CalibrationSet,
    advice: Advice,
    test: tuple[Any, Matrix],
    codes: NDArray[np.int64],
    seed: int,
) -> Findings:
    """Return the findings with scores of the new items that have a label (code >= 0)."""
    if advice.evidence is None:
        return findings
    known = np.flatnonzero(codes >= 0)
    X, output = take_rows(test[0], known), test[1][known]
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
    how = dict.fromkeys(said, _HOW) | {"uncalibrated": "the model's own probabilities"}
    compared = Compared(Predictions.of(new, said), how)
    return replace(
        findings,
        data=replace(findings.data, n_test_scored=len(known)),
        test=summaries.comparison(compared, seed),
        test_reliability=[
            summaries.reliability(new, Q, np.arange(new.n_items), summaries.label_of(name))
            for name, Q in said.items()
        ],
    )
