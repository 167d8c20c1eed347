r"""A conformal test martingale: evidence against the exchangeability of new and reference items.

A capital of 1 is bet, item by item, on conformal p-values being smaller than uniform ones. While
they are uniform no bet has an advantage: the capital M is a martingale, and by Ville's inequality

.. math:: P(\sup_t M_t \ge 1/\alpha) \le \alpha ,

so an alarm at :math:`M \ge 1/\alpha` is false with probability at most :math:`\alpha`, *ever*. The
betting functions are :math:`f(p) = 1 - w + w g(p)` with g a decreasing density on (0, 1): all items
shift a little (:math:`g = \kappa p^{\kappa - 1}`), or a share w of them lies among the lowest
(:math:`g = b (1 - p)^{b - 1}`). Half of the capital is bet from the start; the other half is a
reserve that is paid into the bets little by little, so that a late shift is found too: by then the
first half may have been lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import stored
from hetcal._stored.fields import count, numbers, whole
from hetcal._typing import Matrix, Vector

# Density, share w, and its kappa or b.
BETTING_FUNCTIONS = (
    ("power", 1.0, 0.75),
    ("power", 1.0, 0.5),
    ("power", 1.0, 0.25),
    ("lowest", 0.3, 20.0),
    ("lowest", 0.1, 20.0),
    ("lowest", 0.1, 100.0),
    ("lowest", 0.03, 300.0),
)
#: After t items about sqrt(c / (c + t)) of the reserve is left, with this c.
_PATIENCE = 50.0
_LEAST_P = 1e-12


@stored(
    {
        # Logarithms: an item adds some dozens at most.
        "capital": numbers(None, 1 + len(BETTING_FUNCTIONS), low=-1e18, high=1e18),
        "n_items": count,
        "n_processes": whole(1, 1 << 60),
    },
    inline=True,
)
@dataclass(frozen=True, eq=False)
class Martingale:
    """One martingale per score; the evidence is their mean.

    Attributes
    ----------
    capital : ndarray of shape (n_scores, 1 + n_betting_functions)
        Logarithm of the reserve, then of the capital on each betting function.
    n_items : int
        Items that were bet on.
    n_processes : int
        How many processes the capital is the mean of.
    """

    capital: Matrix
    n_items: int = 0
    n_processes: int = 1

    @classmethod
    def start(cls, n_scores: int) -> Martingale:
        """Return a capital of 1 for each score, half of it in reserve."""
        each = np.log(0.5 / len(BETTING_FUNCTIONS))
        capital = np.concatenate([[np.log(0.5)], np.full(len(BETTING_FUNCTIONS), each)])
        return cls(np.stack([capital] * n_scores))

    @property
    def log_value(self) -> float:
        """Logarithm of the whole capital, the mean over the scores."""
        return float(log_mean(np.logaddexp.reduce(self.capital, axis=1)))

    def after(self, p: Matrix) -> tuple[Martingale, Matrix]:
        """Bet on p-values one after the other.

        Parameters
        ----------
        p : ndarray of shape (n_scores, m), m > 0

        Returns
        -------
        Martingale
            After the last item.
        logs : ndarray of shape (n_scores, m)
            Logarithm of the whole capital of each score after each item.
        """
        paid = 0.5 / (self.n_items + 1 + np.arange(p.shape[1]) + _PATIENCE)
        reserve = self.capital[:, :1] + np.cumsum(np.log1p(-paid))
        entering = np.hstack([self.capital[:, :1], reserve[:, :-1]])
        entering = entering + np.log(paid / len(BETTING_FUNCTIONS))
        growth = np.cumsum(np.log(betting_values(p)), axis=1)
        # Divided by its growth so far, capital only changes by what enters before each item.
        before = np.concatenate([np.zeros_like(growth[:, :1]), growth[:, :-1]], axis=1)
        entered = [self.capital[:, None, 1:], entering[..., None] - before]
        in_bets = growth + np.logaddexp.accumulate(np.concatenate(entered, axis=1), axis=1)[:, 1:]
        logs = np.logaddexp.reduce(np.concatenate([reserve[..., None], in_bets], axis=2), axis=2)
        capital = np.hstack([reserve[:, -1:], in_bets[:, -1]])
        return Martingale(capital, self.n_items + p.shape[1], self.n_processes), logs

    def merged(self, other: Martingale) -> Martingale:
        """Return the mean of both, weighted by the processes that each comes from.

        One that has bet on nothing has no weight.
        """
        weights = np.array(
            [m.n_processes * (m.n_items > 0) for m in (self, other)], dtype=np.float64
        )
        if not weights.any():
            return Martingale(self.capital)
        capital = log_mean(np.stack([self.capital, other.capital]), weights)
        return Martingale(capital, self.n_items + other.n_items, int(weights.sum()))


def betting_values(p: Matrix) -> NDArray[np.float64]:
    """Return what a capital of 1 on each betting function becomes; one more axis than ``p``."""
    p = np.maximum(p, _LEAST_P)
    values = []
    for kind, share, a in BETTING_FUNCTIONS:
        density = a * p ** (a - 1) if kind == "power" else a * (1 - p) ** (a - 1)
        values.append(1 - share + share * density)
    return np.stack(values, axis=-1)


def log_mean(logs: Matrix, weights: Vector | None = None) -> Vector:
    """Return the logarithm of the (weighted) mean of exp(logs) over the first axis.

    However the capitals depend on each other, their mean is expected to be 1 at any one time; and
    where it reaches a bound, one of them has.
    """
    share = np.ones(len(logs)) if weights is None else np.asarray(weights, dtype=np.float64)
    with np.errstate(divide="ignore"):  # a weight of zero
        share = np.log(share / share.sum())
    return np.logaddexp.reduce(logs + share.reshape(-1, *[1] * (np.ndim(logs) - 1)), axis=0)
