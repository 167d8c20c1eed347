"""From measurements and advice to findings: what a report shows, with nothing left to compute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from hetcal._typing import Matrix
from hetcal._validation.containers import as_frame, take_rows
from hetcal.data import CalibrationSet
from hetcal.diagnosis import findings, summaries, support_summary
from hetcal.diagnosis.advise import Advice
from hetcal.diagnosis.cross_validation import named_calibrators
from hetcal.diagnosis.findings import Findings, number
from hetcal.diagnosis.learning_curves import curve_of
from hetcal.diagnosis.measurements import Measurements
from hetcal.diagnosis.predictions import Compared
from hetcal.diagnosis.snippet import RETRAINED
from hetcal.diagnosis.splits import make_splits


def assembled(
    items: CalibrationSet,
    rows: NDArray[np.int64],
    advice: Advice,
    compared: Compared,
    matrix: Matrix | None,
    test: tuple[Any, Matrix] | None,
    by: Any,
    curves: list[findings.MethodCurve],
    name: str,
    seed: int,
) -> Findings:
    """Return everything that was found."""
    evidence = _evidence_of(advice)
    verdict = _verdict(advice)
    shown = list(dict.fromkeys(["uncalibrated", evidence.best_map, "hybrid", verdict.recommended]))
    shown = [method for method in shown if method in compared.out.methods]
    others = [m for m in shown[2:] if m == verdict.recommended] or shown[2:3]
    pictured = [*shown[:2], *others]
    hybrid = evidence.hybrid
    own = hybrid.out_of_sample_support()
    of_test = None
    if test is None:
        Q = compared.out.proba("hybrid")
        known = np.flatnonzero(~np.isnan(Q[:, 0]))
        weak = support_summary.weakest(
            "calibration set",
            take_rows(items.X, known),
            own[known],
            items.proba[known],
            Q[known],
            items.classes,
            rows[known],
        )
    else:
        X_test, output = test
        Q_test, of_test = hybrid.predict_proba(X_test, return_support=True, **{items.kind: output})
        P_test = output if items.kind == "y_proba" else softmax(output, axis=1)
        everyone = np.arange(len(output))
        weak = support_summary.weakest(
            "test table", X_test, of_test, P_test, Q_test, items.classes, everyone
        )
    return Findings(
        data=replace(
            _data(items, name),
            n_test=None if test is None else len(test[1]),
            order="forward in time" if "earlier" in compared.how["hybrid"] else "shuffled",
            n_scored=len(compared.rows),
        ),
        verdict=verdict,
        comparison=summaries.comparison(compared, seed),
        reliability=[
            summaries.reliability(items, compared.proba(m), compared.rows, summaries.label_of(m))
            for m in pictured
        ],
        hidden=summaries.hidden(evidence, items),
        subgroups=summaries.subgroups(evidence.every_subgroup),
        by=summaries.groups_by(items, by),
        support=support_summary.support(own, of_test),
        weakest=weak,
        learning_curve=curves,
        cost=None if matrix is None else summaries.cost(items, matrix, compared, shown),
        warnings=[warning.text for warning in advice.warnings] + _failures(compared),
    )


def _evidence_of(advice: Advice) -> Measurements:
    if advice.evidence is None:
        raise ValueError("There are too few items to measure anything; see too_few.")
    return advice.evidence


def _failures(compared: Compared) -> list[str]:
    """Return which methods are missing from the comparison, and why."""
    return [
        f"{summaries.label_of(method)} is missing from the comparison: {run.error}"
        for method, run in compared.out.runs.items()
        if run.error is not None
    ]


def _verdict(advice: Advice) -> findings.Verdict:
    said = advice.to_dict()
    figures = [
        findings.Figure(
            str(row["evidence"]),
            number(row["value"]),
            number(row["low"]),
            number(row["high"]),
            number(row["p_value"]),
            str(row["meaning"]),
        )
        for row in said["evidence"]
    ]
    return findings.Verdict(
        verdict=advice.verdict,
        meaning=said["meaning"],
        reasons=list(said["reasons"]),
        call=advice.call,
        recommended=_method_of(advice.recommended),
        best_map=said["best_map"],
        n_needed=advice.n_needed,
        evidence=figures,
    )


def _method_of(recommended: str) -> str:
    """Return the row of the comparison that the advice recommends."""
    return f"{recommended} on X" if recommended in RETRAINED else recommended


def too_few(advice: Advice, items: CalibrationSet, name: str) -> Findings:
    """Return findings that say that there are too few items."""
    everyone = np.arange(items.n_items)
    before = summaries.reliability(items, items.proba, everyone, summaries.label_of("uncalibrated"))
    return Findings(
        data=_data(items, name),
        verdict=_verdict(advice),
        reliability=[before],
        warnings=[warning.text for warning in advice.warnings],
    )


def _data(items: CalibrationSet, name: str) -> findings.Data:
    frame = as_frame(items.X)
    d = int(np.shape(items.X)[1])
    features = [f"x{j}" for j in range(d)] if frame is None else [str(c) for c in frame.columns]
    labels = [str(label) for label in items.classes.tolist()]
    binary = len(labels) == 2
    return findings.Data(
        name=name,
        n_items=items.n_items,
        n_features=d,
        features=features,
        classes=labels,
        counts=np.bincount(items.codes, minlength=len(labels)).tolist(),
        event=f"probability of {labels[1]}" if binary else "probability of the predicted class",
        positive=labels[1] if binary else None,
        n_groups=None if items.groups is None else int(np.unique(items.groups).size),
        weighted=items.weight is not None,
        n_scored=items.n_items,
    )


def learning_curves(
    items: CalibrationSet, advice: Advice, seed: int, n_jobs: int | None
) -> list[findings.MethodCurve]:
    """Return how the Brier score falls with the number of calibration items."""
    methods = ["uncalibrated", _evidence_of(advice).best_map, "hybrid"]
    curve = curve_of(
        items,
        named_calibrators(methods, items.has_features, seed, "diagnose"),
        make_splits(items, 3, random_state=seed, caller="diagnose"),
        random_state=seed,
        n_jobs=n_jobs,
    )
    table = curve.frame()
    found = []
    for method in methods:
        rows = table[(table["method"] == method) & (table["metric"] == "brier")]
        rows = rows[rows["value"].notna()]
        points = [
            findings.CurvePoint(int(r["size"]), float(r["value"]), number(r["standard_error"]))
            for r in rows.to_dict("records")
        ]
        more = str(curve.more_data_helps(method)) if method != "uncalibrated" else ""
        found.append(findings.MethodCurve(method, summaries.label_of(method), points, more))
    return found
