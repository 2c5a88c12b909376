# SPDX-License-Identifier: MIT
# hsi_tool(gdal_hsi_spp DEPENDS hsi_spp): the executable gdal_tools/gdal_hsi_spp.cpp.
function(hsi_tool name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  add_executable(${name} ${name}.cpp)
  target_link_libraries(${name} PRIVATE hsi_warnings hsi_cli ${ARG_DEPENDS})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
