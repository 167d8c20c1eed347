// Growing one tree on binned features: what a split would do is read off sums over bins.
//
// Only the bins that occur in a node are visited, so small nodes, which are most of a deep tree, cost what they hold.
// Every random number depends on the tree's seed and the node's place alone (see counter_random.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "binned_sums.hpp"
#include "counter_random.hpp"
#include "grown_tree.hpp"
#include "prefetch.hpp"

namespace hetcal {

constexpr std::uint32_t kMissingBin = 255;
constexpr std::size_t kMostBins = 255;  // of known values: codes 0, ..., 254

// Bins column after column and, for the few items of small nodes, item after item; and the smallest and the largest value
// in each.
struct BinnedColumns {
    std::size_t n_items = 0, n_features = 0;
    std::vector<std::uint8_t> codes, by_item;
    std::vector<float> low, high;  // kMostBins per feature

    void set_codes(const std::uint8_t *given) {
        codes.assign(given, given + n_features * n_items);
        by_item.resize(codes.size());
        constexpr std::size_t kTile = 64;
        for (std::size_t first = 0; first < n_items; first += kTile)
            for (std::size_t f = 0; f < n_features; ++f)
                for (std::size_t i = first; i < std::min(n_items, first + kTile); ++i)
                    by_item[i * n_features + f] = codes[f * n_items + i];
    }

    // Calls use(place of item 0's bin, distance to the next item's) for a feature, as n items of a node find it best.
    template <class Use>
    auto with_column(std::size_t f, std::size_t n, Use use) const {
        return n < n_items / 32 ? use(by_item.data() + f, n_features) : use(codes.data() + f * n_items, std::size_t(1));
    }

    const std::uint8_t *column(std::size_t f) const { return codes.data() + f * n_items; }
    double lowest(std::size_t f, std::uint32_t bin) const { return low[f * kMostBins + bin]; }
    double highest(std::size_t f, std::uint32_t bin) const { return high[f * kMostBins + bin]; }
};

struct BinnedOptions {
    std::size_t max_features;
    double min_samples_leaf;  // items that a leaf must hold
    bool bootstrap;
    bool random_threshold;  // one random threshold per feature instead of the best
};

// What is drawn: rows, or groups of rows.
struct DrawnUnits {
    std::size_t n_units = 0;
    std::vector<std::int32_t> unit;  // of each row
    std::vector<double> up_to;       // sum of the units' shares in the draw up to each; empty where all have the same
    std::vector<double> weight;      // of each row, whenever it is drawn

    std::size_t draw(std::uint64_t seed, std::uint64_t place) const {
        if (up_to.empty()) return random_below(seed, place, n_units);
        const double drawn = random_unit(seed, place) * up_to.back();
        const auto found = std::upper_bound(up_to.begin(), up_to.end(), drawn) - up_to.begin();
        return std::min(static_cast<std::size_t>(found), n_units - 1);
    }
};

template <class Sums>
class BinnedGrower {
  public:
    BinnedGrower(const BinnedColumns &data, const Sums &sums, const DrawnUnits &units, const BinnedOptions &options)
        : data_(data), sums_(sums), units_(units), options_(options), unit_times_(units.n_units), times_(data.n_items),
          codes_(data.n_items), moved_(data.n_items), histogram_(256 * sums.size()), total_(sums.size()),
          left_(sums.size()), missing_(sums.size()), elsewhere_(sums.size()), joined_(sums.size()),
          order_(data.n_features), picks_(data.n_features) {
        for (std::size_t f = 0; f < order_.size(); ++f) order_[f] = static_cast<std::uint32_t>(f);
    }

