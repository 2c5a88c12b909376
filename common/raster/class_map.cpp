// SPDX-License-Identifier: MIT
// Outputs that hold classes: their type, names and colours.
#include "raster/labels.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>

namespace hsi::raster {

Colour default_colour(int value) {
    // Hues a golden section apart; saturation and brightness alternate, so that near hues still differ.
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

void describe_class_map(const std::vector<LabelClass>& classes, OutputOptions& options, OutputSpec& spec) {
    int largest = 0;
    for (const auto& c : classes)
        largest = std::max(largest, c.value);
    const int most = options.type == "Byte"    ? 255
                     : options.type == "Int8"  ? 127
                     : options.type == "Int16" ? 32767
                                               : max_class;
    for (const auto& c : classes) {
        const std::string text = std::to_string(c.value) + (c.name.empty() ? "" : " " + c.name);
        if (c.value > most)
            throw UsageError("-ot " + options.type + ": it holds class numbers up to " +
                                 std::to_string(most) + ", and there is class " + text,
                             "Leave -ot out: the type follows the classes.");
        if (options.nodata && *options.nodata == c.value)
            throw UsageError("-dstnodata " + std::to_string(c.value) + " is the number of class " + text,
                             "Leave -dstnodata out: pixels without a class are 0.");
    }
    spec.type = largest <= 255 ? "Byte" : "UInt16";
    spec.shape.bands = 1;
    spec.categories.assign(static_cast<size_t>(largest) + 1, std::string());
    spec.colours.assign(static_cast<size_t>(largest) + 1, Colour{0, 0, 0, 0});
    spec.categories[0] = "Unclassified";
    for (const auto& c : classes) {
        const auto v = static_cast<size_t>(c.value);
        spec.categories[v] = c.name.empty() ? std::to_string(c.value) : c.name;
        spec.colours[v] = c.colour.value_or(default_colour(c.value));
    }
    spec.holes = true;
    if (!options.nodata) options.nodata = 0;
}

} // namespace hsi::raster
