// Counting how many of some bit sets hold each item, 512 items at a time, and finding the items with high counts.
//
// The sets are added up as bits: plane p holds bit p of every item's count. Adding a set costs a few logical
// operations per 512 items, however many items it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "targets.hpp"

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
    if (can_use(Vectors::avx512)) return bit_detail::add_planes_avx512(planes, n_blocks, n_planes, counts);
#endif
    bit_detail::add_planes_portable(planes, n_blocks, n_planes, counts);
}

constexpr std::size_t kMostAhead = 16;  // of its end, list_cells may write

// Writes count * n_classes + label for every item whose count is at least `least`, which is above 0; returns how many.
template <class Count>
std::size_t list_cells(const Count *counts, std::size_t n_items, Count least, const std::int32_t *labels,
                       std::uint32_t n_classes, std::uint32_t *cells) {
    std::size_t n = 0;
    for (std::size_t item = 0; item < n_items; ++item) {  // without a branch: it would be mispredicted
        cells[n] = counts[item] * n_classes + static_cast<std::uint32_t>(labels[item]);
        n += counts[item] >= least;
    }
    return n;
}

#if defined(HETCAL_X86)
namespace bit_detail {

__attribute__((target("avx512f,avx512bw"))) inline std::size_t list_cells_avx512(
    const std::uint8_t *counts, std::size_t n_items, std::uint8_t least, const std::int32_t *labels,
    std::uint32_t n_classes, std::uint32_t *cells) {
    const __m512i bar = _mm512_set1_epi8(static_cast<char>(least)), K = _mm512_set1_epi32(static_cast<int>(n_classes));
    std::size_t n = 0;
    for (std::size_t first = 0; first < n_items; first += 64) {  // counts are padded with 0
        std::uint64_t found = _mm512_cmpge_epu8_mask(_mm512_loadu_si512(counts + first), bar);
        for (std::size_t item = first; found != 0; item += 16, found >>= 16) {
            const __mmask16 some = static_cast<__mmask16>(found);
            const __m512i label = _mm512_maskz_loadu_epi32(some, labels + item);
            const __m128i few = _mm_loadu_si128(reinterpret_cast<const __m128i *>(counts + item));
            const __m512i cell = _mm512_add_epi32(_mm512_mullo_epi32(_mm512_maskz_cvtepu8_epi32(some, few), K), label);
            _mm512_storeu_si512(cells + n, _mm512_maskz_compress_epi32(some, cell));
            n += static_cast<std::size_t>(__builtin_popcount(some));
        }
    }
    return n;
}

}  // namespace bit_detail
#endif

// The same for counts that are padded with 0 to a multiple of 64.
inline std::size_t list_cells(const std::uint8_t *counts, std::size_t n_items, std::uint8_t least,
                              const std::int32_t *labels, std::uint32_t n_classes, std::uint32_t *cells) {
#if defined(HETCAL_X86)
    if (can_use(Vectors::avx512))
        return bit_detail::list_cells_avx512(counts, n_items, least, labels, n_classes, cells);
#endif
    return list_cells<std::uint8_t>(counts, n_items, least, labels, n_classes, cells);
}

}  // namespace hetcal
