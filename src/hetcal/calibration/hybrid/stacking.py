"""Convex weights for experts, from their honest predictions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Matrix = NDArray[np.float64]

# Weight of the equation "the weights sum to one" in the least squares; they are normalised after.
_SUM_TO_ONE = 1e3
_SHARES = np.linspace(0.0, 1.0, 41)


def convex_weights(said: Matrix, truth: Matrix, weight: Matrix) -> Matrix:
    """Return the weights on the simplex that minimise the Brier score of the blend.

    Parameters
    ----------
    said : ndarray of shape (J, n, K)
        Predictions of J experts.
    truth : ndarray of shape (n, K)
        One-hot labels.
    weight : ndarray of shape (n,)
        Weight of each item.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> experts = np.stack([truth, 1 - truth])
    >>> convex_weights(experts, truth, np.ones(2)).round(3)
    array([1., 0.])
    """
    J = said.shape[0]
    flat = (said * np.sqrt(weight / weight.sum())[None, :, None]).reshape(J, -1)
    target = (truth * np.sqrt(weight / weight.sum())[:, None]).ravel()
    gram, product = flat @ flat.T, flat @ target
    # A square root of the Gram matrix turns the quadratic program into a small least squares.
    values, vectors = np.linalg.eigh(gram + 1e-10 * np.trace(gram) / J * np.eye(J))
    root = np.sqrt(np.maximum(values, 1e-300))
    A = (vectors * root).T
    b = (vectors.T @ product) / root
    A = np.vstack([A, _SUM_TO_ONE * np.ones(J)])
    w, _ = nnls(A, np.append(b, _SUM_TO_ONE))
    return w / w.sum() if w.sum() > 0 else np.full(J, 1 / J)


def cross_fitted_blend(
    said: Matrix, truth: Matrix, weight: Matrix, folds: NDArray[np.int64]
) -> Matrix:
    """Return the blend of each item with weights that were learned without its fold."""
    blend = np.empty_like(truth)
    for fold in np.unique(folds):
        out = folds == fold
        w = convex_weights(said[:, ~out], truth[~out], weight[~out])
        blend[out] = np.tensordot(w, said[:, out], axes=1)
    return blend


def cautious_share(
    blend: Matrix, base: Matrix, truth: Matrix, weight: Matrix, caution: float
) -> float:
    """Return how far to go from ``base`` to ``blend``.

    The share a minimises mean + ``caution`` standard errors of the difference in Brier score
    between (1 - a) base + a blend and base, so that a gain that noise could have made is not taken.
    """
    total = weight.sum()
    best, best_bound = 0.0, 0.0
    base_loss = ((base - truth) ** 2).sum(axis=1)
    for share in _SHARES[1:]:
        loss = (((1 - share) * base + share * blend - truth) ** 2).sum(axis=1) - base_loss
        mean = float(weight @ loss) / total
        variance = float(weight**2 @ (loss - mean) ** 2) / total**2
        bound = mean + caution * np.sqrt(variance)
        if bound < best_bound:
            best, best_bound = float(share), bound
    return best
