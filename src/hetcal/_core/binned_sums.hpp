// What a tree sums over the items of a bin: targets, weights and how many items there are.
//
// All kinds give the same splits for the same numbers; they differ in how many additions an item costs. A sum is
// `size()` values of type Value. The score of a split is (up to the node's own factor) what it takes off the variance of
// the targets, added over the targets: with one-hot targets that is the Gini impurity.
//
// `add_where` adds all items of a node that go somewhere, and the others, if at all, elsewhere. No branch: half of the
// items go left, and nobody can guess which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hetcal {

// The items that a tree drew: how often, and what each of the draws weighs.
struct DrawnItems {
    const std::uint32_t *times;
    const double *weight;
};

// Two or three classes without weights, in one number: equally many bits each for the weight of every class but the first,
// all weight, and the number of items.
template <std::size_t kClasses>
class PackedSums {
  public:
    using Value = std::uint64_t;
    static constexpr std::size_t kBits = 64 / (kClasses + 1);
    static constexpr std::uint64_t kField = (std::uint64_t(1) << kBits) - 1;

    explicit PackedSums(const std::int32_t *label) : label_(label) {}
    static constexpr std::size_t size() { return 1; }

    void enter(const DrawnItems &drawn, const std::uint32_t *items, std::size_t n) {
        payload_.resize(n);
        for (std::size_t p = 0; p < n; ++p) {
            const std::uint64_t times = drawn.times[items[p]];
            const std::int32_t label = label_[items[p]];
            const std::uint64_t of_class = label > 0 ? times << (kBits * static_cast<std::size_t>(label - 1)) : 0;
            payload_[p] = (std::uint64_t(1) << (kClasses * kBits)) | (times << ((kClasses - 1) * kBits)) | of_class;
        }
    }
    void add(std::size_t p, Value *sum) const { *sum += payload_[p]; }
    template <class Goes>
    void add_where(std::size_t n, Goes goes, Value *sum, Value *) const {
        const std::uint64_t *payload = payload_.data();
        Value added = 0;
        for (std::size_t p = 0; p < n; ++p) added += payload[p] & (std::uint64_t(0) - goes(p));
        *sum += added;
    }

    static double count(const Value *sum) { return number(field(*sum, kClasses)); }
    static double score(const Value *left, const Value *total) {
        const double weight = number(all(*total)), left_weight = number(all(*left));
        double squares = 0.0;
        // With two classes the second says it all.
        for (std::size_t k = kClasses == 2 ? 1 : 0; k < kClasses; ++k) {
            const double apart = number(of_class(*left, k)) * weight - number(of_class(*total, k)) * left_weight;
            squares += apart * apart;
        }
        return squares / (left_weight * (weight - left_weight));
    }
    bool is_pure(const std::uint32_t *, std::size_t, const Value *total) const {
        bool pure = false;
        for (std::size_t k = 0; k < kClasses; ++k) pure |= of_class(*total, k) == all(*total);
        return pure;
    }

  private:
    static std::uint64_t field(Value sum, std::size_t place) { return (sum >> (kBits * place)) & kField; }
    static std::uint64_t all(Value sum) { return field(sum, kClasses - 1); }
    static std::uint64_t of_class(Value sum, std::size_t k) {
        if (k > 0) return field(sum, k - 1);
        std::uint64_t first = all(sum);
        for (std::size_t other = 1; other < kClasses; ++other) first -= field(sum, other - 1);
        return first;
    }
    static double number(std::uint64_t whole) { return static_cast<double>(static_cast<std::int64_t>(whole)); }

    const std::int32_t *label_;
    std::vector<std::uint64_t> payload_;
};

// Sums of J targets, then the weight, then the number of items, all real numbers. kTargets is J where it is known to
// the compiler, which then writes the loops out, else 0.
template <std::size_t kTargets>
class RealSums {
  public:
    using Value = double;

    explicit RealSums(std::size_t n_targets) : given_(n_targets) {}
    std::size_t size() const { return n_targets() + 2; }

