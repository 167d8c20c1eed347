"""Whether the labels go with other columns of the probabilities than their own.

A column that is taken for the probability of another class turns every result into nonsense, and
nothing fails. It shows in the ranking: items of a class should have higher values in their own
column than items of other classes (an AUC above one half).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from hetcal._exceptions import ColumnOrderWarning, levels_to_caller
from hetcal._typing import Matrix, Rows

# In the order that fits every class that moves has at least this AUC with its column, ...
_CLEAR_AUC = 0.6
# ... on average at most this part of the way from one half to it with the column it has now, ...
_HARDLY = 0.1
# ... and all of it is further from one half than chance makes the best of all orders, by so many
# standard errors: with two classes z > 3.3, which one of 2000 models without any knowledge has.
_BEYOND_CHANCE = 3.0
# A model may know nothing if its AUC is less than so many standard errors above one half.
_CHANCE = 1.96
# Fewer items tell nothing about a model: so many of the classes that move, or of their others.
_FEWEST = 20
# Looked at; of more, rows at equal distances, but still so many for each class.
_CELLS, _ROWS_PER_CLASS = 500_000, 10


@dataclass(frozen=True)
class ColumnOrder:
    """An order of the columns that the labels go with, where they do not go with the given one.

    Attributes
    ----------
    class_of : ndarray of shape (K,)
        For each column, the number of the class that it fits.
    auc : float
        Mean AUC of the classes concerned with the columns that they have now.
    right, right_then : float
        Share of items whose most probable class is the label: now, and in the order that fits.
    """

    class_of: Rows
    auc: float
    right: float
    right_then: float


def find_column_order(
    codes: Rows, P: Matrix, weight: Matrix | None = None, groups: Rows | None = None
) -> ColumnOrder | None:
    """Return the order of the columns that clearly fits, where the given one clearly does not.

    A model that knows nothing has no such order, and neither have a handful of items. Rows of one
    group count as one item.

    Examples
    --------
    >>> codes = np.arange(200) % 2
    >>> P = np.where(codes[:, None] == [0, 1], 0.8, 0.2)
    >>> find_column_order(codes, P) is None
    True
    >>> find_column_order(codes, P[:, ::-1])
    ColumnOrder(class_of=array([1, 0]), auc=0.0, right=0.0, right_then=1.0)
    """
    K = P.shape[1]
    codes, P, weight, groups = _looked_at(codes, P, weight, groups)
    aucs, errors, sizes = _aucs(codes, P, weight, groups)
    z = (aucs - 0.5) / errors[:, None]
    _, column = scipy.optimize.linear_sum_assignment(z, maximize=True)
    moved = np.flatnonzero((column != np.arange(K)) & (sizes > 0))
    if moved.size < 2 or sizes[moved].sum() < _FEWEST:
        return None
    own, other = aucs[moved, moved] - 0.5, aucs[moved, column[moved]] - 0.5
    # Of labels that have to do with no column the best order has about this sum, by chance.
    chance = np.sqrt(2 * moved.size * np.log(K)) + _BEYOND_CHANCE
    certain = z[moved, column[moved]].sum() / np.sqrt(moved.size) > chance
    if not certain or other.min() < _CLEAR_AUC - 0.5 or own.mean() > _HARDLY * other.mean():
        return None
    class_of, top = np.argsort(column), P.argmax(axis=1)
    return ColumnOrder(
        class_of,
        float(own.mean() + 0.5),
        float(np.average(top == codes, weights=weight)),
        float(np.average(class_of[top] == codes, weights=weight)),
    )


def auc_of_chance(
    codes: Rows, P: Matrix, weight: Matrix | None = None, groups: Rows | None = None
) -> float | None:
    """Return the mean AUC of the classes with their columns, unless it is better than chance.

    Classes count by how many items say something about them. A handful of items say nothing.

    Examples
    --------
    >>> codes = np.arange(200) % 2
    >>> P = np.column_stack([np.arange(200), np.arange(200)[::-1]]) / 199
    >>> round(auc_of_chance(codes, P), 3)
    0.495
    >>> auc_of_chance(np.arange(200) // 100, P[:, ::-1]) is None
    True
    """
    aucs, errors, sizes = _aucs(*_looked_at(codes, P, weight, groups))
    known = np.isfinite(errors)
    if sizes[known].max(initial=0) < _FEWEST:
        return None
    # As if the errors of all classes were one and the same, which those of two classes are.
    auc = float(np.average(aucs.diagonal()[known], weights=sizes[known]))
    error = float(np.average(errors[known], weights=sizes[known]))
    return auc if auc - 0.5 < _CHANCE * error else None


def _looked_at(
    codes: Rows, P: Matrix, weight: Matrix | None, groups: Rows | None
) -> tuple[Rows, Matrix, Matrix, Rows]:
    """Return the rows that are looked at, with weights of at most 1 and groups."""
    n, K = P.shape
    rows = slice(None, None, max(1, n // max(_CELLS // K, _ROWS_PER_CLASS * K)))
    codes = codes[rows]
    weight = np.ones(codes.shape[0]) if weight is None else weight[rows] / weight.max()
    groups = np.arange(codes.shape[0]) if groups is None else groups[rows]
    return codes, P[rows], weight, groups


def warn_column_order(
    codes: Rows,
    P: Matrix,
    classes: NDArray,
    *,
    name: str,
    weight: Matrix | None = None,
    groups: Rows | None = None,
) -> None:
    """Warn where the columns clearly belong to the classes in another order.

    The text holds no figures: Python shows a warning once per line of code and text, so that fits
    to parts of the same items do not repeat it.
    """
    found = find_column_order(codes, P, weight, groups)
    if found is None:
        return
    order = classes[found.class_of].tolist()
    warnings.warn(
        f"{name} ranks the labels the wrong way round (p < 0.001). Its columns are read as the "
        f"classes {_shown(classes.tolist())} and fit the order {_shown(order)}. Pass classes="
        f"{_shown(order)}, or the columns in the order of the classes; a single column is the "
        "probability of the second class.",
        ColumnOrderWarning,
        stacklevel=levels_to_caller(),
    )


def _aucs(codes: Rows, P: Matrix, weight: Matrix, groups: Rows) -> tuple[Matrix, Matrix, Matrix]:
    """Return the AUC of each class with each column, its standard error without knowledge, sizes.

    The size is how many items there are of the class or of others, whichever are fewer. A class
    that no item has, or every item, has an infinite error.
    """
    K = P.shape[1]
    mass = np.bincount(codes, weight, minlength=K)
    rest = mass.sum() - mass
    known = (mass > 0) & (rest > 0)
    aucs, pairs = np.full((K, K), 0.5), mass * rest
    for j in range(K):
        _, place = np.unique(P[:, j], return_inverse=True)
        of_value = np.bincount(place, weight)
        below = (np.cumsum(of_value) - of_value / 2)[place]
        ranks = np.bincount(codes, weight * below, minlength=K)
        aucs[known, j] = ((ranks - mass**2 / 2)[known]) / pairs[known]
    of_group = np.bincount(groups, weight)
    n = of_group.sum() ** 2 / (of_group**2).sum()  # so many equal groups say as much
    of_class, of_others = n * mass / mass.sum(), n * rest / mass.sum()
    errors = np.full(K, np.inf)
    errors[known] = np.sqrt((n + 1) / (12 * of_class * of_others)[known])
    return aucs, errors, np.minimum(of_class, of_others)


def _shown(labels: list, most: int = 10) -> str:
    shown = ", ".join(repr(label) for label in labels[:most])
    return f"[{shown}{', ...' if len(labels) > most else ''}]"
