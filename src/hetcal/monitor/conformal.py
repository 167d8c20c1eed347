r"""Conformal p-values: the rank of a new item's score among reference scores.

Everywhere here a *low* score is an atypical one. With n reference scores,

.. math:: p = \frac{\#\{i : s_i < s\} + U\,(1 + \#\{i : s_i = s\})}{n + 1},

with U uniform on (0, 1): uniform when the new item and the reference are exchangeable.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._typing import Rows, Vector

_CHUNK = 256


def p_values(reference: Vector, scores: Vector, uniform: Vector) -> Vector:
    """Return the p-value of each score among a *sorted* reference; ties are broken by ``uniform``.

    Examples
    --------
    >>> p_values(np.arange(9.0), np.array([-1.0, 4.5]), np.array([0.5, 0.5]))
    array([0.05, 0.55])
    """
    below = np.searchsorted(reference, scores, side="left")
    tied = np.searchsorted(reference, scores, side="right") - below
    return (below + uniform * (tied + 1)) / (len(reference) + 1)


def running_p_values(counts: Rows, bins: Rows, uniform: Vector) -> Vector:
    """Return the p-value of each item among all that came before it, and count it; in place.

    Parameters
    ----------
    counts : ndarray of int of shape (N_BINS,)
        How many earlier items lie in each bin; the new ones are added.
    bins : ndarray of int of shape (m,)
        Bins of the new items, in their order.

    Notes
    -----
    If all items are exchangeable, these p-values are independent and uniform, whatever the bins, as
    long as those do not depend on the items.
    """
    p = np.empty(len(bins))
    for start in range(0, len(bins), _CHUNK):
        part = bins[start : start + _CHUNK]
        up_to = np.cumsum(counts)
        earlier = np.tri(len(part), k=-1, dtype=bool)
        less = up_to[part] - counts[part] + ((part[None, :] < part[:, None]) & earlier).sum(axis=1)
        tied = counts[part] + ((part[None, :] == part[:, None]) & earlier).sum(axis=1)
        before = up_to[-1] + np.arange(len(part))
        p[start : start + _CHUNK] = (less + uniform[start : start + _CHUNK] * (tied + 1)) / (
            before + 1
        )
        np.add.at(counts, part, 1)
    return p


def pair_scores(references: list[Vector], scores: list[Vector], *, inside: bool) -> Vector:
    """Return the smallest of each item's ranks among several sorted references, as a share.

    Parameters
    ----------
    inside : bool
        Whether the scores are those of the reference itself, so that each counts itself already.
    """
    ranks = []
    for reference, values in zip(references, scores, strict=True):
        up_to = np.searchsorted(reference, values, side="right")
        ranks.append(up_to / len(reference) if inside else (up_to + 1) / (len(reference) + 1))
    return np.min(ranks, axis=0)


def discoveries(p: Any, rate: float) -> NDArray[np.bool_]:
    """Return which p-values Benjamini and Hochberg's rule picks at a false-discovery rate.

    Examples
    --------
    >>> discoveries([0.001, 0.02, 0.9], 0.1)
    array([ True,  True, False])
    """
    p = np.asarray(p, dtype=np.float64)
    m = len(p)
    ordered = np.sort(p)
    passed = np.flatnonzero(ordered <= rate * np.arange(1, m + 1) / max(m, 1))
    return p <= ordered[passed[-1]] if len(passed) else np.zeros(m, dtype=bool)
