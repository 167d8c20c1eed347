r"""The numbers behind the advice: out-of-sample gains, what is hidden, and how much could be.

For predictions :math:`q` that may be improved in a direction :math:`d` found without the item,
with residuals :math:`r_i = e_{y_i} - q_i`, the Brier score of :math:`q + a d` improves by
:math:`(2 a \sum r_i \cdot d_i - a^2 \sum |d_i|^2) / n`, which is at most

.. math:: \frac{(\sum r_i \cdot d_i)^2}{n \sum |d_i|^2} = z^2 u, \qquad
          u = \frac{\operatorname{Var}(\sum r_i \cdot d_i)}{n \sum |d_i|^2} .

If nothing is wrong, z is about standard normal. So :math:`(\max(z, 0) + 1.645)^2 u` is the largest
gain that the data do not rule out (95 %, one-sided), and u, about the Brier score over n, says how
fine the data can see.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from hetcal._exceptions import HetcalWarning
from hetcal._typing import Matrix, Rows
from hetcal.calibration.hybrid import HybridCalibrator
from hetcal.data import CalibrationSet, Folds
from hetcal.diagnosis import candidates
from hetcal.diagnosis.dependence import Dependence, find_dependence
from hetcal.diagnosis.splits import nested_parts
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.heterogeneity.average_test import average_p_value
from hetcal.heterogeneity.functions_of_p import fit_global
from hetcal.heterogeneity.subgroups import COLUMNS, subgroups_of
from hetcal.metrics.scores import brier_losses
from hetcal.metrics.standard_errors import mean_and_error

Z95, ONE_SIDED_95 = 1.96, 1.645
N_STEPS = 7
_HETEROGENEITY_ITEMS = 200_000  # more are not needed to see any gain that matters
_RULE_FEATURES = 200  # rules over more columns (pixels, say) take long and cannot be read


@dataclass(frozen=True)
class Gain:
    """A difference of two out-of-sample Brier scores, with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def between(cls, worse: Matrix, better: Matrix, items: CalibrationSet) -> Gain:
        """Return how much ``better`` improves on ``worse``; paired, by group where there are."""
        mean, error = mean_and_error(worse - better, items.weight, items.groups)
        return cls(float(mean), float(mean - Z95 * error), float(mean + Z95 * error))

    def less(self, errors: float) -> float:
        """Return the gain less some standard errors."""
        return self.value - errors * (self.high - self.low) / (2 * Z95)


@dataclass(frozen=True)
class Potential:
    """What could be gained in a direction: z^2 u, see the module."""

    z: float
    unit: float

    @classmethod
    def towards(cls, direction: Matrix, of: Matrix, items: CalibrationSet) -> Potential:
        """Measure the direction from the predictions ``of``, which the labels are drawn from."""
        weight = items.weights / items.weights.mean()
        terms, variances = _score_terms(items.onehot - of, direction, of, weight)
        if items.groups is not None:
            terms = np.bincount(items.groups, terms).astype(np.float64)
        # Probabilities of exactly 0 and 1 announce no variance at all; the terms show it then.
        variance = max(float(variances.sum()), float((terms**2).sum()))
        squares = float(weight @ (direction**2).sum(axis=1))
        if variance == 0 or squares == 0:
            return cls(0.0, float(brier_losses(of, items.codes) @ weight) / items.n_items**2)
        return cls(float(terms.sum()) / variance**0.5, variance / squares / items.n_items)

    @classmethod
    def of_test(cls, p_value: float, unit: float) -> Potential:
        """Take z from a test, which knows what it has fitted; the plain z does not."""
        return cls(float(-ndtri(np.clip(p_value, 1e-300, 0.999))), unit)

    @property
    def most(self) -> float:
        """The largest gain that the data do not rule out."""
        return (max(self.z, 0.0) + ONE_SIDED_95) ** 2 * self.unit


