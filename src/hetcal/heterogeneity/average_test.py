r"""Whether the probabilities are right on average: :math:`P(y \mid p) = p`.

The residuals :math:`y - p` are projected on functions of p, few (a constant and the log-odds) and
many (:mod:`hetcal.heterogeneity.functions_of_p`, without what labels choose); if all is right, the
squared lengths are those of labels drawn from p. Where rows belong to groups, the signs of whole
groups' residuals are drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from hetcal._typing import Matrix, Rows
from hetcal.data import CalibrationSet
from hetcal.heterogeneity.functions_of_p import FunctionsOfP, label_free_spaces
from hetcal.heterogeneity.score_test import gamma_tail, harmonic_p_value

_DRAWS = 399
_BLOCK_ROWS = 8192


def average_p_value(calibration: CalibrationSet, seed: int | list[int] = 0) -> float:
    """Return the p-value of the hypothesis that the probabilities are right on average.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> y = (rng.uniform(size=500) < 0.5 * p).astype(int)
    >>> items = CalibrationSet.check(None, y, y_proba=np.column_stack([1 - p, p]), caller="test")
    >>> average_p_value(items) < 1e-6
    True
    """
    few, many = (_p_value(space, calibration, seed) for space in label_free_spaces(calibration))
    return harmonic_p_value(few, many, 0.5)


def _p_value(space: FunctionsOfP, items: CalibrationSet, seed: int | list[int]) -> float:
    rng = np.random.default_rng(seed)
    n, K = items.proba.shape
    size = len(space.atom_mass) + 1 + space.basis.shape[1]
    sums = np.zeros((K, size, 1 + _DRAWS))
    signs = None
    if items.groups is not None:
        signs = rng.choice([-1.0, 1.0], (int(items.groups.max()) + 1, _DRAWS))
    for start in range(0, n, _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        P = softmax(items.scores.log_proba[rows], axis=1)  # a hard zero is a small probability
        error = items.onehot[rows] - P
        uniform = rng.random((len(P), _DRAWS), dtype=np.float32)
        for k, drawn in enumerate(_drawn_errors(P, error, uniform, signs, items.groups, rows)):
            sums[k] += space.coefficients(np.hstack([error[:, [k]], drawn]), rows)
    lengths = np.sum([space.squared_length(part) for part in sums], axis=0)
    return float(np.exp(gamma_tail(lengths[:1], lengths[1:])[0]))


def _drawn_errors(
    P: Matrix,
    error: Matrix,
    uniform: NDArray[np.float32],
    signs: Matrix | None,
    groups: Rows | None,
    rows: slice,
) -> list[Matrix]:
    """Return for each class the errors of labels as they might have been."""
    if signs is not None and groups is not None:
        return [column[:, None] * signs[groups[rows]] for column in error.T]
    label = (uniform[:, :, None] >= np.cumsum(P, axis=1)[:, None, :-1]).sum(axis=2)
    return [(label == k) - P[:, [k]] for k in range(P.shape[1])]
