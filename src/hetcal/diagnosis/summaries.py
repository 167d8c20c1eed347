"""Each part of the report from the arrays behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._typing import Matrix, Vector
from hetcal.data import CalibrationSet
from hetcal.diagnosis import findings
from hetcal.diagnosis.findings import number
from hetcal.diagnosis.measurements import Measurements
from hetcal.diagnosis.predictions import Compared
from hetcal.diagnosis.scoring import METRICS, score
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.heterogeneity.subgroups import report_groups
from hetcal.metrics.ece import bin_of, ece_statistic
from hetcal.metrics.marginals import calibration_marginals
from hetcal.metrics.reliability import reliability_bins
from hetcal.metrics.standard_errors import interval_of_mean
from hetcal.metrics.statistics import value_of

_N_BINS = 12
_N_COUNTS = 20
_CURVE_POINTS, _CURVE_REACH = 49, 0.02
_CONFIDENCES = (0.0, 0.5, 0.7, 0.9, 0.99, 1.0)
_MOST_CLASSES_SHOWN = 12
_LEAST_IN_CELL = 20
_THRESHOLDS = np.arange(1, 100) / 100

LABELS = {
    "uncalibrated": "uncalibrated",
    "global": "average of global maps",
    "temperature": "temperature scaling",
    "bcts": "bias-corrected temperature",
    "beta": "beta calibration",
    "isotonic": "isotonic regression",
    "swc": "similar items (SWC)",
    "hybrid": "hybrid",
    "forest on X": "forest on X",
    "boosting on X": "boosting on X",
    "forest on [X, P]": "forest on [X, P]",
    "boosting on [X, P]": "boosting on [X, P]",
}


def label_of(method: str) -> str:
    """Return what a method is called in the report."""
    return LABELS.get(method, method)


def scope_of(method: str) -> str:
    """Return what kind of method it is."""
    if method == "uncalibrated":
        return "uncalibrated"
    if " on " in method:
        return "retrained"
    return "local" if method in ("swc", "hybrid") else "global"


def comparison(compared: Compared) -> list[findings.MethodRow]:
    """Return all methods on the same items, the lowest Brier score first."""
    # Calibration errors are biased, which the standard error of a bootstrap would not tell.
    table = score(compared.out, n_bootstrap=0)
    rows = []
    for name in compared.out.methods:
        of_method = table[table["method"] == name].set_index("metric").to_dict("index")
        scores = {metric: findings.read(findings.Score, of_method[metric]) for metric in METRICS}
        rows.append(
            findings.MethodRow(name, label_of(name), scope_of(name), compared.how[name], scores)
        )
    return sorted(rows, key=lambda row: row.scores["brier"].value)


def reliability(items: CalibrationSet, Q: Matrix, rows: NDArray, name: str) -> findings.Reliability:
    """Return the diagram of the second of two classes, or of whichever class is predicted."""
    scored = items.take(rows).with_output(Q, "y_proba")
    kind = "binary" if Q.shape[1] == 2 else "top-label"
    [(said, happened)] = calibration_marginals(scored, kind, "diagnose")
    place = bin_of(said, scored.weights, "equal-mass", _N_BINS)
    table = reliability_bins(said, happened, place, scored)
    bins = [findings.read(findings.Bin, r) for r in _records(table)]
    counts = np.histogram(said, np.linspace(0, 1, _N_COUNTS + 1))[0]
    ece, debiased = (value_of(ece_statistic(scored, debias=d), scored) for d in (False, True))
    return findings.Reliability(name, bins, counts.tolist(), ece, debiased)


def hidden(evidence: Measurements, items: CalibrationSet) -> findings.Hidden:
    """Return hidden heterogeneity along p, or by predicted class and confidence."""
    found, P = evidence.hidden, items.proba[evidence.hidden_rows]
    binary = P.shape[1] == 2
    cells = _along_p(found, P) if binary else _by_class(found, P, items.classes)
    return findings.Hidden(
        mean=float(found.hh_mean_),
        global_part=float(found.hh_global_mean_),
        local_part=float(found.hh_local_mean_),
        standard_error=float(found.standard_error_),
        p_value=float(found.p_value_),
        radius=float(found.radius_),
        covered=float(found.covered_),
        n_items=int(P.shape[0]),
        kind="along p" if binary else "by class",
        cells=cells,
    )


def _along_p(found: HiddenHeterogeneity, P: Matrix) -> list[findings.HiddenCell]:
    at = near_grid(P[:, 1], _CURVE_POINTS)
    if at.size == 0:
        return []
    table = found.frame(np.column_stack([1 - at, at]))
    return [
        _cell(r, name=f"p = {x:.2f}", at=float(x), low=None, high=None)
        for x, r in zip(at, _records(table), strict=True)
    ]


def near_grid(p: Vector, n_points: int) -> Vector:
    """Return the probabilities closest to an even grid over [0, 1], where there are any."""
    ordered, grid = np.unique(p), np.linspace(0, 1, n_points)
    right = np.clip(np.searchsorted(ordered, grid), 0, len(ordered) - 1)
    left = np.maximum(right - 1, 0)
    closer = np.abs(ordered[left] - grid) <= np.abs(ordered[right] - grid)
    near = np.where(closer, ordered[left], ordered[right])
    return np.unique(near[np.abs(near - grid) <= max(_CURVE_REACH, 0.5 / n_points)])


def _by_class(found: HiddenHeterogeneity, P: Matrix, classes: NDArray) -> list[findings.HiddenCell]:
    """Return means over the items of a predicted class and a range of confidence."""
    table = found.frame(P)
    top, sure = P.argmax(axis=1), P.max(axis=1)
    cells = []
    for k in np.argsort(-np.bincount(top, minlength=P.shape[1]), kind="stable")[
        :_MOST_CLASSES_SHOWN
    ]:
        for low, high in pairwise(_CONFIDENCES):
            inside = (top == k) & (sure > low) & (sure <= high)
            part = table[inside & table["hh"].notna().to_numpy()]
            if not inside.any():
                continue
            known = len(part) >= _LEAST_IN_CELL
            means = part[["hh", "hh_global", "hh_local", "standard_error"]].mean()
            record = {str(key): value if known else None for key, value in means.items()}
            record |= {"q_value": None, "n_neighbors": int(inside.sum())}
            name = str(classes.tolist()[k])
            cells.append(_cell(record, name=name, at=None, low=low, high=high))
    return cells


def _cell(record: Mapping[str, Any], **where: Any) -> findings.HiddenCell:
    return findings.read(findings.HiddenCell, record, count=int(record["n_neighbors"]), **where)


def subgroups(table: pd.DataFrame) -> list[findings.Subgroup]:
    """Return the rows of a table of sub-populations."""
    return [
        findings.read(
            findings.Subgroup,
            r,
            label=str(r["class"]),
            count=int(r["n"]),
            after_global_map=float(r["gap_after_global_map"]),
        )
        for r in _records(table.astype({"global_map_repairs": bool}))
    ]


def groups_by(
    items: CalibrationSet, by: str | Sequence[str] | Mapping[str, Any] | None
) -> list[findings.Subgroup]:
    """Return the groups that columns form: columns of X by name, or given with their values."""
    if by is None or len(by) == 0:
        return []
    table: Any = items.X
    if isinstance(by, Mapping):
        table, by = pd.DataFrame({str(name): np.asarray(v) for name, v in by.items()}), list(by)
    return subgroups(report_groups(items, table, by))


def cost(
    items: CalibrationSet, matrix: Matrix, compared: Compared, names: Sequence[str]
) -> findings.Cost:
    """Return what the decisions cost, and the decision curve of two classes."""
    scored = items.take(compared.rows)
    codes = scored.codes
    costs = []
    for name in names:
        by_label = matrix[:, (compared.proba(name) @ matrix).argmin(axis=1)].T
        paid = by_label[np.arange(len(codes)), codes]
        mean = float(np.average(paid, weights=scored.weight))
        ends = interval_of_mean(paid, scored.weight, scored.groups, by_label=by_label)
        low, high = (mean if np.isnan(end) else float(end) for end in ends)
        costs.append(findings.CostRow(name, label_of(name), mean, low, high))
    if matrix.shape != (2, 2):
        return findings.Cost(matrix.tolist(), costs, [], None, [])
    shares = scored.weights / scored.weights.sum()
    curves = [
        findings.DecisionCurve(
            label_of(name), _net_benefit(compared.proba(name)[:, 1], codes, shares)
        )
        for name in names
    ]
    curves.append(
        findings.DecisionCurve("act on everyone", _net_benefit(np.ones(len(codes)), codes, shares))
    )
    missed, needless = matrix[1, 0] - matrix[1, 1], matrix[0, 1] - matrix[0, 0]
    cut = needless / (needless + missed) if min(missed, needless) > 0 else None
    return findings.Cost(matrix.tolist(), costs, _THRESHOLDS.tolist(), number(cut), curves)


def _net_benefit(p: Vector, codes: NDArray[np.int64], shares: Vector) -> list[float]:
    """Return true positives less false ones, these at the odds of the threshold."""
    act = p[None, :] >= _THRESHOLDS[:, None]
    hit, needless = act @ (shares * (codes == 1)), act @ (shares * (codes == 0))
    return (hit - needless * _THRESHOLDS / (1 - _THRESHOLDS)).tolist()


def _records(table: pd.DataFrame) -> list[dict]:
    return table.to_dict("records")
