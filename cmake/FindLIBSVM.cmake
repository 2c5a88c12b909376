# SPDX-License-Identifier: MIT
# LIBSVM (Debian: libsvm-dev): the target LIBSVM::LIBSVM and LIBSVM_VERSION. The header is libsvm/svm.h on Debian and
# Fedora, svm.h elsewhere.
find_path(LIBSVM_INCLUDE_DIR svm.h PATH_SUFFIXES libsvm)
find_library(LIBSVM_LIBRARY svm)
if(LIBSVM_INCLUDE_DIR)
  file(STRINGS ${LIBSVM_INCLUDE_DIR}/svm.h LIBSVM_VERSION REGEX "define LIBSVM_VERSION")
  string(REGEX REPLACE ".*LIBSVM_VERSION *([0-9])([0-9]+).*" "\\1.\\2" LIBSVM_VERSION "${LIBSVM_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LIBSVM REQUIRED_VARS LIBSVM_LIBRARY LIBSVM_INCLUDE_DIR VERSION_VAR LIBSVM_VERSION)
mark_as_advanced(LIBSVM_INCLUDE_DIR LIBSVM_LIBRARY)
if(LIBSVM_FOUND AND NOT TARGET LIBSVM::LIBSVM)
  add_library(LIBSVM::LIBSVM UNKNOWN IMPORTED)
  set_target_properties(LIBSVM::LIBSVM PROPERTIES IMPORTED_LOCATION ${LIBSVM_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${LIBSVM_INCLUDE_DIR})
endif()
