// SPDX-License-Identifier: MIT
#include "shared/spectral_bands.h"

#include "core/error.h"
#include "tool/phrases.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

namespace hsi::tools {

const char* resampling_name(math::Resampling method) {
    return method == math::Resampling::response ? "response" : "linear";
}

std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", value);
    return text;
}

std::string number_cell(double value) { return std::isfinite(value) ? short_number(value) : std::string(); }

std::string nm_text(double wavelength) {
    if (!std::isfinite(wavelength)) return "no wavelength";
    char text[32];
    std::snprintf(text, sizeof text, "%.6g nm", wavelength);
    return text;
}

std::string reach_text(const math::SpectralBands& bands, const std::string& what) {
    const auto rising = math::rising_bands(bands.centres);
    if (rising.empty()) return what + " nowhere";
    return what + " between " + nm_text(bands.centres[rising.front()]) + " and " +
           nm_text(bands.centres[rising.back()]);
}

std::string advice_on_wavelengths() {
    return "Write them into its header: a list wavelength in an ENVI .hdr, or in any format gdal_edit.py -mo "
           "wavelength=450,460,470 -mo wavelength_units=nm FILE, one number per band. A VRT mosaic uses the "
           "wavelengths of its sources.";
}

void note_cut_range(tool::Run& run, const std::string& what, const std::vector<double>& wavelengths_nm,
                    double from, double to) {
    const auto rising = math::rising_bands(wavelengths_nm, from, to);
    if (rising.size() < 2) return; // ranges with too few bands are rejected later
    const double first = wavelengths_nm[rising.front()], last = wavelengths_nm[rising.back()],
                 far = 2 * (last - first) / static_cast<double>(rising.size() - 1);
    if (first - from > far || to - last > far)
        run.note(what + " has good bands only from " + nm_text(first) + " to " + nm_text(last));
}

namespace {

/// Rejects options that apply only to rasters.
void refuse_raster_options(const tool::CommonOptions& o) {
    const auto refuse = [](const std::string& option) {
        throw UsageError(tool::cannot_be_used_with(option, "a spectral library"),
                         "Leave it out: it applies only to rasters.");
    };
    if (!o.source.bands.empty() || !o.source.choices.empty()) refuse("-b");
    if (!o.source.excluded.empty()) refuse("-exclude-range");
    if (!o.source.use_bbl) refuse("-bbl ignore");
    if (!o.source.bad_bands.empty()) refuse("-bbl");
    if (o.source.window) refuse("-srcwin");
    if (o.source.nodata) refuse("-srcnodata");
    if (!o.source.drivers.empty()) refuse("-if");
    if (!o.source.open_options.empty()) refuse("-oo");
    if (!o.destination.format.empty()) refuse("-of");
    if (!o.destination.creation_options.empty()) refuse("-co");
    if (!o.destination.type.empty()) refuse("-ot");
    if (o.destination.nodata) refuse("-dstnodata");
    if (o.tile_samples > 0) refuse("-tile");
    if (o.mask.given()) refuse(o.mask.first());
}

} // namespace

SceneOrLibrary open_scene_or_library(tool::Run& run) {
    try {
        return {run.open_source(), std::nullopt};
    } catch (const Error&) {
        auto library = raster::plain_library(run.options().source.path);
        if (!library) throw;
        refuse_raster_options(run.options());
        for (const auto& note : library->notes)
            run.warn(note);
        return {nullptr, std::move(library)};
    }
}

namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

/// Returns the bands of the library at which a spectrum has values. Other bands have no wavelength.
math::SpectralBands bands_of(const raster::SpectralLibrary& library, const std::vector<bool>& has_value) {
    math::SpectralBands bands{library.wavelengths_nm, library.fwhm_nm};
    for (size_t b = 0; b < bands.centres.size(); ++b)
        if (!has_value[b]) bands.centres[b] = no_value;
    return bands;
}

} // namespace

ResampledSpectra resampled(const raster::SpectralLibrary& library, const math::SpectralBands& target,
                           math::Resampling method) {
    ResampledSpectra out;
    // Most libraries have few patterns of missing bands, so a plan is stored for each pattern.
    std::map<std::vector<bool>, math::ResamplingPlan> plans;
    std::vector<bool> any(target.size());
    for (const auto& spectrum : library.spectra) {
        std::vector<bool> has_value;
        for (const double v : spectrum)
            has_value.push_back(std::isfinite(v));
        auto at = plans.find(has_value);
        if (at == plans.end())
            at =
                plans.emplace(has_value, plan_resampling(bands_of(library, has_value), target, method)).first;
        auto& values = out.spectra.emplace_back(target.size(), no_value);
        for (const auto& band : at->second.bands) {
            double sum = 0;
            for (size_t k = 0; k < band.sources.size(); ++k)
                sum += band.weights[k] * spectrum[band.sources[k]];
            values[band.target] = sum;
            if (!any[band.target]) out.plan.bands.push_back(band);
            any[band.target] = true;
        }
        if (at->second.sources.size() > out.plan.sources.size()) out.plan.sources = at->second.sources;
    }
    std::sort(out.plan.bands.begin(), out.plan.bands.end(),
              [](const auto& a, const auto& b) { return a.target < b.target; });
    for (size_t j = 0; j < target.size(); ++j)
        if (!any[j]) out.plan.left_out.push_back(j);
    return out;
}

} // namespace hsi::tools
