// Unpruned decision trees on bootstrap samples of a neighbourhood: all features, Gini, leaves of one item.
//
// Trees grow depth first, left child first, because scikit-learn draws its random numbers in that order. Large nodes
// are searched many trees at a time (hh_lanes.hpp); below them each tree goes on alone, on sorted lists of its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "hh_columns.hpp"
#include "hh_lanes.hpp"
#include "hh_tree.hpp"
#include "sklearn_random.hpp"

namespace hetcal::hh {

inline double gini(double squares, double weight) { return 1.0 - squares / (weight * weight); }

// A possible split, with the value by which scikit-learn compares it: minus the weighted impurity of both sides.
struct Candidate {
    double proxy;
    std::uint32_t feature;
    Code below, above;  // the two neighbouring codes that it separates
};

class TreeGrower {
  public:
    TreeGrower(const SortedColumns &columns, bool exact)
        : columns_(columns), exact_(exact),
          pristine_sampler_(std::uint32_t(columns.ranks.n_features), std::uint32_t(columns.ranks.n_features)),
          remainders_(std::uint32_t(columns.ranks.n_features) + 1), stamp_(columns.ranks.n_features, 0) {}

    // Prepares for the trees of one neighbourhood.
    void begin(Neighbourhood &hood, const Labels &labels) {
        hood_ = &hood;
        labels_ = &labels;
        inverse_.resize(hood.size + 1);
        for (std::uint32_t i = 1; i <= hood.size; ++i) inverse_[i] = 1.0 / i;
        left_.assign(labels.n_classes, 0);
        totals_.resize(labels.n_classes);
        goes_left_.resize(hood.size);
        in_node_.assign(hood.size, 0);
        // With few features the exact search that follows the lanes would cost more than they save.
        const bool use_lanes = walk_.n_lanes > 0 && hood.spans.size() >= 32 && hood.entries.size() >= 1000;
        large_ = use_lanes ? std::max(16u, hood.size / kSmallNode) : kNever;
        if (use_lanes) hood.list_rows();
    }

    // Grows every tree; their draws, seed and random are set.
    void grow(std::vector<Growing> &trees, const std::atomic<bool> &stop) {
        waiting_.clear();
        for (std::size_t t = 0; t < trees.size() && !stop; ++t) {
            plant(trees[t]);
            if (advance(trees[t])) waiting_.push_back(&trees[t]);
        }
        std::size_t next = 0;
        while (next < waiting_.size() && !stop) {
            const std::size_t end = std::min<std::size_t>(waiting_.size(), next + walk_.n_lanes);
            search_lanes(next, end);
            for (std::size_t lane = 0; next < end; ++lane) {
                Growing *tree = waiting_[next++];
                set_tree(*tree);
                const Pending pending = pop();
                grow_node(pending, std::int32_t(lane));
                if (advance(*tree)) waiting_.push_back(tree);
            }
        }
    }

  private:
    static constexpr std::uint32_t kSmallNode = 16;  // nodes below this part of the neighbourhood leave the lanes
    static constexpr std::uint32_t kNever = 0xffffffff;
    static constexpr std::int32_t kAlone = -1;

    const SortedColumns &columns_;
    const bool exact_;
    const FeatureSampler pristine_sampler_;
    const Remainders remainders_;
    const Walk walk_ = best_walk();

    const Neighbourhood *hood_ = nullptr;
    const Labels *labels_ = nullptr;
    std::vector<double> inverse_;  // 1 / n
    std::uint32_t large_ = 0;      // items from which a node is searched in a lane
    std::vector<Growing *> waiting_;
    LaneNodes lanes_;

    // The tree in work.
    Growing *growing_ = nullptr;
    const std::uint16_t *draws_ = nullptr;
    const std::uint32_t *packed_ = nullptr;
    std::vector<Entry> entries_, right_entries_;
    std::vector<Span> spans_, left_spans_;
    std::vector<Item> right_items_;
    std::vector<std::uint8_t> goes_left_, in_node_;
    std::vector<std::uint32_t> keys_, span_end_;