@dataclass(frozen=True, eq=False)
class Measurements:
    """Everything that was measured.

    Attributes
    ----------
    brier, best_map_brier : float
        Of the probabilities as they are, and of the global map, out of sample.
    reference_brier : float
        Of whichever of the two was better on the other folds: what a local map must beat.
    best_map : str
        Its name for :func:`hetcal.get_calibrator`.
    global_gain, local_gain, retraining_gain : Gain
        Of the global map over the probabilities; of the hybrid, and of a model trained on the
        features of the calibration items alone, over the better of both.
    hybrid_over_retrained : Gain
        Of the hybrid over that model.
    model_gain : Gain
        Of a forest on features and probabilities over one on the features alone.
    doubling_gain : Gain
        Of a forest on all items over one on half of them.
    hh_global, hh_local, hh_standard_error : float
        The two parts of hidden heterogeneity, and the standard error of their sum.
    global_p_value, local_p_value : float
        That the probabilities are calibrated on average; that a global map repairs everything.
    global_most, local_most : float
        The largest gains that the data do not rule out (95 %, one-sided). A direction shows only
        what a forest finds, which of many classes is little: with more than two, locally what the
        hybrid itself may gain counts too, what a forest that is still learning may reach with twice
        as many items, and that many classes need many items.
    local_tested : float
        The largest local gain that the test of hidden heterogeneity leaves, or that was measured.
    global_unit, local_unit : float
        How fine the data can see; see the module.
    reliance_on_model : float
        As in :class:`hetcal.HybridCalibrator`.
    best_retrained : {"forest", "boosting"}
        Which retrained model was best.
    retrained : Matrix
        Its out-of-sample predictions.
    subgroups : DataFrame
        From :func:`hetcal.heterogeneity.find_subgroups`, those that a global map does not repair.
    every_subgroup : DataFrame
        Those that a global map repairs too.
    hybrid : HybridCalibrator
        Fitted to all items.
    predictions : dict of Matrix
        Out-of-sample predictions by method: the global maps, and the models trained on the items.
    hidden : HiddenHeterogeneity
        Fitted to ``hidden_rows``, all items or a part of very many.
    hidden_rows : ndarray of shape (m,)
    dependence : Dependence or None
        Rows that belong together although nothing said so.
    """

    brier: float
    best_map_brier: float
    reference_brier: float
    best_map: str
    global_gain: Gain
    local_gain: Gain
    retraining_gain: Gain
    hybrid_over_retrained: Gain
    model_gain: Gain
    doubling_gain: Gain
    hh_global: float
    hh_local: float
    hh_standard_error: float
    global_p_value: float
    local_p_value: float
    global_most: float
    local_most: float
    local_tested: float
    global_unit: float
    local_unit: float
    reliance_on_model: float
    best_retrained: str
    retrained: Matrix
    subgroups: pd.DataFrame
    every_subgroup: pd.DataFrame
    hybrid: HybridCalibrator
    predictions: dict[str, Matrix]
    hidden: HiddenHeterogeneity
    hidden_rows: Rows
    dependence: Dependence | None

    @property
    def hybrid_brier(self) -> float:
        """Out-of-sample Brier score of the hybrid."""
        return self.reference_brier - self.local_gain.value

    @property
    def retrained_brier(self) -> float:
        """Out-of-sample Brier score of the model that was trained on the features alone."""
        return self.reference_brier - self.retraining_gain.value


