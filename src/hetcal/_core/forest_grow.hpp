// Growing one classification tree on rank codes, split for split as scikit-learn grows it.
//
// What makes it fast: no sorting of values (codes are ranks already), the commonest value of a feature is left
// implicit, whole groups of equal values are scored at once, and a cheap score without divisions decides
// whether scikit-learn's own floating-point expression has to be evaluated.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "bits.hpp"
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
    // `bytes` (or null) are the byte_codes of the same data: half the memory to wait for.
    TreeGrower(const RankCodes<Code> &ranked, const std::uint8_t *bytes, const std::int32_t *labels,
               std::uint32_t n_classes, const GrowOptions &options)
        : ranked_(ranked), bytes_(bytes), labels_(labels), n_classes_(n_classes), binary_(n_classes <= 2), options_(options),
          inverse_(ranked.n_items + 1), counts_(ranked.n_items), total_(n_classes), left_(n_classes),
          default_(n_classes) {
        for (std::size_t n = 1; n < inverse_.size(); ++n) inverse_[n] = 1.0 / static_cast<double>(n);
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
            std::uint32_t middle = node.end;
            if (split.feature >= 0) {
                middle = partition(split);
                if (!improves_enough(split)) split.feature = -1;
            }
            if (split.feature < 0) {
                tree.add(-2, -2.0, false);
                continue;
            }
            tree.add(split.feature, split.threshold, middle - node.start > node.end - middle);
            stack.push_back({middle, node.end, known, id, false});
            stack.push_back({node.start, middle, known, id, true});
        }
        return tree;
    }

  private:
    // Class weights of a set of items: with two classes packed in one integer (21 bits each for the weight of
    // class 0, the weight of class 1, and the number of distinct items), so that one addition counts an item.
    static constexpr int kBits = 21;
    static constexpr std::uint64_t kField = (std::uint64_t(1) << kBits) - 1;
    static constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

    struct Split {
        std::int32_t feature = -1;
        Code last_left_code = 0;  // items with this code or a smaller one go left
        double threshold = 0.0;
        double left_weight = 0.0, left_squares = 0.0;  // total weight; sum over classes of squared weight
    };

    struct Entry {
        std::uint32_t code, position;
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
        payload_.clear();
        tree_weight_ = static_cast<double>(n);
        for (std::size_t i = 0; i < n; ++i)
            if (counts_[i] > 0) {
                items_.push_back(static_cast<std::uint32_t>(i));
                const std::uint64_t weight = counts_[i], label = static_cast<std::uint64_t>(labels_[i]);
                payload_.push_back(binary_ ? (weight << (label * kBits)) | (std::uint64_t(1) << (2 * kBits))
                                           : (label << 32) | weight);
            }
        swap_items_.resize(items_.size());
        swap_payload_.resize(items_.size());
        entries_.resize(items_.size() + 1);
        sorted_.resize(items_.size() + 1);
        group_code_.resize(items_.size() + 2);
        group_.resize(items_.size() + 2);
    }

    // Calls use(codes of the feature), from the smaller copy where there is one.
    template <class Use>
    auto with_column(std::size_t f, Use use) const {
        if (bytes_ != nullptr && ranked_.n_distinct(f) <= 256) return use(bytes_ + f * ranked_.n_items);
        return use(ranked_.column(f));
    }

    void enter_node(std::uint32_t start, std::uint32_t end) {
        start_ = start;
        end_ = end;
        if (binary_) {
            std::uint64_t sum = 0;
            for (std::uint32_t p = start; p < end; ++p) sum += payload_[p];
            packed_total_ = sum;
            const double w0 = static_cast<double>(sum & kField), w1 = static_cast<double>((sum >> kBits) & kField);
            weight_ = w0 + w1;
            squares_ = w0 * w0 + w1 * w1;
        } else {
            std::fill(total_.begin(), total_.end(), 0);
            for (std::uint32_t p = start; p < end; ++p)
                total_[payload_[p] >> 32] += static_cast<std::int64_t>(payload_[p] & 0xffffffffu);
            std::int64_t weight = 0, squares = 0;
            for (std::int64_t w : total_) {
                weight += w;
                squares += w * w;
            }
            weight_ = static_cast<double>(weight);
            squares_ = static_cast<double>(squares);
        }
    }

    static double gini(double squares, double weight) { return 1.0 - squares / (weight * weight); }

    bool is_splittable() const {
        const std::uint32_t n = end_ - start_;
        return n >= 2 && n / 2 >= options_.min_samples_leaf && gini(squares_, weight_) > kEpsilon;
    }

    // scikit-learn's proxy for the improvement, in its own order of operations (no fused multiply-add).
    double proxy(double left_weight, double left_squares, double right_squares) const {
        const double right_weight = weight_ - left_weight;
        const double gini_left = gini(left_squares, left_weight);
        const double gini_right = gini(right_squares, right_weight);
        return -right_weight * gini_right - left_weight * gini_left;
    }

    // Splits whose improvement is negative beyond rounding are refused, as scikit-learn refuses them.
    bool improves_enough(const Split &split) const {
        const double right_weight = weight_ - split.left_weight;
        const double improvement =
            (weight_ / tree_weight_) *
            (gini(squares_, weight_) - (right_weight / weight_ * gini(right_squares_, right_weight)) -
             (split.left_weight / weight_ * gini(split.left_squares, split.left_weight)));
        return !(improvement + kEpsilon < 0.0);
    }

    // Moves the items that go left to the front of the node; returns where the right ones begin.
    std::uint32_t partition(const Split &split) {
        std::uint32_t left = start_, right = 0;
        with_column(static_cast<std::size_t>(split.feature), [&](const auto *code) {
            for (std::uint32_t p = start_; p < end_; ++p) {
                const std::uint32_t item = items_[p];
                const std::uint64_t payload = payload_[p];
                const bool goes_left = code[item] <= split.last_left_code;
                items_[left] = item;
                payload_[left] = payload;
                swap_items_[right] = item;
                swap_payload_[right] = payload;
                left += goes_left;
                right += !goes_left;
            }
        });
        std::copy_n(swap_items_.begin(), right, items_.begin() + left);
        std::copy_n(swap_payload_.begin(), right, payload_.begin() + left);
        set_right_squares(left);
        return left;
    }

    void set_right_squares(std::uint32_t middle) {
        if (binary_) {
            std::uint64_t sum = 0;
            for (std::uint32_t p = middle; p < end_; ++p) sum += payload_[p];
            const double w0 = static_cast<double>(sum & kField), w1 = static_cast<double>((sum >> kBits) & kField);
            right_squares_ = w0 * w0 + w1 * w1;
        } else {
            std::fill(left_.begin(), left_.end(), 0);
            for (std::uint32_t p = middle; p < end_; ++p)
                left_[payload_[p] >> 32] += static_cast<std::int64_t>(payload_[p] & 0xffffffffu);
            std::int64_t squares = 0;
            for (std::int64_t w : left_) squares += w * w;
            right_squares_ = static_cast<double>(squares);
        }
    }

    // ------------------------------------------------------------------ the best threshold of every feature
    Split best_split(FeatureSampler &sampler, SplitterRandom &random) {
        Split best;
        best_proxy_ = -std::numeric_limits<double>::infinity();
        best_score_ = -std::numeric_limits<double>::infinity();
        // The cheap score differs from the proxy by a constant and by rounding far below this.
        tolerance_ = 1e-12 * weight_ + 1e-300;
        for (std::int32_t feature; (feature = sampler.next(random)) >= 0;) {
            // No split beats two pure children: the other features only have to be told constant or not.
            const bool only_constancy = best_proxy_ == 0.0;
            const bool varies = only_constancy ? is_varying(feature) : scan_feature(feature, best);
            if (varies)
                sampler.mark_evaluated();
            else
                sampler.mark_constant();
        }
        return best;
    }

    bool is_varying(std::int32_t feature) const {
        const std::size_t f = static_cast<std::size_t>(feature);
        return with_column(f, [&](const auto *code) {
            if (!ranked_.has_close[f]) {
                const auto first = code[items_[start_]];
                for (std::uint32_t p = start_ + 1; p < end_; ++p)
                    if (code[items_[p]] != first) return true;
                return false;
            }
            auto low = code[items_[start_]], high = low;
            for (std::uint32_t p = start_ + 1; p < end_; ++p) {
                low = std::min(low, code[items_[p]]);
                high = std::max(high, code[items_[p]]);
            }
            const float *value = ranked_.distinct(f);
            return !too_close(value[low], value[high]);
        });
    }

    // Looks at every threshold of one feature; false when the feature is constant in the node.
    bool scan_feature(std::int32_t feature, Split &best) {
        const std::size_t f = static_cast<std::size_t>(feature);
        const Code common = ranked_.most_frequent[f];
        std::uint32_t m = 0;  // entries whose code is not the commonest
        with_column(f, [&](const auto *code) {
            const std::uint32_t *items = items_.data();
            Entry *entries = entries_.data();
            std::uint32_t kept = 0;
            for (std::uint32_t p = start_, end = end_; p < end; ++p) {
                const Code c = code[items[p]];
                entries[kept] = {c, p};
                kept += c != common;
            }
            m = kept;
        });
        if (m == 0) return false;
        const bool has_common = m < end_ - start_;
        return binary_ ? scan_binary(f, common, has_common, m, best) : scan_multi(f, common, has_common, m, best);
    }

    // Puts the first m entries into groups of equal code, in increasing order (binary: weights packed).
    std::uint32_t group_binary(std::size_t n_codes, std::uint32_t m) {
        std::uint32_t n_groups = 0;
        auto append = [&](std::uint32_t code, std::uint64_t packed) {
            group_code_[n_groups] = code;
            group_[n_groups++] = packed;
        };
        if (m <= kInsertion) {
            insertion_sort(m);
            for (std::uint32_t e = 0; e < m; ++e) {
                const std::uint64_t packed = payload_[entries_[e].position];
                if (n_groups > 0 && group_code_[n_groups - 1] == entries_[e].code)
                    group_[n_groups - 1] += packed;
                else
                    append(entries_[e].code, packed);
            }
            return n_groups;
        }
        if (m >= n_codes / 8) {
            for (std::uint32_t e = 0; e < m; ++e) histogram_[entries_[e].code] += payload_[entries_[e].position];
            for (std::uint32_t c = 0; c < n_codes; ++c) {
                group_code_[n_groups] = c;
                group_[n_groups] = histogram_[c];
                n_groups += histogram_[c] != 0;
                histogram_[c] = 0;
            }
            return n_groups;
        }
        for (std::uint32_t e = 0; e < m; ++e) {
            histogram_[entries_[e].code] += payload_[entries_[e].position];
            occupy(entries_[e].code);
        }
        visit_occupied(n_codes, [&](std::uint32_t code) {
            append(code, histogram_[code]);
            histogram_[code] = 0;
        });
        return n_groups;
    }

    static constexpr std::uint32_t kInsertion = 12;

    void insertion_sort(std::uint32_t m) {
        for (std::uint32_t e = 1; e < m; ++e) {
            const Entry moving = entries_[e];
            std::uint32_t slot = e;
            for (; slot > 0 && entries_[slot - 1].code > moving.code; --slot) entries_[slot] = entries_[slot - 1];
            entries_[slot] = moving;
        }
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

    bool scan_binary(std::size_t f, Code common, bool has_common, std::uint32_t m, Split &best) {
        std::uint32_t n_groups = group_binary(ranked_.n_distinct(f), m);
        if (has_common) {  // the implicit group takes its place among the others
            std::uint64_t packed = packed_total_;
            for (std::uint32_t g = 0; g < n_groups; ++g) packed -= group_[g];
            std::uint32_t slot = n_groups++;
            for (; slot > 0 && group_code_[slot - 1] > common; --slot) {
                group_code_[slot] = group_code_[slot - 1];
                group_[slot] = group_[slot - 1];
            }
            group_code_[slot] = common;
            group_[slot] = packed;
        }
        const float *value = ranked_.distinct(f);
        const bool close = ranked_.has_close[f];
        if (n_groups < 2 || (close && too_close(value[group_code_[0]], value[group_code_[n_groups - 1]])))
            return false;
        const std::uint32_t n = end_ - start_, least = options_.min_samples_leaf;
        const std::int64_t t0 = static_cast<std::int64_t>(packed_total_ & kField);
        const std::int64_t t1 = static_cast<std::int64_t>((packed_total_ >> kBits) & kField);
        std::uint64_t packed = 0;
        for (std::uint32_t g = 0; g + 1 < n_groups; ++g) {
            packed += group_[g];
            if (close && too_close(value[group_code_[g]], value[group_code_[g + 1]])) continue;
            const std::int64_t l0 = static_cast<std::int64_t>(packed & kField);
            const std::int64_t l1 = static_cast<std::int64_t>((packed >> kBits) & kField);
            const std::int64_t r0 = t0 - l0, r1 = t1 - l1;
            const double score = -2.0 * (static_cast<double>(l0 * l1) * inverse_[l0 + l1] +
                                         static_cast<double>(r0 * r1) * inverse_[r0 + r1]);
            if (score < best_score_ - tolerance_) continue;
            if (least > 1) {
                const std::uint32_t n_left = static_cast<std::uint32_t>(packed >> (2 * kBits));
                if (n_left < least || n - n_left < least) continue;
            }
            consider(f, g, score, static_cast<double>(l0 + l1), static_cast<double>(l0 * l0 + l1 * l1),
                     static_cast<double>(r0 * r0 + r1 * r1), best);
        }
        return true;
    }

    // Keeps the split after group g when scikit-learn's own expression says that it is strictly better.
    void consider(std::size_t f, std::uint32_t g, double score, double left_weight, double left_squares,
                  double right_squares, Split &best) {
        const double exact = proxy(left_weight, left_squares, right_squares);
        if (!(exact > best_proxy_)) return;
        best_proxy_ = exact;
        best_score_ = score;
        const float *value = ranked_.distinct(f);
        best.feature = static_cast<std::int32_t>(f);
        best.last_left_code = static_cast<Code>(group_code_[g]);
        best.threshold = value[group_code_[g]] / 2.0 + value[group_code_[g + 1]] / 2.0;
        best.left_weight = left_weight;
        best.left_squares = left_squares;
    }

    // ------------------------------------------------------------------ more than two classes
    // Sorts the first m entries by code into sorted_ (as payloads) and notes where each group ends.
    std::uint32_t group_multi(std::size_t n_codes, std::uint32_t m) {
        std::uint32_t n_groups = 0;
        if (m <= kInsertion) {
            insertion_sort(m);
            for (std::uint32_t e = 0; e < m; ++e) {
                sorted_[e] = payload_[entries_[e].position];
                if (n_groups == 0 || group_code_[n_groups - 1] != entries_[e].code)
                    group_code_[n_groups++] = entries_[e].code;
                group_[n_groups - 1] = e + 1;
            }
            return n_groups;
        }
        const bool dense = m >= n_codes / 8;
        for (std::uint32_t e = 0; e < m; ++e) ++histogram_[entries_[e].code];
        std::uint64_t first = 0;
        auto place = [&](std::uint32_t code) {  // the count of a code becomes the slot of its next entry
            const std::uint64_t count = histogram_[code];
            histogram_[code] = first;
            first += count;
            group_code_[n_groups] = code;
            group_[n_groups] = first;
            n_groups += count != 0;
        };
        if (dense) {
            for (std::uint32_t c = 0; c < n_codes; ++c) place(c);
        } else {
            for (std::uint32_t e = 0; e < m; ++e) occupy(entries_[e].code);
            visit_occupied(n_codes, place);
        }
        for (std::uint32_t e = 0; e < m; ++e)
            sorted_[histogram_[entries_[e].code]++] = payload_[entries_[e].position];
        if (dense)
            std::fill_n(histogram_.begin(), n_codes, 0);
        else
            for (std::uint32_t g = 0; g < n_groups; ++g) histogram_[group_code_[g]] = 0;
        return n_groups;
    }

    bool scan_multi(std::size_t f, Code common, bool has_common, std::uint32_t m, Split &best) {
        std::uint32_t n_groups = group_multi(ranked_.n_distinct(f), m);
        constexpr std::uint64_t kImplicit = ~std::uint64_t(0);
        if (has_common) {
            std::uint32_t slot = n_groups++;
            for (; slot > 0 && group_code_[slot - 1] > common; --slot) {
                group_code_[slot] = group_code_[slot - 1];
                group_[slot] = group_[slot - 1];
            }
            group_code_[slot] = common;
            group_[slot] = kImplicit;
        }
        const float *value = ranked_.distinct(f);
        const bool close = ranked_.has_close[f];
        if (n_groups < 2 || (close && too_close(value[group_code_[0]], value[group_code_[n_groups - 1]])))
            return false;
        if (has_common) {
            default_ = total_;
            for (std::uint32_t e = 0; e < m; ++e)
                default_[sorted_[e] >> 32] -= static_cast<std::int64_t>(sorted_[e] & 0xffffffffu);
        }
        const std::uint32_t n = end_ - start_, least = options_.min_samples_leaf;
        std::fill(left_.begin(), left_.end(), 0);
        std::int64_t left_squares = 0, right_squares = static_cast<std::int64_t>(squares_), left_weight = 0;
        const std::int64_t weight = static_cast<std::int64_t>(weight_);
        std::uint32_t next = 0, n_left = 0;
        auto move_left = [&](std::size_t k, std::int64_t w) {
            const std::int64_t l = left_[k], r = total_[k] - l;
            left_squares += w * (2 * l + w);
            right_squares -= w * (2 * r - w);
            left_[k] = l + w;
            left_weight += w;
        };
        for (std::uint32_t g = 0; g + 1 < n_groups; ++g) {
            if (group_[g] == kImplicit) {
                for (std::uint32_t k = 0; k < n_classes_; ++k)
                    if (default_[k] != 0) move_left(k, default_[k]);
                n_left += n - m;
            } else {
                n_left += static_cast<std::uint32_t>(group_[g]) - next;
                for (; next < group_[g]; ++next)
                    move_left(sorted_[next] >> 32, static_cast<std::int64_t>(sorted_[next] & 0xffffffffu));
            }
            if (close && too_close(value[group_code_[g]], value[group_code_[g + 1]])) continue;
            const double score = static_cast<double>(left_squares) * inverse_[left_weight] +
                                 static_cast<double>(right_squares) * inverse_[weight - left_weight] - weight_;
            if (score < best_score_ - tolerance_) continue;
            if (n_left < least || n - n_left < least) continue;
            consider(f, g, score, static_cast<double>(left_weight), static_cast<double>(left_squares),
                     static_cast<double>(right_squares), best);
        }
        return true;
    }

    // ------------------------------------------------------------------ extra-trees: one random threshold each
    Split random_split(FeatureSampler &sampler, SplitterRandom &random) {
        Split best;
        best_proxy_ = -std::numeric_limits<double>::infinity();
        for (std::int32_t feature; (feature = sampler.next(random)) >= 0;) {
            const std::size_t f = static_cast<std::size_t>(feature);
            const float *value = ranked_.distinct(f);
            Code low = std::numeric_limits<Code>::max(), high = 0;
            with_column(f, [&](const auto *code) {
                for (std::uint32_t p = start_; p < end_; ++p) {
                    const Code c = code[items_[p]];
                    entries_[p - start_].code = c;
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
            evaluate_threshold(f, static_cast<Code>(above - value - 1), threshold, best);
        }
        return best;
    }

    void evaluate_threshold(std::size_t f, Code last_left_code, double threshold, Split &best) {
        const std::uint32_t n = end_ - start_, least = options_.min_samples_leaf;
        double left_weight = 0.0, left_squares = 0.0, right_squares = 0.0;
        std::uint32_t n_left = 0;
        if (binary_) {
            std::uint64_t packed = 0;
            for (std::uint32_t p = 0; p < n; ++p)
                packed += entries_[p].code <= last_left_code ? payload_[start_ + p] : 0;
            const std::uint64_t rest = packed_total_ - packed;
            n_left = static_cast<std::uint32_t>(packed >> (2 * kBits));
            const double l0 = static_cast<double>(packed & kField), r0 = static_cast<double>(rest & kField);
            const double l1 = static_cast<double>((packed >> kBits) & kField);
            const double r1 = static_cast<double>((rest >> kBits) & kField);
            left_weight = l0 + l1;
            left_squares = l0 * l0 + l1 * l1;
            right_squares = r0 * r0 + r1 * r1;
        } else {
            std::fill(left_.begin(), left_.end(), 0);
            for (std::uint32_t p = 0; p < n; ++p) {
                const bool goes_left = entries_[p].code <= last_left_code;
                const std::uint64_t payload = payload_[start_ + p];
                left_[payload >> 32] += goes_left ? static_cast<std::int64_t>(payload & 0xffffffffu) : 0;
                n_left += goes_left;
            }
            for (std::uint32_t k = 0; k < n_classes_; ++k) {
                const double l = static_cast<double>(left_[k]), r = static_cast<double>(total_[k] - left_[k]);
                left_weight += l;
                left_squares += l * l;
                right_squares += r * r;
            }
        }
        if (n_left < least || n - n_left < least) return;
        const double exact = proxy(left_weight, left_squares, right_squares);
        if (!(exact > best_proxy_)) return;
        best_proxy_ = exact;
        best.feature = static_cast<std::int32_t>(f);
        best.last_left_code = last_left_code;
        best.threshold = threshold;
        best.left_weight = left_weight;
        best.left_squares = left_squares;
    }

    const RankCodes<Code> &ranked_;
    const std::uint8_t *bytes_;
    const std::int32_t *labels_;
    std::uint32_t n_classes_;
    bool binary_;
    GrowOptions options_;
    std::vector<double> inverse_;  // 1 / n

    // the tree: items in node order, with their packed class and weight
    std::vector<std::uint32_t> counts_, items_, swap_items_;
    std::vector<std::uint64_t> payload_, swap_payload_;
    double tree_weight_ = 0.0;

    // the node
    std::uint32_t start_ = 0, end_ = 0;
    std::uint64_t packed_total_ = 0;
    double weight_ = 0.0, squares_ = 0.0, right_squares_ = 0.0;
    std::vector<std::int64_t> total_, left_, default_;
    double best_proxy_ = 0.0, best_score_ = 0.0, tolerance_ = 0.0;

    // the feature: its entries, their groups, and the set of codes that occur
    std::vector<Entry> entries_;
    std::vector<std::uint64_t> sorted_, group_, histogram_, occupied_, summary_;
    std::vector<std::uint32_t> group_code_;
};

}  // namespace hetcal