    // The node in work.
    std::vector<std::int64_t> left_, totals_;
    std::int64_t weight_ = 0, squares_ = 0;
    std::uint32_t n_items_ = 0;
    double best_score_ = 0, tolerance_ = 0;
    std::vector<Candidate> candidates_;
    std::vector<std::uint32_t> varying_;  // positions in spans_ of features that vary in the node
    std::vector<std::uint32_t> stamp_;    // feature -> the last node in which it was marked
    std::uint32_t clock_ = 0;

    bool two_classes() const { return labels_->n_classes == 2; }

    void set_tree(Growing &growing) {
        growing_ = &growing;
        draws_ = growing.draws.data();
        packed_ = growing.packed.data();
    }

    Pending pop() {
        const Pending pending = growing_->stack.back();
        growing_->stack.pop_back();
        return pending;
    }

    void plant(Growing &growing) {
        Tree &tree = growing.tree;
        tree.nodes.clear();
        tree.counts.clear();
        tree.bag.clear();
        tree.oob.clear();
        for (std::uint32_t i = 0; i < hood_->size; ++i) (growing.draws[i] ? tree.bag : tree.oob).push_back(Item(i));
        growing.packed.resize(hood_->size);
        if (two_classes())
            for (std::uint32_t i = 0; i < hood_->size; ++i)
                growing.packed[i] = growing.draws[i] * (labels_->y[i] ? 0x10001u : 1u);
        if (exact_) growing.sampler = pristine_sampler_;
        growing.stack.assign(1, {-1, false, std::numeric_limits<double>::infinity(), 0, std::uint32_t(tree.bag.size()),
                                 0, std::uint32_t(tree.oob.size()), Pending::kUnlisted, Pending::kUnlisted, 0});
    }

    // Grows the tree until it is complete, or (true) until its next node is to be searched in a lane.
    bool advance(Growing &growing) {
        set_tree(growing);
        while (!growing.stack.empty()) {
            Pending &next = growing.stack.back();
            if (!next.is_listed() && !is_leaf(next)) {
                if (next.n_items() >= large_) return true;
                list_entries(next);
            }
            const Pending pending = pop();
            grow_node(pending, kAlone);
        }
        return false;
    }

    // Impurities of children are known; the root's is infinite until it is counted, which is late enough.
    static bool is_leaf(const Pending &pending) {
        return pending.n_items() < 2 || pending.impurity <= std::numeric_limits<double>::epsilon();
    }

    // Makes the sorted lists of a node.
    void list_entries(Pending &pending) {
        spans_.clear();
        entries_.resize(hood_->entries.size());
        // Sorting costs about 10 times as much per entry as reading a sorted column.
        if (large_ != kNever && pending.n_items() * 10 < hood_->size)
            list_by_sorting(pending);
        else
            list_by_filtering(pending);
        pending.spans_low = 0;
        pending.spans_high = std::uint32_t(spans_.size());
    }

    void list_by_filtering(const Pending &pending) {
        const std::vector<Item> &bag = growing_->tree.bag;
        for (std::uint32_t i = pending.bag_low; i < pending.bag_high; ++i) in_node_[bag[i]] = 1;
        std::uint32_t write = 0;
        for (const Span &span : hood_->spans) {
            const Span listed = filter_span(span, write);
            write = listed.high;
            if (listed.high > listed.low) spans_.push_back(listed);
        }
        for (std::uint32_t i = pending.bag_low; i < pending.bag_high; ++i) in_node_[bag[i]] = 0;
    }