def measure(
    items: CalibrationSet,
    *,
    identifiers: dict[str, Rows],
    hybrid: HybridCalibrator | None,
    random_state: int,
    n_jobs: int | None,
    begin: Callable[[str], object],
) -> Measurements:
    """Measure everything once; out-of-sample predictions are shared by all questions."""
    begin("looking for rows that belong together")
    options: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs}
    dependence = find_dependence(items, identifiers, **options)

    begin("fitting global maps")
    codes = items.codes
    folds = shared_folds(items, random_state)
    loss = brier_losses(items.proba, codes)

    maps = candidates.cross_fitted_maps(items, folds, random_state)
    mapped_loss = brier_losses(maps[candidates.GLOBAL_MAP], codes)
    # With few items a map may be worse than none: what comes after must beat both.
    mapping_pays = _mean(mapped_loss, items) < _mean(loss, items)
    reference_loss = mapped_loss if mapping_pays else loss
    flexible, overall, global_p_value = _right_on_average(items, random_state)

    begin("fitting the hybrid")
    fitted = _fitted_hybrid(items, random_state, n_jobs) if hybrid is None else hybrid
    blend_loss = brier_losses(_out_of_sample_blend(fitted, items), codes)
    could_win = _brier_without_model(fitted, blend_loss, items) < _mean(reference_loss, items)

    begin("retraining plain models")
    options = {"seed": random_state, "n_jobs": n_jobs}
    alone = candidates.retrained(items, folds, with_boosting=could_win, **options)
    best_retrained, retrained = candidates.best_of(alone, items, folds)
    retrained_loss = brier_losses(retrained, codes)
    Z = np.hstack([items.features(), items.scores.log_proba])
    voted = candidates.forest_vote(Z, items, **options)
    halves = Folds.make(items.n_items, 2, seed=[random_state, 1], groups=items.groups)
    from_half = candidates.forest_vote_from_half(Z, items, halves, **options)

    begin("looking for hidden heterogeneity")
    hidden, hidden_rows = _hidden_heterogeneity(items, random_state, n_jobs)
    unit = Potential.towards(voted - flexible, flexible, items).unit
    local = Potential.of_test(hidden.p_value_, unit * (items.n_items / hidden_rows.shape[0]))

    begin("naming sub-populations")
    found = _subgroups(items, random_state)

    begin("weighing the evidence")
    local_gain = Gain.between(reference_loss, blend_loss, items)
    global_gain = Gain.between(loss, mapped_loss, items)
    local_tested = max(local.most, local_gain.value)
    voted_loss = brier_losses(voted, codes)
    doubling_gain = Gain.between(brier_losses(from_half, codes), voted_loss, items)
    head_start = _mean(reference_loss, items) - _mean(voted_loss, items)
    further_bounds = [_finest(items, _mean(reference_loss, items))]
    if items.classes.shape[0] > 2:
        # With two classes the test sees what is hidden sooner than the hybrid's own gain does, and
        # its bound holds (benchmarks/advice.py); of many classes it misses much.
        further_bounds += [
            local_gain.less(-ONE_SIDED_95),
            _within_reach(doubling_gain, head_start),
        ]
    return Measurements(
        brier=_mean(loss, items),
        best_map_brier=_mean(mapped_loss, items),
        reference_brier=_mean(reference_loss, items),
        best_map=candidates.GLOBAL_MAP,
        global_gain=global_gain,
        local_gain=local_gain,
        retraining_gain=Gain.between(reference_loss, retrained_loss, items),
        hybrid_over_retrained=Gain.between(retrained_loss, blend_loss, items),
        model_gain=Gain.between(brier_losses(alone["forest"], codes), voted_loss, items),
        doubling_gain=doubling_gain,
        hh_global=hidden.hh_global_mean_,
        hh_local=hidden.hh_local_mean_,
        hh_standard_error=hidden.standard_error_,
        global_p_value=global_p_value,
        local_p_value=hidden.p_value_,
        global_most=min(max(overall.most, global_gain.value), _mean(loss, items)),
        local_tested=local_tested,
        local_most=min(max(local_tested, *further_bounds), _mean(reference_loss, items)),
        global_unit=overall.unit,
        local_unit=local.unit,
        reliance_on_model=float(fitted.reliance_on_model_),
        best_retrained=best_retrained,
        retrained=retrained,
        subgroups=found[~found["global_map_repairs"].astype(bool)].reset_index(drop=True),
        every_subgroup=found,
        hybrid=fitted,
        predictions=maps
        | {f"{name} on X": Q for name, Q in alone.items()}
        | {"forest on [X, P]": voted},
        hidden=hidden,
        hidden_rows=hidden_rows,
        dependence=dependence,
    )


def _within_reach(doubling_gain: Gain, head_start: float) -> float:
    """Return what a forest that is still learning may gain with twice as many items.

    Its gain from the second half counts from where it stands, mostly behind the best map: what it
    has to make good first is no gain.
    """
    return head_start + doubling_gain.high if doubling_gain.low > 0 else 0.0


