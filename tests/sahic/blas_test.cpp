// SPDX-License-Identifier: MIT
// The BLAS of the build, compared with loops: a Fortran call with arguments in the wrong order would compile.
#include "sahic/blas.h"
#include "sahic/lorsal_problem.h"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace hsi::sahic {
namespace {

using blas::Op;

/// A column-major matrix with `spare` unused elements between its columns.
struct Matrix {
    int rows, columns, stride;
    std::vector<double> values;
    Matrix(int r, int c, int spare, unsigned seed = 0) : rows(r), columns(c), stride(r + spare) {
        values.resize(static_cast<size_t>(stride) * static_cast<size_t>(c), -77.0);
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> number(-1, 1);
        for (int j = 0; j < c; ++j)
            for (int i = 0; i < r; ++i)
                at(i, j) = number(random);
    }
    double& at(int i, int j) { return values[static_cast<size_t>(j) * static_cast<size_t>(stride) + i]; }
    double* data() { return values.data(); }
};

/// Returns a symmetric matrix with positive eigenvalues.
Matrix positive(int n, int spare) {
    Matrix a(n, n, spare), half(n, n, 0, 9);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            a.at(i, j) = i == j ? 1.0 : 0.0;
            for (int k = 0; k < n; ++k)
                a.at(i, j) += half.at(i, k) * half.at(j, k);
        }
    return a;
}

constexpr double tolerance = 1e-12;

TEST(Blas, VectorsAndProductsWithThem) {
    Matrix a(5, 3, 2, 1), x(5, 1, 0, 2), y(5, 1, 0, 3), narrow(3, 1, 0, 4);
    auto sum = y;
    blas::axpy(5, 0.5, x.data(), sum.data());
    for (int i = 0; i < 5; ++i)
        EXPECT_NEAR(sum.at(i, 0), y.at(i, 0) + 0.5 * x.at(i, 0), tolerance);
    std::vector<double> upright(5, NAN), turned(3, NAN); // the initial values must not matter
    blas::gemv(Op::none, 5, 3, a.data(), a.stride, narrow.data(), upright.data());
    blas::gemv(Op::transpose, 5, 3, a.data(), a.stride, x.data(), turned.data());
    for (int i = 0; i < 5; ++i) {
        double expected = 0;
        for (int j = 0; j < 3; ++j)
            expected += a.at(i, j) * narrow.at(j, 0);
        EXPECT_NEAR(upright[static_cast<size_t>(i)], expected, tolerance);
    }
    for (int j = 0; j < 3; ++j) {
        double expected = 0;
        for (int i = 0; i < 5; ++i)
            expected += a.at(i, j) * x.at(i, 0);
        EXPECT_NEAR(turned[static_cast<size_t>(j)], expected, tolerance);
    }
}

TEST(Blas, MatrixProducts) {
    for (const Op op_a : {Op::none, Op::transpose})
        for (const Op op_b : {Op::none, Op::transpose}) {
            Matrix a = op_a == Op::none ? Matrix(4, 5, 1, 1) : Matrix(5, 4, 1, 1);
            Matrix b = op_b == Op::none ? Matrix(5, 3, 2, 2) : Matrix(3, 5, 2, 2);
            Matrix c(4, 3, 3, 3), before = c;
            blas::gemm(op_a, op_b, 4, 3, 5, 2.0, a.data(), a.stride, b.data(), b.stride, 0.25, c.data(),
                       c.stride);
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 3; ++j) {
                    double expected = 0.25 * before.at(i, j);
                    for (int k = 0; k < 5; ++k)
                        expected += 2.0 * (op_a == Op::none ? a.at(i, k) : a.at(k, i)) *
                                    (op_b == Op::none ? b.at(k, j) : b.at(j, k));
                    EXPECT_NEAR(c.at(i, j), expected, tolerance);
                }
            EXPECT_EQ(c.at(4, 0), -77.0); // elements between columns are not written
        }
    Matrix a(4, 6, 1, 5), c(4, 4, 1, 6), before = c;
    blas::syrk_lower(4, 6, -1.0, a.data(), a.stride, 0.5, c.data(), c.stride);
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            double expected = 0.5 * before.at(i, j);
            for (int k = 0; k < 6; ++k)
                expected -= a.at(i, k) * a.at(j, k);
            EXPECT_NEAR(c.at(i, j), i >= j ? expected : before.at(i, j), tolerance);
        }
}

