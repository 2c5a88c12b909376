// SPDX-License-Identifier: MIT
// The routines of BLAS and LAPACK that training takes, by their Fortran interface: every implementation has
// it (netlib's reference, OpenBLAS, BLIS, MKL), the C interface only some. Matrices are column-major, strides
// are between columns, numbers are double, integers 32 bits wide. In place: results replace the last
// argument.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

// What follows the arguments are the lengths of the texts: compilers of Fortran count on them.
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
void dsyr2k_(const char* triangle, const char* op, const int* n, const int* k, const double* alpha,
             const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
             const int* ldc, size_t, size_t);
int ilaenv_(const int* what, const char* routine, const char* options, const int* n1, const int* n2,
            const int* n3, const int* n4, size_t, size_t);
void dlatrd_(const char* triangle, const int* n, const int* nb, double* a, const int* lda, double* e,
             double* tau, double* w, const int* ldw, size_t);
void dsytd2_(const char* triangle, const int* n, double* a, const int* lda, double* d, double* e, double* tau,
             int* info, size_t);
void dstedc_(const char* compz, const int* n, double* d, double* e, double* z, const int* ldz, double* work,
             const int* lwork, int* iwork, const int* liwork, int* info, size_t);
void dlarft_(const char* direction, const char* storage, const int* n, const int* k, const double* v,
             const int* ldv, const double* tau, double* t, const int* ldt, size_t, size_t);
void dlarfb_(const char* side, const char* op, const char* direction, const char* storage, const int* m,
             const int* n, const int* k, const double* v, const int* ldv, const double* t, const int* ldt,
             double* c, const int* ldc, double* work, const int* ldwork, size_t, size_t, size_t, size_t);
void dsyevd_(const char* job, const char* triangle, const int* n, double* a, const int* lda, double* w,
             double* work, const int* lwork, int* iwork, const int* liwork, int* info, size_t, size_t);
}

