"""Every global map, stated once in operations that each target knows how to write down."""

from __future__ import annotations

from functools import reduce, singledispatch
from operator import add
from typing import Any

import numpy as np

from hetcal._typing import Matrix, Vector
from hetcal.calibration.atoms import AtomCalibration
from hetcal.calibration.beta import BetaCalibration
from hetcal.calibration.blend import GlobalBlend
from hetcal.calibration.ensemble import EnsembleTemperatureScaling
from hetcal.calibration.histogram import HistogramBinning
from hetcal.calibration.isotonic import IsotonicCalibration
from hetcal.calibration.matrix import MatrixScaling
from hetcal.calibration.platt import PlattScaling
from hetcal.calibration.spline import SplineCalibration
from hetcal.calibration.temperature import (
    PAPER_EPS,
    BiasCorrectedTemperatureScaling,
    TemperatureScaling,
)
from hetcal.calibration.uncalibrated import Uncalibrated
from hetcal.calibration.vector import VectorScaling
from hetcal.calibration.venn_abers import VennAbersCalibration
from hetcal.export.values import Output, merged_steps, tolerant_edges
from hetcal.kernels.atoms import DIGITS
from hetcal.kernels.binary_maps import SATURATED
from hetcal.kernels.shared_maps import ramps

# Stands for the logarithm of zero: a sigmoid of it is zero too.
_LEAST_LOG = -1e4


@singledispatch
def formula(map_: Any, output: Output) -> Any:
    """Return the calibrated probabilities of a classifier's output, as columns of a target."""
    raise TypeError(
        f"{type(map_).__name__} cannot be exported: hetcal.export has no formula for it. "
        "Export one of hetcal's own global maps, e.g. get_calibrator('global')."
    )


@formula.register
def _(map_: Uncalibrated, output: Output) -> Any:
    return output.proba


@formula.register
def _(map_: TemperatureScaling, output: Output) -> Any:
    scores = output.log_proba
    if map_.score == "log_odds" and map_.input_kind_ == "y_proba":
        P = output.proba.clip(PAPER_EPS, 1 - PAPER_EPS)
        scores = P.log() - (-P + 1.0).log()
    return (scores * map_.inverse_temperature_).softmax()


@formula.register
def _(map_: BiasCorrectedTemperatureScaling, output: Output) -> Any:
    return (output.log_proba * map_.scale_ + map_.bias_).softmax()


@formula.register
def _(map_: VectorScaling, output: Output) -> Any:
    return (output.log_proba * map_.scale_ + map_.bias_).softmax()


@formula.register
def _(map_: MatrixScaling, output: Output) -> Any:
    tempered = (output.log_proba * map_.scale_).log_softmax()
    return (tempered.matmul(map_.matrix_) + map_.bias_).softmax()


@formula.register
def _(map_: EnsembleTemperatureScaling, output: Output) -> Any:
    tempered = (output.log_proba * map_.inverse_temperature_).softmax()
    of_tempered, of_given, of_uniform = map_.weights_.tolist()
    return tempered * of_tempered + output.proba * of_given + of_uniform / output.n_classes


@formula.register
def _(map_: PlattScaling, output: Output) -> Any:
    scores = output.proba if map_.score == "proba" else output.log_odds
    return _one_vs_rest(scores * _per_class(map_.slope_) + _per_class(map_.intercept_))


@formula.register
def _(map_: BetaCalibration, output: Output) -> Any:
    L = output.log_proba
    a, b = map_.coef_.T
    Z = L * _per_class(a) - L.log_rest() * _per_class(b) + _per_class(map_.intercept_)
    return _one_vs_rest(Z)


@formula.register
def _(map_: SplineCalibration, output: Output) -> Any:
    if output.n_classes > 2:
        x = (output.log_proba * map_.scale_).log_softmax()
        return (_spline(map_, x) + map_.bias_).softmax()
    x = output.log_odds.columns()[1] * map_.scale_
    at_even_odds = float(map_.slopes_ @ ramps(np.zeros(1), map_.knots_)[:, 0])
    z = _spline(map_, x) + float(map_.bias_[1] - map_.bias_[0] - at_even_odds)
    return x.join([-z, z]).sigmoid()


@formula.register
def _(map_: IsotonicCalibration, output: Output) -> Any:
    S = _step_scores(output, map_.score)
    maps = zip(S.columns(), map_.thresholds_, map_.levels_, strict=True)
    return _normalized(S.join([x.interpolate(*lines) for x, *lines in maps]), output)


@formula.register
def _(map_: HistogramBinning, output: Output) -> Any:
    S = _step_scores(output, map_.score)
    maps = zip(S.columns(), map_.edges_, map_.levels_, strict=True)
    columns = [_on_steps(x, *steps, score=map_.score) for x, *steps in maps]
    Q = S.join(columns)
    return _normalized(Q, output) if map_.normalize else Q


