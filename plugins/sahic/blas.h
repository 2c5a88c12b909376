// SPDX-License-Identifier: MIT
// The routines of BLAS and LAPACK that training uses, by their Fortran interface. Every implementation has
// this interface (netlib's reference, OpenBLAS, BLIS, MKL); only some have the C interface. Matrices are
// column-major. A stride, such as `lda`, is the distance between columns in elements. Numbers are double, and
// integers have 32 bits. In the functions below, the result replaces the last vector or matrix.
#pragma once

#include <cstddef>

// The size_t arguments at the end are the lengths of the text arguments, as Fortran compilers expect.
extern "C" {
void daxpy_(const int* n, const double* alpha, const double* x, const int* incx, double* y, const int* incy);
void dgemv_(const char* op, const int* m, const int* n, const double* alpha, const double* a, const int* lda,
            const double* x, const int* incx, const double* beta, double* y, const int* incy, size_t);
void dtrsv_(const char* triangle, const char* op, const char* diagonal, const int* n, const double* a,
            const int* lda, double* x, const int* incx, size_t, size_t, size_t);
void dgemm_(const char* op_a, const char* op_b, const int* m, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
            const int* ldc, size_t, size_t);
void dsyrk_(const char* triangle, const char* op, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* beta, double* c, const int* ldc, size_t, size_t);
void dtrsm_(const char* side, const char* triangle, const char* op, const char* diagonal, const int* m,
            const int* n, const double* alpha, const double* a, const int* lda, double* b, const int* ldb,
            size_t, size_t, size_t, size_t);
void dpotrf_(const char* triangle, const int* n, double* a, const int* lda, int* info, size_t);
void dsyevd_(const char* job, const char* triangle, const int* n, double* a, const int* lda, double* w,
             double* work, const int* lwork, int* iwork, const int* liwork, int* info, size_t, size_t);
}

namespace hsi::sahic::blas {

enum class Op : char { none = 'N', transpose = 'T' };

/// Adds alpha x to y; both have n elements.
inline void axpy(int n, double alpha, const double* x, double* y) {
    const int one = 1;
    daxpy_(&n, &alpha, x, &one, y, &one);
}

/// Computes y = op(a) x, where a is rows x columns.
inline void gemv(Op op, int rows, int columns, const double* a, int lda, const double* x, double* y) {
    const char o = static_cast<char>(op);
    const int one = 1;
    const double alpha = 1, beta = 0;
    dgemv_(&o, &rows, &columns, &alpha, a, &lda, x, &one, &beta, y, &one, 1);
}

/// Computes x = op(l)^-1 x, where x has n elements and l is the lower triangle of an n x n matrix.
inline void solve_lower(Op op, int n, const double* l, int ldl, double* x) {
    const char o = static_cast<char>(op);
    const int one = 1;
    dtrsv_("L", &o, "N", &n, l, &ldl, x, &one, 1, 1, 1);
}

/// Computes c = alpha op_a(a) op_b(b) + beta c, where c is rows x columns and each sum has `inner` terms.
inline void gemm(Op op_a, Op op_b, int rows, int columns, int inner, double alpha, const double* a, int lda,
                 const double* b, int ldb, double beta, double* c, int ldc) {
    const char oa = static_cast<char>(op_a), ob = static_cast<char>(op_b);
    dgemm_(&oa, &ob, &rows, &columns, &inner, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);
}

/// Computes the lower triangle of c = alpha a a' + beta c, where c is n x n and a is n x inner.
inline void syrk_lower(int n, int inner, double alpha, const double* a, int lda, double beta, double* c,
                       int ldc) {
    dsyrk_("L", "N", &n, &inner, &alpha, a, &lda, &beta, c, &ldc, 1, 1);
}

/// Computes b = b l'^-1, where b is rows x n and l is the lower triangle of an n x n matrix.
inline void divide_by_lower_transposed(int rows, int n, const double* l, int ldl, double* b, int ldb) {
    const double alpha = 1;
    dtrsm_("R", "L", "T", "N", &rows, &n, &alpha, l, &ldl, b, &ldb, 1, 1, 1, 1);
}

/// Replaces the lower triangle of `a` by its Cholesky factor L, a = L L'. Returns LAPACK's info: 0, or the
/// index (counted from 1) at which `a` is not positive definite.
inline int cholesky_lower(int n, double* a, int lda) {
    int info = 0;
    dpotrf_("L", &n, a, &lda, &info, 1);
    return info;
}

/// Replaces the symmetric n x n matrix `a`, given by its lower triangle, by its eigenvectors (columns), and
/// sets `values` to the eigenvalues in rising order. If a workspace size is -1, only sets work[0] and
/// iwork[0] to the best sizes. Returns LAPACK's info: 0, or another value if the method did not converge.
inline int eigen_lower(int n, double* values, double* work, int work_size, int* iwork, int iwork_size,
                       double* a) {
    int info = 0;
    dsyevd_("V", "L", &n, a, &n, values, work, &work_size, iwork, &iwork_size, &info, 1, 1);
    return info;
}

} // namespace hsi::sahic::blas
