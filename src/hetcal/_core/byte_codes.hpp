// Rank codes in one byte each, for the columns with at most 256 distinct values: less memory to wait for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#endif

#include "prefetch.hpp"
#include "rank_codes.hpp"
#include "targets.hpp"

namespace hetcal {

namespace byte_detail {

constexpr std::size_t kBlock = 16;

inline std::size_t rounded_up(std::size_t n, std::size_t block) { return (n + block - 1) / block * block; }

// 16 rows of 16 bytes turned into columns that are `to_step` apart.
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
inline void transpose_block(const std::uint8_t *const *from, std::uint8_t *to, std::size_t to_step) {
    typedef std::uint8_t Bytes __attribute__((vector_size(kBlock)));
    Bytes row[kBlock], swap[kBlock];
    for (std::size_t i = 0; i < kBlock; ++i) std::memcpy(&row[i], from[i], kBlock);
    // Taking bytes of rows i and i + 8 in turns moves the leading bit of a byte's place (row, column) to its end;
    // four times over, row and column have changed places.
    const auto interleave = [](const Bytes *in, Bytes *out) {
        for (std::size_t i = 0; i < kBlock / 2; ++i) {
            const Bytes a = in[i], b = in[i + kBlock / 2];
            out[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            out[2 * i + 1] =
                __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
    };
    for (int round = 0; round < 2; ++round) {
        interleave(row, swap);
        interleave(swap, row);
    }
    for (std::size_t i = 0; i < kBlock; ++i) std::memcpy(to + i * to_step, &row[i], kBlock);
}
#else
inline void transpose_block(const std::uint8_t *const *from, std::uint8_t *to, std::size_t to_step) {
    for (std::size_t i = 0; i < kBlock; ++i)
        for (std::size_t j = 0; j < kBlock; ++j) to[j * to_step + i] = from[i][j];
}
#endif

}  // namespace byte_detail

// Comparing codes 64 at a time pays where at least one in so many of them is wanted.
#if defined(__SSE2__) || defined(_M_X64)
constexpr std::size_t kWorthComparing = 16;
#else
constexpr std::size_t kWorthComparing = 2;
#endif

// Which of 64 codes differ from one, as bits.
inline std::uint64_t differing(const std::uint8_t *codes, std::uint8_t one) {
    std::uint64_t equal = 0;
#if defined(__SSE2__) || defined(_M_X64)
    const __m128i wanted = _mm_set1_epi8(static_cast<char>(one));
    for (int i = 0; i < 4; ++i) {
        const __m128i found = _mm_loadu_si128(reinterpret_cast<const __m128i *>(codes) + i);
        const int bits = _mm_movemask_epi8(_mm_cmpeq_epi8(found, wanted));
        equal |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(bits)) << (16 * i);
    }
#else
    constexpr std::uint64_t kOnes = 0x0101010101010101u, kLow = 0x7f * kOnes;
    for (int i = 0; i < 64; i += 8) {
        std::uint64_t word = 0;  // a single load, once compiled
        for (int j = 0; j < 8; ++j) word |= static_cast<std::uint64_t>(codes[i + j]) << (8 * j);
        word ^= one * kOnes;
        const std::uint64_t differs = ((((word & kLow) + kLow) | word) >> 7) & kOnes;  // one bit per byte
        equal |= ((~differs & kOnes) * 0x0102040810204080u >> 56) << i;
    }
#endif
    return ~equal;
}

constexpr std::size_t kMostPlaces = 65536;  // that pick_together can number

#if defined(HETCAL_X86)
// Lists the codes that differ from one, and their places, among those that the mask chooses; returns how many. Both lists
// must have room for 64 more than that.
__attribute__((target("avx512f,avx512bw,avx512vbmi2"))) inline std::uint32_t pick_together(
    const std::uint8_t *codes, std::uint8_t one, const std::uint64_t *mask, std::size_t n_words, std::uint8_t *picked,
    std::uint16_t *places) {
    alignas(64) std::uint8_t within[64];
    for (std::uint8_t i = 0; i < 64; ++i) within[i] = i;
    const __m512i numbers = _mm512_load_si512(within), other = _mm512_set1_epi8(static_cast<char>(one));
    const __m256i *halves = reinterpret_cast<const __m256i *>(within);
    std::uint32_t n = 0;
    for (std::size_t w = 0; w < n_words; ++w) {
        const __m512i code = _mm512_loadu_si512(codes + 64 * w), first = _mm512_set1_epi16(static_cast<short>(64 * w));
        const __mmask64 wanted = _mm512_mask_cmpneq_epi8_mask(mask[w], code, other);
        _mm512_store_si512(within, _mm512_maskz_compress_epi8(wanted, numbers));
        const __m512i low = _mm512_maskz_cvtepu8_epi16(~__mmask32(0), _mm256_load_si256(halves));
        const __m512i high = _mm512_maskz_cvtepu8_epi16(~__mmask32(0), _mm256_load_si256(halves + 1));
        _mm512_storeu_si512(picked + n, _mm512_maskz_compress_epi8(wanted, code));
        _mm512_storeu_si512(places + n, _mm512_add_epi16(low, first));
        _mm512_storeu_si512(places + n + 32, _mm512_add_epi16(high, first));
        n += static_cast<std::uint32_t>(__builtin_popcountll(wanted));
    }
    return n;
}
#else
inline std::uint32_t pick_together(const std::uint8_t *, std::uint8_t, const std::uint64_t *, std::size_t, std::uint8_t *,
                                   std::uint16_t *) {
    return 0;
}
#endif

// The codes column after column (of a whole number of 64 items), and once more row after row.
struct ByteCodes {
    std::size_t column_step, row_step;
    std::vector<std::uint8_t> columns, rows;

