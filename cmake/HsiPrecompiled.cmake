# SPDX-License-Identifier: MIT
# Headers of the standard library, GDAL, JSON and GoogleTest are parsed once for all sources instead of once per source.
# This saves a third of the compiler's time in a build without optimisation. It is off by default, since ccache does not
# keep objects made with them, and since missing includes must be noticed. The presets of the sanitizers, which are
# built once and by CI, turn it on.
# TESTS: only for the sources of tests; the tested libraries are built as users build them.
set(HSI_PRECOMPILE OFF CACHE STRING "Precompile the headers that most sources include: OFF, TESTS or ON")

set(HSI_PRECOMPILED_HEADERS
  <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstdio> <cstdlib> <cstring> <filesystem> <fstream> <functional>
  <limits> <map> <memory> <mutex> <numeric> <optional> <random> <regex> <set> <sstream> <string> <thread> <tuple> <utility>
  <variant> <vector> <gdal_priv.h> <ogrsf_frmts.h> <cpl_conv.h> <cpl_string.h> <cpl_vsi.h> <nlohmann/json.hpp>)

# hsi_precompile(TARGET): TARGET uses the headers parsed for libraries or, for a test, for executables. GCC
# distinguishes the two, since their machine code differs.
function(hsi_precompile target)
  if(NOT HSI_PRECOMPILE)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(HSI_PRECOMPILE STREQUAL "TESTS" AND NOT type STREQUAL EXECUTABLE)
    return()
  endif()
  if(type STREQUAL EXECUTABLE)
    set(owner hsi_precompiled_for_executables)
  else()
    set(owner hsi_precompiled)
  endif()
  if(NOT TARGET ${owner})
    set(source ${CMAKE_BINARY_DIR}/precompiled/${owner}.cpp)
    file(GENERATE OUTPUT ${source} CONTENT "int main() { return 0; }\n")
    if(type STREQUAL EXECUTABLE)
      add_executable(${owner} EXCLUDE_FROM_ALL ${source})
      target_link_libraries(${owner} PRIVATE GTest::gtest)
      hsi_optimise_lightly(${owner})
      set(more <gtest/gtest.h>)
    else()
      add_library(${owner} OBJECT EXCLUDE_FROM_ALL ${source})
    endif()
    target_link_libraries(${owner} PRIVATE hsi_warnings GDAL::GDAL nlohmann_json::nlohmann_json)
    target_precompile_headers(${owner} PRIVATE ${HSI_PRECOMPILED_HEADERS} ${more})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  # With them, GCC forgets which headers are system headers, and warns of std::string's own copies (its bug 105329) as
  # if they were ours.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds>)
endfunction()
