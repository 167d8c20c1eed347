// The random numbers that scikit-learn's forests draw, reproduced number for number.
//
// The chain, for RandomForestClassifier(random_state=s) with T trees and n items:
//   tree_seeds(s, T)            one seed per tree, from numpy's RandomState(s)
//   bootstrap_indices(seed, n)  the items drawn for that tree, from a fresh RandomState(seed)
//   SplitterRandom(seed)        the splitter's own small generator, seeded from another fresh RandomState(seed)
//   FeatureSampler              the order in which a node looks at features, constants remembered down the tree
// Equality is tested against the installed scikit-learn; it is not a promise about other versions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace hetcal {

// numpy's RandomState(seed): the Mersenne twister MT19937 with Knuth's seeding.
class MersenneTwister {
  public:
    explicit MersenneTwister(std::uint32_t seed) {
        state_[0] = seed;
        for (std::uint32_t i = 1; i < kSize; ++i)
            state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
    }

    std::uint32_t next() {
        if (position_ == kSize) refill();
        std::uint32_t y = state_[position_++];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        return y ^ (y >> 18);
    }

    // RandomState.randint(0, n) for 1 <= n <= 2**32: masked rejection; nothing is drawn when n is 1.
    std::uint32_t below(std::uint64_t n) {
        const std::uint32_t largest = static_cast<std::uint32_t>(n - 1);
        if (largest == 0) return 0;
        std::uint32_t mask = largest;
        for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
        std::uint32_t value;
        do value = next() & mask;
        while (value > largest);
        return value;
    }

  private:
    static constexpr std::uint32_t kSize = 624, kShift = 397;

    static std::uint32_t twist(std::uint32_t upper, std::uint32_t lower) {
        const std::uint32_t y = (upper & 0x80000000u) | (lower & 0x7fffffffu);
        return (y >> 1) ^ ((lower & 1u) ? 0x9908b0dfu : 0u);
    }

    void refill() {
        std::uint32_t i = 0;
        for (; i < kSize - kShift; ++i) state_[i] = state_[i + kShift] ^ twist(state_[i], state_[i + 1]);
        for (; i < kSize - 1; ++i) state_[i] = state_[i + kShift - kSize] ^ twist(state_[i], state_[i + 1]);
        state_[kSize - 1] = state_[kShift - 1] ^ twist(state_[kSize - 1], state_[0]);
        position_ = 0;
    }

    std::uint32_t state_[kSize];
    std::uint32_t position_ = kSize;
};

constexpr std::uint32_t kInt32Max = 2147483647u;

// The seeds of the trees of a forest with this integer random_state.
inline std::vector<std::uint32_t> tree_seeds(std::uint32_t forest_seed, std::size_t n_trees) {
    MersenneTwister twister(forest_seed);
    std::vector<std::uint32_t> seeds(n_trees);
    for (auto &seed : seeds) seed = twister.below(kInt32Max);
    return seeds;
}

// The n items a tree draws with replacement from n, in the order drawn.
inline std::vector<std::uint32_t> bootstrap_indices(std::uint32_t tree_seed, std::size_t n) {
    MersenneTwister twister(tree_seed);
    std::vector<std::uint32_t> drawn(n);
    for (auto &item : drawn) item = twister.below(n);
    return drawn;
}

// How often each of n items was drawn by a tree (`counts` holds n entries and is overwritten).
template <class Count>
void bootstrap_counts(std::uint32_t tree_seed, std::size_t n, Count *counts) {
    MersenneTwister twister(tree_seed);
    std::fill(counts, counts + n, Count(0));
    for (std::size_t i = 0; i < n; ++i) ++counts[twister.below(n)];
}

// The generator inside a splitter: a 32-bit xorshift, 31 bits of which are used.
class SplitterRandom {
  public:
    explicit SplitterRandom(std::uint32_t tree_seed)
        : state_(MersenneTwister(tree_seed).below(kInt32Max)) {}

    std::uint32_t next() {
        if (state_ == 0) state_ = 1;
        state_ ^= state_ << 13;
        state_ ^= state_ >> 17;
        state_ ^= state_ << 5;
        return state_ & kInt32Max;
    }

    std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + next() % (high - low); }

    double uniform(double low, double high) {
        return ((high - low) * static_cast<double>(next()) / static_cast<double>(kInt32Max)) + low;
    }

  private:
    std::uint32_t state_;
};

// x % m for m below `end`, by two multiplications instead of a division (Lemire, Kaser and Kurz 2019).
class Remainders {
  public:
    explicit Remainders(std::uint32_t end) : inverse_(end) {
        for (std::uint32_t m = 1; m < end; ++m) inverse_[m] = ~std::uint64_t(0) / m + 1;
    }

