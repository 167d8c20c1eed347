"""Local forests grown by scikit-learn: the pure twin of the compiled kernel, its oracle in tests.

One unpruned forest per neighbourhood, each tree pruned once along its path of minimal cost
complexity; the forests for all complexities are read off that path.
"""

from __future__ import annotations

import heapq

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.tree import DecisionTreeClassifier

from hetcal.kernels._checks import expect
from hetcal.kernels.parallel import n_threads

NO_NEIGHBOURS, ONE_CLASS, NO_SCORE = 1, 2, 3  # as in hetcal.kernels.local_forests


def score_neighbourhoods(
    X, draws, P, indptr, indices, seeds, alphas, select, n_jobs, progress, out, status, oob
) -> None:
    """Fill the outputs of :func:`hetcal.kernels.local_forests.local_forest_scores`."""
    tasks = [(i, j) for j in range(len(indptr) - 1) for i in range(len(draws))]
    results = Parallel(n_jobs=n_threads(n_jobs), prefer="threads", return_as="generator")(
        delayed(_score_one)(
            X, draws[i], P, indices[indptr[j] : indptr[j + 1]], seeds, alphas, select
        )
        for i, j in tasks
    )
    for (i, j), (values, found, oob_proba) in zip(tasks, results, strict=True):
        for name, value in values.items():
            out[name][i, j] = value
        status[i, j] = found
        if oob is not None:
            oob[i, indptr[j] : indptr[j + 1]] = oob_proba
        if progress is not None and i == len(draws) - 1:
            progress(j + 1, len(indptr) - 1)


def _score_one(X, codes, P, members, seeds, alphas, select):
    """Score one neighbourhood: the values that are known, the status, the oob predictions."""
    n_classes = P.shape[1]
    wanted = "indices must hold an item once in a neighbourhood"
    expect(len(np.unique(members)) == len(members), "local_forest_scores", wanted, "one twice")
    if len(members) == 0:
        return {}, NO_NEIGHBOURS, np.empty((0, n_classes))
    present, y = np.unique(codes[members], return_inverse=True)
    values = {"brier_model": _brier(P[members], codes[members])}
    everywhere = np.zeros((len(members), n_classes))
    if len(present) == 1:
        everywhere[:, present[0]] = 1.0
        return values, ONE_CLASS, everywhere if len(members) > 1 else everywhere * np.nan

    in_bag, out_of_bag, n_oob = forest_votes(X[members], y, len(present), seeds, alphas)
    seen = n_oob > 0
    oob_proba = out_of_bag / np.maximum(n_oob, 1)[:, None]
    correct = (oob_proba.argmax(axis=2) == y).sum(axis=1)
    oob_brier = [_brier(p[seen], y[seen]) if seen.any() else np.nan for p in oob_proba]
    if select == "accuracy":
        best = int(correct.argmax()) if correct.max() > 0 else -1
    else:
        best = int(np.argmin(oob_brier)) if seen.any() else -1

    used = max(best, 0)
    everywhere[:, present] = oob_proba[used]
    everywhere[~seen] = np.nan
    if best < 0:
        return values, NO_SCORE, everywhere
    local = (in_bag[best] + out_of_bag[best]) / len(seeds)
    values |= {
        "brier_local": _brier(local, y),
        "brier_oob": oob_brier[best],
        "alpha": alphas[best],
        "oob_score": correct[best] / len(members),
    }
    values["hh"] = max(values["brier_model"] - values["brier_local"], 0.0)
    return values, 0, everywhere


def _brier(proba: NDArray[np.float64], codes: NDArray[np.int64]) -> float:
    """Return the mean over items of the squared error summed over classes."""
    error = proba.copy()
    error[np.arange(len(codes)), codes] -= 1
    return float((error**2).sum() / len(codes))


