// SPDX-License-Identifier: MIT
// gdal_hsi_spectra: writes the spectra of classes, polygons or points of a scene as a library or as a plot.
// One pass reads the tiles that contain a labelled pixel. Spectra of a library are plotted without a pass.
#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/json.h"
#include "core/text.h"
#include "gdal_hsi_spectra/plot.h"
#include "model/document.h"
#include "raster/drivers.h"
#include "raster/library_output.h"
#include "raster/raster_source.h"
#include "raster/side_files.h"
#include "raster/spectral_library.h"
#include "raster/vector_sink.h"
#include "shared/many_scenes.h"
#include "shared/regression_samples.h"
#include "shared/scene_and_library.h"
#include "shared/spectral_bands.h"
#include "shared/training_pixels.h"
#include "spectra/spectra.h"
#include "tool/classification.h"
#include "tool/definition.h"
#include "tool/memory_plan.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"
#include "tool/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace spectra_tool {
namespace {

using tool::Content;

enum class Kind { mean, deviation, every };

struct Settings {
    raster::LabelOptions labels;
    std::string out, plot, title;
    std::vector<std::string> range_texts;
    std::vector<raster::BandChoice> ranges; ///< parsed from range_texts
    std::vector<std::string> spectra;       ///< names of the spectra that are written; empty: all
    Kind kind = Kind::mean;
    bool overwrite = false;
    std::vector<std::array<std::string, 2>> with; ///< each pair: a scene and its labels
};

// The spectra of labelled pixels
// ----------------------------------------------------------------------------------------------------------

/// A spectrum, and a description of its origin.
struct SpectrumRow {
    std::string name;
    int value = 0; ///< class value
    int64_t pixels = 1;
    std::vector<double> mean, deviation;
    int64_t line = -1, sample = -1; ///< position, if the spectrum is a single pixel
    size_t scene = 0;               ///< index of the pixel's scene
    std::string of_class = {};      ///< class name, if the spectrum is a single pixel
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

/// src, and the cube that is read, in which the scenes of -with follow below src. If single precision cannot
/// represent the values of all scenes, each value is split into several bands.
struct Source {
    std::shared_ptr<raster::RasterSource> scene;
    const tools::ManyScenes* many; ///< null: there is only one scene
    std::shared_ptr<const stream::CubeSource> cube;
    Source(std::shared_ptr<raster::RasterSource> opened, const tools::ManyScenes* with)
        : scene(std::move(opened)), many(with) {
        std::vector<std::shared_ptr<raster::RasterSource>> all{scene};
        for (size_t k = 1; many != nullptr && k < many->count(); ++k)
            all.push_back(many->scene(k, *scene));
        const bool exact =
            std::all_of(all.begin(), all.end(), [](const auto& one) { return one->facts().exact_in_float; });
        std::vector<std::shared_ptr<const stream::CubeSource>> parts;
        for (const auto& one : all)
            parts.push_back(exact ? one : one->in_sums());
        cube = parts.size() == 1 ? parts.front() : tools::lines_together(std::move(parts));
    }
    int bands() const { return scene->shape().bands; }
    int parts() const { return cube->shape().bands / bands(); }
};

/// Returns the labels of src and of the scenes of -with. Rows are counted over all scenes. \throws the errors
/// of tools::read_labels().
raster::LabelledPixels joined_labels(tool::Run& run, const Settings& s, raster::LabelledPixels first,
                                     const Source& source) {
    tools::JoinedClasses classes;
    raster::LabelledPixels all = first;
    const auto shape = source.cube->shape();
    const auto add = [&](const raster::LabelledPixels& part, size_t k) {
        const auto number = classes.add(run, source.many->name(k), part.classes);
        for (size_t i = 0; i < part.index.size(); ++i) {
            const int64_t line = part.index[i] / part.grid.samples + source.many->first_line(k);
            all.index.push_back(line * shape.samples + part.index[i] % part.grid.samples);
            all.value.push_back(static_cast<uint16_t>(number.at(part.value[i])));
        }
    };
    all.index.clear();
    all.value.clear();
    add(first, 0);
    const Json of_first = run.report()["labels"];
    for (size_t k = 1; k < source.many->count(); ++k) {
        auto options = s.labels;
        options.path = s.with[k - 1][1];
        run.files()->reads("-with", options.path, raster::files_read_with(options.path));
        add(tools::read_labels(run, options, *source.many->scene(k, *source.scene)), k);
    }
    run.report()["labels"] = of_first;
    all.classes = classes.all();
    all.grid.samples = shape.samples;
    all.grid.lines = shape.lines;
    return all;
}

/// Runs the scan over the tiles that contain labels.
template <class Scan>
void run_scan(tool::Run& run, const stream::CubeSource& cube, Scan& scan, uint64_t held) {
    auto pass = run.pass("spectra", 1);
    tool::leave_room(pass, held);
    const auto plan = stream::plan_pass(cube, scan, pass);
    tool::end_of_plan(run, [&] { tool::print_plan(run, cube, scan, pass); });
    const auto tiles = scan.tiles(plan);
    pass.only = &tiles;
    run.add_pass(stream::run_pass(cube, scan, {}, plan, pass));
}

std::vector<SpectrumRow> class_rows(tool::Run& run, const Source& source,
                                    const raster::LabelledPixels& pixels, const spectra::Labels& labels) {
    spectra::ClassScan scan(source.bands(), labels, source.parts());
    run_scan(run, *source.cube, scan, 0);
    std::vector<SpectrumRow> rows;
    int64_t invalid = 0;
    auto result = scan.result();
    if (std::all_of(result.begin(), result.end(), [](const auto& one) { return one.pixels == 0; }))
        return rows; // an empty band makes all pixels invalid; the caller looks for such bands
    for (size_t c = 0; c < result.size(); ++c) {
        const LabelClass& known = pixels.classes[c];
        invalid += result[c].invalid;
        if (result[c].pixels == 0) {
            run.warn("class " + tool::class_text(known.value, known.name) + ": its " +
                     counted(known.pixels, "labelled pixel has", "labelled pixels have") +
                     " no valid spectrum; the class is left out");
            continue;
        }
        rows.push_back({class_name(known), known.value, result[c].pixels, std::move(result[c].mean),
                        std::move(result[c].deviation)});
    }
    tool::report_invalid(run, static_cast<int64_t>(labels.index.size()) - invalid, invalid, "and left out");
    return rows;
}

std::vector<SpectrumRow> pixel_rows(tool::Run& run, const Source& source,
                                    const raster::LabelledPixels& pixels, const spectra::Labels& labels) {
    // The spectra are stored once as floats for each part, and once as the doubles (two floats) that are
    // written.
    const uint64_t bytes = static_cast<uint64_t>(2 + source.parts()) *
                           tools::spectra_bytes(run, pixels.index.size(), source.bands());
    if (bytes > run.buffer_memory() / 2)
        throw Error("the spectra of " + std::to_string(pixels.index.size()) + " labelled pixels take " +
                        format_byte_size(bytes) + ", more than half of -memory",
                    "Draw fewer with gdal_hsi_sample, or use more -memory.");
    spectra::PixelScan scan(source.bands(), labels, source.parts());
    run_scan(run, *source.cube, scan, bytes);
    std::vector<SpectrumRow> rows;
    for (size_t i = 0; i < pixels.index.size(); ++i) {
        auto spectrum = scan.spectrum(i);
        if (spectrum.empty()) continue;
        const LabelClass& known = pixels.classes[labels.class_of[i]];
        const int64_t together = pixels.index[i] / labels.samples, sample = pixels.index[i] % labels.samples;
        const auto [k, line] =
            source.many ? source.many->place_of(together) : tools::ManyScenes::Place{0, together};
        rows.push_back({class_name(known) + " (line " + std::to_string(line) + " sample " +
                            std::to_string(sample) + (source.many ? " of " + source.many->name(k) : "") + ")",
                        known.value,
                        1,
                        std::move(spectrum),
                        {},
                        line,
                        sample,
                        k,
                        class_name(known)});
    }
    if (rows.empty()) return rows;
    const auto valid = static_cast<int64_t>(rows.size());
    tool::report_invalid(run, valid, static_cast<int64_t>(pixels.index.size()) - valid, "and left out");
    return rows;
}

/// Returns the rows that the words of -spectrum select, in the order of the words. Without words, returns all
/// rows. \throws the errors of raster::chosen_names().
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

// Formats of the output
// ----------------------------------------------------------------------------------------------------------

OrderedJson list_of(const std::vector<double>& values) {
    OrderedJson list = OrderedJson::array();
    for (const double v : values)
        list.push_back(std::isfinite(v) ? OrderedJson(v) : OrderedJson());
    return list;
}

/// Returns profiles in the format of EnMAP-Box and QGIS: one feature per spectrum. A single pixel has a
/// position. Wavelengths are in nm; unknown wavelengths and missing values are null. If no wavelength is
/// known, band numbers are written.
std::string geojson_of(const std::vector<SpectrumRow>& rows, const Source& source) {
    const raster::RasterSource& scene = *source.scene;
    const auto nm = scene.facts().bands.wavelengths_nm;
    const auto profile = [&](const std::vector<double>& values) {
        OrderedJson json;
        if (!nm.empty())
            json["x"] = list_of(nm);
        else
            json["x"] = scene.facts().bands.known_as;
        json["y"] = list_of(values);
        json["xUnit"] = nm.empty() ? "Band Number" : "nm";
        return json;
    };
    // The pixels of each scene are read together, so that the coordinate arrays of a product are read only
    // once.
    std::vector<std::vector<std::pair<int64_t, int64_t>>> pixels(source.many ? source.many->count() : 1);
    for (const SpectrumRow& row : rows)
        if (row.line >= 0) pixels[row.scene].emplace_back(row.line, row.sample);
    std::vector<std::vector<raster::PixelPlace>> places;
    for (size_t k = 0; k < pixels.size(); ++k)
        places.push_back(raster::places_of_pixels(k > 0 ? *source.many->scene(k, scene) : scene, pixels[k]));
    OrderedJson features = OrderedJson::array();
    std::vector<size_t> at(pixels.size());
    for (const SpectrumRow& row : rows) {
        OrderedJson properties{{"name", row.name}, {"class", row.value}, {"pixels", row.pixels}};
        OrderedJson geometry;
        if (row.line >= 0) {
            properties["line"] = row.line;
            properties["sample"] = row.sample;
            if (source.many) properties["scene"] = source.many->name(row.scene);
            const auto& place = places[row.scene][at[row.scene]++];
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

/// Returns the library. The standard deviation of a class is a separate spectrum after the mean. Double
/// precision is used if the type of the scene has more digits than single precision.
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

// The plot
// ----------------------------------------------------------------------------------------------------------

/// Plots the rows. All spectra of a class have the same colour.
SpectraPlot plot_of_rows(const Settings& s, const std::vector<SpectrumRow>& rows,
                         const raster::RasterSource& scene) {
    const auto& bands = scene.facts().bands;
    const auto& values = bands.values;
    const bool scaled = !values.scale.empty();
    SpectraPlot plot{!values.unit.empty() ? values.unit
                     : scaled             ? "scaled value"
                                          : "stored value",
                     bands.wavelengths_nm,
                     bands.known_as,
                     {},
                     {},
                     s.ranges,
                     s.title};
    // Offsets and differing scales were already applied.
    const double factor = scaled && values.one_factor() ? values.scale.front() : 1;
    // Class value -> (index of the group, number of spectra)
    std::map<int, std::pair<size_t, size_t>> of_class;
    for (const SpectrumRow& row : rows) {
        DrawnSpectrum one{row.name, row.mean, row.deviation, plot.groups.size()};
        for (auto* list : {&one.values, &one.deviation})
            for (double& v : *list)
                v *= factor;
        const auto [known, first] = of_class.try_emplace(row.value, plot.groups.size(), size_t{0});
        ++known->second.second;
        if (s.kind != Kind::every || first)
            plot.groups.push_back(row.of_class.empty() ? row.name : row.of_class);
        else
            one.group = known->second.first;
        plot.spectra.push_back(std::move(one));
    }
    return plot;
}

/// Plots the library. A standard deviation that follows its mean is drawn as an area.
SpectraPlot plot_of_library(const Settings& s, const raster::SpectralLibrary& library) {
    SpectraPlot plot{"value",
                     library.wavelengths_nm,
                     library.numbers_told ? library.band_numbers : std::vector<int>(),
                     {},
                     {},
                     s.ranges,
                     s.title};
    const auto deviations = raster::deviations_in(library.names);
    const auto shown = [&](const std::string& name) {
        const auto at = std::find(library.names.begin(), library.names.end(), name);
        return at == library.names.end() ? std::vector<double>()
                                         : library.spectra[static_cast<size_t>(at - library.names.begin())];
    };
    for (size_t k = 0; k < library.names.size(); ++k) {
        if (deviations.count(k) > 0) continue;
        const auto& name = library.names[k];
        plot.spectra.push_back({name, library.spectra[k], shown(name + " deviation"), plot.groups.size()});
        plot.groups.push_back(name);
    }
    return plot;
}

// Values of a continuous variable
// ----------------------------------------------------------------------------------------------------------

/// Returns true if the field of the features holds a continuous variable (a trait), not classes (land cover).
bool holds_values(const Settings& s, const raster::RasterSource& scene) {
    auto options = s.labels;
    options.values = true;
    const auto grid = raster::grid_of(scene);
    std::vector<raster::ValueSample> samples;
    try {
        const auto source = raster::LabelSource::open(options, &grid);
        if (source->of_features()) samples = source->values();
    } catch (const Error&) {
        return false; // a text field; errors of the file are reported when it is read as classes
    }
    return std::any_of(samples.begin(), samples.end(), [](const raster::ValueSample& one) {
        return one.value != std::floor(one.value) || one.value < 0 || one.value > raster::max_class;
    });
}

/// Writes the table that gdal_hsi_regression_train reads: one row per labelled pixel, with scaled values.
/// Features that share a pixel are in one group.
void write_values(tool::Run& run, const Settings& s, std::shared_ptr<raster::RasterSource> scene) {
    tools::SampleSet set;
    tools::SampleOptions options;
    options.labels = s.labels;
    options.labels.values = true;
    options.per = tools::Per::pixel;
    tools::add_samples(run, options, scene, 0, set);
    set.number_groups();
    const auto& nm = scene->facts().bands.wavelengths_nm;
    if (nm.empty() || !std::all_of(nm.begin(), nm.end(), [](double v) { return std::isfinite(v); }))
        throw Error(scene->path() + " has bands without a wavelength, which the column names need",
                    "Write the wavelengths into its header, or leave these bands out (-b).");
    std::string text = "group,line,sample," + set.name;
    for (const double one : nm)
        text += "," + model::number_text(one);
    for (size_t i = 0; i < set.count(); ++i) {
        text += "\n" + std::to_string(set.group[i] + 1) + "," +
                std::to_string(set.place[i] / set.place_samples) + "," +
                std::to_string(set.place[i] % set.place_samples) + "," + model::number_text(set.y[i]);
        for (size_t b = 0; b < set.bands; ++b)
            text += "," + model::number_text(set.x[i * set.bands + b]);
    }
    raster::write_text_output(run.text_output("out", s.out, s.overwrite), text + "\n");
    run.note(counted(set.count(), "spectrum", "spectra") + " with values of " + set.name);
}

// The run
// ----------------------------------------------------------------------------------------------------------

/// Plots a library, and writes it in another format.
void run_library(tool::Run& run, const Settings& s, raster::SpectralLibrary library) {
    const tools::PlotOutput plot(run, "plot", s.plot, s.overwrite);
    plot.check(spectra_frame);
    const auto output = run.text_output("out", s.out, s.overwrite);
    if (!s.out.empty()) raster::check_library_output(output);
    if (!s.spectra.empty())
        library = raster::selected(library, raster::chosen_names(library.names, s.spectra, "-spectrum"));
    if (const auto infinite = raster::infinite_spectra(library); !infinite.empty())
        throw Error("the spectrum '" + library.names[infinite.front()] + "' has infinite values",
                    "Choose other spectra with -spectrum.");
    const auto of_library = plot_of_library(s, library);
    if (plot.wanted() && of_library.spectra.empty())
        throw Error(run.options().source.path + ": only standard deviations are left to plot",
                    "Choose spectra with -spectrum.");
    tool::end_of_plan(run, [&] {
        run.print(counted(library.names.size(), "spectrum", "spectra") + " of " +
                  counted(library.bands(), "band") + "; no output is written");
    });
    run.report()["library"] = {{"path", run.options().source.path}, {"spectra", library.names}};
    if (plot.wanted()) plot.write(run, plot_of(of_library));
    if (!s.out.empty())
        if (const auto told =
                raster::write_spectral_library(output, library, run.options().destination.history);
            !told.empty())
            run.warn(told);
    run.note(counted(library.names.size(), "spectrum", "spectra") + " of " + run.options().source.path);
}

/// Returns src if it is a scene. If src is a library, processes it and returns null. \throws UsageError for
/// labels of a library, and for a scene without labels.
std::shared_ptr<raster::RasterSource> open_source(tool::Run& run, const Settings& s) {
    if (!s.labels.path.empty()) return run.open_source(tool::Precision::full);
    auto source = tools::open_scene_or_library(run);
    if (!source.library)
        throw UsageError("labels is missing: " + run.options().source.path + " is a scene",
                         "Give labels of its pixels; only a spectral library needs no labels.");
    run_library(run, s, std::move(*source.library));
    return nullptr;
}

void run_spectra(tool::Run& run, Settings s) {
    s.with = tools::listed_pairs(run, "-with", s.with);
    const auto opened = open_source(run, s);
    if (!opened) return;
    const tools::PlotOutput plot(run, "plot", s.plot, s.overwrite);
    plot.check(spectra_frame);
    std::unique_ptr<tools::ManyScenes> many;
    if (!s.with.empty()) {
        std::vector<std::string> names;
        for (const auto& pair : s.with)
            names.push_back(pair[0]);
        many = std::make_unique<tools::ManyScenes>(run, names, opened, false);
    }
    Source source(opened, many.get());
    const auto& scene = source.scene;
    const auto output = run.text_output("out", s.out, s.overwrite);
    const bool geojson = equal_names(raster::extension_of(s.out), "geojson");
    if (geojson)
        raster::check_text_output(output);
    else if (!s.out.empty())
        raster::check_library_output(output, ".geojson (profiles)");
    if (s.kind == Kind::every && !s.labels.field.empty() && !many && !geojson &&
        equal_names(raster::extension_of(s.out), "csv") && holds_values(s, *scene)) {
        if (plot.wanted()) throw UsageError("-plot cannot be used with a table of values", "Leave it out.");
        return write_values(run, s, scene);
    }
    auto pixels = tools::read_labels(run, s.labels, *scene);
    if (many) pixels = joined_labels(run, s, std::move(pixels), source);
    const auto labels = indexed(pixels);
    std::shared_ptr<const stream::CubeSource> looked_at = scene;
    if (many) looked_at = many->together(scene, *scene);
    const tool::BandedSource banded{looked_at, scene->bands(), [&source](const std::vector<int>& empty) {
                                        source = Source(source.scene->without_bands(empty), source.many);
                                    }};
    std::vector<SpectrumRow> rows;
    tool::attempt(run, {banded}, [&](bool) {
        rows = s.kind == Kind::every ? pixel_rows(run, source, pixels, labels)
                                     : class_rows(run, source, pixels, labels);
        return !rows.empty();
    });
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
        // A single pixel has no standard deviation.
        if (row.pixels == 1) row.deviation.clear();
    }
    if (plot.wanted()) plot.write(run, plot_of(plot_of_rows(s, rows, *scene)));
    if (geojson)
        raster::write_text_output(output, geojson_of(rows, source));
    else if (!s.out.empty())
        if (const auto told = raster::write_spectral_library(output, library_of(rows, *scene),
                                                             run.options().destination.history);
            !told.empty())
            run.warn(told);
    run.note(counted(rows.size(), "spectrum", "spectra") + " of " +
             counted(pixels.index.size(), "labelled pixel"));
}

// The options
// ----------------------------------------------------------------------------------------------------------

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the spectra");
    args.input_argument(
            "labels", s.labels.path, Content::labels,
            "Classes, polygons or points: a raster or vector file; not needed for a spectral library")
        .required = false;
    args.output_argument("out", s.out, Content::spectra,
                         "The spectra: .sli (ENVI library), .csv (one row per band) or .geojson (profiles); "
                         "optional with -plot")
        .or_option("out")
        .required = false;
    args.choice("kind", s.kind, "Spectra to write",
                {{"mean", Kind::mean, "the mean of each class"},
                 {"deviation", Kind::deviation, "mean and standard deviation of each class"},
                 {"every", Kind::every,
                  "the spectrum of every labelled pixel; for a field of values such as 2.5 a table with one "
                  "row per pixel"}});
    args.option("spectrum", s.spectra,
                "Write only this spectrum: a name, a pattern such as corn*, or #N, counted from 1")
        .shown_as("NAME");
    tools::add_pairs_option(args, s.with,
                            "Also use the labelled pixels of this scene (classes match by name)");
    args.output("plot", s.plot, Content::text,
                "Also plot the spectra to FILE.svg or FILE.png; -kind deviation adds one standard deviation");
    args.option("range", s.range_texts,
                "In -plot, also draw the continuum and the absorption feature in this range: 2100-2300nm")
        .shown_as("RANGE");
    args.option("title", s.title, "Write this title above -plot").shown_as("TEXT");
    tool::add_label_options(args, s.labels);
    args.overwrite(s.overwrite, "Replace out if it exists; otherwise an existing out is an error");
    args.add_compute(false);
    args.check([&s](const tool::Call& call) {
        const auto& options = call.options();
        if (s.labels.path.empty()) {
            tool::refuse_label_options(call, "Give labels after src.");
            for (const char* const of_labels : {"kind", "with"})
                if (call.given(of_labels))
                    throw UsageError("-" + std::string(of_labels) + " requires labels");
        }
        if (s.out.empty() && s.plot.empty())
            throw UsageError("out is missing", "Give the name of a library to write, or -plot FILE.svg.");
        if (!s.range_texts.empty() && s.plot.empty()) throw UsageError("-range requires -plot");
        if (!s.title.empty() && s.plot.empty()) throw UsageError(tool::option_requires("-title", "-plot"));
        s.ranges = tool::parse_ranges(s.range_texts, "-range");
        tools::PlotOutput::check_name("plot", s.plot);
        if (!s.with.empty() && options.mask.given())
            throw UsageError(tool::cannot_be_used_with("-with", "a mask, because a mask applies to src only"),
                             "Leave the masked pixels out of the labels (gdal_hsi_sample).");
    });
    args.body([&s](tool::Run& run) { run_spectra(run, s); });
}

} // namespace
} // namespace spectra_tool

namespace tools {

extern constinit const tool::Definition spectra{
    "spectra",
    "Spectra of classes, polygons and points",
    "Spectra: extracts the spectra of labelled pixels of a scene (the mean of each class, also with its "
    "standard deviation, or every pixel), and writes them as a library for the other tools, or as a plot.",
    {{"gdal_hsi_spectra scene.img fields.gpkg crops.sli -field crop", "A mean spectrum of each crop"},
     {"gdal_hsi_spectra -kind deviation -plot crops.svg scene.img fields.gpkg -field crop",
      "A plot of each crop's mean and standard deviation"},
     {"gdal_hsi_spectra -plot usgs.png -range 2100-2300nm -spectrum '*kaolin*' usgs.sli",
      "Spectra of a library, with their absorption features"},
     {"gdal_hsi_spectra -kind deviation scene.img labels.tif classes.csv", "Mean and standard deviation"},
     {"gdal_hsi_spectra -kind every scene.img points.geojson profiles.geojson -field name",
      "Profiles at points, for QGIS and EnMAP-Box"}},
    "",
    spectra_tool::declare};

} // namespace tools
} // namespace hsi
