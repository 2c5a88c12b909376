// SPDX-License-Identifier: MIT
// Runs something in every instruction set of the machine, for kernels that are dispatched at every call.
#pragma once

#include "math/simd_target.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace hsi::test {

/// Those that multiply and add with one rounding.
inline bool is_fused(const std::string& name) {
#if defined(__aarch64__)
    (void)name; // all of them, "portable", which is NEON there, too
    return true;
#else
    return name == "avx512" || name == "avx2";
#endif
}

/// f(name), with that instruction set selected, best first; afterwards the one that HSI_SIMD asks for, or the
/// best.
template <class F>
void for_every_simd(const F& f) {
    for (const std::string& name : math::simd_names()) {
        math::select_simd(name);
        f(name);
    }
    const char* const wanted = std::getenv("HSI_SIMD");
    math::select_simd(wanted && *wanted ? wanted : math::simd_names().front());
}

/// FNV-1a over the bits.
inline uint64_t fingerprint(const std::vector<double>& values, uint64_t sum = 1469598103934665603u) {
    for (const double v : values) {
        uint64_t bits = 0;
        std::memcpy(&bits, &v, sizeof bits);
        sum = (sum ^ bits) * 1099511628211u;
    }
    return sum;
}

} // namespace hsi::test
