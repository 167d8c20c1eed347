// Up to sixteen nodes, of as many trees, searched for their best split at once: one SIMD lane per node.
//
// All trees of a forest share the sorted columns of their neighbourhood; they differ in how often each item counts.
// One walk along a column, adding the counts of all lanes at a time, serves as many nodes. Scores are single
// precision: they only say which features can hold the best split, and these are then searched exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hh_columns.hpp"
#include "targets.hpp"

// Vector types and targets are an extension of GCC and Clang; elsewhere nodes are searched one at a time.
#if defined(__GNUC__) || defined(__clang__)
#define HETCAL_VECTORS 1
#define HETCAL_INLINE inline __attribute__((always_inline))
#define HETCAL_INLINE_LAMBDA __attribute__((always_inline))
#else
#define HETCAL_VECTORS 0
#endif
namespace hetcal::hh {

constexpr std::uint32_t kMostLanes = 16;
constexpr std::uint32_t kLargestLaneWeight = 4096;  // its square fits into a float exactly

// What the nodes look like to the walk.
struct LaneNodes {
    std::size_t n_classes;
    std::vector<float> counts;         // [item][lane]: draws of the item, 0 outside the node
    std::vector<float> totals;         // [class][lane]: draws of the class in the node
    float weight[kMostLanes];              // draws in the node
    std::vector<float> left;           // scratch: [class][lane]
    std::vector<float> best;           // [span][lane]: the best score of the feature, 0 where it is constant
};

// A walk fills `best`; `n_lanes` is the number of nodes it serves, 0 where there is none.
struct Walk {
    std::uint32_t n_lanes;
    void (*run)(const Neighbourhood &hood, const std::uint16_t *y, LaneNodes &nodes);
};

#if HETCAL_VECTORS
namespace baseline {
#define HETCAL_TARGET
#define HETCAL_WIDTH 16
#include "hh_lanes_walk.hpp"
#undef HETCAL_WIDTH
#undef HETCAL_TARGET
}  // namespace baseline
#endif
#if defined(HETCAL_X86)
namespace avx2 {
#define HETCAL_TARGET __attribute__((target("avx2")))
#define HETCAL_WIDTH 32
#include "hh_lanes_walk.hpp"
#undef HETCAL_WIDTH
#undef HETCAL_TARGET
}  // namespace avx2
namespace avx512 {
#define HETCAL_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define HETCAL_WIDTH 64
#include "hh_lanes_walk.hpp"
#undef HETCAL_WIDTH
#undef HETCAL_TARGET
}  // namespace avx512
#endif

// The widest walk that this machine runs.
inline Walk best_walk() {
#if defined(HETCAL_X86)
    if (can_use(Vectors::avx512)) return {avx512::kLanes, avx512::walk};
    if (can_use(Vectors::avx2)) return {avx2::kLanes, avx2::walk};
#endif
#if HETCAL_VECTORS
    return {baseline::kLanes, baseline::walk};
#else
    return {0, nullptr};
#endif
}

}  // namespace hetcal::hh
