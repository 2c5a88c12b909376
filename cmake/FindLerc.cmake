# SPDX-License-Identifier: MIT
# LERC (Debian: liblerc-dev): the target Lerc::Lerc.
find_path(Lerc_INCLUDE_DIR Lerc_c_api.h)
find_library(Lerc_LIBRARY Lerc)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Lerc REQUIRED_VARS Lerc_LIBRARY Lerc_INCLUDE_DIR)
mark_as_advanced(Lerc_INCLUDE_DIR Lerc_LIBRARY)
if(Lerc_FOUND AND NOT TARGET Lerc::Lerc)
  add_library(Lerc::Lerc UNKNOWN IMPORTED)
  set_target_properties(Lerc::Lerc PROPERTIES IMPORTED_LOCATION ${Lerc_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${Lerc_INCLUDE_DIR})
endif()
