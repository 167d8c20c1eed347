// A faster traversal for what is common: trees of up to 65 535 nodes on up to 4095 features, or half as many where values
// are missing. Others take that of forest_nodes.hpp.
//
// Nodes take 8 bytes instead of 16. Rows come in packets of sixteen, the values of a feature side by side, as integers
// that compare as the values do: so a walk is one number, and a step is three loads of the node, one of the value,
// a comparison and an addition with carry. Where a value is missing, packets hold two copies of each, as in
// forest_nodes.hpp: the smallest and the largest integer then stand for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "forest_nodes.hpp"
#include "rank_codes.hpp"

namespace hetcal {

constexpr std::size_t kPacket = 16;  // rows

#if defined(__GNUC__) && !defined(__clang__)
#define HETCAL_EACH_ROW _Pragma("GCC unroll 16") for (std::size_t row = 0; row < kPacket; ++row)
#else
#define HETCAL_EACH_ROW for (std::size_t row = 0; row < kPacket; ++row)
#endif

struct NarrowNode {
    std::uint32_t threshold;  // as sortable_bits; of a leaf: the largest, which sends every value left
    std::uint16_t place;      // of the feature in a packet: kPacket * feature
    std::uint16_t left;       // within the tree; the right child is left + 1
};
static_assert(sizeof(NarrowNode) == 8, "eight nodes to a cache line");

class NarrowForest {
  public:
    // Left empty where the forest does not fit. `roots`: the place of each tree's root in `nodes`.
    void fill(const std::vector<PackedNode> &nodes, const std::vector<std::int32_t> &roots, std::size_t n_features) {
        if (kPacket * n_features > kMost) return;
        n_features_ = n_features;
        const auto end_of = [&](std::size_t t) {
            return t + 1 < roots.size() ? static_cast<std::size_t>(roots[t + 1]) : nodes.size();
        };
        for (std::size_t t = 0; t < roots.size(); ++t)
            if (end_of(t) - static_cast<std::size_t>(roots[t]) > kMost) return;
        nodes_.reserve(nodes.size());
        leaves_.reserve(nodes.size());
        for (std::size_t t = 0; t < roots.size(); ++t) {
            const std::size_t root = nodes_.size(), size = end_of(t) - static_cast<std::size_t>(roots[t]);
            trees_.push_back({root, add_tree(nodes.data() + roots[t], size, roots[t])});
        }
    }

    // Whether it takes packets of one copy of each value, or of kCopies.
    bool takes(std::size_t n_copies) const {
        return !nodes_.empty() && (n_copies == 1 || kPacket * kCopies * n_features_ <= kMost);
    }

    // Calls visit(row, tree, leaf) for n_rows rows in packets, for each row in the order of the trees. `packed`: the nodes
    // that it was filled from.
    template <class Visit>
    void walk(const std::uint32_t *packets, std::size_t n_copies, const std::vector<PackedNode> &packed,
              std::size_t n_rows, Visit visit) const {
        if (n_copies > 1) std::call_once(*copied_, [&] { fill_for_copies(packed); });
        const std::vector<NarrowNode> &nodes = n_copies > 1 ? nodes_for_copies_ : nodes_;
        std::uint32_t at[kPacket];
        for (std::size_t t = 0; t < trees_.size(); ++t) {
            const NarrowNode *tree = nodes.data() + trees_[t].root;
            const std::int32_t *leaf = leaves_.data() + trees_[t].root;
            const std::uint32_t *packet = packets;
            for (std::size_t first = 0; first < n_rows; first += kPacket, packet += kPacket * n_copies * n_features_) {
                walk_packet(tree, trees_[t].steps, packet, at);
                const std::size_t used = std::min(kPacket, n_rows - first);
                for (std::size_t row = 0; row < used; ++row) visit(first + row, t, leaf[at[row]]);
            }
        }
    }

  private:
    static constexpr std::size_t kMost = 65535;  // nodes of a tree, and places in a packet

    struct Tree {
        std::size_t root;
        std::uint32_t steps;  // to be taken before it is worth asking whether all rows have arrived
    };

    std::uint32_t add_tree(const PackedNode *tree, std::size_t n_nodes, std::int32_t root) {
        std::vector<std::uint32_t> depth(n_nodes, 0);
        std::size_t sum = 0, deepest = 0;
        for (std::size_t i = 0; i < n_nodes; ++i) {
            const PackedNode &node = tree[i];
            const std::size_t left = static_cast<std::size_t>(node.left - root);
            const bool is_leaf = left == i;
            nodes_.push_back({is_leaf ? 0xffffffffu : rank_detail::sortable_bits(node.threshold),
                              static_cast<std::uint16_t>(kPacket * feature_of(node.value)),
                              static_cast<std::uint16_t>(left)});
            leaves_.push_back(node.leaf);
            if (!is_leaf) depth[left] = depth[left + 1] = depth[i] + 1;
            sum += is_leaf ? depth[i] : 0;
            deepest = std::max<std::size_t>(deepest, depth[i]);
        }
        const std::size_t n_leaves = (n_nodes + 1) / 2;
        // About as far as the last of sixteen rows goes; a question more often would be answered wrongly by prediction.
        return static_cast<std::uint32_t>(std::min(deepest, sum * 7 / (5 * n_leaves)));
    }

