// Growing one classification tree on rank codes, split for split as scikit-learn grows it.
//
// What makes it fast: no sorting of values (codes are ranks already), the commonest value of a feature is left
// implicit, codes in bytes are compared 64 at a time and copied together for small nodes and all below them, and a
// score without divisions decides whether scikit-learn's own floating-point expression has to be evaluated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "bits.hpp"
#include "byte_codes.hpp"
#include "grown_tree.hpp"
#include "rank_codes.hpp"
#include "sklearn_random.hpp"

namespace hetcal {

struct GrowOptions {
    std::uint32_t max_features;
    std::uint32_t min_samples_leaf;
    bool bootstrap;
    bool random_threshold;  // extra-trees: one random threshold per feature instead of the best
};

template <class Code>
class TreeGrower {
  public:
    // `labels` are class codes below n_classes, one per item.
    // `bytes` (or null) are the same codes, where they fit into bytes.
    TreeGrower(const RankCodes<Code> &ranked, const ByteCodes *bytes, const std::int32_t *labels,
               std::uint32_t n_classes, const GrowOptions &options)
        : ranked_(ranked), bytes_(bytes), labels_(labels), binary_(n_classes <= 2), options_(options),
          counts_(ranked.n_items), tree_payload_(ranked.n_items), frame_payload_(kFrame), total_(n_classes),
          here_(n_classes) {
        std::size_t most_codes = 1;
        for (std::size_t f = 0; f < ranked.n_features; ++f) most_codes = std::max(most_codes, ranked.n_distinct(f));
        histogram_.assign(most_codes, 0);
        occupied_.assign(most_codes / 64 + 1, 0);
        summary_.assign(occupied_.size() / 64 + 1, 0);
    }

    // Grows the tree of this seed; `in_bag` (n_items entries, capped at 255) is filled where bootstrapping.
    GrownTree grow(std::uint32_t seed, std::uint8_t *in_bag) {
        draw_items(seed, in_bag);
        SplitterRandom random(seed);
        FeatureSampler sampler(static_cast<std::uint32_t>(ranked_.n_features), options_.max_features);
        GrownTree tree;
        struct Pending {
            std::uint32_t start, end, known_constants;
            std::int32_t parent;
            bool is_left;
        };
        std::vector<Pending> stack{{0, static_cast<std::uint32_t>(items_.size()), 0, -1, false}};
        while (!stack.empty()) {
            const Pending node = stack.back();
            stack.pop_back();
            enter_node(node.start, node.end);
            Split split;
            std::uint32_t known = node.known_constants;
            if (is_splittable()) {
                sampler.begin_node(known);
                split = options_.random_threshold ? random_split(sampler, random) : best_split(sampler, random);
                known = sampler.end_node();
            }
            const std::int32_t id = static_cast<std::int32_t>(tree.feature.size());
            if (node.parent >= 0) (node.is_left ? tree.left : tree.right)[node.parent] = id;
            if (split.feature < 0 || !improves_enough(split)) {
                tree.add(-2, -2.0, false);
                continue;
            }
            const std::uint32_t middle = partition(split);
            tree.add(split.feature, split.threshold, middle - node.start > node.end - middle);
            stack.push_back({middle, node.end, known, id, false});
            stack.push_back({node.start, middle, known, id, true});
        }
        return tree;
    }

  private:
    // The weight of an item and its class, in one word. With two classes 21 bits each for the weight of class 0, the
    // weight of class 1, and the number of items, so that adding words counts items; else the class, then the weight.
    static constexpr int kBits = 21;
    static constexpr std::uint64_t kField = (std::uint64_t(1) << kBits) - 1;
    static constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

    struct Split {
        std::int32_t feature = -1;
        Code last_left_code = 0;    // items with this code or a smaller one go left
        Code first_right_code = 0;  // the smallest code of the others
        double threshold = 0.0;
        double left_weight = 0.0, left_squares = 0.0, right_squares = 0.0;  // sums over classes of squared weights
        double proxy = -std::numeric_limits<double>::infinity();  // what scikit-learn compares
        double score = -std::numeric_limits<double>::infinity();  // the same, up to a constant and rounding
    };

