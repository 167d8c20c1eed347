// Asking for memory before it is read.
#pragma once

namespace hetcal {

inline void prefetch(const void *place) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(place);
#else
    (void)place;
#endif
}

}  // namespace hetcal
