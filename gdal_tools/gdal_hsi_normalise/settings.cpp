// SPDX-License-Identifier: MIT
#include "gdal_hsi_normalise/settings.h"

#include "core/error.h"
#include "core/text.h"
#include "raster/spectral_library.h"
#include "tool/model_values.h"
#include "tool/phrases.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

namespace hsi::normalise_tool {
namespace {

using normalise::Brdf;
using normalise::Geometric;
using normalise::Topography;

/// Returns the value of an option in hundredths.
int hundredths(const std::string& option, double v) {
    const double h = std::round(100 * v);
    constexpr double near = 1e-6;
    if (!(std::fabs(100 * v - h) <= near))
        throw UsageError(option + ": " + tool::number_text(v) + " is not a multiple of 0.01");
    if (!(h >= -100 && h <= 100))
        throw UsageError(option + ": " + tool::number_text(v) + " is out of range (-1 to 1)");
    return static_cast<int>(h);
}

void take_bins(Settings& s) {
    const auto words = listed_words(s.bins_text).value_or(std::vector<std::string>());
    std::vector<double> numbers;
    for (const auto& word : words) {
        numbers.push_back(raster::table_number(word));
        if (!std::isfinite(numbers.back()))
            throw UsageError("-bins: '" + word + "' is not a number",
                             "Write -bins 18 or -bins 0.05,0.4,0.7,1.");
    }
    if (numbers.empty()) throw UsageError("-bins: '" + s.bins_text + "' is not a number");
    if (numbers.size() == 1) {
        constexpr double most = 95;
        if (numbers[0] != std::floor(numbers[0]))
            throw UsageError("-bins: '" + s.bins_text + "' is not a whole number");
        if (!(numbers[0] >= 1 && numbers[0] <= most))
            throw UsageError("-bins: " + s.bins_text + " is out of range (1 to 95)");
        s.binning.bins = static_cast<int>(numbers[0]);
        return;
    }
    for (const double v : numbers) {
        const int edge = hundredths("-bins", v);
        if (!s.binning.edges.empty() && edge <= s.binning.edges.back())
            throw UsageError("-bins: the edges '" + s.bins_text + "' are not in ascending order");
        if (edge < s.method.ndvi_min || edge > s.method.ndvi_max)
            throw UsageError("-bins: the edge " + tool::number_text(v) + " is out of the range of -ndvi (" +
                             tool::number_text(s.ndvi[0]) + " to " + tool::number_text(s.ndvi[1]) + ")");
        s.binning.edges.push_back(edge);
    }
}

/// Options that are used for a fit.
constexpr const char* fit_options[] = {"topography", "brdf",      "volume",    "geometric",
                                       "b-r",        "h-b",       "ndvi",      "bins",
                                       "min-pixels", "min-slope", "min-cos-i", "solar-zenith"};

void take_method(Settings& s, const tool::Call& call) {
    s.method.ndvi_min = hundredths("-ndvi", s.ndvi[0]);
    s.method.ndvi_max = hundredths("-ndvi", s.ndvi[1]);
    if (s.method.ndvi_min >= s.method.ndvi_max)
        throw UsageError("-ndvi: " + tool::number_text(s.ndvi[0]) + " is not below " +
                         tool::number_text(s.ndvi[1]));
    if (s.method.topography == Topography::none && s.method.brdf == Brdf::none)
        throw UsageError(tool::cannot_be_used_with("-topography none", "-brdf none"),
                         "Choose at least one correction.");
    const bool dense =
        s.method.geometric == Geometric::li_dense || s.method.geometric == Geometric::li_dense_r;
    s.method.b_r = call.given("b-r") ? s.b_r : dense ? 2.5 : 1;
    take_bins(s);
    if (equal_names(s.zenith_text, "mean")) return;
    const double v = raster::table_number(s.zenith_text);
    constexpr double most = 80;
    if (!std::isfinite(v))
        throw UsageError("-solar-zenith: '" + s.zenith_text + "' is not a number", "Write mean, or degrees.");
    if (!(v >= 0 && v <= most))
        throw UsageError("-solar-zenith: " + s.zenith_text + " is out of range (0 to 80)");
    s.binning.solar_zenith = v;
}

/// Rejects options of a correction or of a fit if the call makes no correction or fit.
void refuse_unused(const Settings& s, const tool::Call& call) {
    const auto refuse = [&](std::initializer_list<const char*> names, const std::string& required) {
        for (const char* const name : names)
            if (call.given(name)) throw UsageError(tool::option_requires("-" + std::string(name), required));
    };
    const auto topography = s.method.topography;
    if (s.method.brdf == Brdf::none)
        refuse({"volume", "geometric", "b-r", "h-b", "min-pixels", "solar-zenith"},
               "-brdf flex or universal");
    if (s.method.brdf != Brdf::flex) refuse({"bins"}, "-brdf flex");
    if (topography == Topography::none) refuse({"min-cos-i"}, "a correction of terrain (-topography)");
    if (topography != Topography::c && topography != Topography::scs_c)
        refuse({"min-slope"}, "-topography c or scs+c, which are fitted");
}

} // namespace

void settle(Settings& s, const tool::Call& call) {
    const auto& dst = call.options().destination.path;
    s.has_source = !call.options().source.path.empty();
    for (const char* const option : fit_options)
        if (call.given(option)) s.given.emplace_back(option);
    if (!s.applied.empty()) {
        for (const auto& name : s.given)
            throw UsageError(tool::cannot_be_used_with("-" + name, "-apply"),
                             "The model has its own settings: fit another model to change them.");
        for (const char* const name : {"model", "append", "merge", "remove", "with"})
            if (call.given(name))
                throw UsageError(tool::cannot_be_used_with("-" + std::string(name), "-apply"));
        if (dst.empty()) throw UsageError("dst is missing");
    }
    take_method(s, call);
    refuse_unused(s, call);
    if (!s.has_source) {
        if (s.merged.empty() && !s.append) throw UsageError("src is missing");
        for (const char* const name : {"geometry", "angle", "dem", "time", "angles", "with", "mask",
                                       "mask-exclude", "srcwin", "b", "exclude-range"})
            if (call.given(name)) throw UsageError("-" + std::string(name) + " requires src");
    }
    if (dst.empty() && s.model.empty())
        throw UsageError("dst is missing", "Give dst, or -model FILE to fit only a model.");
    for (const char* const name : {"append", "merge", "remove"})
        if (call.given(name) && s.model.empty())
            throw UsageError("-" + std::string(name) + " requires -model");
    if (s.append && call.options().if_needed && !dst.empty())
        throw UsageError(tool::cannot_be_used_with("-append -if-needed", "dst"),
                         "Add the scene first, and correct it with -apply.");
    if (s.append && call.options().destination.overwrite && !call.options().if_needed)
        throw UsageError(tool::cannot_be_used_with("-append", "-overwrite"));
    for (const auto& text : s.angle_texts) {
        const auto one = parse_angle(text);
        for (const auto& other : s.angles.angles)
            if (other.angle == one.angle)
                throw UsageError("-angle: " + std::string(view::angle_names[one.angle]) + " is given twice");
        s.angles.angles.push_back(one);
    }
    if (!s.time.empty()) s.angles.days = parse_times(s.time);
}

void refuse_other_options(const Settings& s, const normalise::Model& model, const std::string& path) {
    for (const auto& name : normalise::other_options(s.method, model.method))
        if (std::find(s.given.begin(), s.given.end(), name) != s.given.end())
            throw Error("-" + name + ": '" + path + "' was made with a different value",
                        "Leave the option out, or fit all scenes again.");
}

} // namespace hsi::normalise_tool
