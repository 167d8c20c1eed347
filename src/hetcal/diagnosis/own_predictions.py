"""Every method's own out-of-sample predictions, from one fit to all items.

They are the ones that ``hetcal fit`` and :func:`hetcal.diagnose` state: out of bag where a method
has that, cross-fitted on the same folds everywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hetcal._typing import Matrix
from hetcal.calibration.fitting import fitted_to, out_of_sample_proba, shared_folds
from hetcal.data import CalibrationSet
from hetcal.diagnosis.candidates import boosted, forest_vote
from hetcal.diagnosis.cross_validation import (
    Predictions,
    named_methods,
    refuse_unpredicted,
    run_steps,
)
from hetcal.diagnosis.steps import Progress
from hetcal.kernels.binned_features import bin_features


def own_predictions(
    items: CalibrationSet,
    *,
    methods: str | Sequence[str] | Mapping[str, Any] = "all",
    baselines: bool | Sequence[str] = True,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    caller: str = "compare",
) -> Predictions:
    """Return predictions of all items by several methods; parameters as in ``compare``."""
    calibrators, plain = named_methods(methods, baselines, items, random_state, caller)
    steps = [
        (name, name, partial(_of_calibrator, items, method, random_state))
        for name, method in calibrators.items()
    ]
    steps += [(name, name, partial(plain_model, name, items, random_state)) for name in plain]
    runs = run_steps(steps, n_jobs=n_jobs, progress=progress)
    return Predictions(items, np.arange(items.n_items), runs, frozenset(plain))


def plain_model(name: str, items: CalibrationSet, seed: int, n_jobs: int | None = None) -> Matrix:
    """Return what a forest or boosting says of items that it has not been trained on.

    Parameters
    ----------
    name : str
        "forest on X", "forest on [X, P]", "boosting on X" or "boosting on [X, P]".
    """
    kind, _, seen = name.partition(" on ")
    if kind == "forest":
        Z = items.features()
        Z = np.hstack([Z, items.scores.log_proba]) if seen == "[X, P]" else Z
        return forest_vote(Z, items, seed=seed, n_jobs=n_jobs)
    binned = items.binned()
    binned = binned.beside(bin_features(items.proba)) if seen == "[X, P]" else binned
    return boosted(binned, items, shared_folds(items, seed))


def _of_calibrator(items: CalibrationSet, calibrator: Any, random_state: int) -> Matrix:
    Q = out_of_sample_proba(fitted_to(calibrator, items), items, random_state)
    refuse_unpredicted(Q)
    return Q
