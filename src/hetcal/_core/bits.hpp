// Bits of words.
#pragma once

#include <cstdint>

namespace hetcal {

// The place of the lowest set bit of a word that is not 0.
inline std::uint32_t lowest_bit(std::uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return static_cast<std::uint32_t>(__builtin_ctzll(word));
#else
    std::uint32_t bit = 0;
    while (!(word & 1)) {
        word >>= 1;
        ++bit;
    }
    return bit;
#endif
}

}  // namespace hetcal
