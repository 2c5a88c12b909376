// SPDX-License-Identifier: MIT
// Outputs that contain classes: their type, names and colours.
#include "raster/labels.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace hsi::raster {

Colour default_colour(int value) {
    // The hues of consecutive classes differ by the golden ratio. Saturation and brightness alternate, so
    // that classes with similar hues also differ.
    const double hue = std::fmod(0.11 + 0.6180339887498949 * value, 1.0) * 6;
    const double saturation = value % 2 ? 0.85 : 0.6, brightness = value % 3 == 2 ? 0.7 : 0.95;
    Colour colour{0, 0, 0, 255};
    for (size_t k = 0; k < 3; ++k) {
        const double t = std::fmod(hue + (k == 0 ? 5.0 : k == 1 ? 3.0 : 1.0), 6.0);
        const double part = brightness - brightness * saturation * std::clamp(std::min(t, 4 - t), 0.0, 1.0);
        colour[k] = static_cast<uint8_t>(std::lround(255 * part));
    }
    return colour;
}

namespace {

std::string class_text(const LabelClass& c) {
    return std::to_string(c.value) + (c.name.empty() ? "" : " " + c.name);
}

/// Returns the greatest class number that a type can represent.
int most_of(const std::string& type) {
    return type == "Byte" ? 255 : type == "Int8" ? 127 : type == "Int16" ? 32767 : max_class;
}

/// Returns the nodata value for a class map in which 0 is a class: -1 for a signed type, otherwise the
/// largest class number of the type.
double nodata_beside_zero(const std::string& asked, const std::string& type, int largest) {
    if (type != "Byte" && type.rfind("UInt", 0) != 0) return -1;
    const int nodata = type == "Byte" ? 255 : max_class;
    if (largest >= nodata)
        throw UsageError((asked.empty() ? "" : "-ot " + asked + ": ") + std::string("class ") +
                             std::to_string(largest) +
                             " and class 0 leave no value for pixels without a class",
                         "Set their value with -dstnodata, or another type with -ot.");
    return nodata;
}

} // namespace

void describe_class_map(const std::vector<LabelClass>& classes, OutputOptions& options, OutputSpec& spec) {
    int largest = 0;
    for (const auto& c : classes)
        largest = std::max(largest, c.value);
    const bool zero =
        std::any_of(classes.begin(), classes.end(), [](const LabelClass& c) { return c.value == 0; });
    for (const auto& c : classes) {
        if (c.value > most_of(options.type))
            throw UsageError("-ot " + options.type + ": the type stores classes up to " +
                                 std::to_string(most_of(options.type)) + ", but there is class " +
                                 class_text(c),
                             "Leave -ot out to get a type that can store all classes.");
        if (options.nodata && *options.nodata == c.value)
            throw UsageError("-dstnodata " + std::to_string(c.value) + " is the number of class " +
                                 class_text(c),
                             std::string("Leave -dstnodata out: pixels without a class are ") +
                                 (zero ? "255, or 65535." : "0."));
    }
    // If 0 is a class, the nodata value is above all classes and must also fit into the type.
    spec.type = largest + (zero && !options.nodata ? 1 : 0) <= 255 ? "Byte" : "UInt16";
    spec.shape.bands = 1;
    spec.categories.assign(static_cast<size_t>(largest) + 1, std::string());
    spec.colours.assign(static_cast<size_t>(largest) + 1, Colour{0, 0, 0, 0});
    if (!zero) spec.categories[0] = "Unclassified";
    for (const auto& c : classes) {
        const auto v = static_cast<size_t>(c.value);
        spec.categories[v] = c.name.empty() ? std::to_string(c.value) : c.name;
        spec.colours[v] = c.colour.value_or(default_colour(c.value));
    }
    spec.holes = true;
    if (options.nodata) return;
    const std::string& type = options.type.empty() ? spec.type : options.type;
    options.nodata = zero ? nodata_beside_zero(options.type, type, largest) : 0;
}

} // namespace hsi::raster
