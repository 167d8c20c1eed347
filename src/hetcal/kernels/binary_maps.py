r"""Maps of one score to the probability of one class: Platt's sigmoid and the beta map.

Both are logistic regressions on one or two features of the score, with Platt's smoothed targets and
slopes that are never negative, so that a map never reverses the ranking. With more than two classes
each class is mapped against the rest and the rows are normalised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from hetcal._typing import Matrix, Vector
from hetcal.kernels.convex import Expansion, minimize_convex

# Below this, 1 - p has too few digits left to rank by.
SATURATED = 1e-9


class LogisticMap(NamedTuple):
    """Slopes and intercept of ``logit q = features @ slopes + intercept``."""

    slopes: Vector
    intercept: float
    converged: bool


def platt_targets(is_class: NDArray[np.bool_], weight: Vector) -> Vector:
    """Return Platt's soft labels: ``(n1 + 1) / (n1 + 2)`` for the class and ``1 / (n0 + 2)`` else.

    ``n1`` and ``n0`` are the sums of weights of the two groups.

    Examples
    --------
    >>> import numpy as np
    >>> platt_targets(np.array([True, True, False]), np.ones(3))
    array([0.75      , 0.75      , 0.33333333])
    """
    n1 = float(weight[is_class].sum())
    n0 = float(weight[~is_class].sum())
    return np.where(is_class, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))


def smoothed_one_vs_rest(codes: NDArray[np.int64], n_classes: int, weight: Vector) -> Matrix:
    """Return soft 0/1 labels per class that carry one pseudo-error in total: shape (n, K).

    With ``n`` the sum of weights they are ``(n + 1) / (n + 2)`` and ``1 / (n + 2)``.

    Examples
    --------
    >>> import numpy as np
    >>> smoothed_one_vs_rest(np.array([0, 1]), 2, np.ones(2))
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    pseudo = 1.0 / (float(weight.sum()) + 2.0)
    return np.where(codes[:, None] == np.arange(n_classes), 1.0 - pseudo, pseudo)


def class_log_odds(log_proba: Matrix) -> Matrix:
    r"""Return :math:`\log p_k - \log \sum_{l \ne k} p_l` for every class.

    Computed from the other classes rather than from :math:`1 - p_k`, so that probabilities that
    round to one keep their ranking.

    Examples
    --------
    >>> import numpy as np
    >>> class_log_odds(np.log([[0.75, 0.25]])).round(3)
    array([[ 1.099, -1.099]])
    """
    if log_proba.shape[1] == 2:
        difference = log_proba[:, 1] - log_proba[:, 0]
        return np.column_stack([-difference, difference])
    return log_proba - log_rest(log_proba)


def ranking_scores(P: Matrix, log_proba: Matrix) -> Matrix:
    """Return log-odds for maps that only use the order: equal ``p_k`` gives equal scores.

    With more than two classes the score of a class is computed from ``p_k`` alone, so that rounding
    in the sum of the others cannot break ties; only where ``p_k`` rounds to one do they decide.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.5, 0.3, 0.2], [0.5, 0.4, 0.1], [1.0, 1e-20, 0.0], [1.0, 1e-30, 0.0]])
    >>> ranking_scores(P, np.log(np.maximum(P, 1e-40)))[:, 0].round(2)
    array([ 0.  ,  0.  , 46.05, 69.08])
    """
    if P.shape[1] == 2:
        return class_log_odds(log_proba)
    rest = 1.0 - P
    saturated = rest < SATURATED
    scores = log_proba - np.log(np.where(saturated, SATURATED, rest))
    rows = saturated.any(axis=1)
    beyond = np.minimum(log_rest(log_proba[rows]), np.log(SATURATED))
    scores[rows] = np.where(saturated[rows], log_proba[rows] - beyond, scores[rows])
    return scores


def log_rest(log_proba: Matrix) -> Matrix:
    r"""Return :math:`\log \sum_{l \ne k} p_l` for every class, without cancellation.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(log_rest(np.log([[0.5, 0.3, 0.2]]))).round(6)
    array([[0.5, 0.7, 0.8]])
    """
    if log_proba.shape[1] == 2:
        return log_proba[:, ::-1].copy()
    rows = np.arange(log_proba.shape[0])
    top = log_proba.argmax(axis=1)
    largest = log_proba[rows, top]
    mass = np.exp(log_proba - largest[:, None])
    mass[rows, top] = 0.0
    below_top = mass.sum(axis=1)
    # Every class but the top one has the top one in its rest, so nothing small is lost there.
    rest = largest[:, None] + np.log1p(below_top[:, None] - mass)
    without_top = log_proba.copy()
    without_top[rows, top] = -np.inf
    second = without_top.max(axis=1)
    rest[rows, top] = second + np.log(np.exp(without_top - second[:, None]).sum(axis=1))
    return rest


