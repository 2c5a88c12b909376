# SPDX-License-Identifier: MIT
# Highway compiles the CPU's kernels once for each instruction set. Not for those that add nothing to AVX-512 as far as
# arithmetic in single and double precision goes; sanitizers see the baseline and AVX2 alone, since the others run the same
# source and each costs minutes there (the other builds test all of them).
option(HSI_SIMD_FEW "Kernels for the baseline and AVX2 alone, on x86-64" OFF)
find_package(HWY REQUIRED)
set(disabled HWY_AVX3_DL)
if(HWY_VERSION VERSION_GREATER_EQUAL 1.1)
  list(APPEND disabled HWY_AVX3_ZEN4 HWY_AVX3_SPR)
endif()
# On 64-bit ARM NEON alone, in its least form: of the others' instructions arithmetic takes none, and SVE's registers have no
# size that a compiler knows, so that they cannot be the arrays of registers that kernels of several rows are made of. Processors
# with SVE of 128 and 256 bits do as many operations a cycle in NEON's.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  list(APPEND disabled HWY_SVE HWY_SVE2)
  if(HWY_VERSION VERSION_GREATER_EQUAL 1.1)
    list(APPEND disabled HWY_SVE_256 HWY_SVE2_128 HWY_NEON)
  endif()
  if(HWY_VERSION VERSION_GREATER_EQUAL 1.2)
    list(APPEND disabled HWY_NEON_BF16)
  endif()
endif()
if(HSI_SANITIZE OR HSI_SIMD_FEW)
  list(APPEND disabled HWY_SSSE3 HWY_SSE4 HWY_AVX3)
endif()
list(JOIN disabled "|" disabled)
target_compile_definitions(hsi_warnings INTERFACE "HWY_DISABLED_TARGETS=(${disabled})")
