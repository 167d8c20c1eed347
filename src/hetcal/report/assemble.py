"""The parts of the report, put together."""

from __future__ import annotations

import platform
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import _safe_indexing

from hetcal._typing import Matrix
from hetcal._validation.containers import as_frame
from hetcal._version import __version__
from hetcal.data import CalibrationSet
from hetcal.diagnosis.advise import Advice
from hetcal.diagnosis.cross_validation import named_calibrators
from hetcal.diagnosis.learning_curves import curve_of
from hetcal.diagnosis.measurements import Measurements
from hetcal.diagnosis.splits import make_splits
from hetcal.diagnosis.verdicts import COLLECT_MORE, GLOBAL_IS_ENOUGH, RETRAIN, Answer
from hetcal.kernels import core_name
from hetcal.report import model, parts, support
from hetcal.report.codec import number
from hetcal.report.honest import Honest

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas")


def assembled(
    items: CalibrationSet,
    rows: NDArray[np.int64],
    advice: Advice,
    honest: Honest,
    matrix: Matrix | None,
    test: tuple[Any, Matrix] | None,
    by: Any,
    curves: list[model.MethodCurve],
    name: str,
    seed: int,
) -> model.Report:
    """Return the whole report."""
    evidence = _evidence_of(advice)
    verdict = _verdict(advice, honest)
    shown = list(dict.fromkeys(["uncalibrated", evidence.best_map, "hybrid", verdict.recommended]))
    shown = [method for method in shown if method in honest.out.methods]
    others = [m for m in shown[2:] if m == verdict.recommended] or shown[2:3]
    pictured = [*shown[:2], *others]
    hybrid = evidence.hybrid
    own = hybrid.out_of_sample_support()
    of_test = None
    if test is None:
        Q = honest.out.proba("hybrid")
        known = np.flatnonzero(~np.isnan(Q[:, 0]))
        weak = support.weakest(
            "calibration set",
            _safe_indexing(items.X, known),
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
        weak = support.weakest(
            "test table", X_test, of_test, P_test, Q_test, items.classes, everyone
        )
    return replace(
        _frame_of(items, verdict, name),
        data=replace(
            _data(items, name),
            n_test=None if test is None else len(test[1]),
            order="forward in time" if "earlier" in honest.how["hybrid"] else "shuffled",
            n_scored=len(honest.rows),
        ),
        comparison=parts.comparison(honest, seed),
        reliability=[
            parts.reliability(items, honest.proba(m), honest.rows, parts.label_of(m))
            for m in pictured
        ],
        hidden=parts.hidden(evidence, items),
        subgroups=parts.subgroups(evidence.every_subgroup),
        by=parts.groups_by(items, by, seed),
        support=support.support(own, of_test),
        weakest=weak,
        learning_curve=curves,
        cost=None if matrix is None else parts.cost(items, matrix, honest, shown),
        warnings=[warning.text for warning in advice.warnings] + _failures(honest),
    )


def _evidence_of(advice: Advice) -> Measurements:
    if advice.evidence is None:
        raise ValueError("There are too few items to measure anything; see too_few.")
    return advice.evidence


def _failures(honest: Honest) -> list[str]:
    """Return which methods are missing from the comparison, and why."""
    return [
        f"{parts.label_of(method)} is missing from the comparison: {run.error}"
        for method, run in honest.out.runs.items()
        if run.error is not None
    ]


def _verdict(advice: Advice, honest: Honest | None) -> model.Verdict:
    said = advice.to_dict()
    recommended = "uncalibrated"
    if advice.recommended == "hybrid":
        recommended = "hybrid"
    elif advice.verdict == RETRAIN and honest is not None:
        alone = [name for name in honest.out.methods if name.endswith("on X")]
        recommended = min(alone, key=lambda n: float(np.nanmean(honest.out.losses(n))))
    elif advice.evidence is not None and (
        advice.verdict == GLOBAL_IS_ENOUGH
        or (advice.verdict == COLLECT_MORE and advice.global_map is Answer.YES)
    ):
        recommended = advice.evidence.best_map
    figures = [
        model.Figure(
            str(row["evidence"]),
            number(row["value"]),
            number(row["low"]),
            number(row["high"]),
            number(row["p_value"]),
            str(row["meaning"]),
        )
        for row in said["evidence"]
    ]
    return model.Verdict(
        verdict=advice.verdict,
        meaning=said["meaning"],
        reasons=list(said["reasons"]),
        call=advice.call,
        recommended=recommended,
        best_map=said["best_map"],
        n_needed=advice.n_needed,
        evidence=figures,
    )


def too_few(advice: Advice, items: CalibrationSet, name: str) -> model.Report:
    """Return a report that says that there are too few items."""
    report = _frame_of(items, _verdict(advice, None), name)
    everyone = np.arange(items.n_items)
    before = parts.reliability(items, items.proba, everyone, parts.label_of("uncalibrated"))
    return replace(report, reliability=[before], warnings=[w.text for w in advice.warnings])


def _frame_of(items: CalibrationSet, verdict: model.Verdict, name: str) -> model.Report:
    """Return a report that holds nothing but the verdict."""
    versions = {"hetcal": __version__, "core": core_name(), "Python": platform.python_version()}
    return model.Report(
        title=f"Calibration report{f': {name}' if name else ''}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        data=_data(items, name),
        verdict=verdict,
        comparison=[],
        reliability=[],
        hidden=None,
        subgroups=[],
        by=[],
        support=None,
        weakest=[],
        learning_curve=[],
        cost=None,
        warnings=[],
        notes=[],
        settings={},
        versions=versions | {library: metadata.version(library) for library in _LIBRARIES},
        seconds={},
    )


def _data(items: CalibrationSet, name: str) -> model.Data:
    frame = as_frame(items.X)
    d = int(np.shape(items.X)[1])
    features = [f"x{j}" for j in range(d)] if frame is None else [str(c) for c in frame.columns]
    labels = [str(label) for label in items.classes.tolist()]
    binary = len(labels) == 2
    return model.Data(
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
) -> list[model.MethodCurve]:
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
            model.CurvePoint(int(r["size"]), float(r["value"]), number(r["standard_error"]))
            for r in rows.to_dict("records")
        ]
        more = str(curve.more_data_helps(method)) if method != "uncalibrated" else ""
        found.append(model.MethodCurve(method, parts.label_of(method), points, more))
    return found
