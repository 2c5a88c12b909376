// SPDX-License-Identifier: MIT
#include "gdal_hsi_identify/references.h"

#include "core/error.h"
#include "core/name_index.h"
#include "core/text.h"
#include "core/valid_pixel.h"
#include "math/resampling.h"
#include "raster/side_files.h"
#include "raster/spectral_library.h"
#include "shared/spectral_bands.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace hsi::identify_tool {
namespace {

struct Library {
    std::string path;
    raster::SpectralLibrary spectra;
    NameIndex names;
    std::vector<size_t> wanted; ///< indices in the library of the spectra that rules use
};

std::string beside(const std::string& file, const std::string& name) {
    const size_t slash = file.find_last_of('/');
    return name.front() == '/' || slash == std::string::npos ? name : file.substr(0, slash + 1) + name;
}

std::vector<Library> read_libraries(tool::Run& run, const ReferenceOptions& options, const std::string& path,
                                    const identify::RuleFile& file) {
    std::vector<std::string> paths;
    if (!options.library.empty())
        paths = {options.library};
    else
        for (const auto& name : file.libraries) {
            const std::string one = beside(path, name);
            raster::check_named_file(path, one);
            // The library of -library was already registered as an input of the run.
            run.files()->reads("the library of rules", one, raster::files_read_with(one));
            paths.push_back(one);
        }
    if (paths.empty())
        throw Error("the library of the reference spectra is missing",
                    "Give -library FILE, or \"library\" in " + path + ".");
    std::vector<Library> libraries;
    for (const auto& one : paths)
        libraries.push_back({one, tools::chosen_library(run, "-library", one, {}), {}, {}});
    for (Library& library : libraries)
        for (size_t k = 0; k < library.spectra.names.size(); ++k)
            library.names.add(library.spectra.names[k], k);
    return libraries;
}

/// Returns the first rule that refers to a spectrum, for messages.
std::string naming(const identify::RuleFile& file, const std::string& spectrum, const std::string& path) {
    for (const auto& rule : file.rules) {
        bool named = equal_names(rule.spectrum, spectrum);
        for (const auto& one : rule.nots)
            named = named || equal_names(one.spectrum, spectrum);
        if (named) return path + ", line " + std::to_string(rule.line) + ": rule '" + rule.name + "'";
    }
    return path;
}

/// Returns the wanted spectra of the library at the bands of the scene.
raster::SpectralLibrary at_bands(tool::Run& run, const Library& library, tools::BandFit fit,
                                 const math::SpectralBands& scene) {
    auto chosen = raster::selected(library.spectra, library.wanted);
    if (const auto infinite = raster::infinite_spectra(chosen); !infinite.empty())
        throw Error("-library " + library.path + ": the spectrum '" + chosen.names[infinite.front()] +
                    "' has infinite values");
    if (chosen.wavelengths_nm.empty())
        throw Error("-library " + library.path + " has no wavelengths",
                    "Use a library with wavelengths, which features need.");
    const auto near = [](double a, double b) { return !(std::fabs(a - b) > 0.5); };
    if (chosen.bands() == scene.size() &&
        std::equal(chosen.wavelengths_nm.begin(), chosen.wavelengths_nm.end(), scene.centres.begin(), near))
        return chosen;
    const bool response =
        fit == tools::BandFit::response ||
        (fit == tools::BandFit::automatic && math::tells_widths({chosen.wavelengths_nm, chosen.fwhm_nm}) &&
         math::tells_widths(scene));
    tools::report_fit(run, response ? "response" : "linear", "-library", library.path);
    chosen.spectra =
        tools::resampled(chosen, scene, response ? math::Resampling::response : math::Resampling::linear)
            .spectra;
    return chosen;
}

} // namespace

std::vector<identify::Reference> references_of(tool::Run& run, const ReferenceOptions& options,
                                               const std::string& path, const identify::RuleFile& file,
                                               const identify::Choice& choice,
                                               const raster::RasterSource& scene) {
    const auto& facts = scene.facts().bands;
    if (facts.wavelengths_nm.empty())
        throw Error(scene.path() + " has no wavelengths, which features need",
                    tools::advice_on_wavelengths());
    auto libraries = read_libraries(run, options, path, file);
    for (const auto& name : identify::spectra_of(file, choice)) {
        const auto found = std::find_if(libraries.begin(), libraries.end(), [&](Library& library) {
            const auto at = library.names.find(name);
            if (at) library.wanted.push_back(*at);
            return at.has_value();
        });
        if (found != libraries.end()) continue;
        const std::string role = naming(file, name, path) + ", -library " + libraries.back().path;
        raster::chosen_names(libraries.back().spectra.names, {name}, role);
        throw Error(role + ": no spectrum is called '" + name + "'");
    }
    std::vector<identify::Reference> references;
    for (const auto& library : libraries) {
        if (library.wanted.empty()) continue;
        auto spectra = at_bands(run, library, options.fit, {facts.wavelengths_nm, facts.fwhm_nm});
        for (size_t k = 0; k < spectra.names.size(); ++k)
            references.push_back({spectra.names[k], std::move(spectra.spectra[k])});
    }
    return references;
}

std::vector<float> first_values(const raster::RasterSource& scene, const std::vector<double>& scale,
                                const std::vector<double>& offset) {
    constexpr size_t wanted = 65536;
    const auto shape = scene.shape();
    const auto bands = static_cast<size_t>(shape.bands), samples = static_cast<size_t>(shape.samples);
    const auto reader = scene.open_reader();
    std::vector<float> line(bands * samples), values;
    for (int64_t y = 0; y < shape.lines && values.size() < wanted * bands; ++y) {
        const auto view = CubeView<float>::packed(line.data(), shape.bands, 1, shape.samples);
        reader->read({0, y, shape.samples, 1}, view);
        for (size_t x = 0; x < samples && values.size() < wanted * bands; ++x) {
            if (!is_valid_pixel(line.data() + x, shape.bands, view.band_stride)) continue;
            for (size_t b = 0; b < bands; ++b) {
                const double v = view.row(static_cast<int>(b), 0)[x];
                values.push_back(static_cast<float>(v * (scale.empty() ? 1 : scale[b]) +
                                                    (offset.empty() ? 0 : offset[b])));
            }
        }
    }
    return values;
}

} // namespace hsi::identify_tool