    template <class Code>
    explicit ByteCodes(const RankCodes<Code> &ranked)
        : column_step(byte_detail::rounded_up(ranked.n_items, 64)),
          row_step(byte_detail::rounded_up(ranked.n_features, byte_detail::kBlock)),
          columns(column_step * row_step), rows(column_step * row_step) {
        using byte_detail::kBlock;
        for (std::size_t f = 0; f < ranked.n_features; ++f)
            if (ranked.n_distinct(f) <= 256)
                std::copy_n(ranked.column(f), ranked.n_items, columns.data() + f * column_step);
        for (std::size_t f = 0; f < row_step; f += kBlock) {
            const std::uint8_t *from[kBlock];
            for (std::size_t j = 0; j < kBlock; ++j) from[j] = column(f + j);
            for (std::size_t i = 0; i < column_step; i += kBlock) {
                byte_detail::transpose_block(from, rows.data() + i * row_step + f, row_step);
                for (const std::uint8_t *&column : from) column += kBlock;
            }
        }
    }

    // Whether at least half of the columns fit.
    template <class Code>
    static bool suit(const RankCodes<Code> &ranked) {
        std::size_t n = 0;
        for (std::size_t f = 0; f < ranked.n_features; ++f) n += ranked.n_distinct(f) <= 256;
        return 2 * n >= ranked.n_features;
    }

    const std::uint8_t *column(std::size_t feature) const { return columns.data() + feature * column_step; }
    const std::uint8_t *row(std::size_t item) const { return rows.data() + item * row_step; }
};

// The codes of a few items, column after column: small enough for a near cache, where columns of all items are not.
class ByteFrame {
  public:
    void fill(const ByteCodes &codes, const std::uint32_t *items, std::size_t n) {
        using byte_detail::kBlock;
        step_ = byte_detail::rounded_up(n, 64);
        codes_.resize(codes.row_step * step_);
        for (std::size_t i = 0; i < n; i += kBlock) {
            const std::uint8_t *from[kBlock];
            for (std::size_t j = 0; j < kBlock; ++j) from[j] = codes.row(items[std::min(i + j, n - 1)]);
            for (std::size_t f = 0; f < codes.row_step; f += kBlock) {
                if (f % 64 == 0)
                    for (std::size_t j = 0; j < kBlock; ++j)
                        prefetch(codes.row(items[std::min(i + kBlock + j, n - 1)]) + f);
                byte_detail::transpose_block(from, codes_.data() + f * step_ + i, step_);
                for (const std::uint8_t *&row : from) row += kBlock;
            }
        }
    }

    const std::uint8_t *column(std::size_t feature) const { return codes_.data() + feature * step_; }

  private:
    std::size_t step_ = 0;
    std::vector<std::uint8_t> codes_;
};

}  // namespace hetcal
