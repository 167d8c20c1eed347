"""Scores on the labels of a test table, which nothing has learned from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hetcal._typing import Matrix
from hetcal._validation.containers import take_rows
from hetcal.calibration import get_calibrator
from hetcal.data import CalibrationSet
from hetcal.data.repeated_rows import n_rows_seen
from hetcal.diagnosis import summaries
from hetcal.diagnosis.advise import Advice
from hetcal.diagnosis.cross_validation import Predictions
from hetcal.diagnosis.findings import Findings
from hetcal.diagnosis.inputs import Request
from hetcal.diagnosis.predictions import Compared

_HOW = "fitted to all calibration items"


def _seen_before(items: CalibrationSet, X: Any, output: Matrix) -> list[str]:
    """Warn of test rows that are calibration rows."""
    n_seen = n_rows_seen(items, X, output)
    if not n_seen:
        return []
    return [
        f"{n_seen:,} of the {len(output):,} labelled rows of the test table are calibration rows "
        "too: the same features and probabilities. What was fitted has seen their labels, and its "
        "scores on the test table are too good. Take rows that are not in the calibration table."
    ]


def with_test_scores(found: Findings, request: Request, advice: Advice) -> Findings:
    """Return the findings with scores of the new items that have a label, where some have."""
    new, items = request.new, request.items
    if new is None or new.codes is None:
        return found
    known = np.flatnonzero(new.codes >= 0)
    X = take_rows(new.X, known)
    output: dict[str, Any] = {new.kind: new.output[known]}
    labels = items.classes[new.codes[known]]
    tested = CalibrationSet.check(X, labels, classes=items.classes, caller="diagnose", **output)
    predicted = {"uncalibrated": tested.proba}
    best_map = advice.known_evidence.best_map
    if best_map != "uncalibrated":
        predicted[best_map] = get_calibrator(best_map).fit_set(items).predict_set(tested)
    predicted["hybrid"] = advice.known_evidence.hybrid.predict_proba(X, **output)
    how = dict.fromkeys(predicted, _HOW) | {"uncalibrated": "the model's own probabilities"}
    compared = Compared(Predictions.of(tested, predicted), how)
    return replace(
        found,
        warnings=[*found.warnings, *_seen_before(items, X, new.output[known])],
        data=replace(found.data, n_test_scored=len(known)),
        test=summaries.comparison(compared),
        test_reliability=[
            summaries.reliability(tested, Q, np.arange(tested.n_items), summaries.label_of(name))
            for name, Q in predicted.items()
        ],
    )