    double count(const Value *sum) const { return sum[n_targets() + 1]; }
    double score(const Value *left, const Value *total) const {
        const double weight = total[n_targets()], left_weight = left[n_targets()];
        double squares = 0.0;
        for (std::size_t j = 0; j < n_targets(); ++j) {
            const double apart = left[j] * weight - total[j] * left_weight;
            squares += apart * apart;
        }
        return squares / (left_weight * (weight - left_weight));
    }

  protected:
    std::size_t n_targets() const { return kTargets > 0 ? kTargets : given_; }

    void gather(const DrawnItems &drawn, const std::uint32_t *items, std::size_t n) {
        weight_.resize(n);
        for (std::size_t p = 0; p < n; ++p)
            weight_[p] = drawn.weight[items[p]] * static_cast<double>(drawn.times[items[p]]);
    }
    void add_weight(std::size_t p, Value *sum) const {
        sum[n_targets()] += weight_[p];
        sum[n_targets() + 1] += 1.0;
    }

    std::size_t given_;
    std::vector<double> weight_;  // of the node's items
};

// Classes: an item adds its weight to one of them. With two classes the second says it all.
template <std::size_t kTargets>
class ClassSums : public RealSums<kTargets> {
  public:
    using Value = double;

    ClassSums(const std::int32_t *label, std::size_t n_classes)
        : RealSums<kTargets>(n_classes == 2 ? 1 : n_classes), skip_(n_classes == 2), label_(label) {}

    void enter(const DrawnItems &drawn, const std::uint32_t *items, std::size_t n) {
        this->gather(drawn, items, n);
        place_.resize(n);
        for (std::size_t p = 0; p < n; ++p) place_[p] = label_[items[p]] - skip_;
    }
    void add(std::size_t p, Value *sum) const {
        if (place_[p] >= 0) sum[place_[p]] += this->weight_[p];
        this->add_weight(p, sum);
    }
    template <class Goes>
    void add_where(std::size_t n, Goes goes, Value *sum, Value *elsewhere) const {
        for (std::size_t p = 0; p < n; ++p) add(p, goes(p) ? sum : elsewhere);
    }
    bool is_pure(const std::uint32_t *, std::size_t n, const Value *) const {
        for (std::size_t p = 1; p < n; ++p)
            if (place_[p] != place_[0]) return false;
        return true;
    }

  private:
    std::int32_t skip_;
    const std::int32_t *label_;
    std::vector<std::int32_t> place_;
};

// Targets that are real numbers, J per item.
template <std::size_t kTargets>
class TargetSums : public RealSums<kTargets> {
  public:
    using Value = double;
    using RealSums<kTargets>::n_targets;

    TargetSums(const double *target, std::size_t n_targets) : RealSums<kTargets>(n_targets), target_(target) {}

    void enter(const DrawnItems &drawn, const std::uint32_t *items, std::size_t n) {
        this->gather(drawn, items, n);
        weighted_.resize(n * n_targets());
        for (std::size_t p = 0; p < n; ++p)
            for (std::size_t j = 0; j < n_targets(); ++j)
                weighted_[p * n_targets() + j] = this->weight_[p] * target_[items[p] * n_targets() + j];
    }
    void add(std::size_t p, Value *sum) const {
        for (std::size_t j = 0; j < n_targets(); ++j) sum[j] += weighted_[p * n_targets() + j];
        this->add_weight(p, sum);
    }
    template <class Goes>
    void add_where(std::size_t n, Goes goes, Value *sum, Value *elsewhere) const {
        for (std::size_t p = 0; p < n; ++p) add(p, goes(p) ? sum : elsewhere);
    }
    bool is_pure(const std::uint32_t *items, std::size_t n, const Value *) const {
        for (std::size_t p = 1; p < n; ++p)
            for (std::size_t j = 0; j < n_targets(); ++j)
                if (target_[items[p] * n_targets() + j] != target_[items[0] * n_targets() + j]) return false;
        return true;
    }

  private:
    const double *target_;
    std::vector<double> weighted_;
};

}  // namespace hetcal