TEST(Blas, CholeskyAndItsTriangles) {
    const int n = 6;
    Matrix a = positive(n, 2), l = a;
    ASSERT_EQ(blas::cholesky_lower(n, l.data(), l.stride), 0);
    const auto lower = [&](int i, int j) { return i >= j ? l.at(i, j) : 0.0; };
    for (int i = 0; i < n; ++i)
        for (int j = 0; j <= i; ++j) {
            double product = 0;
            for (int k = 0; k < n; ++k)
                product += lower(i, k) * lower(j, k);
            EXPECT_NEAR(product, a.at(i, j), tolerance);
        }
    Matrix x(n, 1, 0, 7), once = x, b(3, n, 1, 8), divided = b;
    blas::solve_lower(Op::none, n, l.data(), l.stride, once.data());
    auto twice = once;
    blas::solve_lower(Op::transpose, n, l.data(), l.stride, twice.data());
    blas::divide_by_lower_transposed(3, n, l.data(), l.stride, divided.data(), divided.stride);
    for (int i = 0; i < n; ++i) {
        double forward = 0, backward = 0;
        for (int k = 0; k < n; ++k) {
            forward += lower(i, k) * once.at(k, 0);
            backward += lower(k, i) * twice.at(k, 0);
        }
        EXPECT_NEAR(forward, x.at(i, 0), tolerance);
        EXPECT_NEAR(backward, once.at(i, 0), tolerance);
        for (int r = 0; r < 3; ++r) {
            double product = 0;
            for (int k = 0; k < n; ++k)
                product += divided.at(r, k) * lower(i, k);
            EXPECT_NEAR(product, b.at(r, i), tolerance);
        }
    }
    a.at(3, 3) = -50;
    EXPECT_EQ(blas::cholesky_lower(n, a.data(), a.stride), 4); // counted from 1
}

TEST(Blas, Eigensystem) {
    const int n = 7;
    Matrix a = positive(n, 0), vectors = a;
    std::vector<double> values(n);
    double work_size = 0;
    int iwork_size = 0;
    ASSERT_EQ(blas::eigen_lower(n, values.data(), &work_size, -1, &iwork_size, -1, vectors.data()), 0);
    std::vector<double> work(static_cast<size_t>(work_size));
    std::vector<int> iwork(static_cast<size_t>(iwork_size));
    ASSERT_EQ(blas::eigen_lower(n, values.data(), work.data(), static_cast<int>(work.size()), iwork.data(),
                                iwork_size, vectors.data()),
              0);
    for (int v = 0; v < n; ++v) {
        EXPECT_GE(values[static_cast<size_t>(v)], values[static_cast<size_t>(std::max(v - 1, 0))]);
        for (int i = 0; i < n; ++i) {
            double product = 0;
            for (int k = 0; k < n; ++k)
                product += a.at(i, k) * vectors.at(k, v);
            EXPECT_NEAR(product, values[static_cast<size_t>(v)] * vectors.at(i, v), 1e-11);
        }
    }
}

TEST(Blas, IsOnOneThreadWhileItTrains) {
    const auto get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
    const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
    if (!get || !set) {
        const training::SingleThreadedBlas alone(1); // calls only functions that exist
        GTEST_SKIP() << "the BLAS of this process is not OpenBLAS";
    }
    set(2);
    const int before = get(); // 1 for an OpenBLAS without threads
    {
        const training::SingleThreadedBlas first(1);
        {
            const training::SingleThreadedBlas second(1);
            EXPECT_EQ(get(), 1);
        }
        EXPECT_EQ(get(), 1);
    }
    EXPECT_EQ(get(), before);
}

} // namespace
} // namespace hsi::sahic
