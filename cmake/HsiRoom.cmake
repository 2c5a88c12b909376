# SPDX-License-Identifier: MIT
# hsi_room(core SOURCES a.cpp b.cpp DEPENDS hsi_x PRIVATE_DEPENDS GDAL::GDAL): a static library hsi_core. Headers are
# included as "core/rect.h". A room may include headers of the libraries that it links (tests/architecture checks the
# rest).
#
# SOURCES process pixels. ARRANGING sources read, check, describe and write small data, or pass scenes on; they are
# compiled with -Og, which halves the compiler's time. SIMD sources include themselves once per instruction set, so each
# is compiled separately even in unity builds.
function(hsi_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ARRANGING;SIMD;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  if(NOT ARG_SOURCES)
    add_library(hsi_${name} STATIC ${ARG_ARRANGING})
    hsi_optimise_lightly(hsi_${name})
  else()
    add_library(hsi_${name} STATIC ${ARG_SOURCES} ${ARG_SIMD})
    set_source_files_properties(${ARG_SIMD} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    if(ARG_ARRANGING)
      add_library(hsi_${name}_arranging OBJECT ${ARG_ARRANGING})
      target_include_directories(hsi_${name}_arranging PRIVATE ${CMAKE_SOURCE_DIR}/common ${CMAKE_SOURCE_DIR}/plugins)
      target_link_libraries(hsi_${name}_arranging PRIVATE hsi_warnings ${ARG_DEPENDS} ${ARG_PRIVATE_DEPENDS})
      hsi_optimise_lightly(hsi_${name}_arranging)
      hsi_precompile(hsi_${name}_arranging)
      target_sources(hsi_${name} PRIVATE $<TARGET_OBJECTS:hsi_${name}_arranging>)
    endif()
  endif()
  target_include_directories(hsi_${name} PUBLIC ${CMAKE_SOURCE_DIR}/common ${CMAKE_SOURCE_DIR}/plugins)
  target_link_libraries(hsi_${name} PUBLIC ${ARG_DEPENDS} PRIVATE hsi_warnings ${ARG_PRIVATE_DEPENDS})
  hsi_precompile(hsi_${name})
  set_property(GLOBAL APPEND PROPERTY HSI_ROOMS ${name}) # for targets that link all of them
endfunction()

# In unity builds (the presets' CMAKE_UNITY_BUILD), the sources of one folder are compiled together, so names in
# anonymous namespaces must be unique within a folder. Files of one format, hdf5_* and matlab_*, count as a folder here.
function(hsi_unity_by_folder target)
  foreach(source ${ARGN})
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(folder "${folder}" NAME)
    if(source MATCHES "/(hdf5|matlab)_[^/]*$")
      set(folder ${CMAKE_MATCH_1})
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${folder}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# hsi_cuda_sources(list, target): in unity builds, replaces the CUDA sources of a target by one file that includes them.
# nvcc parses each source's headers three times, which is half of its time. Before CMake 3.31, unity builds cover only C
# and C++. So names in anonymous namespaces must be unique within a CUDA target.
function(hsi_cuda_sources list target)
  list(LENGTH ${list} number)
  if(CMAKE_UNITY_BUILD AND number GREATER 1)
    set(includes ${${list}})
    list(TRANSFORM includes REPLACE "(.+)" "#include \"${CMAKE_CURRENT_SOURCE_DIR}/\\1\"\n")
    string(CONCAT includes ${includes})
    file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${target}_unity.cu CONTENT "${includes}")
    set(${list} ${CMAKE_CURRENT_BINARY_DIR}/${target}_unity.cu PARENT_SCOPE)
  endif()
endfunction()

# hsi_cuda_kernels(spp SOURCES spp_cuda_kernels.cu [DEPENDS hsi_x] [UNFUSED]): the library hsi_spp_kernels, since a
# module and a benchmark launch the same kernels. UNFUSED: a product and a sum are rounded separately, as on the CPU.
function(hsi_cuda_kernels name)
  if(NOT HSI_HAVE_CUDA)
    return()
  endif()
  cmake_parse_arguments(ARG "UNFUSED" "" "SOURCES;DEPENDS" ${ARGN})
  hsi_cuda_sources(ARG_SOURCES hsi_${name}_kernels)
  add_library(hsi_${name}_kernels STATIC ${ARG_SOURCES})
  target_link_libraries(hsi_${name}_kernels PUBLIC hsi_cuda ${ARG_DEPENDS})
  target_compile_options(hsi_${name}_kernels PRIVATE $<$<BOOL:${ARG_UNFUSED}>:$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>>)
endfunction()

# hsi_cuda_module(spp SOURCES spp_cuda.cu [LIBRARIES CUDA::cublas] [DEPENDS hsi_spp] [UNFUSED]):
# lib/hsi/hsi_cuda_spp.so, which a tool loads at run time if it needs a GPU. Without nvcc it is not built. The module
# exports one symbol and keeps its own copy of the code that it shares with the tools.
function(hsi_cuda_module name)
  if(NOT HSI_HAVE_CUDA)
    return()
  endif()
  cmake_parse_arguments(ARG "UNFUSED" "" "SOURCES;LIBRARIES;DEPENDS" ${ARGN})
  hsi_cuda_sources(ARG_SOURCES hsi_cuda_${name})
  add_library(hsi_cuda_${name} MODULE ${ARG_SOURCES})
  target_include_directories(hsi_cuda_${name} PRIVATE ${CMAKE_SOURCE_DIR}/common ${CMAKE_SOURCE_DIR}/plugins)
  target_link_libraries(hsi_cuda_${name} PRIVATE hsi_cuda ${ARG_DEPENDS} ${ARG_LIBRARIES})
  target_link_options(hsi_cuda_${name} PRIVATE -Wl,--exclude-libs,ALL)
  target_compile_options(hsi_cuda_${name} PRIVATE $<$<BOOL:${ARG_UNFUSED}>:$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>>)
  hsi_module(hsi_cuda_${name})
  set_target_properties(hsi_cuda_${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/hsi
    CUDA_VISIBILITY_PRESET hidden)
  install(TARGETS hsi_cuda_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hsi COMPONENT gdal-hsi-cuda)
endfunction()