    void list_by_sorting(const Pending &pending) {
        const Item *bag = growing_->tree.bag.data();
        span_end_.assign(hood_->spans.size() + 1, 0);
        for (std::uint32_t i = pending.bag_low; i < pending.bag_high; ++i)
            for (std::uint32_t j = hood_->row_start[bag[i]]; j < hood_->row_start[bag[i] + 1]; ++j)
                ++span_end_[hood_->cells[j].span + 1];
        for (std::size_t s = 1; s < span_end_.size(); ++s) span_end_[s] += span_end_[s - 1];
        keys_.resize(span_end_.back());
        // span_end_[s] is where span s begins, and moves to its end while it is filled
        for (std::uint32_t i = pending.bag_low; i < pending.bag_high; ++i)
            for (std::uint32_t j = hood_->row_start[bag[i]]; j < hood_->row_start[bag[i] + 1]; ++j)
                keys_[span_end_[hood_->cells[j].span]++] = (std::uint32_t(hood_->cells[j].code) << 16) | bag[i];
        std::uint32_t low = 0;
        for (std::size_t s = 0; s < hood_->spans.size(); ++s) {
            const std::uint32_t high = span_end_[s], feature = hood_->spans[s].feature;
            if (low == high) continue;
            sort_keys(keys_.data() + low, keys_.data() + high);
            const Code common = columns_.ranks.most_frequent[feature];
            std::uint32_t middle = low;
            for (std::uint32_t i = low; i < high; ++i) {
                const Code code = Code(keys_[i] >> 16);
                entries_[i] = {code, Item(keys_[i] & 0xffff)};
                middle += code < common;
            }
            spans_.push_back({feature, low, middle, high});
            low = high;
        }
    }

    static void sort_keys(std::uint32_t *begin, std::uint32_t *end) {
        if (end - begin > 32) {
            std::sort(begin, end);
            return;
        }
        for (std::uint32_t *i = begin + 1; i < end; ++i) {
            const std::uint32_t key = *i;
            std::uint32_t *hole = i;
            for (; hole > begin && hole[-1] > key; --hole) *hole = hole[-1];
            *hole = key;
        }
    }

    // The entries of the items marked in in_node_, written to entries_ from `write` on.
    Span filter_span(const Span &span, std::uint32_t write) {
        const Entry *from = hood_->entries.data();
        Entry *to = entries_.data();
        const std::uint32_t low = write;
        for (std::uint32_t i = span.low; i < span.middle; ++i) {
            to[write] = from[i];
            write += in_node_[from[i].item];
        }
        const std::uint32_t middle = write;
        for (std::uint32_t i = span.middle; i < span.high; ++i) {
            to[write] = from[i];
            write += in_node_[from[i].item];
        }
        return {span.feature, low, middle, write};
    }

    // Scores of every feature for the next nodes of the waiting trees [begin, end), one lane each.
    void search_lanes(std::size_t begin, std::size_t end) {
        const std::uint32_t width = walk_.n_lanes;
        lanes_.n_classes = labels_->n_classes;
        lanes_.counts.assign(std::size_t(hood_->size) * width, 0.0f);
        lanes_.totals.assign(lanes_.n_classes * width, 0.0f);
        lanes_.left.resize(lanes_.n_classes * width);
        lanes_.best.resize(hood_->spans.size() * width);
        std::fill_n(lanes_.weight, kMostLanes, 0.0f);
        for (std::size_t lane = 0; begin + lane < end; ++lane) {
            const Growing &growing = *waiting_[begin + lane];
            const Pending &pending = growing.stack.back();
            for (std::uint32_t i = pending.bag_low; i < pending.bag_high; ++i) {
                const Item item = growing.tree.bag[i];
                const float count = growing.draws[item];
                lanes_.counts[item * width + lane] = count;
                lanes_.totals[labels_->y[item] * width + lane] += count;
                lanes_.weight[lane] += count;
            }
        }
        walk_.run(*hood_, labels_->y.data(), lanes_);
    }

    // `lane`: where the node was searched, or kAlone.
    void grow_node(const Pending &pending, std::int32_t lane) {
        Tree &tree = growing_->tree;
        const std::int32_t id = std::int32_t(tree.nodes.size());
        if (pending.parent >= 0) {
            Node &parent = tree.nodes[pending.parent];
            (pending.is_left ? parent.left : parent.right) = id;
        }
        count_classes(pending, tree);
        const double weight = double(weight_);
        const double impurity = pending.parent < 0 ? gini(double(squares_), weight) : pending.impurity;
        tree.nodes.push_back({pending.parent, -1, -1, weight, impurity, pending.bag_low, pending.bag_high,
                              pending.oob_low, pending.oob_high});
        if (n_items_ < 2 || impurity <= std::numeric_limits<double>::epsilon()) return;

        if (lane == kAlone)
            scan_features(pending);
        else
            scan_features_of_lane(pending, std::uint32_t(lane));
        std::uint32_t constants = 0;
        const Candidate *best = exact_ ? choose_like_sklearn(pending, constants) : choose_at_random(id);
        if (best == nullptr) return;
        split(pending, *best, constants, id, tree);
    }