    // When values are first found missing: most forests never meet any.
    void fill_for_copies(const std::vector<PackedNode> &packed) const {
        nodes_for_copies_ = nodes_;
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            nodes_for_copies_[i].place = static_cast<std::uint16_t>(kPacket * static_cast<std::size_t>(packed[i].value));
    }

    static void walk_packet(const NarrowNode *tree, std::uint32_t steps, const std::uint32_t *packet,
                            std::uint32_t (&at)[kPacket]) {
        const auto child = [=](std::uint32_t node, std::size_t row) {
            return tree[node].left + std::uint32_t(tree[node].threshold < packet[tree[node].place + row]);
        };
        std::uint32_t now[kPacket] = {};
        for (; steps > 0; --steps) HETCAL_EACH_ROW now[row] = child(now[row], row);
        for (std::uint32_t moved = 1; moved != 0;) {
            moved = 0;
            HETCAL_EACH_ROW {
                const std::uint32_t next = child(now[row], row);
                moved |= next ^ now[row];
                now[row] = next;
            }
        }
        HETCAL_EACH_ROW at[row] = now[row];
    }

    std::size_t n_features_ = 0;
    std::vector<NarrowNode> nodes_;
    mutable std::vector<NarrowNode> nodes_for_copies_;
    std::unique_ptr<std::once_flag> copied_ = std::make_unique<std::once_flag>();
    std::vector<std::int32_t> leaves_;  // the leaf at each node
    std::vector<Tree> trees_;
};

#undef HETCAL_EACH_ROW

// Copies the features [begin, end) of kPacket rows (`rows`: where each begins; `across`: from one value of a row to the
// next) into a packet; returns whether a value is missing.
template <class T>
bool fill_packet(const T *const *rows, std::size_t begin, std::size_t end, std::int64_t across,
                 std::uint32_t *packet) {
    bool missing = false;
    for (std::size_t f = begin; f < end; ++f)
        for (std::size_t r = 0; r < kPacket; ++r) {
            const float value = static_cast<float>(rows[r][static_cast<std::int64_t>(f) * across]);
            missing |= value != value;
            packet[kPacket * f + r] = rank_detail::sortable_bits(value);
        }
    return missing;
}

// The same with kCopies of each value, of which the first goes left where it is missing and the second right.
template <class T>
void fill_packet_with_copies(const T *const *rows, std::size_t n_features, std::int64_t across, std::uint32_t *packet) {
    for (std::size_t f = 0; f < n_features; ++f, packet += kPacket * kCopies)
        for (std::size_t r = 0; r < kPacket; ++r) {
            const float value = static_cast<float>(rows[r][static_cast<std::int64_t>(f) * across]);
            const bool missing = value != value;
            packet[r] = missing ? 0u : rank_detail::sortable_bits(value);
            packet[kPacket + r] = missing ? 0xffffffffu : rank_detail::sortable_bits(value);
        }
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector) && __has_builtin(__builtin_convertvector)
#define HETCAL_SHUFFLES 1
#endif
#endif

#if defined(HETCAL_SHUFFLES)
// The same for rows whose values lie side by side: four rows and four features at a time. Zeros keep their sign here:
// no threshold lies between them.
template <class T>
bool fill_packet(const T *const *rows, std::size_t n_features, std::uint32_t *packet) {
    typedef T Values __attribute__((vector_size(4 * sizeof(T))));
    typedef float Floats __attribute__((vector_size(16)));
    typedef std::int32_t Bits __attribute__((vector_size(16)));
    Bits missing = {};
    const auto load = [&missing](const T *from) {
        Values values;
        std::memcpy(&values, from, sizeof values);
        const Floats floats = __builtin_convertvector(values, Floats);
        missing |= floats != floats;
        Bits bits;
        std::memcpy(&bits, &floats, sizeof bits);
        return bits ^ ((bits >> 31) | std::numeric_limits<std::int32_t>::min());
    };
    std::size_t f = 0;
    for (; f + 4 <= n_features; f += 4)
        for (std::size_t r = 0; r < kPacket; r += 4) {
            const Bits a = load(rows[r] + f), b = load(rows[r + 1] + f);
            const Bits c = load(rows[r + 2] + f), d = load(rows[r + 3] + f);
            const Bits ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), AB = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            const Bits cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
            const Bits turned[4] = {
                __builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                __builtin_shufflevector(AB, CD, 0, 1, 4, 5), __builtin_shufflevector(AB, CD, 2, 3, 6, 7)};
            for (std::size_t j = 0; j < 4; ++j) std::memcpy(packet + kPacket * (f + j) + r, &turned[j], sizeof(Bits));
        }
    const bool rest = fill_packet(rows, f, n_features, 1, packet);
    return rest || (missing[0] | missing[1] | missing[2] | missing[3]) != 0;
}
#else
template <class T>
bool fill_packet(const T *const *rows, std::size_t n_features, std::uint32_t *packet) {
    return fill_packet(rows, 0, n_features, 1, packet);
}
#endif

}  // namespace hetcal
