// SPDX-License-Identifier: MIT
#include "atdca_outputs.h"

#include "core/error.h"
#include "raster/labels/labels.h"
#include "scaled_spectra.h"
#include "second_scene.h"
#include "stream/value_parts.h"
#include "tool/words.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace hsi::tools {
namespace {

std::string target_name(const char* what, size_t rank, const atdca::Target& t) {
    return std::string(what) + " " + std::to_string(rank) + " (line " + std::to_string(t.line) + " sample " +
           std::to_string(t.sample) + ")";
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
        spec.keep_nan = true; // 0 is no target: a pixel without a value, or one too far from all
        spec.categories = {"Unclassified"};
        spec.colours = {{0, 0, 0, 0}};
        for (int k = 0; k < targets; ++k) {
            spec.categories.push_back("Target " + std::to_string(k + 1));
            spec.colours.push_back(raster::default_colour(k + 1));
        }
        m_virtual = raster::RasterSink::is_virtual(options("-map", s.map));
        if (m_virtual && run.options().mask.outputs)
            throw UsageError("-mask-output does not go with -map " + s.map +
                                 ": a VRT is computed from the scene, "
                                 "which knows no mask",
                             "Write another format, or leave out -mask-output.");
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

void add_vector_options(tool::Call& call, raster::VectorOptions& options) {
    call.option("of", options.format, "Vector format of dst")
        .shown_as("FORMAT")
        .defaults_to("from the extension of dst, else GPKG")
        .speaks(tool::Vocabulary::vector_drivers)
        .under("Output");
    call.option("dsco", options.dataset_options, "Dataset creation option of dst")
        .shown_as("NAME=VALUE")
        .under("Output");
    call.option("lco", options.layer_options, "Layer creation option of dst")
        .shown_as("NAME=VALUE")
        .under("Output");
}

raster::SpectralLibrary library_of(const std::vector<std::vector<float>>& spectra,
                                   const std::vector<atdca::Target>& targets,
                                   const raster::RasterSource& cube, const char* what) {
    raster::SpectralLibrary library;
    const BandScales scales(cube);
    // What single precision does not hold is read again.
    const auto exact = cube.exact_in_float() ? nullptr : cube.in_sums()->open_reader();
    for (size_t k = 0; k < spectra.size(); ++k) {
        library.names.push_back(target_name(what, k + 1, targets[k]));
        auto& x = library.spectra.emplace_back(spectra[k].begin(), spectra[k].end());
        if (exact) {
            std::vector<float> parts(x.size() * stream::value_parts);
            exact->read({targets[k].sample, targets[k].line, 1, 1},
                        CubeView<float>::packed(parts.data(), static_cast<int>(parts.size()), 1, 1));
            for (size_t b = 0; b < x.size(); ++b)
                x[b] = stream::joined(parts.data() + b * stream::value_parts, 1);
        }
        scales.to_meaning(x);
    }
    library.wavelengths_nm = cube.wavelengths_nm();
    library.fwhm_nm = cube.fwhm_nm();
    library.twofold = !cube.exact_in_float();
    return library;
}

raster::PointLayer layer_of(tool::Run& run, const std::vector<atdca::Target>& targets,
                            const raster::RasterSource& source, const std::string& path) {
    if (const auto means = raster::unread_georeference(source); !means.empty())
        run.warn(source.path() + " is placed by " + means +
                 ", which points do not follow: theirs are its pixels "
                 "(gdalwarp puts the scene onto a grid)");
    std::vector<std::pair<int64_t, int64_t>> pixels;
    for (const auto& t : targets)
        pixels.emplace_back(t.line, t.sample);
    const auto places = raster::places_of_pixels(source, pixels);
    raster::PointLayer layer;
    layer.name = raster::layer_name(path);
    layer.srs_wkt = raster::srs_of_places(source);
    layer.placed = source.located();
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
    run.watch_source(original);
    run.reserve_cache(original->cache_bytes());
    const auto a = source.shape(), b = original->shape();
    if (a.samples != b.samples || a.lines != b.lines)
        throw Error("-original " + path + " is " + scene_size(b) + ", " + source.path() + " is " +
                        scene_size(a),
                    "Give the cube that src was made from.");
    check_same_place(run, "-original", *original, source);
    // A target lies in the mask, and -map and -scores end there, too.
    return source.has_mask() ? original->with_mask(run.mask()) : original;
}

void classify_pixels(tool::Run& run, AtdcaComputing& computing, const AtdcaSettings& s,
                     const stream::CubeShape& shape, const std::vector<std::vector<float>>& spectra,
                     const std::shared_ptr<raster::RasterSource>& cube) {
    TargetRasters rasters(run, s, shape, static_cast<int>(spectra.size()), *cube);
    atdca::ClassifyOptions classify;
    classify.map = !s.map.empty() && !rasters.virtual_map();
    classify.max_angle = s.max_angle;
    if (!s.scores.empty())
        classify.scores = s.score_kind == "angle" ? atdca::ClassifyOptions::Scores::angle
                                                  : atdca::ClassifyOptions::Scores::abundance;
    if (auto& outputs = rasters.outputs(); !outputs.empty()) {
        const auto operation = computing->make_classification(spectra, classify);
        outputs.create(cube.get());
        run.reserve_cache(outputs.cache_bytes());
        run.add_pass(stream::run_pass(*cube, *operation, outputs.sinks(), computing.pass("classify", 0.4)));
        outputs.commit();
    }
    if (rasters.virtual_map()) rasters.write_virtual_map(spectra, s.max_angle, *cube);
}

} // namespace hsi::tools
