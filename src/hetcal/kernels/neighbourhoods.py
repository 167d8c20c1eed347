r"""Neighbourhoods on the probability simplex: which items a prediction is compared with.

Distances are Hellinger distances, :math:`D_H(p, q) = \lVert\sqrt p - \sqrt q\rVert_2 / \sqrt 2`, in
[0, 1]. A list of neighbourhoods is kept as two arrays ``(indptr, indices)``: the items of
neighbourhood ``j`` are ``indices[indptr[j]:indptr[j + 1]]``.
"""

from __future__ import annotations

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy import sparse

from hetcal._compat import neighbour_search
from hetcal._typing import Matrix
from hetcal.kernels._checks import check_indices, check_starts

Indexes = NDArray[np.int64]

_CHUNK = 1024  # points compared with all leaders at once; bounds the memory of `simplex_net`


def hellinger_balls(P: Matrix, centres: Matrix, radius: float = 0.1) -> tuple[Indexes, Indexes]:
    """Find the items within a Hellinger ball around each centre.

    An item at distance ``radius`` exactly belongs to the ball. The order of the items within a
    neighbourhood is the one in which scikit-learn's ``NearestNeighbors`` returns them unsorted; the
    bootstrap of a local forest draws positions, so the published estimate depends on it.

    Parameters
    ----------
    P : ndarray of shape (n_items, n_classes)
        Probabilities of the calibration items.
    centres : ndarray of shape (n_centres, n_classes)
        Centres of the balls.
    radius : float, default=0.1
        Hellinger radius. 0 keeps exact copies only; 1 or more, or infinity, keeps every item.

    Returns
    -------
    indptr : ndarray of shape (n_centres + 1,)
    indices : ndarray of shape (n_members,)

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.5, 0.5], [0.9, 0.1], [0.52, 0.48]])
    >>> hellinger_balls(P, np.array([[0.5, 0.5], [0.01, 0.99]]), radius=0.1)
    (array([0, 2, 2]), array([0, 2]))
    """
    if not radius >= 0:
        raise ValueError(f"radius must be non-negative; got {radius}. The paper uses 0.1.")
    n_items, n_centres = len(P), len(centres)
    if n_items == 0 or n_centres == 0:
        return np.zeros(n_centres + 1, np.int64), np.zeros(0, np.int64)
    if np.isinf(radius):
        indptr = np.arange(n_centres + 1, dtype=np.int64) * n_items
        return indptr, np.tile(np.arange(n_items, dtype=np.int64), n_centres)
    with neighbour_search():
        search = sklearn.neighbors.NearestNeighbors(radius=radius * np.sqrt(2)).fit(np.sqrt(P))
        members = search.radius_neighbors(np.sqrt(centres), return_distance=False)
    indptr = np.zeros(n_centres + 1, np.int64)
    np.cumsum([len(m) for m in members], out=indptr[1:])
    return indptr, np.concatenate(members).astype(np.int64, copy=False)