    // Grows the tree of this seed; `in_bag` (n_items entries, capped at 255) is filled where bootstrapping.
    GrownTree grow(std::uint64_t seed, std::uint8_t *in_bag) {
        draw_items(seed, in_bag);
        GrownTree tree;
        struct Pending {
            std::size_t start, end;
            std::uint64_t key;
            std::int32_t parent;
            bool is_left;
        };
        std::vector<Pending> stack{{0, items_.size(), random_bits(seed, kRoot), -1, false}};
        while (!stack.empty()) {
            const Pending node = stack.back();
            stack.pop_back();
            enter_node(node.start, node.end);
            const Split split = is_splittable() ? find_split(node.key) : Split();
            const std::int32_t id = split.feature < 0 ? tree.add(-2, -2.0, false)
                                                      : tree.add(split.feature, split.threshold, split.missing_left);
            if (node.parent >= 0) (node.is_left ? tree.left : tree.right)[node.parent] = id;
            if (split.feature < 0) continue;
            const std::size_t middle = partition(split);
            stack.push_back({middle, node.end, random_bits(node.key, kRightChild), id, false});
            stack.push_back({node.start, middle, random_bits(node.key, kLeftChild), id, true});
        }
        return tree;
    }

  private:
    using Value = typename Sums::Value;
    // Places of random numbers. Of a seed: draws of units from 0 on. Of a node: the features' order from 0 on.
    static constexpr std::uint64_t kRoot = std::uint64_t(1) << 40, kLeftChild = kRoot + 1, kRightChild = kRoot + 2;
    static constexpr std::uint64_t kThreshold = std::uint64_t(1) << 41;
    static constexpr std::size_t kAhead = 4, kSmallNode = 256;

    struct Split {
        std::int32_t feature = -1;
        std::uint32_t last_left = 0;  // items in this bin or a smaller one go left
        double threshold = 0.0, score = -1.0;
        bool missing_left = false;
    };

    // ------------------------------------------------------------------ the items of the tree and of the node
    void draw_items(std::uint64_t seed, std::uint8_t *in_bag) {
        std::fill(unit_times_.begin(), unit_times_.end(), options_.bootstrap ? 0u : 1u);
        if (options_.bootstrap)
            for (std::size_t place = 0; place < units_.n_units; ++place) ++unit_times_[units_.draw(seed, place)];
        items_.clear();
        for (std::size_t i = 0; i < data_.n_items; ++i) {
            times_[i] = unit_times_[static_cast<std::size_t>(units_.unit[i])];
            if (options_.bootstrap) in_bag[i] = static_cast<std::uint8_t>(std::min<std::uint32_t>(times_[i], 255));
            if (times_[i] > 0) items_.push_back(static_cast<std::uint32_t>(i));
        }
    }

    void enter_node(std::size_t start, std::size_t end) {
        items_here_ = items_.data() + start;
        n_here_ = end - start;
        sums_.enter({times_.data(), units_.weight.data()}, items_here_, n_here_);
        std::fill(total_.begin(), total_.end(), Value(0));
        for (std::size_t p = 0; p < n_here_; ++p) sums_.add(p, total_.data());
    }

    bool is_splittable() const {
        return n_here_ >= 2 && sums_.count(total_.data()) >= 2 * options_.min_samples_leaf &&
               !sums_.is_pure(items_here_, n_here_, total_.data());
    }

    // Moves the items that go left to the front of the node, in their order; returns where the right ones begin.
    std::size_t partition(const Split &split) {
        const std::uint8_t *code = data_.column(static_cast<std::size_t>(split.feature));
        std::uint32_t *items = items_.data() + (items_here_ - items_.data());
        std::size_t left = 0, right = 0;
        for (std::size_t p = 0; p < n_here_; ++p) {
            const std::uint32_t item = items[p], bin = code[item];
            const bool goes_left = bin == kMissingBin ? split.missing_left : bin <= split.last_left;
            items[left] = item;
            moved_[right] = item;
            left += goes_left;
            right += !goes_left;
        }
        std::copy_n(moved_.begin(), right, items + left);
        return static_cast<std::size_t>(items_here_ - items_.data()) + left;
    }

