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
from typing import Any

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
        return cls(start_capital(n_scores, len(BETTING_FUNCTIONS)))

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
        capital, logs = bet(self.capital, self.n_items, np.log(betting_values(p)))
        return Martingale(capital, self.n_items + p.shape[1], self.n_processes), logs

    def merged(self, other: Martingale) -> Martingale:
        """Return the mean of both, weighted by the processes that each comes from.

        One that has bet on nothing has no weight.
        """
        capital, n_processes = mean_capital(self, other)
        return Martingale(capital, self.n_items + other.n_items, n_processes)


def start_capital(n_tests: int, n_bets: int) -> Matrix:
    """Return the logarithms of a capital of 1 for each test: half in reserve, half on the bets."""
    return np.tile(np.log(np.append(0.5, np.full(n_bets, 0.5 / n_bets))), (n_tests, 1))


def bet(capital: Matrix, n_items: int, growth: NDArray[np.float64]) -> tuple[Matrix, Matrix]:
    """Bet on items one after the other.

    Parameters
    ----------
    capital : ndarray of shape (n_tests, 1 + n_bets)
        Logarithm of the reserve, then of the capital on each bet.
    n_items : int
        Items that were bet on before.
    growth : ndarray of shape (n_tests, m, n_bets), m > 0
        Logarithm of what each item makes of a capital of 1 on each bet.

    Returns
    -------
    capital : ndarray of shape (n_tests, 1 + n_bets)
        After the last item.
    logs : ndarray of shape (n_tests, m)
        Logarithm of the whole capital of each test after each item.
    """
    paid = 0.5 / (n_items + 1 + np.arange(growth.shape[1]) + _PATIENCE)
    reserve = capital[:, :1] + np.cumsum(np.log1p(-paid))
    entering = np.hstack([capital[:, :1], reserve[:, :-1]]) + np.log(paid / growth.shape[2])
    growth = np.cumsum(growth, axis=1)
    # Divided by its growth so far, capital only changes by what enters before each item.
    before = np.concatenate([np.zeros_like(growth[:, :1]), growth[:, :-1]], axis=1)
    entered = [capital[:, None, 1:], entering[..., None] - before]
    in_bets = growth + np.logaddexp.accumulate(np.concatenate(entered, axis=1), axis=1)[:, 1:]
    logs = np.logaddexp.reduce(np.concatenate([reserve[..., None], in_bets], axis=2), axis=2)
    return np.hstack([reserve[:, -1:], in_bets[:, -1]]), logs


def mean_capital(one: Any, other: Any) -> tuple[Matrix, int]:
    """Return the mean capital of two, weighted by their processes, and how many these are.

    Each has ``capital``, ``n_items`` and ``n_processes``; one that has bet on nothing has no
    weight.
    """
    weights = np.array([m.n_processes * (m.n_items > 0) for m in (one, other)], dtype=np.float64)
    if not weights.any():
        return one.capital, 1
    return log_mean(np.stack([one.capital, other.capital]), weights), int(weights.sum())


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
