// SPDX-License-Identifier: MIT
// Reads the unit absorption of the gas and the noise of the sensor from files.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "core/text_file.h"
#include "gdal_hsi_gas/settings.h"
#include "math/resampling.h"
#include "raster/library_output.h"
#include "raster/raster_source.h"
#include "raster/regular_file.h"
#include "raster/text_input.h"
#include "shared/spectral_bands.h"
#include "tool/scene.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace hsi::gas_tool {
namespace {

/// Returns the scene with only the bands of the ranges.
std::shared_ptr<raster::RasterSource> in_ranges(tool::Run& run, const Settings& s,
                                                const std::shared_ptr<raster::RasterSource>& scene) {
    const auto& nm = scene->facts().bands.wavelengths_nm;
    if (nm.empty()) throw Error(scene->path() + " has no wavelengths", tools::advice_on_wavelengths());
    std::vector<int> used;
    for (size_t b = 0; b < nm.size(); ++b)
        if (std::any_of(s.ranges.begin(), s.ranges.end(),
                        [&](const auto& one) { return nm[b] >= one.from_nm && nm[b] <= one.to_nm; }))
            used.push_back(static_cast<int>(b));
    if (used.size() < 2)
        throw Error(scene->path() + " has " + counted(used.size(), "good band") + " in the window of " +
                        s.name() + ", " + joined(s.range_texts, ", "),
                    "The filter needs at least two bands: choose another -gas or -range.");
    for (const auto& one : s.ranges)
        tools::note_cut_range(run, "-range " + one.text, nm, one.from_nm, one.to_nm);
    return tool::only_bands(scene, used);
}

/// Returns true if a file has three columns without names: an index that rises by 1, a wavelength in nm, and
/// a value.
bool is_numbered(const std::string& path) {
    if (raster::is_pipe_or_device(path)) return false; // the reader of libraries rejects pipes and devices
    std::string text;
    try {
        text = raster::read_input(path, largest_file::options);
    } catch (const Error&) {
        return false; // the library has another format
    }
    std::istringstream lines(text);
    std::string line, word;
    double before = 0;
    int64_t rows = 0;
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        std::vector<double> values;
        while (words >> word)
            values.push_back(raster::table_number(word));
        if (values.empty()) continue;
        if (values.size() != 3 || (rows > 0 && values[0] != before + 1)) return false;
        before = values[0];
        ++rows;
    }
    return rows > 1;
}

void check_absorption(tool::Run& run, const std::string& role, const std::vector<double>& k) {
    if (std::none_of(k.begin(), k.end(), [](double v) { return v < 0; }))
        throw Error(role + " has no negative value at the scene's bands",
                    "A unit absorption, the change of ln(radiance) per ppm m, is negative. Multiply an "
                    "absorption coefficient by -1 with -library-scale.");
    constexpr double too_much = 0.01; // in 1/(ppm m); 100 ppm m would then absorb two thirds of the light
    const double most = std::fabs(*std::max_element(
        k.begin(), k.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); }));
    if (most > too_much)
        run.warn(role + ": the greatest value is " + number(most) +
                 " per ppm m. For a spectrum per 1e5 ppm m, use -library-scale 1e-5");
}

void save_absorption(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                     const std::vector<double>& k) {
    if (s.save.empty()) return;
    auto library = tools::library_for(scene);
    library.names = {std::string(s.name()) + " unit absorption"};
    library.spectra = {k};
    library.twofold = library.widths_in_table = true;
    const auto output = run.text_output("-save-absorption", s.save, run.options().destination.overwrite);
    raster::check_library_output(output);
    raster::write_spectral_library(output, library, run.options().destination.history);
}

