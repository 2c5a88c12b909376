// SPDX-License-Identifier: MIT
// Selects the instruction set of the CPU kernels. They are compiled for several instruction sets, and Highway
// uses the best one that the processor supports, unless HSI_SIMD selects another.
#pragma once

#include <string>
#include <vector>

namespace hsi::math {

/// Returns the names of the instruction sets that this build contains and this processor supports, best
/// first, as select_simd() accepts them: avx512, avx2, sse4, ssse3, sse2 on x86-64, neon on 64-bit ARM, and
/// portable, which runs on every processor of the architecture (Highway's scalar or emulated target; SSE2 or
/// NEON if Highway counts it as the baseline).
std::vector<std::string> simd_names();

/// Makes all later kernels use the named instruction set (case is ignored). An empty name changes nothing.
/// Applies to the whole process: call this function before any kernel, since tables of kernels are filled
/// once. Several threads may call it. Throws UsageError that lists the possible names if the name is unknown,
/// or if this build or processor does not support it. Throws Error for any name on a processor that lacks
/// instructions that this build was compiled for (-march).
void select_simd(const std::string& name);

/// Returns Highway's name of the instruction set that kernels use, such as "AVX2".
const char* simd_target();

} // namespace hsi::math
