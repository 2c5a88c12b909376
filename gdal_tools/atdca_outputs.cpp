// SPDX-License-Identifier: MIT
#include "atdca_outputs.h"

#include "core/error.h"
#include "raster/labels.h"
#include "tool/words.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

namespace hsi::tools {
namespace {

std::string target_name(size_t rank, const atdca::Target& t) {
    return "Target " + std::to_string(rank) + " (line " + std::to_string(t.line) + " sample " +
           std::to_string(t.sample) + ")";
}

/// The references at the bands of the targets' spectra.
raster::SpectralLibrary fitted(const raster::SpectralLibrary& references, const std::string& path,
                               const raster::SpectralLibrary& targets) {
    const auto &a = references.wavelengths_nm, &b = targets.wavelengths_nm;
    const auto near = [](double x, double y) { return !(std::fabs(x - y) > 0.5); };
    if (references.bands() == targets.bands() &&
        (a.empty() || b.empty() || std::equal(a.begin(), a.end(), b.begin(), near)))
        return references;
    if (a.empty() || b.empty())
        throw Error("-reference " + path + " has " + std::to_string(references.bands()) +
                        " bands, the scene " + std::to_string(targets.bands()) +
                        ", and there are no wavelengths to fit them by",
                    "Give a library with the scene's bands, or choose bands with -b.");
    return raster::resampled(references, b);
}

std::string scene_size(const stream::CubeShape& s) {
    return std::to_string(s.samples) + "x" + std::to_string(s.lines);
}

} // namespace

TargetRasters::TargetRasters(const tool::Run& run, const AtdcaSettings& s, const stream::CubeShape& shape,
                             int targets, const raster::RasterSource& like) {
    const auto options = [&](const std::string& role, const std::string& path) {
        raster::OutputOptions o;
        o.role = role;
        o.run = run.files();
        o.cancel = &run.cancel();
        o.path = path;
        o.creation_options = s.creation_options;
        o.overwrite = s.targets.overwrite;
        o.history = run.options().destination.history;
        return o;
    };
    if (!s.map.empty()) {
        raster::OutputSpec spec;
        spec.shape = {shape.samples, shape.lines, 1};
        spec.type = targets <= 255 ? "Byte" : "UInt16";
        spec.bands = {{"Nearest target", {}}};
        spec.nodata = 0;
        spec.categories = {"Unclassified"};
        spec.colours = {{0, 0, 0, 0}};
        for (int k = 0; k < targets; ++k) {
            spec.categories.push_back("Target " + std::to_string(k + 1));
            spec.colours.push_back(raster::default_colour(k + 1));
        }
        m_virtual = raster::RasterSink::is_virtual(options("-map", s.map));
        if (m_virtual) {
            m_map = {options("-map", s.map), spec};
            raster::RasterSink::check_virtual(m_map.first, spec, like);
        } else {
            m_outputs.plan(options("-map", s.map), spec);
        }
    }
    if (!s.scores.empty()) {
        raster::OutputSpec spec;
        spec.shape = {shape.samples, shape.lines, targets};
        spec.holes = true;
        for (int k = 0; k < targets; ++k)
            spec.bands.push_back({"Target " + std::to_string(k + 1) + " " + s.score_kind,
                                  {{"unit", s.score_kind == "angle" ? "degree" : "1"}}});
        m_outputs.plan(options("-scores", s.scores), std::move(spec));
    }
    m_outputs.check();
}

void TargetRasters::write_virtual_map(const std::vector<std::vector<float>>& spectra, double max_angle,
                                      const raster::RasterSource& like) const {
    std::string text;
    char one[32];
    for (const auto& x : spectra) {
        if (!text.empty()) text += "; ";
        for (size_t b = 0; b < x.size(); ++b) {
            std::snprintf(one, sizeof one, "%.9g", static_cast<double>(x[b]));
            text += (b ? " " : "") + std::string(one);
        }
    }
    raster::VirtualBand band;
    band.function = "hsi_sad";
    std::snprintf(one, sizeof one, "%.17g", max_angle);
    band.arguments = {{"spectra", text}, {"output", "class"}, {"max_angle", one}};
    raster::RasterSink::write_virtual(m_map.first, m_map.second, like, {band});
}

std::vector<std::vector<float>> spectra_at(std::shared_ptr<raster::RasterSource>& cube, tool::Run& run,
                                           const std::vector<atdca::Target>& targets) {
    std::vector<std::vector<float>> spectra;
    for (;;) {
        const auto reader = cube->open_reader();
        const int bands = cube->shape().bands;
        spectra.clear();
        for (const auto& t : targets) {
            std::vector<float> x(static_cast<size_t>(bands));
            reader->read({t.sample, t.line, 1, 1}, CubeView<float>::packed(x.data(), bands, 1, 1));
            spectra.push_back(std::move(x));
        }
        std::vector<int> empty, numbers;
        for (int b = 0; b < bands; ++b)
            if (std::all_of(spectra.begin(), spectra.end(),
                            [&](const auto& x) { return std::isnan(x[static_cast<size_t>(b)]); }))
                empty.push_back(b);
        if (empty.empty() || static_cast<int>(empty.size()) == bands) break;
        for (int b : empty)
            numbers.push_back(cube->bands()[static_cast<size_t>(b)]);
        run.warn("-original " + cube->path() + ": no value at any target in band " +
                 tool::list_text(numbers) + ": left out");
        cube = cube->without_bands(empty);
    }
    for (size_t k = 0; k < spectra.size(); ++k)
        if (!std::all_of(spectra[k].begin(), spectra[k].end(), [](float v) { return std::isfinite(v); }))
            throw Error("-original " + cube->path() + " has no value at target " + std::to_string(k + 1) +
                            " (line " + std::to_string(targets[k].line) + ", sample " +
                            std::to_string(targets[k].sample) + ")",
                        "Give the cube that src was made from, or leave out its bad bands.");
    return spectra;
}

raster::SpectralLibrary library_of(const std::vector<std::vector<float>>& spectra,
                                   const std::vector<atdca::Target>& targets,
                                   const raster::RasterSource& cube) {
    raster::SpectralLibrary library;
    for (size_t k = 0; k < spectra.size(); ++k) {
        library.names.push_back(target_name(k + 1, targets[k]));
        library.spectra.emplace_back(spectra[k].begin(), spectra[k].end());
    }
    library.wavelengths_nm = cube.wavelengths_nm();
    library.fwhm_nm = cube.fwhm_nm();
    return library;
}

void compare_with_references(tool::Run& run, const raster::SpectralLibrary& references,
                             const raster::SpectralLibrary& targets, const std::string& path) {
    const auto fit = fitted(references, path, targets);
    std::vector<size_t> common;
    for (size_t b = 0; b < targets.bands(); ++b)
        if (std::all_of(fit.spectra.begin(), fit.spectra.end(),
                        [&](const auto& x) { return std::isfinite(x[b]); }))
            common.push_back(b);
    if (common.size() < 2)
        throw Error("-reference " + path +
                    ": its wavelengths and the scene's have fewer than 2 bands in common");
    if (common.size() < targets.bands())
        run.note("Compared over " + std::to_string(common.size()) + " of " + std::to_string(targets.bands()) +
                 " bands: the others lie outside the library");
    const auto cut = [&](const std::vector<double>& x) {
        std::vector<double> y;
        for (size_t b : common)
            y.push_back(x[b]);
        return y;
    };
    size_t width = 9;
    for (const auto& name : fit.names)
        width = std::max(width, name.size());
    const auto row = [&](const std::string& name, const std::string& target, double angle) {
        char text[32];
        std::snprintf(text, sizeof text, "%12.4f", angle);
        run.print(name + std::string(width - name.size(), ' ') +
                  std::string(8 - std::min<size_t>(8, target.size()), ' ') + target + text);
    };
    run.print("Reference" + std::string(width - 9, ' ') + "  Target SAD/degree");
    nlohmann::json table = nlohmann::json::array();
    double sum = 0;
    for (size_t r = 0; r < fit.names.size(); ++r) {
        const auto reference = cut(fit.spectra[r]);
        double best = std::numeric_limits<double>::infinity();
        size_t at = 0;
        for (size_t k = 0; k < targets.spectra.size(); ++k) {
            const double angle =
                atdca::spectral_angle(reference.data(), cut(targets.spectra[k]).data(), reference.size());
            if (angle < best) {
                best = angle;
                at = k;
            }
        }
        if (!std::isfinite(best))
            throw Error("-reference " + path + ": the spectrum " + fit.names[r] + " is all zero");
        row(fit.names[r], std::to_string(at + 1), best);
        table.push_back({{"reference", fit.names[r]}, {"target", at + 1}, {"sad_degrees", best}});
        sum += best;
    }
    row("Average", "", sum / static_cast<double>(fit.names.size()));
    run.report()["reference"] = {{"library", path}, {"bands", common.size()}, {"best", table}};
}

raster::PointLayer layer_of(const std::vector<atdca::Target>& targets, const raster::RasterSource& source,
                            const std::string& path) {
    std::vector<std::pair<int64_t, int64_t>> pixels;
    for (const auto& t : targets)
        pixels.emplace_back(t.line, t.sample);
    const auto places = raster::places_of_pixels(source, pixels);
    raster::PointLayer layer;
    layer.name = raster::layer_name(path);
    layer.srs_wkt = source.srs_wkt();
    double gt[6];
    layer.placed = source.geotransform(gt);
    layer.fields = {{"rank", true}, {"line", true}, {"sample", true}, {"score"}, {"lon"}, {"lat"}};
    for (size_t k = 0; k < targets.size(); ++k)
        layer.points.push_back(
            {places[k].x,
             places[k].y,
             {static_cast<double>(k + 1), static_cast<double>(targets[k].line),
              static_cast<double>(targets[k].sample), targets[k].score, places[k].lon, places[k].lat}});
    return layer;
}

std::shared_ptr<raster::RasterSource> open_original(tool::Run& run, const std::string& path,
                                                    const raster::RasterSource& source) {
    if (path.empty()) return nullptr;
    raster::OpenOptions options;
    options.path = path;
    options.use_bbl = run.options().source.use_bbl;
    options.window = run.options().source.window;
    auto original = raster::RasterSource::open(options);
    run.reserve_cache(original->cache_bytes());
    const auto a = source.shape(), b = original->shape();
    if (a.samples != b.samples || a.lines != b.lines)
        throw Error("-original " + path + " is " + scene_size(b) + ", " + source.path() + " is " +
                        scene_size(a),
                    "Give the cube that src was made from.");
    return original;
}

void tell_economy(tool::Run& run, const atdca::Detection& found, int wanted, bool held_by_system) {
    const auto& e = found.economy;
    char text[200];
    std::snprintf(text, sizeof text,
                  "Search: %s; %d passes looked at %.2f times the scene's pixels, %d full scans would at %d",
                  e.in_memory ? (e.device ? "scene on the device, read once" : "scene in memory, read once")
                  : held_by_system ? "scene read again where the system holds it in memory"
                                   : "scene streamed",
                  e.passes, e.scan_equivalents, wanted, wanted);
    run.note(text);
    run.report()["search"] = {{"in_memory", e.in_memory},
                              {"on_device", e.device},
                              {"held_by_system", held_by_system},
                              {"passes", e.passes},
                              {"tiles", e.tiles},
                              {"tile_visits", e.tile_visits},
                              {"tile_visits_of_full_scans", e.tiles * wanted},
                              {"full_scan_equivalents", e.scan_equivalents},
                              {"full_scans", wanted},
                              {"candidates", e.pool}};
}

void tell_targets(tool::Run& run, const std::vector<atdca::Target>& targets) {
    run.note("Rank     Line   Sample           Score");
    nlohmann::json entries = nlohmann::json::array();
    for (size_t k = 0; k < targets.size(); ++k) {
        const auto& t = targets[k];
        char text[100];
        std::snprintf(text, sizeof text, "%4zu %8lld %8lld %15.8g", k + 1, static_cast<long long>(t.line),
                      static_cast<long long>(t.sample), t.score);
        run.note(text);
        entries.push_back({{"rank", k + 1}, {"line", t.line}, {"sample", t.sample}, {"score", t.score}});
    }
    run.report()["targets"] = entries;
}

} // namespace hsi::tools
