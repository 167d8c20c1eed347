// Counting how many of some bit sets hold each item, 512 items at a time.
//
// The sets are added up as bits: plane p holds bit p of every item's count. Adding a set costs a few logical
// operations per 512 items, however many items it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HETCAL_X86 1
#endif

// Functions compiled for several instruction sets, chosen when the library is loaded (needs glibc's loader, and a
// choice that the thread sanitizer does not watch before it is ready).
#if defined(HETCAL_X86) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define HETCAL_MANY_TARGETS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HETCAL_MANY_TARGETS
#endif

namespace hetcal {

constexpr std::size_t kWordsPerBlock = 8;
constexpr int kPlanes = 8;               // counts up to 255
constexpr std::size_t kMostSets = 255;

#if defined(__GNUC__) || defined(__clang__)
typedef std::uint64_t BitBlock __attribute__((vector_size(64)));
#else
struct BitBlock {
    std::uint64_t word[kWordsPerBlock];
};
#define HETCAL_BIT_OPERATOR(op)                                                          \
    inline BitBlock operator op(const BitBlock &a, const BitBlock &b) {                  \
        BitBlock c;                                                                      \
        for (std::size_t w = 0; w < kWordsPerBlock; ++w) c.word[w] = a.word[w] op b.word[w]; \
        return c;                                                                        \
    }
HETCAL_BIT_OPERATOR(&)
HETCAL_BIT_OPERATOR(|)
HETCAL_BIT_OPERATOR(^)
#undef HETCAL_BIT_OPERATOR
#endif

// A full adder: (carry, sum) of three bits, for 512 items at once; sum replaces a.
#define HETCAL_ADD(carry, a, b, c)          \
    {                                       \
        const BitBlock b_ = (b), c_ = (c);  \
        const BitBlock half = (a) ^ b_;     \
        carry = ((a) & b_) | (half & c_);   \
        (a) = half ^ c_;                    \
    }

// planes[block][p]: bit p of how many of the sets hold each item. n_sets must be a multiple of 8 (add empty sets)
// and at most 255 of them may hold anything.
HETCAL_MANY_TARGETS inline void count_bit_sets(const std::uint64_t *const *sets, std::size_t n_sets,
                                               std::size_t n_blocks, std::uint64_t *planes) {
    for (std::size_t block = 0; block < n_blocks; ++block) {
        const std::size_t offset = block * kWordsPerBlock;
        BitBlock plane[kPlanes];
        std::memset(plane, 0, sizeof plane);
        for (std::size_t s = 0; s < n_sets; s += 8) {
            BitBlock in[8], twos_a, twos_b, fours_a, fours_b, carry;
            for (int j = 0; j < 8; ++j) std::memcpy(&in[j], sets[s + j] + offset, sizeof(BitBlock));
            HETCAL_ADD(twos_a, plane[0], in[0], in[1])
            HETCAL_ADD(twos_b, plane[0], in[2], in[3])
            HETCAL_ADD(fours_a, plane[1], twos_a, twos_b)
            HETCAL_ADD(twos_a, plane[0], in[4], in[5])
            HETCAL_ADD(twos_b, plane[0], in[6], in[7])
            HETCAL_ADD(fours_b, plane[1], twos_a, twos_b)
            HETCAL_ADD(carry, plane[2], fours_a, fours_b)
            for (int p = 3; p < kPlanes; ++p) {
                const BitBlock sum = plane[p] ^ carry;
                carry = plane[p] & carry;
                plane[p] = sum;
            }
        }
        std::memcpy(planes + block * kPlanes * kWordsPerBlock, plane, sizeof plane);
    }
}

#undef HETCAL_ADD

namespace bit_detail {

// A byte of bits spread over eight bytes of 0 or 1.
inline std::uint64_t spread(std::uint64_t bits) {
    const std::uint64_t copies = bits * 0x0101010101010101ull;
    return (((copies & 0x8040201008040201ull) + 0x7f7f7f7f7f7f7f7full) >> 7) & 0x0101010101010101ull;
}

inline void add_planes_portable(const std::uint64_t *planes, std::size_t n_blocks, int n_planes,
                                std::uint8_t *counts) {
    for (std::size_t block = 0; block < n_blocks; ++block, planes += kPlanes * kWordsPerBlock)
        for (std::size_t w = 0; w < kWordsPerBlock; ++w)
            for (int byte = 0; byte < 8; ++byte, counts += 8) {
                std::uint64_t eight;
                std::memcpy(&eight, counts, sizeof eight);
                for (int p = 0; p < n_planes; ++p)
                    eight += spread((planes[p * kWordsPerBlock + w] >> (8 * byte)) & 255) << p;
                std::memcpy(counts, &eight, sizeof eight);
            }
}

#if defined(HETCAL_X86)
__attribute__((target("avx512f,avx512bw"))) inline void add_planes_avx512(const std::uint64_t *planes,
                                                                           std::size_t n_blocks, int n_planes,
                                                                           std::uint8_t *counts) {
    for (std::size_t block = 0; block < n_blocks; ++block, planes += kPlanes * kWordsPerBlock)
        for (std::size_t w = 0; w < kWordsPerBlock; ++w, counts += 64) {
            __m512i sum = _mm512_loadu_si512(counts);
            for (int p = 0; p < n_planes; ++p)
                sum = _mm512_mask_add_epi8(sum, planes[p * kWordsPerBlock + w], sum,
                                           _mm512_set1_epi8(static_cast<char>(1 << p)));
            _mm512_storeu_si512(counts, sum);
        }
}
#endif

}  // namespace bit_detail

// counts[item] += the count that the first n_planes planes hold for the item (512 counts per block).
inline void add_planes(const std::uint64_t *planes, std::size_t n_blocks, int n_planes, std::uint8_t *counts) {
#if defined(HETCAL_X86)
    static const bool wide = __builtin_cpu_supports("avx512bw");
    if (wide) return bit_detail::add_planes_avx512(planes, n_blocks, n_planes, counts);
#endif
    bit_detail::add_planes_portable(planes, n_blocks, n_planes, counts);
}

}  // namespace hetcal