namespace hsi::sahic::blas {

enum class Op : char { none = 'N', transpose = 'T' };

/// y (n) += alpha x.
inline void axpy(int n, double alpha, const double* x, double* y) {
    const int one = 1;
    daxpy_(&n, &alpha, x, &one, y, &one);
}

/// y = op(a) x, a: rows x columns.
inline void gemv(Op op, int rows, int columns, const double* a, int lda, const double* x, double* y) {
    const char o = static_cast<char>(op);
    const int one = 1;
    const double alpha = 1, beta = 0;
    dgemv_(&o, &rows, &columns, &alpha, a, &lda, x, &one, &beta, y, &one, 1);
}

/// x (n) = op(l)^-1 x, l: the lower triangle of n x n.
inline void solve_lower(Op op, int n, const double* l, int ldl, double* x) {
    const char o = static_cast<char>(op);
    const int one = 1;
    dtrsv_("L", &o, "N", &n, l, &ldl, x, &one, 1, 1, 1);
}

/// c (rows x columns) = alpha op_a(a) op_b(b) + beta c, with `inner` terms a sum.
inline void gemm(Op op_a, Op op_b, int rows, int columns, int inner, double alpha, const double* a, int lda,
                 const double* b, int ldb, double beta, double* c, int ldc) {
    const char oa = static_cast<char>(op_a), ob = static_cast<char>(op_b);
    dgemm_(&oa, &ob, &rows, &columns, &inner, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);
}

/// The lower triangle of c (n x n) = alpha a a' + beta c, a: n x inner.
inline void syrk_lower(int n, int inner, double alpha, const double* a, int lda, double beta, double* c,
                       int ldc) {
    dsyrk_("L", "N", &n, &inner, &alpha, a, &lda, &beta, c, &ldc, 1, 1);
}

/// b (rows x n) = b l'^-1, l: the lower triangle of n x n.
inline void divide_by_lower_transposed(int rows, int n, const double* l, int ldl, double* b, int ldb) {
    const double alpha = 1;
    dtrsm_("R", "L", "T", "N", &rows, &n, &alpha, l, &ldl, b, &ldb, 1, 1, 1, 1);
}

/// L of a = L L' in a's lower triangle. Returns LAPACK's info: 0, or where a is not positive.
inline int cholesky_lower(int n, double* a, int lda) {
    int info = 0;
    dpotrf_("L", &n, a, &lda, &info, 1);
    return info;
}

/// Eigenvectors (columns) of the symmetric a (n x n; its lower triangle is read), eigenvalues ascending. A
/// workspace of -1 elements asks for its best size. Returns LAPACK's info: 0, or that it did not converge.
inline int eigen_lower(int n, double* values, double* work, int work_size, int* iwork, int iwork_size,
                       double* a) {
    int info = 0;
    dsyevd_("V", "L", &n, a, &n, values, work, &work_size, iwork, &iwork_size, &info, 1, 1);
    return info;
}

/// The width of the panels in which LAPACK's `routine` works through a matrix; `crossover`: the order below
/// which it works column by column.
inline int panel_width(bool crossover, const char* routine, const char* options, int n1, int n2, int n3) {
    const int what = crossover ? 3 : 1, none = -1;
    return ilaenv_(&what, routine, options, &n1, &n2, &n3, &none, 6, std::strlen(options));
}

/// eigen_lower(), panel by panel with `between` in between, which may throw: by the calls that dsyevd_()
/// makes, with its bits, for an a whose elements are no larger than 1e100 and not all of them smaller than
/// 1e-100. The workspace is the one that it asks for; n is at least 512, below which dsyevd_() makes other
/// calls.
template <class Between>
int eigen_lower_in_pieces(int n, double* values, double* work, int work_size, int* iwork, int iwork_size,
                          double* a, const Between& between) {
    const auto ld = static_cast<size_t>(n);
    const auto at = [&](int row, int column) { return a + static_cast<size_t>(column) * ld + row; };
    double *const off_diagonal = work, *const tau = off_diagonal + n, *const vectors = tau + n,
                  *const rest = vectors + ld * ld;
    const int rest_size = static_cast<int>(work_size - (rest - work));
    const double one = 1, minus_one = -1;
    int info = 0;
    // dsytrd_(): T = Q'AQ.
    const int nb = panel_width(false, "DSYTRD", "L", n, -1, -1),
              alone = std::max(nb, panel_width(true, "DSYTRD", "L", n, -1, -1));
    int first = 0;
    for (; first < n - alone; first += nb) {
        between();
        const int here = n - first, below = here - nb;
        dlatrd_("L", &here, &nb, at(first, first), &n, off_diagonal + first, tau + first, vectors, &n, 1);
        dsyr2k_("L", "N", &below, &nb, &minus_one, at(first + nb, first), &n, vectors + nb, &n, &one,
                at(first + nb, first + nb), &n, 1, 1);
        for (int j = first; j < first + nb; ++j) {
            *at(j + 1, j) = off_diagonal[j];
            values[j] = *at(j, j);
        }
    }
    const int left = n - first;
    dsytd2_("L", &left, at(first, first), &n, values + first, off_diagonal + first, tau + first, &info, 1);
    between();
    dstedc_("I", &n, values, off_diagonal, vectors, &n, rest, &rest_size, iwork, &iwork_size, &info, 1);
    if (info != 0) return info;
    // dormtr_(): Q times T's eigenvectors.
    constexpr int most = 64, ldt = most + 1;
    const int reflectors = n - 1;
    const int width = std::min(most, panel_width(false, "DORMQR", "LN", reflectors, n, reflectors));
    std::vector<double> triangle(static_cast<size_t>(ldt) * most);
    for (int i = (reflectors - 1) / width * width; i >= 0; i -= width) {
        between();
        const int count = std::min(width, reflectors - i), length = reflectors - i;
        dlarft_("F", "C", &length, &count, at(i + 1, i), &n, tau + i, triangle.data(), &ldt, 1, 1);
        dlarfb_("L", "N", "F", "C", &length, &n, &count, at(i + 1, i), &n, triangle.data(), &ldt,
                vectors + 1 + i, &n, rest, &n, 1, 1, 1, 1);
    }
    std::copy_n(vectors, ld * ld, a);
    return 0;
}

} // namespace hsi::sahic::blas
