// The nodes of a forest as the traversal wants them, and the traversal itself.
//
// Siblings lie side by side, so a step is one load of the node, one of the value, one comparison and one addition.
// A leaf is its own left child and sends every value there, so rows of different depth can walk in step. Of every value
// a row holds two copies, which differ where it is missing: the first goes left at any threshold, the second right. A
// node reads the one that goes where it sends missing values, so they take no step of their own.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace hetcal {

struct PackedNode {
    float threshold;       // the largest float32 not above scikit-learn's float64 threshold: the same decisions
    std::int32_t value;    // the place in the row: see value_place
    std::int32_t left;     // the right child is left + 1
    std::int32_t leaf;     // of a leaf: its number in the forest
};
static_assert(sizeof(PackedNode) == 16, "four nodes to a cache line");

constexpr std::size_t kCopies = 2, kMostFeatures = 1000000000;  // so that places are 32-bit integers

inline std::int32_t value_place(std::int32_t feature, bool missing_left) { return 2 * feature + !missing_left; }

inline std::size_t feature_of(std::int32_t place) { return static_cast<std::size_t>(place) / 2; }

inline void store_value(float value, std::size_t feature, float *row) {
    row[kCopies * feature] = std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
    row[kCopies * feature + 1] = value;
}

constexpr int kLanes = 8;  // walks in flight at once, to hide the latency of their loads

// Walks kLanes (tree, row) pairs from at[lane] (a root) down to their leaves; at[lane] becomes the leaf's node.
inline void walk(const PackedNode *nodes, std::int32_t (&at)[kLanes], const float *const (&row)[kLanes]) {
    std::int32_t moved;
    do {
        moved = 0;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 8
#endif
        for (int lane = 0; lane < kLanes; ++lane) {
            const PackedNode &node = nodes[at[lane]];
            const std::int32_t next = node.left + !(row[lane][node.value] <= node.threshold);
            moved |= next ^ at[lane];
            at[lane] = next;
        }
    } while (moved != 0);
}

}  // namespace hetcal
