// The nodes of a forest as the traversal wants them, and the traversal itself.
//
// Siblings lie side by side, so a step is one load of the node, one of the value, one comparison and one addition.
// A leaf is its own left child and sends every value there, so rows of different depth can walk in step.
#pragma once

#include <cmath>
#include <cstdint>

namespace hetcal {

struct PackedNode {
    float threshold;      // the largest float32 not above scikit-learn's float64 threshold: the same decisions
    std::int32_t feature;
    std::int32_t left;    // the right child is left + 1
    std::int32_t extra;   // leaf: its number in the forest; else: whether missing values go left
};
static_assert(sizeof(PackedNode) == 16, "nodes travel to Python as rows of four 32-bit integers");

constexpr int kLanes = 8;  // walks in flight at once, to hide the latency of their loads

// Walks kLanes (tree, row) pairs from at[lane] (a root) down to their leaves; at[lane] becomes the leaf's node.
template <bool kMissing>
inline void walk(const PackedNode *nodes, std::int32_t (&at)[kLanes], const float *const (&row)[kLanes]) {
    std::int32_t moved;
    do {
        moved = 0;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 8
#endif
        for (int lane = 0; lane < kLanes; ++lane) {
            const PackedNode &node = nodes[at[lane]];
            const float value = row[lane][node.feature];
            std::int32_t next = node.left + !(value <= node.threshold);
            if (kMissing && std::isnan(value))
                next = node.left == at[lane] ? node.left : node.left + !node.extra;
            moved |= next ^ at[lane];
            at[lane] = next;
        }
    } while (moved != 0);
}

}  // namespace hetcal
