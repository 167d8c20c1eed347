// Instructions beyond those that every machine has.
#pragma once

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