    std::uint32_t operator()(std::uint32_t x, std::uint32_t m) const {
#if defined(__SIZEOF_INT128__)
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::uint32_t>((Wide(inverse_[m] * x) * m) >> 64);
#else
        return x % m;
#endif
    }

  private:
    std::vector<std::uint64_t> inverse_;
};

// Draws the features of a node without replacement. One sampler serves one tree, nodes in depth-first
// order, left child first. Features found constant in a node stay known as constant below it.
//
//     sampler.begin_node(known);                       // known: constants of the parent (0 at the root)
//     while ((f = sampler.next(random)) >= 0) {
//         if (constant in this node) sampler.mark_constant();
//         else { sampler.mark_evaluated(); ... }       // exactly one of the two
//     }
//     known_for_children = sampler.end_node();
class FeatureSampler {
  public:
    FeatureSampler(std::uint32_t n_features, std::uint32_t max_features)
        : max_features_(max_features), features_(n_features), constants_(n_features), drawn_(n_features) {
        for (std::uint32_t f = 0; f < n_features; ++f) features_[f] = static_cast<std::int32_t>(f);
    }

    void begin_node(std::uint32_t n_known_constants) {
        known_ = total_constants_ = n_known_constants;
        undrawn_end_ = static_cast<std::uint32_t>(features_.size());
        visited_ = found_ = drawn_constants_ = 0;
    }

    // The next feature to look at, or -1 when the node has seen enough.
    std::int32_t next(SplitterRandom &random) {
        while (undrawn_end_ > total_constants_ &&
               (visited_ < max_features_ || visited_ <= found_ + drawn_constants_)) {
            ++visited_;
            const std::uint32_t drawn = random.between(drawn_constants_, undrawn_end_ - found_);
            if (drawn < known_) {
                std::swap(features_[drawn_constants_++], features_[drawn]);
                continue;
            }
            current_ = drawn + found_;
            return features_[current_];
        }
        return -1;
    }

    void mark_constant() {
        std::swap(features_[current_], features_[total_constants_]);
        ++found_;
        ++total_constants_;
    }

    void mark_evaluated() {
        --undrawn_end_;
        std::swap(features_[undrawn_end_], features_[current_]);
    }

    // All of this at once where a node looks at every feature. Draws all of them, of which the first
    // `n_known_constants` are known as constant, and returns the first that is wanted(feature), or -1.
    //
    // How many features are left falls by one with every draw, so that all positions can be drawn before any feature is
    // looked at; and draws among the known constants change nothing but the number of draws.
    template <class IsConstant, class Wanted>
    std::int32_t draw_all(std::uint32_t n_known_constants, SplitterRandom &random, const Remainders &remainder,
                          IsConstant is_constant, Wanted wanted) {
        const std::uint32_t n = static_cast<std::uint32_t>(features_.size()), known = n_known_constants;
        std::uint32_t drawn_constants = 0, n_drawn = 0, n_left = n;
        std::uint32_t *const positions = drawn_.data();
        SplitterRandom numbers = random;
        while (n_drawn < n - known) {
            const std::uint32_t position = drawn_constants + remainder(numbers.next(), n_left--);
            positions[n_drawn] = position;
            drawn_constants += position < known;
            n_drawn += position >= known;
        }
        random = numbers;
        std::int32_t *const features = features_.data();
        std::int32_t first = -1;
        std::uint32_t found = 0, undrawn_end = n;
        for (std::uint32_t i = 0; i < n_drawn; ++i) {
            const std::uint32_t position = positions[i] + found;
            const std::int32_t feature = features[position];
            if (is_constant(feature)) {
                std::swap(features[position], features[known + found++]);
                continue;
            }
            std::swap(features[position], features[--undrawn_end]);
            if (first < 0 && wanted(feature)) first = feature;
        }
        total_constants_ = known + found;
        return first;
    }

    std::uint32_t n_constants() const { return total_constants_; }

    // Restores the order of the known constants, remembers the new ones, returns how many there are.
    std::uint32_t end_node() {
        std::copy_n(constants_.begin(), known_, features_.begin());
        std::copy_n(features_.begin() + known_, found_, constants_.begin() + known_);
        return total_constants_;
    }

  private:
    std::uint32_t max_features_;
    std::vector<std::int32_t> features_, constants_;
    std::vector<std::uint32_t> drawn_;
    std::uint32_t known_ = 0, total_constants_ = 0, undrawn_end_ = 0;
    std::uint32_t visited_ = 0, found_ = 0, drawn_constants_ = 0, current_ = 0;
};

}  // namespace hetcal
