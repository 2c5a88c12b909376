# SPDX-License-Identifier: MIT
# BLAS and LAPACK for SAHIC's training: the targets BLAS::BLAS and LAPACK::LAPACK. -DBLA_VENDOR=OpenBLAS, FLAME (BLIS),
# Generic or another name that FindBLAS supports selects a library. Without it, CMake takes the first in its own order:
# OpenBLAS, BLIS, the reference. Integers are 32 bits wide (sahic/blas.h).
set(BLA_SIZEOF_INTEGER 4)
find_package(BLAS REQUIRED)
find_package(LAPACK REQUIRED)