    void count_classes(const Pending &pending, Tree &tree) {
        std::fill(totals_.begin(), totals_.end(), 0);
        for (std::uint32_t i = pending.bag_low; i < pending.bag_high; ++i)
            totals_[labels_->y[tree.bag[i]]] += draws_[tree.bag[i]];
        weight_ = squares_ = 0;
        for (const std::int64_t count : totals_) {
            weight_ += count;
            squares_ += count * count;
            tree.counts.push_back(std::uint32_t(count));
        }
        n_items_ = pending.bag_high - pending.bag_low;
    }

    void begin_scan() {
        candidates_.clear();
        varying_.clear();
        best_score_ = 0;
        // Scores are compared in a cheaper form first; what comes this near to the best is compared exactly.
        const double n = double(weight_);
        tolerance_ = two_classes() ? 1e-12 * n * n : 1e-12 * n;
        ++clock_;
    }

    // Finds every split whose score may equal the best one's, and the features that vary in the node.
    void scan_features(const Pending &pending) {
        begin_scan();
        for (std::uint32_t s = pending.spans_low; s < pending.spans_high; ++s) {
            const Span &span = spans_[s];
            if (is_constant(span)) continue;
            varying_.push_back(s);
            stamp_[span.feature] = clock_;
            scan(span);
        }
    }

    // The same, where single-precision scores tell which features need not be looked at.
    void scan_features_of_lane(const Pending &pending, std::uint32_t lane) {
        begin_scan();
        const std::uint32_t width = walk_.n_lanes;
        // The walk takes close values as different, and so may think too highly of their features.
        const auto unsure = [this](const Span &span) { return columns_.ranks.has_close[span.feature] != 0; };
        float best = 0;
        for (std::size_t s = 0; s < hood_->spans.size(); ++s)
            if (!unsure(hood_->spans[s])) best = std::max(best, lanes_.best[s * width + lane]);
        // Counts are exact in single precision up to this weight, so only a few roundings separate the scores.
        const float bar = weight_ <= kLargestLaneWeight ? best * (1 - 1e-5f) : -1.0f;
        const std::vector<Item> &bag = growing_->tree.bag;
        if (entries_.size() < hood_->size) entries_.resize(hood_->size);
        for (std::uint32_t i = pending.bag_low; i < pending.bag_high; ++i) in_node_[bag[i]] = 1;
        for (std::size_t s = 0; s < hood_->spans.size(); ++s) {
            const Span &span = hood_->spans[s];
            const float score = lanes_.best[s * width + lane];
            if (score == 0) continue;
            if (score >= bar || unsure(span)) {
                const Span listed = filter_span(span, 0);
                if (is_constant(listed)) continue;
                scan(listed);
            }
            stamp_[span.feature] = clock_;
        }
        for (std::uint32_t i = pending.bag_low; i < pending.bag_high; ++i) in_node_[bag[i]] = 0;
    }

    void scan(const Span &span) {
        if (two_classes())
            scan<true>(span);
        else
            scan<false>(span);
    }

    bool has_common(const Span &span) const { return span.high - span.low < n_items_; }

    bool is_constant(const Span &span) const {
        const Code common = columns_.ranks.most_frequent[span.feature];
        const bool with_common = has_common(span);
        const Code first = span.low < span.middle || !with_common ? entries_[span.low].code : common;
        const Code last = span.middle < span.high || !with_common ? entries_[span.high - 1].code : common;
        if (first == last) return true;
        if (!columns_.ranks.has_close[span.feature]) return false;
        const float *value = columns_.ranks.distinct(span.feature);
        return too_close(value[first], value[last]);
    }