    // ------------------------------------------------------------------ the search
    // Looks at features in random order: at max_features of them, and on until one is not constant in the node.
    Split find_split(std::uint64_t key) {
        Split best;
        bool found = false;
        std::size_t seen = 0, drawn = 0;
        for (; seen < order_.size() && (seen < options_.max_features || !found); ++seen) {
            // Drawn some features ahead, so that what is known of them is there in time.
            for (; drawn < order_.size() && (drawn <= seen || drawn < std::min(seen + kAhead, options_.max_features)); ++drawn) {
                picks_[drawn] = drawn + random_below(key, drawn, order_.size() - drawn);
                std::swap(order_[drawn], order_[picks_[drawn]]);
                ask_for(order_[drawn]);
            }
            const std::size_t f = order_[seen];
            found |= options_.random_threshold ? try_random(f, random_unit(key, kThreshold + f), best) : try_all(f, best);
        }
        // Back to the order in which every node begins.
        while (drawn-- > 0) std::swap(order_[drawn], order_[picks_[drawn]]);
        return best;
    }

    // The items of a small node lie far apart; those of a large one are found in passing.
    void ask_for(std::size_t f) const {
        if (n_here_ > kSmallNode) return;
        data_.with_column(f, n_here_, [this](const std::uint8_t *code, std::size_t step) {
            for (std::size_t p = 0; p < n_here_; ++p) prefetch(code + items_here_[p] * step);
        });
    }

    // Writes the bins of the node's items.
    const std::uint8_t *gather(std::size_t f) {
        const std::uint32_t *item = items_here_;
        std::uint8_t *bin = codes_.data();
        const std::size_t n = n_here_;
        data_.with_column(f, n, [=](const std::uint8_t *code, std::size_t step) {
            for (std::size_t p = 0; p < n; ++p) bin[p] = code[item[p] * step];
        });
        return bin;
    }

    // Considers every threshold of a feature; returns whether there is one.
    bool try_all(std::size_t f, Split &best) {
        const std::uint8_t *bins = gather(f);
        const std::size_t size = sums_.size();
        std::uint64_t occurs[4] = {0, 0, 0, 0};
        for (std::size_t p = 0; p < n_here_; ++p) {
            const std::uint32_t bin = bins[p];
            sums_.add(p, histogram_.data() + bin * size);
            occurs[bin >> 6] |= std::uint64_t(1) << (bin & 63);
        }
        Value *missing = histogram_.data() + kMissingBin * size;
        const bool any_missing = (occurs[3] >> 63) != 0;
        occurs[3] &= ~(std::uint64_t(1) << 63);
        std::fill(left_.begin(), left_.end(), Value(0));
        std::uint32_t before = kMissingBin;  // the bin to the left of the threshold
        for (std::uint32_t word = 0; word < 4; ++word)
            for (std::uint64_t bits = occurs[word]; bits != 0; bits &= bits - 1) {
                const std::uint32_t bin = word * 64 + lowest_bit(bits);
                if (before != kMissingBin) consider(f, before, bin, any_missing ? missing : nullptr, best);
                Value *sum = histogram_.data() + bin * size;
                for (std::size_t j = 0; j < sums_.size(); ++j) {
                    left_[j] += sum[j];
                    sum[j] = Value(0);
                }
                before = bin;
            }
        const bool known = before != kMissingBin;
        if (known && any_missing) consider_missing(f, before, best);
        std::fill_n(missing, size, Value(0));
        return known && (any_missing || occurs_twice(occurs));
    }

