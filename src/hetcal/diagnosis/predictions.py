"""Out-of-sample predictions of every method, made once; comparison, pictures, costs read them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Matrix, Rows
from hetcal.calibration import get_calibrator
from hetcal.data import CalibrationSet
from hetcal.diagnosis.candidates import GLOBAL_MAP, boosting_is_affordable
from hetcal.diagnosis.cross_validation import Predictions, cross_validated
from hetcal.diagnosis.measurements import Measurements
from hetcal.diagnosis.own_predictions import plain_model
from hetcal.metrics.gains import Gain
from hetcal.metrics.scores import brier_losses

_MAPS = (GLOBAL_MAP, "temperature", "bcts", "beta", "isotonic")
_BOOSTING = ("boosting on X", "boosting on [X, P]")
_N_FORWARD = 4


@dataclass(frozen=True, eq=False)
class Compared:
    """Out-of-sample predictions by method, and how each was made."""

    out: Predictions
    how: dict[str, str]

    @property
    def rows(self) -> Rows:
        """Items that have predictions."""
        return np.flatnonzero(self.out.tested)

    def proba(self, name: str) -> Matrix:
        """Return the predictions of :attr:`rows`."""
        return self.out.proba(name)[self.rows]


def shuffled(
    items: CalibrationSet, evidence: Measurements, seed: int, n_jobs: int | None
) -> Compared:
    """Collect what the advice has made already, and add what is missing."""
    said = {"uncalibrated": items.proba}
    how = {"uncalibrated": "the model's own probabilities"}
    for name, Q in evidence.predictions.items():
        said[name] = Q
        out_of_bag = name.startswith("forest") and items.groups is None
        how[name] = "out of bag" if out_of_bag else "5-fold cross-fitted"
    swc = get_calibrator("swc", random_state=seed, n_jobs=n_jobs).fit_set(items)
    said["swc"] = swc.out_of_sample_proba_
    said["hybrid"] = evidence.hybrid.out_of_sample_proba_
    left_out = "out of bag" if items.groups is None else "groups left out"
    how |= {"swc": left_out, "hybrid": "experts out of bag or cross-fitted, weights cross-fitted"}
    for name, Q in _boosted(items, seed, known=set(said)).items():
        said[name] = Q
        how[name] = "5-fold cross-fitted"
    return Compared(Predictions.of(items, said), how)


def forward(
    items: CalibrationSet,
    splits: list[tuple[Rows, Rows]],
    seed: int,
    n_jobs: int | None,
) -> Compared:
    """Predict each stretch of time from what came before it."""
    out = cross_validated(
        items,
        methods=["uncalibrated", *_MAPS, "swc", "hybrid"],
        baselines=list(_BOOSTING) if boosting_is_affordable(items) else False,
        cv=splits,
        random_state=seed,
        n_jobs=n_jobs,
        caller="diagnose",
    )
    failed = out.runs["hybrid"].error
    if failed is not None:
        raise ValueError(
            f"diagnose: the earliest items are too few or too uniform to learn from ({failed}). "
            "Pass more items, or leave time out."
        )
    return Compared(out, dict.fromkeys(out.runs, "fitted to earlier items only"))


def forward_splits(moment: NDArray[np.int64], groups: Rows | None) -> list[tuple[Rows, Rows]]:
    """Return stretches of time to test, each with all earlier items to learn from.

    Items of the same moment are never on both sides, nor items of the same group.

    Examples
    --------
    >>> forward_splits(np.arange(10), None)[0]
    (array([0, 1]), array([2, 3]))
    """
    n = moment.shape[0]
    order = np.argsort(moment, kind="stable")
    cuts = np.unique(moment[order[[n * k // (_N_FORWARD + 1) for k in range(1, _N_FORWARD + 1)]]])
    splits = []
    for start, end in zip(cuts, [*cuts[1:], moment.max() + 1], strict=True):
        test = np.flatnonzero((moment >= start) & (moment < end))
        known = moment < start
        if groups is not None:
            known &= ~np.isin(groups, groups[test])
        if known.any() and test.size:
            splits.append((np.flatnonzero(known), test))
    if not splits:
        raise ValueError(
            "diagnose: time has too few different values to predict later items from earlier ones. "
            "Pass a finer time, or leave it out."
        )
    return splits


def forward_evidence(evidence: Measurements, compared: Compared) -> Measurements:
    """Return the evidence with every gain measured on later items.

    What is hidden, with its test, stays what the whole period shows.
    """
    items = compared.out.items.take(compared.rows)
    names = compared.out.methods
    said = {name: compared.proba(name) for name in names}

    def mean(name: str) -> float:
        return float(np.average(brier_losses(said[name], items.codes), weights=items.weights))

    def gain(worse: str, better: str) -> Gain:
        return Gain.between(said[worse], said[better], items)

    retrained = [name for name in names if name.endswith("on X")]
    global_gain, local_gain = gain("uncalibrated", GLOBAL_MAP), gain(GLOBAL_MAP, "hybrid")
    changed: dict[str, Any] = {
        "brier": mean("uncalibrated"),
        "best_map": GLOBAL_MAP,
        "best_map_brier": mean(GLOBAL_MAP),
        "reference_brier": mean(GLOBAL_MAP),
        "global_gain": global_gain,
        "local_gain": local_gain,
        "hybrid_gain": gain("uncalibrated", "hybrid"),
        "n_later": items.n_items,
    }
    if retrained:
        best = min(retrained, key=mean)
        changed["best_retrained"] = best.removesuffix(" on X")
        changed["retraining_gain"] = gain(GLOBAL_MAP, best)
        changed["hybrid_over_retrained"] = gain(best, "hybrid")
    return replace(evidence, **changed)


def _boosted(items: CalibrationSet, seed: int, known: set[str]) -> dict[str, Matrix]:
    """Return gradient boosting, cross-fitted, on whatever it has not been fitted to yet."""
    if not boosting_is_affordable(items):
        return {}
    return {n: plain_model(n, items, seed) for n in _BOOSTING if n not in known}
