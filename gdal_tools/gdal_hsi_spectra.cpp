// SPDX-License-Identifier: MIT
// gdal_hsi_spectra: the spectra of classes, polygons or points of a scene, as a library. One pass over the
// tiles that hold a labelled pixel.
#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/json.h"
#include "core/text.h"
#include "raster/gdal/drivers.h"
#include "raster/libraries/spectral_library.h"
#include "raster/sink/library_output.h"
#include "raster/sink/vector_sink.h"
#include "raster/source/raster_source.h"
#include "shared/scene_and_library.h"
#include "shared/training_pixels.h"
#include "spectra/spectra.h"
#include "tool/classification.h"
#include "tool/definition.h"
#include "tool/resources.h"
#include "tool/scene.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace spectra_tool {

using tool::Content;

enum class Kind { mean, deviation, every };

struct Settings {
    raster::LabelOptions labels;
    std::string out;
    std::vector<std::string> spectra; ///< names of those that are written; empty: all
    Kind kind = Kind::mean;
    bool overwrite = false;
};

// The spectra of labelled pixels
// ----------------------------------------------------------------------------------------------------------

/// A spectrum with what is known of it.
struct SpectrumRow {
    std::string name;
    int value = 0; ///< its class
    int64_t pixels = 1;
    std::vector<double> mean, deviation;
    int64_t line = -1, sample = -1; ///< of a single pixel
};

std::string class_name(const LabelClass& c) {
    return c.name.empty() ? "Class " + std::to_string(c.value) : c.name;
}

spectra::Labels indexed(const raster::LabelledPixels& pixels) {
    spectra::Labels labels;
    labels.samples = pixels.grid.samples;
    labels.index = pixels.index;
    labels.classes = pixels.classes.size();
    std::vector<uint16_t> place(static_cast<size_t>(raster::max_class) + 1);
    for (size_t c = 0; c < pixels.classes.size(); ++c)
        place[static_cast<size_t>(pixels.classes[c].value)] = static_cast<uint16_t>(c);
    for (const uint16_t value : pixels.value)
        labels.class_of.push_back(place[value]);
    return labels;
}

/// A scene, and what is read of it: its values in parts where single precision does not hold them.
struct Source {
    std::shared_ptr<raster::RasterSource> scene, cube;
    explicit Source(std::shared_ptr<raster::RasterSource> opened)
        : scene(std::move(opened)), cube(scene->exact_in_float() ? scene : scene->in_sums()) {}
    int bands() const { return scene->shape().bands; }
    int parts() const { return cube->shape().bands / bands(); }
};

/// Runs the scan over the tiles with labels; false in a dry run, which prints its plan.
template <class Scan>
bool run_scan(tool::Run& run, const raster::RasterSource& cube, Scan& scan, uint64_t held) {
    auto pass = run.pass("spectra", 1);
    tool::leave_room(pass, held);
    const auto plan = stream::plan_pass(cube, scan, pass);
    if (run.options().dry_run) {
        tool::print_plan(run, cube, scan, pass);
        return false;
    }
    const auto tiles = scan.tiles(plan);
    pass.only = &tiles;
    run.add_pass(stream::run_pass(cube, scan, {}, plan, pass));
    return true;
}

std::vector<SpectrumRow> class_rows(tool::Run& run, const Source& source,
                                    const raster::LabelledPixels& pixels, const spectra::Labels& labels) {
    spectra::ClassScan scan(source.bands(), labels, source.parts());
    std::vector<SpectrumRow> rows;
    if (!run_scan(run, *source.cube, scan, 0)) return rows;
    int64_t invalid = 0;
    auto result = scan.result();
    if (std::all_of(result.begin(), result.end(), [](const auto& one) { return one.pixels == 0; }))
        return rows; // a band without a value spoils all; the caller looks for it
    for (size_t c = 0; c < result.size(); ++c) {
        const LabelClass& known = pixels.classes[c];
        invalid += result[c].invalid;
        if (result[c].pixels == 0) {
            run.warn("class " + tool::class_text(known.value, known.name) + ": none of its " +
                     counted(known.pixels, "labelled pixel") + " has a valid spectrum; it is left out");
            continue;
        }
        rows.push_back({class_name(known), known.value, result[c].pixels, std::move(result[c].mean),
                        std::move(result[c].deviation)});
    }
    tool::report_invalid(run, static_cast<int64_t>(labels.index.size()) - invalid, invalid,
                         "and take no part");
    return rows;
}

