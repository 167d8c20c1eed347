r"""Evidence against "nothing has changed": a conformal test martingale.

A gambler starts with capital 1 and bets, item by item, that p-values are smaller than uniform ones.
While they are uniform no bet has an advantage: the capital M is a martingale, and by Ville's
inequality

.. math:: P(\sup_t M_t \ge 1/\alpha) \le \alpha ,

so an alarm at :math:`M \ge 1/\alpha` is false with probability at most :math:`\alpha`, *ever*. The
bets are :math:`f(p) = 1 - w + w g(p)` with g a density on (0, 1) that falls: all items shift a
little (:math:`g = \kappa p^{\kappa - 1}`), or a share w of them lies among the lowest
(:math:`g = b (1 - p)^{b - 1}`). Half the capital is at stake from the start; the other half rests
and enters the bets bit by bit, so that a long quiet time does not ruin the gambler before the
shift.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

# Density, share w, and its kappa or b.
BETS = (
    ("power", 1.0, 0.75),
    ("power", 1.0, 0.5),
    ("power", 1.0, 0.25),
    ("lowest", 0.3, 20.0),
    ("lowest", 0.1, 20.0),
    ("lowest", 0.1, 100.0),
    ("lowest", 0.03, 300.0),
)
_PATIENCE = 50.0
_LEAST_P = 1e-12


def start() -> Vector:
    """Return the logarithm of the capital at rest (half), then of that in each bet."""
    each = np.log(0.5 / len(BETS))
    return np.concatenate([[np.log(0.5)], np.full(len(BETS), each)])


def odds(p: Vector) -> Vector:
    """Return what one unit becomes in each bet, shape (m, n_bets)."""
    p = np.maximum(p, _LEAST_P)
    columns = []
    for kind, share, a in BETS:
        density = a * p ** (a - 1) if kind == "power" else a * (1 - p) ** (a - 1)
        columns.append(1 - share + share * density)
    return np.column_stack(columns)


def play(capital: Vector, n_before: int, p: Vector) -> tuple[Vector, Vector]:
    """Bet on p-values one after the other.

    Parameters
    ----------
    capital : ndarray of shape (1 + n_bets,)
        Logarithms, from :func:`start` or from the last call.
    n_before : int
        Items that were bet on before.
    p : ndarray of shape (m,)

    Returns
    -------
    capital : ndarray of shape (1 + n_bets,)
        Logarithms after the last item.
    total : ndarray of shape (m,)
        Logarithm of the whole capital after each item.
    """
    if len(p) == 0:
        return capital, np.zeros(0)
    flow = 0.5 / (n_before + 1 + np.arange(len(p)) + _PATIENCE)
    rest = capital[0] + np.cumsum(np.log1p(-flow))
    entering = np.concatenate([[capital[0]], rest[:-1]]) + np.log(flow / len(BETS))
    won = np.cumsum(np.log(odds(p)), axis=0)
    # In units of the winnings so far, capital only grows by what enters before each bet.
    before = np.vstack([np.zeros(len(BETS)), won[:-1]])
    stake = np.vstack([capital[1:], entering[:, None] - before])
    in_bets = won + np.logaddexp.accumulate(stake, axis=0)[1:]
    total = np.logaddexp.reduce(np.column_stack([rest, in_bets]), axis=1)
    return np.concatenate([rest[-1:], in_bets[-1]]), total


def log_mean(logs: Vector, weights: Vector | None = None) -> Vector:
    """Return the logarithm of the (weighted) mean of exp(logs) over the first axis.

    However the capitals depend on each other, their mean is expected to be 1 at any one time; and
    where it reaches a bound, one of them has.
    """
    share = np.ones(len(logs)) if weights is None else np.asarray(weights, dtype=np.float64)
    with np.errstate(divide="ignore"):  # a weight of zero
        share = np.log(share / share.sum())
    return np.logaddexp.reduce(logs + share.reshape(-1, *[1] * (np.ndim(logs) - 1)), axis=0)