    // What was counted on one side of a split, and what is left on the other.
    struct TwoClasses {
        const TreeGrower &grower;
        std::uint64_t packed = 0;

        explicit TwoClasses(TreeGrower &g) : grower(g) {}
        void add(std::uint64_t payload) { packed += payload; }
        static std::int64_t weight_of(std::uint64_t sum) {
            return static_cast<std::int64_t>((sum & kField) + ((sum >> kBits) & kField));
        }
        static std::int64_t squares_of(std::uint64_t sum) {
            const std::int64_t w0 = static_cast<std::int64_t>(sum & kField);
            const std::int64_t w1 = static_cast<std::int64_t>((sum >> kBits) & kField);
            return w0 * w0 + w1 * w1;
        }
        std::int64_t weight() const { return weight_of(packed); }
        std::int64_t squares() const { return squares_of(packed); }
        std::int64_t other_squares() const { return squares_of(grower.packed_total_ - packed); }
        std::uint32_t n_items() const { return static_cast<std::uint32_t>(packed >> (2 * kBits)); }
    };

    struct ManyClasses {
        TreeGrower &grower;
        std::int64_t weight_ = 0, squares_ = 0, other_squares_;
        std::uint32_t n_items_ = 0;

        explicit ManyClasses(TreeGrower &g) : grower(g), other_squares_(g.squares_) {
            std::fill(g.here_.begin(), g.here_.end(), 0);
        }
        void add(std::uint64_t payload) {
            const std::size_t k = payload >> 32;
            const std::int64_t w = static_cast<std::int64_t>(payload & 0xffffffffu), here = grower.here_[k];
            squares_ += w * (2 * here + w);
            other_squares_ -= w * (2 * (grower.total_[k] - here) - w);
            grower.here_[k] = here + w;
            weight_ += w;
            ++n_items_;
        }
        std::int64_t weight() const { return weight_; }
        std::int64_t squares() const { return squares_; }
        std::int64_t other_squares() const { return other_squares_; }
        std::uint32_t n_items() const { return n_items_; }
    };

    // ------------------------------------------------------------------ the items of the tree and of the node
    void draw_items(std::uint32_t seed, std::uint8_t *in_bag) {
        const std::size_t n = ranked_.n_items;
        if (options_.bootstrap) {
            bootstrap_counts(seed, n, counts_.data());
            for (std::size_t i = 0; i < n; ++i)
                in_bag[i] = static_cast<std::uint8_t>(std::min<std::uint32_t>(counts_[i], 255));
        } else {
            std::fill(counts_.begin(), counts_.end(), 1u);
        }
        items_.clear();
        tree_weight_ = static_cast<double>(n);
        for (std::size_t i = 0; i < n; ++i) {
            if (counts_[i] == 0) continue;
            items_.push_back(static_cast<std::uint32_t>(i));
            const std::uint64_t weight = counts_[i], label = static_cast<std::uint64_t>(labels_[i]);
            tree_payload_[i] =
                binary_ ? (weight << (label * kBits)) | (std::uint64_t(1) << (2 * kBits)) : (label << 32) | weight;
        }
        // sort_few reads whole vectors, and loops without a branch write one place further than they keep.
        for (auto *codes : {&codes_, &sorted_codes_}) codes->resize(items_.size() + kFew);
        for (auto *payloads : {&payloads_, &sorted_}) payloads->resize(items_.size() + 1);
        if (picks_together_) {
            picked_.resize(items_.size() + 64);
            places_.resize(items_.size() + 64);
        }
        swap_.resize(items_.size());
        leave_frame();
    }

    void leave_frame() {
        frame_items_.clear();
        payload_ = tree_payload_.data();
        n_numbered_ = ranked_.n_items;
    }

