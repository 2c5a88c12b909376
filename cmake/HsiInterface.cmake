# SPDX-License-Identifier: MIT
# Modules that are loaded at run time share classes with the program that loads them, so both must be built from the
# same headers. hsi_interface contains a hash of these headers; the program compares it when it loads a module
# (common/core/module_file.h).
set(HSI_INTERFACE_SOURCE ${CMAKE_BINARY_DIR}/interface/interface_id.cpp)
file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/common/*.h ${CMAKE_SOURCE_DIR}/plugins/*.h)
add_custom_command(OUTPUT ${HSI_INTERFACE_SOURCE}
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${HSI_INTERFACE_SOURCE}
    -P ${CMAKE_SOURCE_DIR}/cmake/write_interface_id.cmake
  DEPENDS ${headers} ${CMAKE_SOURCE_DIR}/cmake/write_interface_id.cmake COMMENT "" VERBATIM)
add_library(hsi_interface STATIC ${HSI_INTERFACE_SOURCE})
set_target_properties(hsi_interface PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
  UNITY_BUILD OFF)

# hsi_module(hsi_cuda_spp): makes the library report the headers from which it was built.
function(hsi_module target)
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/common/core/module_interface.cpp)
  target_link_libraries(${target} PRIVATE hsi_interface)
endfunction()
