// What every kernel checks before it touches memory. A refusal is a ValueError that says which function, which
// argument, what was expected and what came.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>

// Out of the way of the loops that may have to call it.
#if defined(__GNUC__) || defined(__clang__)
#define HETCAL_COLD __attribute__((noinline, cold))
#else
#define HETCAL_COLD
#endif

namespace hetcal {

constexpr std::size_t kMostItems = std::numeric_limits<std::int32_t>::max();  // items, leaves and nodes are int32

class Checks {
  public:
    constexpr explicit Checks(const char *function) : function_(function) {}

    template <class Got>
    [[noreturn]] HETCAL_COLD void refuse(const std::string &argument, const std::string &expected, const Got &got) const {
        std::ostringstream text;
        text << function_ << ": " << argument << " must " << expected << "; got " << got << ".";
        throw std::invalid_argument(text.str());
    }

    // A whole number in [low, high], as a size.
    std::size_t count(std::int64_t value, const char *name, std::size_t low = 0, std::size_t high = kMostItems) const {
        if (value < 0 || static_cast<std::size_t>(value) < low || static_cast<std::size_t>(value) > high)
            refuse(name, "lie in " + std::to_string(low) + ", ..., " + std::to_string(high), value);
        return static_cast<std::size_t>(value);
    }

    // One size of an array.
    void length(std::size_t value, const std::string &name, std::size_t low, std::size_t high = kMostItems) const {
        if (value < low || value > high)
            refuse(name, "number " + std::to_string(low) + ", ..., " + std::to_string(high), value);
    }

    // The shape of an array, and that its values lie where the processor may read them.
    template <class Array>
    void shape(const Array &array, const char *name, std::initializer_list<std::size_t> expected) const {
        aligned(array, name);
        std::size_t axis = 0;
        for (std::size_t size : expected)
            if (array.shape(axis++) != size) refuse(name, "have shape " + text(expected), shape_of(array));
    }

    template <class Array>
    void aligned(const Array &array, const char *name) const {
        using Value = typename Array::Scalar;
        if (array.size() > 0 && reinterpret_cast<std::uintptr_t>(array.data()) % alignof(Value) != 0)
            refuse(name, "be aligned in memory", "an array that is not; copy it");
    }

    // Whole numbers in [0, limit), each of them; where `or_negative`, any negative one stands for "none".
    template <class T>
    void indices(const T *value, std::size_t n, const char *name, std::size_t limit, bool or_negative = false) const {
        using Unsigned = std::make_unsigned_t<T>;
        const Unsigned top = static_cast<Unsigned>(
            std::min<std::size_t>(limit, static_cast<Unsigned>(std::numeric_limits<T>::max()) + Unsigned(1)));
        const T largest = static_cast<T>(top - 1);  // -1 where nothing is allowed
        Unsigned any = 0;  // at least as large as each of them, and quickly told
        for (std::size_t i = 0; i < n; ++i) any |= static_cast<Unsigned>(value[i]);
        if (any < top) return;
        bool good = true;  // no early end: the loop is then done many values at a time
        if (or_negative)
            for (std::size_t i = 0; i < n; ++i) good &= value[i] <= largest;
        else
            for (std::size_t i = 0; i < n; ++i) good &= static_cast<Unsigned>(value[i]) < top;
        if (good) return;
        std::size_t i = 0;
        while (or_negative ? value[i] <= largest : static_cast<Unsigned>(value[i]) < top) ++i;
        refuse_index(i, value[i], name, limit, or_negative);
    }

    [[noreturn]] HETCAL_COLD void refuse_index(std::size_t i, std::int64_t value, const char *name, std::size_t limit,
                                               bool or_negative = false) const {
        refuse(std::string(name) + "[" + std::to_string(i) + "]",
               "lie in [0, " + std::to_string(limit) + (or_negative ? "), or be -1 for none" : ")"), value);
    }

    // Where rows begin: n_rows + 1 numbers that start at 0, never fall and end at `end`.
    void starts(const std::int64_t *start, std::size_t n, const char *name, std::size_t end) const {
        if (n == 0) refuse(name, "have at least one entry", "none");
        if (start[0] != 0) refuse(name, "start at 0", start[0]);
        bool good = true;
        for (std::size_t i = 1; i < n; ++i) good &= start[i - 1] <= start[i];  // a difference could overflow
        if (!good) refuse(name, "never fall", "rows that end before they begin");
        if (static_cast<std::uint64_t>(start[n - 1]) != end)
            refuse(name, "end at " + std::to_string(end), start[n - 1]);
    }

    // Real numbers for which good(value) holds; NaN should be bad.
    template <class T, class Good>
    void values(const T *value, std::size_t n, const char *name, const char *expected, Good good) const {
        bool all = true;
        for (std::size_t i = 0; i < n; ++i) all &= good(value[i]);
        if (all) return;
        std::size_t i = 0;
        while (good(value[i])) ++i;
        refuse(std::string(name) + "[" + std::to_string(i) + "]", expected, value[i]);
    }

    // a * b, where it is a size that can be.
    std::size_t product(std::size_t a, std::size_t b, const char *name) const {
        constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / 16;
        if (a != 0 && b > most / a) refuse(name, "fit into memory", std::to_string(a) + " x " + std::to_string(b));
        return a * b;
    }

  private:
    static std::string text(std::initializer_list<std::size_t> sizes) {
        std::string all;
        for (std::size_t size : sizes) all += (all.empty() ? "(" : ", ") + std::to_string(size);
        return all + ")";
    }

    template <class Array>
    static std::string shape_of(const Array &array) {
        std::string all;
        for (std::size_t axis = 0; axis < array.ndim(); ++axis)
            all += (all.empty() ? "(" : ", ") + std::to_string(array.shape(axis));
        return all + ")";
    }

    const char *function_;
};

}  // namespace hetcal
