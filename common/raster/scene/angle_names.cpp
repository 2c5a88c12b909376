// SPDX-License-Identifier: MIT
// Recognises the names that products give to bands of view and sun angles.
#include "raster/view_geometry.h"

#include <cctype>

namespace hsi::raster {
namespace {

using view::Angle;

std::string in_small_letters(std::string text) {
    for (char& c : text)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

} // namespace

double degrees_per(const std::string& unit) {
    constexpr double per_radian = 180 / 3.14159265358979323846;
    return in_small_letters(unit).rfind("rad", 0) == 0 ? per_radian : 1;
}

std::optional<Angle> angle_called(const std::string& name) {
    const std::string text = in_small_letters(name.substr(0, name.find_first_of("([{")));
    std::string plain;
    bool relative = false;
    for (size_t i = 0; i < text.size(); ++i) {
        // A capital letter also begins a word, as in sensorRelAzimuth.
        const bool begins = i == 0 || std::isalpha(static_cast<unsigned char>(text[i - 1])) == 0 ||
                            std::isupper(static_cast<unsigned char>(name[i])) != 0;
        relative = relative || (begins && text.compare(i, 3, "rel") == 0);
        if (std::isalnum(static_cast<unsigned char>(text[i])) != 0) plain += text[i];
    }
    if (plain == "slope") return view::slope;
    if (plain == "aspect") return view::aspect;
    const auto has = [&](const char* what) { return plain.find(what) != std::string::npos; };
    const bool zenith = has("zenith"), azimuth = has("azimuth");
    if (relative || zenith == azimuth) return std::nullopt;
    if (has("sun") || has("solar")) return zenith ? view::solar_zenith : view::solar_azimuth;
    for (const char* const word : {"sensor", "view", "observ"})
        if (has(word)) return zenith ? view::sensor_zenith : view::sensor_azimuth;
    return std::nullopt;
}

} // namespace hsi::raster