std::vector<SpectrumRow> pixel_rows(tool::Run& run, const Source& source,
                                    const raster::LabelledPixels& pixels, const spectra::Labels& labels) {
    // As floats, and as the doubles that are written.
    const uint64_t bytes =
        static_cast<uint64_t>(2 + source.parts()) * tools::spectra_bytes(run, pixels, source.bands());
    if (bytes > run.buffer_memory() / 2)
        throw Error("the spectra of " + std::to_string(pixels.index.size()) + " labelled pixels take " +
                        format_byte_size(bytes) + ", more than half of -memory",
                    "Draw fewer with gdal_hsi_sample, or give more -memory.");
    spectra::PixelScan scan(source.bands(), labels, source.parts());
    std::vector<SpectrumRow> rows;
    if (!run_scan(run, *source.cube, scan, bytes)) return rows;
    for (size_t i = 0; i < pixels.index.size(); ++i) {
        auto spectrum = scan.spectrum(i);
        if (spectrum.empty()) continue;
        const LabelClass& known = pixels.classes[labels.class_of[i]];
        const int64_t line = pixels.index[i] / labels.samples, sample = pixels.index[i] % labels.samples;
        rows.push_back({class_name(known) + " " + std::to_string(line) + " " + std::to_string(sample),
                        known.value,
                        1,
                        std::move(spectrum),
                        {},
                        line,
                        sample});
    }
    if (rows.empty()) return rows;
    const auto valid = static_cast<int64_t>(rows.size());
    tool::report_invalid(run, valid, static_cast<int64_t>(pixels.index.size()) - valid, "and are left out");
    return rows;
}

/// Those that the words of -spectrum ask for, in their order; all when there are none. \throws Error as
/// raster::chosen_names().
std::vector<SpectrumRow> chosen_rows(const std::vector<SpectrumRow>& rows,
                                     const std::vector<std::string>& wanted) {
    if (wanted.empty()) return rows;
    std::vector<std::string> names;
    names.reserve(rows.size());
    for (const SpectrumRow& row : rows)
        names.push_back(row.name);
    std::vector<SpectrumRow> some;
    for (const size_t k : raster::chosen_names(names, wanted, "-spectrum"))
        some.push_back(rows[k]);
    return some;
}

// The forms in which they are written
// ----------------------------------------------------------------------------------------------------------

OrderedJson list_of(const std::vector<double>& values) {
    OrderedJson list = OrderedJson::array();
    for (const double v : values)
        list.push_back(std::isfinite(v) ? OrderedJson(v) : OrderedJson());
    return list;
}

/// Profiles as EnMAP-Box and QGIS read them: a feature a spectrum, at its place where it is a single pixel's.
/// Wavelengths in nm, unknown ones null, or where there are none the numbers of the bands; values that are
/// none are null.
std::string geojson_of(const std::vector<SpectrumRow>& rows, const raster::RasterSource& scene) {
    const auto nm = scene.wavelengths_nm();
    const auto profile = [&](const std::vector<double>& values) {
        OrderedJson json;
        if (!nm.empty())
            json["x"] = list_of(nm);
        else
            json["x"] = scene.band_numbers();
        json["y"] = list_of(values);
        json["xUnit"] = nm.empty() ? "Band Number" : "nm";
        return json;
    };
    std::vector<std::pair<int64_t, int64_t>> pixels;
    for (const SpectrumRow& row : rows)
        if (row.line >= 0) pixels.emplace_back(row.line, row.sample);
    const auto places = raster::places_of_pixels(scene, pixels);
    OrderedJson features = OrderedJson::array();
    size_t at = 0;
    for (const SpectrumRow& row : rows) {
        OrderedJson properties{{"name", row.name}, {"class", row.value}, {"pixels", row.pixels}};
        OrderedJson geometry;
        if (row.line >= 0) {
            properties["line"] = row.line;
            properties["sample"] = row.sample;
            const auto& place = places[at++];
            if (std::isfinite(place.lon) && std::isfinite(place.lat))
                geometry = {{"type", "Point"}, {"coordinates", {place.lon, place.lat}}};
        }
        properties["profiles"] = profile(row.mean);
        if (!row.deviation.empty()) properties["deviation"] = profile(row.deviation);
        features.push_back({{"type", "Feature"}, {"properties", properties}, {"geometry", geometry}});
    }
    return OrderedJson{{"type", "FeatureCollection"}, {"features", features}}.dump(
               -1, ' ', false, OrderedJson::error_handler_t::replace) +
           "\n";
}

