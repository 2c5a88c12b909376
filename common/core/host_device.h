// SPDX-License-Identifier: MIT
// Marks functions that run on the CPU and on GPUs. In .cu files they are compiled for both.
#pragma once

#ifdef __CUDACC__
#define HSI_HOST_DEVICE __host__ __device__
#else
#define HSI_HOST_DEVICE
#endif
