// Binary trees as Python holds them: arrays with one entry per node, one tree after the other.
//
// Proven here, so that every walk stays inside and ends: children lie in their tree and after their parent, every node
// but the roots is the child of exactly one node, and features exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "checks.hpp"
#include "forest_arrays.hpp"

namespace hetcal {

struct TreeArrays {
    const std::int32_t *feature;
    const double *threshold;
    const std::int32_t *left, *right;  // -1 at leaves
    const std::uint8_t *missing_left;
    const std::int64_t *offset;  // where each tree begins, and where the last one ends
    std::size_t n_nodes, n_trees, n_features;

    TreeArrays(const Checks &check, const VectorIn<std::int32_t> &feature, const VectorIn<double> &threshold,
               const VectorIn<std::int32_t> &left, const VectorIn<std::int32_t> &right,
               const VectorIn<std::uint8_t> &missing_left, const VectorIn<std::int64_t> &tree_offset,
               std::int64_t n_features)
        : feature(feature.data()), threshold(threshold.data()), left(left.data()), right(right.data()),
          missing_left(missing_left.data()), offset(tree_offset.data()), n_nodes(left.shape(0)) {
        check.length(n_nodes, "nodes", 0);
        check.shape(feature, "feature", {n_nodes});
        check.shape(threshold, "threshold", {n_nodes});
        check.shape(left, "left", {n_nodes});
        check.shape(right, "right", {n_nodes});
        check.shape(missing_left, "missing_left", {n_nodes});
        check.aligned(tree_offset, "tree_offset");
        check.starts(offset, tree_offset.shape(0), "tree_offset", n_nodes);
        n_trees = tree_offset.shape(0) - 1;
        this->n_features = check.count(n_features, "n_features", 1);
        std::vector<std::uint8_t> has_parent(n_nodes, 0);
        for (std::size_t t = 0; t < n_trees; ++t) prove(check, offset[t], offset[t + 1], has_parent);
    }

  private:
    void prove(const Checks &check, std::int64_t root, std::int64_t end, std::vector<std::uint8_t> &has_parent) const {
        if (root == end) check.refuse("tree_offset", "rise", "a tree without nodes");
        for (std::int64_t parent = root; parent < end; ++parent) {
            if (parent > root && !has_parent[static_cast<std::size_t>(parent)])
                check.refuse("left and right", "be trees", "a node without a parent");
            if (left[parent] < 0) {
                if (right[parent] >= 0) check.refuse("right", "be negative where left is", right[parent]);
                continue;
            }
            check.indices(feature + parent, 1, "feature of a node", n_features);
            for (const std::int32_t child : {left[parent], right[parent]}) {
                if (child <= parent || child >= end)
                    check.refuse("a child of node " + std::to_string(parent),
                                 "lie after its parent and before " + std::to_string(end), child);
                if (has_parent[static_cast<std::size_t>(child)]++)
                    check.refuse("left and right", "be trees", "a node with two parents");
            }
        }
    }
};

}  // namespace hetcal
