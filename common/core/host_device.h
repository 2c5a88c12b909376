// SPDX-License-Identifier: MIT
// Marks functions that the processor and GPUs both run: in .cu files they are compiled for both.
#pragma once

#ifdef __CUDACC__
#define HSI_HOST_DEVICE __host__ __device__
#else
#define HSI_HOST_DEVICE
#endif