@formula.register
def _(map_: VennAbersCalibration, output: Output) -> Any:
    S = _step_scores(output, "log_odds")
    mapped = S.columns() if output.n_classes > 2 else S.columns()[1:]
    Z = [_venn_abers(x, maps) for x, maps in zip(mapped, map_._maps(), strict=True)]
    if output.n_classes == 2:
        return S.join([-Z[0], Z[0]]).sigmoid()
    return _normalized(S.join(Z).sigmoid(), output)


@formula.register
def _(map_: AtomCalibration, output: Output) -> Any:
    smooth = formula(map_.prior_, output)
    towards = _keys(map_.atoms_)
    key = output.proba.matmul(towards[None])
    keys = map_.atoms_ @ towards
    order = np.argsort(keys)
    edges = (keys[order][1:] + keys[order][:-1]) / 2
    distance = output.proba - key.steps(edges, map_.atoms_[order])
    counts = key.steps(edges, map_.counts_[order])
    none = counts * 0.0
    for column in distance.columns():
        for signed in (column, -column):
            counts = signed.if_at_most(0.5 * 10.0**-DIGITS, counts, none)
    return (smooth * map_.mass_ + counts) / (counts.sum() + map_.mass_)


@formula.register
def _(map_: GlobalBlend, output: Output) -> Any:
    weights = map_.weights_[map_.weights_ > 0].tolist()
    parts = [formula(part, output) * w for w, part in zip(weights, map_.maps_, strict=True)]
    return reduce(add, parts)


def _per_class(values: Vector) -> Vector:
    """Return one coefficient per class; of two classes only the second has its own."""
    return values if values.shape[0] > 1 else np.array([0.0, values[0]])


def _one_vs_rest(Z: Any) -> Any:
    columns = Z.columns()
    if len(columns) == 2:
        return Z.join([-columns[1], columns[1]]).sigmoid()
    return Z.log_sigmoid().softmax()


def _step_scores(output: Output, score: str) -> Any:
    """Return the scores of ``hetcal.kernels.binary_maps.ranking_scores``, or probabilities."""
    if score == "proba":
        return output.proba
    if output.n_classes == 2:
        return output.log_odds
    L, rest = output.log_proba, -output.proba + 1.0
    below = float(np.nextafter(SATURATED, 0.0))
    beyond = L - L.log_rest().clip(None, float(np.log(SATURATED)))
    return rest.if_at_most(below, beyond, L - rest.clip(SATURATED, None).log())


def _normalized(Q: Any, output: Output) -> Any:
    total = Q.sum()
    return total.if_at_most(0.0, output.proba, Q / total)


def _on_steps(x: Any, edges: Vector, levels: Vector, *, score: str, upwards: bool = True) -> Any:
    edges, levels = merged_steps(edges, levels)
    least = 0.0 if score == "proba" else 1.0
    return x.steps(tolerant_edges(edges, upwards=upwards, least=least), levels[:, None])


def _venn_abers(x: Any, maps: list[Any]) -> Any:
    """Return the log-odds of the probability merged from all parts."""
    terms = []
    for thresholds, lower, upper in maps:
        no, yes = _log(1 - lower) / len(maps), _log(upper) / len(maps)
        terms.append(_on_steps(x, thresholds, yes, score="log_odds"))
        terms.append(_on_steps(x, thresholds, -no, score="log_odds", upwards=False))
    return reduce(add, terms)


def _log(values: Vector) -> Vector:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(values), _LEAST_LOG)


def _spline(map_: SplineCalibration, x: Any) -> Any:
    """Return the sum of slopes times ``hetcal.kernels.shared_maps.ramps``."""
    knots, slopes = map_.knots_.tolist(), map_.slopes_.tolist()
    if len(knots) == 1:
        return (x - knots[0]) * slopes[0]
    below = (x - knots[0]).clip(None, 0.0) * slopes[0]
    terms = [below, (x - knots[-1]).clip(0.0, None) * slopes[-1]]
    for m, width in enumerate(np.diff(map_.knots_).tolist()):
        within = ((x - knots[m]) / width).clip(0.0, 1.0)
        bend = (slopes[m + 1] - slopes[m]) / 2
        terms.append((within * bend + slopes[m]) * within * width)
    return reduce(add, terms)


def _keys(atoms: Matrix) -> Vector:
    """Return a direction in which all atoms lie well apart, so that one number finds them."""
    K = atoms.shape[1]
    directions = [np.eye(K)[-1]] + [np.random.default_rng(seed).random(K) for seed in range(100)]
    for direction in directions:
        gaps = np.diff(np.sort(atoms @ direction))
        if (gaps > 10.0 ** (1 - DIGITS) * K).all():
            return direction
    raise ValueError(
        "AtomCalibration cannot be exported: its calibration items had too many nearly equal "
        "probabilities. Export a smooth map, e.g. get_calibrator('beta')."
    )
