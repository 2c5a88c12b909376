// SPDX-License-Identifier: MIT
// The instruction set of the CPU kernels. They are compiled for several, and Highway takes the best one that
// the processor has, unless another was requested (HSI_SIMD).
#pragma once

#include <string>
#include <vector>

namespace hsi::math {

/// Names of the instruction sets that this build holds and this processor runs, best first, as select_simd()
/// takes them: avx512, avx2, sse4, ssse3, sse2 on x86-64, neon on 64-bit ARM, and portable, which every
/// processor of the architecture runs (Highway's scalar or emulated target; SSE2 or NEON where Highway counts
/// it as the baseline).
std::vector<std::string> simd_names();

/// Makes all later kernels run in the named instruction set, in any case of letters; an empty name changes
/// nothing. It applies to the whole process; call it before any kernel, since tables of kernels are filled
/// once. Safe to call from several threads. Throws UsageError, which lists the possible names, if the name is
/// unknown or if this build or processor does not have it. Throws Error for any name on a processor that
/// lacks what this build was compiled for (-march).
void select_simd(const std::string& name);

/// Highway's name of the instruction set that kernels run in, "AVX2".
const char* simd_target();

} // namespace hsi::math
