// SPDX-License-Identifier: MIT
// A scene with a plume, for tests and benchmarks of the gas filters.
#pragma once

#include "support/memory_cube.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::test {

inline std::vector<double> absorption_of(int bands) {
    std::vector<double> k;
    for (int b = 0; b < bands; ++b)
        k.push_back(-1e-5 * (0.1 + std::fabs(std::sin(1.7 * b))));
    return k;
}

/// Returns a scene with a plume of 2500 ppm m in lines 8 to 15, an invalid pixel and a zero pixel.
inline Cube scene_with_plume(int64_t samples, int64_t lines, int bands) {
    Cube cube = random_scene(samples, lines, bands, 3, 0.004);
    const auto k = absorption_of(bands);
    for (int64_t y = 8; y < 16; ++y)
        for (int64_t x = 1; x < samples - 1; ++x)
            for (int b = 0; b < bands; ++b)
                cube.at(b, y, x) *= static_cast<float>(std::exp(k[static_cast<size_t>(b)] * 2500));
    make_invalid(cube, 2, 1, 0);
    for (int b = 0; b < bands; ++b)
        cube.at(b, 3, 0) = 0;
    return cube;
}

} // namespace hsi::test
