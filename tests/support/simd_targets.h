// SPDX-License-Identifier: MIT
// Runs a function with each instruction set of the machine, for kernels that are selected at each call.
#pragma once

#include "math/simd_target.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace hsi::test {

/// Returns true for instruction sets that multiply and add with a single rounding (FMA).
inline bool is_fused(const std::string& name) {
#if defined(__aarch64__)
    // On AArch64, all instruction sets are fused, including "portable", which is NEON.
    (void)name;
    return true;
#else
    return name == "avx512" || name == "avx2";
#endif
}

/// Calls f(name) once with each instruction set, best first. Then selects the instruction set of HSI_SIMD
/// again, or the best one.
template <class F>
void for_every_simd(const F& f) {
    for (const std::string& name : math::simd_names()) {
        math::select_simd(name);
        f(name);
    }
    const char* const wanted = std::getenv("HSI_SIMD");
    math::select_simd(wanted && *wanted ? wanted : math::simd_names().front());
}

/// Returns the FNV-1a hash of the bits.
inline uint64_t fingerprint(const std::vector<double>& values, uint64_t sum = 1469598103934665603u) {
    for (const double v : values) {
        uint64_t bits = 0;
        std::memcpy(&bits, &v, sizeof bits);
        sum = (sum ^ bits) * 1099511628211u;
    }
    return sum;
}

} // namespace hsi::test