def three_decimal_buckets(P: Matrix) -> tuple[Indexes, Indexes]:
    """Group predictions whose probabilities agree when cut (not rounded) to three decimals.

    The published code computes one value per bucket, for the first item that falls into it, and
    hands it to all later ones; so the result depends on the order of the items.

    Parameters
    ----------
    P : ndarray of shape (n_items, n_classes)

    Returns
    -------
    first : ndarray of shape (n_buckets,)
        The item that decides each bucket, buckets in order of appearance.
    bucket : ndarray of shape (n_items,)
        The bucket of each item.

    Examples
    --------
    >>> import numpy as np
    >>> three_decimal_buckets(np.array([[0.1239, 0.8761], [0.2, 0.8], [0.1231, 0.8769]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    if len(P) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    keys = (np.asarray(P) * 1000).astype(np.int64)
    _, first, bucket = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    rank = np.empty_like(by_appearance)
    rank[by_appearance] = np.arange(len(first))
    return first[by_appearance], rank[bucket.reshape(-1)]


def simplex_net(P: Matrix, spacing: float = 0.01) -> Matrix:
    """Choose few points of ``P`` so that every point of ``P`` lies near one of them.

    Points are visited in lexicographic order and become a leader when no earlier leader lies within
    ``spacing``; so the net depends on the set of rows, not on their order. Leaders are more than
    ``spacing`` apart: for two classes there are never more than ``1 + 1.11 / spacing``.

    Parameters
    ----------
    P : ndarray of shape (n_items, n_classes)
        Probabilities, usually of the calibration items.
    spacing : float, default=0.01
        Hellinger distance, a tenth of the radius in use. 0 keeps every distinct row.

    Returns
    -------
    leaders : ndarray of shape (n_leaders, n_classes)
        Rows of ``P``, in lexicographic order.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.5, 0.5], [0.9, 0.1], [0.501, 0.499]])
    >>> simplex_net(P, spacing=0.01)
    array([[0.5, 0.5],
           [0.9, 0.1]])
    """
    rows = np.unique(np.asarray(P, dtype=np.float64), axis=0)
    points = np.sqrt(rows)
    leaders: list[int] = []
    for start in range(0, len(points), _CHUNK):
        chunk = points[start : start + _CHUNK]
        free = _distance_to_nearest(chunk, points[leaders]) > spacing
        for i in np.flatnonzero(free):
            if free[i]:  # may have been covered by a leader found a moment ago
                leaders.append(start + int(i))
                free &= _hellinger_from_roots(chunk, chunk[i]) > spacing
    return rows[leaders]


def nearest_leader(leaders: Matrix, P: Matrix, spacing: float = 0.01) -> Indexes:
    """Assign each prediction to its nearest leader, or to -1 where none lies within ``spacing``.

    Parameters
    ----------
    leaders : ndarray of shape (n_leaders, n_classes)
        From :func:`simplex_net`.
    P : ndarray of shape (n_items, n_classes)
    spacing : float, default=0.01

    Returns
    -------
    cell : ndarray of shape (n_items,)
        Position of the leader. An item marked -1 lies where no calibration item is near; give it a
        ball of its own.

    Examples
    --------
    >>> import numpy as np
    >>> leaders = np.array([[0.5, 0.5], [0.9, 0.1]])
    >>> nearest_leader(leaders, np.array([[0.898, 0.102], [0.1, 0.9]]), spacing=0.01)
    array([ 1, -1])
    """
    cell = np.full(len(P), -1, np.int64)
    if len(leaders) == 0 or len(P) == 0:
        return cell
    with neighbour_search():
        search = sklearn.neighbors.NearestNeighbors(n_neighbors=1, algorithm="ball_tree").fit(
            np.sqrt(leaders)
        )
        distance, nearest = search.kneighbors(np.sqrt(P))
    near = distance[:, 0] <= spacing * np.sqrt(2)
    cell[near] = nearest[near, 0]
    return cell


def merge_overlapping(
    indptr: Indexes, indices: Indexes, n_items: int, *, overlap: float = 0.9
) -> tuple[Indexes, Indexes]:
    """Merge neighbourhoods that share almost all their items.

    The overlap of two neighbourhoods is their Jaccard index, common items over all items. Each
    neighbourhood joins the earlier kept one that it overlaps most, if by at least ``overlap``; else
    it is kept. Empty neighbourhoods are one and the same.

    Parameters
    ----------
    indptr, indices : ndarray
        Neighbourhoods, no item twice in one.
    n_items : int
        Number of calibration items.
    overlap : float, default=0.9
        1 merges equal sets only; above 1 merges nothing.

    Returns
    -------
    kept : ndarray of shape (n_kept,)
        The neighbourhoods to be computed.
    group : ndarray of shape (n_neighbourhoods,)
        For each neighbourhood, its place in ``kept``.

    Examples
    --------
    >>> import numpy as np
    >>> merge_overlapping(np.array([0, 3, 6, 8]), np.array([0, 1, 2, 2, 1, 0, 3, 4]), 5)
    (array([0, 2]), array([0, 0, 1]))
    """
    check_starts("merge_overlapping", "indptr", indptr, len(indices))
    check_indices("merge_overlapping", "indices", indices, n_items)
    n_sets = len(indptr) - 1
    members = sparse.csr_matrix(
        (np.ones(len(indices), np.int32), indices, indptr), shape=(n_sets, n_items)
    )
    common = (members @ members.T).tocsr()
    size = np.diff(indptr)
    place = np.full(n_sets, -1, np.int64)  # place in `kept`, of those that are kept
    kept: list[int] = []
    group = np.empty(n_sets, np.int64)
    empty_group = -1
    for j in range(n_sets):
        row = slice(common.indptr[j], common.indptr[j + 1])
        others, shared = common.indices[row], common.data[row]
        earlier = place[others] >= 0
        others, shared = others[earlier], shared[earlier]
        jaccard = shared / (size[j] + size[others] - shared)
        if size[j] == 0 and empty_group >= 0 and overlap <= 1:
            group[j] = empty_group
        elif len(others) and jaccard.max() >= overlap:
            group[j] = place[others[jaccard == jaccard.max()].min()]
        else:
            group[j] = place[j] = len(kept)
            kept.append(j)
            if size[j] == 0:
                empty_group = group[j]
    return np.array(kept, np.int64), group


def take_neighbourhoods(
    indptr: Indexes, indices: Indexes, which: Indexes
) -> tuple[Indexes, Indexes]:
    """Select neighbourhoods by number, as :func:`numpy.take` does for rows.

    Examples
    --------
    >>> import numpy as np
    >>> take_neighbourhoods(np.array([0, 2, 3, 5]), np.array([7, 8, 9, 5, 6]), np.array([2, 0]))
    (array([0, 2, 4]), array([5, 6, 7, 8]))
    """
    check_starts("take_neighbourhoods", "indptr", indptr, len(indices))
    size = np.diff(indptr)[which]
    taken = np.zeros(len(which) + 1, np.int64)
    np.cumsum(size, out=taken[1:])
    shift = np.repeat(indptr[:-1][which] - taken[:-1], size)
    return taken, indices[shift + np.arange(taken[-1])]


def _hellinger_from_roots(roots: Matrix, root: Matrix) -> NDArray[np.float64]:
    return np.sqrt(((roots - root) ** 2).sum(axis=1) / 2)


def _distance_to_nearest(roots: Matrix, leaders: Matrix) -> NDArray[np.float64]:
    if len(leaders) == 0:
        return np.full(len(roots), np.inf)
    with neighbour_search():
        search = sklearn.neighbors.NearestNeighbors(n_neighbors=1, algorithm="ball_tree").fit(
            leaders
        )
        return search.kneighbors(roots)[0][:, 0] / np.sqrt(2)
