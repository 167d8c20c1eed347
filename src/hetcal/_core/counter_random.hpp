// Random numbers that depend on a key and a place alone: trees and nodes may be grown in any order, and the pure
// twin draws the same ones.
#pragma once

#include <cstdint>

namespace hetcal {

// splitmix64 (Steele, Lea and Flood 2014) as a function of key and place.
inline std::uint64_t random_bits(std::uint64_t key, std::uint64_t place) {
    std::uint64_t z = key + (place + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// A whole number in [0, n), for n below 2**32.
inline std::uint32_t random_below(std::uint64_t key, std::uint64_t place, std::uint64_t n) {
    return static_cast<std::uint32_t>(((random_bits(key, place) >> 32) * n) >> 32);
}

// A number in [0, 1).
inline double random_unit(std::uint64_t key, std::uint64_t place) {
    return static_cast<double>(random_bits(key, place) >> 11) * 0x1p-53;
}

}  // namespace hetcal