    // Nodes come depth first: all nodes below a small one share a copy of its items' codes, numbered from 0.
    void choose_frame(std::uint32_t start, std::uint32_t end) {
        if (!frame_items_.empty()) {
            if (start < frame_end_) return;
            leave_frame();
        }
        if (bytes_ == nullptr || end - start > kFrame || end - start < kSmallestFrame) return;
        frame_items_.assign(items_.begin() + start, items_.begin() + end);
        frame_end_ = end;
        n_numbered_ = end - start;
        frame_.fill(*bytes_, frame_items_.data(), n_numbered_);
        for (std::uint32_t i = 0; i < n_numbered_; ++i) {
            frame_payload_[i] = payload_[frame_items_[i]];
            items_[start + i] = i;
        }
        payload_ = frame_payload_.data();
    }

    bool in_bytes(std::size_t f) const { return bytes_ != nullptr && ranked_.n_distinct(f) <= 256; }

    const std::uint8_t *byte_column(std::size_t f) const {
        return frame_items_.empty() ? bytes_->column(f) : frame_.column(f);
    }

    // Calls use(code_of), where code_of(item) is the code of an item of the node.
    template <class Use>
    auto with_column(std::size_t f, Use use) const {
        if (in_bytes(f)) return use([code = byte_column(f)](std::uint32_t item) { return Code(code[item]); });
        const Code *code = ranked_.column(f);
        if (frame_items_.empty()) return use([code](std::uint32_t item) { return code[item]; });
        return use([code, numbers = frame_items_.data()](std::uint32_t item) { return code[numbers[item]]; });
    }

    void enter_node(std::uint32_t start, std::uint32_t end) {
        choose_frame(start, end);
        start_ = start;
        end_ = end;
        by_mask_ = bytes_ != nullptr && (end - start) * kWorthComparing >= n_numbered_;
        if (by_mask_) {
            mask_.assign((n_numbered_ + 63) / 64, 0);
            for (std::uint32_t p = start; p < end; ++p) mask_[items_[p] / 64] |= std::uint64_t(1) << (items_[p] % 64);
        }
        weight_ = squares_ = 0;
        if (binary_) {
            packed_total_ = 0;
            for (std::uint32_t p = start; p < end; ++p) packed_total_ += payload_[items_[p]];
            weight_ = TwoClasses::weight_of(packed_total_);
            squares_ = TwoClasses::squares_of(packed_total_);
        } else {
            std::fill(total_.begin(), total_.end(), 0);
            for (std::uint32_t p = start; p < end; ++p) {
                const std::uint64_t payload = payload_[items_[p]];
                total_[payload >> 32] += static_cast<std::int64_t>(payload & 0xffffffffu);
            }
            for (std::int64_t w : total_) {
                weight_ += w;
                squares_ += w * w;
            }
        }
    }

    static double gini(double squares, double weight) { return 1.0 - squares / (weight * weight); }

    double impurity() const { return gini(static_cast<double>(squares_), static_cast<double>(weight_)); }

    bool is_splittable() const {
        const std::uint32_t n = end_ - start_;
        return n >= 2 && n / 2 >= options_.min_samples_leaf && impurity() > kEpsilon;
    }

    // scikit-learn's proxy for the improvement, in its own order of operations (no fused multiply-add).
    double proxy(double left_weight, double left_squares, double right_squares) const {
        const double right_weight = static_cast<double>(weight_) - left_weight;
        const double gini_left = gini(left_squares, left_weight);
        const double gini_right = gini(right_squares, right_weight);
        return -right_weight * gini_right - left_weight * gini_left;
    }

    // Splits whose improvement is negative beyond rounding are refused, as scikit-learn refuses them.
    bool improves_enough(const Split &split) const {
        const double weight = static_cast<double>(weight_), right_weight = weight - split.left_weight;
        const double improvement =
            (weight / tree_weight_) *
            (impurity() - (right_weight / weight * gini(split.right_squares, right_weight)) -
             (split.left_weight / weight * gini(split.left_squares, split.left_weight)));
        return !(improvement + kEpsilon < 0.0);
    }