/// Deviations are spectra of their own, behind the mean; in double precision where the scene's type tells
/// more than single.
raster::SpectralLibrary library_of(const std::vector<SpectrumRow>& rows, const raster::RasterSource& scene) {
    auto library = tools::library_for(scene);
    for (const SpectrumRow& row : rows) {
        library.names.push_back(row.name);
        library.spectra.push_back(row.mean);
        if (row.deviation.empty()) continue;
        library.names.push_back(row.name + " deviation");
        library.spectra.push_back(row.deviation);
    }
    return library;
}

// The run
// ----------------------------------------------------------------------------------------------------------

void run_spectra(tool::Run& run, const Settings& s) {
    Source source(run.open_source(tool::Precision::full));
    const auto& scene = source.scene;
    const auto output = run.text_output("out", s.out, s.overwrite);
    const bool geojson = equal_names(raster::extension_of(s.out), "geojson");
    if (geojson)
        raster::check_text_output(output);
    else
        raster::check_library_output(output, ".geojson (profiles)");
    const auto pixels = tools::read_labels(run, s.labels, *scene);
    const auto labels = indexed(pixels);
    const tool::BandedSource banded{scene, scene->bands(), [&source](const std::vector<int>& empty) {
                                        source = Source(source.scene->without_bands(empty));
                                    }};
    std::vector<SpectrumRow> rows;
    tool::attempt(run, {banded}, [&](bool) {
        rows = s.kind == Kind::every ? pixel_rows(run, source, pixels, labels)
                                     : class_rows(run, source, pixels, labels);
        return !rows.empty() || run.options().dry_run;
    });
    if (run.options().dry_run) return;
    if (rows.empty())
        throw Error("no labelled pixel has a valid spectrum",
                    "Check the nodata value (-srcnodata) and bad bands (-b).");
    rows = chosen_rows(rows, s.spectra);
    const tools::BandScales scales(*scene);
    scales.note(run);
    for (SpectrumRow& row : rows) {
        scales.apply(row.mean);
        scales.apply_to_difference(row.deviation);
        run.report()["spectra"].push_back({{"name", row.name}, {"class", row.value}, {"pixels", row.pixels}});
        if (s.kind == Kind::mean) row.deviation.clear();
        // One pixel deviates from nothing.
        if (row.pixels == 1) row.deviation.clear();
    }
    if (geojson)
        raster::write_text_output(output, geojson_of(rows, *scene));
    else if (const auto told = raster::write_spectral_library(output, library_of(rows, *scene),
                                                              run.options().destination.history);
             !told.empty())
        run.warn(told);
    run.note(counted(rows.size(), "spectrum", "spectra") + " of " +
             counted(pixels.index.size(), "labelled pixel"));
}

// The options
// ----------------------------------------------------------------------------------------------------------

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_source();
    call.add_mask("the spectra");
    call.input_argument("labels", s.labels.path, Content::labels,
                        "Classes, polygons or points: a raster or vector file");
    call.output_argument("out", s.out, Content::spectra,
                         "The spectra: .sli (ENVI library), .csv (a line per band) or .geojson (profiles)");
    call.choice("kind", s.kind, "Which spectra are written",
                {{"mean", Kind::mean, "the mean of each class"},
                 {"deviation", Kind::deviation, "mean and standard deviation of each class"},
                 {"every", Kind::every, "that of every labelled pixel"}});
    call.option("spectrum", s.spectra,
                "Write this spectrum alone: its name, a pattern such as corn*, or #N, counted from 1")
        .shown_as("NAME");
    tool::add_label_options(call, s.labels);
    call.overwrite(s.overwrite, "Replace out when it is there; without this that is an error");
    call.add_compute(false);
    call.body([&s](tool::Run& run) { run_spectra(run, s); });
}

} // namespace spectra_tool
} // namespace

namespace tools {

extern constinit const tool::Definition spectra{
    "spectra",
    "Spectra of classes, polygons and points",
    "Spectra: takes the spectra of labelled pixels out of a scene, as the mean of each class, with its "
    "standard deviation, or pixel by pixel, and writes them as a library that the other tools read.",
    {{"gdal_hsi_spectra scene.img fields.gpkg crops.sli -field crop", "A mean spectrum of each crop"},
     {"gdal_hsi_spectra -kind deviation scene.img labels.tif classes.csv", "Mean and standard deviation"},
     {"gdal_hsi_spectra -kind every scene.img points.geojson profiles.geojson -field name",
      "Profiles at points, for QGIS and EnMAP-Box"}},
    "",
    spectra_tool::declare};

} // namespace tools
} // namespace hsi
