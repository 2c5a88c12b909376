// SPDX-License-Identifier: MIT
// This file is linked to every test. The environment variable HSI_SIMD selects the instruction set of the
// tested kernels, as for the tools. If the machine or the build does not support this instruction set, the
// test fails.
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