    // Moves the items that go left to the front of the node; returns where the right ones begin.
    std::uint32_t partition(const Split &split) {
        std::uint32_t left = start_, right = 0;
        with_column(static_cast<std::size_t>(split.feature), [&](auto code_of) {
            for (std::uint32_t p = start_; p < end_; ++p) {
                const std::uint32_t item = items_[p];
                const bool goes_left = code_of(item) <= split.last_left_code;
                items_[left] = item;
                swap_[right] = item;
                left += goes_left;
                right += !goes_left;
            }
        });
        std::copy_n(swap_.begin(), right, items_.begin() + left);
        return left;
    }

    // ------------------------------------------------------------------ the best threshold of every feature
    Split best_split(FeatureSampler &sampler, SplitterRandom &random) {
        Split best;
        // The score differs from the proxy by a constant and by rounding far below this.
        tolerance_ = 1e-12 * static_cast<double>(weight_);
        for (std::int32_t feature; (feature = sampler.next(random)) >= 0;) {
            const std::size_t f = static_cast<std::size_t>(feature);
            // No split beats two pure children: the other features only have to be told constant or not.
            const bool only_constancy = best.proxy == 0.0;
            if (only_constancy ? is_varying(f) : scan_feature(f, best))
                sampler.mark_evaluated();
            else
                sampler.mark_constant();
        }
        if (best.feature >= 0) {
            const float *value = ranked_.distinct(static_cast<std::size_t>(best.feature));
            best.threshold = value[best.last_left_code] / 2.0 + value[best.first_right_code] / 2.0;
        }
        return best;
    }

    bool is_varying(std::size_t f) const {
        return with_column(f, [&](auto code_of) {
            const Code first = code_of(items_[start_]);
            if (!ranked_.has_close[f]) {
                for (std::uint32_t p = start_ + 1; p < end_; ++p)
                    if (code_of(items_[p]) != first) return true;
                return false;
            }
            Code low = first, high = first;
            for (std::uint32_t p = start_ + 1; p < end_; ++p) {
                low = std::min(low, code_of(items_[p]));
                high = std::max(high, code_of(items_[p]));
            }
            const float *value = ranked_.distinct(f);
            return !too_close(value[low], value[high]);
        });
    }

    // Looks at every threshold of one feature; false when the feature is constant in the node.
    bool scan_feature(std::size_t f, Split &best) {
        const std::uint32_t m = pick_uncommon(f);
        if (m == 0) return false;
        const bool has_common = m < end_ - start_;
        const std::uint32_t n_sorted = sort(ranked_.n_distinct(f), m);
        return binary_ ? scan<TwoClasses>(f, has_common, n_sorted, best)
                       : scan<ManyClasses>(f, has_common, n_sorted, best);
    }

    // Lists code and payload of the items in the node whose code is not the commonest; returns how many there are.
    std::uint32_t pick_uncommon(std::size_t f) {
        const Code common = ranked_.most_frequent[f];
        std::int32_t *codes = codes_.data();
        std::uint64_t *payloads = payloads_.data();
        std::uint32_t m = 0;
        if (by_mask_ && in_bytes(f)) {
            const std::uint8_t *code = byte_column(f);
            if (picks_together_) {
                m = pick_together(code, static_cast<std::uint8_t>(common), mask_.data(), mask_.size(), picked_.data(),
                                  places_.data());
                for (std::uint32_t e = 0; e < m; ++e) {
                    codes[e] = picked_[e];
                    payloads[e] = payload_[places_[e]];
                }
                return m;
            }
            for (std::size_t w = 0; w < mask_.size(); ++w)
                for (std::uint64_t bits = mask_[w] & differing(code + 64 * w, static_cast<std::uint8_t>(common));
                     bits != 0; bits &= bits - 1) {
                    const std::size_t item = 64 * w + lowest_bit(bits);
                    codes[m] = code[item];
                    payloads[m++] = payload_[item];
                }
            return m;
        }
        with_column(f, [&](auto code_of) {
            const std::uint32_t *items = items_.data();
            const std::uint64_t *payload = payload_;
            std::uint32_t kept = 0;
            for (std::uint32_t p = start_, end = end_; p < end; ++p) {
                const Code c = code_of(items[p]);
                codes[kept] = static_cast<std::int32_t>(c);
                payloads[kept] = payload[items[p]];
                kept += c != common;
            }
            m = kept;
        });
        return m;
    }

