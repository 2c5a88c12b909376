# SPDX-License-Identifier: MIT
option(HSI_TEST_BY_CASE "Let ctest count and run every TEST of an executable by itself" ON)

# The quick set, which scripts/test runs without --all, has the label `quick`, or a label that begins with it; the
# target hsi_quick builds its programs. Cases with the label `part` run marked tests of files that are also separate
# cases; --all excludes them.
add_custom_target(hsi_quick)

# hsi_test(core/tile_plan_test DEPENDS hsi_core [LABELS gpu] [SOURCES more.cpp] [ALL_ONLY]): a GoogleTest executable
# from tests/core/tile_plan_test.cpp. Every TEST is a ctest case. Without HSI_TEST_BY_CASE the executable is one case:
# starting it for every TEST takes a minute in total, and under sanitizers longer than the tests. It is in the quick set
# unless it is labelled or ALL_ONLY, which means that it takes long, or that other tests of its room cover the same
# code.
# The environment variable HSI_SIMD selects the instruction set of its kernels (tests/support).
function(hsi_test path)
  cmake_parse_arguments(ARG "ALL_ONLY" "" "DEPENDS;LABELS;SOURCES" ${ARGN})
  string(REPLACE "/" "_" name ${path})
  add_executable(${name} ${CMAKE_SOURCE_DIR}/tests/${path}.cpp ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE hsi_warnings hsi_test_support ${ARG_DEPENDS} GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE HSI_SOURCE_DIR="${CMAKE_SOURCE_DIR}" HSI_BINARY_DIR="${CMAKE_BINARY_DIR}")
  hsi_optimise_lightly(${name})
  hsi_precompile(${name})
  # Targets without GDAL can be built with another C++ standard library than GDAL's (the preset libcxx).
  set(labels "${ARG_LABELS}")
  if(NOT ARG_LABELS AND NOT "${ARG_DEPENDS}" MATCHES "GDAL::GDAL|hsi_(raster|tool|terminal|catalogue|gdal_plugin)")
    set_property(GLOBAL APPEND PROPERTY HSI_TESTS_WITHOUT_GDAL ${name})
    set(labels without-gdal)
  endif()
  # One word, quick or quick-without-gdal, since gtest_discover_tests takes no list of labels.
  if(NOT ARG_LABELS AND NOT ARG_ALL_ONLY)
    string(REGEX REPLACE "^(.+)" "-\\1" labels "${labels}")
    set(labels "quick${labels}")
    add_dependencies(hsi_quick ${name})
  endif()
  # Ends tests that hang; every normal test takes less on the busiest machine.
  set(properties TIMEOUT 1800)
  if(labels)
    list(APPEND properties LABELS "${labels}")
  endif()
  if(HSI_SANITIZE OR NOT HSI_TEST_BY_CASE)
    add_test(NAME ${path} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${path} PROPERTIES ${properties} TIMEOUT 3600)
    return()
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${path}." PROPERTIES ${properties} DISCOVERY_TIMEOUT 600)
endfunction()

# hsi_test_portably(core/system_test PAGE_SIZE=16384): runs the executable again with the functions of any POSIX system
# (core/system.h), with pages of 64 KB, and with the given settings.
function(hsi_test_portably path)
  string(REPLACE "/" "_" test ${path})
  foreach(mode PORTABLE=1 PAGE_SIZE=65536 ${ARGN})
    string(TOLOWER "${mode}" name)
    string(REPLACE "=" "_" name "${name}")
    add_test(NAME ${path}.${name} COMMAND ${test} --gtest_brief=1)
    set_tests_properties(${path}.${name} PROPERTIES TIMEOUT 1800 LABELS without-gdal ENVIRONMENT HSI_${mode})
  endforeach()
endfunction()
