// Instructions beyond those that every machine has.
#pragma once

#include <atomic>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HETCAL_X86 1
#endif

namespace hetcal {

// Vector instructions; a processor with some of them has those before them.
enum class Vectors : int { none, avx2, avx512, vbmi2 };

inline Vectors vectors_of_processor() {
#if defined(HETCAL_X86)
    if (!__builtin_cpu_supports("avx2")) return Vectors::none;
    if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")))
        return Vectors::avx2;
    return __builtin_cpu_supports("avx512vbmi2") ? Vectors::vbmi2 : Vectors::avx512;
#else
    return Vectors::none;
#endif
}

// What kernels may use: what the processor has, or less, for tests.
inline std::atomic<Vectors> usable_vectors{vectors_of_processor()};

inline bool can_use(Vectors vectors) { return usable_vectors.load(std::memory_order_relaxed) >= vectors; }

}  // namespace hetcal

// Functions compiled for several instruction sets, chosen when the library is loaded (needs glibc's loader, and a
// choice that the thread sanitizer does not watch before it is ready).
#if defined(HETCAL_X86) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define HETCAL_MANY_TARGETS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HETCAL_MANY_TARGETS
#endif