    // Splits one feature at every place where its value changes; codes below the commonest from the left, those
    // above it from the right, so that items with the commonest code are never touched.
    template <bool Two>
    void scan(const Span &span) {
        const Code common = columns_.ranks.most_frequent[span.feature];
        const bool with_common = has_common(span);
        const float *close = columns_.ranks.has_close[span.feature] ? columns_.ranks.distinct(span.feature) : nullptr;
        const auto differ = [close](Code a, Code b) { return a != b && !(close && too_close(close[a], close[b])); };
        const Entry *e = entries_.data();
        Candidate best{-std::numeric_limits<double>::infinity(), span.feature, 0, 0};

        Side<Two> side(*this);
        for (std::uint32_t i = span.low; i < span.middle; ++i) {
            side.add(e[i].item);
            Code next;
            if (i + 1 < span.middle)
                next = e[i + 1].code;
            else if (with_common)
                next = common;
            else if (span.middle < span.high)
                next = e[span.middle].code;
            else
                break;
            if (!differ(e[i].code, next) || !side.promising()) continue;
            const double proxy = side.proxy(true);
            if (proxy > best.proxy) best = {proxy, span.feature, e[i].code, next};
        }
        if (span.middle < span.high) {
            Candidate above{-std::numeric_limits<double>::infinity(), span.feature, 0, 0};
            side.reset();
            for (std::uint32_t i = span.high; i-- > span.middle;) {
                side.add(e[i].item);
                Code previous;
                if (i > span.middle)
                    previous = e[i - 1].code;
                else if (with_common)
                    previous = common;
                else
                    break;  // this place was seen from the left, or nothing is left of it
                if (!differ(previous, e[i].code) || !side.promising()) continue;
                const double proxy = side.proxy(false);
                // coming from the right, the last of equals is the first in scikit-learn's order
                if (proxy >= above.proxy) above = {proxy, span.feature, previous, e[i].code};
            }
            if (above.proxy > best.proxy) best = above;
        }
        if (best.above != best.below) candidates_.push_back(best);
    }

    // The items on the side where the scan began, and the score of splitting them off.
    template <bool Two>
    struct Side;

    const Candidate *choose_like_sklearn(const Pending &pending, std::uint32_t &constants) {
        keep_best_candidates();
        const bool tied = candidates_.size() > 1;
        const std::uint32_t varies = clock_;
        if (tied) {
            ++clock_;
            for (const Candidate &candidate : candidates_) stamp_[candidate.feature] = clock_;
        }
        const std::uint32_t *stamp = stamp_.data(), best = clock_;
        const std::int32_t chosen = growing_->sampler.draw_all(
            pending.known_constants, growing_->random, remainders_,
            [=](std::int32_t feature) { return stamp[feature] < varies; },
            [=](std::int32_t feature) { return tied && stamp[feature] == best; });
        constants = growing_->sampler.n_constants();
        if (!tied) return candidates_.empty() ? nullptr : &candidates_[0];
        for (const Candidate &candidate : candidates_)
            if (std::int32_t(candidate.feature) == chosen) return &candidate;
        return nullptr;
    }

    const Candidate *choose_at_random(std::int32_t node) {
        keep_best_candidates();
        if (candidates_.empty()) return nullptr;
        std::uint64_t bits = (std::uint64_t(growing_->seed) << 32) ^ std::uint64_t(node) * 0x9e3779b97f4a7c15u;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
        return &candidates_[((bits >> 33) * candidates_.size()) >> 31];
    }

