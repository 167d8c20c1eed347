"""From measurements and advice to findings: what a report shows, with nothing left to compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hetcal._typing import Matrix
from hetcal._validation.containers import as_frame, take_rows
from hetcal.data import CalibrationSet
from hetcal.diagnosis import findings, summaries, support_summary
from hetcal.diagnosis.advise import Advice
from hetcal.diagnosis.cross_validation import named_calibrators
from hetcal.diagnosis.findings import Findings
from hetcal.diagnosis.inputs import Request
from hetcal.diagnosis.learning_curves import curve_of
from hetcal.diagnosis.predictions import Compared
from hetcal.diagnosis.splits import make_splits
from hetcal.diagnosis.verdicts import AS_IT_IS


def assembled(
    request: Request, advice: Advice, compared: Compared, curves: list[findings.MethodCurve]
) -> Findings:
    """Return everything that was found."""
    items, costs, new = request.items, request.costs, request.new
    evidence = advice.known_evidence
    comparison = summaries.comparison(compared)
    verdict = _with_unproved_gain(_verdict(advice), advice, comparison)
    shown = list(dict.fromkeys(["uncalibrated", evidence.best_map, "hybrid", verdict.recommended]))
    shown = [method for method in shown if method in compared.out.methods]
    others = [m for m in shown[2:] if m == verdict.recommended] or shown[2:3]
    own = evidence.hybrid.out_of_sample_support()
    of_test = None
    if new is None:
        weak = _weakest_of_calibration(request, own, compared.out.proba("hybrid"))
    else:
        Q, of_test = evidence.hybrid.predict_proba(
            new.X, return_support=True, **{new.kind: new.output}
        )
        everyone = np.arange(len(Q))
        weak = support_summary.weakest(
            "test table", new.X, of_test, new.proba, Q, items.classes, everyone
        )
    return Findings(
        data=replace(
            _data(items, request.name),
            n_test=None if new is None else len(new.output),
            order="forward in time" if request.moment is not None else "shuffled",
            n_scored=len(compared.rows),
        ),
        verdict=verdict,
        comparison=comparison,
        reliability=[
            summaries.reliability(items, compared.proba(m), compared.rows, summaries.label_of(m))
            for m in [*shown[:2], *others]
        ],
        hidden=summaries.hidden(evidence, items),
        subgroups=summaries.subgroups(evidence.every_subgroup),
        by=summaries.groups_by(items, request.by),
        support=support_summary.support(own, of_test),
        weakest=weak,
        learning_curve=curves,
        cost=None if costs is None else summaries.cost(items, costs, compared, shown),
        warnings=[warning.text for warning in advice.warnings] + _failures(compared),
    )


def _weakest_of_calibration(request: Request, own: Matrix, Q: Matrix) -> list[findings.WeakItem]:
    items = request.items
    known = np.flatnonzero(~np.isnan(Q[:, 0]))
    return support_summary.weakest(
        "calibration set",
        take_rows(items.X, known),
        own[known],
        items.proba[known],
        Q[known],
        items.classes,
        request.rows[known],
    )


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
        findings.read(findings.Figure, row, name=row["evidence"]) for row in said["evidence"]
    ]
    gain, evidence = said["expected_gain"], advice.evidence
    related = None if evidence is None else evidence.dependence
    return findings.Verdict(
        verdict=advice.verdict,
        headline=said["headline"],
        meaning=said["meaning"],
        certainty=findings.Certainty(**said["certainty"]),
        reasons=said["reasons"],
        call=advice.call,
        retraining_call=advice.retraining_call,
        recommended=advice.recommended,
        best_map=said["best_map"],
        expected_gain=None
        if gain is None
        else findings.Figure("expected_gain", **gain, p_value=None, meaning="expected gain"),
        void=advice.is_void,
        belong_together=[] if related is None else list(related.columns),
        evidence=figures,
    )


def _with_unproved_gain(
    verdict: findings.Verdict, advice: Advice, comparison: list[findings.MethodRow]
) -> findings.Verdict:
    """Return the verdict with what a calibrator gains on groups too few to prove it.

    Else the table of methods would seem to contradict the advice to leave things as they are.
    """
    if not (advice.has_too_few_groups and advice.recommended == AS_IT_IS) or verdict.void:
        return verdict
    before = next(row for row in comparison if row.scope == "uncalibrated")
    best = next(row for row in comparison if row.scope != "retrained")
    score, instead = best.scores["brier"].value, before.scores["brier"].value
    if best is before:
        return verdict
    return replace(
        verdict,
        meaning=f"{verdict.meaning} On these groups {best.label} would gain {instead - score:.4f}: "
        f"a Brier score of {score:.4f} instead of {instead:.4f}.",
    )


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
    methods = ["uncalibrated", advice.known_evidence.best_map, "hybrid"]
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
        points = [findings.read(findings.CurvePoint, r) for r in rows.to_dict("records")]
        more = str(curve.more_data_helps(method)) if method != "uncalibrated" else ""
        found.append(findings.MethodCurve(method, summaries.label_of(method), points, more))
    return found
