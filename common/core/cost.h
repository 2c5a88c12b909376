// SPDX-License-Identifier: MIT
// Seconds that a unit of work takes on one core and on one device. Each plugin states the costs of its
// algorithm next to its operations. A tool or a pipeline step multiplies the costs by units, and -device auto
// compares the sums (tool/costs.h).
#pragma once

namespace hsi {

/// Seconds per unit of work on one CPU core and on one GPU. They were measured with AVX2 at 2.4 GHz and on an
/// NVIDIA H200 (docs/measurements_runs.md). A unit that is called "value" is one value of the scene or of a
/// component.
struct Cost {
    double core = 0, device = 0;
};

constexpr Cost operator*(const Cost& cost, double units) { return {cost.core * units, cost.device * units}; }
constexpr Cost operator+(const Cost& a, const Cost& b) { return {a.core + b.core, a.device + b.device}; }

} // namespace hsi
