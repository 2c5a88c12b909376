# SPDX-License-Identifier: MIT
# Highway compiles the CPU's kernels once for each instruction set. Not for those that add nothing to AVX-512 as far as
# arithmetic in single and double precision goes; sanitizers see the baseline and AVX2 alone, since the others run the same
# source and each costs minutes there (the other builds test all of them).
find_package(HWY REQUIRED)
set(disabled HWY_AVX3_DL)
if(HWY_VERSION VERSION_GREATER_EQUAL 1.1)
  list(APPEND disabled HWY_AVX3_ZEN4 HWY_AVX3_SPR)
endif()
if(HSI_SANITIZE)
  list(APPEND disabled HWY_SSSE3 HWY_SSE4 HWY_AVX3)
endif()
list(JOIN disabled "|" disabled)
target_compile_definitions(hsi_warnings INTERFACE "HWY_DISABLED_TARGETS=(${disabled})")
