// SPDX-License-Identifier: MIT
#include "terminal/process.h"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <filesystem>
#include <iterator>
#include <vector>

namespace hsi::test {
namespace {

template <class Function>
Function function_of(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

int threads() {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                                          std::filesystem::directory_iterator()));
}

TEST(BlasThreads, AreGoneAndProductsAreStillMade) {
    // For an OpenBLAS with its own threads (1), the number of threads is known.
    const auto parallel = function_of<int (*)()>("openblas_get_parallel");
    const auto count = function_of<int (*)()>("openblas_get_num_threads");
    const int before = threads(), started = parallel && parallel() == 1 && count ? count() - 1 : 0;
    terminal::end_idle_blas_threads();
    EXPECT_EQ(threads(), before - started);
    terminal::end_idle_blas_threads(); // a second call does no harm
    const auto multiply = function_of<void (*)(const char*, const char*, const int*, const int*, const int*,
                                               const double*, const double*, const int*, const double*,
                                               const int*, const double*, double*, const int*)>("dgemm_");
    if (multiply == nullptr) return; // this GDAL has no BLAS
    const int n = 300;
    const double one = 1, zero = 0;
    std::vector<double> a(n * n), b(n * n), c(n * n);
    for (int i = 0; i < n * n; ++i) {
        a[static_cast<size_t>(i)] = i % 7;
        b[static_cast<size_t>(i)] = i % 5;
    }
    multiply("N", "N", &n, &n, &n, &one, a.data(), &n, b.data(), &n, &zero, c.data(), &n);
    for (const int row : {0, 17, n - 1})
        for (const int column : {0, 123, n - 1}) {
            double sum = 0;
            for (int k = 0; k < n; ++k)
                sum += a[static_cast<size_t>(k * n + row)] * b[static_cast<size_t>(column * n + k)];
            EXPECT_EQ(c[static_cast<size_t>(column * n + row)], sum);
        }
}

} // namespace
} // namespace hsi::test
