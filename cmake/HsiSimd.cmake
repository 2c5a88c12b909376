# SPDX-License-Identifier: MIT
# Highway compiles the CPU's kernels once per instruction set. Instruction sets that add no single or double precision
# arithmetic to AVX-512 are excluded. Sanitizers use only the baseline and AVX2, since the others run the same source,
# and each costs minutes there (the other builds test all of them).
option(HSI_SIMD_FEW "Kernels for the baseline and AVX2 alone, on x86-64" OFF)
find_package(HWY REQUIRED)
set(disabled HWY_AVX3_DL)
if(HWY_VERSION VERSION_GREATER_EQUAL 1.1)
  list(APPEND disabled HWY_AVX3_ZEN4 HWY_AVX3_SPR)
endif()
# On 64-bit ARM only NEON in its minimal form is used, since our arithmetic needs no instructions of the others.
# Compilers do not know the size of SVE's registers, so they cannot form the arrays of registers in kernels of several
# rows. Processors with SVE of 128 and 256 bits do as many operations per cycle in NEON.
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
