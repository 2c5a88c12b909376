// SPDX-License-Identifier: MIT
// Linked into every test: the environment variable HSI_SIMD chooses the instruction set of the kernels under
// test, as it does for the tools. One that this machine or build does not have fails the test.
#include "core/error.h"
#include "math/simd_target.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace {

class SimdEnvironment final : public testing::Environment {
  public:
    void SetUp() override {
        const char* const name = std::getenv("HSI_SIMD");
        if (!name) return;
        try {
            hsi::math::select_simd(name);
        } catch (const hsi::Error& e) {
            FAIL() << e.what() << "\n" << e.advice();
        }
    }
};

[[maybe_unused]] const auto* const environment = testing::AddGlobalTestEnvironment(new SimdEnvironment);

} // namespace
