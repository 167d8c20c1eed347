// Trees as a grower leaves them, put one after the other and handed to Python.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "forest_arrays.hpp"

namespace hetcal {

// A grown tree in depth-first order; children are indices within the tree, -1 at leaves.
struct GrownTree {
    std::vector<std::int32_t> feature, left, right;
    std::vector<double> threshold;
    std::vector<std::uint8_t> missing_left;

    // Appends a node without children; returns its place.
    std::int32_t add(std::int32_t at_feature, double at_threshold, bool sends_missing_left) {
        feature.push_back(at_feature);
        threshold.push_back(at_threshold);
        missing_left.push_back(sends_missing_left);
        left.push_back(-1);
        right.push_back(-1);
        return static_cast<std::int32_t>(feature.size()) - 1;
    }

    void append(const GrownTree &tree, std::int32_t offset) {
        feature.insert(feature.end(), tree.feature.begin(), tree.feature.end());
        threshold.insert(threshold.end(), tree.threshold.begin(), tree.threshold.end());
        missing_left.insert(missing_left.end(), tree.missing_left.begin(), tree.missing_left.end());
        for (std::int32_t child : tree.left) left.push_back(child < 0 ? -1 : child + offset);
        for (std::int32_t child : tree.right) right.push_back(child < 0 ? -1 : child + offset);
    }
};

// Many trees in one; children count from the first of them.
struct JoinedTrees {
    GrownTree nodes;
    std::vector<std::int64_t> offset{0};

    // Takes the trees, and gives back the memory of each as soon as it is copied.
    void join(const Checks &check, std::vector<GrownTree> &trees) {
        for (GrownTree &tree : trees) {
            check.length(nodes.feature.size() + tree.feature.size(), "nodes of all trees", 0);
            nodes.append(tree, static_cast<std::int32_t>(offset.back()));
            offset.push_back(offset.back() + static_cast<std::int64_t>(tree.feature.size()));
            tree = GrownTree();
        }
    }

    nb::tuple to_python() {
        return nb::make_tuple(to_numpy(std::move(nodes.feature)), to_numpy(std::move(nodes.threshold)),
                              to_numpy(std::move(nodes.left)), to_numpy(std::move(nodes.right)),
                              to_numpy(std::move(nodes.missing_left)), to_numpy(std::move(offset)));
    }
};

}  // namespace hetcal
