// The inverted leaf index: which items lie in each leaf.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "checks.hpp"
#include "forest_arrays.hpp"

namespace hetcal {

// The items of leaf l, in increasing order, are items[indptr[l]:indptr[l + 1]].
struct InvertedLeaves {
    std::vector<std::int64_t> indptr;
    std::vector<std::int32_t> items;
};

// leaves: n_items x n_trees, -1 where an item does not count in a tree.
inline InvertedLeaves invert_leaves(const Checks &check, const MatrixIn<std::int32_t> &leaves,
                                    std::size_t n_leaves) {
    const std::size_t n = leaves.shape(0), n_trees = leaves.shape(1);
    check.length(n, "items", 0);
    check.aligned(leaves, "leaves");
    InvertedLeaves index;
    index.indptr.assign(n_leaves + 1, 0);
    const std::int32_t *leaf = leaves.data();
    std::int64_t *start = index.indptr.data();
    for (std::size_t e = 0; e < n * n_trees; ++e)
        if (static_cast<std::uint32_t>(leaf[e]) < n_leaves)
            ++start[static_cast<std::uint32_t>(leaf[e]) + std::size_t(1)];
        else if (leaf[e] >= 0)
            check.refuse_index(e, leaf[e], "leaves", n_leaves, true);
    for (std::size_t l = 0; l < n_leaves; ++l) start[l + 1] += start[l];
    index.items.resize(static_cast<std::size_t>(start[n_leaves]));
    std::vector<std::int64_t> places(start, start + n_leaves);
    std::int64_t *next = places.data();
    std::int32_t *items = index.items.data();
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t t = 0; t < n_trees; ++t, ++leaf)
            if (*leaf >= 0) items[next[static_cast<std::uint32_t>(*leaf)]++] = static_cast<std::int32_t>(i);
    return index;
}

}  // namespace hetcal
