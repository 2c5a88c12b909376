# SPDX-License-Identifier: MIT
# Warnings, sanitizers and rules of arithmetic for all our targets.
option(HSI_WERROR "Treat warnings as errors" OFF)
set(HSI_SANITIZE "" CACHE STRING "Sanitizers, for example address,undefined or thread")

# -Wno-restrict: GCC 12 reports std::string's own copies as overlapping (its bug 105651).
add_library(hsi_warnings INTERFACE)
target_compile_options(hsi_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wconversion
  -Wno-sign-conversion -Wno-psabi $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<BOOL:${HSI_WERROR}>:-Werror>>)
# Only explicit fused operations are allowed: no bit may depend on a compiler's choice, on the instruction set or on a
# pixel's position in a vector.
target_compile_options(hsi_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# A char is signed on x86-64, so it must be signed elsewhere.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  target_compile_options(hsi_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsigned-char>)
endif()
if(HSI_SANITIZE)
  # GCC documents that these warn of correct code if sanitizers are on; the other builds treat them as errors.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(hsi_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized -Wno-array-bounds
      -Wno-stringop-overflow -Wno-stringop-overread>)
  endif()
  target_compile_options(hsi_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${HSI_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
  target_link_options(hsi_warnings INTERFACE -fsanitize=${HSI_SANITIZE})
  # Checks that the address sanitizer also makes, or that only invalid pointers can fail: they take half of the
  # compiler's time in templates.
  if(HSI_SANITIZE MATCHES "undefined")
    target_compile_options(hsi_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,alignment,object-size
      -fno-sanitize=pointer-overflow,vptr,nonnull-attribute,returns-nonnull-attribute>)
  endif()
  # A call checks an access instead of inline code: this saves a tenth of GCC's time and a quarter of clang's.
  if(HSI_SANITIZE MATCHES "address")
    set(calls asan-instrumentation-with-call-threshold=0)
    target_compile_options(hsi_warnings INTERFACE
      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=${calls}> "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-mllvm -${calls}>")
  endif()
endif()

# Minimal optimisation for code that is compiled more often than it runs. GCC needs three quarters of the time of -O1,
# and the code is about as fast.
function(hsi_optimise_lightly target)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Og>)
endfunction()

# hsi_json_source(json.cpp): compiles the JSON library with unused readers and writers separately in this folder's
# targets. It costs a minute of the compiler's time under sanitizers, which are for our own code, and half of that with
# all optimisations. Its branches still guide a fuzzer.
function(hsi_json_source file)
  set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS -Og
    SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  if(HSI_SANITIZE)
    set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=address,undefined,thread)
  endif()
endfunction()
