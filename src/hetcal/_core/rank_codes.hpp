// Features as rank codes: each float32 value replaced by its rank among the distinct values of its column.
//
// Comparing codes is comparing values, without rounding, so a tree grown on codes is the tree grown on the
// values. One exception is scikit-learn's: it takes two values as equal when b <= a + 1e-7 (in float32). Where a
// column has neighbours that close, `has_close[feature]` is set and the caller must ask `too_close`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace hetcal {

// scikit-learn's rule for "equal" feature values, for a <= b.
inline bool too_close(float a, float b) { return b <= a + 1e-7f; }

// A read-only view of float32 data in any memory order; strides count elements.
struct FloatMatrix {
    const float *data;
    std::size_t n_items, n_features;
    std::ptrdiff_t item_stride, feature_stride;

    float operator()(std::size_t item, std::size_t feature) const {
        return data[static_cast<std::ptrdiff_t>(item) * item_stride +
                    static_cast<std::ptrdiff_t>(feature) * feature_stride];
    }
};

// Code: uint16_t for up to 65 536 distinct values per column, else uint32_t. All values must be finite.
template <class Code>
struct RankCodes {
    std::size_t n_items = 0, n_features = 0;
    std::vector<Code> codes;                // column after column: codes[feature * n_items + item]
    std::vector<float> values;              // the distinct values of each column, increasing
    std::vector<std::size_t> value_offset;  // where each column starts in `values`; n_features + 1 entries
    std::vector<std::uint8_t> has_close;    // whether the column needs `too_close`
    std::vector<Code> most_frequent;        // the commonest code of each column: leave it implicit to save work

    const Code *column(std::size_t feature) const { return codes.data() + feature * n_items; }
    const float *distinct(std::size_t feature) const { return values.data() + value_offset[feature]; }
    std::size_t n_distinct(std::size_t feature) const {
        return value_offset[feature + 1] - value_offset[feature];
    }
};

namespace rank_detail {

// A bijection from finite floats to integers that keeps their order; the two zeros become one.
inline std::uint32_t sortable_bits(float x) {
    x += 0.0f;
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits ^ ((bits & 0x80000000u) ? 0xffffffffu : 0x80000000u);
}

inline float from_sortable_bits(std::uint32_t key) {
    const std::uint32_t bits = key ^ ((key & 0x80000000u) ? 0x80000000u : 0xffffffffu);
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// Scratch memory of one worker; reused from column to column.
struct Scratch {
    std::vector<std::uint32_t> keys;
    std::vector<std::uint64_t> pairs, swap;
    std::vector<std::uint32_t> distinct, counts;
};

// Columns with few distinct values (pixels, integers, indicators): a small hash table beats sorting.
// Fills `scratch.distinct` (increasing) and `out`; returns false, having done nothing of use, above 256 values.
template <class Code>
bool rank_few(const std::uint32_t *keys, std::size_t n, Scratch &scratch, Code *out) {
    constexpr std::uint32_t kSlots = 1024, kMost = 256;
    std::uint32_t slot_key[kSlots];
    std::uint16_t slot_id[kSlots];
    std::fill(slot_id, slot_id + kSlots, std::uint16_t(0xffff));
    auto &distinct = scratch.distinct;
    distinct.clear();
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t key = keys[i];
        std::uint32_t slot = (key * 2654435769u) >> 22;
        while (slot_id[slot] != 0xffff && slot_key[slot] != key) slot = (slot + 1) % kSlots;
        if (slot_id[slot] == 0xffff) {
            if (distinct.size() == kMost) return false;
            slot_id[slot] = static_cast<std::uint16_t>(distinct.size());
            slot_key[slot] = key;
            distinct.push_back(key);
        }
        out[i] = slot_id[slot];
    }
    std::uint64_t order[kMost];  // (key, first id) pairs, to be sorted by key
    Code rank_of[kMost];
    for (std::size_t id = 0; id < distinct.size(); ++id) order[id] = (std::uint64_t(distinct[id]) << 32) | id;
    std::sort(order, order + distinct.size());
    for (std::size_t rank = 0; rank < distinct.size(); ++rank) {
        rank_of[order[rank] & 0xffffffffu] = static_cast<Code>(rank);
        distinct[rank] = static_cast<std::uint32_t>(order[rank] >> 32);
    }
    for (std::size_t i = 0; i < n; ++i) out[i] = rank_of[out[i]];
    return true;
}

// Any column: a radix sort of (key, item) pairs by key, 11 bits at a time.
template <class Code>
void rank_many(const std::uint32_t *keys, std::size_t n, Scratch &scratch, Code *out) {
    scratch.pairs.resize(n);
    scratch.swap.resize(n);
    for (std::size_t i = 0; i < n; ++i) scratch.pairs[i] = (std::uint64_t(keys[i]) << 32) | i;
    for (int shift = 32; shift < 64; shift += 11) {
        std::uint32_t start[2049] = {0};
        for (std::uint64_t pair : scratch.pairs) ++start[((pair >> shift) & 2047) + 1];
        for (int digit = 0; digit < 2048; ++digit) start[digit + 1] += start[digit];
        for (std::uint64_t pair : scratch.pairs) scratch.swap[start[(pair >> shift) & 2047]++] = pair;
        scratch.pairs.swap(scratch.swap);
    }
    auto &distinct = scratch.distinct;
    distinct.clear();
    for (std::uint64_t pair : scratch.pairs) {
        const std::uint32_t key = static_cast<std::uint32_t>(pair >> 32);
        if (distinct.empty() || distinct.back() != key) distinct.push_back(key);
        out[pair & 0xffffffffu] = static_cast<Code>(distinct.size() - 1);
    }
}

}  // namespace rank_detail