    void keep_best_candidates() {
        double best = -std::numeric_limits<double>::infinity();
        for (const Candidate &candidate : candidates_) best = std::max(best, candidate.proxy);
        const auto worse = [best](const Candidate &candidate) { return candidate.proxy < best; };
        candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(), worse), candidates_.end());
    }

    void split(const Pending &pending, const Candidate &best, std::uint32_t constants, std::int32_t id, Tree &tree) {
        const Code limit = threshold_code(best);
        const Code *code = columns_.ranks.column(best.feature);
        const auto left_of = [&](Item item) { return code[hood_->members[item]] <= limit; };
        const std::uint32_t bag_cut = partition(tree.bag, pending.bag_low, pending.bag_high, left_of);

        // Impurities of the children, in scikit-learn's own form.
        std::fill(left_.begin(), left_.end(), 0);
        for (std::uint32_t i = pending.bag_low; i < bag_cut; ++i)
            left_[labels_->y[tree.bag[i]]] += draws_[tree.bag[i]];
        double weight_left = 0, squares_left = 0, squares_right = 0;
        for (std::uint32_t c = 0; c < labels_->n_classes; ++c) {
            const double l = double(left_[c]), r = double(totals_[c] - left_[c]);
            weight_left += l;
            squares_left += l * l;
            squares_right += r * r;
        }
        const double weight = double(weight_), weight_right = weight - weight_left;
        const double left_impurity = gini(squares_left, weight_left);
        const double right_impurity = gini(squares_right, weight_right);
        const double improvement = (weight / tree.nodes[0].weight) *
                                   (tree.nodes[id].impurity - (weight_right / weight * right_impurity) -
                                    (weight_left / weight * left_impurity));
        constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
        if (improvement + kEpsilon < 0.0) return;

        const std::uint32_t oob_cut = partition(tree.oob, pending.oob_low, pending.oob_high, left_of);
        const bool grow_left = bag_cut - pending.bag_low > 1 && left_impurity > kEpsilon;
        const bool grow_right = pending.bag_high - bag_cut > 1 && right_impurity > kEpsilon;
        constexpr std::uint32_t kUnlisted = Pending::kUnlisted;
        Pending left{id, true, left_impurity, pending.bag_low, bag_cut, pending.oob_low, oob_cut,
                     kUnlisted, kUnlisted, constants};
        Pending right{id, false, right_impurity, bag_cut, pending.bag_high, oob_cut, pending.oob_high,
                      kUnlisted, kUnlisted, constants};
        if (pending.is_listed() && (grow_left || grow_right)) {
            for (std::uint32_t i = pending.bag_low; i < bag_cut; ++i) goes_left_[tree.bag[i]] = 1;
            for (std::uint32_t i = bag_cut; i < pending.bag_high; ++i) goes_left_[tree.bag[i]] = 0;
            split_spans(pending, grow_left, grow_right, left, right);
        }
        growing_->stack.push_back(right);
        growing_->stack.push_back(left);
    }

    // The largest code that goes left; codes between the two may exist outside the bag.
    Code threshold_code(const Candidate &best) const {
        const float *value = columns_.ranks.distinct(best.feature);
        const double threshold = value[best.below] / 2.0 + value[best.above] / 2.0;
        const float *after = std::upper_bound(value + best.below, value + best.above, threshold,
                                              [](double t, float v) { return t < double(v); });
        return Code(after - value - 1);
    }

    template <class Predicate>
    std::uint32_t partition(std::vector<Item> &items, std::uint32_t low, std::uint32_t high, Predicate left_of) {
        if (right_items_.size() < high - low) right_items_.resize(high - low);
        std::uint32_t write = low, n_right = 0;
        for (std::uint32_t i = low; i < high; ++i) {
            const Item item = items[i];
            const bool is_left = left_of(item);
            items[write] = item;
            right_items_[n_right] = item;
            write += is_left;
            n_right += !is_left;
        }
        std::copy_n(right_items_.begin(), n_right, items.begin() + write);
        return write;
    }

    // Hands the entries of varying features to the children that will grow; sorted order is kept. The spans of
    // the right child take the parent's place, those of the left child follow: the left one is grown first.
    void split_spans(const Pending &pending, bool grow_left, bool grow_right, Pending &left, Pending &right) {
        left_spans_.clear();
        std::uint32_t write_span = pending.spans_low;
        std::uint32_t longest = 0;
        for (const std::uint32_t s : varying_) longest = std::max(longest, spans_[s].high - spans_[s].low);
        if (right_entries_.size() < longest) right_entries_.resize(longest);
        Entry *const spare = right_entries_.data();
        Entry *const e = entries_.data();
        for (const std::uint32_t s : varying_) {
            const Span span = spans_[s];
            if (grow_left && grow_right) {
                std::uint32_t write = span.low, n_right = 0;
                const auto move = [&](std::uint32_t from, std::uint32_t to) {
                    for (std::uint32_t i = from; i < to; ++i) {
                        const Entry entry = e[i];
                        const std::uint8_t is_left = goes_left_[entry.item];
                        e[write] = entry;
                        spare[n_right] = entry;
                        write += is_left;
                        n_right += 1u - is_left;
                    }
                };
                move(span.low, span.middle);
                const std::uint32_t left_middle = write, right_below = n_right;
                move(span.middle, span.high);
                std::copy_n(spare, n_right, e + write);
                if (write > span.low) left_spans_.push_back({span.feature, span.low, left_middle, write});
                if (n_right) spans_[write_span++] = {span.feature, write, write + right_below, span.high};
            } else {
                const std::uint8_t keep = grow_left;
                std::uint32_t write = span.low;
                const auto filter = [&](std::uint32_t from, std::uint32_t to) {
                    for (std::uint32_t i = from; i < to; ++i) {
                        const Entry entry = e[i];
                        e[write] = entry;
                        write += goes_left_[entry.item] == keep;
                    }
                };
                filter(span.low, span.middle);
                const std::uint32_t middle = write;
                filter(span.middle, span.high);
                if (write == span.low) continue;
                const Span kept{span.feature, span.low, middle, write};
                if (grow_left)
                    left_spans_.push_back(kept);
                else
                    spans_[write_span++] = kept;
            }
        }
        right.spans_low = pending.spans_low;
        right.spans_high = left.spans_low = write_span;
        left.spans_high = write_span + std::uint32_t(left_spans_.size());
        if (spans_.size() < left.spans_high) spans_.resize(left.spans_high);
        std::copy(left_spans_.begin(), left_spans_.end(), spans_.begin() + write_span);
    }
};

