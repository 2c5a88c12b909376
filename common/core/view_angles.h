// SPDX-License-Identifier: MIT
// The angles of a pixel towards sun and sensor, and the angles of its terrain.
#pragma once

#include <array>
#include <optional>
#include <vector>

namespace hsi::view {

/// In degrees; azimuths clockwise from true north. The sensor's azimuth points from the ground to the sensor;
/// aspect points downhill.
enum Angle { solar_zenith, solar_azimuth, sensor_zenith, sensor_azimuth, slope, aspect, angle_count };
inline constexpr std::array<const char*, angle_count> angle_names{
    "solar_zenith", "solar_azimuth", "sensor_zenith", "sensor_azimuth", "slope", "aspect"};

/// The source of a pixel's angle: value * factor + plus; -9999 and NaN are unknown.
struct AngleInput {
    int band = -1;                    ///< of the planes of angles, from 0 on; -1: `value`
    std::optional<double> value = {}; ///< of all pixels
    double factor = 1, plus = 0;
    std::vector<std::optional<double>> table = {}; ///< not empty: the band has indices into it
    bool known() const { return band >= 0 || value.has_value(); }
};
using AngleInputs = std::array<AngleInput, angle_count>;

} // namespace hsi::view