// Codes of every column of X.
template <class Code>
RankCodes<Code> rank_codes(const FloatMatrix &X) {
    const std::size_t n = X.n_items, d = X.n_features;
    RankCodes<Code> ranked;
    ranked.n_items = n;
    ranked.n_features = d;
    ranked.codes.resize(n * d);
    ranked.value_offset.assign(1, 0);
    ranked.has_close.assign(d, 0);
    ranked.most_frequent.assign(d, 0);
    rank_detail::Scratch scratch;
    constexpr std::size_t kBlock = 16;  // columns read together, so that row-major data is read by cache lines
    scratch.keys.resize(kBlock * n);
    for (std::size_t first = 0; first < d; first += kBlock) {
        const std::size_t width = std::min(kBlock, d - first);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < width; ++j)
                scratch.keys[j * n + i] = rank_detail::sortable_bits(X(i, first + j));
        for (std::size_t f = first; f < first + width; ++f) {
            const std::uint32_t *keys = scratch.keys.data() + (f - first) * n;
            Code *out = ranked.codes.data() + f * n;
            if (!rank_detail::rank_few(keys, n, scratch, out)) rank_detail::rank_many(keys, n, scratch, out);
            const auto &distinct = scratch.distinct;
            for (std::uint32_t key : distinct) ranked.values.push_back(rank_detail::from_sortable_bits(key));
            ranked.value_offset.push_back(ranked.values.size());
            const float *value = ranked.distinct(f);
            for (std::size_t r = 0; r + 1 < distinct.size(); ++r)
                ranked.has_close[f] |= too_close(value[r], value[r + 1]);
            scratch.counts.assign(distinct.size(), 0);
            for (std::size_t i = 0; i < n; ++i) ++scratch.counts[out[i]];
            if (n > 0)
                ranked.most_frequent[f] = static_cast<Code>(
                    std::max_element(scratch.counts.begin(), scratch.counts.end()) - scratch.counts.begin());
        }
    }
    return ranked;
}

// The items of one column in increasing order of code, equal codes in order of item (a counting sort).
// `order` holds n_items entries; `starts` receives n_distinct + 1 entries: where each code's items begin.
template <class Code, class Item>
void presort_column(const RankCodes<Code> &ranked, std::size_t feature, Item *order,
                    std::vector<std::size_t> &starts) {
    const Code *code = ranked.column(feature);
    const std::size_t n = ranked.n_items;
    starts.assign(ranked.n_distinct(feature) + 1, 0);
    for (std::size_t i = 0; i < n; ++i) ++starts[code[i] + 1];
    for (std::size_t r = 1; r < starts.size(); ++r) starts[r] += starts[r - 1];
    std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
    for (std::size_t i = 0; i < n; ++i) order[next[code[i]]++] = static_cast<Item>(i);
}

}  // namespace hetcal