def forest_votes(X, y, n_classes, seeds, alphas):
    """Grow the trees and add up their votes, apart for items in and out of each tree's bag.

    Returns
    -------
    in_bag, out_of_bag : ndarray of shape (n_alphas, n_items, n_classes)
        Sums of class probabilities over the trees whose bag holds (does not hold) the item.
    n_oob : ndarray of shape (n_items,)
        Number of trees whose bag does not hold the item.
    """
    n = len(X)
    in_bag = np.zeros((len(alphas), n, n_classes))
    out_of_bag = np.zeros_like(in_bag)
    n_oob = np.zeros(n, np.int64)
    complete = not np.isnan(X).any()
    for seed in seeds:
        drawn = np.random.RandomState(seed).randint(0, n, n)
        count = np.bincount(drawn, minlength=n)
        with config_context(skip_parameter_validation=True):
            classifier = DecisionTreeClassifier(random_state=int(seed))
            # check_input also looks for missing values, which must be known where there are any
            classifier.fit(X, y, sample_weight=count, check_input=not complete)
        tree = classifier.tree_
        leaf = tree.apply(X)
        votes = tree.value[:, 0, :][pruned_leaves(tree, alphas)[:, leaf]]
        outside = count == 0
        n_oob += outside
        out_of_bag[:, outside] += votes[:, outside]
        in_bag[:, ~outside] += votes[:, ~outside]
    return in_bag, out_of_bag, n_oob


def pruned_leaves(tree, alphas: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return, for each complexity and node, the leaf that stands for the node after pruning.

    Branches are collapsed one at a time, always the one with the smallest loss of impurity per leaf
    saved, the first of equals; the operations and their order are scikit-learn's, so that
    comparisons with ``alphas`` come out alike to the last bit.
    """
    left, right = tree.children_left.tolist(), tree.children_right.tolist()
    n_nodes = len(left)
    own = (tree.weighted_n_node_samples * tree.impurity / tree.weighted_n_node_samples[0]).tolist()
    parent = [-1] * n_nodes
    end = list(range(1, n_nodes + 1))  # one past the last node of the branch, in order of creation
    branch, n_leaves = [0.0] * n_nodes, [0] * n_nodes
    for node in range(n_nodes):
        if left[node] >= 0:
            parent[left[node]] = parent[right[node]] = node
    for node in range(n_nodes - 1, 0, -1):
        end[parent[node]] = max(end[parent[node]], end[node])
    for node in range(n_nodes):
        if left[node] < 0:
            above = parent[node]
            while above >= 0:
                branch[above] += own[node]
                n_leaves[above] += 1
                above = parent[above]

    largest = alphas[-1]
    heap: list[tuple[float, int]] = []
    current = [np.inf] * n_nodes

    def offer(node: int) -> None:
        current[node] = (own[node] - branch[node]) / (n_leaves[node] - 1)
        if current[node] <= largest:  # anything dearer can never be collapsed first
            heapq.heappush(heap, (current[node], node))

    for node in range(n_nodes):
        if left[node] >= 0:
            offer(node)

    stands_for = np.empty((len(alphas), n_nodes), np.intp)
    stands_for[0] = np.arange(n_nodes)
    filled = 0 if alphas[0] == 0 else -1  # complexity 0 is no pruning at all
    gone = bytearray(n_nodes)
    collapsed = np.arange(n_nodes)
    while heap:
        price, node = heapq.heappop(heap)
        if gone[node] or price != current[node]:
            continue
        while filled + 1 < len(alphas) and alphas[filled + 1] < price:
            filled += 1
            stands_for[filled] = collapsed
        collapsed[node : end[node]] = node
        gone[node : end[node]] = b"\x01" * (end[node] - node)
        saved = n_leaves[node] - 1
        loss = own[node] - branch[node]
        above = parent[node]
        while above >= 0:
            n_leaves[above] -= saved
            branch[above] += loss
            offer(above)
            above = parent[above]
    stands_for[filled + 1 :] = collapsed
    return stands_for