// Two classes: with D = n c_left - c n_left the weighted impurity falls by 2 D^2 / (n n_left n_right).
template <>
struct TreeGrower::Side<true> {
    TreeGrower &g;
    std::uint32_t sum = 0;

    explicit Side(TreeGrower &grower) : g(grower) {}
    void reset() { sum = 0; }
    void add(Item item) { sum += g.packed_[item]; }

    bool promising() {
        const std::int64_t n = sum & 0xffff, ones = sum >> 16;
        const double d = double(g.weight_ * ones - g.totals_[1] * n);
        const double score = d * d * g.inverse_[n] * g.inverse_[g.weight_ - n];
        if (score < g.best_score_ - g.tolerance_) return false;
        g.best_score_ = std::max(g.best_score_, score);
        return true;
    }

    double proxy(bool is_left) const {
        const double n = sum & 0xffff, ones = sum >> 16, other_n = double(g.weight_) - n;
        const double other_ones = double(g.totals_[1]) - ones, zeros = n - ones, other_zeros = other_n - other_ones;
        const double here = gini(zeros * zeros + ones * ones, n);
        const double there = gini(other_zeros * other_zeros + other_ones * other_ones, other_n);
        return is_left ? -other_n * there - n * here : -n * here - other_n * there;
    }
};

// Any number of classes: the sums of squared counts of both sides, kept up to date.
template <>
struct TreeGrower::Side<false> {
    TreeGrower &g;
    std::int64_t n = 0, squares = 0, other_squares;

    explicit Side(TreeGrower &grower) : g(grower) { reset(); }

    void reset() {
        n = squares = 0;
        other_squares = g.squares_;
        std::fill(g.left_.begin(), g.left_.end(), 0);
    }

    void add(Item item) {
        const std::uint32_t c = g.labels_->y[item];
        const std::int64_t w = g.draws_[item], count = g.left_[c];
        squares += w * (2 * count + w);
        other_squares -= w * (2 * (g.totals_[c] - count) - w);
        g.left_[c] = count + w;
        n += w;
    }

    bool promising() {
        const double score = double(squares) * g.inverse_[n] + double(other_squares) * g.inverse_[g.weight_ - n];
        if (score < g.best_score_ - g.tolerance_) return false;
        g.best_score_ = std::max(g.best_score_, score);
        return true;
    }

    double proxy(bool is_left) const {
        const double here_n = double(n), other_n = double(g.weight_ - n);
        const double here = gini(double(squares), here_n), there = gini(double(other_squares), other_n);
        return is_left ? -other_n * there - here_n * here : -here_n * here - other_n * there;
    }
};

}  // namespace hetcal::hh
