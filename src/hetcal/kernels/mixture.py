r"""Weights of a mixture of predictions: :math:`q = \sum_j v_j q_j` with the least log loss."""

from __future__ import annotations

import numpy as np

from hetcal._typing import Matrix, Vector
from hetcal.kernels.convex import Expansion, minimize_convex


def mixture_weights(likelihood: Matrix, weight: Vector) -> Vector:
    r"""Return the weights on the simplex that minimise the log loss of a mixture.

    Minimises :math:`-\sum_i w_i \log \sum_j v_j a_{ji} + \sum_i w_i \sum_j v_j` over
    :math:`v \ge 0`. The second term makes the optimum sum to one, so no equation has to be kept.

    Parameters
    ----------
    likelihood : ndarray of shape (J, n)
        The probability that predictor j gives to what happened at item i. Only ratios between
        predictors matter; for every item one at least must be positive.
    weight : ndarray of shape (n,)
        Weights of the items.

    Examples
    --------
    >>> import numpy as np
    >>> mixture_weights(np.array([[0.9, 0.8, 0.1], [0.5, 0.5, 0.5]]), np.ones(3)).round(3)
    array([0.355, 0.645])
    """
    J = likelihood.shape[0]
    A = likelihood / likelihood.max(axis=0)
    share = weight / weight.sum()

    def expand(v: Vector) -> Expansion:
        mixed = np.maximum(v @ A, 1e-100)
        scaled = A / mixed
        value = float(v.sum() - share @ np.log(mixed))
        return Expansion(value, 1.0 - scaled @ share, (scaled * share) @ scaled.T)

    found = minimize_convex(expand, np.full(J, 1.0 / J), lower=np.zeros(J)).point
    return found / found.sum()