    // Sorts the m codes picked, with their payloads; returns how many there are then. (With two classes, payloads of
    // equal codes may be added up.)
    std::uint32_t sort(std::size_t n_codes, std::uint32_t m) {
        if (m <= kFew / 2) return sort_few<kFew / 2>(m);
        if (m <= kFew) return sort_few<kFew>(m);
        const bool dense = m >= n_codes / 8;
        if (!dense)
            for (std::uint32_t e = 0; e < m; ++e) occupy(static_cast<std::uint32_t>(codes_[e]));
        const auto visit = [&](auto use) {
            if (dense)
                for (std::size_t c = 0; c < n_codes; ++c) use(static_cast<std::uint32_t>(c));
            else
                visit_occupied(n_codes, use);
        };
        std::uint32_t n_sorted = 0;
        if (binary_) {
            for (std::uint32_t e = 0; e < m; ++e) histogram_[codes_[e]] += payloads_[e];
            visit([&](std::uint32_t code) {
                sorted_codes_[n_sorted] = static_cast<std::int32_t>(code);
                sorted_[n_sorted] = histogram_[code];
                n_sorted += histogram_[code] != 0;
                histogram_[code] = 0;
            });
            return n_sorted;
        }
        for (std::uint32_t e = 0; e < m; ++e) ++histogram_[codes_[e]];
        visit([&](std::uint32_t code) {  // the count of a code becomes the place of its next entry
            const std::uint32_t count = static_cast<std::uint32_t>(histogram_[code]);
            histogram_[code] = n_sorted;
            n_sorted += count;
        });
        for (std::uint32_t e = 0; e < m; ++e) {
            const std::uint64_t place = histogram_[codes_[e]]++;
            sorted_codes_[place] = codes_[e];
            sorted_[place] = payloads_[e];
        }
        if (dense)
            std::fill_n(histogram_.begin(), n_codes, 0);
        else
            for (std::uint32_t e = 0; e < m; ++e) histogram_[codes_[e]] = 0;
        return n_sorted;
    }

    static constexpr std::uint32_t kFew = 16;

    // Without a branch: the place of each is the number of those before it.
    template <std::uint32_t Most>
    std::uint32_t sort_few(std::uint32_t m) {
        std::int32_t key[Most], place[Most] = {0};
        for (std::uint32_t e = 0; e < Most; ++e)
            key[e] = codes_[e] * static_cast<std::int32_t>(Most) + static_cast<std::int32_t>(e);
        for (std::uint32_t other = 0; other < m; ++other)
            for (std::uint32_t e = 0; e < Most; ++e) place[e] += key[other] < key[e];
        for (std::uint32_t e = 0; e < m; ++e) {
            sorted_codes_[place[e]] = codes_[e];
            sorted_[place[e]] = payloads_[e];
        }
        return m;
    }

    void occupy(std::uint32_t code) {
        occupied_[code >> 6] |= std::uint64_t(1) << (code & 63);
        summary_[code >> 12] |= std::uint64_t(1) << ((code >> 6) & 63);
    }