def fit_logistic(
    features: Matrix,
    target: Vector,
    weight: Vector,
    *,
    non_negative: bool = True,
    prior: LogisticMap | None = None,
    prior_mass: float = 0.0,
) -> LogisticMap:
    r"""Fit slopes and an intercept by maximum likelihood on soft labels.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        One column per slope.
    target : ndarray of shape (n,)
        Soft labels strictly between 0 and 1, so that the optimum is finite.
    weight : ndarray of shape (n,)
        Weights of the items.
    non_negative : bool, default=True
        Keep the slopes from being negative.
    prior : LogisticMap, optional
        A map to lean on.
    prior_mass : float, default=0.0
        Ridge that pulls towards the prior, in units of items; features count in units of their
        spread, so that the fit does not depend on their scale.

    Examples
    --------
    >>> import numpy as np
    >>> score = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    >>> fitted = fit_logistic(score, np.array([0.25, 0.25, 0.75, 0.75]), np.ones(4))
    >>> fitted.slopes.round(4), round(abs(fitted.intercept), 4)
    (array([1.0986]), 0.0)
    """
    d = features.shape[1]
    total = float(weight.sum())
    share = weight / total
    centre = share @ features
    deviation = features - centre
    spread = float(np.sqrt(np.mean(share @ deviation**2)))
    # Differences at the level of rounding are a constant score: its slope cannot be learnt.
    if spread <= 1e-14 * max(1.0, float(np.abs(centre).max())):
        return _constant_score(centre, target, share)
    design = np.column_stack([deviation / spread, np.ones(features.shape[0])])
    lean = 2 * prior_mass / total
    if prior is None:
        start, anchor = np.append(np.full(d, min(spread, 1.0)), 0.0), np.zeros(d + 1)
    else:
        anchor = np.append(prior.slopes * spread, prior.intercept + prior.slopes @ centre)
        start = anchor

    def expand(theta: Vector) -> Expansion:
        z = design @ theta
        small = np.exp(-np.abs(z))
        q = np.where(z >= 0, 1.0, small) / (1.0 + small)
        loss = float(share @ (np.maximum(z, 0.0) + np.log1p(small) - target * z))
        away = theta - anchor
        gradient = design.T @ (share * (q - target)) + lean * away
        hessian = (design * (share * q * (1 - q))[:, None]).T @ design + lean * np.eye(d + 1)
        return Expansion(loss + 0.5 * lean * float(away @ away), gradient, hessian)

    lower = np.append(np.zeros(d), -np.inf) if non_negative else None
    found = minimize_convex(expand, start, lower=lower)
    slopes = found.point[:d] / spread
    return LogisticMap(slopes, float(found.point[d] - slopes @ centre), found.converged)


def _constant_score(centre: Vector, target: Vector, share: Vector) -> LogisticMap:
    rate = float(share @ target)
    return LogisticMap(np.zeros_like(centre), float(np.log(rate / (1 - rate))), True)


def fit_one_vs_rest(
    features: Matrix, targets: Matrix, weight: Vector, *, monotone: bool, prior_mass: float
) -> list[LogisticMap]:
    """Fit one logistic map per class, each leaning on a map fitted to all classes together.

    Parameters
    ----------
    features : ndarray of shape (n, K, d)
        Features of item i as a candidate for class k.
    targets : ndarray of shape (n, K)
        Soft labels.
    weight : ndarray of shape (n,)
        Weights of the items.
    monotone : bool
        Keep the slopes from being negative.
    prior_mass : float
        How strongly a class leans on the common map, in items; 0 fits every class alone.

    Returns
    -------
    maps : list of LogisticMap
        One per class. With two classes a single one, for the second class: the first is its mirror.
    """
    n, K, d = features.shape
    common = None
    if prior_mass > 0:
        common = fit_logistic(
            features.reshape(n * K, d),
            targets.ravel(),
            np.repeat(weight, K),
            non_negative=monotone,
        )
    return [
        fit_logistic(
            features[:, k],
            targets[:, k],
            weight,
            non_negative=monotone,
            prior=common,
            prior_mass=prior_mass,
        )
        for k in range(1 if K == 2 else 0, K)
    ]


def apply_one_vs_rest(slopes: Matrix, intercept: Vector, features: Matrix) -> Matrix:
    """Return normalised probabilities from the maps of :func:`fit_one_vs_rest`.

    ``slopes`` has one row and ``intercept`` one entry per map.
    """
    K = features.shape[1]
    if K == 2:
        z = features[:, 1] @ slopes[0] + intercept[0]
        return np.column_stack([expit(-z), expit(z)])
    return normalized_sigmoids(np.einsum("nkd,kd->nk", features, slopes) + intercept)


def normalized_sigmoids(Z: Matrix) -> Matrix:
    """Return ``expit(Z)`` with rows scaled to one, safe where every sigmoid underflows.

    Examples
    --------
    >>> import numpy as np
    >>> normalized_sigmoids(np.array([[-2000.0, -2000.0]]))
    array([[0.5, 0.5]])
    """
    L = log_expit(Z)
    Q = np.exp(L - L.max(axis=1, keepdims=True))
    return Q / Q.sum(axis=1, keepdims=True)
