"""Convex weights for experts, from their out-of-sample predictions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from hetcal._typing import Matrix, Rows, Vector
from hetcal.data import CalibrationSet, Folds, out_of_sample
from hetcal.metrics.scores import brier_losses
from hetcal.metrics.standard_errors import mean_and_error

# Weight of the equation "the weights sum to one" in the least squares; they are normalised after.
_SUM_TO_ONE = 1e3
# How many items it takes to move the weights away from where they start, the share of the base
# there (the other experts start equal), and who is not worth asking.
_PRIOR_ITEMS = 5.0
_BASE_AT_START = 1 / 3
_LEAST_WEIGHT = 0.02
_SHARES = np.linspace(0.0, 1.0, 41)
_SURE = 2.0  # standard errors beyond which a gain is told from none


def convex_weights(
    said: Matrix,
    truth: Matrix,
    weight: Matrix,
    *,
    prior_items: float = 0.0,
    start: Vector | None = None,
) -> Matrix:
    """Return the weights on the simplex that minimise the Brier score of the blend.

    Parameters
    ----------
    said : ndarray of shape (J, n, K)
        Predictions of J experts.
    truth : ndarray of shape (n, K)
        One-hot labels.
    weight : ndarray of shape (n,)
        Weight of each item.
    prior_items : float, default=0.0
        Strength of a pull towards ``start``: this many times the squared distance is added to the
        sum of Brier scores.
    start : ndarray of shape (J,), optional
        Equal weights when None.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> experts = np.stack([truth, 1 - truth])
    >>> convex_weights(experts, truth, np.ones(2)).round(3)
    array([1., 0.])
    """
    J, total = said.shape[0], weight.sum()
    flat = (said * np.sqrt(weight / total)[None, :, None]).reshape(J, -1)
    target = (truth * np.sqrt(weight / total)[:, None]).ravel()
    gram, product = flat @ flat.T, flat @ target
    pull = prior_items / total
    gram += (pull + 1e-10 * np.trace(gram) / J) * np.eye(J)
    product += pull * (np.full(J, 1 / J) if start is None else start)
    # A square root of the Gram matrix turns the quadratic program into a small least squares.
    values, vectors = np.linalg.eigh(gram)
    root = np.sqrt(np.maximum(values, 1e-300))
    A = np.vstack([(vectors * root).T, _SUM_TO_ONE * np.ones(J)])
    w, _ = scipy.optimize.nnls(A, np.append((vectors.T @ product) / root, _SUM_TO_ONE))
    return w / w.sum() if w.sum() > 0 else np.full(J, 1 / J)


def learned_weights(said: Matrix, truth: Matrix, weight: Matrix) -> Matrix:
    """Return convex weights, zero for whoever has hardly a say; the first expert is the base."""
    others = max(len(said) - 1, 1)
    start = np.append(_BASE_AT_START, np.full(others, (1 - _BASE_AT_START) / others))[: len(said)]
    w = convex_weights(said, truth, weight, prior_items=_PRIOR_ITEMS, start=start)
    w = np.where(w < min(_LEAST_WEIGHT, w.max()), 0.0, w)
    return w / w.sum()


def cross_fitted_blend(predictions: Matrix, items: CalibrationSet, folds: Folds) -> Matrix:
    """Return the blend of each item with weights that were learned without its fold."""

    def learn(train: Rows) -> Callable[[Rows], Matrix]:
        w = learned_weights(predictions[:, train], items.onehot[train], items.counts[train])
        return lambda test: np.tensordot(w, predictions[:, test], axes=1)

    return out_of_sample(learn, folds, items.n_items)


def cautious_share(blend: Matrix, base: Matrix, items: CalibrationSet, caution: float) -> float:
    """Return how far to go from ``base`` to ``blend``.

    The share a minimises mean + ``caution`` standard errors of the difference in Brier score
    between (1 - a) base + a blend and base, so that a gain that noise could have made is not taken.

    To the calibration items one imagined item is added on which base is right and blend is not:
    few items without an error do not prove that there are none, and a blend that looks perfect on
    50 items may be wrong on one new item in 50. Of items in groups one group is imagined.
    """
    weight, groups = items.counts, items.groups
    extra = 1.0 if groups is None else weight.sum() / np.unique(groups).shape[0]
    total = weight.sum() + extra
    right, mistaken = _imagined_mistakes(base, blend)
    base_loss = brier_losses(base, items.codes)
    imagined_base_loss = brier_losses(base, right)
    best, best_bound = 0.0, 0.0
    for share in _SHARES[1:]:
        loss = brier_losses((1 - share) * base + share * blend, items.codes) - base_loss
        imagined = float(
            np.mean(brier_losses((1 - share) * base + share * mistaken, right) - imagined_base_loss)
        )
        mean = (float(weight @ loss) + extra * imagined) / total
        apart = weight * (loss - mean)
        if groups is not None:  # items of one group are not independent
            apart = np.bincount(groups, apart)
        apart = np.append(apart, extra * (imagined - mean))
        bound = mean + caution * np.sqrt(apart @ apart) / total
        if bound < best_bound:
            best, best_bound = float(share), bound
    return best


def filled(Q: Matrix, base: Matrix) -> Matrix:
    """Return Q with ``base`` where an expert has nothing to say."""
    return np.where(np.isnan(Q), base, Q)


def reliance(
    alone: list[Matrix], blend: Matrix, items: CalibrationSet, folds: Folds, caution: float
) -> tuple[float, float]:
    """Return the share of the gain over class frequencies that is lost without the classifier.

    ``alone`` are out-of-sample predictions of experts that never see p, ``blend`` the hybrid's own.
    The former are blended as the hybrid blends: with the same caution, towards the class
    frequencies instead of the global maps.

    Returns
    -------
    share : float
        In [0, 1]; NaN where the hybrid's gain cannot be told from none.
    error : float
        Standard error of the share.
    """
    frequencies = items.counts @ items.onehot / items.counts.sum()
    known = np.broadcast_to(frequencies, items.onehot.shape)
    predictions = np.stack([known, *(filled(Q, known) for Q in alone)])
    without = cross_fitted_blend(predictions, items, folds)
    share = cautious_share(without, known, items, caution)
    without = (1 - share) * known + share * without
    loss = brier_losses(blend, items.codes)
    gain, gain_error = mean_and_error(
        brier_losses(known, items.codes) - loss, items.counts, items.groups
    )
    if not gain > _SURE * gain_error:
        return float("nan"), float("nan")
    lost, lost_error = mean_and_error(
        brier_losses(without, items.codes) - loss, items.counts, items.groups
    )
    return float(np.clip(lost / gain, 0.0, 1.0)), float(lost_error / gain)


def _imagined_mistakes(base: Matrix, blend: Matrix) -> tuple[Rows, Matrix]:
    """Return labels that make ``base`` right, and ``blend`` as sure as it is but mistaken there.

    Where both favour one class, the blend's probabilities of this class and of its next best are
    exchanged.
    """
    rows = np.arange(base.shape[0])
    label = base.argmax(axis=1)
    others = blend.copy()
    others[rows, label] = -1.0
    rival = others.argmax(axis=1)
    agree = blend[rows, label] > blend[rows, rival]
    mistaken = blend.copy()
    mistaken[rows[agree], label[agree]] = blend[rows[agree], rival[agree]]
    mistaken[rows[agree], rival[agree]] = blend[rows[agree], label[agree]]
    return label, mistaken
