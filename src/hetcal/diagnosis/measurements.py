"""The numbers behind the advice: out-of-sample gains, and what is hidden."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hetcal._exceptions import HetcalWarning
from hetcal._typing import Matrix, Rows
from hetcal.calibration.fitting import shared_folds
from hetcal.calibration.hybrid import HybridCalibrator
from hetcal.data import CalibrationSet, Folds
from hetcal.diagnosis import candidates
from hetcal.diagnosis.dependence import Dependence, find_dependence
from hetcal.diagnosis.splits import nested_parts
from hetcal.heterogeneity import HiddenHeterogeneity
from hetcal.heterogeneity.average_test import average_p_value
from hetcal.heterogeneity.subgroups import COLUMNS, subgroups_of
from hetcal.metrics.gains import Gain
from hetcal.metrics.scores import brier_losses

N_STEPS = 7
_HETEROGENEITY_ITEMS = 200_000  # more are not needed to see any gain that matters
_RULE_FEATURES = 200  # rules over more columns (pixels, say) take long and cannot be read


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
    hybrid_gain : Gain
        Of the hybrid over the probabilities as they are; ``hetcal fit`` prints the same.
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
    n_later : int or None
        How many items scores and gains are from, where these were predicted from earlier ones.
    """

    brier: float
    best_map_brier: float
    reference_brier: float
    best_map: str
    global_gain: Gain
    local_gain: Gain
    retraining_gain: Gain
    hybrid_gain: Gain
    hybrid_over_retrained: Gain
    model_gain: Gain
    doubling_gain: Gain
    hh_global: float
    hh_local: float
    hh_standard_error: float
    global_p_value: float
    local_p_value: float
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
    n_later: int | None = None

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
    mapped = maps[candidates.GLOBAL_MAP]
    reference, reference_loss = (mapped, mapped_loss) if mapping_pays else (items.proba, loss)

    begin("fitting the hybrid")
    fitted = _fitted_hybrid(items, random_state, n_jobs) if hybrid is None else hybrid
    blend = _out_of_sample_blend(fitted, items)
    blend_loss = brier_losses(blend, codes)
    could_win = _brier_without_model(fitted, blend_loss, items) < _mean(reference_loss, items)

    begin("retraining plain models")
    options = {"seed": random_state, "n_jobs": n_jobs}
    alone = candidates.retrained(items, folds, with_boosting=could_win, **options)
    best_retrained, retrained = candidates.best_of(alone, items, folds)
    Z = np.hstack([items.features(), items.scores.log_proba])
    voted = candidates.forest_vote(Z, items, **options)
    halves = Folds.make(items.n_items, 2, seed=[random_state, 1], groups=items.groups)
    from_half = candidates.forest_vote_from_half(Z, items, halves, **options)

    begin("looking for hidden heterogeneity")
    hidden, hidden_rows = _hidden_heterogeneity(items, random_state, n_jobs)

    begin("naming sub-populations")
    found = _subgroups(items, random_state)

    begin("weighing the evidence")
    return Measurements(
        brier=_mean(loss, items),
        best_map_brier=_mean(mapped_loss, items),
        reference_brier=_mean(reference_loss, items),
        best_map=candidates.GLOBAL_MAP,
        global_gain=Gain.between(items.proba, mapped, items),
        local_gain=Gain.between(reference, blend, items),
        retraining_gain=Gain.between(reference, retrained, items),
        hybrid_gain=Gain.between(items.proba, blend, items),
        hybrid_over_retrained=Gain.between(retrained, blend, items),
        model_gain=Gain.between(alone["forest"], voted, items),
        doubling_gain=Gain.between(from_half, voted, items),
        hh_global=hidden.hh_global_mean_,
        hh_local=hidden.hh_local_mean_,
        hh_standard_error=hidden.standard_error_,
        global_p_value=average_p_value(items, [random_state, 2]),
        local_p_value=hidden.p_value_,
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


def _mean(loss: Matrix, items: CalibrationSet) -> float:
    return float(np.average(loss, weights=items.weights))
