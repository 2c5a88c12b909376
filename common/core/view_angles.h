// SPDX-License-Identifier: MIT
// The angles of a pixel towards the sun and the sensor, and the angles of its terrain.
#pragma once

#include <array>
#include <optional>
#include <vector>

namespace hsi::view {

/// Angles in degrees. Azimuths are clockwise from true north. The sensor's azimuth points from the ground to
/// the sensor; the aspect points downhill.
enum Angle { solar_zenith, solar_azimuth, sensor_zenith, sensor_azimuth, slope, aspect, angle_count };
inline constexpr std::array<const char*, angle_count> angle_names{
    "solar_zenith", "solar_azimuth", "sensor_zenith", "sensor_azimuth", "slope", "aspect"};

/// The source of one angle. The angle of a pixel is value * factor + plus; the value is from a band, or the
/// same for all pixels. A value of -9999 or NaN means that the angle is unknown.
struct AngleInput {
    int band = -1;                    ///< index in the planes of angles, from 0 on; -1: use `value`
    std::optional<double> value = {}; ///< angle of all pixels; used if `band` is -1
    double factor = 1, plus = 0;
    /// If not empty, the band contains indices into this table.
    std::vector<std::optional<double>> table = {};
    bool known() const { return band >= 0 || value.has_value(); }
};
using AngleInputs = std::array<AngleInput, angle_count>;

} // namespace hsi::view