    // Calls visit(code) for every occupied code in increasing order and empties the set.
    template <class Visit>
    void visit_occupied(std::size_t n_codes, Visit visit) {
        for (std::uint32_t s = 0; s <= (n_codes - 1) >> 12; ++s) {
            for (std::uint64_t words = summary_[s]; words != 0; words &= words - 1) {
                const std::uint32_t w = (s << 6) | lowest_bit(words);
                for (std::uint64_t bits = occupied_[w]; bits != 0; bits &= bits - 1)
                    visit((w << 6) | lowest_bit(bits));
                occupied_[w] = 0;
            }
            summary_[s] = 0;
        }
    }

    // Codes below the commonest from the left, those above it from the right: its own items are never touched.
    template <class Side>
    bool scan(std::size_t f, bool has_common, std::uint32_t n_sorted, Split &best) {
        const std::int32_t *code = sorted_codes_.data();
        const std::int32_t common = static_cast<std::int32_t>(ranked_.most_frequent[f]);
        std::uint32_t n_below = n_sorted;
        if (has_common) {
            n_below = 0;
            for (std::uint32_t e = 0; e < n_sorted; ++e) n_below += code[e] < common;
        }
        const float *value = ranked_.has_close[f] ? ranked_.distinct(f) : nullptr;
        const auto differ = [value](std::int32_t a, std::int32_t b) {
            return a != b && (value == nullptr || !too_close(value[a], value[b]));
        };
        const std::int32_t lowest = n_below > 0 ? code[0] : common;
        const std::int32_t highest = n_below < n_sorted || !has_common ? code[n_sorted - 1] : common;
        if (!differ(lowest, highest)) return false;

        double bar = best.score - tolerance_;
        Side left(*this);
        for (std::uint32_t e = 0; e + !has_common < n_below; ++e) {
            left.add(sorted_[e]);
            if (!reaches(left, bar)) continue;
            const std::int32_t next = e + 1 < n_below ? code[e + 1] : common;
            if (!differ(code[e], next) || !leaves_enough(left)) continue;
            const double weight = static_cast<double>(left.weight());
            consider(f, code[e], next, weight, static_cast<double>(left.squares()),
                     static_cast<double>(left.other_squares()), best);
            bar = best.score - tolerance_;
        }
        if (n_below == n_sorted) return true;
        Side right(*this);
        for (std::uint32_t e = n_sorted; e-- > n_below;) {
            right.add(sorted_[e]);
            if (!reaches(right, bar)) continue;
            const std::int32_t previous = e > n_below ? code[e - 1] : common;
            if (!differ(previous, code[e]) || !leaves_enough(right)) continue;
            consider(f, previous, code[e], static_cast<double>(weight_ - right.weight()),
                     static_cast<double>(right.other_squares()), static_cast<double>(right.squares()), best);
            bar = best.score - tolerance_;
        }
        return true;
    }

    // Whether squares / weight, summed over both sides, is `bar` or more.
    template <class Side>
    bool reaches(const Side &side, double bar) const {
        const std::int64_t weight = side.weight(), other = weight_ - weight;
        return static_cast<double>(side.squares() * other + side.other_squares() * weight) >=
               bar * static_cast<double>(weight * other);
    }

    template <class Side>
    bool leaves_enough(const Side &side) const {
        const std::uint32_t n = side.n_items();
        return n >= options_.min_samples_leaf && end_ - start_ - n >= options_.min_samples_leaf;
    }

    // Keeps a split that is better than the best by scikit-learn's own expression, or as good and its feature's first.
    void consider(std::size_t f, std::int32_t below, std::int32_t above, double left_weight, double left_squares,
                  double right_squares, Split &best) const {
        const double exact = proxy(left_weight, left_squares, right_squares);
        const std::int32_t feature = static_cast<std::int32_t>(f);
        const bool comes_first = best.feature == feature && static_cast<Code>(below) < best.last_left_code;
        if (!(comes_first ? exact >= best.proxy : exact > best.proxy)) return;
        best.feature = feature;
        best.last_left_code = static_cast<Code>(below);
        best.first_right_code = static_cast<Code>(above);
        best.left_weight = left_weight;
        best.left_squares = left_squares;
        best.right_squares = right_squares;
        best.proxy = exact;
        best.score = left_squares / left_weight + right_squares / (static_cast<double>(weight_) - left_weight);
    }

