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
from hetcal.kernels.intervals import effective_size, wilson_interval
from hetcal.metrics import expected_calibration_error
from hetcal.metrics.ece import bin_of
from hetcal.metrics.standard_errors import mean_and_error

_N_BINS = 12
_N_COUNTS = 20
_N_BOOTSTRAP = 100
_CURVE_POINTS, _CURVE_REACH = 49, 0.02
_CONFIDENCES = (0.0, 0.5, 0.7, 0.9, 0.99, 1.0)
_MOST_CLASSES_SHOWN = 12
_LEAST_IN_CELL = 20
_THRESHOLDS = np.arange(1, 100) / 100

LABELS = {
    "uncalibrated": "uncalibrated",
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


def comparison(compared: Compared, seed: int) -> list[findings.MethodRow]:
    """Return all methods on the same items, the lowest Brier score first."""
    table = score(compared.out, n_bootstrap=_N_BOOTSTRAP, random_state=seed)
    rows = []
    for name in compared.out.methods:
        of_method = table[table["method"] == name].set_index("metric")
        scores = {
            str(metric): findings.Score(
                float(r["value"]),
                number(r["standard_error"]),
                float(r["difference"]),
                number(r["difference_se"]),
                bool(r["best"]),
                bool(r["within_one_se"]),
            )
            for metric, r in of_method.loc[list(METRICS)].iterrows()
        }
        rows.append(
            findings.MethodRow(name, label_of(name), scope_of(name), compared.how[name], scores)
        )
    return sorted(rows, key=lambda row: row.scores["brier"].value)


def reliability(items: CalibrationSet, Q: Matrix, rows: NDArray, name: str) -> findings.Reliability:
    """Return the diagram of the second of two classes, or of whichever class is predicted."""
    codes, weight = items.codes[rows], items.weights[rows]
    if Q.shape[1] == 2:
        said, happened = Q[:, 1], (codes == 1).astype(np.float64)
    else:
        top = Q.argmax(axis=1)
        said, happened = Q.max(axis=1), (top == codes).astype(np.float64)
    place = bin_of(said, weight, "equal-mass", _N_BINS)
    bins = []
    for b in np.unique(place):
        inside = place == b
        share = weight[inside] / weight[inside].sum()
        observed = min(float(share @ happened[inside]), 1.0)  # a sum of shares may round above
        groups = None if items.groups is None else items.groups[rows][inside]
        n_effective = effective_size(happened[inside], share, groups)
        low, high = wilson_interval(np.array([observed]), np.array([n_effective]))
        bins.append(
            findings.Bin(
                float(share @ said[inside]),
                observed,
                float(low[0]),
                float(high[0]),
                int(inside.sum()),
            )
        )
    counts = np.histogram(said, np.linspace(0, 1, _N_COUNTS + 1))[0]
    ece = expected_calibration_error(
        items.classes[codes], Q, classes=items.classes, sample_weight=items.weights[rows]
    )
    return findings.Reliability(name, bins, [int(c) for c in counts], float(ece))


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
    """Return the values at calibration probabilities close to an even grid."""
    p = np.sort(P[:, 1])
    grid = np.linspace(0, 1, _CURVE_POINTS)
    right = np.clip(np.searchsorted(p, grid), 0, len(p) - 1)
    left = np.maximum(right - 1, 0)
    near = np.where(np.abs(p[left] - grid) <= np.abs(p[right] - grid), p[left], p[right])
    at = np.unique(near[np.abs(near - grid) <= _CURVE_REACH])
    if at.size == 0:
        return []
    table = found.frame(np.column_stack([1 - at, at]))
    return [
        _cell(f"p = {x:.2f}", float(x), None, None, r)
        for x, r in zip(at, _records(table), strict=True)
    ]


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
            record = {key: value if known else None for key, value in means.items()}
            record |= {"q_value": None, "n_neighbors": int(inside.sum())}
            cells.append(_cell(str(classes.tolist()[k]), None, low, high, record))
    return cells


def _cell(
    name: str, at: float | None, low: float | None, high: float | None, record: Mapping
) -> findings.HiddenCell:
    return findings.HiddenCell(
        name=name,
        at=at,
        low=low,
        high=high,
        hh=number(record["hh"]),
        hh_global=number(record["hh_global"]),
        hh_local=number(record["hh_local"]),
        standard_error=number(record["standard_error"]),
        q_value=number(record["q_value"]),
        count=int(record["n_neighbors"]),
    )


def subgroups(table: pd.DataFrame) -> list[findings.Subgroup]:
    """Return the rows of a table of sub-populations."""
    return [
        findings.Subgroup(
            rule=str(r["rule"]),
            label=str(r["class"]),
            count=int(r["n"]),
            predicted=float(r["predicted"]),
            observed=float(r["observed"]),
            low=float(r["low"]),
            high=float(r["high"]),
            gap=float(r["gap"]),
            gain=float(r["gain"]),
            p_value=float(r["p_value"]),
            after_global_map=float(r["gap_after_global_map"]),
            global_map_repairs=bool(r["global_map_repairs"]),
        )
        for r in _records(table)
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
    rows = compared.rows
    codes = items.codes[rows]
    weight = None if items.weight is None else items.weight[rows]
    units = None
    if items.groups is not None:
        units = np.unique(items.groups[rows], return_inverse=True)[1]
    costs = []
    for name in names:
        paid = matrix[codes, (compared.proba(name) @ matrix).argmin(axis=1)]
        mean, error = mean_and_error(paid, weight, units)
        half = 1.96 * float(np.nan_to_num(error))
        costs.append(
            findings.CostRow(
                name, label_of(name), float(mean), float(mean) - half, float(mean) + half
            )
        )
    if matrix.shape != (2, 2):
        return findings.Cost(matrix.tolist(), costs, [], None, [])
    shares = items.weights[rows] / items.weights[rows].sum()
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
