# SPDX-License-Identifier: MIT
# Finds MPI for the module by which processes share a run (common/parallel). Without it everything else is built, and a
# tool that is started as one of several processes reports what is missing.
set(HSI_HAVE_MPI OFF)
if(HSI_MPI)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(HSI_HAVE_MPI ON)
  else()
    message(STATUS "No MPI: the module hsi_mpi.so is not built")
  endif()
endif()
