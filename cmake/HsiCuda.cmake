# SPDX-License-Identifier: MIT
# Finds nvcc if CUDA modules are requested. Without nvcc everything else is built, and -device cuda reports what is
# missing.
set(HSI_HAVE_CUDA OFF)
if(HSI_CUDA)
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # Each generation of GPUs costs the compiler a minute. The default is the GPU in this machine. Without one, it is
    # machine code for one generation, and PTX, from which drivers make code for newer GPUs. Builds for other machines
    # set -DCMAKE_CUDA_ARCHITECTURES="75-real;80-real;86-real;89-real;90" (scripts/gpu_bundle does).
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE capability
        ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
      string(REGEX MATCH "^[0-9]+\\.[0-9]" capability "${capability}")
      string(REPLACE "." "" capability "${capability}")
      if(capability)
        set(CMAKE_CUDA_ARCHITECTURES ${capability})
      else()
        set(CMAKE_CUDA_ARCHITECTURES 80)
      endif()
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit 12 REQUIRED)
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(HSI_HAVE_CUDA ON)
  else()
    message(STATUS "No CUDA compiler: the CUDA modules are not built")
  endif()
endif()
