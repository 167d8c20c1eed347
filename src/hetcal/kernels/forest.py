"""Forests as arrays: fit, leaves, votes, similar items, out-of-bag votes.

One import for all forest kernels; each has a compiled form and a pure twin with the same results.

Examples
--------
The similarity-weighted vote of 200 calibration items about three rows, and its support:

>>> import numpy as np
>>> from sklearn.datasets import make_moons
>>> X, y = make_moons(200, noise=0.3, random_state=0)
>>> forest = fit_forest(X, y, 2)
>>> mass = leaf_class_mass(forest.n_leaves, apply(forest, X), y, 2)
>>> votes = vote(forest, X[:3], mass) / forest.n_trees
>>> votes.shape, bool((votes.sum(axis=1) > 0).all())
((3, 2), True)
"""

from hetcal.kernels.binned_features import BinnedFeatures, bin_features
from hetcal.kernels.forest_binned import BinnedForest
from hetcal.kernels.forest_fit import fit_forest
from hetcal.kernels.forest_frequencies import leaf_frequencies, out_of_bag_means
from hetcal.kernels.forest_model import Forest, from_sklearn
from hetcal.kernels.forest_neighbours import (
    LeafItems,
    NeighbourVotes,
    Queries,
    build_index,
    neighbour_vote,
    neighbour_votes,
    out_of_bag_leaves,
    pairwise,
    queries_from_leaves,
    thresholded_vote,
    top_items,
)
from hetcal.kernels.forest_out_of_bag import (
    leaves_of_some_trees,
    out_of_bag_pair,
    out_of_bag_sum,
    out_of_bag_vote,
    vote_by_some_trees,
    voter_mass,
)
from hetcal.kernels.forest_vote import LeafMass, apply, leaf_class_mass, vote, vote_leaves

__all__ = [
    "BinnedFeatures",
    "BinnedForest",
    "Forest",
    "LeafItems",
    "LeafMass",
    "NeighbourVotes",
    "Queries",
    "apply",
    "bin_features",
    "build_index",
    "fit_forest",
    "from_sklearn",
    "leaf_class_mass",
    "leaf_frequencies",
    "leaves_of_some_trees",
    "neighbour_vote",
    "neighbour_votes",
    "out_of_bag_leaves",
    "out_of_bag_means",
    "out_of_bag_pair",
    "out_of_bag_sum",
    "out_of_bag_vote",
    "pairwise",
    "queries_from_leaves",
    "thresholded_vote",
    "top_items",
    "vote",
    "vote_by_some_trees",
    "vote_leaves",
    "voter_mass",
]
