# SPDX-License-Identifier: MIT
# OpenBLAS with LAPACK inside (Debian: libopenblas-dev): the target OpenBLAS::OpenBLAS. The headers are in a folder of
# their own on Debian, beside the others elsewhere.
find_library(OpenBLAS_LIBRARY openblas)
find_path(OpenBLAS_INCLUDE_DIR openblas_config.h PATH_SUFFIXES openblas-pthread openblas openblas-openmp
  openblas-serial)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS REQUIRED_VARS OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR)
mark_as_advanced(OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR)
if(OpenBLAS_FOUND AND NOT TARGET OpenBLAS::OpenBLAS)
  add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::OpenBLAS PROPERTIES IMPORTED_LOCATION ${OpenBLAS_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${OpenBLAS_INCLUDE_DIR})
endif()
