// A decision tree on a bootstrap sample of a neighbourhood, finished or growing.
#pragma once

#include <cstdint>
#include <vector>

#include "hh_columns.hpp"
#include "sklearn_random.hpp"

namespace hetcal::hh {

struct Node {
    std::int32_t parent, left, right;  // left < 0: a leaf
    double weight;                     // number of draws
    double impurity;
    std::uint32_t bag_low, bag_high;  // its items, in Tree::bag
    std::uint32_t oob_low, oob_high;  // and in Tree::oob
};

// Nodes in depth-first order, left child first.
struct Tree {
    std::vector<Node> nodes;
    std::vector<std::uint32_t> counts;  // node * n_classes + class: number of draws
    std::vector<Item> bag, oob;         // items drawn, and not drawn, arranged by leaf
};

// A node that waits for its turn.
struct Pending {
    std::int32_t parent;
    bool is_left;
    double impurity;
    std::uint32_t bag_low, bag_high, oob_low, oob_high;
    std::uint32_t spans_low, spans_high;  // its sorted lists, in TreeGrower::spans_; kUnlisted: none were made yet
    std::uint32_t known_constants;

    static constexpr std::uint32_t kUnlisted = 0xffffffff;
    bool is_listed() const { return spans_low != kUnlisted; }
    std::uint32_t n_items() const { return bag_high - bag_low; }
};

// A tree that grows.
struct Growing {
    Tree tree;
    std::vector<Pending> stack;
    std::vector<std::uint16_t> draws;   // how often each item was drawn
    std::vector<std::uint32_t> packed;  // two classes: draws, and draws of class 1 in the upper half
    std::uint32_t seed = 0;
    SplitterRandom random{0};
    FeatureSampler sampler{0, 0};
};

// The labels of a neighbourhood, classes numbered 0 to n_classes - 1 among those present.
struct Labels {
    std::uint32_t n_classes = 0;
    std::vector<std::uint16_t> y;
};

}  // namespace hetcal::hh