    // Considers one threshold, drawn between the smallest and the largest value in the node.
    bool try_random(std::size_t f, double unit, Split &best) {
        const std::uint8_t *bin = gather(f);
        // Loops over bytes alone, sixteen or more at a time. One more than the missing bin is 0, the least of all.
        std::uint8_t least = kMissingBin, most = 0, above_most = 0;
        for (std::size_t p = 0, n = n_here_; p < n; ++p) {
            least = std::min(least, bin[p]);
            most = std::max(most, bin[p]);
            above_most = std::max(above_most, static_cast<std::uint8_t>(bin[p] + 1));
        }
        const bool any_missing = most == kMissingBin;
        const std::uint32_t smallest = least, largest = above_most == 0 ? 0u : above_most - 1u;
        if (smallest == kMissingBin || (smallest == largest && !any_missing)) return false;
        const double from = data_.lowest(f, smallest), to = data_.highest(f, largest);
        const double drawn = from + unit * (to - from);
        const float *high = data_.high.data() + f * kMostBins;
        const float *above = std::upper_bound(high + smallest, high + largest, drawn,
                                              [](double t, float value) { return t < static_cast<double>(value); });
        // The last bin to the left of the drawn threshold; at least one bin lies on either side.
        const std::uint32_t last = std::max<std::uint32_t>(smallest + 1, static_cast<std::uint32_t>(above - high)) - 1;
        std::fill(left_.begin(), left_.end(), Value(0));
        sums_.add_where(n_here_, [=](std::size_t p) { return bin[p] <= last; }, left_.data(), elsewhere_.data());
        if (any_missing) {
            std::fill(missing_.begin(), missing_.end(), Value(0));
            sums_.add_where(n_here_, [=](std::size_t p) { return bin[p] == kMissingBin; }, missing_.data(),
                            elsewhere_.data());
        }
        const Value *missing = any_missing ? missing_.data() : nullptr;
        if (smallest == largest) {
            consider_missing(f, smallest, best);
            return true;
        }
        Split split = best;
        consider(f, last, last + 1, missing, split);
        if (split.score > best.score) {
            best = split;
            best.threshold = std::max(drawn, data_.highest(f, last));
            if (best.threshold >= data_.lowest(f, last + 1)) best.threshold = split.threshold;
        }
        return true;
    }

    // The threshold between two bins, left_ being what lies to its left; missing values go right, or left.
    void consider(std::size_t f, std::uint32_t before, std::uint32_t after, const Value *missing, Split &best) {
        auto split_with = [&](double score, bool missing_left) {
            const double threshold = data_.highest(f, before) / 2.0 + data_.lowest(f, after) / 2.0;
            best = {static_cast<std::int32_t>(f), before, threshold, score, missing_left};
        };
        const double score = sums_.score(left_.data(), total_.data());
        if (score > best.score && large_enough(left_.data())) {
            // A value that was never missing here goes, when it is, where most items go.
            const double n_left = sums_.count(left_.data());
            split_with(score, missing == nullptr && n_left > sums_.count(total_.data()) - n_left);
        }
        if (missing == nullptr) return;
        for (std::size_t j = 0; j < sums_.size(); ++j) joined_[j] = left_[j] + missing[j];
        const double other = sums_.score(joined_.data(), total_.data());
        if (other > best.score && large_enough(joined_.data())) split_with(other, true);
    }

    // All that is known to the left, all that is missing to the right.
    void consider_missing(std::size_t f, std::uint32_t last, Split &best) {
        const double score = sums_.score(left_.data(), total_.data());
        if (score > best.score && large_enough(left_.data()))
            best = {static_cast<std::int32_t>(f), last, std::numeric_limits<double>::infinity(), score, false};
    }

    bool large_enough(const Value *left) const {
        const double n_left = sums_.count(left), least = options_.min_samples_leaf;
        return n_left >= least && sums_.count(total_.data()) - n_left >= least;
    }

    static bool occurs_twice(const std::uint64_t *words) {
        int n = 0;
        for (int word = 0; word < 4; ++word) n += (words[word] != 0) + ((words[word] & (words[word] - 1)) != 0);
        return n >= 2;
    }

    static std::uint32_t lowest_bit(std::uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
        return static_cast<std::uint32_t>(__builtin_ctzll(word));
#else
        std::uint32_t bit = 0;
        for (; !(word & 1); word >>= 1) ++bit;
        return bit;
#endif
    }

    const BinnedColumns &data_;
    Sums sums_;
    const DrawnUnits &units_;
    BinnedOptions options_;

    std::vector<std::uint32_t> unit_times_, times_, items_;
    const std::uint32_t *items_here_ = nullptr;
    std::size_t n_here_ = 0;
    std::vector<std::uint8_t> codes_;
    std::vector<std::uint32_t> moved_;
    std::vector<Value> histogram_, total_, left_, missing_, elsewhere_, joined_;
    std::vector<std::uint32_t> order_;
    std::vector<std::size_t> picks_;
};

}  // namespace hetcal
