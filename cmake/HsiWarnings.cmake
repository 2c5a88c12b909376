# SPDX-License-Identifier: MIT
# Warnings, sanitizers and what arithmetic means, for every target of ours.
option(HSI_WERROR "Treat warnings as errors" OFF)
set(HSI_SANITIZE "" CACHE STRING "Sanitizers, for example address,undefined or thread")

# -Wno-restrict: GCC 12 takes std::string's own copies for overlapping ones (its bug 105651).
add_library(hsi_warnings INTERFACE)
target_compile_options(hsi_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wconversion
  -Wno-sign-conversion -Wno-psabi $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<BOOL:${HSI_WERROR}>:-Werror>>)
# What is fused says so: no bit may depend on what a compiler finds to fuse, on the instruction set or on a pixel's place in
# a vector.
target_compile_options(hsi_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# A char is signed on x86-64; so it is elsewhere.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  target_compile_options(hsi_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsigned-char>)
endif()
if(HSI_SANITIZE)
  # GCC says of itself that these warn of correct code when sanitizers are on; the other builds take them for errors.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(hsi_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized -Wno-array-bounds
      -Wno-stringop-overflow -Wno-stringop-overread>)
  endif()
  target_compile_options(hsi_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${HSI_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
  target_link_options(hsi_warnings INTERFACE -fsanitize=${HSI_SANITIZE})
  # What the address sanitizer sees as well, and what only pointers that are wrong already can do: half of the compiler's
  # time in templates.
  if(HSI_SANITIZE MATCHES "undefined")
    target_compile_options(hsi_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,alignment,object-size
      -fno-sanitize=pointer-overflow,vptr,nonnull-attribute,returns-nonnull-attribute>)
  endif()
  # A call checks an access, not code in place: a tenth of the compiler's time.
  if(HSI_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(hsi_warnings INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:--param=asan-instrumentation-with-call-threshold=0>)
  endif()
endif()

# Optimised as little as it takes to run well: for what is compiled more often than it runs. GCC takes three quarters of
# the time that -O1 takes it, for what runs about as fast.
function(hsi_optimise_lightly target)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Og>)
endfunction()

# hsi_json_source(json.cpp): the JSON library whole, with readers and writers that nothing here calls, in this folder's targets:
# a minute of the compiler's time under sanitizers, which are for our own code, and half of that with all optimisations. Its
# branches still guide a fuzzer.
function(hsi_json_source file)
  set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS -Og
    SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  if(HSI_SANITIZE)
    set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=address,undefined,thread)
  endif()
endfunction()