    // ------------------------------------------------------------------ extra-trees: one random threshold each
    Split random_split(FeatureSampler &sampler, SplitterRandom &random) {
        Split best;
        for (std::int32_t feature; (feature = sampler.next(random)) >= 0;) {
            const std::size_t f = static_cast<std::size_t>(feature);
            const float *value = ranked_.distinct(f);
            std::int32_t low = std::numeric_limits<std::int32_t>::max(), high = 0;
            with_column(f, [&](auto code_of) {
                for (std::uint32_t p = start_; p < end_; ++p) {
                    const std::int32_t c = static_cast<std::int32_t>(code_of(items_[p]));
                    codes_[p - start_] = c;
                    low = std::min(low, c);
                    high = std::max(high, c);
                }
            });
            if (low == high || too_close(value[low], value[high])) {
                sampler.mark_constant();
                continue;
            }
            sampler.mark_evaluated();
            double threshold = random.uniform(value[low], value[high]);
            if (threshold == value[high]) threshold = value[low];
            const float *above =
                std::upper_bound(value + low, value + high + 1, threshold,
                                 [](double t, float v) { return t < static_cast<double>(v); });
            const std::int32_t last_left = static_cast<std::int32_t>(above - value - 1);
            if (binary_)
                evaluate_threshold<TwoClasses>(f, last_left, threshold, best);
            else
                evaluate_threshold<ManyClasses>(f, last_left, threshold, best);
        }
        return best;
    }

    template <class Side>
    void evaluate_threshold(std::size_t f, std::int32_t last_left, double threshold, Split &best) {
        Side left(*this);
        for (std::uint32_t p = start_; p < end_; ++p)
            if (codes_[p - start_] <= last_left) left.add(payload_[items_[p]]);
        if (!leaves_enough(left)) return;
        const double proxy_so_far = best.proxy;
        consider(f, last_left, last_left + 1, static_cast<double>(left.weight()), static_cast<double>(left.squares()),
                 static_cast<double>(left.other_squares()), best);
        if (best.proxy > proxy_so_far) best.threshold = threshold;
    }

    const RankCodes<Code> &ranked_;
    const ByteCodes *bytes_;
    const std::int32_t *labels_;
    bool binary_;
    GrowOptions options_;

    // the tree: items in node order, and the payload of each
    std::vector<std::uint32_t> counts_, items_, swap_;
    std::vector<std::uint64_t> tree_payload_;
    double tree_weight_ = 0.0;

    // a copy of the codes of the items in the nodes up to frame_end_, which items_ and payload_ then count from 0
    static constexpr std::uint32_t kFrame = 512, kSmallestFrame = 16;
    ByteFrame frame_;
    std::vector<std::uint32_t> frame_items_;  // empty: no copy is in use
    std::vector<std::uint64_t> frame_payload_;
    std::uint32_t frame_end_ = 0;

    // the node
    std::uint32_t start_ = 0, end_ = 0;
    std::size_t n_numbered_ = 0;  // items are numbered below this
    const std::uint64_t *payload_ = nullptr;
    bool by_mask_ = false;
    std::vector<std::uint64_t> mask_;  // the items, as bits
    bool picks_together_ = bytes_ != nullptr && ranked_.n_items <= kMostPlaces && can_use(Vectors::vbmi2);
    std::uint64_t packed_total_ = 0;
    std::int64_t weight_ = 0, squares_ = 0;
    std::vector<std::int64_t> total_, here_;
    double tolerance_ = 0.0;

    // the feature: codes and payloads that are not the commonest, and the set of codes that occur
    std::vector<std::int32_t> codes_, sorted_codes_;
    std::vector<std::uint64_t> payloads_, sorted_, histogram_, occupied_, summary_;
    std::vector<std::uint8_t> picked_;
    std::vector<std::uint16_t> places_;
};

}  // namespace hetcal