/// Returns the unit absorption k from the table. Removes bands outside of the table from the scene.
std::vector<double> absorption_of_table(tool::Run& run, const Settings& s,
                                        std::shared_ptr<raster::RasterSource>& scene) {
    const auto table = raster::read_radiance_table(s.lut, s.conditions);
    for (const auto& name : s.conditions_given)
        if ((name == "concentrations" ? raster::RadianceForm::samples : raster::RadianceForm::simulated) !=
            table.form)
            throw UsageError("-" + name + " cannot be used with -lut " + s.lut +
                                 (table.form == raster::RadianceForm::columns ? ", a text with columns"
                                  : table.form == raster::RadianceForm::samples
                                      ? ", a raster with a sample per concentration"
                                      : ", HDF5 with modtran_data"),
                             "Leave it out, or use a table in another format.");
    const auto& bands = scene->facts().bands;
    const auto all =
        gas::unit_absorption({table.wavelengths_nm, table.concentrations, table.radiances},
                             bands.wavelengths_nm, math::full_widths({bands.wavelengths_nm, bands.fwhm_nm}));
    std::vector<double> k;
    std::vector<int> known;
    for (size_t b = 0; b < all.size(); ++b) {
        if (!std::isfinite(all[b])) continue;
        known.push_back(static_cast<int>(b));
        k.push_back(all[b]);
    }
    if (known.size() < 2)
        throw Error("-lut " + s.lut + " has " + counted(known.size(), "band") + " of the scene in " +
                        joined(s.range_texts, ", "),
                    "Use a table that covers the wavelengths of the scene, in nm.");
    if (known.size() < all.size())
        run.note(counted(all.size() - known.size(), "band is", "bands are") + " outside -lut " + s.lut +
                 " and left out");
    scene = tool::only_bands(scene, known);
    return k;
}

} // namespace

std::string number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

std::vector<double> unit_absorption(tool::Run& run, const Settings& s,
                                    std::shared_ptr<raster::RasterSource>& scene) {
    scene = in_ranges(run, s, scene);
    if (!s.lut.empty()) {
        const auto k = absorption_of_table(run, s, scene);
        check_absorption(run, "-lut " + s.lut, k);
        save_absorption(run, s, *scene, k);
        return k;
    }
    const bool numbered = is_numbered(s.absorption);
    if (numbered)
        run.note("-absorption " + s.absorption +
                 " is read as a spectrum per 1e5 ppm m, as written by mag1c and EMIT");
    const auto fitted =
        tools::spectra_for_scene(run, "-absorption", s.absorption, s.spectrum,
                                 s.library_scale * (numbered ? 1e-5 : 1), "The filter", scene, s.fit);
    if (fitted.spectra.size() != 1)
        throw Error("-absorption " + s.absorption + " has " +
                        counted(fitted.spectra.size(), "spectrum", "spectra"),
                    "Choose one with -spectrum NAME.");
    const auto& k = fitted.spectra.front();
    check_absorption(run, "-absorption " + s.absorption, k);
    save_absorption(run, s, *scene, k);
    return k;
}

std::vector<gas::NoiseBand> read_noise(tool::Run& run, const Settings& s, const raster::RasterSource& scene) {
    std::vector<std::pair<double, gas::NoiseBand>> rows;
    std::istringstream lines(raster::read_input(s.noise, largest_file::options));
    std::string line;
    for (size_t at = 1; std::getline(lines, line); ++at) {
        std::replace(line.begin(), line.end(), ',', ' ');
        std::istringstream words(line.substr(0, line.find('#')));
        std::vector<double> values;
        std::string word;
        while (words >> word)
            values.push_back(raster::table_number(word));
        if (values.empty()) continue;
        if (values.size() < 4 || values.size() > 5 ||
            !std::all_of(values.begin(), values.begin() + 4, [](double v) { return std::isfinite(v); }))
            throw Error("-noise " + s.noise + ", line " + std::to_string(at) +
                            " is not a list of wavelength (nm), A, B, D and, optionally, an error",
                        "The noise of a band at the radiance L is |A sqrt(L + B) + D|.");
        rows.push_back({values[0], {values[1], values[2], values[3]}});
    }
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<double> nm;
    std::vector<gas::NoiseBand> noise;
    for (const auto& [at, band] : rows) {
        if (!nm.empty() && at == nm.back())
            throw Error("-noise " + s.noise + " has two lines for " + number(at) + " nm",
                        "Remove one of the lines.");
        nm.push_back(at);
        noise.push_back(band);
    }
    if (nm.size() < 2)
        throw Error("-noise " + s.noise + " has " + counted(nm.size(), "line"),
                    "Give the noise at two or more wavelengths: wavelength (nm), A, B, D.");
    const auto& centres = scene.facts().bands.wavelengths_nm;
    constexpr double far_nm = 10;
    const auto beyond = std::count_if(centres.begin(), centres.end(), [&](double c) {
        return c < nm.front() - far_nm || c > nm.back() + far_nm;
    });
    if (beyond > 0)
        run.warn("-noise " + s.noise + " ends more than 10 nm from " + counted(beyond, "band") +
                 " of the scene: the noise there is extrapolated");
    return gas::noise_at(nm, noise, centres);
}

} // namespace hsi::gas_tool
