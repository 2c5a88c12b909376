// SPDX-License-Identifier: MIT
// Runs a function in every instruction set of the machine, for kernels that are dispatched at every call.
#pragma once

#include "math/simd_target.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace hsi::test {

/// Returns true for instruction sets that multiply and add with one rounding.
inline bool is_fused(const std::string& name) {
#if defined(__aarch64__)
    (void)name; // all of them, including "portable", which is NEON there
    return true;
#else
    return name == "avx512" || name == "avx2";
#endif
}

/// Calls f(name) with each instruction set selected, best first. Afterwards selects the instruction set of
/// HSI_SIMD, or the best.
template <class F>
void for_every_simd(const F& f) {
    for (const std::string& name : math::simd_names()) {
        math::select_simd(name);
        f(name);
    }
    const char* const wanted = std::getenv("HSI_SIMD");
    math::select_simd(wanted && *wanted ? wanted : math::simd_names().front());
}

/// Returns FNV-1a over the bits.
inline uint64_t fingerprint(const std::vector<double>& values, uint64_t sum = 1469598103934665603u) {
    for (const double v : values) {
        uint64_t bits = 0;
        std::memcpy(&bits, &v, sizeof bits);
        sum = (sum ^ bits) * 1099511628211u;
    }
    return sum;
}

} // namespace hsi::test
