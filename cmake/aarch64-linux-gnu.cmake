# SPDX-License-Identifier: MIT
# Toolchain: programs for 64-bit ARM, made on another processor with Debian's g++-aarch64-linux-gnu.
#   cmake --preset cpu-only -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake -DCMAKE_SYSROOT=FOLDER
# FOLDER: a Debian of that architecture with the libraries and their headers (scripts/test_distribution makes one). What a
# build runs of its own programs, and its tests, run in qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
find_program(HSI_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
if(HSI_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${HSI_QEMU_AARCH64})
  if(CMAKE_SYSROOT)
    list(APPEND CMAKE_CROSSCOMPILING_EMULATOR -L ${CMAKE_SYSROOT})
  endif()
endif()
# Programs come from the build machine, libraries and headers from the target.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# GDAL's folder of plugins, and programs' folder of libraries. CMake knows Debian's folders, but not when it
# cross-compiles.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE} CACHE PATH "Where libraries go, below the prefix")
endif()
# CMake asks MPI's own compiler for MPI's location, and the compiler here answers for the build machine.
set(HSI_MPI OFF CACHE BOOL "Build the MPI module (where MPI is found)")
