"""Small things that several global maps share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hetcal._exceptions import levels_to_caller
from hetcal._stored import expect
from hetcal._stored.fields import rising
from hetcal._typing import Matrix
from hetcal.data import Scores
from hetcal.kernels.binary_maps import ranking_scores


def check_option(owner: Any, name: str, options: Sequence[str]) -> str:
    """Return the parameter ``name`` of an estimator if it is one of ``options``."""
    value = getattr(owner, name)
    if value not in options:
        raise ValueError(
            f"{type(owner).__name__}: {name} must be one of {', '.join(map(repr, options))}; "
            f"got {value!r}."
        )
    return value


def check_non_negative(owner: Any, name: str) -> float:
    """Return the parameter ``name`` of an estimator if it is a finite number >= 0."""
    value = getattr(owner, name)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < np.inf:
        raise ValueError(
            f"{type(owner).__name__}: {name} must be a finite number >= 0; got {value!r}."
        )
    return number


def step_scores(scores: Scores, kind: str) -> Matrix:
    """Return the score of every class that a step map reads: log-odds or probability."""
    if kind == "proba":
        return scores.proba
    return ranking_scores(scores.proba, scores.log_proba)


def check_coefficients(calibrator: Any, *names: str, one_for_two: bool = False) -> None:
    """Check that a loaded map has a coefficient per class (or a single one for two classes)."""
    n = len(getattr(calibrator, names[0]))
    if hasattr(calibrator, "classes_"):
        K = len(calibrator.classes_)
        wanted = 1 if one_for_two and K == 2 else K
        expect(n == wanted, calibrator, "has coefficients of others")
    expect(all(len(getattr(calibrator, name)) == n for name in names), calibrator, "is uneven")


def check_steps(calibrator: Any, places: str, more: int) -> None:
    """Check two arrays per class of a loaded map, the levels longer than the first by ``more``."""
    found, levels, K = getattr(calibrator, places), calibrator.levels_, len(calibrator.classes_)
    expect(len(found) == len(levels) == K, calibrator, f"has not one of {places} per class")
    for x, y in zip(found, levels, strict=True):
        expect(len(y) == len(x) + more and len(y) > 0, calibrator, f"has odd {places}")
        expect(rising(x, strictly=True), calibrator, f"has {places} out of order")


def warn_unless(converged: bool, owner: Any) -> None:
    """Warn when an optimiser stopped short, and say what can be done."""
    if not converged:
        warnings.warn(
            f"{type(owner).__name__} did not converge; its probabilities are those of the last "
            "step. Look for extreme values in y_proba, logits or sample_weight, or use "
            "get_calibrator('isotonic'), which needs no optimiser.",
            ConvergenceWarning,
            stacklevel=levels_to_caller(),
        )