def _finest(items: CalibrationSet, brier: float) -> float:
    """Return the smallest gain that so many items of so many classes can rule out.

    The usual unit, the Brier score over n, is one of two classes. Of more, what is hidden may
    differ with the class that is announced, and each pair is left with its part of the items.
    """
    return ONE_SIDED_95**2 * class_pairs(items) * brier / items.n_items


def class_pairs(items: CalibrationSet) -> float:
    """Return half the number of classes; they count by their frequencies, so rare ones hardly."""
    frequencies = np.bincount(items.codes, items.weights) / items.weights.sum()
    return 0.5 / float(frequencies @ frequencies)


def shared_folds(items: CalibrationSet, random_state: int) -> Folds:
    """Return the folds on which all candidates are compared."""
    return Folds.make(items.n_items, seed=[random_state, 0], groups=items.groups)


def _right_on_average(items: CalibrationSet, random_state: int) -> tuple[Matrix, Potential, float]:
    """Test that the probabilities are right on average.

    Returns
    -------
    mapped : ndarray of shape (n, K)
        The best global map.
    potential : Potential
        What a global map could gain.
    p_value : float
    """
    mapped = fit_global(items).proba
    p_value = average_p_value(items, [random_state, 2])
    unit = Potential.towards(mapped - items.proba, items.proba, items).unit
    return mapped, Potential.of_test(p_value, unit), p_value


def _fitted_hybrid(
    items: CalibrationSet, random_state: int, n_jobs: int | None
) -> HybridCalibrator:
    hybrid = HybridCalibrator(classes=items.classes, random_state=random_state, n_jobs=n_jobs)
    with warnings.catch_warnings():
        # What it warns of, little reliance on the model, is one of the verdicts.
        warnings.simplefilter("ignore", HetcalWarning)
        return hybrid.fit_set(items)


def _out_of_sample_blend(hybrid: HybridCalibrator, items: CalibrationSet) -> Matrix:
    """Return the hybrid's out-of-sample predictions, without items that had no weight."""
    Q = hybrid.out_of_sample_proba_
    return Q if Q.shape[0] == items.n_items else Q[hybrid.calibration_rows_]


def _brier_without_model(hybrid: HybridCalibrator, loss: Matrix, items: CalibrationSet) -> float:
    """Return the Brier score of the hybrid's experts that do not use the model."""
    frequencies = np.average(items.onehot, axis=0, weights=items.weights)
    known = _mean(brier_losses(np.tile(frequencies, (items.n_items, 1)), items.codes), items)
    blend = _mean(loss, items)
    lost = np.nan_to_num(float(hybrid.reliance_on_model_))  # unknown: it may be as good
    return blend + float(lost) * (known - blend)


def _subgroups(items: CalibrationSet, random_state: int) -> pd.DataFrame:
    """Return the sub-populations whose probabilities are wrong."""
    if items.features().shape[1] > _RULE_FEATURES:
        return pd.DataFrame(columns=COLUMNS)
    return subgroups_of(items, random_state=random_state)


def _hidden_heterogeneity(
    items: CalibrationSet, random_state: int, n_jobs: int | None
) -> tuple[HiddenHeterogeneity, Rows]:
    """Return the estimator, fitted to all items or a part of very many, and which they are."""
    rows: Rows = np.arange(items.n_items)
    if items.n_items > _HETEROGENEITY_ITEMS:
        (rows,) = nested_parts(items, rows, [_HETEROGENEITY_ITEMS], random_state)
    hidden = HiddenHeterogeneity(
        radius="auto",
        neighborhoods=None if items.classes.shape[0] == 2 else "overlap",
        classes=items.classes,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return hidden.fit_set(items.take(rows)), rows


def _score_terms(
    residuals: Matrix, direction: Matrix, of: Matrix, weight: Matrix
) -> tuple[Matrix, Matrix]:
    """Return each item's term of the score statistic, and its variance under ``of``."""
    terms = weight * np.einsum("ij,ij->i", residuals, direction)
    mean = np.einsum("ij,ij->i", of, direction)
    variances = weight**2 * (np.einsum("ij,ij,ij->i", of, direction, direction) - mean**2)
    return terms, np.maximum(variances, 0.0)


def _mean(loss: Matrix, items: CalibrationSet) -> float:
    return float(np.average(loss, weights=items.weights))
