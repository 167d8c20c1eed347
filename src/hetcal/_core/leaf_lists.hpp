// The items of the leaves that a row has reached, laid one behind the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "forest_index.hpp"
#include "prefetch.hpp"

namespace hetcal {

// The items of leaf l are items[starts[l]:starts[l + 1]].
template <class Start, class Number>
struct LeafLists {
    const Start *starts;
    const Number *items;
    std::size_t n_listed;
};

// Calls visit(items, how many) for the items of some leaves, many at a time. Lists are short and of any length, which a
// processor cannot foresee: so they are copied, a fixed number of items at a time. They lie anywhere in memory: what will
// be read is asked for in good time, first where it is, then itself.
template <class Start, class Number, class Visit>
void each_batch(const LeafLists<Start, Number> &lists, const std::int32_t *leaves, std::size_t n_leaves, Visit visit) {
    constexpr std::size_t kAhead = 16, kChunk = 16, kBatch = 4096;
    Number batch[kBatch + kChunk];
    std::size_t n = 0;
    for (std::size_t i = 0; i < n_leaves; ++i) {
        if (i + 2 * kAhead < n_leaves) prefetch(lists.starts + leaves[i + 2 * kAhead]);
        if (i + kAhead < n_leaves) prefetch(lists.items + lists.starts[leaves[i + kAhead]]);
        const std::size_t first = static_cast<std::size_t>(lists.starts[leaves[i]]);
        const std::size_t last = static_cast<std::size_t>(lists.starts[leaves[i] + 1]), size = last - first;
        if (n + size > kBatch) {
            visit(batch, n);
            n = 0;
        }
        if (size > kBatch || last + kChunk > lists.n_listed) {
            visit(lists.items + first, size);
            continue;
        }
        for (std::size_t done = 0; done < size; done += kChunk)
            std::memcpy(batch + n + done, lists.items + first + done, kChunk * sizeof(Number));
        n += size;
    }
    visit(batch, n);
}

// The lists of an index in half the memory; empty where there are too many items.
class ShortLists {
  public:
    void fill(const InvertedLeaves &lists, std::size_t n_items) {
        if (n_items > std::size_t(1) << 16 || lists.items.size() > std::numeric_limits<std::uint32_t>::max()) return;
        starts_.assign(lists.indptr.begin(), lists.indptr.end());
        items_.assign(lists.items.begin(), lists.items.end());
    }

    bool empty() const { return starts_.empty(); }
    LeafLists<std::uint32_t, std::uint16_t> lists() const { return {starts_.data(), items_.data(), items_.size()}; }

  private:
    std::vector<std::uint32_t> starts_;
    std::vector<std::uint16_t> items_;
};

}  // namespace hetcal
